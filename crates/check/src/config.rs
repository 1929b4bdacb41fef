//! Configurations: the lock and the threads to check, and the bounds of the check.

use std::fmt;

use clap::{Args, Command, FromArgMatches, ValueEnum};
use lockworks::{LockType, LockrefType, Settings, Tunable};
use lockworks_litmus::Memory;
use serde::{Deserialize, Serialize};

use crate::headers;
use crate::image;
use crate::layout;
use crate::locks;
use crate::source::Kind;
use crate::variants::Variant;

/// Whether clocks reach the time thresholds of locks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, ValueEnum)]
#[serde(rename_all = "lowercase")]
pub enum Time {
    /// At every poll, both are explored: the threshold is reached, and it is not.
    Any,
    /// No threshold is ever reached.
    Early,
    /// Every threshold is always reached.
    Late,
}

/// The mode of an HQ-spinlock.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, ValueEnum)]
#[serde(rename_all = "lowercase")]
pub enum Mode {
    /// All waiters are in one queue.
    Plain,
    /// The waiters of each NUMA node have a queue of their own.
    Numa,
}

unsafe extern "C" {
    safe static lw_check_small_tunables: Settings;
}

/// Settings small enough to matter to a few threads, from the lists of tunables.
///
/// An HQ-spinlock changes its mode at every opportunity, and no NUMA node has more than two turns in
/// a row. Waiters park at their first opportunity and disable stealing at their second, and one
/// waiter is kicked ahead of its turn.
pub fn small_settings() -> Settings {
    lw_check_small_tunables
}

