//! `lockworks kernel run`.

use std::ffi::OsStr;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use clap::{ValueEnum, value_parser};
use lockworks_ui::output;

use super::options::{Machine, Source, Steps, lock, verdict};
use crate::arch::Arch;
use crate::cache::Cache;
use crate::guest::GuestVerdict;
use crate::lock::Lock;
use crate::machine::Input;
use crate::message::GuestMessage;
use crate::qemu::WaitLimits;
use crate::task::Task;

/// Run a command or a workload in a guest, and judge the messages of its kernel.
#[derive(clap::Args)]
#[command(after_help = HELP)]
pub struct GuestRunArgs {
    #[command(flatten)]
    source: Source,

    #[command(flatten)]
    machine: Machine,

    /// Slow path of the kernel's spinlocks: stock, qspinlock, cna, mutex, or hq (for spinlocks that
    /// opted in); or a lock for guests: native, stock-pv, pv, pv-mutex, byte or unfair [default:
    /// the kernel's choice]
    #[arg(short, long, value_name = "LOCK")]
    lock: Option<String>,

    /// Workload for all CPUs of the guest, in place of a command
    #[arg(long, value_name = "WHAT")]
    workload: Option<Workload>,

    /// Length of the workload in seconds
    #[arg(long, value_name = "S", default_value_t = 5, value_parser = value_parser!(u32).range(1..=86_400))]
    seconds: u32,

    /// Script for the guest's shell, in place of a command
    #[arg(long, value_name = "FILE", hide_short_help = true)]
    script: Option<PathBuf>,

    /// Copy a file to /root in the guest; can be given several times
    #[arg(long, value_name = "FILE", hide_short_help = true)]
    copy: Vec<PathBuf>,

    /// Run the command on a disk with Debian's programs, where copied files are in /tmp
    #[arg(long, hide_short_help = true)]
    debian: bool,

    /// Longest silence of the guest in seconds, not counting the workload's length [default: some
    /// minutes, which depend on the number of CPUs]
    #[arg(long, value_name = "S", value_parser = value_parser!(u32).range(1..), hide_short_help = true)]
    timeout: Option<u32>,

    /// Command for the guest's shell
    #[arg(last = true, value_name = "COMMAND")]
    command: Vec<String>,
}

const HELP: &str = "\
Prints the output of the command. The verdict depends on its exit status and on the messages of \
the guest's kernel. The guest has busybox, and the kernel's modules in /lockworks/modules.

The workloads other than fork and files run on x86-64 only. They need a disk with Debian's programs; \
the first run makes it, in some minutes. Most of them print a rate: operations, requests or messages \
in a second, or compiles in a minute. open and lock2 are loops of will-it-scale: open1 and lock2, with \
threads.

Examples:
  lockworks kernel run --lock cna -- 'dmesg | grep lockworks:'
  lockworks kernel run --lock cna --workload fork --seconds 10
  lockworks kernel run --lock hq --workload memcached --nodes 2
  lockworks kernel run --version 6.1 --script test.sh --timeout 600
  lockworks kernel run --debian --copy ./program -- './program && redis-server --version'";

/// A workload for all CPUs of a guest.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Workload {
    /// Short-lived processes
    Fork,
    /// Small files in one directory
    Files,
    /// A program whose threads open and close a file each
    Open,
    /// A program whose threads make and remove a file each
    Create,
    /// A program whose threads lock and unlock one file
    Lock2,
    /// A web server and its clients
    Nginx,
    /// A memcached server and its clients, which set as often as they get
    Memcached,
    /// Groups of processes that send messages to each other
    Hackbench,
    /// A parallel compile, repeatedly
    Compile,
    /// A program whose threads acquire one mutex
    Futex,
}

impl Workload {
    fn task(self, arch: Arch, seconds: u32) -> Result<Task> {
        let value = self.to_possible_value().expect("no workload is hidden");
        let name = value.get_name();
        if matches!(self, Self::Fork | Self::Files) {
            return Ok(Task::workload(name, seconds));
        }
        ensure!(
            arch == Arch::X86_64,
            "the programs of this workload exist for x86-64 only; on {arch} run fork or files"
        );
        Ok(Task::workload_on(disk()?, name, seconds))
    }
}

/// The disk with Debian's programs.
fn disk() -> Result<PathBuf> {
    let steps = Steps::new();
    Ok(crate::disk::disk(&Cache::open()?, &|step| {
        steps.begin(step)
    })?)
}

impl GuestRunArgs {
    fn task(&self) -> Result<Task> {
        let arch = self.source.arch();
        let script = match (&self.workload, &self.script, self.command.as_slice()) {
            (Some(workload), None, []) => {
                ensure!(
                    self.copy.is_empty() && !self.debian,
                    "--copy and --debian are for commands; leave them out, or --workload"
                );
                return workload.task(arch, self.seconds);
            }
            (None, Some(path), []) => std::fs::read_to_string(path)
                .with_context(|| format!("cannot read {}", path.display()))?,
            (None, None, [_, ..]) => self.command.join(" "),
            _ => bail!("give one of --workload, --script FILE, or a command after --"),
        };
        ensure!(
            arch == Arch::X86_64 || !self.debian,
            "Debian's programs exist for x86-64 only; on {arch} leave out --debian"
        );
        let mut task = match self.debian {
            true => Task::command_on(disk()?, &script),
            false => Task::command(&script),
        };
        for path in &self.copy {
            let name = path.file_name().and_then(OsStr::to_str);
            let name = name.with_context(|| format!("{} names no file", path.display()))?;
            let contents = std::fs::read(path);
            let contents = contents.with_context(|| format!("cannot read {}", path.display()))?;
            task.add_file(name, contents);
        }
        Ok(task)
    }

    /// Builds the kernel, boots it, and runs the task, whose output `print` gets. Returns the verdict.
    pub fn run(&self, print: &mut dyn FnMut(&str) -> Result<()>) -> Result<GuestVerdict> {
        let lock = self.lock.as_deref().map(lock).transpose()?;
        self.machine.check(&self.source, lock)?;
        let task = self.task()?;
        in_guest(
            &self.source,
            &self.machine,
            lock,
            &task,
            self.timeout,
            print,
        )
    }
}

/// Runs the command.
pub fn command(args: &GuestRunArgs) -> Result<ExitCode> {
    verdict(&args.run(&mut output::print)?)
}

/// Builds the kernel, boots it, and runs the task, whose output `print` gets. Returns the verdict.
pub fn in_guest(
    source: &Source,
    machine: &Machine,
    lock: Option<Lock>,
    task: &Task,
    timeout: Option<u32>,
    print: &mut dyn FnMut(&str) -> Result<()>,
) -> Result<GuestVerdict> {
    let cache = Cache::open()?;
    let steps = Steps::new();
    let built = source.build_to_boot(machine, &cache, &steps)?;
    let usual = machine.limits(source.config());
    let limits = WaitLimits {
        step: timeout.map_or(usual.step, |seconds| Duration::from_secs(seconds.into())),
        ..usual
    };
    let guest = machine.guest(&built, lock, Input::Nothing, limits)?;
    steps.begin("booting");
    let mut printed = Ok(());
    let judged = guest.run(task, &cache, &mut |said| match said {
        GuestMessage::Output(line) if printed.is_ok() => {
            printed = steps.suspend(|| print(&format!("{line}\n")));
        }
        GuestMessage::Word(word, _) if word == "up" => steps.begin("running"),
        _ => {}
    })?;
    printed?;
    Ok(judged)
}
