//! The events of threads that use locks, in order.

/// A record of a part of a run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Timeline {
    /// The threads, by number.
    pub threads: Vec<TimelineThread>,
    /// The events. Those of one thread are in the order of their times.
    pub events: Vec<TimelineEvent>,
    /// The places in the code that events name.
    pub places: Vec<String>,
}

/// A thread of a timeline.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TimelineThread {
    /// The name of the thread.
    pub name: String,
    /// The NUMA node on which the thread began. `None`: not known.
    pub node: Option<u32>,
}

/// A change of what a thread does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TimelineEvent {
    /// The time since the beginning of the record, in nanoseconds.
    pub ns: u64,
    /// The number of the thread.
    pub thread: u32,
    /// The activity of the thread from now on.
    pub what: Activity,
    /// The number of the place in the code. `None`: not known.
    pub place: Option<u32>,
}

/// An activity that a thread begins or ends. A lock is named by its address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Activity {
    /// It asks for the lock.
    Waits(usize),
    /// It has acquired the lock.
    Holds(usize),
    /// It begins to release the lock.
    Releases(usize),
    /// It goes to sleep: it parks, or its virtual CPU halts.
    Sleeps,
    /// It runs again after a sleep.
    Wakes,
    /// It loses its CPU to another thread.
    LosesCpu,
    /// It has a CPU again.
    GetsCpu,
}
