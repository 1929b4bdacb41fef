//! `lockworks locks new`: writes the files of a new lock into a checkout.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

use anyhow::{Context, Result, ensure};
use regex::Regex;

use lockworks_torture::ELSEWHERE;
use lockworks_torture::peers::{of_c_library, of_crates};
use lockworks_ui::output;

/// Write a new lock that works into a checkout, and add it to the list of locks
///
/// The files are locks/NAME.h and locks/NAME.c, a test-and-test-and-set lock to begin from. The lock
/// is in every command after the next build. It is experimental: no other file names it until
/// lockworks.h includes it. Tests then say what is missing.
#[derive(clap::Args)]
#[command(after_help = "\
Example:
  lockworks locks new mylock   a lock that works, for `make quick LOCK=mylock`")]
pub struct NewArgs {
    /// Name of the lock: lower-case letters, digits and _
    name: String,
}

/// The list of all locks. Only a checkout has it.
const LIST: &str = "locks/registry/locks_list.h";
/// The line of the first lock that is broken on purpose. Broken locks stay last.
const BROKEN: &str = "LW_LOCK(busted)\n";
/// The longest name, for lines and file names of a usual length.
const LONGEST: usize = 40;

/// Runs the command.
pub fn command(args: &NewArgs) -> Result<ExitCode> {
    let NewArgs { name } = args;
    let here = std::env::current_dir().context("cannot tell the current directory")?;
    let root = here
        .ancestors()
        .find(|directory| directory.join(LIST).is_file());
    let root = root.with_context(|| {
        let here = here.display();
        format!("{here} is not in a checkout of Lockworks; run this in a clone of its repository")
    })?;
    let list =
        fs::read_to_string(root.join(LIST)).with_context(|| format!("cannot read {LIST}"))?;
    check(name, root)?;
    ensure!(
        list.contains(BROKEN),
        "{LIST} has no line {}",
        BROKEN.trim()
    );

    let templates = [
        ("h", include_str!("lock.h.in")),
        ("c", include_str!("lock.c.in")),
    ];
    let files = templates.map(|(extension, template)| {
        let path = root.join(format!("locks/{name}.{extension}"));
        let text = template.replace("@name@", name);
        (path, text.replace("@NAME@", &name.to_uppercase()))
    });
    let write = || {
        for (path, text) in &files {
            output::write_file(path, text.as_bytes())?;
            // Line breaks depend on the length of the name.
            let _ = Command::new("clang-format").arg("-i").arg(path).status();
        }
        let list = list.replace(BROKEN, &format!("LW_LOCK({name})\n{BROKEN}"));
        output::write_file(&root.join(LIST), list.as_bytes())
    };
    if let Err(error) = write() {
        for (path, _) in &files {
            let _ = fs::remove_file(path);
        }
        return Err(error);
    }
    output::print(&format!(
        "\
Wrote locks/{name}.h and locks/{name}.c, and added {name} to {LIST}.

After each change, in minutes:
  make quick LOCK={name}

Or tool by tool:
  cargo build
  target/debug/lockworks check --lock {name}
  target/debug/lockworks torture --lock {name} --threads 2
  target/debug/lockworks sim --machine kunpeng-920 --lock {name} --threads 2,48 --ms 5

The lock is experimental until lib/include/lockworks/lockworks.h includes {name}.h. Then
  cargo test -p lockworks-cli --test cli registration
names what programs still miss, and in which file to add it. docs/guides/new-lock.md has an example.
"
    ))?;
    Ok(ExitCode::SUCCESS)
}

/// Refuses a name that a new lock cannot have.
fn check(name: &str, root: &Path) -> Result<()> {
    let shape = Regex::new("^[a-z][a-z0-9_]*$")?;
    ensure!(
        shape.is_match(name) && name.len() <= LONGEST && !name.starts_with("lw_"),
        "'{}' cannot name a lock: a name is of at most {LONGEST} lower-case letters, digits and _, \
         and begins with a letter, but not with lw_",
        name.escape_debug()
    );
    let mut peers = of_c_library().chain(of_crates()).map(|p| p.bench.name());
    ensure!(
        !peers.any(|peer| peer == name) && !ELSEWHERE.contains(&name),
        "'{name}' is a lock that Lockworks is compared with; choose another name"
    );
    let word = Regex::new(&format!(r"\bLW_LOCK\({name}\)|\blw_{name}\b"))?;
    for path in files(&root.join("locks"))? {
        let text = fs::read_to_string(&path).unwrap_or_default();
        let taken = path.file_stem().is_some_and(|stem| stem == name) || word.is_match(&text);
        let file = path.strip_prefix(root)?.display();
        ensure!(!taken, "'{name}' is taken by {file}; choose another name");
    }
    Ok(())
}

/// All files below a directory.
fn files(directory: &Path) -> Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    for entry in fs::read_dir(directory)? {
        let path = entry?.path();
        match path.is_dir() {
            true => found.extend(files(&path)?),
            false => found.push(path),
        }
    }
    Ok(found)
}
