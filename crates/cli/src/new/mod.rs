//! `lockworks new`: writes the files of a new lock into a checkout.

mod lock;
mod name;

use std::fs::{self, OpenOptions};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context, Result, bail};
use clap::Subcommand;

/// Write the files of a new lock into a checkout of Lockworks
#[derive(clap::Args)]
pub struct NewArgs {
    #[command(subcommand)]
    part: Part,
}

/// The things that `lockworks new` can write.
#[derive(Subcommand)]
enum Part {
    Lock(lock::NewLockArgs),
}

/// Runs the command.
pub fn command(args: &NewArgs) -> Result<ExitCode> {
    let here = std::env::current_dir().context("cannot tell the current directory")?;
    let checkout = Checkout::around(&here)?;
    match &args.part {
        Part::Lock(args) => lock::command(args, &checkout)?,
    }
    Ok(ExitCode::SUCCESS)
}

/// The path of the list of all locks, relative to the root of a checkout. Only a checkout has it.
const LOCKS_LIST: &str = "locks/registry/locks_list.h";

/// A working copy of the source.
struct Checkout {
    root: PathBuf,
}

impl Checkout {
    /// The checkout that contains `directory`.
    fn around(directory: &Path) -> Result<Self> {
        match directory.ancestors().find(|d| d.join(LOCKS_LIST).is_file()) {
            Some(root) => Ok(Self {
                root: root.to_owned(),
            }),
            None => bail!(
                "{} is not in a checkout of Lockworks; run this in a clone of its repository",
                directory.display()
            ),
        }
    }

    fn read(&self, path: &str) -> Result<String> {
        fs::read_to_string(self.root.join(path)).with_context(|| format!("cannot read {path}"))
    }

    /// Writes new files, and replaces the text of one that exists. On an error everything is as it
    /// was before.
    fn write(&self, new: &[(String, String)], (changed, text): (&str, &str)) -> Result<()> {
        let mut made = Vec::new();
        let written = new
            .iter()
            .try_for_each(|(path, text)| {
                let whole = self.root.join(path);
                let mut file = OpenOptions::new()
                    .write(true)
                    .create_new(true)
                    .open(&whole)
                    .with_context(|| format!("cannot create {path}"))?;
                made.push(whole);
                file.write_all(text.as_bytes())
                    .with_context(|| format!("cannot write {path}"))
            })
            .and_then(|()| crate::output::write_file(&self.root.join(changed), text.as_bytes()));
        if written.is_err() {
            for path in made {
                let _ = fs::remove_file(path);
            }
        }
        written
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_is_written_or_nothing() {
        let directory = tempfile::tempdir().unwrap();
        let checkout = Checkout {
            root: directory.path().to_owned(),
        };
        fs::write(checkout.root.join("list"), "before").unwrap();
        let file = |path: &str| (path.to_owned(), String::from("new"));
        let write = |second: &str| checkout.write(&[file("a"), file(second)], ("list", "after"));
        let list = || fs::read_to_string(checkout.root.join("list")).unwrap();

        assert!(write("no such directory/b").is_err());
        assert!(!checkout.root.join("a").exists() && list() == "before");
        fs::write(checkout.root.join("b"), "there").unwrap();
        assert!(write("b").is_err());
        assert!(!checkout.root.join("a").exists() && list() == "before");
        assert_eq!(
            fs::read_to_string(checkout.root.join("b")).unwrap(),
            "there"
        );

        write("c").unwrap();
        assert!(checkout.root.join("a").exists() && list() == "after");
    }
}
