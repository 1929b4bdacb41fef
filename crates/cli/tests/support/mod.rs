//! Starts the command for tests, without settings from the environment, on a terminal if needed.

use std::fs::File;
use std::io::Read;
use std::process::{Command, Output, Stdio};
use std::str::from_utf8;

use lockworks_machine::affinity;
use nix::pty::{Winsize, openpty};

use serde_json::Value;

/// The command with these arguments. Settings of Lockworks in the environment of the test run do not
/// reach it.
pub fn lockworks(args: &[&str]) -> Command {
    let mut command = Command::new(crate::COMMAND);
    command.args(args);
    for (name, _) in std::env::vars_os() {
        let ours = name.to_string_lossy().starts_with("LOCKWORKS_");
        if ours || ["LD_PRELOAD", "COLUMNS"].iter().any(|other| name == *other) {
            command.env_remove(name);
        }
    }
    command
}

/// Runs the command; returns its output and exit status.
pub fn output(args: &[&str]) -> Output {
    lockworks(args).output().expect("the command runs")
}

/// Output as text.
pub fn text(bytes: &[u8]) -> &str {
    from_utf8(bytes).expect("UTF-8")
}

/// The JSON on standard output.
#[track_caller]
pub fn json(output: &Output) -> Value {
    serde_json::from_slice(&output.stdout).expect("JSON on standard output")
}

/// The command must end with this status, without results, and with one line that has these words.
#[track_caller]
pub fn assert_fails(output: &Output, status: i32, words: &[&str]) {
    let message = text(&output.stderr);
    assert_eq!(output.status.code(), Some(status), "{message}");
    assert_eq!(text(&output.stdout), "");
    for word in words {
        assert!(message.contains(word), "no {word:?} in {message:?}");
    }
}

/// The command must refuse its arguments with one line that has these words.
#[track_caller]
pub fn assert_refused(output: &Output, words: &[&str]) {
    assert_fails(output, 2, words);
    assert_eq!(text(&output.stderr).lines().count(), 1);
}

/// Two CPUs that this process may use. None: it may use only one.
pub fn two_cpus() -> Option<[usize; 2]> {
    let cpus = affinity::allowed().expect("the CPUs of this process");
    cpus.first_chunk().copied()
}

/// The output of the command on a terminal of this width.
pub fn on_terminal(mut command: Command, columns: u16) -> String {
    let size = Winsize {
        ws_row: 25,
        ws_col: columns,
        ws_xpixel: 0,
        ws_ypixel: 0,
    };
    let terminal = openpty(&size, None).expect("a pseudo-terminal");
    command.env("NO_COLOR", "1");
    command.stdin(Stdio::null()).stdout(terminal.slave);
    let mut child = command.spawn().expect("the command runs");
    // The terminal closes with the last process that has it open.
    drop(command);
    let mut printed = Vec::new();
    match File::from(terminal.master).read_to_end(&mut printed) {
        Err(error) if error.raw_os_error() != Some(nix::libc::EIO) => panic!("{error}"),
        _ => {}
    }
    child.wait().expect("the command ends");
    text(&printed).replace("\r\n", "\n")
}

/// Asserts that the command prints nothing wider than a terminal of 80 or 100 columns, and still
/// has these words. Commands to copy may be wider: they are never broken.
#[track_caller]
pub fn assert_fits_terminals(args: &[&str], words: &[&str]) {
    for columns in [80, 100] {
        let printed = on_terminal(lockworks(args), columns);
        for line in printed.lines() {
            let to_copy = ["replay: ", "Try: "]
                .iter()
                .any(|mark| line.starts_with(mark));
            let width = line.chars().count();
            assert!(
                to_copy || width <= usize::from(columns),
                "{columns}: {line:?} in\n{printed}"
            );
        }
        // Prose may wrap between any two words.
        let unwrapped: Vec<&str> = printed.split_whitespace().collect();
        let unwrapped = unwrapped.join(" ");
        for word in words {
            assert!(unwrapped.contains(word), "no {word:?} in\n{printed}");
        }
    }
}
