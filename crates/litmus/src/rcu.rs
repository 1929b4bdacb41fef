//! RCU and SRCU in the Linux kernel memory model: a sequence of grace periods and critical
//! sections, with at least as many grace periods, orders as a strong fence does.

use super::execution::{Basics, Execution, Fence, Kind, Mark};
use super::relation::Relation;

/// `rcu-fence`, or nothing where there is no grace period. `before` orders events before a grace period or a
/// critical section, and `prop` follows.
pub(super) fn fence(
    x: &Execution,
    b: &Basics,
    before: &Relation,
    prop: &Relation,
) -> Option<Relation> {
    let n = x.events.len();
    let of_kind = |kind| Relation::of(n, |a, b| a == b && x.events[a].kind == Kind::Fence(kind));
    let (rcu_gp, srcu_gp) = (of_kind(Fence::SyncRcu), of_kind(Fence::SyncSrcu));
    let po = &x.po;
    let sync = &rcu_gp | &srcu_gp;
    if sync.is_empty() {
        return None;
    }
    // From the end of each critical section to its beginning.
    let rcu_section = sections(x).inverse();
    let srcu_section = srcu_sections(x, b).inverse();
    let same_domain = b.same_location.optional();
    let link = po.optional().then(before).then(prop).then(po);
    let mut order = sync;
    loop {
        // Grace periods and sections, joined directly or by what is ordered already.
        let joined = &link | &link.then(&order).then(&link);
        let pair = |gp: &Relation, section: &Relation| {
            gp.then(&joined).then(section) | section.then(&joined).then(gp)
        };
        let next = &order
            | &pair(&rcu_gp, &rcu_section)
            | (pair(&srcu_gp, &srcu_section) & &same_domain)
            | order.then(&link).then(&order);
        if next == order {
            break;
        }
        order = next;
    }
    Some(po.then(&order).then(&po.optional()))
}

/// From each outermost rcu_read_lock() to its rcu_read_unlock(), and the inner ones likewise.
fn sections(x: &Execution) -> Relation {
    let events = &x.events;
    let mut sections = Relation::empty(events.len());
    let mut open: Vec<usize> = Vec::new();
    for (i, event) in events.iter().enumerate() {
        open.retain(|lock| events[*lock].thread == event.thread);
        match event.kind {
            Kind::Fence(Fence::RcuLock) => open.push(i),
            Kind::Fence(Fence::RcuUnlock) => {
                if let Some(lock) = open.pop() {
                    sections.insert(lock, i);
                }
            }
            _ => {}
        }
    }
    sections
}

/// From each srcu_read_lock() to the srcu_read_unlock() that has its result.
fn srcu_sections(x: &Execution, b: &Basics) -> Relation {
    let unlocks = x.marked(Mark::SrcuUnlock);
    let others = x.set(|event| event.kind != Kind::Write(Mark::SrcuUnlock));
    let carried = x.data.to(&others).then(&x.rf).star();
    let pairs = carried.then(&x.data).from(&x.marked(Mark::SrcuLock));
    pairs.to(&unlocks) & &b.same_location
}
