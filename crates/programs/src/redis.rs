//! redis with I/O threads under redis-benchmark.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result, ensure};

use crate::process::{Process, command, output};
use crate::{LoadOutcome, Program, Runner, Size};

/// The server, loaded with set, get, incr and lpush.
pub struct Redis;

/// A script for the sum of the counters that the load increments.
const SUM: &str = "local sum = 0
for _, key in ipairs(redis.call('keys', 'counter:*')) do sum = sum + redis.call('get', key) end
return sum";

impl Program for Redis {
    fn name(&self) -> &'static str {
        "redis"
    }

    fn operation(&self) -> &'static str {
        "set, get, incr, lpush"
    }

    fn needs(&self) -> Vec<PathBuf> {
        ["redis-server", "redis-cli", "redis-benchmark"]
            .map(PathBuf::from)
            .into()
    }

    fn clients(&self, size: Size) -> &'static [usize] {
        size.of(&[20], &[50])
    }

    fn run(&self, runner: &Runner, clients: usize, size: Size) -> Result<LoadOutcome> {
        let directory = tempfile::tempdir()?;
        let socket = directory.path().join("socket");
        let mut server = Process::start(
            "redis-server",
            runner
                .command("redis-server")
                .args(["--port", "0", "--save", "", "--unixsocket"])
                .arg(&socket)
                .arg("--dir")
                .arg(directory.path())
                .args(["--io-threads", "2", "--io-threads-do-reads", "yes"]),
        )?;
        server.wait_until(|| ask(&socket, &["ping"]).is_ok_and(|answer| answer == "PONG\n"))?;
        runner.check(&server)?;

        let operations: u32 = size.of(2_000, 50_000);
        let load = output(
            "redis-benchmark",
            command("redis-benchmark")
                .arg("-s")
                .arg(&socket)
                .args(["-c", &clients.to_string(), "-n", &operations.to_string()])
                .args(["-r", "100", "-P", "4", "-t", "set,get,incr,lpush", "--csv"]),
        )?;
        let statistics = ask(&socket, &["info", "stats"])?;
        ensure!(
            value(&statistics, "io_threaded_reads_processed")? != "0",
            "the I/O threads of redis had nothing to do"
        );
        let results = format!(
            "list {}counters {}errors {}\n{}",
            ask(&socket, &["llen", "mylist"])?,
            ask(&socket, &["eval", SUM, "0"])?,
            value(&statistics, "total_error_replies")?,
            saved_by_a_child(&mut server, &socket)?,
        );
        server.terminate()?;
        Ok(LoadOutcome {
            results,
            per_second: per_second(&load).with_context(|| {
                format!("redis-benchmark printed a line without a rate:\n{load}")
            })?,
        })
    }
}

fn ask(socket: &Path, words: &[&str]) -> Result<String> {
    let mut command = command("redis-cli");
    output("redis-cli", command.arg("-s").arg(socket).args(words))
}

fn value<'a>(statistics: &'a str, key: &str) -> Result<&'a str> {
    let mut lines = statistics.lines();
    lines
        .find_map(|line| line.strip_prefix(key)?.strip_prefix(':'))
        .map(str::trim)
        .with_context(|| format!("redis has no {key}"))
}

/// Makes a forked child of the server save the data. The child has only one of the server's
/// threads.
fn saved_by_a_child(server: &mut Process, socket: &Path) -> Result<String> {
    ask(socket, &["bgsave"])?;
    let mut state = String::new();
    server.wait_until(|| {
        state = ask(socket, &["info", "persistence"]).unwrap_or_default();
        value(&state, "rdb_bgsave_in_progress").is_ok_and(|saving| saving == "0")
    })?;
    let status = value(&state, "rdb_last_bgsave_status")?;
    Ok(format!("saved {status}\n"))
}

/// The rate of all tests together. Each test has a line `"name","rate",...`, and all tests make the
/// same number of operations.
fn per_second(load: &str) -> Option<f64> {
    let rates = load.lines().skip(1).map(|line| {
        let rate = line.split(',').nth(1)?.trim_matches('"');
        rate.parse::<f64>().ok()
    });
    let seconds: Vec<f64> = rates.map(|rate| Some(1.0 / rate?)).collect::<Option<_>>()?;
    Some(seconds.len() as f64 / seconds.iter().sum::<f64>())
}
