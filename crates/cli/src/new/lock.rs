//! `lockworks new lock`.

use std::io::Write;
use std::process::{Command, Stdio};

use anyhow::{Context, Result};

use super::{Checkout, LOCKS_LIST, name};
use crate::output;

/// Write a new lock that works, and add it to the list of locks
///
/// The files are locks/NAME.h and locks/NAME.c, a test-and-test-and-set lock to begin from. The lock
/// is in every command after the next build. It is experimental: no other file names it until
/// lockworks.h includes it. Tests then say what is missing.
#[derive(clap::Args)]
#[command(after_help = "\
Example:
  lockworks new lock mylock   a lock that works, for `make quick LOCK=mylock`")]
pub struct NewLockArgs {
    /// Name of the lock: lower-case letters, digits and _
    name: String,
}

const HEADER: &str = include_str!("lock.h.in");
const CODE: &str = include_str!("lock.c.in");

/// Runs the command.
pub fn command(args: &NewLockArgs, checkout: &Checkout) -> Result<()> {
    let name = args.name.as_str();
    name::check(name, checkout)?;
    let fill = |template: &str| {
        template
            .replace("@name@", name)
            .replace("@NAME@", &name.to_uppercase())
    };
    let files = [("h", HEADER), ("c", CODE)].map(|(extension, template)| {
        let path = format!("locks/{name}.{extension}");
        let text = formatted(checkout, &path, fill(template));
        (path, text)
    });
    let list = with_lock(&checkout.read(LOCKS_LIST)?, name)?;
    checkout.write(&files, (LOCKS_LIST, &list))?;
    output::print(&next(name))
}

/// The list of locks with the new lock in it. Broken locks stay last.
fn with_lock(list: &str, name: &str) -> Result<String> {
    let last = name::listed(list)
        .filter(|lock| lockworks::find(lock).is_none_or(|lock| !lock.is_broken()))
        .last()
        .with_context(|| format!("{LOCKS_LIST} lists no lock to add another one after"))?;
    let last = format!("LW_LOCK({last})\n");
    Ok(list.replacen(&last, &format!("{last}LW_LOCK({name})\n"), 1))
}

/// The text formatted by clang-format, since line breaks depend on the length of the name. Without
/// clang-format, the text is unchanged.
fn formatted(checkout: &Checkout, path: &str, text: String) -> String {
    let format = || -> std::io::Result<Option<String>> {
        let mut child = Command::new("clang-format")
            .arg(format!("--assume-filename={path}"))
            .current_dir(&checkout.root)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()?;
        if let Some(mut to) = child.stdin.take() {
            to.write_all(text.as_bytes())?;
        }
        let done = child.wait_with_output()?;
        Ok(String::from_utf8(done.stdout)
            .ok()
            .filter(|_| done.status.success()))
    };
    format().ok().flatten().unwrap_or(text)
}

/// Instructions for the user after the files have been written.
fn next(name: &str) -> String {
    format!(
        "\
Wrote locks/{name}.h and locks/{name}.c, and added {name} to {LOCKS_LIST}.

After each change, in minutes:
  make quick LOCK={name}

Or tool by tool:
  cargo build --profile quick -p lockworks-cli
  target/quick/lockworks check --lock {name}
  target/quick/lockworks torture --lock {name} --threads 2
  target/quick/lockworks sim --machine kunpeng-920 --lock {name} --threads 2,48 --ms 5

The lock is experimental until lib/include/lockworks/lockworks.h includes {name}.h. Then
  cargo test --profile quick -p lockworks-cli --test cli registration
names what programs still miss, and in which file to add it. docs/guides/new-lock.md has an example.
"
    )
}

#[cfg(test)]
mod tests {
    use super::with_lock;

    #[test]
    fn a_new_lock_comes_before_broken_ones() {
        let list =
            "/* LW_LOCK(id) */\nLW_LOCK(tas)\nLW_LOCK(cna)\nLW_LOCK(busted)\n\n#undef LW_LOCK\n";
        assert_eq!(
            with_lock(list, "mine").unwrap(),
            "/* LW_LOCK(id) */\nLW_LOCK(tas)\nLW_LOCK(cna)\nLW_LOCK(mine)\nLW_LOCK(busted)\n\n\
             #undef LW_LOCK\n"
        );
        assert!(with_lock("#undef LW_LOCK\n", "mine").is_err());
    }
}
