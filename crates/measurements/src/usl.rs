//! The universal scalability law: throughput by number of threads, from three measurements.

/// Throughput with n threads is n / (alone + queueing (n - 1) + crosstalk n (n - 1)): the time of an
/// operation alone, what it waits for each other thread, and what each pair of threads costs. After
/// Gunther, *Guerrilla Capacity Planning*, 2007.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Usl {
    alone: f64,
    queueing: f64,
    crosstalk: f64,
}

impl Usl {
    /// The law nearest to three points, each a number of threads and their throughput: that of the least
    /// squares of times, with no coefficient below 0. None: the points are not three, or no throughput.
    pub fn through(points: [(f64, f64); 3]) -> Option<Self> {
        let different = points[0].0 < points[1].0 && points[1].0 < points[2].0;
        if !different || points.iter().any(|(n, rate)| *n < 1.0 || *rate <= 0.0) {
            return None;
        }
        let terms = |n: f64| [1.0, n - 1.0, n * (n - 1.0)];
        let rows = points.map(|(n, rate)| (terms(n), n / rate));
        let laws = [
            [true, true, true],
            [true, true, false],
            [true, false, true],
            [true, false, false],
        ]
        .into_iter()
        .filter_map(|used| least_squares(&rows, used))
        .filter(|[alone, others @ ..]| *alone > 0.0 && others.iter().all(|of| *of >= 0.0))
        .map(|[alone, queueing, crosstalk]| Self {
            alone,
            queueing,
            crosstalk,
        });
        let squares = |law: &Self| {
            let miss = |(n, rate): (f64, f64)| n / law.throughput(n) - n / rate;
            points.map(|point| miss(point).powi(2)).iter().sum::<f64>()
        };
        laws.min_by(|a, b| squares(a).total_cmp(&squares(b)))
    }

    /// The throughput with this number of threads.
    pub fn throughput(&self, threads: f64) -> f64 {
        let others = threads - 1.0;
        threads / (self.alone + self.queueing * others + self.crosstalk * threads * others)
    }
}

/// The coefficients of the terms that are used, by the normal equations. Those of the others are 0. None:
/// they are not determined.
fn least_squares(rows: &[([f64; 3], f64); 3], used: [bool; 3]) -> Option<[f64; 3]> {
    let at: Vec<usize> = (0..3).filter(|&i| used[i]).collect();
    // The matrix of the equations, with the right side as its last column.
    let mut equations: Vec<Vec<f64>> = at
        .iter()
        .map(|&i| {
            let sum = |f: &dyn Fn(&[f64; 3], f64) -> f64| rows.iter().map(|(x, y)| f(x, *y)).sum();
            let left = at.iter().map(|&j| sum(&|x, _| x[i] * x[j]));
            left.chain([sum(&|x, y| x[i] * y)]).collect()
        })
        .collect();
    let n = at.len();
    for pivot in 0..n {
        if equations[pivot][pivot].abs() < 1e-12 {
            return None;
        }
        let by = equations[pivot].clone();
        for (row, equation) in equations.iter_mut().enumerate() {
            let factor = equation[pivot] / by[pivot];
            if row != pivot {
                let terms = equation.iter_mut().zip(&by);
                terms.for_each(|(term, by)| *term -= factor * by);
            }
        }
    }
    let mut coefficients = [0.0; 3];
    for (row, &i) in at.iter().enumerate() {
        coefficients[i] = equations[row][n] / equations[row][row];
    }
    Some(coefficients)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn near(a: f64, b: f64) -> bool {
        (a / b - 1.0).abs() < 1e-6
    }

    #[test]
    fn the_law_goes_through_its_points() {
        let law = Usl {
            alone: 2.0,
            queueing: 0.5,
            crosstalk: 0.01,
        };
        let point = |n: f64| (n, law.throughput(n));
        let found = Usl::through([point(1.0), point(2.0), point(8.0)]).expect("a law");
        assert!(near(found.throughput(64.0), law.throughput(64.0)));
        assert!(
            law.throughput(64.0) < law.throughput(14.0),
            "crosstalk makes it fall"
        );
    }

    #[test]
    fn more_than_linear_points_have_a_linear_law() {
        let found = Usl::through([(1.0, 1.0), (2.0, 2.5), (4.0, 6.0)]).expect("a law");
        assert!(near(found.throughput(8.0) / found.throughput(4.0), 2.0));
    }

    #[test]
    fn a_negative_coefficient_is_left_out_and_not_another() {
        // Times 1, 1.1 and 1.9: the cost of each pair of threads, and nothing queues.
        let points = [(1.0, 1.0), (2.0, 2.0 / 1.1), (4.0, 4.0 / 1.9)];
        let found = Usl::through(points).expect("a law");
        assert_eq!(found.queueing, 0.0);
        assert!((found.throughput(4.0) / points[2].1 - 1.0).abs() < 0.02);
        // Nothing is left to queue for where the time without others would be negative.
        let found = Usl::through([(2.0, 2.0), (3.0, 0.75), (4.0, 0.5)]).expect("a law");
        assert!(found.alone > 0.0 && found.throughput(8.0) > 0.0);
    }

    #[test]
    fn the_law_goes_through_points_far_apart() {
        let points = [(1.0, 1e6), (2.0, 1.5e6), (4096.0, 2e6)];
        let found = Usl::through(points).expect("a law");
        for (n, rate) in points {
            assert!(near(found.throughput(n), rate), "{n}");
        }
    }

    #[test]
    fn points_that_are_not_three_have_no_law() {
        assert_eq!(Usl::through([(1.0, 1.0), (1.0, 1.0), (2.0, 2.0)]), None);
        assert_eq!(Usl::through([(1.0, 1.0), (2.0, 0.0), (3.0, 2.0)]), None);
    }
}
