//! Scripts with which other schedulers run the points of a plan in chunks: an array of Slurm jobs,
//! or a Snakefile. Both end by putting all results into the store.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, ensure};

use super::exchange::line;
use super::point::Point;
use crate::output;

/// The least number of points in a chunk, unless the user chooses another one: a job should take
/// longer than it takes to start.
const CHUNK: usize = 100;
/// The most chunks, unless the user chooses their size: an array of Slurm has at most 1,000 jobs
/// where its administrator has not set another limit.
const CHUNKS: usize = 1000;

/// The program that runs the chunks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scheduler {
    /// Slurm.
    Slurm,
    /// Snakemake.
    Snakemake,
}

impl std::str::FromStr for Scheduler {
    type Err = anyhow::Error;

    fn from_str(name: &str) -> Result<Self> {
        match name {
            "slurm" => Ok(Self::Slurm),
            "snakemake" => Ok(Self::Snakemake),
            other => Err(crate::names::unknown(
                "scheduler",
                other,
                ["slurm", "snakemake"],
            )),
        }
    }
}

/// Writes points and scripts into a new or empty directory. Returns what to type next.
pub fn write(
    scheduler: Scheduler,
    directory: &Path,
    store: &Path,
    points: &[Point],
    chunk: Option<usize>,
) -> Result<String> {
    let cannot = || {
        format!(
            "cannot write to {}; choose a directory that you may write to",
            directory.display()
        )
    };
    let empty = match fs::read_dir(directory) {
        Ok(mut entries) => entries.next().is_none(),
        Err(_) => !directory.exists(),
    };
    ensure!(
        empty,
        "{} is there already; give a new or empty directory",
        directory.display()
    );
    let make = |name: &str| fs::create_dir_all(directory.join(name)).with_context(cannot);
    make("points")?;
    make("results")?;
    let size = chunk.unwrap_or_else(|| CHUNK.max(points.len().div_ceil(CHUNKS)));
    let chunks = points.chunks(size);
    let count = chunks.len();
    for (number, chunk) in chunks.enumerate() {
        let lines = chunk.iter().map(line).collect::<Result<String>>()?;
        let path = directory.join(format!("points/{}.jsonl", number + 1));
        output::write_file(&path, lines.as_bytes())?;
    }
    let script = Script {
        program: absolute(&std::env::current_exe().context("the path of this program")?)?,
        store: absolute(store)?,
        directory: absolute(directory)?,
        chunks: count,
    };
    let write =
        |name: &str, text: String| output::write_file(&directory.join(name), text.as_bytes());
    let shown = quoted(&directory.display().to_string());
    match scheduler {
        Scheduler::Slurm => {
            write("chunk.sbatch", script.slurm_chunk())?;
            write("import.sbatch", script.slurm_import())?;
            write("submit.sh", script.slurm_submit())?;
            Ok(format!("bash {shown}/submit.sh"))
        }
        Scheduler::Snakemake => {
            write("Snakefile", script.snakefile())?;
            Ok(format!(
                "snakemake --directory {shown} --snakefile {shown}/Snakefile --cores all"
            ))
        }
    }
}

fn absolute(path: &Path) -> Result<PathBuf> {
    std::path::absolute(path).with_context(|| path.display().to_string())
}

/// A word for a shell.
fn quoted(word: &str) -> String {
    shlex::try_quote(word).map_or_else(|_| word.to_owned(), |word| word.into_owned())
}

/// The parts that differ between scripts.
struct Script {
    program: PathBuf,
    store: PathBuf,
    directory: PathBuf,
    chunks: usize,
}

impl Script {
    /// The beginning of a shell script that works in the directory.
    fn shell(&self) -> String {
        format!(
            "set -euo pipefail\ncd {}\nlockworks=${{LOCKWORKS:-{}}}\n",
            quoted(&self.directory.display().to_string()),
            quoted(&self.program.display().to_string())
        )
    }

    fn slurm_chunk(&self) -> String {
        format!(
            "#!/bin/bash
#SBATCH --job-name=lockworks-sweep
#SBATCH --array=1-{chunks}
#SBATCH --cpus-per-task=1
# Runs one chunk of the points. submit.sh submits all.
{shell}chunk=$SLURM_ARRAY_TASK_ID
[[ -e results/$chunk.jsonl ]] && exit
\"$lockworks\" points --jobs \"${{SLURM_CPUS_PER_TASK:-1}}\" \\
\t<\"points/$chunk.jsonl\" >\"results/$chunk.part\"
mv \"results/$chunk.part\" \"results/$chunk.jsonl\"
",
            chunks = self.chunks,
            shell = self.shell(),
        )
    }

    fn slurm_import(&self) -> String {
        format!(
            "#!/bin/bash
#SBATCH --job-name=lockworks-import
# Puts the results of all chunks that have ended into the store.
{shell}cat results/*.jsonl | \"$lockworks\" sweep import {store}
",
            shell = self.shell(),
            store = quoted(&self.store.display().to_string()),
        )
    }

    fn slurm_submit(&self) -> String {
        format!(
            "#!/bin/bash
# Submits the chunks, and the job that puts their results into the store. Submitted again, it runs
# the chunks that have no results.
set -euo pipefail
cd {directory}
array=$(sbatch --parsable chunk.sbatch)
sbatch --dependency=\"afterany:$array\" import.sbatch
",
            directory = quoted(&self.directory.display().to_string()),
        )
    }

    fn snakefile(&self) -> String {
        let text = |path: &Path| serde_json::Value::from(path.display().to_string()).to_string();
        format!(
            "# Runs the points in chunks, and puts their results into the store.
LOCKWORKS = {program}
STORE = {store}
CHUNKS = range(1, {chunks} + 1)


rule store:
    input:
        expand(\"results/{{chunk}}.jsonl\", chunk=CHUNKS),
    output:
        touch(\"imported\"),
    shell:
        \"cat {{input:q}} | {{LOCKWORKS:q}} sweep import {{STORE:q}}\"


rule chunk:
    input:
        \"points/{{chunk}}.jsonl\",
    output:
        \"results/{{chunk}}.jsonl\",
    threads: 1
    shell:
        \"{{LOCKWORKS:q}} points --jobs {{threads}} < {{input:q}} > {{output:q}}\"
",
            program = text(&self.program),
            store = text(&self.store),
            chunks = self.chunks,
        )
    }
}
