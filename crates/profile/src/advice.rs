//! Advice on what would help a program, by a few rules, with the figures that it is based on.

use std::time::Duration;

use serde::Serialize;

use crate::hotspots::Hotspot;
use crate::layout::What;
use crate::places::Place;
use crate::slow::Doing;
use lockworks_preload::OtherLocks;
use lockworks_ui::figures::{count, nanoseconds, percent, share_of};

/// The least waiting for locks that is worth advice, as a share of one thread's time.
const WORTHWHILE: f64 = 0.01;

/// Hold time from which the choice of a lock does not matter: far longer than parking and waking a
/// thread takes.
const LONG: Duration = Duration::from_micros(100);

/// The share of contended acquisitions below which it matters more that readers write to a cache line.
const SELDOM: f64 = 0.01;

/// The least share of hand-offs from other NUMA nodes that is worth avoiding.
const REMOTE: f64 = 0.1;

/// The time that a read of an rwlock of glibc takes another reader at least, in nanoseconds: both write to
/// the cache line of the lock, which has to come from the other's CPU.
const LINE_TRANSFER_NS: u64 = 50;

/// Advice, and its reason.
#[derive(Serialize)]
pub struct Advice {
    /// The rule that applied.
    pub rule: Rule,
    /// The occupation of the holder for most of the time that threads waited. None: that differs, or threads
    /// did not wait for long.
    pub cause: Option<What>,
    /// The advice in words, with its figures.
    pub text: String,
    /// Locks to try. Empty: no lock would help.
    pub locks: Vec<&'static str>,
}

/// The rules, in the order in which they are tried.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Rule {
    /// The locks are hardly contended: no lock would help.
    NotContended,
    /// The locks that were measured are hardly contended, but others may be.
    NotMeasured,
    /// The contended locks are left to glibc: no lock would help.
    LeftToGlibc,
    /// Threads still waited when the program ended: a deadlock, or a long critical section.
    StillWaiting,
    /// Threads wait for each other in a circle.
    Deadlock,
    /// The holder has the lock for long: the cause says what to do.
    LongHolds,
    /// Hand-offs cross NUMA nodes: try a NUMA-aware lock.
    Remote,
    /// Critical sections are short and contended: try a lock that is fast when contended.
    Contended,
    /// Critical sections of an rwlock are short and contended: try the lock rwlock.
    ContendedRwlock,
    /// Many readers write to the cache line of the same rwlock: try the lock rwlock.
    Readers,
}

impl Advice {
    /// Advice for a program that deadlocked.
    pub fn for_deadlock() -> Self {
        Self {
            rule: Rule::Deadlock,
            cause: None,
            text: "A lock cannot help: lock these in the same order everywhere.".to_owned(),
            locks: Vec::new(),
        }
    }

    /// This advice if no pthread mutex and no rwlock was locked.
    pub fn without_locks(self, others: &OtherLocks) -> Self {
        Self {
            text: format!(
                "The program locked no pthread mutex and no rwlock, so no lock of Lockworks would serve it; {}.",
                others.words()
            ),
            ..self
        }
    }

    /// This advice if not all was measured: these parts were not, so that they may be contended. `has_locks`:
    /// a lock was measured.
    pub fn unless(self, unseen: &[String], has_locks: bool) -> Self {
        if self.rule != Rule::NotContended || unseen.is_empty() {
            return self;
        }
        Self {
            rule: Rule::NotMeasured,
            text: format!(
                "{}: {}. Only a comparison tells whether a lock would help.",
                match has_locks {
                    true => "Hardly contended, as far as it is measured",
                    false => "Nothing is known of its locks",
                },
                unseen.join("; ")
            ),
            locks: vec!["mutex"],
            ..self
        }
    }

    /// Advice for a program whose threads hardly wait, but read this rwlock often.
    fn for_readers(row: &Hotspot, waited: &str) -> Self {
        Self {
            rule: Rule::Readers,
            cause: None,
            text: format!(
                "Threads hardly wait, but {} use an rwlock that is read {} times, {} of its \
                 acquisitions: under glibc each read writes to the same cache line. {SERVED} \
                 ({waited}.)",
                row.threads,
                count(reads(row)),
                share_of_reads(row),
            ),
            locks: vec!["mutex"],
        }
    }

