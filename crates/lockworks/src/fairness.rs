/// The fairness factor of a run: the share of all operations that the busier half of the threads did.
///
/// 0.5 is strictly fair, 1 is totally unfair. With an odd number of threads, half the operations of
/// the middle thread count, so that equal shares give 0.5. The result is `None` if there were no
/// operations.
///
/// ```
/// assert_eq!(lockworks::fairness(&[1, 3]), Some(0.75));
/// ```
pub fn fairness(operations: &[u64]) -> Option<f64> {
    let total: u64 = operations.iter().sum();
    let mut operations = operations.to_vec();
    operations.sort_unstable_by(|a, b| b.cmp(a));
    let half = operations.len() / 2;
    let mut upper = operations[..half].iter().sum::<u64>() as f64;
    if operations.len() % 2 == 1 {
        upper += operations[half] as f64 / 2.0;
    }
    (total > 0).then(|| upper / total as f64)
}

#[cfg(test)]
mod tests {
    use super::fairness;

    #[test]
    fn equal_shares_are_fair() {
        for threads in 1..6 {
            assert_eq!(fairness(&vec![7; threads]), Some(0.5));
        }
    }

    #[test]
    fn unequal_shares_are_not() {
        assert_eq!(fairness(&[0, 10]), Some(1.0));
        assert_eq!(fairness(&[2, 0, 2]), Some(0.75));
        assert_eq!(fairness(&[0, 0]), None);
    }
}
