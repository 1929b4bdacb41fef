//! The attributes of a local state: how far a thread is with locks, nodes and interruptions.

use crate::headers::Mark;

/// The part of a local state that is not on the thread's stack.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct Attributes {
    /// The number of slot nodes in use.
    pub(crate) depth: u8,
    /// The lent nodes in use, one bit each.
    pub(crate) lent: u8,
    /// The locks held, one bit each, until the first operation of the release is done.
    pub(crate) holding: u8,
    /// The locks held as a reader, likewise.
    pub(crate) reading: u8,
    /// The locks among these whose release has begun.
    leaving: u8,
    /// The locks being acquired, one bit each.
    pub(crate) wanted: u8,
    /// The locks being acquired that the thread had before, one bit each.
    pub(crate) again: u8,
    /// No operation has been done since the last acquisition began.
    pub(crate) fresh: bool,
    /// The number of interruptions that are running.
    pub(crate) level: u8,
    /// The levels at which an interruption has begun, one bit each.
    pub(crate) interrupted: u8,
    /// The thread is in the child of a fork.
    pub(crate) forked: bool,
    /// The child of a fork has begun, but not its other threads.
    pub(crate) alone: bool,
    /// Meanwhile: the slots, by the number of their threads, that are free, one bit each.
    pub(crate) free: u64,
    /// There are no queues of NUMA nodes any more.
    pub(crate) queues_ended: bool,
    /// The thread did not survive a fork.
    pub(crate) dead: bool,
    /// The result of a litmus test so far: its digits plus 1, four bits each.
    pub(crate) result: u64,
}

impl Attributes {
    /// Notes that the thread's operation is done.
    pub(crate) fn go_on(&mut self) {
        self.fresh = false;
        self.holding &= !self.leaving;
        self.reading &= !self.leaving;
        self.leaving = 0;
    }

    /// Notes how far the client is with `lock`, for which it lends `node`.
    pub(crate) fn note(&mut self, mark: Mark, lock: usize, node: usize) {
        match mark {
            Mark::Begin => {
                self.lent |= 1 << node;
                self.again |= (self.wanted | self.holding) & 1 << lock;
                self.wanted |= 1 << lock;
                self.fresh = true;
            }
            Mark::Acquired => {
                self.wanted &= !(1 << lock);
                self.again &= !(1 << lock);
                self.holding |= 1 << lock;
            }
            Mark::Reads => {
                self.wanted &= !(1 << lock);
                self.reading |= 1 << lock;
            }
            Mark::Release => self.leaving |= 1 << lock,
            Mark::Released => {
                self.holding &= !(1 << lock);
                self.reading &= !(1 << lock);
                self.wanted &= !(1 << lock);
                self.again &= !(1 << lock);
                self.lent &= !(1 << node);
            }
            Mark::Destroyed => {}
        }
    }

    /// These attributes without the result of a litmus test, which no operation depends on.
    pub(crate) fn without_result(self) -> Self {
        Self { result: 0, ..self }
    }

    /// Notes that an interruption begins.
    pub(crate) fn interrupt(&mut self) {
        self.interrupted |= 1 << self.level;
        self.level += 1;
        self.fresh = false;
        self.leaving = 0;
    }

    /// The attributes with which a thread of the child of a fork begins.
    pub(crate) fn of_child(queues_ended: bool) -> Self {
        Self {
            forked: true,
            queues_ended,
            ..Self::default()
        }
    }

    /// The attributes of a thread that is not in the child of a fork.
    pub(crate) fn of_dead() -> Self {
        Self {
            dead: true,
            ..Self::default()
        }
    }

    /// Notes that the thread forks.
    pub(crate) fn fork(&mut self) {
        self.forked = true;
        self.alone = true;
        self.fresh = false;
        self.leaving = 0;
    }

    /// Notes that an interruption ends which began with the attributes `before`.
    pub(crate) fn resume(&mut self, before: &Self) {
        self.level = before.level;
        self.fresh = before.fresh;
        self.leaving = before.leaving;
        self.holding = before.holding;
        self.reading = before.reading;
        self.wanted = before.wanted;
        self.again = before.again;
    }
}
