//! The kernels that the tests boot, here and as the command is called (`crates/cli/tests/kernel.rs`).

use std::process::Command;

/// Each version with the configuration in which the quick tests boot it. To build a kernel takes
/// minutes, so there are no others.
pub const KERNELS: [(&str, &str); 2] = [(NATIVE, "native"), (PARAVIRT, "paravirt")];

/// The version whose native kernel the quick tests boot.
pub const NATIVE: &str = "7.3";

/// The version whose paravirt kernel the quick tests boot.
pub const PARAVIRT: &str = "6.1";

/// Text that a program has printed.
pub fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// Runs a program that must succeed; returns its output.
#[track_caller]
pub fn succeeds(command: &mut Command) -> String {
    let output = command.output().expect("it starts");
    let (out, err) = (text(&output.stdout), text(&output.stderr));
    assert!(output.status.success(), "{command:?}\n{out}{err}");
    out
}
