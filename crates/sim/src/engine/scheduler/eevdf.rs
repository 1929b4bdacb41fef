//! Linux' fair scheduler since 6.6 (EEVDF), simplified: all runners have the same weight.
//!
//! The clock of a processor is the mean of the virtual times of its runners: as far as each of them
//! would be, had they shared the processor equally. The lag of a runner is what it lacks: the clock
//! minus its virtual time. A runner with a negative lag has had more than its share and is not
//! eligible. Of those that are, the one with the earliest deadline is next. The deadline is the virtual
//! time at which the runner will have run for a slice more.
//!
//! * *A turn* lasts until the deadline of its runner, and ends at a tick.
//! * *Sleep.* A runner that sleeps with a lag of 0 or more has the same lag when it wakes. A negative
//!   lag it works off while it sleeps: it stays in the queue until then (delayed dequeue).
//! * *Wake-up.* A runner that wakes preempts one that is not eligible, if it is next itself. One that is
//!   eligible keeps the processor (run to parity).

use super::{Policy, Share};

pub(crate) struct Eevdf {
    /// The time that a runner asks for.
    pub(crate) slice: u64,
    /// The greatest lag of a runner that sleeps.
    pub(crate) greatest_lag: u64,
}

impl Policy for Eevdf {
    fn period(&self) -> u64 {
        self.slice
    }

    fn clock(&self, before: i64, shares: &mut dyn Iterator<Item = Share>) -> i64 {
        mean(shares).unwrap_or(before)
    }

    fn ran(&self, share: &mut Share, time: i64) {
        share.virtual_time += time;
        if share.virtual_time >= share.deadline {
            share.deadline = share.virtual_time + self.slice as i64;
        }
    }

    fn sleeps(&self, share: &mut Share, clock: i64) {
        let greatest = self.greatest_lag as i64;
        share.lag = (clock - share.virtual_time).clamp(-greatest, greatest);
        share.virtual_time = clock - share.lag;
    }

    fn wakes(&self, share: &mut Share, clock: i64, others: usize) {
        if share.lag < 0 && share.virtual_time > clock {
            // It has never left the queue.
            return;
        }
        // To join the queue takes the clock towards the runner, so that its lag becomes less.
        let lag = match others {
            0 => 0,
            n => share.lag.max(0) * (n as i64 + 1) / n as i64,
        };
        share.virtual_time = clock - lag;
        share.deadline = share.virtual_time + self.slice as i64;
    }

    fn rank(&self, share: &Share, clock: i64) -> (bool, i64) {
        (!is_eligible(share, clock), share.deadline)
    }

    fn preempts(&self, woken: &Share, running: &Share, others: &[Share]) -> bool {
        let mut all = others.iter().copied().chain([*woken, *running]);
        let clock = mean(&mut all).expect("there are two");
        let own = self.rank(woken, clock);
        !is_eligible(running, clock) && others.iter().all(|other| own <= self.rank(other, clock))
    }

    fn turn_left(&self, running: &Share, _ran: u64, _waiting: usize) -> u64 {
        (running.deadline - running.virtual_time).max(0) as u64
    }

    fn gives_way(&self, running: &Share, next: &Share, clock: i64) -> bool {
        self.rank(next, clock) < self.rank(running, clock)
    }

    fn may_go_first(&self, share: &Share, _least: i64, clock: i64) -> bool {
        is_eligible(share, clock)
    }
}

fn is_eligible(share: &Share, clock: i64) -> bool {
    share.virtual_time <= clock
}

/// The mean of the virtual times. None without runners.
fn mean(shares: &mut dyn Iterator<Item = Share>) -> Option<i64> {
    let (sum, number) = shares.fold((0, 0), |(sum, number), share| {
        (sum + i128::from(share.virtual_time), number + 1)
    });
    (number > 0).then(|| sum.div_euclid(number) as i64)
}

#[cfg(test)]
mod tests {
    use super::*;

    const EEVDF: Eevdf = Eevdf {
        slice: 100,
        greatest_lag: 240,
    };

    fn share(virtual_time: i64, deadline: i64) -> Share {
        Share {
            virtual_time,
            deadline,
            lag: 0,
        }
    }

    #[test]
    fn the_next_has_the_earliest_deadline_of_those_that_lack_time() {
        let all = [share(0, 90), share(20, 50), share(60, 70), share(100, 40)];
        let clock = EEVDF.clock(0, &mut all.into_iter());
        assert_eq!(clock, 45);
        let next = all
            .iter()
            .min_by_key(|share| EEVDF.rank(share, clock))
            .unwrap();
        assert_eq!(next.deadline, 50);
        assert_eq!(EEVDF.clock(7, &mut [].into_iter()), 7);
    }

    #[test]
    fn a_runner_has_its_lag_again_after_sleep_but_works_off_what_it_had_too_much() {
        let wakes = |at: i64, later: i64, others| {
            let mut share = share(at, at + 10);
            EEVDF.sleeps(&mut share, 1000);
            EEVDF.wakes(&mut share, 1000 + later, others);
            let all = (0..others)
                .map(|_| 1000 + later)
                .chain([share.virtual_time]);
            let clock = all.sum::<i64>() / (others as i64 + 1);
            (share.virtual_time, clock - share.virtual_time)
        };
        // The lag beside three others is what it was: 60.
        assert_eq!(wakes(940, 5000, 3), (5920, 60));
        // It is bounded.
        assert_eq!(wakes(0, 5000, 3).1, 240);
        // With nobody else it means nothing.
        assert_eq!(wakes(940, 5000, 0), (6000, 0));
        // What it had too much counts after a short sleep, and not after a long one.
        assert_eq!(wakes(1060, 10, 3).0, 1060);
        assert_eq!(wakes(1060, 5000, 3).1, 0);
    }

    #[test]
    fn a_runner_that_wakes_preempts_one_that_has_had_its_share() {
        let woken = share(0, 100);
        let preempts = |running: i64, others: &[Share]| {
            EEVDF.preempts(&woken, &share(running, running + 50), others)
        };
        assert!(preempts(10, &[]));
        // Run to parity: the running one has had no more than the mean.
        assert!(!preempts(0, &[]));
        assert!(!preempts(10, &[share(40, 200)]));
        // Another one is next.
        assert!(!preempts(10, &[share(0, 90)]));
    }

    #[test]
    fn a_turn_is_a_slice() {
        let mut running = share(0, 100);
        assert_eq!(EEVDF.turn_left(&running, 0, 1), 100);
        EEVDF.ran(&mut running, 99);
        assert_eq!(EEVDF.turn_left(&running, 99, 1), 1);
        EEVDF.ran(&mut running, 2);
        assert_eq!(running.deadline, 201);
        assert!(EEVDF.gives_way(&running, &share(0, 150), 50));
        assert!(!EEVDF.gives_way(&running, &share(120, 150), 110));
    }
}
