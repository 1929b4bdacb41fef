//! Recorded threads: what each thread of a program did with locks, in its order, to be done again with
//! other locks, on another machine, by more threads.
//!
//! The code of a recorded thread does not run, so what it would decide is as it was: the order of its
//! acquisitions, and the time between them. A wait for a condition ends when the thread that ended it
//! has come as far as it was then; or, where the condition behaves as a counter (the items of a queue, the room
//! in it), there is one exactly if the counter is 0.

use std::cell::{Cell, RefCell};
use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

use lockworks::LockType;

use crate::lock::SimLock;
use crate::program::{Program, Setup};
use crate::thread::{
    TimerTicks, increment, let_others_run, operation_done, park, sleep, unpark, work, write,
};

/// The time after which a thread of other work begins anew, and the parts of its work.
const BUSY_NS: f64 = 10e6;
const BUSY_PARTS: u32 = 200;

/// What a recorded thread does next.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Act {
    /// Computes for a time in nanoseconds.
    Compute(f32),
    /// Waits for something else than a lock, for a time in nanoseconds.
    Sleep(f32),
    /// Acquires a lock.
    Acquire(u32),
    /// Acquires a lock as a reader.
    Read(u32),
    /// Acquires a lock, unless another thread has it.
    Try {
        /// The lock.
        lock: u32,
        /// The acts that the thread leaves out then: up to its release.
        without: u32,
    },
    /// Releases a lock that it has acquired.
    Release(u32),
    /// Releases a lock that it has acquired as a reader.
    ReleaseRead(u32),
    /// Signals a condition, for the waits that name this thread.
    Signal,
    /// The same, of a condition that counts: also adds one to its counter, and wakes one that waits for it.
    Give(u32),
    /// Takes one from the counter of a condition. As long as it is 0, waits without the lock.
    Take {
        /// The condition.
        condition: u32,
        /// The lock, which the thread has.
        lock: u32,
    },
    /// Waits until another thread of the recording has signalled this often since the beginning of its
    /// sequence. If that thread does not run, it waits for the time that it had waited, in nanoseconds.
    Await {
        /// The other thread.
        lane: u32,
        /// How often it has signalled then.
        signals: u32,
        /// The time that was recorded.
        ns: f32,
    },
    /// Lets other threads have the CPU.
    Yield,
    /// Completes an operation.
    Operation,
}

/// A place in a sequence at which a thread may begin: it holds no lock.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Entry {
    /// The index of the act.
    pub act: usize,
    /// The time since the beginning of the recording, in nanoseconds.
    pub ns: f64,
    /// How often the thread has signalled before.
    pub signals: u32,
}

/// A thread of the recording: what it does over and over.
#[derive(Clone, Debug, Default)]
pub struct Lane {
    /// What it does. It holds no lock at the end.
    pub acts: Vec<Act>,
    /// Where it may begin. The first is at its beginning.
    pub entries: Vec<Entry>,
    /// How often it signals in one round.
    pub signals: u32,
}

/// A lock of the recording.
#[derive(Clone, Debug)]
pub struct Lock {
    /// Its name.
    pub name: String,
    /// Whether it is a reader-writer lock.
    pub has_readers: bool,
    /// The only thread that uses it, if there is one. Each copy of that thread has one of its own.
    pub owner: Option<u32>,
    /// The lines behind it that each holder writes.
    pub lines: usize,
    /// Its type. None: the lock under test.
    pub kind: Option<&'static LockType>,
}

/// Threads that do the same work.
#[derive(Clone, Debug)]
pub struct Class {
    /// Its name.
    pub name: String,
    /// Its threads.
    pub lanes: Vec<u32>,
    /// The number of its threads whatever the number of all threads is. None: as many as it had for each
    /// thread of the other such classes.
    pub count: Option<usize>,
}

