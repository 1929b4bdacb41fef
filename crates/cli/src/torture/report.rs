//! Torture results for people.

use comfy_table::CellAlignment;

use super::results::{Results, Row};
use super::subject::Subject;
use super::workload::Preset;
use crate::output;
use crate::table::Table;

/// A table of all rows, with what to know when reading it.
pub fn table(results: &Results) -> String {
    let machine = &results.machine;
    let mut text = output::prose(&format!(
        "{}: {}, {}. {} of {} s each, {}.\n",
        machine.model.as_deref().unwrap_or("This machine"),
        counted(machine.cpus, "CPU"),
        counted(machine.nodes as usize, "node"),
        counted(results.rounds, "round"),
        results.seconds,
        workload(results),
    ));
    text.push_str(&format!("{}\n", rows(results)));
    for row in &results.rows {
        let count = |name: &str| row.events.get(name).copied().unwrap_or(0);
        let told = [
            node_queues(row.lock, row.threads, count),
            halting(row.lock, row.threads, count),
        ];
        text.extend(told.into_iter().flatten().map(|line| output::prose(&line)));
    }
    if results.rows.iter().all(|row| row.violations == 0) {
        text.push_str("Mutual exclusion held in all runs.\n");
    }
    let collapsed = results
        .rows
        .iter()
        .any(|row| row.threads > machine.cpus && collapses(row.lock));
    if collapsed {
        text.push_str(&format!("\n{}\n", output::prose(crate::locks::COLLAPSE)));
    }
    text
}

/// What a lock has done with queues of nodes, by its counts of events, if it has had any.
pub fn node_queues(lock: &str, threads: usize, count: impl Fn(&str) -> u64) -> Option<String> {
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

/// What a lock whose waiters halt has done with them, by its counts of events, if anything.
pub fn halting(lock: &str, threads: usize, count: impl Fn(&str) -> u64) -> Option<String> {
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

fn counted(number: usize, what: &str) -> String {
    format!("{number} {what}{}", if number == 1 { "" } else { "s" })
}

fn collapses(lock: &str) -> bool {
    Subject::find(lock).is_ok_and(|subject| subject.collapses())
}

fn workload(results: &Results) -> String {
    match results.preset {
        Preset::Plain => format!(
            "critical section of two counters + {} ns, {} ns between",
            results.critical_ns, results.think_ns
        ),
        Preset::Locktorture => "locktorture's writers (Linux 6.5 on)".to_owned(),
        Preset::LocktortureOld => "locktorture's writers (Linux up to 6.4)".to_owned(),
    }
}

fn rows(results: &Results) -> Table {
    let of_reference = format!("of {}", results.reference);
    let header = [
        "threads",
        "lock",
        "ops/s",
        "min..max",
        &of_reference,
        "fairness",
        "p50",
        "p99",
        "p99.9",
        "max",
        "remote",
        "waiting",
    ];
    let mut table = output::table(&header);
    table.add_rows(results.rows.iter().map(cells));
    for column in table.column_iter_mut() {
        column.set_padding((0, 1));
        if column.index != 1 {
            column.set_cell_alignment(CellAlignment::Right);
        }
    }
    table
}

fn cells(row: &Row) -> [String; 12] {
    let time = |of: fn(&super::results::Latency) -> u64| {
        or_dash(
            row.latency_ns
                .as_ref()
                .map(|latency| nanoseconds(of(latency))),
        )
    };
    let handoffs = row.local_handoffs + row.remote_handoffs;
    let remote = (handoffs > 0).then(|| row.remote_handoffs as f64 / handoffs as f64);
    [
        row.threads.to_string(),
        row.lock.to_owned(),
        scaled(row.operations_per_second),
        format!(
            "{}..{}",
            scaled(row.operations_per_second_min),
            scaled(row.operations_per_second_max)
        ),
        or_dash(row.ratio.map(|ratio| three_digits(ratio.median))),
        or_dash(row.fairness.map(|fairness| format!("{fairness:.3}"))),
        time(|latency| latency.p50),
        time(|latency| latency.p99),
        time(|latency| latency.p999),
        time(|latency| latency.max),
        or_dash(remote.map(percent)),
        or_dash(row.runqueue_wait_share.map(percent)),
    ]
}

fn or_dash(text: Option<String>) -> String {
    text.unwrap_or_else(|| "-".to_owned())
}

fn percent(share: f64) -> String {
    format!("{:.0} %", 100.0 * share)
}

/// Three digits and a prefix: 12.3M.
pub fn scaled(value: f64) -> String {
    let (value, prefix) = match value {
        _ if value >= 999.5e6 => (value / 1e9, "G"),
        _ if value >= 999.5e3 => (value / 1e6, "M"),
        _ if value >= 999.5 => (value / 1e3, "k"),
        _ => (value, ""),
    };
    format!("{}{prefix}", three_digits(value))
}

/// Three digits and a unit: 1.23 us.
pub fn nanoseconds(ns: u64) -> String {
    let ns = ns as f64;
    let (value, unit) = match ns {
        _ if ns >= 999.5e6 => (ns / 1e9, "s"),
        _ if ns >= 999.5e3 => (ns / 1e6, "ms"),
        _ if ns >= 999.5 => (ns / 1e3, "us"),
        _ => return format!("{ns:.0} ns"),
    };
    format!("{} {unit}", three_digits(value))
}

fn three_digits(value: f64) -> String {
    let decimals = match value {
        _ if value >= 99.95 => 0,
        _ if value >= 9.995 => 1,
        _ => 2,
    };
    format!("{value:.decimals$}")
}

#[cfg(test)]
mod tests {
    use super::{halting, nanoseconds, scaled};

    #[test]
    fn what_waiters_did_is_told_if_they_did_anything() {
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

    #[test]
    fn three_digits_and_a_unit() {
        assert_eq!(scaled(12_345_678.0), "12.3M");
        assert_eq!(scaled(999.7), "1.00k");
        assert_eq!(scaled(312.0), "312");
        assert_eq!(nanoseconds(45), "45 ns");
        assert_eq!(nanoseconds(1_500), "1.50 us");
        assert_eq!(nanoseconds(123_456_789), "123 ms");
    }
}
