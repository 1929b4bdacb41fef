//! What to check, and how far.

use std::fmt;

use lockworks::{LockType, LockrefType, Setting, Settings, Tunable};
use serde::{Deserialize, Serialize};

use crate::hooks;
use crate::layout;

/// How memory behaves.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Memory {
    /// C11's orders as they are written, without load buffering.
    Weak,
    /// One operation after another; orders mean nothing.
    Sc,
}

impl fmt::Display for Memory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Weak => "weak",
            Self::Sc => "sc",
        })
    }
}

/// What clocks say.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Time {
    /// Every look may find any threshold reached or not.
    Any,
    /// No look finds one reached.
    Early,
    /// Every look finds it reached.
    Late,
}

/// The mode of an HQ-spinlock.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Mode {
    /// Waiters queue by themselves.
    Plain,
    /// Waiters queue with those of their node.
    Numa,
}

/// Settings that make a difference to a few threads: an HQ-spinlock changes its mode at every
/// chance, and no node has more than two turns in a row. Waiters halt at their first chance,
/// forbid stealing at their second, and one is kicked ahead.
pub fn small_settings() -> Settings {
    let small = [
        ("hqlock_fairness_threshold", 1),
        ("hqlock_general_handoffs_turn_numa", 0),
        ("hqlock_remote_handoffs_turn_numa", 0),
        ("hqlock_local_handoffs_to_increase_remotes", 0),
        ("pvticket_spin", 1),
        ("mutex37_spin", 1),
        ("pv_arrival_spin", 0),
        ("pv_spin", 1),
        ("pv42_spin", 1),
        ("pv_starvation_limit", 1),
        ("pv_kick_ahead", 1),
        ("mutex_arrival_spin", 0),
        ("mutex_steal_window", 0),
        ("mutex_spin", 1),
        ("mutex_starvation_limit", 1),
        ("mutex_group", 1),
        ("unfair_park", 1),
        ("unfair_spin", 1),
        ("unfair_arrival_spin", 0),
        ("unfair_starvation_limit", 1),
    ];
    let small = small.map(|(name, value)| {
        Tunable::find(name)
            .and_then(|tunable| Setting::new(tunable, value))
            .expect("a tunable and one of its values")
    });
    Settings::kernel().with(&small)
}

/// What is checked.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Subject {
    Lock(&'static LockType),
    Lockref(&'static LockrefType),
    /// The condition variable, and the lock in it.
    Cond(&'static LockType),
}

/// Its name among the locks.
pub const COND: &str = "cond";

/// Where in a lockref the count is.
pub(crate) const LOCKREF_COUNT: usize = 4;

impl Subject {
    /// The lock that it is, or that is in it.
    pub(crate) fn lock(self) -> &'static LockType {
        match self {
            Self::Lock(lock) | Self::Cond(lock) => lock,
            Self::Lockref(lockref) => lockref.lock(),
        }
    }

    /// Bytes.
    pub(crate) fn size(self) -> usize {
        match self {
            Self::Lock(lock) => lock.size(),
            Self::Lockref(_) => LockrefType::SIZE,
            Self::Cond(_) => hooks::cond_size(),
        }
    }
}

/// A lock or lockref, the threads that use it, and the memory they do it in.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Config {
    /// The name of the lock or lockref.
    pub lock: String,
    /// How many threads.
    pub threads: usize,
    /// How often each acquires the lock, or gets a reference.
    pub acquisitions: u32,
    /// How many locks they take in turns, 1 or 2; locks share the queues of NUMA nodes.
    pub locks: usize,
    /// How memory behaves.
    pub memory: Memory,
    /// Reads may be at most so many writes behind the newest; None: any number.
    pub staleness: Option<u8>,
    /// Only so many threads have a slot of queue nodes; None: all.
    pub slots: Option<usize>,
    /// NUMA nodes; threads are dealt out to them in turn.
    pub nodes: usize,
    /// Every other acquisition tries first.
    pub trylock: bool,
    /// How often a thread that is parked may wake for no reason, all of them together.
    pub spurious: u8,
    /// Acquisitions may be given up at any moment.
    pub patient: bool,
    /// Locks whose waiters halt are released as in user space, by a store and a load.
    pub split_release: bool,
    /// How deep interruptions nest; one at each level comes in each thread, before any operation.
    pub nesting: u8,
    /// Threads that wait with priority.
    pub priority: Vec<usize>,
    /// What clocks say.
    pub time: Time,
    /// A waiter may be overtaken by so many acquisitions that were begun after it began to wait.
    pub overtaking: Option<u8>,
    /// Settings of the locks.
    pub tunables: Settings,
    /// The mode of an HQ-spinlock at first.
    pub mode: Mode,
}

