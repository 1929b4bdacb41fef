//! The `lockworks` command.

mod check;
mod kernel;
mod locks;
mod machines;
mod new;
mod options;
mod plan;
mod replay;
mod report;
mod reproduce;
mod run;
mod share;
mod sim;
mod torture;
mod validate;

use std::ffi::OsString;
use std::io::{self, IsTerminal, Write};
use std::process::ExitCode;
use std::time::Instant;

use anyhow::Result;
use clap::{CommandFactory, Parser, Subcommand};
use itertools::Itertools;
use lockworks_preload::compare;
use lockworks_sweep::regret;
use lockworks_ui::{interruption, terminal, usage};
use nix::errno::Errno;
use nix::sys::signal::{SigHandler, Signal, signal};
use tracing_subscriber::filter::Targets;
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;

/// Scalable NUMA-aware locks: run, compare, simulate and check them.
#[derive(Parser)]
#[command(name = "lockworks", version = lockworks_sweep::VERSION, after_help = HELP)]
struct Cli {
    /// Report on standard error what is run, where files are and how long it takes
    #[arg(long, global = true)]
    verbose: bool,

    #[command(subcommand)]
    command: Command,
}

const HELP: &str = "\
Exit status of every command:
  0    all is well
  1    something failed or is broken; the output says what
  2    bad input; one line says what to do
  3    a check ended at a limit before it was complete
  126  the program cannot be run, and 127: it is not found
  130  interrupted; what was finished is shown
`run` and `profile` end with the status of their program, or with 128 plus the signal that ended it. \
`compare` ends with 1 if the program failed under a lock, with 2 if it failed under glibc.

Colours and progress bars appear on terminals only; NO_COLOR=1 turns colours off.

Examples:
  lockworks run -- redis-server --io-threads 4
  lockworks profile --pid 4711
  lockworks torture --lock qspinlock,cna,pthread_mutex --threads 1,2,4
  lockworks check --lock cna --threads 3 --nodes 2
  lockworks --verbose machines this -o here.toml";

/// A group of commands: the thing that a user has, and the commands about it. Each is as it is typed, with
/// the words that say what it shows.
type Group = (&'static str, &'static [(&'static str, &'static str)]);

/// All commands that help shows.
const GROUPS: [Group; 4] = [
    (
        "a program that waits for its locks",
        &[
            (
                "profile -- PROGRAM",
                "where threads wait, and why; --pid 4711 if it runs",
            ),
            ("compare -- PROGRAM", "which lock serves the program best"),
            (
                "run -- PROGRAM",
                "the program with a lock of Lockworks, unchanged",
            ),
            (
                "plan -- PROGRAM",
                "a lock for each hot mutex; the others stay glibc's",
            ),
            (
                "record -o l.lw -- PROGRAM",
                "what its threads do with locks, as a file",
            ),
            (
                "replay l.lw --threads 64",
                "that with other locks, on another machine",
            ),
        ],
    ),
    (
        "a machine, this one or another",
        &[
            (
                "report -o report.html",
                "which lock to take, with the evidence",
            ),
            ("torture --lock cna,mutex", "locks here, with real threads"),
            ("machines", "machines that are described; measures this one"),
            (
                "sim --machine kunpeng-920",
                "locks on one of them, in virtual time",
            ),
        ],
    ),
    (
        "a kernel",
        &[(
            "kernel series --version 6.12",
            "patches for Linux; builds, boots, judges it",
        )],
    ),
    (
        "a lock of your own",
        &[
            (
                "locks new NAME",
                "files to begin from; `locks` lists all locks",
            ),
            ("check --lock NAME", "can threads break it?"),
        ],
    ),
];

/// The commands in their groups, each as `line` writes it.
fn groups(line: impl Fn(&str, &str) -> String) -> String {
    let group = |(asked, commands): &Group| {
        let lines = commands.iter().map(|(typed, shows)| line(typed, shows));
        format!("{asked}\n{}", lines.collect::<String>())
    };
    GROUPS.iter().map(group).collect()
}

/// The name of a command that is typed like this.
fn name(typed: &str) -> &str {
    typed.split(' ').next().unwrap_or(typed)
}

