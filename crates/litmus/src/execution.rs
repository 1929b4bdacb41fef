//! Candidate executions: events, and how they are related.

use super::relation::{Relation, Set};

/// The mark of an access, in the words of the Linux kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mark {
    /// An access that the compiler may treat as it likes; C11: not atomic.
    Plain,
    /// READ_ONCE(), WRITE_ONCE() and relaxed operations.
    Once,
    /// An acquire; Arm: LDAR, which is ordered after an earlier release.
    Acquire,
    /// An acquire that is not ordered after an earlier release; Arm: LDAPR.
    AcquirePc,
    /// A release.
    Release,
    /// A sequentially consistent access of C11.
    SeqCst,
    /// Part of a read-modify-write operation that is a full barrier if it writes.
    Mb,
    /// Part of a read-modify-write operation without a result.
    Noreturn,
    /// The read of an atomic_add_unless() that does not add.
    Unless,
    /// The read of an acquisition of a spinlock.
    LockRead,
    /// The write of an acquisition of a spinlock.
    LockWrite,
    /// The release of a spinlock.
    Unlock,
    /// A read of a spinlock that others hold or not: a failed trylock, or spin_is_locked().
    LockQuery,
    /// srcu_read_lock().
    SrcuLock,
    /// srcu_read_unlock().
    SrcuUnlock,
}

/// A fence, in the words of the Linux kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fence {
    /// smp_mb().
    Mb,
    /// smp_rmb().
    Rmb,
    /// smp_wmb().
    Wmb,
    /// A barrier for the compiler.
    Barrier,
    /// smp_mb__before_atomic().
    BeforeAtomic,
    /// smp_mb__after_atomic().
    AfterAtomic,
    /// smp_mb__after_spinlock().
    AfterSpinlock,
    /// smp_mb__after_unlock_lock().
    AfterUnlockLock,
    /// smp_mb__after_srcu_read_unlock().
    AfterSrcuReadUnlock,
    /// rcu_read_lock().
    RcuLock,
    /// rcu_read_unlock().
    RcuUnlock,
    /// synchronize_rcu().
    SyncRcu,
    /// synchronize_srcu(), whose event has the location of the domain.
    SyncSrcu,
}

/// The kind of an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A read.
    Read(Mark),
    /// A write.
    Write(Mark),
    /// A fence.
    Fence(Fence),
}

/// An event of an execution.
#[derive(Clone, Debug, PartialEq)]
pub struct Event {
    /// None for a write of an initial value.
    pub thread: Option<usize>,
    /// Its kind.
    pub kind: Kind,
    /// The place in memory, if it accesses one.
    pub location: Option<usize>,
    /// The value that is read or written.
    pub value: i64,
    /// Whether it is part of a read-modify-write operation, even of one that fails.
    pub of_rmw: bool,
    /// The line in the file, or 0.
    pub line: usize,
}

/// A candidate execution. Events of a thread stand in their order.
#[derive(Clone, Debug)]
pub struct Execution {
    /// The events.
    pub events: Vec<Event>,
    /// Program order, transitive.
    pub po: Relation,
    /// From a write to each read of its value.
    pub rf: Relation,
    /// Coherence order, transitive; first the initial values.
    pub co: Relation,
    /// From the read to the write of a read-modify-write operation.
    pub rmw: Relation,
    /// From reads to accesses of which they give the address.
    pub addr: Relation,
    /// From reads to writes of which they give the value.
    pub data: Relation,
    /// From reads to the events in the branches of conditions on them.
    pub ctrl: Relation,
}

/// The part that the models have in common.
pub(crate) struct Basics {
    pub(crate) reads: Set,
    pub(crate) writes: Set,
    /// Reads and writes.
    pub(crate) accesses: Set,
    /// Writes of initial values.
    pub(crate) initial: Set,
    /// Pairs of different events of one location.
    pub(crate) same_location: Relation,
    /// Pairs of events of one thread.
    pub(crate) internal: Relation,
}

impl Basics {
    pub(crate) fn of(x: &Execution) -> Self {
        let reads = x.set(|event| matches!(event.kind, Kind::Read(_)));
        let writes = x.set(|event| matches!(event.kind, Kind::Write(_)));
        let events = &x.events;
        Self {
            accesses: &reads | &writes,
            reads,
            writes,
            initial: x.set(|event| event.thread.is_none()),
            same_location: Relation::of(events.len(), |a, b| {
                a != b && events[a].location.is_some() && events[a].location == events[b].location
            }),
            internal: Relation::of(events.len(), |a, b| {
                events[a].thread.is_some() && events[a].thread == events[b].thread
            }),
        }
    }
}

