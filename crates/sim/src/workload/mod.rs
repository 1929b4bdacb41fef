//! What simulated threads do with a lock.
//!
//! A workload's code is here, its constants are in `experiments/workloads/`, each with its mark and
//! source.

mod aim7;
mod futex;
mod kernel_build;
mod leveldb;
mod locktorture;
mod memcached;
mod nginx;
mod will_it_scale;

use std::cell::Cell;
use std::collections::BTreeMap;

use lockworks::LockType;
use lockworks_machine::{Machine, Value};
use rand::Rng;
use serde::Deserialize;

use crate::engine::{Engine, Kind, Op};
use crate::hooks::{Context, change_lockref, operate, with};
use crate::placement::Placement;
use crate::run::Handoffs;

/// What the threads of a run do, with its constants.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Workload {
    /// Its name.
    pub name: String,
    /// What it is, in one line.
    pub title: String,
    placement: String,
    constants: BTreeMap<String, Value>,
}

type Build = fn(&Workload, &mut Setup) -> Box<dyn Program>;

/// Every workload: its description, its code, and its operations' rare delays.
const WORKLOADS: &[(&str, Build)] = &[
    (
        include_str!("../../../../experiments/workloads/locktorture.toml"),
        locktorture::build,
    ),
    (
        include_str!("../../../../experiments/workloads/locktorture-new.toml"),
        locktorture::build,
    ),
    (
        include_str!("../../../../experiments/workloads/open1_threads.toml"),
        will_it_scale::build_open1,
    ),
    (
        include_str!("../../../../experiments/workloads/lock2_threads.toml"),
        will_it_scale::build_lock2,
    ),
    (
        include_str!("../../../../experiments/workloads/leveldb_readrandom.toml"),
        leveldb::build,
    ),
    (
        include_str!("../../../../experiments/workloads/leveldb_mutex.toml"),
        leveldb::build_mutex,
    ),
    (
        include_str!("../../../../experiments/workloads/nginx.toml"),
        nginx::build,
    ),
    (
        include_str!("../../../../experiments/workloads/memcached.toml"),
        memcached::build,
    ),
    (
        include_str!("../../../../experiments/workloads/kernel_build.toml"),
        kernel_build::build,
    ),
    (
        include_str!("../../../../experiments/workloads/aim7_high_systime.toml"),
        aim7::build,
    ),
];

fn parse(text: &str) -> Workload {
    toml::from_str(text).expect("built-in workloads are well formed")
}

impl Workload {
    /// All workloads.
    pub fn all() -> Vec<Self> {
        WORKLOADS.iter().map(|(text, _)| parse(text)).collect()
    }

    /// The workload of this name.
    pub fn find(name: &str) -> Option<Self> {
        Self::all().into_iter().find(|w| w.name == name)
    }

    /// Where its threads run, unless told otherwise.
    pub fn placement(&self) -> Placement {
        match self.placement.as_str() {
            "gather" => self.gather(1),
            other => other.parse().expect("built-in workloads are well formed"),
        }
    }

    /// As many threads together as its constant `gather_threads` says.
    pub fn gather(&self, seed: u64) -> Placement {
        Placement::Gather {
            size: self.constant("gather_threads").max(1.0) as usize,
            seed,
        }
    }

    /// Its constants: key, value with mark and source.
    pub fn constants(&self) -> impl Iterator<Item = (&str, &Value)> {
        self.constants.iter().map(|(k, v)| (k.as_str(), v))
    }

    /// A constant, to be changed.
    pub fn constant_mut(&mut self, key: &str) -> Option<&mut Value> {
        self.constants.get_mut(key)
    }

    /// How many operations a whole job is, where the workload is one that ends, or many of them.
    pub fn job(&self) -> Option<f64> {
        if let Some(acquisitions) = self.constants.get("job_acquisitions") {
            return Some(acquisitions.value);
        }
        let work_s = self.constants.get("build_work_s")?.value;
        Some(1e6 * work_s / self.constant("hot_period_us"))
    }

