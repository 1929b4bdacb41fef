//! Options that are refused, before anything is fetched or built.

use clap::Parser;
use lockworks_lab::GuestCommand;
use lockworks_ui::usage;

#[derive(Parser)]
struct Kernel {
    #[command(subcommand)]
    command: GuestCommand,
}

/// The words must be refused with one line that says why.
#[track_caller]
fn assert_refused(words: &[&str], why: &str) {
    let refused = match Kernel::try_parse_from([&["kernel"], words].concat()) {
        Err(error) => usage::in_one_line(&error),
        Ok(kernel) => format!("{:#}", kernel.command.run().expect_err("bad options")),
    };
    assert!(refused.contains(why), "{refused}");
    assert_eq!(refused.lines().count(), 1, "{refused}");
}

#[test]
fn impossible_options_of_guests_are_refused() {
    for (args, why) in [
        (
            &["torture", "--lock", "stock-pv"][..],
            "add --config paravirt",
        ),
        (
            &["torture", "--lock", "byte,cna"],
            "torture it alone, or use lockworks kernel compare",
        ),
        (
            &["run", "--lock", "byte", "--arch", "arm64", "--", "true"],
            "a lock for guests on x86-64",
        ),
        (&["compare", "--modes", "bite"], "did you mean 'byte'?"),
        (
            &["compare", "--modes", "byte", "--reference", "native"],
            "add it to --modes",
        ),
        (&["compare", "--workloads", "x"], "choose from locktorture,"),
        (
            &["torture", "--soak", "1", "--emulation", "counted"],
            "use --emulation multi or single",
        ),
        (&["torture", "--soak", "0"], "from 0.1 to 10080"),
        (&["torture", "--soak", "1", "--rounds", "3"], "--rounds"),
        (&["torture", "--seed", "1"], "--soak"),
    ] {
        assert_refused(args, why);
    }
}

#[test]
fn options_that_arm64_does_not_have_are_refused() {
    for (args, why) in [
        (
            &["build", "--config", "paravirt"][..],
            "use --config native or debug",
        ),
        (&["boot", "--hypervisor"][..], "--hypervisor is for x86-64"),
        (
            &["run", "--workload", "nginx"][..],
            "on arm64 run fork or files",
        ),
        (
            &["run", "--workload", "lock2"][..],
            "on arm64 run fork or files",
        ),
    ] {
        assert_refused(&[args, &["--arch", "arm64"]].concat(), why);
    }
}