    /// Advice for a program that ran for `wall`, by its mutexes and rwlocks, the hottest first.
    pub fn of(
        mutexes: &[Hotspot],
        rwlocks: &[Hotspot],
        wall: Duration,
        cpus: u64,
        nodes: u64,
    ) -> Self {
        let advice = Self::of_busy(mutexes, rwlocks, wall, cpus, nodes);
        let locks = || mutexes.iter().chain(rwlocks);
        let idle_ns: u64 = locks().map(|row| row.idle_ns).sum();
        match locks().max_by_key(|row| row.idle_ns) {
            Some(row) if is_worthwhile(idle_ns, wall) => advice.beside_idle(row, idle_ns),
            _ => advice,
        }
    }

    /// This advice for a program whose threads also waited while a holder waited for events, longest for this lock.
    /// Whether they had work then, the record does not say.
    fn beside_idle(self, row: &Hotspot, idle_ns: u64) -> Self {
        let remedy = row
            .slow
            .main_cause()
            .and_then(|(doing, share)| remedy(doing, share));
        let unless = remedy.map_or(String::new(), |remedy| {
            format!(" If they had work: {remedy}")
        });
        Self {
            text: format!(
                "{} Besides, threads waited {} for a holder that waited for events; if they had no work, that \
                 costs nothing.{unless}",
                self.text,
                nanoseconds(idle_ns),
            ),
            ..self
        }
    }

    /// The same, without the time in which holders waited for events.
    fn of_busy(
        mutexes: &[Hotspot],
        rwlocks: &[Hotspot],
        wall: Duration,
        cpus: u64,
        nodes: u64,
    ) -> Self {
        let locks = || mutexes.iter().chain(rwlocks);
        let those = match (mutexes, rwlocks) {
            (_, []) => "mutexes",
            ([], _) => "rwlocks",
            _ => "mutexes and rwlocks",
        };
        let waited = |left: bool| -> u64 {
            let those = locks().filter(|row| row.left_to_glibc.is_some() == left);
            those.map(Hotspot::busy_ns).sum()
        };
        let is_worthwhile = |ns| is_worthwhile(ns, wall);
        let sum = |ns: u64| {
            let wall = nanoseconds(wall.as_nanos() as u64);
            format!("{} waited for {those} in {wall}", nanoseconds(ns))
        };
        let no_lock = |rule, text| Self {
            rule,
            cause: None,
            text,
            locks: Vec::new(),
        };
        let (served_ns, left_ns) = (waited(false), waited(true));
        let served = || locks().filter(|row| row.left_to_glibc.is_none());
        let hot = served().max_by_key(|row| row.busy_ns());
        let often_read = served()
            .filter(|row| row.threads > 1 && is_worthwhile(line_transfers(row)))
            .max_by_key(|row| reads(row))
            .map(|row| Self::for_readers(row, &sum(served_ns)));
        let Some(hot) = hot.filter(|_| is_worthwhile(served_ns)) else {
            return match (is_worthwhile(left_ns), often_read) {
                (true, _) => no_lock(
                    Rule::LeftToGlibc,
                    format!(
                        "No lock would help, because `lockworks run` leaves the contended {those} to \
                         glibc. ({}.)",
                        sum(left_ns)
                    ),
                ),
                (false, Some(advice)) => advice,
                (false, None) => no_lock(
                    Rule::NotContended,
                    format!(
                        "Hardly contended: {}, by all threads. No lock would help.",
                        sum(served_ns + left_ns)
                    ),
                ),
            };
        };
        let waited = sum(served_ns);
        let (counts, kind) = (&hot.counts, hot.kind());
        if counts.still_waiting_ns >= counts.waited_ns / 2 {
            return no_lock(
                Rule::StillWaiting,
                format!(
                    "A lock cannot help: threads still waited for the hottest {kind} when the program \
                     ended, so they deadlocked, or a critical section is very long. ({waited}.)"
                ),
            );
        }
        let held = counts.held_ns / counts.acquisitions.max(1);
        let others = counts.from_same_node + counts.from_other_node;
        let remote = counts.from_other_node as f64 / others.max(1) as f64;
        let figures = format!(
            "{waited}; the hottest is held for {} at a time, {} contended, by {} threads on {cpus} \
             CPUs",
            nanoseconds(held),
            share_of(counts.contended, counts.acquisitions),
            hot.threads
        );
        let mostly_slow = hot.slow.waited_ns >= counts.waited_ns / 2;
        if let Some((doing, share)) = hot.slow.main_cause()
            && mostly_slow
            && let Some(what) = remedy(doing, share)
        {
            return Self {
                cause: Some(doing.what),
                ..no_lock(
                    Rule::LongHolds,
                    format!("{what} A lock cannot help. ({figures}.)"),
                )
            };
        }
        let (rule, what, locks) = match () {
            () if u128::from(held) >= LONG.as_nanos() => (
                Rule::LongHolds,
                "Shorten the critical section: with such hold times a lock cannot help.".to_owned(),
                Vec::new(),
            ),
            () if hot.contended_share() < SELDOM
                && let Some(advice) = often_read =>
            {
                return advice;
            }
            () if hot.by_mode.is_some() => (
                Rule::ContendedRwlock,
                format!(
                    "Hold times of the hottest lock, an rwlock, are short, and {} of its acquisitions \
                     are reads. {SERVED}",
                    share_of_reads(hot)
                ),
                vec!["mutex"],
            ),
            () if nodes > 1 && remote >= REMOTE && hot.threads <= cpus => (
                Rule::Remote,
                format!(
                    "{:.0} % of the hand-offs between threads are from another node: try mutex, and \
                     cna, which hands over within a node but spins.",
                    100.0 * remote
                ),
                vec!["mutex", "cna"],
            ),
            () => (
                Rule::Contended,
                "Hold times are short: try mutex, whose waiters spin briefly and then park."
                    .to_owned(),
                vec!["mutex"],
            ),
        };
        let late = hot
            .slow
            .main_cause()
            .filter(|(doing, _)| mostly_slow && doing.what == What::Late);
        let why = late.map_or(String::new(), |(_, share)| {
            format!(
                " For {} of the time of slow waits the lock was free, but waiters that had slept had no CPU: fewer \
                 threads may help as well.",
                percent(share)
            )
        });
        Self {
            rule,
            cause: late.map(|_| What::Late),
            text: format!("{what}{why} ({figures}.)"),
            locks,
        }
    }
}

