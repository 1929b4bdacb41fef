//! The simulator's implementation of the operation set, which the locks' C code calls.
//!
//! The hooks run in the coroutine of a CPU. They reach the engine through a thread-local pointer
//! and never borrow it across a switch of coroutines.

use std::cell::Cell;
use std::ffi::{CStr, c_char};

use corosensei::Yielder;
use lockworks::{LockType, Settings, table};
use rand_pcg::Pcg32;

use crate::engine::{Engine, Kind, LINE, Op};

/// The state of this thread's current run, as far as hooks need it.
pub(crate) struct Context {
    pub(crate) engine: Engine,
    pub(crate) yielders: Vec<*const Yielder<(), ()>>,
    pub(crate) tunables: Settings,
    pub(crate) nodes: usize,
    /// The address of the queues of each NUMA node. `None` until their first use.
    pub(crate) node_queues: Vec<Option<usize>>,
    /// The address of the table of parked queue heads. `None` until its first use.
    pub(crate) parked_heads: Option<usize>,
    /// The address of a line for each slot, which says for which lock the slot is parked. `None`
    /// until the first use.
    pub(crate) slots_wanted: Option<usize>,
    pub(crate) events: Vec<u64>,
    pub(crate) random: Vec<u64>,
    pub(crate) generators: Vec<Pcg32>,
    pub(crate) priority: Vec<bool>,
    /// The time that each thread has waited for locks.
    pub(crate) waited: Vec<u64>,
    pub(crate) operations: Vec<u64>,
    /// The number of atomic read-modify-writes of locks.
    pub(crate) rmws: u64,
    /// The time that the read-modify-writes of locks took, in picoseconds.
    pub(crate) rmw_time: u64,
    pub(crate) warm_up: u64,
    /// The time of a call that puts a thread to sleep or wakes one, in picoseconds.
    pub(crate) sleep_ps: u64,
}

unsafe extern "C" {
    static lw_sim_lock_types: [*const LockType; 1];
    static lw_sim_node_size: usize;
    static lw_sim_nodes_per_slot: usize;
    safe static lw_sim_node_queues_size: usize;
    safe static lw_sim_parked_heads_size: usize;
    static lw_sim_event_names: [*const c_char; 1];
    fn lw_sim_lockref_change(reference: *mut u8, lock: *const LockType, up: bool) -> bool;
}

/// The locks, compiled for the simulator.
pub fn lock_types() -> impl Iterator<Item = &'static LockType> {
    // SAFETY: the table ends with NULL and has pointers to constants.
    unsafe { table((&raw const lw_sim_lock_types).cast()).map(|p: *const LockType| &*p) }
}

/// The names of the events in `locks/registry/events.h`, in the order of their numbers.
pub(crate) fn event_names() -> impl Iterator<Item = &'static str> {
    // SAFETY: the table ends with NULL and has string literals.
    unsafe {
        table((&raw const lw_sim_event_names).cast())
            .map(|p| CStr::from_ptr(p).to_str().expect("event names are ASCII"))
    }
}

/// Increments (`up`) or decrements the count of the lockref at `address`, if that is possible
/// without the lock. Returns whether it did. If locks of this type are too large for a lockref, it
/// never is.
pub(crate) fn change_lockref(address: usize, lock: &'static LockType, up: bool) -> bool {
    // SAFETY: the address of a lock of this type in simulated memory, with the count beside it.
    unsafe { lw_sim_lockref_change(address as *mut u8, lock, up) }
}

/// The size of a slot's queue nodes in bytes.
pub(crate) fn slot_nodes_size() -> usize {
    // SAFETY: constants.
    unsafe { lw_sim_nodes_per_slot * lw_sim_node_size }
}

thread_local! {
    static CONTEXT: Cell<*mut Context> = const { Cell::new(std::ptr::null_mut()) };
}

/// Makes the hooks of this thread use `context` until the guard is dropped.
pub(crate) fn enter(context: *mut Context) -> impl Drop {
    struct Guard;
    impl Drop for Guard {
        fn drop(&mut self) {
            CONTEXT.set(std::ptr::null_mut());
        }
    }
    CONTEXT.set(context);
    Guard
}

/// Runs `f` on the context of this thread's run.
#[inline]
pub(crate) fn with<R>(f: impl FnOnce(&mut Context) -> R) -> R {
    // SAFETY: hooks run inside `run::run`, which has set the pointer and holds no borrow while a
    // coroutine runs; `f` does not switch, so no two borrows meet.
    f(unsafe { &mut *CONTEXT.get() })
}

