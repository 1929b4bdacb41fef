//! Where results go: to standard output, or to a file, which is written in full or not at all.

use std::io::{self, IsTerminal, Write};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use serde::Serialize;

use crate::table::Table;
use crate::{interruption, terminal};

/// Options of every command that gives results.
#[derive(clap::Args, Clone, Debug)]
pub struct Destination {
    /// Write to FILE, in full or not at all, rather than to standard output
    #[arg(short, long, value_name = "FILE")]
    pub output: Option<PathBuf>,
}

impl Destination {
    /// Fails if the file cannot be written. Long runs call this before they start.
    pub fn check(&self) -> Result<()> {
        terminal::results_go_to_file(self.output.is_some());
        match &self.output {
            Some(path) => check_file(path),
            None => Ok(()),
        }
    }

    /// Writes the results. On standard output they are without control characters.
    pub fn write(&self, text: impl AsRef<str>) -> Result<()> {
        match &self.output {
            Some(path) => write_file(path, text.as_ref().as_bytes()),
            None => print(text.as_ref()),
        }
    }

    /// Writes results that are no text, but not to a terminal.
    pub fn write_bytes(&self, contents: &[u8]) -> Result<()> {
        match &self.output {
            Some(path) => write_file(path, contents),
            None if io::stdout().is_terminal() => {
                bail!("a terminal cannot show this format; give a file with -o")
            }
            None => print_bytes(contents),
        }
    }
}

/// An empty table. It fits the width of the terminal if results go to one.
pub fn table(header: &[&str]) -> Table {
    Table::new(header)
}

/// The value as JSON, indented.
pub fn json(value: &impl Serialize) -> Result<String> {
    Ok(serde_json::to_string_pretty(value)? + "\n")
}

/// The values as JSON, indented: an object for one, an array for several.
pub fn one_or_more(values: &[impl Serialize]) -> Result<String> {
    match values {
        [one] => json(one),
        several => json(&several),
    }
}

/// Prints to standard output, without control characters. A reader that has closed its end, as `head -1` does, is no
/// error.
pub fn print(text: &str) -> Result<()> {
    print_bytes(terminal::printable(text).as_bytes())
}

/// Clears the terminal, if results go to one.
pub fn clear() -> Result<()> {
    match io::stdout().is_terminal() {
        true => print_bytes(CLEAR.as_bytes()),
        false => Ok(()),
    }
}

/// Goes to the upper left corner of a terminal, and clears all.
const CLEAR: &str = "\x1b[H\x1b[J";

/// Prints contents that need not be text to standard output.
fn print_bytes(contents: &[u8]) -> Result<()> {
    let mut stdout = io::stdout().lock();
    match stdout.write_all(contents).and_then(|()| stdout.flush()) {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => {
            Err(error).context("cannot write to standard output; direct it elsewhere")
        }
        _ => Ok(()),
    }
}

/// Writes `contents` to the file at `path`, in full or not at all.
pub fn write_file(path: &Path, contents: &[u8]) -> Result<()> {
    let _whole = interruption::put_off();
    let write = |sink: Sink| match sink {
        Sink::Replace(mut file, target) => {
            file.write_all(contents)?;
            file.persist(target)?;
            Ok(())
        }
        Sink::Open(mut file) => file.write_all(contents),
    };
    write(prepare(path)?).with_context(|| cannot_write(path))?;
    tracing::info!(file = %path.display(), bytes = contents.len(), "written");
    Ok(())
}

/// Fails if the file at `path` cannot be written.
pub fn check_file(path: &Path) -> Result<()> {
    // An interruption must not leave the file that this tries to make.
    let _whole = interruption::put_off();
    prepare(path).map(drop)
}

enum Sink {
    /// A new file, and the path of the file that it replaces.
    Replace(tempfile::NamedTempFile, PathBuf),
    /// A device or a pipe, which must not be replaced.
    Open(std::fs::File),
}

fn prepare(path: &Path) -> Result<Sink> {
    let open = || {
        // The target of a link is replaced, not the link.
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
    if let Some(parent) = path.parent().filter(|parent| *parent != Path::new(""))
        && !parent.is_dir()
    {
        bail!(
            "cannot write {}: there is no directory {}; make it, or choose another one",
            path.display(),
            parent.display()
        );
    }
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
