//! The Linux kernel memory model.
//!
//! It has five axioms. Each location is coherent, and read-modify-writes are atomic. What must
//! execute before what (`hb`) has no cycle. No cycle either has what must have reached all CPUs
//! before what executes (`pb`), nor the same across grace periods (`rb`). Names are those of
//! `tools/memory-model/linux-kernel.cat`, whose explanation.txt gives the reasons.

use super::execution::{Basics, BrokenAxiom, Execution, Fence, Mark, acyclic, empty, irreflexive};
use super::rcu;
use super::relation::{Relation, Set};

/// The relations of the model.
pub(super) struct Lkmm<'a> {
    pub(super) x: &'a Execution,
    pub(super) b: Basics,
    pub(super) external: Relation,
    pub(super) plain: Set,
    pub(super) marked: Set,
    /// Reads that smp_rmb() orders.
    pub(super) rmb_reads: Set,
    pub(super) noreturn: Set,
    acquire: Set,
    release: Set,
    pub(super) fr: Relation,
    pub(super) addr: Relation,
    pub(super) rmb_fence: Relation,
    pub(super) nonrw_fence: Relation,
    pub(super) fence: Relation,
    pub(super) strong_fence: Relation,
    pub(super) rmw_sequence: Relation,
    pub(super) cumul_fence: Relation,
    pub(super) prop: Relation,
    pub(super) hb: Relation,
    pub(super) pb: Relation,
    pub(super) rb: Relation,
}

impl<'a> Lkmm<'a> {
    /// `rmw_sequences` says whether reads-from chains through read-modify-writes extend releases
    /// and fences, as since Linux 6.3.
    pub(super) fn of(x: &'a Execution, rmw_sequences: bool) -> Self {
        let b = Basics::of(x);
        let (r, w, m) = (&b.reads, &b.writes, &b.accesses);
        let po = &x.po;
        let all = x.set(|_| true);
        let one = Relation::empty(x.events.len()).optional();
        let between = |fence: &Set| po.to(fence).then(po);

        // Events.
        let rmw = &x.set(|event| event.of_rmw) & m;
        let succeeded = Set::of(x.events.len(), |event| {
            x.rmw.after(event).next().is_some() || x.rmw.pairs().any(|(_, w)| w == event)
        });
        let failed = &rmw - &succeeded;
        let acquire = &x.marked(Mark::Acquire) | &x.marked(Mark::AcquirePc);
        let acquire = &(&acquire | &x.marked(Mark::SeqCst)) - &failed;
        let acquire = &(&acquire | &x.marked(Mark::LockRead)) & r;
        let release = &x.marked(Mark::Release) | &x.marked(Mark::SeqCst);
        let release = &(&release | &x.marked(Mark::Unlock)) & w;
        let mb_accesses = &x.marked(Mark::Mb) - &failed;
        let noreturn = &x.marked(Mark::Noreturn) & r;
        let rmb_reads = r - &noreturn;
        let unlocks = x.marked(Mark::Unlock);
        let lock_reads = x.marked(Mark::LockRead);
        let lock_writes = x.marked(Mark::LockWrite);
        let srcu_unlocks = x.marked(Mark::SrcuUnlock);
        let plain = x.marked(Mark::Plain);
        let marked = &all - &plain;

        let external = &Relation::of(x.events.len(), |_, _| true) - &b.internal;
        let rfi = &x.rf & &b.internal;
        let rfe = &x.rf & &external;
        let fr = x.fr();

        // Dependencies, also through plain accesses.
        let carry = x.data.to(&(&all - &srcu_unlocks)).then(&rfi).star();
        let (addr, ctrl) = (carry.then(&x.addr), carry.then(&x.ctrl));
        let data = carry.then(&x.data);

        // Acquire, release, and a lock that is released and taken again.
        let acq_po = po.from(&acquire).to(m);
        let po_rel = po.from(m).to(&release);
        let unlock_lock = (po | &x.rf).from(&unlocks).to(&lock_reads);
        let po_unlock_lock_po = po.then(&unlock_lock).then(po);

        // Fences.
        let rmb_fence = between(&x.fences(&[Fence::Rmb]));
        let rmb = rmb_fence.within(&rmb_reads);
        let wmb = between(&x.fences(&[Fence::Wmb])).within(w);
        let past = |set: &Set, fence: Fence| {
            let after = between(&x.fences(&[fence]));
            po.optional().to(set).then(&after)
        };
        let up_to = |set: &Set, fence: Fence| {
            let before = between(&x.fences(&[fence]));
            before.to(set).then(&po.optional())
        };
        let mb = between(&x.fences(&[Fence::Mb]))
            | po.to(&(&mb_accesses & r))
            | po.from(&(&mb_accesses & w))
            | up_to(&rmw, Fence::BeforeAtomic)
            | past(&rmw, Fence::AfterAtomic)
            | past(&lock_writes, Fence::AfterSpinlock)
            | po_unlock_lock_po
                .to(&x.fences(&[Fence::AfterUnlockLock]))
                .then(po)
            | past(&srcu_unlocks, Fence::AfterSrcuReadUnlock);
        let grace = x.fences(&[Fence::SyncRcu, Fence::SyncSrcu]);
        let strong_fence = mb.within(m) | po.to(&grace).then(&po.optional());
        let nonrw_fence = &strong_fence | &po_rel | &acq_po;
        let fence = &nonrw_fence | &wmb | &rmb;

        // Preserved program order.
        let dep = &addr | &data;
        let overwrite = &x.co | &fr;
        let to_w = (&dep | &ctrl).to(w) | (&overwrite & &b.internal) | addr.to(&plain).then(&wmb);
        let to_r = addr.to(r) | dep.to(&marked).then(&rfi);
        let ppo = to_r | to_w | (&(&fence | &po_unlock_lock_po) & &b.internal);

        // Propagation.
        let after_rfe = |relation: &Relation| rfe.to(&marked).then(relation) | relation;
        let rmw_sequence = match rmw_sequences {
            true => x.rf.then(&x.rmw).star(),
            false => one,
        };
        let cumul_fence = (after_rfe(&(&strong_fence | &po_rel)) | &wmb | &po_unlock_lock_po)
            .within(&marked)
            .then(&rmw_sequence);
        let prop = (&overwrite & &external)
            .optional()
            .from(&marked)
            .then(&cumul_fence.star())
            .to(&marked)
            .then(&rfe.optional())
            .to(&marked);

        let hb = (ppo | &rfe | (&prop.irreflexive() & &b.internal)).within(&marked);
        let hb_star = hb.star();
        let pb = prop.then(&strong_fence).then(&hb_star).to(&marked);

        let mut lkmm = Self {
            external,
            plain,
            marked,
            rmb_reads,
            noreturn,
            acquire,
            release,
            fr,
            addr,
            rmb_fence,
            nonrw_fence,
            fence,
            strong_fence,
            rmw_sequence,
            cumul_fence,
            prop,
            hb,
            pb,
            rb: Relation::empty(x.events.len()),
            x,
            b,
        };
        let before = hb_star.then(&lkmm.pb.star());
        if let Some(rcu_fence) = rcu::fence(x, &lkmm.b, &before, &lkmm.prop) {
            // As pb orders events, so does rb.
            lkmm.rb = (lkmm.prop.then(&rcu_fence).then(&hb_star))
                .then(&lkmm.pb.star())
                .to(&lkmm.marked);
            lkmm.fence = lkmm.fence | &rcu_fence;
            lkmm.strong_fence = lkmm.strong_fence | &rcu_fence;
        }
        lkmm
    }

