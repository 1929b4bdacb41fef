//! Where results go: standard output, or a file that is there in full or not at all.

use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Mutex, MutexGuard, PoisonError};

use anyhow::{Context, Result};
use serde::Serialize;

use crate::table::Table;

/// Held while files are written, so that nothing ends the process halfway.
static WRITING: Mutex<()> = Mutex::new(());

/// Options of every command that gives results.
#[derive(clap::Args, Clone, Debug)]
pub struct Destination {
    /// Write to FILE, in full or not at all, rather than to standard output
    #[arg(short, long, value_name = "FILE")]
    pub output: Option<PathBuf>,
}

impl Destination {
    /// Finds out before a long run that its results cannot be written.
    pub fn check(&self) -> Result<()> {
        TO_FILE.store(self.output.is_some(), Relaxed);
        match &self.output {
            Some(path) => prepare(path).map(drop),
            None => Ok(()),
        }
    }

    /// Writes the results.
    pub fn write(&self, text: &str) -> Result<()> {
        match &self.output {
            Some(path) => write_file(path, text.as_bytes()),
            None => print(text),
        }
    }
}

/// An empty table, which fits the terminal if results go to one.
pub fn table(header: &[&str]) -> Table {
    Table::new(header)
}

/// Set once results go to a file.
static TO_FILE: AtomicBool = AtomicBool::new(false);

/// The width of the terminal that results go to. None: they go to a file or a pipe.
pub fn terminal_width() -> Option<usize> {
    if TO_FILE.load(Relaxed) {
        return None;
    }
    let (width, _) = terminal_size::terminal_size_of(io::stdout())?;
    Some(usize::from(width.0))
}

/// The widest line of prose.
const PROSE: usize = 100;

/// Prose, a paragraph a line, wrapped at the width of the terminal or at 100 columns.
pub fn prose(paragraphs: &str) -> String {
    textwrap::fill(
        paragraphs,
        terminal_width().map_or(PROSE, |width| width.min(PROSE)),
    )
}

/// JSON for people and programs.
pub fn json(value: &impl Serialize) -> Result<String> {
    Ok(serde_json::to_string_pretty(value)? + "\n")
}

/// Prints to standard output. A reader that has gone, as in `lockworks locks | head -1`, is no
/// error.
pub fn print(text: &str) -> Result<()> {
    let mut stdout = io::stdout().lock();
    match stdout
        .write_all(text.as_bytes())
        .and_then(|()| stdout.flush())
    {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => {
            Err(error).context("cannot write to standard output; direct it elsewhere")
        }
        _ => Ok(()),
    }
}

/// Puts `contents` into the file at `path`, in full or not at all.
pub fn write_file(path: &Path, contents: &[u8]) -> Result<()> {
    let _whole = uninterrupted();
    let write = |sink: Sink| match sink {
        Sink::Replace(mut file, target) => {
            file.write_all(contents)?;
            file.persist(target)?;
            Ok(())
        }
        Sink::Open(mut file) => file.write_all(contents),
    };
    write(prepare(path)?).with_context(|| cannot_write(path))
}

/// Puts off interruptions for as long as what it gives lives. Not to be nested.
pub fn uninterrupted() -> MutexGuard<'static, ()> {
    WRITING.lock().unwrap_or_else(PoisonError::into_inner)
}

/// What is to be done before an interruption ends the process.
static LAST: Mutex<Option<Box<dyn FnOnce() + Send>>> = Mutex::new(None);

/// Has `last` done when the process is interrupted, in place of what was to be done before.
pub fn when_interrupted(last: impl FnOnce() + Send + 'static) {
    *LAST.lock().unwrap_or_else(PoisonError::into_inner) = Some(Box::new(last));
}

/// Ends the process, but no file is left half-written, nor one written without those that go with it.
pub fn exit_between_files(code: i32) -> ! {
    let last = LAST.lock().unwrap_or_else(PoisonError::into_inner).take();
    if let Some(last) = last {
        last();
    }
    let _whole = uninterrupted();
    std::process::exit(code)
}

enum Sink {
    /// A file to be, and what it is going to replace.
    Replace(tempfile::NamedTempFile, PathBuf),
    /// A device or pipe, which must not be replaced.
    Open(std::fs::File),
}

fn prepare(path: &Path) -> Result<Sink> {
    let open = || {
        // What a link leads to is replaced, not the link.
        let target = path.canonicalize().unwrap_or_else(|_| path.to_owned());
        if target.metadata().is_ok_and(|found| !found.is_file()) {
            let file = std::fs::OpenOptions::new().write(true).open(&target)?;
            return Ok(Sink::Open(file));
        }
        let directory = match target.parent() {
            Some(parent) if parent != Path::new("") => parent,
            _ => Path::new("."),
        };
        let permissions = std::os::unix::fs::PermissionsExt::from_mode(0o666);
        let file = tempfile::Builder::new()
            .permissions(permissions)
            .tempfile_in(directory)?;
        Ok(Sink::Replace(file, target))
    };
    open()
        .map_err(|error: io::Error| error)
        .with_context(|| cannot_write(path))
}

fn cannot_write(path: &Path) -> String {
    format!(
        "cannot write {}; choose a file in a directory that you may write to",
        path.display()
    )
}
