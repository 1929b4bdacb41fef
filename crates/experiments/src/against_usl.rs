//! The simulation beside what a planner has without it: three measured points, and the universal
//! scalability law through them.

use itertools::Itertools;
use lockworks_measurements::Usl;
use serde::Serialize;

use crate::comparison::ComparedFigure;

/// The errors of the simulation and of the law on the same points: those with more threads than the three
/// that the law goes through.
#[derive(Clone, Debug, Serialize)]
pub struct AgainstUsl {
    /// The numbers of threads of the points that the law goes through.
    pub through: [usize; 3],
    /// The number of points with more threads.
    pub points: usize,
    /// The mean absolute errors of the baseline's figures.
    pub figures: Errors,
    /// The mean absolute errors of the headline's speedups over the baseline.
    pub speedups: Errors,
}

/// Mean absolute errors, in percent.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Errors {
    /// Of the simulation, with values as described.
    pub simulation_percent: f64,
    /// Of the law.
    pub law_percent: f64,
}

impl Errors {
    fn mean(errors: &[(f64, f64)]) -> Self {
        let mean = |of: fn(&(f64, f64)) -> f64| {
            errors.iter().map(|error| of(error).abs()).sum::<f64>() / errors.len() as f64
        };
        Self {
            simulation_percent: mean(|(simulation, _)| *simulation),
            law_percent: mean(|(_, law)| *law),
        }
    }
}

impl AgainstUsl {
    /// Compares on these figures, which are rates. None: there is no law through the first three, or no
    /// point is left.
    pub(crate) fn of(figures: &[ComparedFigure], baseline: &str, headline: &str) -> Option<Self> {
        let of_column = |name: &str| -> Vec<&ComparedFigure> {
            let own = figures.iter().filter(|figure| figure.column == name);
            own.sorted_by_key(|figure| figure.threads).collect_vec()
        };
        let (stock, lock) = (of_column(baseline), of_column(headline));
        let law = |column: &[&ComparedFigure]| {
            let first = column
                .get(..3)?
                .iter()
                .map(|f| (f.threads as f64, f.published));
            Usl::through(first.collect_array()?)
        };
        let (stock_law, lock_law) = (law(&stock)?, law(&lock)?);
        let percent = |predicted: f64, published: f64| 100.0 * (predicted / published - 1.0);
        let (mut rates, mut speedups) = (Vec::new(), Vec::new());
        for (stock, lock) in stock.iter().zip(&lock).skip(3) {
            let predicted = |law: &Usl| law.throughput(stock.threads as f64);
            let of_law = percent(predicted(&stock_law), stock.published);
            rates.push((stock.error_percent, of_law));
            let speedup = lock.speedup.as_ref()?;
            let of_law = percent(
                predicted(&lock_law) / predicted(&stock_law),
                speedup.published,
            );
            speedups.push((speedup.error_percent, of_law));
        }
        (!rates.is_empty()).then(|| Self {
            through: std::array::from_fn(|at| stock[at].threads),
            points: rates.len(),
            figures: Errors::mean(&rates),
            speedups: Errors::mean(&speedups),
        })
    }
}
