//! Violations: the ways in which a run can break a promise.

use std::fmt;

use crate::site::Site;

/// A promise that was not kept.
#[derive(Clone, Debug, PartialEq)]
pub enum Violation {
    /// Two threads are in the critical section at once.
    MutualExclusion {
        /// The thread that holds the lock.
        holder: usize,
        /// The thread that has acquired the lock too.
        other: usize,
    },
    /// More threads have passed a semaphore than it has tokens.
    Tokens {
        /// The thread that has passed it.
        thread: usize,
        /// The number of tokens, which other threads have.
        tokens: u8,
    },
    /// Nothing orders two accesses to the protected data.
    DataRace {
        /// The thread with the later access.
        thread: usize,
    },
    /// Nothing orders an access to the lock's memory after another one, and one of the two is not atomic.
    Race {
        /// The thread with the later access.
        thread: usize,
        /// That access.
        site: &'static Site,
    },
    /// Threads wait and no thread can go on.
    Deadlock {
        /// The threads that wait.
        threads: Vec<usize>,
    },
    /// Threads can go on, but never to the end.
    Livelock,
    /// A thread touched a queue node that its owner does not use.
    NodeReleased {
        /// The thread that the node belongs to.
        owner: usize,
        /// The thread that touched the node.
        thread: usize,
    },
    /// A thread reuses memory, and nothing orders that after another thread's access.
    MemoryReused {
        /// The thread that reuses it.
        thread: usize,
    },
    /// A queue node was read before its owner's initialisation was visible.
    Uninitialised {
        /// The thread that read it.
        thread: usize,
    },
    /// There is no memory at that address.
    NoMemory {
        /// The thread that accessed it.
        thread: usize,
        /// The address.
        address: usize,
        /// The operation.
        site: &'static Site,
    },
    /// A piece of the lock word has an impossible value.
    OutOfRange {
        /// The piece.
        piece: &'static str,
        /// Its value.
        value: u64,
    },
    /// A thread has seen a promise broken.
    Promise {
        /// The thread.
        thread: usize,
        /// The broken promise.
        what: &'static str,
    },
    /// Threads that arrived later acquired the lock before a waiter more often than it promises.
    Bypassed {
        /// The waiter.
        thread: usize,
        /// The number of acquisitions by threads that arrived after the waiter.
        times: u8,
    },
    /// The lock is free and its queue head asleep for longer than it promises.
    Idle {
        /// The queue head.
        thread: usize,
        /// The number of operations of all threads meanwhile; None: it sleeps for ever.
        operations: Option<u8>,
    },
    /// All threads have ended, but something is not as at the start.
    LeftBehind {
        /// The thing that is not.
        what: &'static str,
    },
}

impl Violation {
    /// The kind of violation, for programs.
    pub fn name(&self) -> &'static str {
        match self {
            Self::MutualExclusion { .. } => "mutual_exclusion",
            Self::Tokens { .. } => "tokens",
            Self::DataRace { .. } | Self::Race { .. } => "data_race",
            Self::Deadlock { .. } => "deadlock",
            Self::Livelock => "livelock",
            Self::NodeReleased { .. } => "node_released",
            Self::MemoryReused { .. } => "memory_reused",
            Self::Uninitialised { .. } => "uninitialised",
            Self::NoMemory { .. } => "no_memory",
            Self::OutOfRange { .. } => "out_of_range",
            Self::Promise { .. } => "promise",
            Self::Bypassed { .. } => "bypassed",
            Self::Idle { .. } => "idle",
            Self::LeftBehind { .. } => "left_behind",
        }
    }
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::MutualExclusion { holder, other } => write!(
                f,
                "mutual exclusion: thread {other} has acquired the lock while thread {holder} holds it"
            ),
            Self::Tokens { thread, tokens } => {
                write!(f, "semaphore: thread {thread} has passed it while ")?;
                match tokens {
                    1 => f.write_str("another thread has its only token"),
                    n => write!(f, "{n} others have its {n} tokens"),
                }
            }
            Self::DataRace { thread } => write!(
                f,
                "data race: nothing orders the access of thread {thread} to the protected data after the access before it"
            ),
            Self::Race { thread, site } => write!(
                f,
                "data race: nothing orders thread {thread}'s {site} ({}:{}) after another thread's access to the \
                 same memory, and one of the two is not atomic",
                site.file(),
                site.line
            ),
            Self::Deadlock { threads } => {
                let list: Vec<String> = threads.iter().map(usize::to_string).collect();
                let (noun, verb) = match threads.len() {
                    1 => ("thread", "waits"),
                    _ => ("threads", "wait"),
                };
                write!(f, "deadlock: {noun} {} {verb} for ever", list.join(", "))
            }
            Self::Livelock => write!(f, "livelock: threads can go on, but never to the end"),
            Self::NodeReleased { owner, thread } => write!(
                f,
                "node use: thread {thread} touches a queue node that its owner, thread {owner}, does not use"
            ),
            Self::MemoryReused { thread } => write!(
                f,
                "memory reuse: nothing orders the end of the memory's use by thread {thread} after another thread's access to it"
            ),
            Self::Uninitialised { thread } => write!(
                f,
                "uninitialised: thread {thread} reads a field of a queue node that is not initialised"
            ),
            Self::NoMemory {
                thread,
                address,
                site,
            } => write!(
                f,
                "bad address: thread {thread} accesses {} ({}:{}) at {address:#x}, which is in no lock or queue node",
                site.operand(),
                site.file(),
                site.line
            ),
            Self::OutOfRange { piece, value } => {
                write!(f, "lock word: {piece} has become {value:#x}")
            }
            Self::Promise { thread, what } => write!(f, "promise: thread {thread}: {what}"),
            Self::Bypassed { thread, times } => write!(
                f,
                "order: acquisitions by later arrivals while thread {thread} waited: {times}"
            ),
            Self::Idle { thread, operations } => {
                write!(
                    f,
                    "idle: the lock is free and thread {thread}, its queue head, asleep "
                )?;
                match operations {
                    Some(operations) => write!(f, "after {operations} operations"),
                    None => f.write_str("for ever"),
                }
            }
            Self::LeftBehind { what } => {
                write!(f, "left behind: all threads have ended, but {what}")
            }
        }
    }
}