/// The object under check.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Subject {
    Lock(&'static LockType),
    Lockref(&'static LockrefType),
    /// The condition variable, with the type of the lock in it.
    Cond(&'static LockType),
}

/// The name of the condition variable among the locks.
pub const COND: &str = "cond";

/// The offset of the count in a lockref.
pub(crate) const LOCKREF_COUNT: usize = 4;

impl Subject {
    /// The lock that the object is, or contains.
    pub(crate) fn lock(self) -> &'static LockType {
        match self {
            Self::Lock(lock) | Self::Cond(lock) => lock,
            Self::Lockref(lockref) => lockref.lock(),
        }
    }

    /// The object's size in bytes.
    pub(crate) fn size(self) -> usize {
        match self {
            Self::Lock(lock) => lock.size(),
            Self::Lockref(_) => LockrefType::SIZE,
            Self::Cond(_) => headers::COND_SIZE,
        }
    }
}

/// The configuration of a check: the lock or lockref, its threads, and the memory model.
///
/// The fields are the options of `lockworks check`, the keys of its JSON and of the lists of mutants,
/// and, in this order, the bytes of a [`Token`](crate::Token). Options that have another default for
/// each lock are not read here: `lockworks check` sets their fields.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, Args)]
pub struct Config {
    /// The name of the lock or lockref.
    #[arg(skip)]
    pub lock: String,

    /// Number of threads, 1 to 64
    ///
    /// More than 3 or 4 have too many states for anything but --random.
    #[arg(short, long, value_name = "N", default_value_t = 2)]
    pub threads: usize,

    /// Number of times that each thread acquires the lock or gets a reference, 1 to 16; cond
    /// ignores it
    #[arg(
        short,
        long,
        value_name = "N",
        default_value_t = 2,
        hide_short_help = true
    )]
    pub acquisitions: u32,

    /// The number of threads that acquire the lock as readers, the last ones; 0 for a lock without
    /// readers.
    #[arg(skip)]
    #[serde(default)]
    pub readers: usize,

    /// Number of locks, 1 or 2, or 3 of rqspinlock; threads acquire them in turns, and they share the
    /// queues of NUMA nodes
    #[arg(long, value_name = "N", default_value_t = 1, hide_short_help = true)]
    pub locks: usize,

    /// Memory model
    #[arg(
        short,
        long,
        value_name = "MODE",
        default_value = "c11",
        hide_short_help = true
    )]
    pub memory: Memory,

    /// Limit reads to the newest write and the K writes before it [default: no limit]
    #[arg(long, value_name = "K", hide_short_help = true)]
    pub staleness: Option<u8>,

    /// Number of threads that have a slot of queue nodes [default: all]
    #[arg(long, value_name = "N", hide_short_help = true)]
    pub slots: Option<usize>,

    /// The number of NUMA nodes. Threads are spread over them in turn.
    #[arg(skip = 1_usize)]
    pub nodes: usize,

    /// Begin every other acquisition with a trylock
    #[arg(long, hide_short_help = true)]
    pub trylock: bool,

    /// Number of spurious wake-ups of parked threads, of all threads together
    #[arg(long, value_name = "N", default_value_t = 1, hide_short_help = true)]
    pub spurious: u8,

    /// Let any wait be cancelled at any moment; not with --nesting
    #[arg(long, hide_short_help = true)]
    pub cancel: bool,

    /// Release a lock whose waiters park by a load and a store, as in programs, not in one step as
    /// in a kernel
    #[arg(long, hide_short_help = true)]
    pub split_release: bool,

    /// Let the waiters of the mutex spin and never park, as in a kernel; not with --cancel
    /// or --split-release
    #[arg(long, hide_short_help = true)]
    pub never_park: bool,

    /// Nesting depth of interruptions, 0 to 2; each thread is interrupted once at each level,
    /// before any operation
    #[arg(long, value_name = "N", default_value_t = 0, hide_short_help = true)]
    pub nesting: u8,

    /// Threads that have priority, counted from 0 [default: none]
    #[arg(
        long,
        value_name = "THREAD",
        value_delimiter = ',',
        hide_short_help = true
    )]
    pub priority: Vec<usize>,

    /// Whether time thresholds have been reached
    #[arg(
        long,
        value_name = "WHEN",
        default_value = "any",
        hide_short_help = true
    )]
    pub time: Time,

    /// Check also a bypass bound: of the acquisitions that begin while a thread waits, at most N
    /// complete before that thread's; 0: none [default: not checked]
    #[arg(long, value_name = "N", hide_short_help = true)]
    pub bypass: Option<u8>,

    /// Check also a bound on idleness, of pv, unfair and the mutex: while the lock is free and its
    /// queue head sleeps, threads do at most N operations [default: not checked]
    #[arg(long, value_name = "N", hide_short_help = true)]
    #[serde(default)]
    pub idle: Option<u8>,

    /// Let a thread fork, once in a run, which goes on in the child; the lock is released as with
    /// --split-release
    #[arg(long, hide_short_help = true)]
    #[serde(default)]
    pub fork: bool,

    /// The tunables of the locks.
    #[arg(skip = small_settings())]
    pub tunables: Settings,

    /// Mode in which an HQ-spinlock starts
    #[arg(
        long,
        value_name = "MODE",
        default_value = "numa",
        hide_short_help = true
    )]
    pub mode: Mode,

    /// Check a lock with the memory orders of somebody else's version, a file in
    /// crates/check/variants
    #[arg(long, value_name = "NAME", value_parser = Variant::named, hide_short_help = true)]
    #[serde(default)]
    pub variant: Option<Variant>,

    /// The number of tokens with which a semaphore of a source begins; 0: one, or there is no semaphore.
    #[arg(skip)]
    #[serde(default)]
    pub tokens: u8,
}