/// The threads of a recording.
#[derive(Clone, Debug)]
pub struct Sequences {
    /// The length of the recording in nanoseconds.
    pub ns: f64,
    /// The clock of the CPUs that it was recorded on, in GHz.
    pub ghz: f64,
    /// The threads.
    pub lanes: Vec<Lane>,
    /// The locks.
    pub locks: Vec<Lock>,
    /// Of each condition that counts, the counter at the beginning.
    pub counters: Vec<u64>,
    /// The classes. Each thread is in one.
    pub classes: Vec<Class>,
    /// The CPUs that other work takes, which uses no lock.
    pub busy: f64,
}

/// A simulated thread: a thread of the recording, and the number of the copy of it.
type Copy = (u32, u32);

impl Sequences {
    /// The number of threads of other work.
    pub fn busy_threads(&self) -> usize {
        self.busy.ceil() as usize
    }

    /// The number of threads that ran, those of other work included.
    pub fn recorded(&self) -> usize {
        let count = |class: &Class| class.count.unwrap_or(class.lanes.len());
        self.classes.iter().map(count).sum::<usize>() + self.busy_threads()
    }

    /// The least number of threads that can run: one of each class.
    pub fn least(&self) -> usize {
        let least = |class: &Class| class.count.unwrap_or(1);
        self.classes.iter().map(least).sum::<usize>() + self.busy_threads()
    }

    /// The simulated threads, if there are this many in all, at least [`Self::least`].
    fn copies(&self, threads: usize) -> Vec<Copy> {
        let fixed = self.classes.iter().filter_map(|class| class.count);
        let rest = threads.saturating_sub(fixed.sum::<usize>() + self.busy_threads());
        let lanes = |class: &Class| class.count.map_or(class.lanes.len(), |_| 0);
        let all: usize = self.classes.iter().map(lanes).sum();
        let mut before = 0;
        let mut copies = Vec::new();
        // Each class has its share of the rest, and the rounding of each goes to the next.
        let mut left = self.classes.iter().filter(|c| c.count.is_none()).count();
        let mut given = 0;
        for class in &self.classes {
            let number = class.count.unwrap_or_else(|| {
                before += lanes(class);
                left -= 1;
                let up_to = (rest * before).div_ceil(all);
                let number = up_to.saturating_sub(given).max(1);
                let number = number.min(rest.saturating_sub(given + left)).max(1);
                given += number;
                number
            });
            let of = |n: usize| {
                (
                    class.lanes[n % class.lanes.len()],
                    (n / class.lanes.len()) as u32,
                )
            };
            copies.extend((0..number).map(of));
        }
        copies
    }

    /// Sets the program up. On CPUs with a faster clock it computes for less time.
    pub(crate) fn program(self: &Arc<Self>, setup: &mut Setup) -> Box<dyn Program> {
        let copies = self.copies(setup.threads);
        let cpus = setup.machine_cpus();
        let call = |key, otherwise| setup.machine.cost(key).map_or(otherwise, |cost| cost.value);
        let sleep_calls_ns = [call("futex_wait_ns", 400.0), call("futex_wake_ns", 280.0)];
        let most = copies.iter().map(|(_, copy)| copy + 1).max().unwrap_or(1);
        let readers = crate::lock_types().find(|lock| lock.name() == "rwlock");
        let locks = self.locks.iter().map(|lock| {
            let kind = lock.kind.unwrap_or_else(|| match readers {
                Some(readers) if lock.has_readers && !setup.lock_type().has_readers() => readers,
                _ => setup.lock_type(),
            });
            let number = lock.owner.map_or(1, |owner| {
                copies
                    .iter()
                    .filter(|(lane, _)| *lane == owner)
                    .count()
                    .max(1)
            });
            let pieces = (0..number).map(|_| Piece {
                lock: setup.lock_of(kind, &lock.name),
                lines: (0..lock.lines)
                    .map(|_| setup.allocate("data behind a lock", 64))
                    .collect(),
            });
            pieces.collect()
        });
        let locks = locks.collect();
        let threads = copies.iter().enumerate().map(|(thread, &copy)| Thread {
            copy,
            slower: self.ghz / setup.machine.clock_ghz(cpus[thread]),
            word: setup.allocate("word of a thread that waits", 4),
            signals: Cell::default(),
            waiting: RefCell::default(),
        });
        Box::new(Replay {
            sequences: Arc::clone(self),
            conditions: self.counters.iter().map(Condition::new).collect(),
            busy: self.busy / self.busy.ceil().max(1.0),
            locks,
            index: copies
                .iter()
                .enumerate()
                .map(|(at, copy)| (*copy, at))
                .collect(),
            copies: most,
            threads: threads.collect(),
            sleep_calls_ns,
        })
    }
}