/// Prints what the command says without arguments.
fn print_first_steps() {
    println!(
        "Lockworks: scalable locks, and the tools that judge them. What do you have?\n\n{}\n\
         `lockworks --help` has options and exit statuses, `lockworks COMMAND --help` has examples.",
        groups(|typed, shows| format!("  lockworks {typed:<30} {shows}\n"))
    );
}

#[derive(Subcommand)]
enum Command {
    Report(report::ReportArgs),
    Profile(lockworks_profile::ProfileArgs),
    Record(lockworks_profile::recording::RecordArgs),
    Replay(replay::ReplayArgs),
    Plan(plan::PlanArgs),
    Compare(compare::CompareArgs),
    Run(run::RunArgs),
    Torture(torture::TortureArgs),
    Sim(sim::SimArgs),
    Machines(machines::MachinesArgs),
    Locks(locks::LocksArgs),
    // `sim` names these.
    #[command(hide = true)]
    Regret(regret::RegretArgs),
    #[command(hide = true)]
    Reproduce(reproduce::ReproduceArgs),
    Check(Box<check::CheckArgs>),
    Kernel(kernel::KernelArgs),
    #[command(hide = true)]
    Sweep(Box<lockworks_sweep::SweepArgs>),
    // `profile` names it; it shows the same, as it happens.
    #[command(hide = true)]
    Top(lockworks_profile::TopArgs),
    #[command(hide = true)]
    Share(share::ShareArgs),
}

/// The command line.
fn command() -> clap::Command {
    let groups = groups(|typed, shows| format!("  {:<10} {shows}\n", name(typed)));
    usage::refined(Cli::command()).help_template(format!(
        "{{about-with-newline}}\n{{before-help}}{{usage-heading}} {{usage}}\n\nCommands:\n{groups}\n\
         Options:\n{{options}}{{after-help}}"
    ))
}

fn main() -> ExitCode {
    let arguments: Vec<OsString> = std::env::args_os().collect();
    if arguments.len() < 2 {
        print_first_steps();
        return ExitCode::SUCCESS;
    }
    let cli: Cli = match usage::parse(command(), &arguments) {
        Ok(cli) => cli,
        Err(status) => return status,
    };
    if cli.verbose {
        log_to_standard_error();
    }
    let begin = Instant::now();
    let words = arguments
        .iter()
        .map(|word| word.to_string_lossy())
        .join(" ");
    let version = env!("CARGO_PKG_VERSION");
    tracing::info!(command = words, version, "begins");
    let result = run(&cli.command);
    tracing::info!(seconds = begin.elapsed().as_secs_f64(), "ends");
    match result {
        Ok(code) => code,
        Err(error) => {
            let more = if lacks_files(&error) {
                "; raise the limit: `ulimit -n 1024`"
            } else {
                ""
            };
            eprintln!(
                "lockworks: {}{more}",
                terminal::printable(&format!("{error:#}"))
            );
            let refusal = error.downcast_ref();
            ExitCode::from(refusal.map_or(2, lockworks_preload::Refusal::status))
        }
    }
}

/// Logs what Lockworks does, but not what its libraries do.
fn log_to_standard_error() {
    let ours = Targets::new().with_target("lockworks", tracing::Level::DEBUG);
    tracing_subscriber::fmt()
        .with_writer(std::io::stderr)
        .with_max_level(tracing::Level::DEBUG)
        .with_timer(tracing_subscriber::fmt::time::uptime())
        .with_target(false)
        .finish()
        .with(ours)
        .init();
}

/// Whether an error is that this process has as many files open as it may.
fn lacks_files(error: &anyhow::Error) -> bool {
    error.chain().any(|cause| {
        let of_std = cause.downcast_ref().and_then(io::Error::raw_os_error);
        of_std == Some(Errno::EMFILE as i32) || cause.downcast_ref() == Some(&Errno::EMFILE)
    })
}

