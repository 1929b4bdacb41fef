//! Advice on what would help a program, by a few rules, with the figures that it is based on.

use std::time::Duration;

use serde::Serialize;

use super::hotspots::Hotspot;
use crate::figures::nanoseconds;

/// The least waiting for mutexes that is worth advice, as a share of one thread's time.
const WORTHWHILE: f64 = 0.01;

/// Hold time from which the choice of a lock does not matter: far longer than parking and waking a
/// thread takes.
const LONG: Duration = Duration::from_micros(100);

/// The share of contended acquisitions below which a lock cannot help.
const SELDOM: f64 = 0.01;

/// The least share of hand-offs from other NUMA nodes that is worth avoiding.
const REMOTE: f64 = 0.1;

/// Advice, and its reason.
#[derive(Serialize)]
pub struct Advice {
    /// The rule that applied.
    pub rule: Rule,
    /// The advice in words, with its figures.
    pub text: String,
    /// Locks to try. Empty: no lock would help.
    pub locks: Vec<&'static str>,
}

/// The rules, in the order in which they are tried.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Rule {
    /// The mutexes are hardly contended: no lock would help.
    NotContended,
    /// The contended mutexes are left to glibc: no lock would help.
    LeftToGlibc,
    /// Threads still waited when the program ended: a deadlock, or a long critical section.
    StillWaiting,
    /// Threads wait for each other in a circle.
    Deadlock,
    /// The critical sections are long: shorten them.
    LongHolds,
    /// Hand-offs cross NUMA nodes: try a NUMA-aware lock.
    Remote,
    /// Critical sections are short and contended: try a lock that is fast when contended.
    Contended,
}

impl Advice {
    /// Advice for a program that deadlocked.
    pub fn for_deadlock() -> Self {
        Self {
            rule: Rule::Deadlock,
            text: "A lock cannot help: lock these mutexes in the same order everywhere.".to_owned(),
            locks: Vec::new(),
        }
    }

    /// Advice for a program that ran for `wall`, by its mutexes, the hottest first.
    pub fn of(mutexes: &[Hotspot], wall: Duration, cpus: u64, nodes: u64) -> Self {
        let waited = |left: bool| -> u64 {
            let those = mutexes
                .iter()
                .filter(|row| row.left_to_glibc.is_some() == left);
            those.map(|row| row.counts.waited_ns).sum()
        };
        let is_worthwhile = |ns: u64| ns as f64 >= WORTHWHILE * wall.as_nanos() as f64;
        let sum = |ns: u64| {
            let wall = nanoseconds(wall.as_nanos() as u64);
            format!("{} waited for mutexes in {wall}", nanoseconds(ns))
        };
        let no_lock = |rule, text| Self {
            rule,
            text,
            locks: Vec::new(),
        };
        let (served_ns, left_ns) = (waited(false), waited(true));
        let served = mutexes.iter().find(|row| row.left_to_glibc.is_none());
        let Some(hot) = served.filter(|_| is_worthwhile(served_ns)) else {
            return match is_worthwhile(left_ns) {
                true => no_lock(
                    Rule::LeftToGlibc,
                    format!(
                        "No lock would help, because `lockworks run` leaves the contended mutexes to \
                         glibc. ({}.)",
                        sum(left_ns)
                    ),
                ),
                false => no_lock(
                    Rule::NotContended,
                    format!(
                        "Hardly contended: {}, by all threads. No lock would help.",
                        sum(served_ns + left_ns)
                    ),
                ),
            };
        };
        let waited = sum(served_ns);
        let counts = &hot.counts;
        if counts.still_waiting_ns >= counts.waited_ns / 2 {
            return no_lock(
                Rule::StillWaiting,
                format!(
                    "A lock cannot help: threads still waited for the hottest mutex when the program \
                     ended, so they deadlocked, or a critical section is very long. ({waited}.)"
                ),
            );
        }
        let held = counts.held_ns / counts.acquisitions.max(1);
        let others = counts.from_same_node + counts.from_other_node;
        let remote = counts.from_other_node as f64 / others.max(1) as f64;
        let figures = format!(
            "{waited}; the hottest is held for {} at a time, {:.0} % contended, by {} threads on {cpus} \
             CPUs",
            nanoseconds(held),
            100.0 * hot.contended_share(),
            hot.threads
        );
        let (rule, what, locks) = match () {
            () if u128::from(held) >= LONG.as_nanos() => (
                Rule::LongHolds,
                "Shorten the critical section: with such hold times a lock cannot help.".to_owned(),
                Vec::new(),
            ),
            () if hot.contended_share() < SELDOM => (
                Rule::NotContended,
                "Hardly contended: no lock would help.".to_owned(),
                Vec::new(),
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
        Self {
            rule,
            text: format!("{what} ({figures}.)"),
            locks,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::record::Counts;
    use super::*;

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

    fn rule_of(mutexes: &[Hotspot], nodes: u64) -> Rule {
        let advice = Advice::of(mutexes, Duration::from_secs(1), 4, nodes);
        let helps = [Rule::Remote, Rule::Contended].contains(&advice.rule);
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
        assert_eq!(rule_of(&[seldom], 2), Rule::NotContended);
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
}