/// A lock and the data behind it.
struct Piece {
    lock: SimLock,
    lines: Vec<usize>,
}

/// A condition that counts.
struct Condition {
    counter: Cell<u64>,
    waiting: RefCell<VecDeque<usize>>,
}

impl Condition {
    fn new(counter: &u64) -> Self {
        Self {
            counter: Cell::new(*counter),
            waiting: RefCell::default(),
        }
    }
}

/// A simulated thread.
struct Thread {
    copy: Copy,
    /// How much longer it computes than it was recorded.
    slower: f64,
    /// The word that it sleeps on.
    word: usize,
    /// How often it has signalled.
    signals: Cell<u64>,
    /// The threads that wait until it has signalled this often.
    waiting: RefCell<Vec<(u64, usize)>>,
}

/// The program of a recording.
struct Replay {
    sequences: Arc<Sequences>,
    conditions: Vec<Condition>,
    /// The part of its time that a thread of other work computes.
    busy: f64,
    /// The pieces of each lock: one, or one for each copy of its owner.
    locks: Vec<Vec<Piece>>,
    threads: Vec<Thread>,
    /// The threads by what they are copies of.
    index: HashMap<Copy, usize>,
    copies: u32,
    sleep_calls_ns: [f64; 2],
}

impl Replay {
    fn piece(&self, lock: u32, thread: usize) -> &Piece {
        let pieces = &self.locks[lock as usize];
        match pieces.as_slice() {
            [one] => one,
            several => &several[self.threads[thread].copy.1 as usize],
        }
    }

    /// Where a thread begins: its entry, whether its first round is over, and the time until then.
    fn beginning(&self, thread: usize) -> (Entry, bool, f64) {
        let (lane, copy) = self.threads[thread].copy;
        // All threads that are copies of the same number begin at the same time of the recording. Times of
        // several copies are as far from each other as can be.
        let time = (f64::from(copy) / f64::from(self.copies)) * self.sequences.ns;
        let entries = &self.sequences.lanes[lane as usize].entries;
        match entries.get(entries.partition_point(|entry| entry.ns < time)) {
            Some(&entry) => (entry, false, entry.ns - time),
            None => (entries[0], true, self.sequences.ns - time + entries[0].ns),
        }
    }

    /// Lets the time pass that a thread has computed until now, before others see what it does.
    fn arrive(&self, thread: usize) {
        write(self.threads[thread].word, 4, 1);
    }

    fn signal(&self, thread: usize) {
        let own = &self.threads[thread];
        own.signals.set(own.signals.get() + 1);
        loop {
            let done = own.signals.get();
            let mut waiting = own.waiting.borrow_mut();
            let Some(at) = waiting.iter().position(|(signals, _)| *signals <= done) else {
                return;
            };
            let (_, woken) = waiting.swap_remove(at);
            drop(waiting);
            self.wake(woken);
        }
    }

    fn wake(&self, thread: usize) {
        let word = self.threads[thread].word;
        write(word, 4, 1);
        unpark(word);
    }

    fn give(&self, condition: u32) {
        let condition = &self.conditions[condition as usize];
        condition.counter.set(condition.counter.get() + 1);
        let woken = condition.waiting.borrow_mut().pop_front();
        if let Some(woken) = woken {
            self.wake(woken);
        }
    }

    fn take(&self, thread: usize, condition: u32, lock: u32) {
        let condition = &self.conditions[condition as usize];
        loop {
            if let Some(less) = condition.counter.get().checked_sub(1) {
                return condition.counter.set(less);
            }
            let word = self.threads[thread].word;
            write(word, 4, 0);
            // The store takes time, in which another thread may have added one, without the lock.
            if condition.counter.get() > 0 {
                continue;
            }
            condition.waiting.borrow_mut().push_back(thread);
            let lock = &self.piece(lock, thread).lock;
            lock.release(thread);
            park(word, 0);
            lock.acquire(thread);
        }
    }

