//! The tools of maintainers from outside.

mod bench;
mod fit;
#[path = "../../cli/tests/support/mod.rs"]
#[allow(dead_code, reason = "the tests of the command use more of it")]
mod support;

/// The command that these tests start.
const COMMAND: &str = env!("CARGO_BIN_EXE_lockworks-maintain");

#[test]
fn help_fits_the_terminal() {
    for command in ["bench", "fit"] {
        for help in ["--help", "--help-all"] {
            let words = ["Usage: lockworks-maintain", "Examples:"];
            support::assert_fits_terminals(&[command, help], &words);
        }
    }
}
