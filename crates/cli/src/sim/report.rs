//! The results of a simulation as text.

use lockworks_measurements::Range;
use lockworks_sim::Scenario;

use super::SimulationResults;
use lockworks_sim::command_line::inferred;
use lockworks_sim::comparison::{SharedCpus, SimulationRow};
use lockworks_ui::figures::{nanoseconds, or_dash, three_digits};
use lockworks_ui::output;
use lockworks_ui::plot::figure::{Chart, Data, Draw, FAIRNESS, Figure, few_series};
use lockworks_ui::terminal;
use lockworks_ui::waiters::node_queues;

/// The machine and the workload, the table, the answer, and the counts that the table has not.
pub fn text(scenario: &Scenario, results: &SimulationResults) -> String {
    let seeds = match results.seeds {
        n if results.doubt => format!("medians over {n} machines like this one"),
        1 => format!("seed {}", results.seed),
        n => format!("medians over {n} seeds from {}", results.seed),
    };
    let ratios_only = &scenario.workload.ratios_only;
    let ratios_only = ratios_only
        .as_ref()
        .map_or_else(String::new, |why| format!("Ratios only: {why}. "));
    let about = format!(
        "{}, Linux {}\n{}; threads placed {}, {} ms of virtual time, {seeds}\nPredicted. {ratios_only}{} --json \
         lists all values with their sources.",
        scenario.machine.title,
        results.kernel,
        scenario.workload.title,
        results.placement,
        results.virtual_milliseconds,
        inferred(&results.values),
    );
    let counts: String = results.rows.iter().map(counts).collect();
    let contested = results
        .contested
        .iter()
        .map(|sentence| format!("{sentence}\n"));
    let answer = results.answer.text() + &contested.collect::<String>();
    format!(
        "{}\n{}\n{}{}",
        terminal::prose(&about),
        table(results),
        terminal::prose(&answer),
        terminal::prose(&counts)
    )
}

fn table(results: &SimulationResults) -> lockworks_ui::table::Table {
    let of_reference = format!("of {}", results.reference);
    let mut header = vec!["threads", "lock", "ops/s"];
    if results.doubt {
        header.push("range");
    }
    header.extend([
        of_reference.as_str(),
        "fairness",
        "p50",
        "p99.9",
        "RMWs",
        "remote",
    ]);
    let flushed = |row| event(row, "threshold_flushes") + event(row, "empty_flushes");
    let has_secondary_queues = results
        .rows
        .iter()
        .any(|row| event(row, "secondary_moves") + flushed(row) > 0);
    if has_secondary_queues {
        header.extend(["moved", "flushed"]);
    }
    let mut table = output::table(&header);
    for row in &results.rows {
        let handoffs = row.local_handoffs + row.remote_handoffs;
        let remote = (handoffs > 0).then(|| row.remote_handoffs as f64 / handoffs as f64);
        let mut cells = vec![
            row.threads.to_string(),
            row.lock.to_owned(),
            rate(row.operations_per_second),
            or_dash(row.reference_ratio.map(|ratio| three_digits(ratio.median))),
            or_dash(row.fairness.map(|fairness| format!("{fairness:.3}"))),
            or_dash(row.wait_ns.map(|wait| nanoseconds(wait.p50))),
            or_dash(row.wait_ns.map(|wait| nanoseconds(wait.p999))),
            or_dash(row.rmws_per_acquisition.map(|n| format!("{n:.2}"))),
            or_dash(remote.map(|share| format!("{:.1} %", 100.0 * share))),
        ];
        if results.doubt {
            let range = Range::of(row.operations_per_second_by_seed.iter().copied());
            let range = range.map(|range| format!("{} to {}", rate(range.min), rate(range.max)));
            cells.insert(3, or_dash(range));
        }
        if has_secondary_queues {
            cells.push(event(row, "secondary_moves").to_string());
            cells.push(flushed(row).to_string());
        }
        table.add_row(cells);
    }
    table
}

/// The count of an event of the row's lock.
fn event(row: &SimulationRow, name: &str) -> u64 {
    row.events.get(name).map_or(0, |n| n.as_u64().unwrap_or(0))
}

/// Lines with the counts of a row that the table has not.
fn counts(row: &SimulationRow) -> String {
    let mut lines = String::new();
    lines.extend(row.job_seconds.map(|seconds| {
        let (lock, threads) = (row.lock, row.threads);
        if seconds < 1.0 {
            format!(
                "{lock} with {threads}: {:.0} jobs a minute\n",
                60.0 / seconds
            )
        } else {
            format!("{lock} with {threads}: the whole job takes {seconds:.0} s\n")
        }
    }));
    // For experts: with --verbose.
    if tracing::enabled!(tracing::Level::DEBUG) {
        let queues = |name: &str| event(row, name);
        lines.extend(node_queues(row.lock, row.threads as u64, queues));
        lines.extend(row.sharing.as_ref().map(|s| shared_text(row, s)));
    }
    lines
}

/// A rate in millions a second, or in thousands where it is low.
fn rate(per_second: f64) -> String {
    if per_second < 1e5 {
        format!("{:.3} k", per_second / 1e3)
    } else {
        format!("{:.3} M", per_second / 1e6)
    }
}

/// A line with the counts of threads that share CPUs.
fn shared_text(row: &SimulationRow, s: &SharedCpus) -> String {
    format!(
        "{} with {} on {} CPUs: {} halts, {} kicks, {} preemptions, {} migrations, {} pause-loop \
         exits, {} directed yields; steal {:.1} %, with a lock held {:.2} %\n",
        row.lock,
        row.threads,
        s.cpus,
        s.halts,
        s.kicks,
        s.preemptions,
        s.migrations,
        s.pause_exits,
        s.directed_yields,
        s.steal_percent,
        s.preempted_holder_percent
    )
}

impl Draw for SimulationResults {
    fn figures(&self, command: &str) -> Vec<Figure> {
        let figure = |id: &str, text: String, y: String, log, series| Figure {
            id: id.to_owned(),
            title: format!("Simulated {id}, {} on {}", self.workload, self.machine),
            text,
            command: command.to_owned(),
            chart: Some(Chart::Lines { y, log, series }),
            data: Data::of(
                &self.rows,
                &[
                    ("lock", &|row| row.lock.into()),
                    ("threads", &|row| row.threads.into()),
                    ("operations a second", &|row| {
                        row.operations_per_second.into()
                    }),
                    ("fairness factor", &|row| row.fairness.into()),
                ],
            ),
        };
        let points = |point: fn(&SimulationRow) -> [f64; 3]| {
            let points = self
                .rows
                .iter()
                .map(|row| (row.lock, row.threads, point(row)));
            few_series(command, points)
        };
        let (rates, left_out) = points(|row| {
            let seeds = row.operations_per_second_by_seed.iter().copied();
            let [low, high] =
                Range::of(seeds).map_or([f64::NAN; 2], |range| [range.min, range.max]);
            [row.operations_per_second, low, high]
        });
        let (fairness, _) = points(|row| [row.fairness.unwrap_or(f64::NAN); 3]);
        let over = match self.doubt {
            true => "machines like the described one",
            false => "seeds",
        };
        let text =
            format!("The median over the {over}; bars show the lowest and the highest.{left_out}");
        let [rate, factor] = ["operations a second", "fairness factor"].map(str::to_owned);
        vec![
            figure("throughput", text, rate, true, rates),
            figure("fairness", FAIRNESS.to_owned(), factor, false, fairness),
        ]
    }
}
