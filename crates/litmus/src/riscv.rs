//! RISC-V's weak memory, RVWMO: as multi-copy atomic as Armv8, with fences for acquire and release.
//!
//! Operations of the kernel become the instructions that riscv Linux has for them, with atomic memory
//! operations (AMO), also for compare-and-swap (Zacas):
//!
//! | operation | instruction |
//! | -- | -- |
//! | smp_load_acquire() | L; FENCE R,RW |
//! | smp_store_release(), spin_unlock() | FENCE RW,W; S |
//! | smp_mb(), smp_mb__before_atomic(), after_atomic(), after_spinlock() | FENCE RW,RW |
//! | smp_rmb(), smp_wmb() | FENCE R,R; FENCE W,W |
//! | xchg(), cmpxchg() and other atomics with a result | AMO.AQRL |
//! | their variants, spin_lock() | the AMO, and the fence of an acquire after or of a release before it |
//! | atomic_add() and others without a result | AMO |
//! | barrier(), smp_mb__after_unlock_lock(), rcu_read_lock() | none |
//! | all others | L, S |
//!
//! The numbers are those of the rules of preserved program order in the manual.

use super::execution::{Basics, BrokenAxiom, Execution, Fence, Mark, acyclic};
use super::relation::{Relation, Set};

pub(super) fn check(x: &Execution) -> Result<(), BrokenAxiom> {
    let b = Basics::of(x);
    let (r, w, m) = (&b.reads, &b.writes, &b.accesses);
    let n = x.events.len();
    let fr = x.fr();
    let po_loc = &x.po & &b.same_location;
    let external = |relation| relation - &b.internal;
    x.check_places(&b)?;

    // A compare-and-swap that fails orders nothing.
    let failed = Set::of(n, |event| {
        x.events[event].of_rmw && r.contains(event) && x.rmw.after(event).next().is_none()
    });
    let marked = |marks: &[Mark]| {
        let none = x.set(|_| false);
        let all = marks.iter().fold(none, |set, mark| &set | &x.marked(*mark));
        &all - &failed
    };
    let full = marked(&[Mark::Mb, Mark::SeqCst]);
    let between = |from: &Set, fences: &[Fence], to: &Set| {
        x.po.from(from).to(&x.fences(fences)).then(&x.po).to(to)
    };

    // 1, 2, 3: one place in memory.
    let overwritten = po_loc.to(w);
    let over_a_write = overwritten.then(&po_loc);
    let same_write = x.rf.inverse().then(&x.rf);
    // Only reads of which it is known what they see.
    let seeing = Set::of(n, |event| x.rf.inverse().after(event).next().is_some());
    let reads = (&po_loc - &over_a_write).within(&(r & &seeing)) - &same_write;
    let of_pairs = |event: fn((usize, usize)) -> usize| {
        Set::of(n, |this| x.rmw.pairs().any(|pair| event(pair) == this))
    };
    let (first, last) = (of_pairs(|(read, _)| read), of_pairs(|(_, write)| write));
    let rfi = &x.rf & &b.internal;
    let of_memory = reads | &overwritten | rfi.from(&last);

    // 4: fences, and those that belong to an acquire or a release.
    let fences = between(
        m,
        &[
            Fence::Mb,
            Fence::BeforeAtomic,
            Fence::AfterAtomic,
            Fence::AfterSpinlock,
        ],
        m,
    ) | between(r, &[Fence::Rmb], r)
        | between(w, &[Fence::Wmb], w);
    let acquires = &marked(&[Mark::Acquire, Mark::LockRead]) & r;
    let releases = &marked(&[Mark::Release, Mark::Unlock]) & w;
    // An atomic's own write comes before the fence of an acquire, its own read after that of a release.
    let after_acquire = x.po.from(&acquires).to(m) - &x.rmw;
    let before_release = x.po.to(&releases).from(m) - &x.rmw;
    let acquired = x.po.optional().from(r).to(&acquires).then(&after_acquire) - &x.rmw;
    let released = before_release.then(&x.po.optional().from(&releases).to(w));

    // 5, 6, 7, 8: atomics, of which each may access several places.
    let acquiring = &full | &(&marked(&[Mark::AcquirePc]) & r);
    let annotated = x.po.from(&(&acquiring - &first)).to(m)
        | x.rmw.from(&acquiring).then(&x.po).to(m)
        | x.po.to(&(&full - &last)).from(m)
        | &x.rmw;

    // 9 to 13: dependencies.
    let dependencies = &x.addr
        | &x.data
        | x.ctrl.to(w)
        | (&x.addr | &x.data).to(w).then(&rfi)
        | x.addr.then(&x.po).to(w);

    let order = of_memory | fences | acquired | released | annotated | dependencies;
    let memory = external(x.rf.clone()) | fr | &x.co;
    // An atomic memory operation is one event: what is before its write is before its read.
    let order = order | memory;
    let one = &x.rmw | &x.rmw.inverse() | Relation::empty(n).optional();
    let order = one.then(&order).then(&one) - &one;
    acyclic("memory", &(order | &x.rmw))
}