/// A configuration cannot be checked.
#[derive(Debug, thiserror::Error, PartialEq)]
#[allow(missing_docs)]
pub enum ConfigError {
    #[error("no lock is called '{0}'")]
    UnknownLock(String),
    #[error("variant '{variant}' is one of '{of}', not of '{lock}'; ask for --lock {of}")]
    VariantOfOther {
        variant: String,
        of: String,
        lock: String,
    },
    #[error("{0} threads; ask for 1 to {max}", max = layout::THREADS)]
    Threads(usize),
    #[error(
        "{0} acquisitions a thread do not fit the state encoding; ask for 1 to {MOST_ACQUISITIONS}"
    )]
    Acquisitions(u32),
    #[error("{readers} readers of {threads} threads; ask for 0 to {threads}")]
    Readers { readers: usize, threads: usize },
    #[error("'{0}' has no readers; ask for 0")]
    NoReaders(String),
    #[error("{0} locks; ask for 1 or 2, or for 3 of a lock that detects deadlocks")]
    Locks(usize),
    #[error("the third lock is that of interruptions at level 2; ask for nesting 0 or 1")]
    LocksNesting,
    #[error("a lockref, condition variable or seqlock is checked alone; ask for 1 lock")]
    LockrefLocks,
    #[error("waits for '{0}' cannot be cancelled; ask for {locks}", locks = locks_with_wait_limits())]
    Cancel(String),
    #[error("'{name}' is {size} bytes; a lock of up to {max} bytes is checked", max = layout::LOCK_STRIDE)]
    Size { name: String, size: usize },
    #[error("a queue node of '{name}' is {size} bytes; nodes of up to {max} bytes are checked", max = layout::LENT_STRIDE - 1)]
    NodeSize { name: String, size: usize },
    #[error("interruptions cannot use a condition variable or seqlock; ask for nesting 0")]
    CondNesting,
    #[error("'{0}' is no semaphore of a file, so it has no tokens")]
    NoTokens(String),
    #[error("{0} tokens; ask for 1 to {max}", max = image::MOST_TOKENS)]
    Tokens(u8),
    #[error("interruptions and cancellations are checked one at a time; ask for nesting 0")]
    CancelNesting,
    #[error("waits that never park cannot be cancelled; ask for one of the two")]
    CancelNeverPark,
    #[error("a release in two steps is for waiters that park; ask for one of the two")]
    SplitNeverPark,
    #[error("'{0}' promises nothing about an idle lock; ask for {locks}", locks = locks_whose_heads_park())]
    Idle(String),
    #[error("nothing is promised of '{0}' after a fork; ask for {locks}", locks = locks_after_fork())]
    Fork(String),
    #[error(
        "a fork is checked with one lock, without interruptions, with a slot for each thread, with waiters that park, and in the memory models sc and c11"
    )]
    ForkOptions,
    #[error("nesting {0} is too deep; ask for 0 to {max}", max = layout::LEVELS)]
    Nesting(u8),
    #[error("{0} nodes; ask for 1 to {max}", max = layout::NUMA_NODES)]
    Nodes(usize),
    #[error("there is no thread {0} to give priority to; threads count from 0")]
    Priority(usize),
}

/// The names of the locks whose waits can be cancelled.
fn locks_with_wait_limits() -> String {
    let locks = locks::lock_types().filter(|lock| lock.can_time_out());
    let names: Vec<&str> = locks.map(LockType::name).collect();
    names.join(" or ")
}

/// Whether a lock, which has no readers, has a queue whose head parks.
fn has_parking_head(lock: &LockType) -> bool {
    lock.has_tail_word() && lock.can_time_out() && !lock.has_readers()
}

/// The names of the locks whose queue heads park.
fn locks_whose_heads_park() -> String {
    let locks = locks::lock_types().filter(|lock| has_parking_head(lock));
    let names: Vec<&str> = locks.map(LockType::name).collect();
    names.join(" or ")
}

/// Whether a lock goes on in the child of a fork after others have waited for it.
fn survives_fork(lock: &LockType) -> bool {
    lock.has_tail_word() && !lock.is_historic() && !lock.is_resilient() && !lock.has_readers()
}

/// The names of the locks that go on in the child of a fork.
fn locks_after_fork() -> String {
    let locks = locks::lock_types().filter(|lock| survives_fork(lock));
    let names: Vec<&str> = locks.map(LockType::name).collect();
    names.join(", ")
}

/// The NUMA node whose queue a tail stands for, in the slots that no thread has; None: a thread's.
pub(crate) fn queue_of_tail(tail: u32) -> Option<usize> {
    let first = locks::first_queue_tail() >> headers::WORD.tail_shift;
    tail.checked_sub(first).map(|node| node as usize)
}

const MOST_ACQUISITIONS: u32 = 16;

