//! `lockworks locks`: the locks and lockrefs of the library.

use std::process::ExitCode;

use anyhow::{Result, ensure};
use itertools::Itertools;
use lockworks::{LockType, LockrefType, Setting};
use serde::Serialize;

use crate::new::{self, NewArgs};
use lockworks_names::command_line as names;
use lockworks_ui::waiters::COLLAPSE;
use lockworks_ui::{output, terminal};

/// List the locks and lockrefs, describe one, or write a new one.
#[derive(clap::Args)]
#[command(
    args_conflicts_with_subcommands = true,
    after_help = "\
Examples:
  lockworks locks              a table of all
  lockworks locks hq           one lock in detail, with its tunables
  lockworks locks lockref-hq   that lock with a count of references
  lockworks locks --json       all, for programs"
)]
pub struct LocksArgs {
    #[command(subcommand)]
    command: Option<LocksCommand>,

    /// The lock or lockref to describe in detail
    name: Option<String>,
    /// Print JSON: one object for NAME, else an array
    #[arg(long)]
    json: bool,
}

/// Further commands about locks.
#[derive(clap::Subcommand)]
enum LocksCommand {
    New(NewArgs),
}

/// Which commands take lockrefs.
const LOCKREFS: &str = "\
Lockrefs are for programs and for `lockworks check`. The other commands take locks.";

#[derive(Clone, Copy, PartialEq, Serialize)]
#[serde(rename_all = "lowercase")]
enum DescribedKind {
    Lock,
    /// A lock with a count of references.
    Lockref,
}

#[derive(Serialize)]
struct DescribedLock {
    name: &'static str,
    kind: DescribedKind,
    bytes: usize,
    node_bytes: usize,
    order: &'static str,
    waiting: &'static str,
    summary: String,
    origin: &'static str,
    broken: bool,
    /// Kept only for comparison with published figures.
    historic: bool,
    /// The first four bytes of an unlocked lock; the others are 0.
    unlocked: u32,
    /// The tunables that this lock reads and that not all locks have.
    tunables: Vec<TunableDescription>,
}

#[derive(Serialize)]
struct TunableDescription {
    name: &'static str,
    default: u64,
    kernel_default: u64,
    minimum: u64,
    maximum: u64,
    meaning: &'static str,
}

impl TunableDescription {
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

impl DescribedLock {
    fn of(lock: &LockType) -> Self {
        Self {
            name: lock.name(),
            kind: DescribedKind::Lock,
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
                _ => "parks",
            },
            summary: lock.summary().to_owned(),
            origin: lock.origin(),
            broken: lock.is_broken(),
            historic: lock.is_historic(),
            unlocked: lock.unlocked(),
            tunables: tunables_of(lock.name()).collect(),
        }
    }

    fn of_lockref(lockref: &LockrefType) -> Self {
        let lock = lockref.lock();
        Self {
            name: lockref.name(),
            kind: DescribedKind::Lockref,
            bytes: LockrefType::SIZE,
            summary: format!("{} and a count of references in one word", lock.name()),
            origin: "lockref of Linux 3.12",
            ..Self::of(lock)
        }
    }
}

/// Fails if no lock among these reads one of the settings.
pub fn check_settings(settings: &[Setting], locks: &[&str]) -> Result<()> {
    let known: Vec<_> = locks.iter().flat_map(|lock| tunables_of(lock)).collect();
    let names = known.iter().map(|tunable| tunable.name);
    for setting in settings {
        let name = setting.tunable().name;
        ensure!(
            names.clone().contains(name),
            "lock '{}' does not read the tunable {name}; {}",
            locks.join("', '"),
            match known.is_empty() {
                true => "it has none".to_owned(),
                false => format!("choose from {}", names.clone().unique().join(", ")),
            }
        );
    }
    Ok(())
}

fn tunables_of(lock: &str) -> impl Iterator<Item = TunableDescription> {
    let lock = lockworks::find(lock);
    let reads = move |tunable: &&lockworks::Tunable| lock.is_some_and(|l| l.reads(tunable.name));
    let all = lockworks::Tunable::all().iter();
    all.filter(reads).map(TunableDescription::of)
}

fn descriptions() -> Vec<DescribedLock> {
    let locks = lockworks::lock_types().iter().map(|l| DescribedLock::of(l));
    let lockrefs = lockworks::lockref_types().iter();
    locks
        .chain(lockrefs.map(|l| DescribedLock::of_lockref(l)))
        .collect()
}

