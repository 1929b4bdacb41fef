//! The commands that make the evidence.

use std::ffi::OsString;
use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

use anyhow::{Context, Result};
use serde_json::Value;

use crate::plot::figure::Results;

/// A subcommand of this program, whose JSON becomes evidence.
pub struct Step {
    /// The name of its evidence.
    pub name: &'static str,
    /// What it does, for the progress bar.
    pub what: &'static str,
    words: Vec<OsString>,
    program: Vec<OsString>,
    /// Whether it gives text rather than JSON.
    is_text: bool,
}

/// What a command printed.
pub struct Evidence {
    /// Its results. Their kind is the name of the evidence.
    pub results: Results,
    /// Its results, if they are a text.
    pub text: Option<String>,
    /// Why it failed, in a line.
    pub failure: Option<String>,
}

impl Step {
    /// A subcommand with its options.
    pub fn new(name: &'static str, what: &'static str, words: &[&str]) -> Self {
        Self {
            name,
            what,
            words: words.iter().map(OsString::from).collect(),
            program: Vec::new(),
            is_text: false,
        }
    }

    /// A subcommand that writes a text, which later steps use.
    pub fn text(name: &'static str, what: &'static str, words: &[&str]) -> Self {
        Self {
            is_text: true,
            ..Self::new(name, what, words)
        }
    }

    /// All locks on a machine, with every number of threads.
    pub fn regret(machine: &str, ms: &str) -> Self {
        let words = [
            "regret",
            "--machine",
            machine,
            "--ms",
            ms,
            "--oversubscribed",
        ];
        Self::new("predicted", "predicting", &words)
    }

    /// The program that the subcommand runs.
    pub fn with(self, program: &[OsString]) -> Self {
        Self {
            program: program.to_vec(),
            ..self
        }
    }

    /// Runs the command. Its files are in `directory`.
    pub fn run(&self, directory: &Path) -> Result<Evidence> {
        let this = std::env::current_exe().context("cannot find this program's file")?;
        let (result, csv) = (directory.join(self.name), directory.join("cells.csv"));
        let mut command = Command::new(this);
        command.args(&self.words);
        if !self.is_text {
            command.arg("--json");
        }
        command.arg("--output").arg(&result);
        let with_csv = self.words[0] == "regret";
        if with_csv {
            command.arg("--csv").arg(&csv);
            command.arg("--store").arg(directory.join("cells.jsonl"));
        }
        if !self.program.is_empty() {
            command.arg("--").args(&self.program);
        }
        let ended = command
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .output()
            .context("cannot run this program again")?;
        let said = String::from_utf8_lossy(&ended.stderr);
        let last = said.lines().rfind(|line| !line.trim().is_empty());
        let json = fs::read_to_string(&result)
            .ok()
            .and_then(|text| serde_json::from_str(&text).ok())
            .unwrap_or(Value::Null);
        // `profile` ends with the status of its program, so what counts is what it wrote.
        let complete = result.exists() && (self.is_text || !json.is_null());
        let failure = (!complete || !ended.status.success()).then(|| {
            let why = last.map(|line| line.trim_start_matches("lockworks: ").to_owned());
            why.unwrap_or_else(|| format!("it ended with {}", ended.status))
        });
        Ok(Evidence {
            results: Results {
                kind: self.name,
                command: self.shown(directory),
                json,
                csv: if with_csv { rows(&csv) } else { Vec::new() },
            },
            text: self
                .is_text
                .then(|| fs::read_to_string(&result).ok())
                .flatten(),
            failure,
        })
    }

    /// The command as a user would type it: without options for files of this run.
    fn shown(&self, directory: &Path) -> String {
        let here = format!("{}/", directory.display());
        let mut words: Vec<String> = vec!["lockworks".to_owned()];
        let own = self
            .words
            .iter()
            .map(|word| word.to_string_lossy().replace(&here, ""));
        words.extend(own);
        if self.is_text {
            words.push(format!("-o {}", self.name));
        }
        let program = self
            .program
            .iter()
            .map(|word| word.to_string_lossy().into_owned());
        let program: Vec<String> = program.collect();
        if !program.is_empty() {
            let quoted = shlex::try_join(program.iter().map(String::as_str));
            words.extend([
                "--".to_owned(),
                quoted.unwrap_or_else(|_| program.join(" ")),
            ]);
        }
        words.join(" ")
    }
}

fn rows(file: &Path) -> Vec<Vec<String>> {
    let Ok(mut reader) = csv::ReaderBuilder::new().has_headers(false).from_path(file) else {
        return Vec::new();
    };
    let records = reader.records().flatten();
    records
        .map(|record| record.iter().map(str::to_owned).collect())
        .collect()
}
