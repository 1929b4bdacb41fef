//! The loads that locks are measured with, since one loop is no program, and what a lock makes of them all.

use itertools::Itertools;
use lockworks_measurements::{lock_to_take, mean_share};
use lockworks_torture::{TortureResults, TortureRow};
use lockworks_ui::plot::figure::{Chart, Data, Figure, Panel};

use super::parking;

/// Work with the lock held and without it.
#[derive(Clone, Copy)]
pub struct Load {
    /// In words, as what a program has.
    pub name: &'static str,
    /// The name of the file with its results.
    pub file: &'static str,
    /// Nanoseconds with the lock held, besides two counters.
    pub critical_ns: u64,
    /// Nanoseconds without it.
    pub think_ns: u64,
}

/// Short and long sections, with and without work between them. Each is measured with up to four times as many
/// threads as there are CPUs.
pub const LOADS: [Load; 4] = [
    Load {
        name: "short sections, nothing between",
        file: "measured.json",
        critical_ns: 0,
        think_ns: 0,
    },
    Load {
        name: "short sections, work between",
        file: "measured-short-work.json",
        critical_ns: 0,
        think_ns: 1000,
    },
    Load {
        name: "long sections, nothing between",
        file: "measured-long.json",
        critical_ns: 2000,
        think_ns: 0,
    },
    Load {
        name: "long sections, work between",
        file: "measured-long-work.json",
        critical_ns: 2000,
        think_ns: 20_000,
    },
];

impl Load {
    /// The options of `lockworks torture`.
    pub fn options(self) -> String {
        let option = |name, ns| match ns {
            0 => String::new(),
            ns => format!(" --{name} {ns}"),
        };
        option("critical", self.critical_ns) + &option("think", self.think_ns)
    }
}

/// The locks for programs under all loads.
#[derive(Default)]
pub struct Loads {
    /// Each load with its results and the command.
    pub measured: Vec<(Load, TortureResults, String)>,
}

/// A lock under a load with so many threads.
struct Cell {
    load: usize,
    threads: usize,
    lock: &'static str,
    /// Of the best lock's throughput.
    share: f64,
    /// The same in each round.
    by_round: Vec<f64>,
    operations_per_second: f64,
}

/// A lock over all loads.
pub struct Judged {
    pub lock: &'static str,
    /// Its geometric mean of the shares of the best lock.
    pub mean: f64,
    /// The same in each round.
    pub by_round: Vec<f64>,
    /// The least share, and where it is.
    pub worst: (f64, String),
}

impl Loads {
    fn cells(&self) -> Vec<Cell> {
        let of_load = |(load, (_, results, _)): (usize, &(Load, TortureResults, String))| {
            let rows = results.rows.iter();
            let rows = rows.filter(|row| parking().contains(&row.lock));
            let by_threads = rows.into_group_map_by(|row| row.threads);
            let rows = by_threads
                .into_iter()
                .sorted_by_key(|(threads, _)| *threads);
            let cells = rows.flat_map(move |(threads, rows)| {
                let share = |row: &TortureRow, rate: &dyn Fn(&TortureRow) -> f64| {
                    let best = rows.iter().map(|row| rate(row)).fold(0.0, f64::max);
                    rate(row) / best
                };
                let rounds = rows.iter().map(|row| row.by_round.len()).min();
                let cell = |row: &&TortureRow| Cell {
                    load,
                    threads,
                    lock: row.lock,
                    share: share(row, &|row| row.operations_per_second),
                    by_round: (0..rounds.unwrap_or(0))
                        .map(|n| share(row, &|row| row.by_round[n].operations_per_second))
                        .collect(),
                    operations_per_second: row.operations_per_second,
                };
                rows.iter().map(cell).collect::<Vec<_>>()
            });
            cells.collect::<Vec<_>>()
        };
        self.measured.iter().enumerate().flat_map(of_load).collect()
    }

