//! Pending events in the order of their time.

/// An event that happens at a time. A generation makes events outdated: an event does nothing if
/// its CPU or runner has another generation by then.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Event {
    /// Virtual time is over.
    End,
    /// A CPU starts the operation that it has issued: CPU and generation.
    Start(u16, u32),
    /// A line that a CPU has requested arrives: CPU, index of the request, and line.
    Arrival(u16, u8, u32),
    /// A bounded wait is over: CPU and generation of the operation.
    Timeout(u16, u32),
    /// A parked thread runs again: CPU.
    Wake(u16),
    /// The switch to a runner is complete: runner and generation of its turn.
    Run(u16, u32),
    /// A turn on a processor is over: processor and number of the turn.
    Slice(u16, u32),
    /// A runner has spun for a window: runner and generation of the operation.
    Spin(u16, u32),
    /// The host stops polling for a halted runner: runner and generation of the halt.
    Poll(u16, u32),
    /// Idle processors search others for waiting runners.
    Balance,
}

impl Event {
    /// Whether the event can let simulated code go on. The other events only move CPUs between
    /// runners.
    pub(crate) fn goes_on(self) -> bool {
        !matches!(
            self,
            Self::Run(..) | Self::Slice(..) | Self::Spin(..) | Self::Poll(..) | Self::Balance
        )
    }
}

/// A vector of events, sorted so that the earliest is last. Most CPUs are blocked most of the time.
/// Few events are pending, therefore, and a new event is usually among the earliest, so inserting
/// it is faster than a heap.
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
        self.entries.push((time, event));
        let mut at = self.entries.len() - 1;
        // Few entries have to move. Moving them one by one is faster than a call that moves them
        // all.
        while at > 0 && self.entries[at - 1].0 <= time {
            self.entries[at] = self.entries[at - 1];
            at -= 1;
        }
        self.entries[at] = (time, event);
    }

    /// The earliest event.
    ///
    /// # Panics
    /// If there is none, because virtual time is over.
    #[inline]
    pub(crate) fn pop(&mut self) -> (u64, Event) {
        self.entries.pop().expect("an event before the end")
    }

    /// The events that have not happened yet.
    pub(crate) fn pending(&self) -> impl Iterator<Item = Event> {
        self.entries.iter().map(|e| e.1)
    }

    #[inline]
    pub(crate) fn next_time(&self) -> u64 {
        self.entries.last().map_or(0, |e| e.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_come_by_time_and_then_in_the_order_pushed() {
        let mut queue = EventQueue::new();
        let times = [5, 3, 5, 9, 3, 5, 1, 9, 3];
        for (i, &time) in times.iter().enumerate() {
            queue.push(time, Event::Start(i as u16, 0));
        }
        let mut expected: Vec<(u64, usize)> = times.iter().copied().zip(0..).collect();
        expected.sort_unstable();
        for (time, i) in expected {
            assert_eq!(queue.next_time(), time);
            assert_eq!(queue.pop(), (time, Event::Start(i as u16, 0)));
        }
        assert_eq!(queue.pending().count(), 0);
    }

    #[test]
    fn an_event_pushed_at_the_time_just_popped_comes_after_its_equals() {
        let mut queue = EventQueue::new();
        queue.push(7, Event::Start(0, 0));
        queue.push(7, Event::Start(1, 0));
        assert_eq!(queue.pop().1, Event::Start(0, 0));
        queue.push(7, Event::Start(2, 0));
        assert_eq!(queue.pop().1, Event::Start(1, 0));
        assert_eq!(queue.pop().1, Event::Start(2, 0));
    }
}
