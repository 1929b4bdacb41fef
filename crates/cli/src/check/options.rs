//! The options of `lockworks check` in three parts: what is checked, its limits, and the output.
//!
//! The part of an option says what it means in a plan of `lockworks sweep`. What is checked is the point
//! and in its key, a limit is obeyed and in no key, and any other option is refused.

use std::path::PathBuf;

use anyhow::Result;
use clap::{Args, Command, Id, value_parser};
use lockworks::LockType;
use lockworks_check::command_line::{Checked, find_subject, subjects};
use lockworks_check::{
    COND, Config, Kind, Limits, Named, load_source, loaded_has_one_writer, loaded_has_tokens,
    loaded_has_trylock, loaded_kind,
};
use lockworks_ui::output::Destination;

/// The options of a check.
#[derive(Args)]
pub struct Options {
    #[command(flatten)]
    pub checked: Checked,

    /// Compile and check the lock in FILE: C or C++ as it stands, or a file with LW_DESCRIBE()
    #[arg(value_name = "FILE", conflicts_with_all = ["lock", "variant", "fork", "source"])]
    pub file: Option<PathBuf>,

    /// The same
    #[arg(long, value_name = "FILE", conflicts_with_all = ["lock", "variant", "fork"], hide_short_help = true)]
    pub source: Option<PathBuf>,

    #[command(flatten)]
    pub functions: Functions,

    /// Number of tokens with which a semaphore in FILE begins [default: 1, and 2 if its init is told]
    #[arg(long, value_name = "N", hide_short_help = true, conflicts_with_all = ["quick", "replay"],
          value_parser = value_parser!(u8).range(1..))]
    pub tokens: Option<u8>,

    /// Check only the few small configurations that each lock has, up to 200,000 states each
    ///
    /// This tests a change in seconds.
    #[arg(long, conflicts_with_all = ids::<Checked>().filter(|id| id != "lock"))]
    pub quick: bool,

    /// Look for weaker memory orders with which the lock still passes
    ///
    /// It has to pass in this check and in the small ones of --quick.
    #[arg(long, conflicts_with_all = ["quick", "random", "variant", "keep", "trace"])]
    pub optimize: bool,

    /// Show each step of the run of this token, which a broken promise prints
    #[arg(long, value_name = "TOKEN", allow_hyphen_values = true,
          conflicts_with_all = ids::<Checked>().chain(ids::<Limits>()).chain(["quick".into(), "optimize".into()]))]
    pub replay: Option<String>,

    #[command(flatten)]
    pub limits: Limits,

    #[command(flatten)]
    pub output: Output,
}

/// The functions of a lock in a file.
#[derive(Args)]
pub struct Functions {
    /// The functions of the lock in FILE whose names do not say what they do: lock=NAME, unlock=NAME,
    /// trylock=NAME (or trylock=!NAME if 0 is success), read_lock, read_unlock, read_trylock, init; of
    /// a semaphore wait, trywait, post; of a seqlock write_begin, write_end, read_begin, read_retry; of
    /// a condition variable wait, signal, broadcast, cond_init
    #[arg(
        long,
        value_name = "ROLE=NAME",
        value_delimiter = ',',
        hide_short_help = true
    )]
    pub functions: Vec<Named>,
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

    /// Write broken promises to FILE in SARIF, for the page of a pull request
    #[arg(long, value_name = "FILE", conflicts_with_all = ["replay", "optimize"])]
    pub sarif: Option<PathBuf>,

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

impl Options {
    /// The configuration of a lock, lockref or condition variable.
    pub fn config(&self, subject: (&'static str, &'static LockType)) -> Config {
        Config {
            tokens: self.tokens.unwrap_or(0),
            ..self.checked.config(subject)
        }
    }

    /// The configurations of a lock, lockref or condition variable. A file is also checked with the functions
    /// that only options call, unless the user gives one of these.
    pub fn uses(&self, subject: (&'static str, &'static LockType)) -> Vec<Config> {
        let config = self.config(subject);
        let is_one =
            config.trylock || config.cancel || config.nesting > 0 || self.output.keep.is_some();
        if self.file.is_none() || is_one {
            return vec![config];
        }
        let is_of_two = config.threads == 2;
        let mut uses = vec![config];
        if loaded_has_tokens() {
            // One thread more than tokens, so that it waits.
            uses[0].threads = uses[0].threads.max(uses[0].tokens as usize + 1);
        }
        if subject.1.has_readers() && !self.checked.gives_readers() {
            let threads = self.checked.config.threads;
            if !loaded_has_one_writer() {
                uses.push(Config {
                    readers: 0,
                    ..uses[0].clone()
                });
            }
            // Two readers at a time, which one reader beside a writer does not show.
            uses.push(Config {
                threads: threads + 1,
                readers: threads,
                acquisitions: 1,
                ..uses[0].clone()
            });
        }
        let mut also = |change: &dyn Fn(&mut Config)| {
            uses.extend(uses.clone().into_iter().map(|mut config| {
                change(&mut config);
                config
            }));
        };
        let has_threads =
            |threads| move |config: &mut Config| config.threads = config.threads.max(threads);
        if loaded_has_trylock() {
            also(&|config| config.trylock = true);
        }
        if subject.1.can_time_out() {
            also(&|config| config.cancel = true);
        }
        // One waiter says nothing of the others.
        if loaded_kind() == Some(Kind::Cond) && is_of_two {
            also(&has_threads(3));
        }
        // One thread more than tokens, so that it waits.
        if loaded_has_tokens() && self.tokens.is_none() {
            also(&|config| {
                config.tokens = 2;
                has_threads(3)(config);
            });
        }
        uses
    }

    /// The locks to check, lockrefs and condition variable included.
    pub fn subjects(&self) -> Result<Vec<(&'static str, &'static LockType)>> {
        let Checked { lock, config, .. } = &self.checked;
        if !lock.is_empty() {
            return lock.iter().map(|name| find_subject(name)).collect();
        }
        if let Some(source) = self.file.as_ref().or(self.source.as_ref()) {
            return Ok(vec![find_subject(load_source(
                source,
                &self.functions.functions,
            )?)?]);
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