/// Whether so much waiting by all threads of a program that ran for `wall` is worth advice.
pub fn is_worthwhile(waited_ns: u64, wall: Duration) -> bool {
    waited_ns as f64 >= WORTHWHILE * wall.as_nanos() as f64
}

/// A remedy if holders do this for a share of the time of slow waits. None: a lock may help.
fn remedy(doing: &Doing, share: f64) -> Option<String> {
    let section = match &doing.held_at {
        Some(place) => format!("the critical section that begins at {}", place.name()),
        None => "the critical section".to_owned(),
    };
    let at = || doing.at.as_ref().map_or("?".to_owned(), Place::name);
    let share = format!("{} of the time of slow waits", percent(share));
    Some(match doing.what {
        What::Ran => format!("Shorten {section}: its holder runs there for {share}."),
        What::Slept => {
            let call = doing.system_call.as_deref().unwrap_or("the system call");
            format!("Take {call} out of {section}: its holder sleeps in it for {share}.")
        }
        What::Faulted => format!(
            "Touch the memory before {section}, or keep it in memory (mlock): its holder waits for a page at \
             {} for {share}.",
            at()
        ),
        What::Nested => format!(
            "Take the lock at {} out of {section}: its holder waits for it for {share}.",
            at()
        ),
        What::Preempted => format!(
            "Run fewer threads, or give them more CPUs: the holder is preempted for {share}, in {section}."
        ),
        What::Throttled => format!(
            "Raise the CPU quota of the control group, or run fewer threads: the holder is throttled for \
             {share}, in {section}."
        ),
        What::InTurn | What::Late | What::Unseen | What::Unwatched => return None,
    })
}