/// Issues `op` to the engine, and suspends the CPU's coroutine until it is done.
///
/// Inlined for the same reason as [`Engine::issue`].
#[inline(always)]
pub(crate) fn operate(op: Op) -> u64 {
    // SAFETY: as in `with`.
    let engine = unsafe { &mut (*CONTEXT.get()).engine };
    let cpu = engine.current;
    match engine.issue(op) {
        Some(result) => result,
        None => suspend(cpu),
    }
}

/// Suspends the coroutine of `cpu`, which is running, until its operation is done.
#[inline(never)]
fn suspend(cpu: usize) -> u64 {
    let yielder = with(|c| c.yielders[cpu]);
    // SAFETY: this CPU's yielder; it lives as long as its coroutine, which is running.
    unsafe { (*yielder).suspend(()) };
    with(|c| c.engine.result())
}

#[inline(always)]
fn releases(order: u32) -> bool {
    order >= ORDER_RELEASE
}

/// `LW_SIM_release`; acq_rel and seq_cst follow.
const ORDER_RELEASE: u32 = 3;
const ORDER_SEQ_CST: u32 = 5;

#[inline(always)]
fn write(kind: Kind, p: usize, size: u32, a: u64, b: u64, order: u32) -> u64 {
    operate(Op {
        a,
        b,
        release: releases(order),
        ..Op::new(kind, p, size)
    })
}

/// Issues an atomic read-modify-write of a lock and counts it. Those of workloads do not come here.
#[inline(always)]
fn read_modify_write(kind: Kind, p: usize, size: u32, a: u64, b: u64, order: u32) -> u64 {
    let since = with(|c| c.engine.time());
    let old = write(kind, p, size, a, b, order);
    with(|c| {
        c.rmws += 1;
        c.rmw_time += c.engine.time() - since;
    });
    old
}

#[unsafe(no_mangle)]
extern "C" fn lw_sim_load(p: usize, size: u32, _order: u32) -> u64 {
    operate(Op::new(Kind::Load, p, size))
}

#[unsafe(no_mangle)]
extern "C" fn lw_sim_store(p: usize, size: u32, value: u64, order: u32) {
    write(Kind::Store, p, size, value, 0, order);
}

#[unsafe(no_mangle)]
extern "C" fn lw_sim_xchg(p: usize, size: u32, value: u64, order: u32) -> u64 {
    read_modify_write(Kind::Exchange, p, size, value, 0, order)
}

#[unsafe(no_mangle)]
extern "C" fn lw_sim_cmpxchg(p: usize, size: u32, expected: u64, value: u64, order: u32) -> u64 {
    read_modify_write(Kind::CompareExchange, p, size, expected, value, order)
}

#[unsafe(no_mangle)]
extern "C" fn lw_sim_fetch_or(p: usize, size: u32, bits: u64, order: u32) -> u64 {
    read_modify_write(Kind::Or, p, size, bits, 0, order)
}

#[unsafe(no_mangle)]
extern "C" fn lw_sim_fetch_and(p: usize, size: u32, bits: u64, order: u32) -> u64 {
    read_modify_write(Kind::And, p, size, bits, 0, order)
}

#[unsafe(no_mangle)]
extern "C" fn lw_sim_fetch_add(p: usize, size: u32, value: u64, order: u32) -> u64 {
    read_modify_write(Kind::Add, p, size, value, 0, order)
}

#[unsafe(no_mangle)]
extern "C" fn lw_sim_fence(order: u32) {
    if order == ORDER_SEQ_CST {
        operate(Op::new(Kind::Fence, 0, 0));
    }
}

#[unsafe(no_mangle)]
extern "C" fn lw_sim_await(
    p: usize,
    size: u32,
    mask: u64,
    value: u64,
    equal: bool,
    _order: u32,
) -> u64 {
    operate(Op {
        a: mask,
        b: value,
        equal,
        ..Op::new(Kind::Await, p, size)
    })
}

#[unsafe(no_mangle)]
extern "C" fn lw_sim_await_bounded(
    p: usize,
    size: u32,
    mask: u64,
    value: u64,
    equal: bool,
    budget: u32,
) -> u64 {
    operate(Op {
        a: mask,
        b: value,
        equal,
        polls: budget,
        ..Op::new(Kind::Await, p, size)
    })
}

#[unsafe(no_mangle)]
extern "C" fn lw_sim_pause() {
    operate(Op::new(Kind::Pause, 0, 0));
}

