//! Linux' fair scheduler up to 6.5 (CFS), simplified.
//!
//! The runner that has run least is next. A turn is a share of the scheduling latency. A runner that
//! has slept is put a little ahead, and preempts one that has run much longer.

use super::{Policy, Share};

pub(crate) struct Cfs {
    /// The period in which each runner of a processor has a turn.
    pub(crate) latency: u64,
    /// The shortest turn.
    pub(crate) granularity: u64,
    /// A runner that wakes preempts one that has run longer by this time.
    pub(crate) wakeup_granularity: u64,
}

impl Policy for Cfs {
    fn period(&self) -> u64 {
        self.latency
    }

    /// The clock shows the least virtual time, but does not go back.
    fn clock(&self, before: i64, shares: &mut dyn Iterator<Item = Share>) -> i64 {
        let least = shares.map(|share| share.virtual_time).min();
        least.map_or(before, |least| least.max(before))
    }

    fn ran(&self, share: &mut Share, time: i64) {
        share.virtual_time += time;
    }

    fn sleeps(&self, _: &mut Share, _: i64) {}

    fn wakes(&self, share: &mut Share, clock: i64, _others: usize) {
        let ahead = clock - self.latency as i64 / 2;
        share.virtual_time = share.virtual_time.max(ahead);
    }

    fn rank(&self, share: &Share, _clock: i64) -> (bool, i64) {
        (false, share.virtual_time)
    }

    fn preempts(&self, woken: &Share, running: &Share, _others: &[Share]) -> bool {
        running.virtual_time - woken.virtual_time > self.wakeup_granularity as i64
    }

    fn turn_left(&self, _running: &Share, ran: u64, waiting: usize) -> u64 {
        let share = self.latency / (1 + waiting as u64);
        share.max(self.granularity).saturating_sub(ran)
    }

    /// Its turn is over, whoever is next.
    fn gives_way(&self, _running: &Share, _next: &Share, _clock: i64) -> bool {
        true
    }

    fn may_go_first(&self, share: &Share, least: i64, _clock: i64) -> bool {
        share.virtual_time - least <= self.wakeup_granularity as i64
    }
}
