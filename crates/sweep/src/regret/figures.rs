//! The figures of all cells: a heat map, and the throughput in one workload.

use itertools::Itertools;

use super::RegretReport;
use super::cells::{self, Cell, Measured};
use lockworks_ui::plot::figure::{Chart, Data, Draw, Figure, Panel, series};

impl Draw for RegretReport {
    fn figures(&self, command: &str) -> Vec<Figure> {
        let workloads: Vec<String> = self.finished().map(Cell::place).unique().collect();
        let last = workloads.last().cloned();
        let throughput = last.map(|workload| self.drawn_throughput(workload, command));
        [self.heat_map(workloads, command)]
            .into_iter()
            .chain(throughput)
            .collect()
    }
}

impl RegretReport {
    fn finished(&self) -> impl Iterator<Item = &Cell> {
        self.measured.iter().map(|measured| &measured.cell)
    }

    /// Each cell with the place and the name of each lock.
    fn each(&self) -> impl Iterator<Item = (&Measured, usize, &'static str)> {
        let locks = || self.plan.locks.iter().copied().enumerate();
        let of_cell = move |measured| locks().map(move |(lock, name)| (measured, lock, name));
        self.measured.iter().flat_map(of_cell)
    }

    fn heat_map(&self, workloads: Vec<String>, command: &str) -> Figure {
        let several = self.finished().map(|cell| &cell.machine).unique().count() > 1;
        // Of several machines, each has another number of CPUs.
        let most = self
            .finished()
            .filter(|cell| cell.cpus.is_none())
            .map(|cell| (&cell.machine, cell.threads))
            .into_grouping_map()
            .max();
        let order = |cell: &Cell| match cell.cpus {
            None if several && most.get(&cell.machine) == Some(&cell.threads) => (0, usize::MAX),
            cpus => (cpus.unwrap_or(0), cell.threads),
        };
        let column = |cell: &Cell| match order(cell) {
            (0, usize::MAX) => "most".to_owned(),
            (0, threads) => threads.to_string(),
            (cpus, threads) => format!("{threads} on {cpus}"),
        };
        let columns = self.finished().map(|cell| (order(cell), column(cell)));
        let columns: Vec<String> = columns.sorted().dedup().map(|(_, column)| column).collect();
        let place = |list: &[String], what: String| list.iter().position(|one| *one == what);
        let locks = self.plan.locks.iter().enumerate();
        let panels = locks
            .filter(|_| !self.measured.is_empty())
            .map(|(lock, name)| {
                let cell = |measured: &Measured| {
                    let (cell, fairness) = (&measured.cell, measured.figures[lock].fairness);
                    Some((
                        place(&columns, column(cell))?,
                        place(&workloads, cell.place())?,
                        measured.share(lock),
                        cell.cpus.is_none() && fairness > self.plan.fair,
                    ))
                };
                Panel {
                    name: (*name).to_owned(),
                    cells: self.measured.iter().filter_map(cell).collect(),
                }
            });
        Figure {
            id: "regret".to_owned(),
            title: "How far from the best lock, predicted".to_owned(),
            text:
                "Throughput divided by that of the best fair lock, for each workload and number of \
                   threads; 'on 8' means that the threads share 8 CPUs, 'most' is the most that a \
                   machine runs. 1 is the best. A dot: the lock is unfair there. Choose a lock."
                    .to_owned(),
            command: command.to_owned(),
            chart: Some(Chart::Heat {
                panels: panels.collect(),
                columns: columns.clone(),
                rows: workloads.clone(),
            }),
            data: Data::of(
                &self.each().collect::<Vec<_>>(),
                &[
                    ("workload", &|(of, ..)| of.cell.place().into()),
                    ("threads", &|(of, ..)| (of.cell.threads as f64).into()),
                    ("CPUs shared", &|(of, ..)| {
                        of.cell.cpus.map(|cpus| cpus as f64).into()
                    }),
                    ("lock", &|(.., name)| (*name).into()),
                    ("operations a second", &|(of, lock, _)| {
                        of.figures[*lock].operations_per_second.into()
                    }),
                    ("share of the best", &|(of, lock, _)| of.share(*lock).into()),
                ],
            ),
        }
    }

    fn drawn_throughput(&self, workload: String, command: &str) -> Figure {
        let own = self.each().filter_map(|(measured, lock, name)| {
            let Cell { threads, cpus, .. } = measured.cell;
            let is_own = cpus.is_none() && measured.cell.place() == workload;
            let figures = measured.figures[lock];
            is_own.then_some((name, threads as f64, figures))
        });
        let own: Vec<(&str, f64, cells::Figures)> = own.collect();
        let points = own.iter().map(|&(name, threads, of)| {
            let [least, greatest] = of.range;
            (name, [threads, of.operations_per_second, least, greatest])
        });
        let bars = match (self.plan.seeds, self.plan.doubt) {
            (1, _) => String::new(),
            (n, true) => format!(
                " The median over {n} machines like the described one; bars show the lowest and the highest."
            ),
            (n, false) => {
                format!(" The median over {n} seeds; bars show the lowest and the highest.")
            }
        };
        Figure {
            id: "predicted".to_owned(),
            title: format!("Throughput in {workload}, predicted"),
            text: format!(
                "The locks of the heat map, in one of its workloads, with a CPU for each thread.{bars}"
            ),
            command: command.to_owned(),
            chart: Some(Chart::Lines {
                y: "operations a second".to_owned(),
                log: true,
                series: series(points),
            }),
            data: Data::of(
                &own,
                &[
                    ("lock", &|(name, ..)| (*name).into()),
                    ("threads", &|(_, threads, _)| (*threads).into()),
                    ("operations a second", &|(.., of)| {
                        of.operations_per_second.into()
                    }),
                    ("lowest", &|(.., of)| of.range[0].into()),
                    ("highest", &|(.., of)| of.range[1].into()),
                ],
            ),
        }
    }
}