#[unsafe(no_mangle)]
extern "C" fn lw_sim_park(p: usize, value: u32) {
    with(|c| c.engine.work(c.sleep_ps));
    operate(Op {
        a: value.into(),
        ..Op::new(Kind::Park, p, 4)
    });
}

#[unsafe(no_mangle)]
extern "C" fn lw_sim_unpark(p: usize, _slot: u32) {
    with(|c| c.engine.work(c.sleep_ps));
    operate(Op {
        a: 1,
        ..Op::new(Kind::Unpark, p, 4)
    });
}

#[unsafe(no_mangle)]
extern "C" fn lw_sim_prefetch_write(p: usize) {
    operate(Op::new(Kind::Prefetch, p, 1));
}

#[unsafe(no_mangle)]
extern "C" fn lw_sim_plain_read(p: usize, size: u32) -> u64 {
    operate(Op::new(Kind::Touch, p, size))
}

#[unsafe(no_mangle)]
extern "C" fn lw_sim_plain_write(p: usize, size: u32, value: u64) {
    write(Kind::Store, p, size, value, 0, 0);
}

#[unsafe(no_mangle)]
extern "C" fn lw_sim_slot() -> u32 {
    with(|c| c.engine.current as u32 + 1)
}

#[unsafe(no_mangle)]
extern "C" fn lw_sim_is_running(runner: u32) -> bool {
    with(|c| c.engine.is_running(runner as usize - 1))
}

#[unsafe(no_mangle)]
extern "C" fn lw_sim_should_yield() -> bool {
    with(|c| c.engine.should_yield())
}

#[unsafe(no_mangle)]
extern "C" fn lw_sim_slot_nodes(slot: u32) -> usize {
    with(|c| c.nodes + (slot as usize - 1) * slot_nodes_size())
}

#[unsafe(no_mangle)]
extern "C" fn lw_sim_slots() -> u32 {
    with(|c| c.operations.len() as u32)
}

#[unsafe(no_mangle)]
extern "C" fn lw_sim_slot_wanted(slot: u32) -> usize {
    with(|c| {
        let slots = c.operations.len() + 1;
        let first = *c.slots_wanted.get_or_insert_with(|| {
            let name = "locks that slots are parked for".to_owned();
            c.engine.allocate(name, slots * LINE, 0)
        });
        first + slot as usize * LINE
    })
}

#[unsafe(no_mangle)]
extern "C" fn lw_sim_node_queues(numa_node: u32) -> usize {
    with(|c| {
        *c.node_queues[numa_node as usize].get_or_insert_with(|| {
            let name = format!("queues of NUMA node {numa_node}");
            c.engine
                .allocate(name, lw_sim_node_queues_size, numa_node as u16)
        })
    })
}

#[unsafe(no_mangle)]
extern "C" fn lw_sim_parked_heads() -> usize {
    with(|c| {
        *c.parked_heads.get_or_insert_with(|| {
            let name = "table of parked queue heads".to_owned();
            c.engine.allocate(name, lw_sim_parked_heads_size, 0)
        })
    })
}

#[unsafe(no_mangle)]
extern "C" fn lw_sim_numa_node() -> u16 {
    with(|c| c.engine.model().node(c.engine.current))
}

#[unsafe(no_mangle)]
extern "C" fn lw_sim_slot_numa_node(slot: u32) -> u16 {
    with(|c| c.engine.model().node(slot as usize - 1))
}

#[unsafe(no_mangle)]
extern "C" fn lw_sim_is_priority() -> bool {
    with(|c| c.priority[c.engine.current])
}

#[unsafe(no_mangle)]
extern "C" fn lw_sim_clock() -> u64 {
    with(|c| c.engine.time() / 1000 + 1)
}

#[unsafe(no_mangle)]
extern "C" fn lw_sim_choose(n: u32) -> u32 {
    with(|c| {
        // Xorshift, as cheap as the per-CPU generator that it stands for.
        let x = &mut c.random[c.engine.current];
        *x ^= *x << 13;
        *x ^= *x >> 7;
        *x ^= *x << 17;
        (((*x >> 32) * u64::from(n)) >> 32) as u32
    })
}

#[unsafe(no_mangle)]
extern "C" fn lw_sim_tunables() -> *const Settings {
    with(|c| &raw const c.tunables)
}

#[unsafe(no_mangle)]
extern "C" fn lw_sim_count(event: u32, n: u64) {
    with(|c| c.events[event as usize] += n);
}

#[unsafe(no_mangle)]
extern "C" fn lw_sim_count_max(event: u32, value: u64) {
    with(|c| {
        let highest = &mut c.events[event as usize];
        *highest = value.max(*highest);
    });
}
