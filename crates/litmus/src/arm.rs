//! Armv8: multi-copy atomic. A write reaches all other threads at once, and a thread executes out
//! of order except where its program or the architecture says otherwise.
//!
//! Operations of the kernel become the instructions that arm64 Linux has for them, with LSE
//! atomics:
//!
//! | operation | instruction |
//! | -- | -- |
//! | smp_load_acquire(), smp_store_release(), spin_unlock() | LDAR, STLR |
//! | smp_mb(), smp_mb__before_atomic(), after_atomic(), after_spinlock() | DMB ISH |
//! | smp_rmb(), smp_wmb() | DMB ISHLD, DMB ISHST |
//! | xchg(), cmpxchg() and other atomics with a result | SWPAL, CASAL, LDADDAL |
//! | their variants, spin_lock() | the same with A or L, or without |
//! | atomic_add() and others without a result | STADD |
//! | barrier(), smp_mb__after_unlock_lock(), rcu_read_lock() | none |
//! | all others | LDR, STR |

use super::execution::{Basics, BrokenAxiom, Execution, Fence, Mark, acyclic};
use super::relation::Set;

pub(super) fn check(x: &Execution) -> Result<(), BrokenAxiom> {
    let b = Basics::of(x);
    let (r, w, m) = (&b.reads, &b.writes, &b.accesses);
    let dmb_full = x.fences(&[
        Fence::Mb,
        Fence::BeforeAtomic,
        Fence::AfterAtomic,
        Fence::AfterSpinlock,
    ]);
    let dmb_ld = x.fences(&[Fence::Rmb]);
    let dmb_st = x.fences(&[Fence::Wmb]);
    let full = &x.marked(Mark::Mb) | &x.marked(Mark::SeqCst);
    // A: LDAR and its like; Q: LDAPR; L: STLR and its like.
    let a = &(&(&x.marked(Mark::Acquire) | &x.marked(Mark::LockRead)) | &full) & r;
    let q = &x.marked(Mark::AcquirePc) & r;
    let l = &(&(&x.marked(Mark::Release) | &x.marked(Mark::Unlock)) | &full) & w;
    let a_or_q = &a | &q;
    let noret = x.marked(Mark::Noreturn);

    let fr = x.fr();
    let po_loc = &x.po & &b.same_location;
    let external = |relation| relation - &b.internal;

    // Internal visibility: each location by itself is coherent.
    x.check_places(&b)?;

    // Local read successor: the next reads after a write. Local write successor: any later write.
    let over_a_write = po_loc.to(w).then(&po_loc);
    let lrs = (&po_loc - &over_a_write).from(w).to(r);
    let lws = po_loc.to(w);
    // Dependency-ordered-before.
    let dob = &x.addr
        | &x.data
        | x.ctrl.to(w)
        | x.addr.then(&x.po).to(w)
        | (&x.addr | &x.data).then(&lrs);
    // Atomic-ordered-before.
    let aob = &x.rmw | &x.rmw.then(&lrs).to(&a_or_q);
    // Barrier-ordered-before. An atomic with both A and L is a full barrier, also for its write.
    let barrier = |from, fence| x.po.from(from).to(fence).then(&x.po);
    let both = Set::of(x.events.len(), |event| {
        l.contains(event) && x.rmw.pairs().any(|(r, w)| w == event && a.contains(r))
    });
    let bob = barrier(m, &dmb_full).to(m)
        | x.po.from(&both).to(m)
        | x.po.from(&l).to(&a)
        | barrier(&(r - &noret), &dmb_ld).to(m)
        | barrier(w, &dmb_st).to(w)
        | x.po.from(&a_or_q).to(m)
        | x.po.from(m).to(&l);
    // Observed-by, and all together: ordered-before.
    let obs = external(&(&x.rf | &fr) | &x.co);
    let ob = obs | lws | dob | aob | bob;
    acyclic("external", &ob)
}