/// Why a check cannot be.
#[derive(Debug, thiserror::Error, PartialEq)]
#[allow(missing_docs)]
pub enum ConfigError {
    #[error("no lock is called '{0}'")]
    UnknownLock(String),
    #[error("{0} threads do not fit the state encoding; ask for 1 to {max}", max = layout::THREADS)]
    Threads(usize),
    #[error("{0} threads; ask for 2 to {max}", max = layout::WIDE_THREADS)]
    WideThreads(usize),
    #[error(
        "{0} acquisitions a thread do not fit the state encoding; ask for 1 to {MOST_ACQUISITIONS}"
    )]
    Acquisitions(u32),
    #[error("{0} locks; ask for 1 or 2")]
    Locks(usize),
    #[error("a lockref or condition variable is checked alone; ask for 1 lock")]
    LockrefLocks,
    #[error("waiters of '{0}' do not give up; ask for {patient}", patient = patient_locks())]
    Patient(String),
    #[error("no interruption may use a condition variable; ask for nesting 0")]
    CondNesting,
    #[error("interruptions and giving up are checked one at a time")]
    PatientNesting,
    #[error("nesting {0} is too deep; ask for 0 to {max}", max = layout::LEVELS)]
    Nesting(u8),
    #[error("{0} nodes; ask for 1 to {max}", max = layout::THREADS)]
    Nodes(usize),
    #[error("there is no thread {0} to have priority; threads count from 0")]
    Priority(usize),
}

/// The locks whose waiters give up.
fn patient_locks() -> String {
    let patient = hooks::lock_types().filter(|lock| lock.can_time_out());
    let names: Vec<&str> = patient.map(LockType::name).collect();
    names.join(" or ")
}

/// The NUMA node whose queue a tail is: those slots that no thread has.
pub(crate) fn queue_of_tail(tail: u32) -> Option<usize> {
    let first = hooks::word_layout().first_queue >> 16;
    tail.checked_sub(first).map(|node| node as usize)
}

const MOST_ACQUISITIONS: u32 = 16;

impl Config {
    /// Two threads that acquire a lock twice, in weak memory.
    pub fn new(lock: &str) -> Self {
        Self {
            lock: lock.to_owned(),
            threads: 2,
            acquisitions: 2,
            locks: 1,
            memory: Memory::Weak,
            staleness: None,
            slots: None,
            nodes: 1,
            trylock: false,
            spurious: 1,
            patient: false,
            split_release: false,
            nesting: 0,
            priority: Vec::new(),
            time: Time::Any,
            overtaking: None,
            tunables: small_settings(),
            mode: Mode::Numa,
        }
    }

    /// Can it be checked?
    ///
    /// # Errors
    /// See [`ConfigError`].
    pub fn validate(&self) -> Result<(), ConfigError> {
        self.subject().map(drop)
    }

    /// What is to be checked.
    pub(crate) fn subject(&self) -> Result<Subject, ConfigError> {
        if !(1..=layout::THREADS).contains(&self.threads) {
            return Err(ConfigError::Threads(self.threads));
        }
        self.validate_but_threads()?;
        let lockref = || hooks::lockref_types().find(|lockref| lockref.name() == self.lock);
        let subject = if self.lock == COND {
            Subject::Cond(hooks::lock_in_cond())
        } else {
            self.find_lock()
                .map(Subject::Lock)
                .or_else(|error| lockref().map(Subject::Lockref).ok_or(error))?
        };
        let gives_up = subject.lock().can_time_out();
        match subject {
            Subject::Lockref(_) | Subject::Cond(_) if self.locks > 1 => {
                Err(ConfigError::LockrefLocks)
            }
            Subject::Cond(_) if self.nesting > 0 => Err(ConfigError::CondNesting),
            Subject::Lock(_) if self.patient && self.nesting > 0 => {
                Err(ConfigError::PatientNesting)
            }
            Subject::Lock(_) | Subject::Cond(_) if gives_up || !self.patient => Ok(subject),
            _ if self.patient => Err(ConfigError::Patient(self.lock.clone())),
            _ => Ok(subject),
        }
    }

