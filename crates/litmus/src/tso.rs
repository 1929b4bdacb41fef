//! x86, and other machines with total store order: each thread has a buffer of stores, which reach memory in
//! their order. So a thread may read before its earlier stores are seen, and nothing else is out of order.
//!
//! Operations of the kernel become the instructions that x86 has for them:
//!
//! | operation | instruction |
//! | -- | -- |
//! | smp_mb() | MFENCE, or a locked one |
//! | xchg(), cmpxchg(), all other atomics and their variants, spin_lock() | locked |
//! | atomic_add_unless() that does not add; all loads and stores, spin_unlock() | MOV |
//! | smp_rmb(), smp_wmb(), smp_mb__before_atomic() and the other fences | none |

use super::execution::{Basics, BrokenAxiom, Execution, Fence, Mark, acyclic};
use super::relation::Set;

pub(super) fn check(x: &Execution) -> Result<(), BrokenAxiom> {
    let b = Basics::of(x);
    let (r, w, m) = (&b.reads, &b.writes, &b.accesses);
    let fr = x.fr();
    let external = |relation| relation - &b.internal;
    x.check_places(&b)?;

    // A compare-and-swap is locked even if it fails.
    let attempted = &x.set(|event| event.of_rmw) - &x.marked(Mark::Unless);
    let locked = Set::of(x.events.len(), |event| {
        attempted.contains(event) || x.rmw.pairs().any(|(r, w)| [r, w].contains(&event))
    });
    let fences = x.fences(&[Fence::Mb]);
    let fenced = x.po.to(&fences).then(&x.po).within(m)
        | x.po.to(&(&locked & m)).within(m)
        | x.po.from(&(&locked & m)).within(m);
    let preserved = x.po.within(m) - &x.po.from(w).to(r);
    acyclic(
        "global",
        &(preserved | fenced | external(x.rf.clone()) | fr | &x.co),
    )
}
