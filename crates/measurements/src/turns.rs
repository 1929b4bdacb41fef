//! The order in which contenders take turns, so that none always runs after the same other one.

/// The order of the contenders in a round. The order is rotated by one place more in each round, and
/// every second round goes backwards.
pub fn turns(contenders: usize, round: usize) -> Vec<usize> {
    let mut order: Vec<usize> = (0..contenders).collect();
    order.rotate_left(round % contenders);
    if round % 2 == 1 {
        order.reverse();
    }
    order
}

#[cfg(test)]
mod tests {
    use super::turns;

    #[test]
    fn contenders_take_turns() {
        assert_eq!(turns(3, 0), [0, 1, 2]);
        assert_eq!(turns(3, 1), [0, 2, 1]);
        assert_eq!(turns(3, 2), [2, 0, 1]);
        assert_eq!(turns(1, 5), [0]);
    }
}