    /// Waits until another thread has signalled this often.
    fn wait(&self, thread: usize, other: usize, signals: u64) {
        let (own, other) = (&self.threads[thread], &self.threads[other]);
        if other.signals.get() >= signals {
            return;
        }
        write(own.word, 4, 0);
        // The store takes time, in which the other thread may have signalled.
        if other.signals.get() < signals {
            other.waiting.borrow_mut().push((signals, thread));
            park(own.word, 0);
        }
    }
}

impl Program for Replay {
    fn thread(&self, thread: usize) {
        let Some(own) = self.threads.get(thread) else {
            loop {
                for _ in 0..BUSY_PARTS {
                    work(self.busy * BUSY_NS / f64::from(BUSY_PARTS));
                    let_others_run();
                }
                sleep((1.0 - self.busy) * BUSY_NS);
            }
        };
        let (lane, copy) = own.copy;
        let lane = &self.sequences.lanes[lane as usize];
        let (entry, is_over, after) = self.beginning(thread);
        let mut round = u64::from(is_over);
        let mut acts = lane.acts[entry.act..].iter();
        own.signals
            .set(round * u64::from(lane.signals) + u64::from(entry.signals));
        let mut ticks = TimerTicks::new(thread);
        sleep(after);
        loop {
            let Some(act) = acts.next() else {
                acts = lane.acts.iter();
                round += 1;
                continue;
            };
            match *act {
                Act::Compute(ns) => work(f64::from(ns) * own.slower),
                Act::Sleep(ns) => sleep(f64::from(ns)),
                Act::Acquire(lock) => {
                    let piece = self.piece(lock, thread);
                    piece.lock.acquire(thread);
                    piece.lines.iter().for_each(|&line| increment(line, 8));
                }
                Act::Try { lock, without } => {
                    let piece = self.piece(lock, thread);
                    if piece.lock.try_acquire(thread) {
                        piece.lines.iter().for_each(|&line| increment(line, 8));
                    } else if without > 0 {
                        acts.nth(without as usize - 1);
                    }
                }
                Act::Read(lock) => self.piece(lock, thread).lock.acquire_read(thread),
                Act::Release(lock) => self.piece(lock, thread).lock.release(thread),
                Act::ReleaseRead(lock) => self.piece(lock, thread).lock.release_read(thread),
                Act::Signal => {
                    self.arrive(thread);
                    self.signal(thread);
                }
                Act::Give(condition) => {
                    self.arrive(thread);
                    self.give(condition);
                    self.signal(thread);
                }
                Act::Take { condition, lock } => self.take(thread, condition, lock),
                Act::Await { lane, signals, ns } => {
                    let copies = (0..=copy).rev().map(|copy| (lane, copy));
                    match copies.filter_map(|copy| self.index.get(&copy)).next() {
                        Some(&other) => {
                            let of_round = u64::from(self.sequences.lanes[lane as usize].signals);
                            self.wait(thread, other, round * of_round + u64::from(signals));
                        }
                        None => sleep(f64::from(ns)),
                    }
                }
                Act::Yield => {
                    work(self.sleep_calls_ns[1]);
                    sleep(0.0);
                }
                Act::Operation => {
                    operation_done(thread);
                    ticks.pass();
                }
            }
        }
    }

    fn locks(&self) -> Vec<&SimLock> {
        self.locks
            .iter()
            .flatten()
            .map(|piece| &piece.lock)
            .collect()
    }

    fn sleep_calls_ns(&self) -> [f64; 2] {
        self.sleep_calls_ns
    }
}

#[cfg(test)]
mod tests {
    use lockworks::Settings;
    use lockworks_machine::Machine;

    use super::*;
    use crate::{Placement, Run, Scenario, Workload};

