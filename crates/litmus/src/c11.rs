//! C11 as repaired by RC11, with the release sequences of C++20, and without load buffering.
//!
//! Operations of the kernel become those of C11 in the obvious way:
//!
//! | operation | C11 |
//! | -- | -- |
//! | READ_ONCE(), WRITE_ONCE(), rcu_dereference(), relaxed atomics | relaxed |
//! | smp_load_acquire(), smp_store_release() and their like | acquire, release |
//! | spin_lock(), spin_unlock() | an exchange with acquire, a store with release |
//! | smp_rmb(), smp_wmb() | fences, acquire and release |
//! | smp_mb(), smp_mb__before_atomic() and its siblings | a fence, seq_cst |
//! | xchg(), cmpxchg() and other atomics with a result | relaxed, between two fences, seq_cst |
//! | plain accesses | not atomic |
//! | barrier(), rcu_read_lock() | none |

use super::execution::{
    Basics, BrokenAxiom, Event, Execution, Fence, Kind, Mark, acyclic, empty, irreflexive,
};
use super::relation::{Relation, Set};

/// The relations of the model.
pub(super) struct C11 {
    basics: Basics,
    hb: Relation,
    eco: Relation,
    atomicity: Relation,
    psc: Relation,
    no_thin_air: Relation,
    /// Accesses that are not atomic.
    plain: Set,
}

impl C11 {
    pub(super) fn of(x: &Execution) -> Self {
        let x = &with_fences(x);
        let b = Basics::of(x);
        let (r, w) = (&b.reads, &b.writes);
        let sb = &x.po;
        let plain = x.marked(Mark::Plain);
        let plain = &plain - &b.initial;
        let atomic = &b.accesses - &plain;
        let sc = x.marked(Mark::SeqCst);
        let sc_fences = x.fences(&[
            Fence::Mb,
            Fence::BeforeAtomic,
            Fence::AfterAtomic,
            Fence::AfterSpinlock,
            Fence::AfterUnlockLock,
        ]);
        let acquire_fences = &sc_fences | &x.fences(&[Fence::Rmb]);
        let release_fences = &sc_fences | &x.fences(&[Fence::Wmb]);
        let acquires = [Mark::Acquire, Mark::AcquirePc, Mark::LockRead, Mark::SeqCst];
        let releases = [Mark::Release, Mark::Unlock, Mark::SeqCst];
        let with = |marks: &[Mark], of: &Set| {
            let none = x.set(|_| false);
            let all = marks.iter().fold(none, |set, m| &set | &x.marked(*m));
            &all & of
        };
        let n = x.events.len();
        let id = |set: &Set| Relation::product(n, set, set) & &Relation::empty(n).optional();

        // A release sequence is a write and the read-modify-writes that read from it in a chain.
        let sequence = x.rf.then(&x.rmw).star().from(&(w & &atomic));
        // A compare-and-swap that fails does not acquire.
        let failed = Set::of(n, |event| {
            x.events[event].of_rmw && x.rmw.after(event).next().is_none()
        });
        let acquire = &with(&acquires, r) - &failed;
        let release = id(&with(&releases, w)) | sb.from(&release_fences).to(w);
        let acquire = id(&acquire) | sb.to(&acquire_fences).from(r);
        let sw = release
            .then(&sequence)
            .then(&x.rf.to(&atomic))
            .then(&acquire);
        let first = Relation::product(n, &b.initial, &x.set(|event| event.thread.is_some()));
        let hb = (sb | &sw | first).plus();

        let fr = x.fr();
        let com = &x.rf | &x.co | &fr;
        let eco = com.plus();
        let external = |relation: &Relation| relation - &b.internal;
        let atomicity = &x.rmw & &external(&fr).then(&external(&x.co));

        // The order of sequentially consistent events.
        let sb_elsewhere = sb - &b.same_location;
        let scb = sb
            | &sb_elsewhere.then(&hb).then(&sb_elsewhere)
            | (&hb & &b.same_location)
            | &x.co
            | &fr;
        let before = id(&sc) | hb.optional().from(&sc_fences);
        let after = id(&sc) | hb.optional().to(&sc_fences);
        let psc_base = before.then(&scb).then(&after);
        let psc_fences = (&hb | &hb.then(&eco).then(&hb)).within(&sc_fences);
        Self {
            psc: psc_base | psc_fences,
            no_thin_air: sb | &x.rf,
            basics: b,
            hb,
            eco,
            atomicity,
            plain,
        }
    }

    pub(super) fn check(&self) -> Result<(), BrokenAxiom> {
        empty("atomicity", &self.atomicity)?;
        irreflexive("coherence", &self.hb.then(&self.eco.optional()))?;
        acyclic("sc", &self.psc)?;
        acyclic("no-thin-air", &self.no_thin_air)
    }

    /// Whether two accesses, one of them a write and one not atomic, are not ordered.
    pub(super) fn has_race(&self) -> bool {
        let b = &self.basics;
        let conflicts = &b.same_location - &b.internal;
        let conflicts = conflicts.from(&(&self.plain & &b.accesses));
        let conflicts = conflicts.from(&b.writes) | conflicts.to(&b.writes);
        let conflicts = conflicts.to(&(&b.accesses - &b.initial));
        !(conflicts - &self.hb - &self.hb.inverse()).is_empty()
    }
}

/// The execution with a fence before and after each read-modify-write that is a full barrier.
fn with_fences(x: &Execution) -> Execution {
    let is_full = |event: usize| x.events[event].kind == Kind::Write(Mark::Mb);
    let pairs: Vec<_> = x.rmw.pairs().filter(|(_, w)| is_full(*w)).collect();
    if pairs.is_empty() {
        return x.clone();
    }
    let fence = |of: usize| Event {
        kind: Kind::Fence(Fence::Mb),
        location: None,
        of_rmw: false,
        ..x.events[of].clone()
    };
    let mut events = Vec::new();
    let mut places = Vec::new();
    for (i, event) in x.events.iter().enumerate() {
        if pairs.iter().any(|(r, _)| *r == i) {
            events.push(fence(i));
        }
        places.push(events.len());
        events.push(event.clone());
        if pairs.iter().any(|(_, w)| *w == i) {
            events.push(fence(i));
        }
    }
    let n = events.len();
    let moved = |relation: &Relation| {
        let mut new = Relation::empty(n);
        for (a, b) in relation.pairs() {
            new.insert(places[a], places[b]);
        }
        new
    };
    Execution {
        rf: moved(&x.rf),
        co: moved(&x.co),
        rmw: moved(&x.rmw),
        addr: moved(&x.addr),
        data: moved(&x.data),
        ctrl: moved(&x.ctrl),
        ..Execution::new(events)
    }
}