    /// The lock, for runs that encode no state and so may have more threads.
    pub(crate) fn validate_wide(&self) -> Result<&'static LockType, ConfigError> {
        if !(2..=layout::WIDE_THREADS).contains(&self.threads) {
            return Err(ConfigError::WideThreads(self.threads));
        }
        self.validate_but_threads()?;
        self.find_lock()
    }

    fn validate_but_threads(&self) -> Result<(), ConfigError> {
        if !(1..=MOST_ACQUISITIONS).contains(&self.acquisitions) {
            return Err(ConfigError::Acquisitions(self.acquisitions));
        }
        if !(1..=2).contains(&self.locks) {
            return Err(ConfigError::Locks(self.locks));
        }
        if usize::from(self.nesting) > layout::LEVELS {
            return Err(ConfigError::Nesting(self.nesting));
        }
        if !(1..=layout::THREADS).contains(&self.nodes) {
            return Err(ConfigError::Nodes(self.nodes));
        }
        if let Some(&thread) = self.priority.iter().find(|t| **t >= self.threads) {
            return Err(ConfigError::Priority(thread));
        }
        Ok(())
    }

    fn find_lock(&self) -> Result<&'static LockType, ConfigError> {
        hooks::lock_types()
            .find(|lock| lock.name() == self.lock)
            .ok_or_else(|| ConfigError::UnknownLock(self.lock.clone()))
    }

    /// Has a thread queue nodes?
    pub fn has_slot(&self, thread: usize) -> bool {
        self.slots.is_none_or(|slots| thread < slots)
    }

    /// The first four bytes of the lock at first.
    pub(crate) fn unlocked(&self, lock: &LockType) -> u32 {
        match self.mode {
            Mode::Numa if lock.unlocked & hooks::word_layout().hq != 0 => {
                lock.unlocked | hooks::word_layout().hq_numa
            }
            _ => lock.unlocked,
        }
    }

    /// What is wrong with the word of a lock that has a tail, and its value; with those of its
    /// bytes that `mask` has.
    pub(crate) fn wrong_piece(
        &self,
        lock: &LockType,
        word: u32,
        mask: u32,
    ) -> Option<(&'static str, u64)> {
        let (locked, tail) = (word & 0xff, word >> 16);
        let service_mask = hooks::word_layout().service;
        let service = word & service_mask;
        let slot = (tail >> 2) as usize;
        let is_tail = tail == 0
            || (1..=self.threads).contains(&slot)
            || lock.unlocked != 0 && queue_of_tail(tail).is_some_and(|node| node < self.nodes);
        // What the lock is stays in its word for its life.
        let is_service = match lock.unlocked & service_mask & mask {
            0 => service == 0,
            life_long => service & life_long == life_long,
        };
        let wrong = [
            ("locked", locked, locked > hooks::word_layout().locked),
            ("service", service, !is_service),
            ("tail", tail, !is_tail),
        ];
        let (piece, value, _) = wrong.into_iter().find(|(.., wrong)| *wrong)?;
        Some((piece, value.into()))
    }

    /// The node of a thread.
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
        if self.locks > 1 {
            write!(f, ", {} locks", self.locks)?;
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
        if self.patient {
            write!(f, ", giving up")?;
        }
        if self.split_release {
            write!(f, ", split release")?;
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
        if let Some(bound) = self.overtaking {
            write!(f, ", overtaking at most {bound}")?;
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
        let set = "fairness_threshold=7".parse().unwrap();
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
