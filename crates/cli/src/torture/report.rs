//! Torture results for people.

use comfy_table::CellAlignment;
use lockworks_measurements::Latency;
use lockworks_torture::{Contender, Preset, Throttling, TortureResults, TortureRow};

use super::answer::answer;
use lockworks_ui::figures::{counted, nanoseconds, or_dash, percent, scaled, three_digits};
use lockworks_ui::table::Table;
use lockworks_ui::terminal;
use lockworks_ui::waiters::{COLLAPSE, halting, node_queues};

/// A table of all rows, with notes on how to read it.
pub fn table(results: &TortureResults) -> String {
    let machine = &results.machine;
    let mut text = terminal::prose(&format!(
        "{}: {}, {}. {} of {} s each, {}.\n",
        machine.model.as_deref().unwrap_or("This machine"),
        counted(machine.cpus as u64, "CPU"),
        counted(machine.nodes.into(), "node"),
        counted(results.rounds as u64, "round"),
        results.seconds,
        workload(results),
    ));
    text.push_str(&format!("{}\n", rows(results)));
    let for_experts = tracing::enabled!(tracing::Level::DEBUG);
    for row in results.rows.iter().filter(|_| for_experts) {
        let count = |name: &str| row.events.get(name).copied().unwrap_or(0);
        let told = [
            node_queues(row.lock, row.threads as u64, count),
            halting(row.lock, row.threads as u64, count),
        ];
        text.extend(
            told.into_iter()
                .flatten()
                .map(|line| terminal::prose(&line)),
        );
    }
    text.extend(
        results
            .quota
            .map(|quota| terminal::prose(&throttled(quota, machine.cpus))),
    );
    if results.rows.iter().all(|row| row.violations == 0) {
        text.push_str("Mutual exclusion held in all runs.\n");
    }
    text.extend(without_readers(results).map(|alone| terminal::prose(&alone) + "\n"));
    text.extend(answer(results).map(|answer| terminal::prose(&answer) + "\n"));
    let collapsed = results
        .rows
        .iter()
        .any(|row| row.threads > machine.cpus && collapses(row.lock));
    if collapsed {
        text.push_str(&format!("\n{}\n", terminal::prose(COLLAPSE)));
    }
    text
}

/// The effect of a quota of these CPUs, in a line.
fn throttled(quota: Throttling, cpus: usize) -> String {
    format!(
        "Quota: {} % of {}. It was used up in {} of {} periods, and then CPUs were withheld for {:.1} s.\n",
        quota.percent,
        counted(cpus as u64, "CPU"),
        quota.throttled_periods,
        quota.periods,
        quota.throttled_seconds
    )
}

fn collapses(lock: &str) -> bool {
    Contender::find(lock).is_ok_and(|contender| contender.collapses())
}

fn workload(results: &TortureResults) -> String {
    match results.preset {
        Preset::Plain => format!(
            "critical section of two counters + {} ns, {} ns between{}",
            results.critical_ns,
            results.think_ns,
            readers(results.readers_percent)
        ),
        Preset::LocktortureNew => "locktorture's writers (Linux 6.5 on)".to_owned(),
        Preset::LocktortureOld => "locktorture's writers (Linux up to 6.4)".to_owned(),
    }
}

/// The share of readers, if there are any.
fn readers(percent: f64) -> String {
    match percent {
        0.0 => String::new(),
        percent => format!("; {percent} % of acquisitions are those of readers"),
    }
}

/// The locks that readers acquire alone, in a sentence.
fn without_readers(results: &TortureResults) -> Option<String> {
    let mut alone: Vec<&str> = results.rows.iter().map(|row| row.lock).collect();
    alone.retain(|lock| Contender::find(lock).is_ok_and(|lock| !lock.has_readers()));
    alone.sort_unstable();
    alone.dedup();
    (results.readers_percent > 0.0 && !alone.is_empty())
        .then(|| format!("Readers acquire these locks alone: {}.", alone.join(", ")))
}

fn rows(results: &TortureResults) -> Table {
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
    let mut table = Table::new(&header);
    table.add_rows(results.rows.iter().map(cells));
    for column in table.column_iter_mut() {
        column.set_padding((0, 1));
        if column.index != 1 {
            column.set_cell_alignment(CellAlignment::Right);
        }
    }
    table
}

fn cells(row: &TortureRow) -> [String; 12] {
    let time = |of: fn(&Latency) -> u64| {
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