    fn constant(&self, key: &str) -> f64 {
        self.constants
            .get(key)
            .unwrap_or_else(|| panic!("workload {} has no constant {key}", self.name))
            .value
    }

    pub(crate) fn program(&self, setup: &mut Setup) -> Box<dyn Program> {
        let (_, build) = WORKLOADS
            .iter()
            .find(|(text, _)| parse(text).name == self.name)
            .expect("workloads come from the list");
        build(self, setup)
    }
}

/// A workload set up in simulated memory.
pub(crate) trait Program {
    /// What a thread does; workloads, without end.
    fn thread(&self, thread: usize);
    /// The locks under test.
    fn locks(&self) -> Vec<&SimLock>;
    /// What a lock's waiter takes to ask for sleep, or who wakes it, where that is a system call.
    fn sleep_ns(&self) -> f64 {
        0.0
    }
    /// Delays too rare to sample, as their mean for each operation.
    fn rare_delay_ns(&self) -> f64 {
        0.0
    }
}

/// Where a workload gets its memory and locks from.
pub(crate) struct Setup<'a> {
    engine: &'a mut Engine,
    lock: &'static LockType,
    machine: &'a Machine,
    pub(crate) threads: usize,
}

impl<'a> Setup<'a> {
    pub(crate) fn new(
        engine: &'a mut Engine,
        lock: &'static LockType,
        machine: &'a Machine,
        threads: usize,
    ) -> Self {
        Self {
            engine,
            lock,
            machine,
            threads,
        }
    }

    /// What a computation of so many cycles takes.
    pub(crate) fn cycles_ns(&self, cycles: f64) -> f64 {
        cycles / self.machine.clock_ghz()
    }

    /// Zeroed lines, on the model's home node.
    pub(crate) fn allocate(&mut self, name: &str, bytes: usize) -> usize {
        let home = self.engine.model().home_node;
        self.engine.allocate(name, bytes, home)
    }

    /// A lock under test, on a line of its own.
    pub(crate) fn lock(&mut self, name: &str) -> SimLock {
        let address = self.allocate(name, self.lock.size());
        self.lock_at(address)
    }

    /// A lockref with a lock under test, on a line of its own.
    pub(crate) fn lockref(&mut self, name: &str, count: u64) -> SimLockref {
        // The count follows the lock, in the same word if that is of 4 bytes at most.
        let offset = self.lock.size().max(4);
        let address = self.allocate(name, offset + 4);
        self.engine.set(address + offset, 4, count);
        SimLockref {
            lock: self.lock_at(address),
            count: address + offset,
        }
    }

    /// A lock under test at an address inside other data.
    pub(crate) fn lock_at(&mut self, address: usize) -> SimLock {
        let stride = self.lock.node_size().next_multiple_of(64);
        let nodes = if stride == 0 {
            0
        } else {
            self.allocate("lent queue nodes", stride * self.threads)
        };
        if self.lock.unlocked != 0 {
            self.engine.set(address, 4, self.lock.unlocked.into());
        }
        SimLock {
            kind: self.lock,
            address,
            nodes,
            stride,
            holders: Cell::new(0),
            last: Cell::new(None),
            handoffs: Cell::default(),
            acquisitions: Cell::new(0),
            violations: Cell::new(0),
        }
    }
}

/// A lock under test, with its mutual exclusion and hand-offs watched from outside of the
/// simulation.
pub(crate) struct SimLock {
    kind: &'static LockType,
    address: usize,
    nodes: usize,
    stride: usize,
    holders: Cell<u32>,
    last: Cell<Option<(usize, u16)>>,
    handoffs: Cell<Handoffs>,
    acquisitions: Cell<u64>,
    violations: Cell<u64>,
}

impl SimLock {
    fn node(&self, thread: usize) -> *mut u8 {
        (self.nodes + thread * self.stride) as *mut u8
    }

