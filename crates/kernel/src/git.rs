//! Runs git with our settings and no others.

use std::io::{ErrorKind, Write};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, Stdio};

use crate::error::Error;

/// The command git in a directory, without the user's configuration and outside of any repository that
/// the environment names.
pub(crate) fn command(directory: &Path) -> Command {
    let mut git = Command::new("git");
    for variable in ["GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE"] {
        git.env_remove(variable);
    }
    git.env("GIT_CONFIG_GLOBAL", "/dev/null")
        .env("GIT_CONFIG_NOSYSTEM", "1")
        .env("LC_ALL", "C")
        // An interruption from the terminal does not reach it, so it ends what it has begun.
        .process_group(0)
        .arg("-C")
        .arg(directory);
    git
}

/// Runs git with this input; returns what it prints. The exit status must be one of `good`.
pub(crate) fn run(
    mut git: Command,
    what: &str,
    input: &str,
    good: &[i32],
) -> Result<String, Error> {
    let failed = |said: String| Error::Git {
        command: what.to_owned(),
        said,
    };
    git.stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let mut running = git.spawn().map_err(not_started)?;
    let mut stdin = running.stdin.take().expect("it is a pipe");
    // git reads all of its input before it prints. If it ends early, its status says so.
    let _ = stdin.write_all(input.as_bytes());
    drop(stdin);
    let output = running.wait_with_output();
    let output = output.map_err(|error| failed(error.to_string()))?;
    match output.status.code() {
        Some(code) if good.contains(&code) => {
            Ok(String::from_utf8_lossy(&output.stdout).into_owned())
        }
        // The first line says why.
        _ => Err(failed(
            String::from_utf8_lossy(&output.stderr)
                .lines()
                .next()
                .unwrap_or_default()
                .to_owned(),
        )),
    }
}

pub(crate) fn not_started(error: std::io::Error) -> Error {
    match error.kind() {
        ErrorKind::NotFound => Error::NoGit,
        _ => Error::Git {
            command: String::new(),
            said: error.to_string(),
        },
    }
}
