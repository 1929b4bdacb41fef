//! The options of `lockworks check` in three parts: what is checked, its limits, and the output.
//!
//! The part of an option says what it means in a plan of `lockworks sweep`. What is checked is the point
//! and in its key, a limit is obeyed and in no key, and any other option is refused.

use std::path::PathBuf;
use std::time::Duration;

use anyhow::Result;
use clap::builder::{PossibleValuesParser, TypedValueParser};
use clap::{ArgAction, Args, Command, Id};
use lockworks::{LockType, Setting, Settings};
use lockworks_check::{COND, Config, Limits, RandomRuns, load_source, small_settings};

use super::{find_subject, subjects};
use lockworks_names::command_line::setting;
use lockworks_ui::output::Destination;

/// The options of a check.
#[derive(Args)]
pub struct Options {
    #[command(flatten)]
    pub checked: Checked,

    /// Compile and check the lock in FILE, a C file that uses the operations and ends with
    /// LW_DESCRIBE()
    #[arg(long, value_name = "FILE", conflicts_with_all = ["lock", "variant", "fork"])]
    pub source: Option<PathBuf>,

    /// Check only the few small configurations of each lock in crates/check/mutants/LOCK.toml, each
    /// up to 200,000 states; this tests a change in seconds
    #[arg(long, conflicts_with_all = ids::<Checked>().filter(|id| id != "lock"))]
    pub quick: bool,

    /// Repeat the run of this token, which a broken promise prints, and show each step
    #[arg(long, value_name = "TOKEN", allow_hyphen_values = true,
          conflicts_with_all = ids::<Checked>().chain(ids::<Limits>()), conflicts_with = "quick")]
    pub replay: Option<String>,

    #[command(flatten)]
    pub limits: Limits,

    #[command(flatten)]
    pub output: Output,
}

/// What is checked: these locks, each with a configuration.
#[derive(Args)]
pub struct Checked {
    /// Locks and lockrefs to check, or cond for the condition variable [default: all that are not
    /// broken; with --locks 2, locks only; with --cancel, locks with cancellation]
    #[arg(short, long, value_name = "LOCK", value_delimiter = ',')]
    pub lock: Vec<String>,

    #[command(flatten)]
    config: Config,

    /// Number of threads that acquire the lock as readers [default: all but one, if the lock has
    /// readers]
    #[arg(long, value_name = "N", hide_short_help = true)]
    readers: Option<usize>,

    /// Number of NUMA nodes, 1 to 8; threads are spread over them in turn [default: 2 for a
    /// NUMA-aware lock, else 1]
    #[arg(long, value_name = "N")]
    nodes: Option<usize>,

    /// Let CNA search for waiters to pass over at every hand-off [default: at 1 in 128]
    #[arg(long, hide_short_help = true)]
    no_shuffle_reduction: bool,

    /// Whether CNA and HQ prefer waiters of one NUMA node
    #[arg(long, value_name = "MODE", default_value = "on", value_parser = numa(), action = ArgAction::Set, hide_short_help = true)]
    numa: bool,

    /// Set a tunable, such as hqlock_fairness_threshold=0 [default: small values; --json prints
    /// them]
    #[arg(long, value_name = "NAME=VALUE", value_delimiter = ',', value_parser = setting, hide_short_help = true)]
    tune: Vec<Setting>,

    /// Make this number of random runs instead of exploring all; this finds mistakes that need many
    /// threads, and proves nothing
    #[arg(long, value_name = "N", conflicts_with_all = ["memory_limit", "disk_limit"],
          value_parser = clap::value_parser!(u64).range(1..))]
    random: Option<u64>,

    /// Seed of all random choices of --random; the same seed makes the same runs
    #[arg(
        long,
        value_name = "N",
        default_value_t = 1,
        requires = "random",
        hide_short_help = true
    )]
    seed: u64,
}

/// Where the results go.
#[derive(Args)]
pub struct Output {
    /// Keep the search in FILE if a limit or ^C ends it, and go on with the search that FILE holds
    #[arg(long, value_name = "FILE", hide_short_help = true, conflicts_with_all = ["quick", "random", "replay"])]
    pub keep: Option<PathBuf>,

    /// Draw the run in FILE: .html, or .pftrace for Perfetto
    #[arg(long, value_name = "FILE")]
    pub trace: Option<PathBuf>,

    /// Print JSON instead of text: an object for one check, an array for several
    #[arg(long)]
    pub json: bool,

    #[command(flatten)]
    pub destination: Destination,
}

/// The options of a part.
fn ids<Part: Args>() -> impl Iterator<Item = Id> {
    let command = Part::augment_args(Command::new("check"));
    let ids: Vec<Id> = command
        .get_arguments()
        .map(|arg| arg.get_id().clone())
        .collect();
    ids.into_iter()
}

fn numa() -> impl TypedValueParser<Value = bool> {
    PossibleValuesParser::new(["on", "off"]).map(|name| name == "on")
}

impl Options {
    /// The locks to check, lockrefs and condition variable included.
    pub fn subjects(&self) -> Result<Vec<(&'static str, &'static LockType)>> {
        let Checked { lock, config, .. } = &self.checked;
        if !lock.is_empty() {
            return lock.iter().map(|name| find_subject(name)).collect();
        }
        if let Some(source) = &self.source {
            return Ok(vec![find_subject(load_source(source)?)?]);
        }
        if let Some(variant) = &config.variant {
            return Ok(vec![find_subject(&variant.lock)?]);
        }
        Ok(subjects()
            .filter(|(_, lock)| !lock.is_broken())
            // A lockref or condition variable is checked alone.
            .filter(|(name, lock)| config.locks == 1 || *name == lock.name())
            .filter(|(name, _)| config.nesting == 0 || *name != COND)
            .filter(|(name, lock)| !config.cancel || (lock.can_time_out() && *name == lock.name()))
            .collect())
    }
}

impl Checked {
    /// The configuration of the check of this lock, lockref or condition variable.
    pub fn config(&self, (name, lock): (&str, &LockType)) -> Config {
        let default_readers = match lock.has_readers() {
            true => self.config.threads.saturating_sub(1),
            false => 0,
        };
        let default_nodes = 1 + usize::from(lock.is_numa_aware());
        let tunables = Settings {
            numa_aware: self.numa,
            shuffle_reduction: !self.no_shuffle_reduction,
            ..small_settings()
        };
        Config {
            lock: name.to_owned(),
            readers: self.readers.unwrap_or(default_readers),
            nodes: self.nodes.unwrap_or(default_nodes),
            // Those that are not set are small.
            tunables: tunables.with(&self.tune),
            ..self.config.clone()
        }
    }

    /// The random runs that take the place of a search, if they are asked for. None begins after this
    /// time.
    pub fn random(&self, time: Option<Duration>) -> Option<RandomRuns> {
        let (runs, seed) = (self.random?, self.seed);
        Some(RandomRuns { runs, seed, time })
    }
}