    /// The locks, each over all loads and numbers of threads.
    pub fn judged(&self) -> Vec<Judged> {
        let cells = self.cells();
        let judged = |lock: &'static str| {
            let own = || cells.iter().filter(move |cell| cell.lock == lock);
            let worst = own().min_by(|a, b| a.share.total_cmp(&b.share))?;
            let place = format!("{}, {} threads", LOADS[worst.load].name, worst.threads);
            Some(Judged {
                lock,
                mean: mean_share(own().map(|cell| cell.share)),
                by_round: (0..own().map(|cell| cell.by_round.len()).min()?)
                    .map(|n| mean_share(own().map(|cell| cell.by_round[n])))
                    .collect(),
                worst: (worst.share, place.replace(" 1 threads", " 1 thread")),
            })
        };
        parking().filter_map(judged).collect()
    }

    /// Did other work disturb a measurement?
    pub fn were_disturbed(&self) -> bool {
        let mut results = self.measured.iter().map(|(_, results, _)| results);
        results.any(|results| results.disturbance().is_some())
    }

    /// What the measurements warn of.
    pub fn warnings(&self) -> &[String] {
        TortureResults::warnings_of(self.measured.iter().map(|(_, results, _)| results))
    }

    /// The lock to take.
    pub fn taken(&self) -> Option<Judged> {
        take(self.judged(), self.were_disturbed())
    }

    /// A map of the shares of each lock.
    pub fn figure(&self) -> Option<Figure> {
        let cells = self.cells();
        let threads: Vec<usize> = cells
            .iter()
            .map(|cell| cell.threads)
            .sorted()
            .dedup()
            .collect();
        let panel = |lock: &'static str| {
            let own = cells.iter().filter(|cell| cell.lock == lock);
            let place = |of: usize| {
                threads
                    .iter()
                    .position(|n| *n == of)
                    .expect("a number of threads")
            };
            Panel {
                name: lock.to_owned(),
                cells: own
                    .map(|cell| (place(cell.threads), cell.load, cell.share, false))
                    .collect(),
            }
        };
        let names: Vec<&'static str> = self.measured.iter().map(|(load, ..)| load.name).collect();
        let (.., command) = self.measured.last()?;
        Some(Figure {
            id: "loads".to_owned(),
            title: "How far from the best lock for programs, measured here".to_owned(),
            text: "Throughput divided by that of the best lock whose waiters park, for each load and number of \
                   threads. 1 is the best. Short sections increment two counters; long ones take two \
                   microseconds more. Choose a lock."
                .to_owned(),
            command: command.clone(),
            chart: Some(Chart::Heat {
                panels: parking().map(panel).collect(),
                columns: threads.iter().map(ToString::to_string).collect(),
                rows: names.iter().map(ToString::to_string).collect(),
            }),
            data: Data::of(
                &cells,
                &[
                    ("load", &|cell| names[cell.load].into()),
                    ("threads", &|cell| cell.threads.into()),
                    ("lock", &|cell| cell.lock.into()),
                    ("share of best", &|cell| cell.share.into()),
                    ("operations a second", &|cell| cell.operations_per_second.into()),
                ],
            ),
        })
    }
}

/// The lock to take of these. What other work disturbed is no evidence for any lock.
fn take(judged: Vec<Judged>, disturbed: bool) -> Option<Judged> {
    let evidence = |one: &Judged| match disturbed {
        true => Vec::new(),
        false => one.by_round.clone(),
    };
    let taken = lock_to_take(judged.iter().map(|one| (one.lock, evidence(one))))?;
    judged.into_iter().find(|one| one.lock == taken)
}

#[cfg(test)]
mod tests {
    use super::{Judged, take};

    #[test]
    fn disturbed_rounds_do_not_speak_against_the_mutex() {
        let judged = |lock, mean| Judged {
            lock,
            mean,
            by_round: vec![mean; 3],
            worst: (mean, String::new()),
        };
        let taken = |disturbed| {
            let locks = vec![judged("mutex", 0.5), judged("pv", 0.9)];
            take(locks, disturbed).map(|taken| taken.lock)
        };
        assert_eq!(taken(false), Some("pv"));
        assert_eq!(taken(true), Some("mutex"));
    }
}