/// Runs the command.
pub fn command(args: &LocksArgs) -> Result<ExitCode> {
    if let Some(LocksCommand::New(args)) = &args.command {
        return new::command(args);
    }
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

fn table(locks: &[DescribedLock]) -> String {
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
    let prose = terminal::prose(&format!("{LOCKREFS}\n\n{COLLAPSE}"));
    format!("{table}\n\n{prose}\n")
}

fn detail(lock: &DescribedLock) -> String {
    let mut text = format!("{}: {}\n\n", lock.name, marked_summary(lock));
    let mut line = |term: &str, meaning: &str| {
        let line = terminal::definition(&format!("  {term:<9} "), meaning);
        text.push_str(&format!("{line}\n"));
    };
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
    if lock.kind == DescribedKind::Lockref {
        text.push_str(&format!("\n{}\n", terminal::prose(LOCKREFS)));
    }
    if lock.waiting == "spins" && lock.order != "unfair" {
        text.push_str(&format!("\n{}\n", terminal::prose(COLLAPSE)));
    }
    text
}

/// How tunables are set.
const HOW_TO_SET: &str = "\
Set a tunable with --tune NAME=VALUE, with lw_set_tunable() in a program, or in the environment with \
LOCKWORKS_NAME=VALUE, the name in capitals. `lockworks sim` and `lockworks check` use the defaults in \
kernels.";

fn tunables(tunables: &[TunableDescription]) -> String {
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
    format!("\n{table}\n\n{}\n", terminal::prose(HOW_TO_SET))
}

fn marked_summary(lock: &DescribedLock) -> String {
    match lock {
        _ if lock.broken => format!("BROKEN: {}", lock.summary),
        _ if lock.historic => format!("historic: {}", lock.summary),
        _ => lock.summary.clone(),
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::fs;
    use std::path::Path;

    use regex::Regex;

    use super::*;

    #[test]
    fn every_lock_shows_the_tunables_that_its_file_and_its_parts_read() {
        let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../locks");
        let reads = Regex::new(r"lw_tunable\((\w+)\)").unwrap();
        let includes = Regex::new(r#"#include "(\w+\.h)""#).unwrap();
        let describes = Regex::new(r"(?m)^LW_DESCRIBE\w*\(\s*(\w+),").unwrap();
        let captured = |pattern: &Regex, text: &str| -> BTreeSet<String> {
            let found = pattern.captures_iter(text);
            found.map(|found| found[1].to_owned()).collect()
        };
        let named: Vec<&str> = lockworks::Tunable::all().iter().map(|t| t.name).collect();
        let mut files = 0;
        let historic = fs::read_dir(directory.join("historic")).unwrap();
        for entry in fs::read_dir(&directory).unwrap().chain(historic) {
            let path = entry.unwrap().path();
            if path.extension().is_none_or(|extension| extension != "c") {
                continue;
            }
            let text = fs::read_to_string(&path).unwrap();
            let mut read = captured(&reads, &text);
            // The world reads this one where the lock asks for an extension of the time slice.
            if text.contains("lw_slice_request()") {
                read.insert("mutex_slice".to_owned());
            }
            let mut parts: Vec<String> = captured(&includes, &text).into_iter().collect();
            while let Some(part) = parts.pop() {
                let part = fs::read_to_string(directory.join("parts").join(part));
                let part = part.unwrap_or_default();
                read.extend(captured(&reads, &part));
                parts.extend(captured(&includes, &part));
            }
            read.retain(|tunable| named.contains(&tunable.as_str()));
            let locks = captured(&describes, &text);
            let shown = locks.iter().flat_map(|lock| tunables_of(lock));
            let shown: BTreeSet<String> = shown.map(|tunable| tunable.name.to_owned()).collect();
            assert_eq!(shown, read, "{}", path.display());
            files += usize::from(!read.is_empty());
        }
        assert!(files >= 5, "{files}");
        for lock in ["mutex37", "mutex310"] {
            let names: Vec<&str> = tunables_of(lock).map(|t| t.name).collect();
            assert_eq!(names, ["mutex37_spin"], "{lock}");
        }
        assert!(tunables_of("pv42").any(|t| t.name == "pv_latencies"));
    }
}
