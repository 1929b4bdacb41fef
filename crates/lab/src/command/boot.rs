//! `lockworks kernel boot`.

use std::io::{self, IsTerminal};
use std::process::ExitCode;
use std::time::Duration;

use anyhow::Result;
use lockworks_ui::output;

use super::options::{Machine, Source, Steps, lock, verdict};
use super::run;
use crate::cache::Cache;
use crate::machine::Input;
use crate::qemu::WaitLimits;
use crate::task::Task;

/// Boot a kernel in a guest, with a shell on its console.
#[derive(clap::Args)]
#[command(after_help = HELP)]
pub struct BootArgs {
    #[command(flatten)]
    source: Source,

    #[command(flatten)]
    machine: Machine,

    /// Slow path of the kernel's spinlocks: stock, qspinlock, cna, mutex, or hq (for spinlocks that
    /// opted in); or a lock for guests: native, stock-pv, pv, pv-mutex, byte or unfair [default:
    /// the kernel's choice]
    #[arg(short, long, value_name = "LOCK")]
    lock: Option<String>,

    /// Run this command in the guest [default: a shell]
    #[arg(long, value_name = "COMMAND")]
    command: Option<String>,
}

const HELP: &str = "\
The shell is that of busybox. 'exit' ends it and switches the guest off; Ctrl-A x switches the \
guest off at once. If standard input is not a terminal, a guest that is silent for some minutes \
counts as hung.

Examples:
  lockworks kernel boot --lock cna --nodes 2 --cpus 4
  lockworks kernel boot --arch arm64 --nodes 4
  lockworks kernel boot --config paravirt --boot 'numa_spinlock=auto'
  lockworks kernel boot \\
      --command 'grep . /sys/devices/system/node/node*/cpulist'";

/// The limit for a guest with a user at its shell.
const FOREVER: Duration = Duration::from_secs(u32::MAX as u64);

/// Runs the command.
pub fn command(args: &BootArgs) -> Result<ExitCode> {
    let lock = args.lock.as_deref().map(lock).transpose()?;
    args.machine.check(&args.source, lock)?;
    if let Some(command) = &args.command {
        let task = Task::command(command);
        let (source, machine) = (&args.source, &args.machine);
        let judged = run::in_guest(source, machine, lock, &task, None, &mut output::print)?;
        return verdict(&judged);
    }
    let cache = Cache::open()?;
    let steps = Steps::new();
    let built = args.source.build_to_boot(&args.machine, &cache, &steps)?;
    steps.end();
    let usual = args.machine.limits(args.source.config());
    let limits = match io::stdin().is_terminal() {
        true => WaitLimits {
            step: FOREVER,
            ..usual
        },
        false => usual,
    };
    let guest = args.machine.guest(&built, lock, Input::Ours, limits)?;
    let judged = guest.run(&Task::shell(), &cache, &mut |_| {})?;
    verdict(&judged)
}
