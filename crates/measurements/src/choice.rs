//! Which of several locks to take: one rule, for what is measured and for what is predicted.

/// The lock that is taken where nothing speaks against it.
const USUAL: &str = "mutex";
/// Locks whose means are within this share of the best one are level.
const LEVEL: f64 = 0.95;
/// The least share in a mean: a lock that made no operation must not make it 0.
const LEAST: f64 = 1e-9;

/// The geometric mean of a lock's shares: its throughput over that of the best lock, for each load and number of
/// threads. One far from the best costs more here than in an arithmetic mean.
pub fn mean_share(shares: impl IntoIterator<Item = f64>) -> f64 {
    let logs: Vec<f64> = shares.into_iter().map(|s| s.max(LEAST).ln()).collect();
    (logs.iter().sum::<f64>() / logs.len().max(1) as f64).exp()
}

/// The lock to take, of these with their means in each round: the mutex, unless others are better in every round by
/// more than can be level. Of those, and without the mutex, it is the one with the greatest mean.
pub fn lock_to_take<'a>(means: impl IntoIterator<Item = (&'a str, Vec<f64>)>) -> Option<&'a str> {
    let means: Vec<_> = means.into_iter().collect();
    let usual = means.iter().find(|(lock, _)| *lock == USUAL);
    let is_better = |(_, rounds): &&(&str, Vec<f64>)| {
        let Some((_, usual)) = usual else {
            return true;
        };
        let mut pairs = rounds.iter().zip(usual);
        !rounds.is_empty() && pairs.all(|(mean, usual)| LEVEL * mean > *usual)
    };
    let overall = |(_, rounds): &(&str, Vec<f64>)| mean_share(rounds.iter().copied());
    let better = means.iter().filter(is_better);
    let best = better.max_by(|a, b| overall(a).total_cmp(&overall(b)));
    Some(best.or(usual)?.0)
}

#[cfg(test)]
mod tests {
    use super::{lock_to_take, mean_share};

    #[test]
    fn one_bad_share_costs_more_than_several_middling_ones() {
        assert!((mean_share([0.5, 0.5]) - 0.5).abs() < 1e-9);
        assert!(mean_share([1.0, 1.0, 0.1]) < mean_share([0.6, 0.6, 0.6]));
        assert!(mean_share([1.0, 0.0]) > 0.0);
    }

    #[test]
    fn the_mutex_is_taken_unless_another_is_better_in_every_round() {
        let taken = |mutex: &[f64]| {
            let pv = ("pv", vec![0.9; mutex.len()]);
            lock_to_take([
                pv,
                ("mutex", mutex.to_vec()),
                ("hq", vec![0.8; mutex.len()]),
            ])
        };
        assert_eq!(taken(&[0.95]), Some("mutex"));
        assert_eq!(taken(&[0.86]), Some("mutex"));
        assert_eq!(taken(&[0.85]), Some("pv"));
        assert_eq!(taken(&[0.5, 0.86]), Some("mutex"));
        assert_eq!(taken(&[0.5, 0.85]), Some("pv"));
        // One that is second in the mean, but better in each round.
        let second = [
            ("pv", vec![0.9, 0.7]),
            ("hq", vec![0.8, 0.7]),
            ("mutex", vec![0.7, 0.68]),
        ];
        assert_eq!(lock_to_take(second), Some("mutex"));
        let second = [
            ("pv", vec![1.0, 0.6]),
            ("hq", vec![0.75, 0.75]),
            ("mutex", vec![0.7, 0.7]),
        ];
        assert_eq!(lock_to_take(second), Some("hq"));
        assert_eq!(taken(&[]), Some("mutex"));
        let without = [("cna", vec![0.5]), ("hq", vec![0.7])];
        assert_eq!(lock_to_take(without), Some("hq"));
        assert_eq!(lock_to_take([]), None);
    }
}