    /// The place behind it where the next data is, which is so many bytes from its beginning unless
    /// it is larger.
    pub(crate) fn behind(&self, bytes: usize) -> usize {
        self.address + self.kind.size().max(bytes)
    }

    /// Runs `critical` with the lock held.
    pub(crate) fn with(&self, thread: usize, critical: impl FnOnce()) {
        let since = with(|c| c.engine.time());
        // SAFETY: lock and node are zeroed simulated memory of the lock's type; the node is lent
        // until the lock is released.
        unsafe { self.kind.lock(self.address as *mut u8, self.node(thread)) };
        with(|c| c.waited[thread] += c.engine.time() - since);
        self.entered(thread);
        critical();
        self.holders.set(self.holders.get() - 1);
        with(|c| c.engine.note_lock(false));
        // SAFETY: as above, and this thread has acquired the lock.
        unsafe { self.kind.unlock(self.address as *mut u8, self.node(thread)) };
    }

    fn entered(&self, thread: usize) {
        let holders = self.holders.get() + 1;
        self.holders.set(holders);
        if holders > 1 {
            self.violations.set(self.violations.get() + 1);
        }
        let (node, measuring) = with(|c| {
            c.engine.note_lock(true);
            let measuring = c.engine.time() >= c.warm_up;
            (c.engine.model().node(thread), measuring)
        });
        self.acquisitions.set(self.acquisitions.get() + 1);
        let last = self.last.replace(Some((thread, node)));
        if !measuring {
            return;
        }
        let mut handoffs = self.handoffs.get();
        match last {
            Some((last, _)) if last == thread => handoffs.reacquisitions += 1,
            Some((_, from)) if from == node => handoffs.local += 1,
            Some(_) => handoffs.remote += 1,
            None => {}
        }
        self.handoffs.set(handoffs);
    }

    #[cfg(test)]
    pub(crate) fn address(&self) -> usize {
        self.address
    }

    pub(crate) fn handoffs(&self) -> Handoffs {
        self.handoffs.get()
    }

    pub(crate) fn violations(&self) -> u64 {
        self.violations.get()
    }

    pub(crate) fn acquisitions(&self) -> u64 {
        self.acquisitions.get()
    }
}

/// A lockref with a lock under test. The code that goes without the lock is that of
/// `locks/lockref.h`; what is done with it is here, to see the lock from outside.
pub(crate) struct SimLockref {
    lock: SimLock,
    count: usize,
}

impl SimLockref {
    pub(crate) fn get(&self, thread: usize) {
        self.change(thread, true);
    }

    pub(crate) fn put(&self, thread: usize) {
        self.change(thread, false);
    }

    fn change(&self, thread: usize, up: bool) {
        if change_lockref(self.lock.address, self.lock.kind, up) {
            return;
        }
        self.lock.with(thread, || {
            let count = load(self.count, 4) as u32;
            let change = if up { 1 } else { u32::MAX };
            write(self.count, 4, count.wrapping_add(change).into());
        });
    }

    pub(crate) fn lock(&self) -> &SimLock {
        &self.lock
    }

    #[cfg(test)]
    pub(crate) fn count(&self) -> u64 {
        load(self.count, 4)
    }
}

// What a simulated thread can do.

/// Computes for so long.
pub(crate) fn work(nanoseconds: f64) {
    with(|c| c.engine.work((nanoseconds * 1000.0) as u64));
}

/// The same, which takes so many times as long if the core's other hardware thread works, too, when
/// it begins.
pub(crate) fn work_on_shared_core(nanoseconds: f64, slowdown: f64) {
    let shares = with(|c| c.engine.shares_core());
    work(nanoseconds * if shares { slowdown } else { 1.0 });
}

/// Loads data that decides what comes next.
pub(crate) fn load(address: usize, size: u32) -> u64 {
    operate(Op::new(Kind::Load, address, size))
}

