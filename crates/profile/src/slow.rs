//! Why waits took long: what the holder of the lock did meanwhile.

use std::cmp::Reverse;

use nix::errno::Errno;
use serde::Serialize;
use syscalls::Sysno;

use crate::layout::What;
use crate::places::{Place, Places};
use crate::record::{self, Record};

/// The slow waits for some locks.
#[derive(Clone, Default, Serialize)]
pub struct SlowWaits {
    /// The number of slow waits.
    pub waits: u64,
    /// The time that they took, in nanoseconds.
    pub waited_ns: u64,
    /// The activities of the holders meanwhile, the longest first.
    pub causes: Vec<Cause>,
}

/// An activity of holders while other threads waited.
#[derive(Clone, Serialize)]
pub struct Cause {
    /// The activity.
    #[serde(flatten)]
    pub doing: Doing,
    /// The activity, or that of the waiters, in words.
    pub meanwhile: String,
    /// The time, in nanoseconds.
    pub ns: u64,
    /// The share of the time of all slow waits.
    pub share: f64,
}

/// An activity of a holder, and its place.
#[derive(Clone, Serialize, PartialEq)]
pub struct Doing {
    /// Its action.
    pub what: What,
    /// The system call that it sleeps in.
    pub system_call: Option<String>,
    /// The instruction that waits for a page, or the call that waits for another lock.
    pub at: Option<Place>,
    /// Why it is not known what it does.
    pub error: Option<String>,
    /// Where it locked the lock. None: it is not known.
    pub held_at: Option<Place>,
}

impl SlowWaits {
    /// The slow waits with these causes.
    pub fn of(record: &Record, causes: &[record::Cause], places: &mut Places) -> Self {
        let mut slow = Self::default();
        for cause in causes {
            slow.waits = slow.waits.saturating_add(cause.waits);
            if cause.ns > 0 {
                slow.add(&Doing::of(record, cause, places), cause.ns);
            }
        }
        slow
    }

    /// The occupation of the holders for at least half of the time, with the place where it took longest,
    /// and the share of the time there. None: nothing took so long.
    pub fn main_cause(&self) -> Option<(&Doing, f64)> {
        let takes_half = |cause: &&Cause| {
            let same = |other: &&Cause| other.doing.what == cause.doing.what;
            let shares = self.causes.iter().filter(same).map(|cause| cause.share);
            shares.sum::<f64>() >= 0.5
        };
        let longest = self.causes.iter().find(takes_half)?;
        Some((&longest.doing, longest.share))
    }

    /// Adds time for which the holder was occupied with this.
    pub fn add(&mut self, doing: &Doing, ns: u64) {
        self.waited_ns = self.waited_ns.saturating_add(ns);
        match self.causes.iter_mut().find(|cause| cause.doing == *doing) {
            Some(cause) => cause.ns = cause.ns.saturating_add(ns),
            None => self.causes.push(Cause {
                doing: doing.clone(),
                meanwhile: doing.words(),
                ns,
                share: 0.0,
            }),
        }
        self.causes.sort_by_key(|cause| Reverse(cause.ns));
        for cause in &mut self.causes {
            cause.share = cause.ns as f64 / self.waited_ns.max(1) as f64;
        }
    }
}

impl std::ops::AddAssign<&Self> for SlowWaits {
    fn add_assign(&mut self, other: &Self) {
        self.waits = self.waits.saturating_add(other.waits);
        for cause in &other.causes {
            self.add(&cause.doing, cause.ns);
        }
    }
}

impl Doing {
    fn of(record: &Record, cause: &record::Cause, places: &mut Places) -> Self {
        let (what, detail) = (cause.what, cause.detail);
        Self {
            what,
            system_call: (what == What::Slept).then(|| match Sysno::new(detail as usize) {
                Some(call) => call.name().to_owned(),
                None => format!("system call {detail}"),
            }),
            at: matches!(what, What::Faulted | What::Nested).then(|| places.of(record, detail)),
            error: (what == What::Unseen).then(|| match detail {
                0 => "another process may hold it".to_owned(),
                error => Errno::from_raw(error as i32).desc().to_owned(),
            }),
            held_at: cause.held.map(|call| places.of_lock(record, call)),
        }
    }

    /// Whether the holder slept until something happens outside of the program.
    pub fn waits_for_events(&self) -> bool {
        let call = self.system_call.as_deref().unwrap_or_default();
        ["epoll_", "poll", "ppoll", "select", "pselect"]
            .iter()
            .any(|waits| call.starts_with(waits))
    }

    /// The activity, in words.
    pub fn words(&self) -> String {
        let at = || self.at.as_ref().map_or("?".to_owned(), Place::full_name);
        let or = |detail: &Option<String>| detail.clone().unwrap_or_default();
        match self.what {
            What::Ran => "holder ran a long section".to_owned(),
            What::Preempted => "holder was preempted".to_owned(),
            What::Throttled => "holder was throttled".to_owned(),
            What::Slept => format!("holder slept in {}", or(&self.system_call)),
            What::Faulted => format!("holder waited for a page at {}", at()),
            What::Nested => format!("holder waited for a lock at {}", at()),
            What::InTurn => "holders took short turns".to_owned(),
            What::Late => "lock was free, waiter had no CPU".to_owned(),
            What::Unseen => format!("not known: {}", or(&self.error)),
            What::Unwatched => "not known: nobody looked".to_owned(),
        }
    }
}
