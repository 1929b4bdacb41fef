//! Sentences about waiters, and about the events that locks have counted.

use crate::figures::{counted, nanoseconds};

/// The collapse of a spinning FIFO lock when threads outnumber CPUs.
pub const COLLAPSE: &str = "\
Waiters that spin never park. Once threads outnumber CPUs, the next waiter in the queue is often \
preempted, and a FIFO lock has to wait for it: throughput collapses, often a hundredfold and more. \
Use mutex there: its waiters park.";

/// How often a lock queued its waiters by NUMA node, from its counts of events. None: never.
pub fn node_queues(lock: &str, threads: u64, count: impl Fn(&str) -> u64) -> Option<String> {
    let taken = count("node_queues_taken");
    let (entered, left) = (count("numa_mode_entered"), count("numa_mode_left"));
    (taken + entered + left > 0).then(|| {
        format!(
            "{lock} with {}: queueing by node entered {entered}, left {left}; node queues taken \
             {taken}, conflicts {}; longest local run {}.\n",
            counted(threads, "thread"),
            count("node_queue_conflicts"),
            count("longest_local_run"),
        )
    })
}

/// How often waiters of a lock halted, were kicked and stole, from its counts of events. None:
/// never.
pub fn halting(lock: &str, threads: u64, count: impl Fn(&str) -> u64) -> Option<String> {
    let sum = |names: &[&str]| -> u64 { names.iter().map(|name| count(name)).sum() };
    let halts = sum(&["halts_at_head", "halts_in_queue"]);
    let kicks = sum(&["kicks_at_unlock", "kicks_at_handoff", "kicks_ahead"]);
    let steals = sum(&[
        "steals_behind_head",
        "steals_third",
        "steals_fourth",
        "steals_further_back",
    ]);
    if halts + kicks + steals + count("steals_on_arrival") == 0 {
        return None;
    }
    let mut text = format!(
        "{lock} with {}: halts at the head {}, in the queue {} (early {}); kicks at unlock {}, at \
         hand-off {}, ahead {}; spurious wake-ups {}; steals on arrival {}, in the queue {steals}; \
         {:.3} hops an operation on the table",
        counted(threads, "thread"),
        count("halts_at_head"),
        count("halts_in_queue"),
        count("halts_early"),
        count("kicks_at_unlock"),
        count("kicks_at_handoff"),
        count("kicks_ahead"),
        count("spurious_wakeups"),
        count("steals_on_arrival"),
        count("table_hops") as f64 / count("table_operations").max(1) as f64,
    );
    let wakeups = count("wakeups");
    if let (Some(kick), Some(wakeup)) = (
        count("kick_nanoseconds").checked_div(kicks),
        count("wakeup_nanoseconds").checked_div(wakeups),
    ) {
        text += &format!(
            "; on average a kick takes {}, a wake-up {}",
            nanoseconds(kick),
            nanoseconds(wakeup)
        );
    }
    Some(text + ".\n")
}

#[cfg(test)]
mod tests {
    use super::halting;

    #[test]
    fn counts_of_waiters_are_printed_unless_all_are_zero() {
        assert_eq!(halting("pv", 2, |_| 0), None);
        let quiet = halting("pv", 2, |name| u64::from(name == "halts_at_head"));
        let quiet = quiet.expect("one halt");
        assert!(quiet.starts_with("pv with 2 threads: halts at the head 1, in the queue 0"));
        assert!(!quiet.contains("average"));
        let measured = halting("pv", 2, |name| match name {
            "kick_nanoseconds" => 6000,
            "wakeup_nanoseconds" => 40_000,
            "table_hops" => 1,
            _ => 2,
        });
        let measured = measured.expect("kicks");
        assert!(
            measured.contains("in the queue 8; 0.500 hops"),
            "{measured}"
        );
        assert!(
            measured.ends_with("a kick takes 1.00 us, a wake-up 20.0 us.\n"),
            "{measured}"
        );
    }
}
