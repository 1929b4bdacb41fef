//! Pending events in the order of their time.

/// An event, which happens when its time has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Event {
    /// Virtual time is over.
    End,
    /// A CPU starts the operation it has decided on, if it is still at that (generation).
    Start(u16, u32),
    /// A line arrives that a CPU has asked for: CPU, which of its requests, and line.
    Arrival(u16, u8, u32),
    /// A bounded wait is over, if the CPU is still at that operation (generation).
    Timeout(u16, u32),
    /// A parked thread runs again.
    Wake(u16),
    /// A runner has been switched to, in this turn (generation).
    Run(u16, u32),
    /// A processor's turn is over (which).
    Slice(u16, u32),
    /// A runner has spun for a window, if it is still at that operation (generation).
    Spin(u16, u32),
    /// The host has polled long enough for a halted runner (generation).
    Poll(u16, u32),
    /// Idle processors look for work.
    Balance,
}

impl Event {
    /// Whether the event does more than hand CPUs from one runner to another.
    pub(crate) fn goes_on(self) -> bool {
        !matches!(
            self,
            Self::Run(..) | Self::Slice(..) | Self::Spin(..) | Self::Poll(..) | Self::Balance
        )
    }
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
        self.entries.push((time, event));
        let mut at = self.entries.len() - 1;
        // Few entries have to move, so moving them one by one beats a call to move them all.
        while at > 0 && self.entries[at - 1].0 <= time {
            self.entries[at] = self.entries[at - 1];
            at -= 1;
        }
        self.entries[at] = (time, event);
    }

    /// The earliest event.
    ///
    /// # Panics
    /// If there is none: the end of virtual time has been.
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
