//! `lockworks locks`: what locks and lockrefs there are.

use std::process::ExitCode;

use anyhow::Result;
use lockworks::{LockType, LockrefType};
use serde::Serialize;

use crate::{names, output};

/// List the locks and lockrefs, or say what is known about one.
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  lockworks locks              a table of all
  lockworks locks hq           one in detail, with its tunables
  lockworks locks lockref-hq   that lock with a count of references beside it
  lockworks locks --json       all, for programs")]
pub struct Args {
    /// Only this one, in detail
    name: Option<String>,
    /// Give JSON: one object for NAME, else an array
    #[arg(long)]
    json: bool,
}

/// What happens to a spinning FIFO lock when threads outnumber CPUs.
pub const COLLAPSE: &str = "\
Waiters that spin never sleep. Once threads outnumber CPUs, the next waiter in the queue is often \
preempted, and a FIFO lock has to wait for it: throughput collapses, often a hundredfold and more. \
Use mutex there: its waiters sleep.";

/// Which commands take lockrefs.
const LOCKREFS: &str = "\
Lockrefs are for programs and for `lockworks check`. The other commands take locks.";

#[derive(Clone, Copy, PartialEq, Serialize)]
#[serde(rename_all = "lowercase")]
enum Kind {
    Lock,
    /// A lock with a count of references.
    Lockref,
}

#[derive(Serialize)]
struct Description {
    name: &'static str,
    kind: Kind,
    bytes: usize,
    node_bytes: usize,
    order: &'static str,
    waiting: &'static str,
    summary: String,
    origin: &'static str,
    broken: bool,
    /// The first four bytes of an unlocked lock; the others are 0.
    unlocked: u32,
    /// What can be set of it alone, by name.
    tunables: Vec<Tunable>,
}

#[derive(Serialize)]
struct Tunable {
    name: &'static str,
    default: u64,
    kernel_default: u64,
    minimum: u64,
    maximum: u64,
    meaning: &'static str,
}

impl Tunable {
    fn of(tunable: &lockworks::Tunable) -> Self {
        Self {
            name: tunable.name,
            default: tunable.default,
            kernel_default: tunable.kernel_default,
            minimum: 0,
            maximum: tunable.maximum,
            meaning: tunable.meaning,
        }
    }
}

impl Description {
    fn of(lock: &LockType) -> Self {
        Self {
            name: lock.name(),
            kind: Kind::Lock,
            bytes: lock.size(),
            node_bytes: lock.node_size(),
            order: match lock {
                _ if lock.is_broken() => "none",
                _ if lock.is_numa_aware() => "NUMA-aware",
                _ if lock.is_fifo() => "FIFO",
                _ => "unfair",
            },
            waiting: match lock {
                _ if lock.is_broken() => "none",
                _ if lock.spins() => "spins",
                _ => "sleeps",
            },
            summary: lock.summary().to_owned(),
            origin: lock.origin(),
            broken: lock.is_broken(),
            unlocked: lock.unlocked,
            tunables: tunables_of(lock.name()),
        }
    }

    fn of_lockref(lockref: &LockrefType) -> Self {
        let lock = lockref.lock();
        Self {
            name: lockref.name(),
            kind: Kind::Lockref,
            bytes: LockrefType::SIZE,
            summary: format!("{} and a count of references in one word", lock.name()),
            origin: "lockref of Linux 3.12",
            ..Self::of(lock)
        }
    }
}

/// Those whose names begin with the lock's, which in the published series is `hqlock` for HQ.
fn tunables_of(lock: &str) -> Vec<Tunable> {
    let family = if lock == "hq" { "hqlock" } else { lock };
    let all = lockworks::Tunable::all().iter();
    all.filter(|tunable| {
        tunable
            .name
            .split_once('_')
            .is_some_and(|(first, _)| first == family)
    })
    .map(Tunable::of)
    .collect()
}

fn descriptions() -> Vec<Description> {
    let locks = lockworks::lock_types().iter().map(|l| Description::of(l));
    let lockrefs = lockworks::lockref_types().iter();
    locks
        .chain(lockrefs.map(|l| Description::of_lockref(l)))
        .collect()
}

/// Runs the command.
pub fn command(args: &Args) -> Result<ExitCode> {
    let all = descriptions();
    let text = match &args.name {
        Some(name) => {
            let known = all.iter().find(|known| known.name == name);
            let description = known
                .ok_or_else(|| names::unknown("lock", name, all.iter().map(|known| known.name)))?;
            match args.json {
                true => output::json(description)?,
                false => detail(description),
            }
        }
        None => match args.json {
            true => output::json(&all)?,
            false => table(&all),
        },
    };
    output::print(&text)?;
    Ok(ExitCode::SUCCESS)
}

fn table(locks: &[Description]) -> String {
    let mut table = output::table(&["lock", "bytes", "order", "waiting", "summary", "origin"]);
    for lock in locks {
        table.add_row([
            lock.name.to_owned(),
            lock.bytes.to_string(),
            lock.order.to_owned(),
            lock.waiting.to_owned(),
            marked_summary(lock),
            lock.origin.to_owned(),
        ]);
    }
    let prose = output::prose(&format!("{LOCKREFS}\n\n{COLLAPSE}"));
    format!("{table}\n\n{prose}\n")
}

fn detail(lock: &Description) -> String {
    let mut text = format!("{}: {}\n\n", lock.name, marked_summary(lock));
    let mut line = |what: &str, is: &str| text.push_str(&format!("  {what:<9} {is}\n"));
    line(
        "size",
        &match lock.unlocked {
            0 => format!("{} bytes, all zero is unlocked", lock.bytes),
            word => format!("{} bytes, {word:#x} is unlocked", lock.bytes),
        },
    );
    line(
        "node",
        &match lock.node_bytes {
            0 => "none lent by the caller".to_owned(),
            bytes => format!("{bytes} bytes, lent by the caller from lock to unlock"),
        },
    );
    line("order", lock.order);
    line("waiting", lock.waiting);
    line("origin", lock.origin);
    if !lock.tunables.is_empty() {
        text.push_str(&tunables(&lock.tunables));
    }
    if lock.kind == Kind::Lockref {
        text.push_str(&format!("\n{}\n", output::prose(LOCKREFS)));
    }
    if lock.waiting == "spins" && lock.order != "unfair" {
        text.push_str(&format!("\n{}\n", output::prose(COLLAPSE)));
    }
    text
}

/// How tunables are set.
const HOW_TO_SET: &str = "\
Set a tunable with --tune NAME=VALUE, with lw_set_tunable() in a program, or in the environment with \
LOCKWORKS_NAME=VALUE, the name in capitals. `lockworks sim` and `lockworks check` use the defaults in \
kernels.";

fn tunables(tunables: &[Tunable]) -> String {
    let mut table = output::table(&["tunable", "default", "in kernels", "range", "meaning"]);
    for tunable in tunables {
        table.add_row([
            tunable.name.to_owned(),
            tunable.default.to_string(),
            tunable.kernel_default.to_string(),
            match i64::try_from(tunable.maximum) {
                Ok(i64::MAX) => format!("{} or more", tunable.minimum),
                _ => format!("{} to {}", tunable.minimum, tunable.maximum),
            },
            tunable.meaning.to_owned(),
        ]);
    }
    format!("\n{table}\n\n{}\n", output::prose(HOW_TO_SET))
}

fn marked_summary(lock: &Description) -> String {
    match lock.broken {
        true => format!("BROKEN: {}", lock.summary),
        false => lock.summary.clone(),
    }
}
