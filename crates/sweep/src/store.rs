//! The store of results: a file with a line of JSON for each. `cat` puts stores together.

use std::collections::HashMap;
use std::fs::{File, OpenOptions};
use std::io::{ErrorKind, Write};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use serde::Deserialize;

use crate::point::Outcome;
use lockworks_ui::interruption;

/// The results of a store.
#[derive(Default)]
pub struct Results {
    /// The line of each point, by its key.
    lines: HashMap<String, Stored>,
    /// The bytes of all lines that are whole.
    whole: u64,
}

struct Stored {
    has_failed: bool,
    line: String,
}

/// The part of a line that tells which result it is.
#[derive(Deserialize)]
struct Head {
    key: String,
    error: Option<String>,
}

impl Results {
    /// Reads a store. There need not be one yet.
    ///
    /// # Errors
    ///
    /// If the file cannot be read, or a line is no result. The message names the line.
    pub fn read(path: &Path) -> Result<Self> {
        let mut results = Self::default();
        let bytes = match std::fs::read(path) {
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(results),
            bytes => bytes.with_context(|| cannot_use(path))?,
        };
        for (number, line) in (1..).zip(bytes.split_inclusive(|byte| *byte == b'\n')) {
            let added = results.add(line);
            added.with_context(|| {
                let path = path.display();
                format!("{path}:{number}: no result of a sweep; give another file with --store")
            })?;
        }
        Ok(results)
    }

    /// Adds a line. A failure replaces no result.
    fn add(&mut self, line: &[u8]) -> Result<()> {
        if is_cut(line) {
            return Ok(());
        }
        let line = std::str::from_utf8(line)?;
        let Head { key, error } = serde_json::from_str(line)?;
        let stored = Stored {
            has_failed: error.is_some(),
            line: line.to_owned(),
        };
        self.whole += line.len() as u64;
        if !stored.has_failed || !self.has(&key) || self.failed(&key) {
            self.lines.insert(key, stored);
        }
        Ok(())
    }

    /// Adds a line, unless it is there or its point has a result. Returns whether it was added.
    pub fn add_new(&mut self, line: &str) -> Result<bool> {
        let Head { key, .. } = serde_json::from_str(line)?;
        let known = self.lines.get(&key);
        if known.is_some_and(|known| !known.has_failed || known.line == line) {
            return Ok(false);
        }
        self.add(line.as_bytes())?;
        Ok(true)
    }

    /// Whether there is an outcome of the point of this key.
    pub fn has(&self, key: &str) -> bool {
        self.lines.contains_key(key)
    }

    /// Whether the point of this key failed.
    pub fn failed(&self, key: &str) -> bool {
        self.lines.get(key).is_some_and(|stored| stored.has_failed)
    }

    /// The outcome of the point of this key, which must be there.
    pub fn outcome(&self, key: &str) -> Result<Outcome> {
        let stored = self.lines.get(key).context("a point has no result")?;
        Outcome::read(&stored.line)
    }
}

/// The text that every line begins with.
const BEGIN: &[u8] = br#"{"key":""#;

/// Whether this is a result of which an interruption has cut off the end.
fn is_cut(line: &[u8]) -> bool {
    !line.ends_with(b"\n") && (line.starts_with(BEGIN) || BEGIN.starts_with(line))
}

fn cannot_use(path: &Path) -> String {
    format!(
        "cannot use the store {}; give another file with --store",
        path.display()
    )
}

/// A store that this process adds results to. No other process may at the same time.
pub struct Store {
    file: File,
    path: PathBuf,
}

impl Store {
    /// Opens the store, or makes an empty one, and reads its results.
    ///
    /// # Errors
    ///
    /// If the file is no store, cannot be written, or another process adds results to it.
    pub fn open(path: &Path) -> Result<(Self, Results)> {
        let opened = OpenOptions::new().append(true).create(true).open(path);
        let file = opened.with_context(|| cannot_use(path))?;
        if file.try_lock().is_err() {
            let path = path.display();
            bail!("another sweep uses {path}; wait for it, or give another file with --store");
        }
        let results = Results::read(path)?;
        file.set_len(results.whole)
            .with_context(|| cannot_use(path))?;
        let path = path.to_owned();
        Ok((Self { file, path }, results))
    }

    /// Appends an outcome.
    pub fn add(&mut self, outcome: &Outcome) -> Result<()> {
        self.append(&(serde_json::to_string(outcome)? + "\n"))
    }

    /// Appends an outcome as a line.
    pub fn append(&mut self, line: &str) -> Result<()> {
        let _whole = interruption::put_off();
        self.file
            .write_all(line.as_bytes())
            .with_context(|| cannot_use(&self.path))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_that_was_cut_short_is_dropped_and_a_result_outlives_a_failure() {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("store.jsonl");
        let lines = "{\"key\":\"a\",\"error\":\"e\"}\n{\"key\":\"b\"}\n{\"key\":\"a\"}\n\
                     {\"key\":\"b\",\"error\":\"e\"}\n";
        std::fs::write(&path, format!("{lines}{{\"key\":\"c\",\"er")).expect("a file");
        let (store, results) = Store::open(&path).expect("a store");
        assert!(
            ["a", "b"]
                .iter()
                .all(|key| results.has(key) && !results.failed(key))
        );
        assert!(!results.has("c"));
        assert_eq!(std::fs::read_to_string(&path).expect("a file"), lines);
        let error = Store::open(&path).err().expect("the store is in use");
        assert!(error.to_string().contains("another sweep uses"), "{error}");
        drop(store);
        assert!(Store::open(&path).is_ok());
    }
}