    fn sequences(classes: &[(usize, Option<usize>)]) -> Sequences {
        let mut lanes = 0;
        let classes = classes.iter().map(|&(number, count)| {
            let of = lanes..lanes + number as u32;
            lanes = of.end;
            Class {
                name: String::new(),
                lanes: of.collect(),
                count,
            }
        });
        let classes = classes.collect();
        Sequences {
            ns: 1.0,
            ghz: 1.0,
            lanes: vec![Lane::default(); lanes as usize],
            locks: Vec::new(),
            counters: Vec::new(),
            classes,
            busy: 0.0,
        }
    }

    #[test]
    fn classes_grow_alike_and_fixed_ones_stay() {
        let threads = sequences(&[(2, None), (1, Some(1)), (1, None)]);
        assert_eq!((threads.recorded(), threads.least()), (4, 3));
        let as_recorded: Vec<Copy> = (0..4).map(|lane| (lane, 0)).collect();
        assert_eq!(threads.copies(4), as_recorded);
        // Of ten, one is fixed, and the others are two to one.
        let ten = threads.copies(10);
        let of = |lanes: std::ops::Range<u32>| {
            ten.iter().filter(|(lane, _)| lanes.contains(lane)).count()
        };
        assert_eq!([of(0..2), of(2..3), of(3..4)], [6, 1, 3]);
        // No two are the same copy, and each number of threads is met.
        for number in threads.least()..40 {
            let copies = threads.copies(number);
            assert_eq!(copies.len(), number);
            let all: std::collections::BTreeSet<_> = copies.iter().collect();
            assert_eq!(all.len(), number);
        }
    }

    /// The operations of two threads in 2 ms.
    fn operations(acts: [Vec<Act>; 2], counters: Vec<u64>, signals: u32) -> Vec<u64> {
        let lanes = acts.map(|acts| Lane {
            acts,
            entries: vec![Entry {
                act: 0,
                ns: 0.0,
                signals: 0,
            }],
            signals,
        });
        let lock = |name: &str| Lock {
            name: name.to_owned(),
            has_readers: false,
            owner: None,
            lines: 0,
            kind: None,
        };
        let sequences = Sequences {
            lanes: lanes.to_vec(),
            locks: ["a", "b"].map(lock).to_vec(),
            counters,
            ..sequences(&[(2, None)])
        };
        let machine = Machine::find("oracle-x5-4").expect("a machine");
        let scenario = Scenario::new(machine, Workload::recorded("", "", sequences));
        let run = Run {
            scenario: &scenario,
            lock: crate::lock_types()
                .find(|lock| lock.name() == "futex")
                .expect("a lock"),
            threads: 2,
            placement: Placement::Compact,
            sharing: None,
            seconds: 2e-3,
            tunables: Settings::kernel(),
            odd_threads_have_priority: false,
            seed: 1,
        };
        run.run().expect("a run").operations
    }

    #[test]
    fn a_signal_without_the_lock_is_not_missed() {
        // Each waits for the other. The time of the signal moves over that at which the other begins to wait.
        let acts = [0, 1].map(|own: u32| {
            let turn = |n: u32| {
                [
                    Act::Compute((1 + own * n) as f32),
                    Act::Acquire(own),
                    Act::Take {
                        condition: own,
                        lock: own,
                    },
                    Act::Release(own),
                    Act::Compute((1 + (1 - own) * n / 3) as f32),
                    Act::Give(1 - own),
                    Act::Operation,
                ]
            };
            (0..600).flat_map(turn).collect()
        });
        let both = operations(acts, vec![1, 1], 600);
        assert!(both.iter().all(|of| *of > 100), "{both:?}");
    }

    #[test]
    fn signals_of_conditions_that_count_are_signals() {
        let signals = vec![
            Act::Acquire(0),
            Act::Give(0),
            Act::Signal,
            Act::Release(0),
            Act::Compute(10_000.0),
            Act::Operation,
        ];
        let waits = vec![
            Act::Await {
                lane: 0,
                signals: 2,
                ns: 0.0,
            },
            Act::Operation,
        ];
        let both = operations([signals, waits], vec![0], 2);
        assert!(both[0].abs_diff(both[1]) <= 2, "{both:?}");
    }
}
