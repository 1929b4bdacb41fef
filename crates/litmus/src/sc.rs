//! Sequential consistency: one order of all accesses, in which each read sees the last write.

use super::execution::{Basics, BrokenAxiom, Execution, acyclic, empty};

pub(super) fn check(x: &Execution) -> Result<(), BrokenAxiom> {
    let b = Basics::of(x);
    let fr = x.fr();
    empty(
        "atomicity",
        &(&x.rmw & &(&fr - &b.internal).then(&(&x.co - &b.internal))),
    )?;
    let order = x.po.within(&b.accesses) | &x.rf | &x.co | fr;
    acyclic("sequential-consistency", &order)
}