/// The lock that serves rwlocks, and how to try it.
const SERVED: &str = "`lockworks run` serves rwlocks by the lock rwlock, whose readers use cache lines \
                      of their own: try it, with mutex for the mutexes.";

/// How often an rwlock was read. A mutex never is.
fn reads(row: &Hotspot) -> u64 {
    row.by_mode.map_or(0, |modes| modes.reads.acquisitions)
}

/// The time that reads of an rwlock take other readers at least, in nanoseconds.
fn line_transfers(row: &Hotspot) -> u64 {
    reads(row) * LINE_TRANSFER_NS
}

fn share_of_reads(row: &Hotspot) -> String {
    let share = reads(row) as f64 / row.counts.acquisitions.max(1) as f64;
    format!("{:.0} %", 100.0 * share)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hotspots::ByMode;
    use crate::record::Counts;
    use crate::slow::Cause;

    fn hotspot(held_ns: u64, remote: u64, threads: u64, waited_ns: u64) -> Hotspot {
        Hotspot {
            threads,
            counts: Counts {
                acquisitions: 100,
                contended: 50,
                waited_ns,
                held_ns: 100 * held_ns,
                from_same_node: 100 - remote,
                from_other_node: remote,
                ..Counts::default()
            },
            ..Hotspot::default()
        }
    }

    fn rwlock(reads: u64, writes: u64, waited_ns: u64) -> Hotspot {
        let counts = |acquisitions| Counts {
            acquisitions,
            contended: acquisitions / 2,
            waited_ns,
            ..Counts::default()
        };
        Hotspot {
            threads: 2,
            counts: counts(reads + writes),
            by_mode: Some(ByMode {
                reads: counts(reads),
                writes: counts(writes),
            }),
            ..Hotspot::default()
        }
    }

    fn advice(mutexes: &[Hotspot], rwlocks: &[Hotspot]) -> Advice {
        Advice::of(mutexes, rwlocks, Duration::from_secs(1), 4, 1)
    }

    fn rule_of(mutexes: &[Hotspot], nodes: u64) -> Rule {
        let advice = Advice::of(mutexes, &[], Duration::from_secs(1), 4, nodes);
        let helps = [
            Rule::Remote,
            Rule::Contended,
            Rule::ContendedRwlock,
            Rule::Readers,
        ];
        let helps = helps.contains(&advice.rule);
        assert_eq!(!advice.locks.is_empty(), helps);
        advice.rule
    }

    fn rule(held_ns: u64, remote: u64, threads: u64, nodes: u64, waited_ns: u64) -> Rule {
        rule_of(&[hotspot(held_ns, remote, threads, waited_ns)], nodes)
    }

    #[test]
    fn the_rules_go_by_their_figures() {
        let second = 1_000_000_000;
        assert_eq!(rule(500, 50, 4, 2, second / 200), Rule::NotContended);
        assert_eq!(rule(200_000, 50, 4, 2, second), Rule::LongHolds);
        assert_eq!(rule(500, 50, 4, 2, second), Rule::Remote);
        assert_eq!(rule(500, 50, 4, 1, second), Rule::Contended);
        assert_eq!(rule(500, 5, 4, 2, second), Rule::Contended);
        assert_eq!(rule(500, 50, 5, 2, second), Rule::Contended);
        let mut seldom = hotspot(500, 50, 4, second);
        seldom.counts.acquisitions = 10_000;
        assert_eq!(rule_of(&[seldom], 2), Rule::Remote, "they wait for long");
    }

    #[test]
    fn no_lock_is_advised_where_the_holder_is_the_cause() {
        let second = 1_000_000_000;
        let with = |what, share: f64| {
            let mut hot = hotspot(500, 50, 4, second);
            let cause = |what, share: f64| {
                let doing = Doing {
                    what,
                    system_call: None,
                    at: None,
                    error: None,
                    held_at: None,
                };
                let ns = (share * second as f64) as u64;
                Cause {
                    doing,
                    meanwhile: String::new(),
                    ns,
                    share,
                }
            };
            let rest = cause(What::InTurn, 1.0 - share);
            hot.slow.causes = vec![cause(what, share), rest];
            hot.slow.waited_ns = second;
            hot
        };
        for what in [
            What::Ran,
            What::Slept,
            What::Faulted,
            What::Nested,
            What::Preempted,
            What::Throttled,
        ] {
            let by_cause = advice(&[with(what, 0.6)], &[]);
            assert_eq!(by_cause.rule, Rule::LongHolds);
            assert_eq!(by_cause.cause, Some(what));
            assert!(by_cause.locks.is_empty());
            assert_eq!(rule_of(&[with(what, 0.4)], 1), Rule::Contended, "{what:?}");
            let mut seldom = with(what, 0.6);
            seldom.slow.waited_ns = second / 3;
            assert_eq!(rule_of(&[seldom], 1), Rule::Contended, "{what:?}");
        }
        assert_eq!(rule_of(&[with(What::InTurn, 0.6)], 1), Rule::Contended);
        let late = advice(&[with(What::Late, 0.6)], &[]);
        assert_eq!(late.rule, Rule::Contended);
        assert_eq!(late.cause, Some(What::Late));
        assert_eq!(rule_of(&[with(What::Unseen, 0.6)], 1), Rule::Contended);
    }

    #[test]
    fn mutexes_of_glibc_and_waits_without_end_get_no_lock() {
        let second = 1_000_000_000;
        let mut left = hotspot(500, 50, 4, 2 * second);
        left.left_to_glibc = Some("robust");
        let served = |waited_ns| hotspot(500, 50, 4, waited_ns);
        assert_eq!(rule_of(&[], 1), Rule::NotContended);
        let hardly = second / 200;
        assert_eq!(rule_of(&[left, served(hardly)], 1), Rule::LeftToGlibc);
        let mut left = hotspot(500, 50, 4, 2 * second);
        left.left_to_glibc = Some("robust");
        assert_eq!(rule_of(&[left, served(second)], 1), Rule::Contended);
        let mut stuck = served(second);
        stuck.counts.still_waiting_ns = second * 3 / 4;
        assert_eq!(rule_of(&[stuck], 1), Rule::StillWaiting);
    }

    #[test]
    fn rwlocks_get_the_lock_that_serves_them() {
        let second = 1_000_000_000;
        let hot = advice(
            &[hotspot(500, 50, 4, second)],
            &[rwlock(90, 10, 2 * second)],
        );
        assert_eq!(hot.rule, Rule::ContendedRwlock);
        assert!(hot.text.contains("90 % of its acquisitions are reads"));
        assert!(hot.text.contains("waited for mutexes and rwlocks"));
        assert_eq!(hot.locks, ["mutex"]);
        let mutex = advice(
            &[hotspot(500, 50, 4, second)],
            &[rwlock(90, 10, second / 2)],
        );
        assert_eq!(mutex.rule, Rule::Contended);
        let mut left = rwlock(90, 10, second);
        left.left_to_glibc = Some("process-shared");
        assert_eq!(advice(&[], &[left]).rule, Rule::LeftToGlibc);
    }

    #[test]
    fn rwlocks_that_are_often_read_need_no_waits() {
        let second = 1_000_000_000;
        let often = rwlock(1_000_000, 10, 0);
        let read = advice(&[], &[rwlock(1000, 1000, 0), often]);
        assert_eq!(read.rule, Rule::Readers);
        assert!(
            read.text.contains("100 % of its acquisitions"),
            "{}",
            read.text
        );
        let mut seldom = rwlock(1_000_000, 10, second);
        seldom.counts.contended = 1000;
        assert_eq!(advice(&[], &[seldom]).rule, Rule::Readers);
        let mut seldom = rwlock(1000, 10, second);
        seldom.counts.contended = 1;
        assert_eq!(advice(&[], &[seldom]).rule, Rule::ContendedRwlock);
        let mut alone = rwlock(1_000_000, 10, 0);
        alone.threads = 1;
        assert_eq!(advice(&[], &[alone]).rule, Rule::NotContended);
        assert_eq!(advice(&[], &[rwlock(1000, 10, 0)]).rule, Rule::NotContended);
    }
}
