//! Pending events in the order of their time.

/// What happens when an event's time has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Event {
    /// A CPU starts the operation it has decided on.
    Start(u16),
    /// A line arrives: request number.
    Arrival(u32),
    /// A bounded wait is over, if the CPU is still at that operation (generation).
    Timeout(u16, u32),
    /// A parked thread runs again.
    Wake(u16),
}

/// A sorted vector, earliest last. Most CPUs are blocked most of the time, so few events are
/// pending, new ones are among the earliest, and insertion beats a heap.
pub(crate) struct EventQueue {
    entries: Vec<(u64, Event)>,
}

impl EventQueue {
    pub(crate) fn new() -> Self {
        Self {
            entries: Vec::with_capacity(1024),
        }
    }

    /// Events of equal time happen in the order in which they were pushed.
    #[inline]
    pub(crate) fn push(&mut self, time: u64, event: Event) {
        let mut at = self.entries.len();
        while at > 0 && self.entries[at - 1].0 <= time {
            at -= 1;
        }
        // Entries from `at` on are not later than `time`; the new one goes before them.
        self.entries.insert(at, (time, event));
    }

    #[inline]
    pub(crate) fn pop(&mut self) -> Option<(u64, Event)> {
        self.entries.pop()
    }

    #[inline]
    pub(crate) fn next_time(&self) -> u64 {
        self.entries.last().map_or(u64::MAX, |e| e.0)
    }
}
