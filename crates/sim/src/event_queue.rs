//! Pending events in the order of their time.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// An event that happens at a time. A generation makes events outdated: an event does nothing if
/// its CPU or runner has another generation by then.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
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
    /// The extension of a turn is over: processor and number of the turn.
    ExtensionEnd(u16, u32),
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
            Self::Run(..)
                | Self::Slice(..)
                | Self::ExtensionEnd(..)
                | Self::Spin(..)
                | Self::Poll(..)
                | Self::Balance
        )
    }
}

/// The number of events that are soon when they are chosen anew, and the number at which they are.
const FEW: usize = 32;
const MANY: usize = 128;

/// Stands for the earliest event if there is none.
const NONE: (u64, Event) = (u64::MAX, Event::End);

/// The events that have not happened yet.
///
/// Most CPUs are blocked most of the time. Few events are due soon, therefore, and a new event is
/// usually among the earliest, so inserting it into a sorted vector is faster than a heap. The ends
/// of turns and of bounded waits are due much later. There can be thousands of them, since most
/// waits end before, so they are in a heap until they are due soon.
pub(crate) struct EventQueue {
    /// The earliest event, or [`NONE`].
    first: (u64, Event),
    /// The other events that are soon, sorted so that the earliest is last.
    soon: Vec<(u64, Event)>,
    /// All events that are soon are before this time, and no later event is. So events of equal
    /// time are always in one of the two places.
    horizon: u64,
    /// The other events, each with its time and the number of events that came here before it.
    later: BinaryHeap<Reverse<(u64, u64, Event)>>,
    came_later: u64,
}

impl EventQueue {
    pub(crate) fn new() -> Self {
        Self {
            first: NONE,
            soon: Vec::with_capacity(MANY),
            horizon: 0,
            later: BinaryHeap::new(),
            came_later: 0,
        }
    }

    /// Events of equal time happen in the order in which they were pushed.
    #[inline]
    pub(crate) fn push(&mut self, time: u64, event: Event) {
        if time >= self.horizon {
            self.push_later(time, event);
        } else if time < self.first.0 {
            self.soon.push(self.first);
            self.first = (time, event);
        } else {
            self.push_soon(time, event);
        }
    }

    #[inline]
    fn push_soon(&mut self, time: u64, event: Event) {
        self.soon.push((time, event));
        let mut at = self.soon.len() - 1;
        // Few entries have to move. Moving them one by one is faster than a call that moves them
        // all.
        while at > 0 && self.soon[at - 1].0 <= time {
            self.soon[at] = self.soon[at - 1];
            at -= 1;
        }
        self.soon[at] = (time, event);
        if self.soon.len() >= MANY {
            self.lower_horizon();
        }
    }

    #[inline(never)]
    fn push_later(&mut self, time: u64, event: Event) {
        self.later.push(Reverse((time, self.came_later, event)));
        self.came_later += 1;
        if self.first == NONE {
            self.first = self.raise_horizon();
        }
    }

    /// Makes the latest of the events that are soon later ones, when there are many.
    #[inline(never)]
    fn lower_horizon(&mut self) {
        self.horizon = self.soon[self.soon.len() - FEW].0 + 1;
        let later = self.soon.partition_point(|e| e.0 >= self.horizon);
        for (time, event) in self.soon.drain(..later).rev() {
            self.later.push(Reverse((time, self.came_later, event)));
            self.came_later += 1;
        }
    }

    /// Makes the earliest of the later events soon, when no event is, and returns the first one.
    #[inline(never)]
    fn raise_horizon(&mut self) -> (u64, Event) {
        self.horizon = 0;
        while let Some(&Reverse((time, _, event))) = self.later.peek()
            && (self.soon.len() < FEW || time < self.horizon)
        {
            self.later.pop();
            self.soon.push((time, event));
            self.horizon = time + 1;
        }
        self.soon.reverse();
        self.soon.pop().unwrap_or(NONE)
    }

    /// Removes and returns the earliest event, or [`Event::End`] if there is none.
    #[inline]
    pub(crate) fn pop(&mut self) -> (u64, Event) {
        let next = self.soon.pop();
        let next = next.unwrap_or_else(|| self.raise_horizon());
        std::mem::replace(&mut self.first, next)
    }

    /// The events that have not happened yet, in any order.
    pub(crate) fn pending(&self) -> impl Iterator<Item = Event> {
        let later = self.later.iter().map(|Reverse((.., event))| *event);
        let first = (self.first != NONE).then_some(self.first.1);
        let soon = self.soon.iter().map(|e| e.1);
        first.into_iter().chain(soon).chain(later)
    }

    /// The time of the earliest event.
    #[inline]
    pub(crate) fn next_time(&self) -> u64 {
        self.first.0
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use rand::Rng;
    use rand_pcg::Pcg32;

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
    /// With many events of few different times, so that they move both ways.
    #[test]
    fn events_that_were_later_keep_their_order() {
        let mut random = Pcg32::new(1, 0);
        let mut queue = EventQueue::new();
        let mut expected = BTreeSet::new();
        let mut now = 0;
        for i in 0..100_000 {
            // The number of pending events grows to a thousand and falls to none, again and again.
            if random.next_u32() % 1000 > i / 10 % 1000 {
                let time = now + u64::from(random.next_u32() % 64).pow(2) / 8;
                queue.push(time, Event::Start(0, i));
                expected.insert((time, i));
            } else if let Some((time, i)) = expected.pop_first() {
                now = time;
                assert_eq!(queue.next_time(), time);
                assert_eq!(queue.pop(), (time, Event::Start(0, i)));
            }
            assert_eq!(queue.pending().count(), expected.len());
        }
    }
}