impl Execution {
    /// Each place in memory by itself is coherent, and no other thread writes within a read-modify-write: axioms of
    /// processors.
    pub(super) fn check_places(&self, b: &Basics) -> Result<(), BrokenAxiom> {
        let fr = self.fr();
        let po_loc = &self.po & &b.same_location;
        acyclic("internal", &(po_loc | &fr | &self.co | &self.rf))?;
        let between = (fr - &b.internal).then(&(self.co.clone() - &b.internal));
        empty("atomic", &(&self.rmw & &between))
    }

    /// Events without any relation but program order.
    pub fn new(events: Vec<Event>) -> Self {
        let empty = Relation::empty(events.len());
        let po = Relation::of(events.len(), |a, b| {
            a < b && events[a].thread.is_some() && events[a].thread == events[b].thread
        });
        Self {
            events,
            po,
            rf: empty.clone(),
            co: empty.clone(),
            rmw: empty.clone(),
            addr: empty.clone(),
            data: empty.clone(),
            ctrl: empty,
        }
    }

    /// The events with a property.
    pub(crate) fn set(&self, has: impl Fn(&Event) -> bool) -> Set {
        Set::of(self.events.len(), |event| has(&self.events[event]))
    }

    /// The accesses with a mark.
    pub(crate) fn marked(&self, mark: Mark) -> Set {
        self.set(|event| matches!(event.kind, Kind::Read(of) | Kind::Write(of) if of == mark))
    }

    /// The fences of some kinds.
    pub(crate) fn fences(&self, kinds: &[Fence]) -> Set {
        self.set(|event| matches!(event.kind, Kind::Fence(kind) if kinds.contains(&kind)))
    }

    /// From each read to the writes that come after the one that it reads.
    pub(crate) fn fr(&self) -> Relation {
        self.rf.inverse().then(&self.co)
    }
}

/// An axiom of a model that an execution breaks.
#[derive(Clone, Debug, PartialEq)]
pub struct BrokenAxiom {
    /// The name of the axiom.
    pub name: &'static str,
    /// The events of a cycle; two events where the axiom is that a relation is empty.
    pub cycle: Vec<usize>,
}

/// Requires that a relation has no cycle.
pub(crate) fn acyclic(name: &'static str, relation: &Relation) -> Result<(), BrokenAxiom> {
    match relation.cycle() {
        None => Ok(()),
        Some(cycle) => Err(BrokenAxiom { name, cycle }),
    }
}

/// Requires that a relation has no pair.
pub(crate) fn empty(name: &'static str, relation: &Relation) -> Result<(), BrokenAxiom> {
    match relation.pairs().next() {
        None => Ok(()),
        Some((a, b)) => Err(BrokenAxiom {
            name,
            cycle: vec![a, b],
        }),
    }
}

/// Requires that a relation relates no event to itself.
pub(crate) fn irreflexive(name: &'static str, relation: &Relation) -> Result<(), BrokenAxiom> {
    match relation.pairs().find(|(a, b)| a == b) {
        None => Ok(()),
        Some((a, _)) => Err(BrokenAxiom {
            name,
            cycle: vec![a],
        }),
    }
}

impl std::fmt::Display for Mark {
    fn fmt(&self, f: &mut std::fmt::Formatter) -> std::fmt::Result {
        f.write_str(match self {
            Self::Plain => "plain",
            Self::Once => "once",
            Self::Acquire => "acquire",
            Self::AcquirePc => "acquire-pc",
            Self::Release => "release",
            Self::SeqCst => "seq_cst",
            Self::Mb => "mb",
            Self::Noreturn => "noreturn",
            Self::Unless => "unless",
            Self::LockRead | Self::LockWrite => "lock",
            Self::Unlock => "unlock",
            Self::LockQuery => "query",
            Self::SrcuLock => "srcu_read_lock",
            Self::SrcuUnlock => "srcu_read_unlock",
        })
    }
}

impl std::fmt::Display for Fence {
    fn fmt(&self, f: &mut std::fmt::Formatter) -> std::fmt::Result {
        f.write_str(match self {
            Self::Mb => "smp_mb",
            Self::Rmb => "smp_rmb",
            Self::Wmb => "smp_wmb",
            Self::Barrier => "barrier",
            Self::BeforeAtomic => "smp_mb__before_atomic",
            Self::AfterAtomic => "smp_mb__after_atomic",
            Self::AfterSpinlock => "smp_mb__after_spinlock",
            Self::AfterUnlockLock => "smp_mb__after_unlock_lock",
            Self::AfterSrcuReadUnlock => "smp_mb__after_srcu_read_unlock",
            Self::RcuLock => "rcu_read_lock",
            Self::RcuUnlock => "rcu_read_unlock",
            Self::SyncRcu => "synchronize_rcu",
            Self::SyncSrcu => "synchronize_srcu",
        })
    }
}