    pub(super) fn check(&self) -> Result<(), BrokenAxiom> {
        let (x, b) = (self.x, &self.b);
        let com = &x.rf | &x.co | &self.fr;
        acyclic("coherence", &(&(&x.po & &b.same_location) | &com))?;
        let between = (&self.fr & &self.external).then(&(&x.co & &self.external));
        empty("atomic", &(&x.rmw & &between))?;
        acyclic("happens-before", &self.hb)?;
        acyclic("propagation", &self.pb)?;
        irreflexive("rcu", &self.rb)?;
        self.check_plain()
    }

    /// The operations across which the compiler must not move plain accesses.
    pub(super) fn barrier(&self) -> Relation {
        use Fence::{AfterAtomic, Barrier, BeforeAtomic, Mb, RcuLock, RcuUnlock, Rmb, Wmb};
        let (x, po) = (self.x, &self.x.po);
        let fences = x.fences(&[
            Barrier,
            Rmb,
            Wmb,
            Mb,
            Fence::SyncRcu,
            Fence::SyncSrcu,
            BeforeAtomic,
            AfterAtomic,
            RcuLock,
            RcuUnlock,
        ]);
        let srcu = &x.marked(Mark::SrcuLock) | &x.marked(Mark::SrcuUnlock);
        let mut events = &fences | &srcu;
        events = &(&events | &self.acquire) | &self.release;
        po.to(&events).then(po) | po.to(&self.release) | po.from(&self.acquire)
    }
}
