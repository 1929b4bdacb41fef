//! RocksDB under its own benchmark: threads read a table in memory that another thread updates in place. Each
//! Get reads the rwlock of the table, and each update writes it.

use std::path::PathBuf;

use anyhow::{Context, Result};

use crate::process::Process;
use crate::{LoadOutcome, Program, Runner, Size};

/// The library, loaded with Get and Put.
pub struct RocksDb;

/// Options by which the table has one rwlock, and all that is written fits in it.
const OPTIONS: [&str; 7] = [
    "--inplace_update_support=1",
    "--inplace_update_num_locks=1",
    "--allow_concurrent_memtable_write=0",
    "--num=20000",
    "--seed=1",
    "--disable_wal=1",
    "--compression_type=none",
];

impl Program for RocksDb {
    fn name(&self) -> &'static str {
        "RocksDB readwhilewriting"
    }

    fn operation(&self) -> &'static str {
        "Get"
    }

    fn needs(&self) -> Vec<PathBuf> {
        vec!["db_bench".into()]
    }

    fn clients(&self, size: Size) -> &'static [usize] {
        size.of(&[4], &[2, 8])
    }

    fn run(&self, runner: &Runner, clients: usize, size: Size) -> Result<LoadOutcome> {
        let directory = tempfile::tempdir()?;
        let reads = size.of(200_000, 2_000_000) / clients;
        let mut process = Process::start(
            "db_bench",
            runner
                .command("db_bench")
                .arg("--benchmarks=fillseq,readwhilewriting")
                .arg(format!("--db={}", directory.path().display()))
                .args([format!("--threads={clients}"), format!("--reads={reads}")])
                .args(OPTIONS),
        )?;
        let printed = process.finish()?;
        runner.check(&process)?;
        // readwhilewriting : N micros/op N ops/sec N seconds N operations; N MB/s (N of N found)
        let line = printed
            .lines()
            .find(|line| line.starts_with("readwhilewriting"))
            .with_context(|| format!("db_bench printed no figures:\n{printed}"))?;
        let figure = |unit: &str| line.split_once(unit)?.0.split_whitespace().last();
        let found = line.split_once('(').map_or(line, |(_, found)| found);
        let operations = figure(" operations").with_context(|| format!("no operations: {line}"))?;
        Ok(LoadOutcome {
            results: format!("{operations} operations ({found}\n"),
            per_second: figure(" ops/sec")
                .with_context(|| format!("no operations a second: {line}"))?
                .parse()?,
        })
    }
}