impl Config {
    /// The configuration of two threads that acquire a lock twice in weak memory, with the defaults of
    /// all other options.
    pub fn new(lock: &str) -> Self {
        let command = Self::augment_args(Command::new("check").no_binary_name(true));
        let matches = command.try_get_matches_from::<_, &str>([]);
        let read = matches.and_then(|matches| Self::from_arg_matches(&matches));
        Self {
            lock: lock.to_owned(),
            ..read.expect("every option has a default")
        }
    }

    /// Whether the configuration can be checked.
    ///
    /// # Errors
    /// See [`ConfigError`].
    pub fn validate(&self) -> Result<(), ConfigError> {
        self.subject().map(drop)
    }

    /// The object under check.
    /// Options with which other forms of the lock are checked: those that programs run, and that of waiters which only spin, where this is
    /// the form of a guest.
    pub fn other_forms(&self) -> Vec<&'static str> {
        let is_form = |change: fn(&mut Self)| {
            let mut form = self.clone();
            change(&mut form);
            let head_parks =
                matches!(form.subject(), Ok(Subject::Lock(lock)) if has_parking_head(lock));
            head_parks && form.validate().is_ok()
        };
        if self.split_release || self.never_park || self.fork {
            return Vec::new();
        }
        let mut forms = Vec::new();
        if is_form(|form| form.split_release = true) {
            forms.push("--split-release (programs)");
        }
        if is_form(|form| form.never_park = true) {
            forms.push("--never-park (waiters only spin)");
        }
        forms
    }

    pub(crate) fn subject(&self) -> Result<Subject, ConfigError> {
        self.validate_numbers()?;
        let lockref = || locks::lockref_types().find(|lockref| lockref.name() == self.lock);
        let subject = if self.lock == COND {
            Subject::Cond(locks::lock_in_cond())
        } else {
            self.find_lock()
                .map(Subject::Lock)
                .or_else(|error| lockref().map(Subject::Lockref).ok_or(error))?
        };
        let has_limits = subject.lock().can_time_out();
        let has_readers = matches!(subject, Subject::Lock(lock) if lock.has_readers());
        let kind = locks::kind(subject.lock());
        // They have threads of their own.
        let is_alone = matches!(kind, Kind::Cond | Kind::Seqlock);
        if let Some(variant) = &self.variant
            && variant.lock != self.lock
        {
            return Err(ConfigError::VariantOfOther {
                variant: variant.name.clone(),
                of: variant.lock.clone(),
                lock: self.lock.clone(),
            });
        }
        let head_parks = matches!(subject, Subject::Lock(lock) if has_parking_head(lock));
        match subject {
            _ if subject.size() > layout::LOCK_STRIDE => Err(ConfigError::Size {
                name: self.lock.clone(),
                size: subject.size(),
            }),
            _ if subject.lock().node_size() >= layout::LENT_STRIDE => Err(ConfigError::NodeSize {
                name: self.lock.clone(),
                size: subject.lock().node_size(),
            }),
            _ if self.idle.is_some() && !head_parks => Err(ConfigError::Idle(self.lock.clone())),
            _ if self.fork
                && (self.nesting > 0
                    || self.locks > 1
                    || self.never_park
                    || self.slots.is_some()
                    || self.memory.delays()) =>
            {
                Err(ConfigError::ForkOptions)
            }
            _ if self.fork && !matches!(subject, Subject::Lock(lock) if survives_fork(lock)) => {
                Err(ConfigError::Fork(self.lock.clone()))
            }
            _ if self.cancel && self.never_park => Err(ConfigError::CancelNeverPark),
            _ if self.split_release && self.never_park => Err(ConfigError::SplitNeverPark),
            Subject::Lock(lock) if self.locks > 2 && !lock.is_resilient() => {
                Err(ConfigError::Locks(self.locks))
            }
            _ if self.readers > 0 && !has_readers => Err(ConfigError::NoReaders(self.lock.clone())),
            _ if self.tokens > 0 && kind != Kind::Semaphore => {
                Err(ConfigError::NoTokens(self.lock.clone()))
            }
            Subject::Lock(_) if is_alone && self.locks > 1 => Err(ConfigError::LockrefLocks),
            Subject::Lock(_) if is_alone && self.nesting > 0 => Err(ConfigError::CondNesting),
            Subject::Lockref(_) | Subject::Cond(_) if self.locks > 1 => {
                Err(ConfigError::LockrefLocks)
            }
            Subject::Cond(_) if self.nesting > 0 => Err(ConfigError::CondNesting),
            Subject::Lock(_) if self.cancel && self.nesting > 0 => Err(ConfigError::CancelNesting),
            Subject::Lock(_) | Subject::Cond(_) if has_limits || !self.cancel => Ok(subject),
            _ if self.cancel => Err(ConfigError::Cancel(self.lock.clone())),
            _ => Ok(subject),
        }
    }

    fn validate_numbers(&self) -> Result<(), ConfigError> {
        if !(1..=layout::THREADS).contains(&self.threads) {
            return Err(ConfigError::Threads(self.threads));
        }
        if !(1..=MOST_ACQUISITIONS).contains(&self.acquisitions) {
            return Err(ConfigError::Acquisitions(self.acquisitions));
        }
        if self.readers > self.threads {
            return Err(ConfigError::Readers {
                readers: self.readers,
                threads: self.threads,
            });
        }
        if !(1..=3).contains(&self.locks) {
            return Err(ConfigError::Locks(self.locks));
        }
        if self.locks == 3 && usize::from(self.nesting) == layout::LEVELS {
            return Err(ConfigError::LocksNesting);
        }
        if usize::from(self.tokens) > image::MOST_TOKENS {
            return Err(ConfigError::Tokens(self.tokens));
        }
        if usize::from(self.nesting) > layout::LEVELS {
            return Err(ConfigError::Nesting(self.nesting));
        }
        if !(1..=layout::NUMA_NODES).contains(&self.nodes) {
            return Err(ConfigError::Nodes(self.nodes));
        }
        if let Some(&thread) = self.priority.iter().find(|t| **t >= self.threads) {
            return Err(ConfigError::Priority(thread));
        }
        Ok(())
    }

    fn find_lock(&self) -> Result<&'static LockType, ConfigError> {
        locks::lock_types()
            .find(|lock| lock.name() == self.lock)
            .ok_or_else(|| ConfigError::UnknownLock(self.lock.clone()))
    }

    /// Whether a thread has a slot of queue nodes.
    pub fn has_slot(&self, thread: usize) -> bool {
        self.slots.is_none_or(|slots| thread < slots)
    }

    /// The first four bytes of the lock at the start.
    pub(crate) fn unlocked(&self, lock: &LockType) -> u32 {
        match self.mode {
            Mode::Numa if lock.unlocked() & headers::WORD.hq != 0 => {
                lock.unlocked() | headers::WORD.hq_numa
            }
            _ => lock.unlocked(),
        }
    }

    /// A piece of the lock word that has an impossible value, and that value. Only the bytes in
    /// `mask` are known. The lock must have a tail in its word.
    pub(crate) fn wrong_piece(
        &self,
        lock: &LockType,
        word: u32,
        mask: u32,
    ) -> Option<(&'static str, u64)> {
        let pieces = headers::WORD;
        let (locked, tail) = (word & pieces.locked_mask, word >> pieces.tail_shift);
        let service_mask = pieces.service;
        let service = word & service_mask;
        let (slot, _) = headers::slot_and_node(tail as usize);
        let is_tail = tail == 0
            || (1..=self.threads).contains(&slot)
            || lock.is_numa_aware() && queue_of_tail(tail).is_some_and(|node| node < self.nodes);
        // The mark of a thread here, or of one that does not run; a release clears bit 0.
        let is_locked = match lock.has_mutex_word() {
            true => locked == 0 || [1, pieces.off_cpu].contains(&(locked | 1)),
            false => locked <= pieces.locked,
        };
        // A mutex has flags in place of service bits, which describe a lock and never change.
        let is_service = match lock.unlocked() & service_mask & mask {
            _ if lock.has_mutex_word() => true,
            0 => service == 0,
            life_long => service & life_long == life_long,
        };
        let wrong = [
            ("locked", locked, !is_locked),
            ("service", service, !is_service),
            ("tail", tail, !is_tail),
        ];
        let (piece, value, _) = wrong.into_iter().find(|(.., wrong)| *wrong)?;
        Some((piece, value.into()))
    }

    /// The NUMA node of a thread.
    pub fn node(&self, thread: usize) -> u16 {
        (thread % self.nodes) as u16
    }
}