fn run(command: &Command) -> Result<ExitCode> {
    // SAFETY: no handler is called.
    let hangup = unsafe { signal(Signal::SIGHUP, SigHandler::SigIgn) }?;
    ctrlc::set_handler(|| {
        let mut stderr = std::io::stderr();
        if stderr.is_terminal() {
            // The terminal may be gone.
            let _ = writeln!(stderr);
        }
        lockworks_lab::restore_terminal();
        lockworks_programs::children::stop_all();
        interruption::exit_between_files(130);
    })?;
    // `nohup` has it ignored, by programs that this one starts too.
    if matches!(hangup, SigHandler::SigIgn) {
        // SAFETY: as above.
        unsafe { signal(Signal::SIGHUP, hangup) }?;
    }
    match command {
        Command::Torture(args) => torture::command(args),
        Command::Locks(args) => locks::command(args),
        Command::Machines(args) => machines::run(args),
        Command::Check(args) => check::command(args),
        Command::Kernel(args) => kernel::command(args),
        Command::Sim(args) => sim::command(args),
        Command::Sweep(args) => lockworks_sweep::command(args, &Cli::command()),
        Command::Regret(args) => regret::command(args),
        Command::Reproduce(args) => reproduce::command(args),
        Command::Run(args) => run::command(args),
        Command::Compare(args) => compare::command(args),
        Command::Profile(args) => lockworks_profile::command(args),
        Command::Record(args) => lockworks_profile::recording::command(args),
        Command::Plan(args) => plan::command(args),
        Command::Replay(args) => replay::command(args),
        Command::Top(args) => lockworks_profile::top(args),
        Command::Report(args) => report::command(args),
        Command::Share(args) => share::command(args, Cli::command(), self::command()),
    }
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    /// Every subcommand that does something, with the words that call it.
    fn subcommands(command: &clap::Command, path: &str) -> Vec<(String, clap::Command)> {
        let path = format!("{path} {}", command.get_name()).trim().to_owned();
        let below = command.get_subcommands();
        let below = below.flat_map(|below| subcommands(below, &path));
        // Some commands do something by themselves, too.
        match command.get_positionals().next().is_some() || !command.has_subcommands() {
            true => below.chain([(path.clone(), command.clone())]).collect(),
            false => below.collect(),
        }
    }

    #[test]
    fn every_visible_command_is_in_one_group() {
        let mut visible = Vec::new();
        for command in super::command().get_subcommands() {
            if !command.is_hide_set() {
                visible.push(command.get_name().to_owned());
            }
        }
        let grouped = super::GROUPS.iter().flat_map(|(_, commands)| *commands);
        let mut grouped: Vec<_> = grouped.map(|(typed, _)| super::name(typed)).collect();
        grouped.sort_unstable();
        visible.sort_unstable();
        assert_eq!(visible, grouped);
        assert!(visible.len() <= 13, "{visible:?}");
    }

    /// None is ignored: it says what a point is, or is refused as one that does not. `sweep` tests that
    /// the former are obeyed.
    #[test]
    fn a_plan_knows_every_option_of_its_commands() {
        let lockworks = super::Cli::command();
        for kind in ["sim", "check"] {
            let command = lockworks.find_subcommand(kind).expect("a command");
            for option in command.get_arguments().filter_map(clap::Arg::get_long) {
                let plan = tempfile::NamedTempFile::new().expect("a file");
                let key = option.replace('-', "_");
                let table = format!("[[sweep]]\nkind = \"{kind}\"\n{key} = \"x\"\n");
                std::fs::write(plan.path(), table).expect("a file");
                let read = lockworks_sweep::Plan::read(plan.path(), &lockworks);
                let said = read.map_or_else(|error| error.to_string(), |_| String::new());
                assert!(!said.contains("unknown key"), "{said}");
            }
        }
    }

    #[test]
    fn every_subcommand_has_examples() {
        let mut without = Vec::new();
        for (path, command) in subcommands(&super::command(), "") {
            let help = command.get_before_help().map(ToString::to_string);
            let help = help.unwrap_or_default();
            let examples = help.lines().skip_while(|line| !line.starts_with("Example"));
            let examples = examples.skip(1).take_while(|line| line.starts_with(' '));
            if !examples.clone().any(|example| example.contains(&path)) {
                without.push(path);
            }
            for example in examples {
                assert!(example.len() <= 100, "too wide: {example}");
            }
        }
        assert!(without.is_empty(), "no example: {}", without.join(", "));
    }

    #[test]
    fn help_fits_a_screen() {
        for (path, command) in subcommands(&super::command(), "") {
            let help = command.term_width(80).render_help().to_string();
            let lines = help.lines().count();
            assert!(lines <= 45, "{path} has {lines} lines of help");
        }
    }
}
