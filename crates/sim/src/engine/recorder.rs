//! A record of what threads do, for pictures of a run.

use lockworks_measurements::{Activity, TimelineEvent};

/// Records events from a time on, up to a number of them.
pub(crate) struct Recorder {
    /// The time at which the record begins, in picoseconds.
    begin: u64,
    /// The number of events that are recorded at most.
    most: usize,
    /// The time of the last event of each thread, in picoseconds.
    last: Vec<u64>,
    events: Vec<TimelineEvent>,
}

impl Recorder {
    pub(crate) fn new(begin: u64, most: usize, threads: usize) -> Self {
        Self {
            begin,
            most,
            last: vec![begin; threads],
            events: Vec::new(),
        }
    }

    #[inline]
    pub(crate) fn note(&mut self, thread: usize, now: u64, what: Activity) {
        if now >= self.begin && self.events.len() < self.most {
            // A thread's own time may be ahead of the event that takes its CPU away.
            let at = now.max(self.last[thread]);
            self.last[thread] = at;
            self.events.push(TimelineEvent {
                ns: (at - self.begin) / 1000,
                thread: thread as u32,
                what,
                place: None,
            });
        }
    }

    pub(crate) fn into_events(self) -> Vec<TimelineEvent> {
        self.events
    }
}
