//! Plain accesses in the Linux kernel memory model: the compiler may split, repeat, merge and move
//! them, so an execution is told apart by what bounds their lifetimes, and races are reported.

use super::execution::{BrokenAxiom, empty};
use super::lkmm::Lkmm;
use super::relation::{Relation, Set};

/// When conflicting accesses, of which at least one is plain, are ordered.
struct Visibility {
    /// Pairs of different threads, at least one of them plain.
    pre_race: Relation,
    ww_vis: Relation,
    wr_vis: Relation,
    rw_xbstar: Relation,
}

impl Visibility {
    fn of(l: &Lkmm) -> Self {
        let b = &l.b;
        let all = l.x.set(|_| true);
        let returning = &all - &l.noreturn;
        // Executes-before.
        let xbstar = (&l.hb | &l.pb | &l.rb).star();
        let rfe = &l.x.rf & &l.external;
        let vis = l
            .cumul_fence
            .star()
            .then(&rfe.optional())
            .to(&l.marked)
            .then(&(l.strong_fence.to(&l.marked).then(&xbstar) | (&xbstar & &b.internal)));

        // Bounds of the lifetimes of plain accesses.
        let read_fence = |from: &Set, to: &Set| &l.nonrw_fence | &l.rmb_fence.from(from).to(to);
        let w_pre = (&l.addr | &l.fence).optional().from(&l.marked);
        let r_pre = (read_fence(&l.rmb_reads, &returning) | &l.addr)
            .optional()
            .from(&l.marked);
        let w_post = l.fence.optional().to(&l.marked).then(&l.rmw_sequence);
        let r_post = read_fence(&returning, &l.rmb_reads)
            .optional()
            .to(&l.marked);

        let strong = l.strong_fence.then(&xbstar);
        let (m, initial) = (&b.accesses, &b.initial);
        let plain = &l.plain & m;
        let n = l.x.events.len();
        let pairs = Relation::product(n, &plain, m) | Relation::product(n, &(m - initial), &plain);
        Self {
            pre_race: pairs & &l.external,
            ww_vis: &l.fence | &strong.then(&w_pre) | w_post.then(&vis).then(&w_pre),
            wr_vis: &l.fence | &strong.then(&r_pre) | w_post.then(&vis).then(&r_pre),
            rw_xbstar: &l.fence | &r_post.then(&xbstar).then(&w_pre),
        }
    }
}

impl Lkmm<'_> {
    /// Requires that plain accesses are coherent where their order is known.
    pub(super) fn check_plain(&self) -> Result<(), BrokenAxiom> {
        if (0..self.x.events.len()).all(|event| !self.plain.contains(event)) {
            return Ok(());
        }
        let v = Visibility::of(self);
        let wr = &(&v.pre_race & &self.x.rf) & &v.rw_xbstar.inverse();
        let rw = &(&v.pre_race & &self.fr) & &v.wr_vis.inverse();
        let ww = &(&v.pre_race & &self.x.co) & &v.ww_vis.inverse();
        empty("plain-coherence", &(wr | rw | ww))
    }

    pub(super) fn has_race(&self) -> bool {
        let v = Visibility::of(self);
        let (b, co) = (&self.b, &self.x.co);
        let n = self.x.events.len();
        let from_marked = Relation::product(n, &self.marked, &b.writes);
        let to_marked = Relation::product(n, &b.writes, &self.marked);
        let ww_nonrace = &(&v.ww_vis & &(from_marked | &v.rw_xbstar)) & &(to_marked | &v.wr_vis);
        let ww = (&v.pre_race & co) - &ww_nonrace;
        let wr =
            (&v.pre_race & &co.optional().then(&self.x.rf)) - &v.wr_vis - &v.rw_xbstar.inverse();
        let rw = (&v.pre_race & &self.fr) - &v.rw_xbstar;
        !(ww | wr | rw).is_empty()
    }

    /// Whether a plain write and a marked access of its thread have no barrier between them.
    pub(super) fn has_mixed_accesses(&self) -> bool {
        let open = (&self.x.po & &self.b.same_location) - &self.barrier();
        let writes = &self.plain & &self.b.writes;
        !(open.from(&writes).to(&self.marked) | open.from(&self.marked).to(&writes)).is_empty()
    }
}