impl fmt::Display for Config {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} {}x{} {}",
            self.lock, self.threads, self.acquisitions, self.memory
        )?;
        if self.readers > 0 {
            let plural = if self.readers == 1 { "" } else { "s" };
            write!(f, ", {} reader{plural}", self.readers)?;
        }
        if self.locks > 1 {
            write!(f, ", {} locks", self.locks)?;
        }
        match self.tokens {
            0 => {}
            1 => write!(f, ", 1 token")?,
            tokens => write!(f, ", {tokens} tokens")?,
        }
        if let Some(bound) = self.staleness {
            write!(f, ", staleness {bound}")?;
        }
        if let Some(slots) = self.slots {
            write!(f, ", {slots} slots")?;
        }
        if self.nodes > 1 {
            write!(f, ", {} nodes", self.nodes)?;
        }
        if self.trylock {
            write!(f, ", trylock")?;
        }
        if self.spurious != 1 {
            write!(f, ", {} spurious wake-ups", self.spurious)?;
        }
        if self.cancel {
            write!(f, ", cancellation")?;
        }
        if self.split_release {
            write!(f, ", split release")?;
        }
        if self.never_park {
            write!(f, ", waiters never park")?;
        }
        if self.nesting > 0 {
            write!(f, ", nesting {}", self.nesting)?;
        }
        if !self.priority.is_empty() {
            write!(f, ", priority {:?}", self.priority)?;
        }
        match self.time {
            Time::Any => {}
            Time::Early => write!(f, ", no threshold reached")?,
            Time::Late => write!(f, ", thresholds always reached")?,
        }
        if let Some(bound) = self.bypass {
            write!(f, ", bypass bound {bound}")?;
        }
        if let Some(bound) = self.idle {
            write!(f, ", idle bound {bound}")?;
        }
        if self.fork {
            write!(f, ", fork")?;
        }
        if !self.tunables.numa_aware {
            write!(f, ", numa off")?;
        }
        if !self.tunables.shuffle_reduction {
            write!(f, ", no shuffle reduction")?;
        }
        let small = small_settings();
        for tunable in Tunable::all() {
            let value = self.tunables.get(tunable);
            if value != small.get(tunable) {
                write!(f, ", {} {value}", tunable.name)?;
            }
        }
        if self.mode == Mode::Plain {
            write!(f, ", plain at first")?;
        }
        if let Some(variant) = &self.variant {
            write!(f, ", variant {}", variant.name)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_that_are_not_named_have_their_defaults() {
        let settings = |more: &str| {
            let text = format!(
                "numa_aware = true\nnuma_threshold_ms = 10\nshuffle_reduction = true\n\
                 priority_waiters = true\n{more}"
            );
            toml::from_str::<Settings>(&text).map_err(|error| error.message().to_owned())
        };
        let set = "hqlock_fairness_threshold=7".parse().unwrap();
        let expected = Settings::kernel().with(&[set]);
        assert_ne!(expected, Settings::kernel());
        assert_eq!(
            settings("by_name = { hqlock_fairness_threshold = 7 }"),
            Ok(expected)
        );

        let refused = |more: &str| settings(more).unwrap_err();
        let unknown = refused("by_name = { hqlock_fairness = 7 }");
        assert!(
            unknown.contains("no tunable 'hqlock_fairness'"),
            "{unknown}"
        );
        let beyond = refused("by_name = { hqlock_probability_of_force_stay_numa = 10001 }");
        assert!(beyond.contains("it must be 0 to 10000"), "{beyond}");
        let unknown = refused("by_name = {}\nhqlock_fairness_threshold = 7");
        assert!(unknown.contains("unknown field"), "{unknown}");
    }
}
