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

/// The lock to take, of these with their means in each round: the mutex, unless another is better by more than can
/// be level in every round; without the mutex, the best one.
pub fn lock_to_take<'a>(means: impl IntoIterator<Item = (&'a str, Vec<f64>)>) -> Option<&'a str> {
    let means: Vec<_> = means.into_iter().collect();
    let overall = |(_, rounds): &(&str, Vec<f64>)| mean_share(rounds.iter().copied());
    let best = means
        .iter()
        .max_by(|a, b| overall(a).total_cmp(&overall(b)))?;
    let is_better = |usual: &[f64]| {
        let mut rounds = best.1.iter().zip(usual);
        rounds.all(|(best, usual)| LEVEL * best > *usual)
    };
    let mut usual = means.iter().filter(|(lock, _)| *lock == USUAL);
    let is_level = usual.any(|(_, rounds)| !is_better(rounds));
    Some(if is_level { USUAL } else { best.0 })
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
        let without = [("cna", vec![0.5]), ("hq", vec![0.7])];
        assert_eq!(lock_to_take(without), Some("hq"));
        assert_eq!(lock_to_take([]), None);
    }
}