/// Loads plain data, without waiting for it.
pub(crate) fn read(address: usize, size: u32) -> u64 {
    operate(Op::new(Kind::Touch, address, size))
}

/// Stores plain data.
pub(crate) fn write(address: usize, size: u32, value: u64) {
    operate(Op {
        a: value,
        ..Op::new(Kind::Store, address, size)
    });
}

/// Sleeps unless the word has become something else than `value`.
pub(crate) fn park(address: usize, value: u32) {
    operate(Op {
        a: value.into(),
        ..Op::new(Kind::Park, address, 4)
    });
}

/// Runs `call` in the kernel, where a thread that shares its CPU loses it only if it sleeps: whoever
/// else is to have it gets it at the end.
pub(crate) fn system_call(call: impl FnOnce()) {
    with(|c| c.engine.enter_kernel());
    call();
    if with(|c| c.engine.leave_kernel()) {
        sleep(0.0);
    }
}

/// Sleeps for so long.
pub(crate) fn sleep(nanoseconds: f64) {
    operate(Op {
        a: (nanoseconds * 1000.0) as u64,
        ..Op::new(Kind::Sleep, 0, 0)
    });
}

/// Wakes who sleeps there, and sees all that this thread has written.
pub(crate) fn unpark(address: usize) {
    operate(Op::new(Kind::Fence, 0, 0));
    operate(Op {
        a: 1,
        ..Op::new(Kind::Unpark, address, 4)
    });
}

/// Atomic exchange.
pub(crate) fn exchange(address: usize, value: u32) -> u32 {
    operate(Op {
        a: value.into(),
        ..Op::new(Kind::Exchange, address, 4)
    }) as u32
}

/// Atomic compare-and-exchange: the old value.
pub(crate) fn compare_exchange(address: usize, expected: u32, value: u32) -> u32 {
    operate(Op {
        a: expected.into(),
        b: value.into(),
        ..Op::new(Kind::CompareExchange, address, 4)
    }) as u32
}

/// Atomic addition.
pub(crate) fn add(address: usize, value: i32) {
    operate(Op {
        a: u64::from(value as u32),
        ..Op::new(Kind::Add, address, 4)
    });
}

/// Adds one to plain data.
pub(crate) fn increment(address: usize, size: u32) {
    let value = read(address, size);
    write(address, size, value + 1);
}

/// One in `n`, at random.
pub(crate) fn one_in(thread: usize, n: u32) -> bool {
    random(thread, n) == 0
}

/// 0 .. n-1, at random.
pub(crate) fn random(thread: usize, n: u32) -> u32 {
    with(|c| ((u64::from(c.generators[thread].next_u32()) * u64::from(n)) >> 32) as u32)
}

/// Timer ticks: they take a thread out of a queue's order every now and then, as on any real
/// machine. Without them a FIFO lock would serve its threads in one fixed order for ever. One that
/// comes while the thread waits for a lock costs it nothing.
pub(crate) struct Noise {
    thread: usize,
    /// When the next one comes, in time that the thread does not wait.
    next: u64,
}

impl Noise {
    pub(crate) fn new(thread: usize) -> Self {
        let period = with(|c| c.engine.model().tick_period);
        let next = period / 1024 * u64::from(random(thread, 1024));
        Self { thread, next }
    }

    /// A place in the thread's loop where ticks are taken.
    pub(crate) fn pass(&mut self) {
        let now = with(|c| c.engine.time() - c.waited[self.thread]);
        if now >= self.next {
            let model = |c: &mut Context| (c.engine.model().tick_period, c.engine.model().tick_ns);
            let (period, tick) = with(model);
            work(f64::from(tick / 2 + random(self.thread, tick.max(1))));
            self.next = now + period.max(1);
        }
    }
}

/// An operation of the workload is complete.
pub(crate) fn operation_done(thread: usize) {
    with(|c| {
        if c.engine.time() >= c.warm_up {
            c.operations[thread] += 1;
        }
    });
}
