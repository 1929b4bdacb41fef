//! The locks that can be tortured: those of the library and their peers, behind one interface.

use anyhow::{Result, anyhow};
use lockworks::{LockType, Node, RawLock};

use crate::peers::{self, Loan, Order, Peer, PeerLock};
use lockworks_names::command_line as names;

/// A lock to torture.
#[derive(Clone, Copy, Debug)]
pub enum Contender {
    /// A lock of the library.
    Lock(&'static LockType),
    /// A lock of another library.
    Peer(&'static Peer),
}

impl PartialEq for Contender {
    fn eq(&self, other: &Self) -> bool {
        self.name() == other.name()
    }
}

/// The peers that only `make bench` measures.
pub const ELSEWHERE: [&str; 6] = ["ck_mcs", "ck_ticket", "ck_clh", "ck_fas", "nsync", "abseil"];
/// The peers that every program has from its C library.
const USUAL_PEERS: [&str; 2] = ["pthread_mutex", "pthread_spin"];

impl Contender {
    /// All locks of the library, then the peers.
    pub fn all() -> impl Iterator<Item = Self> {
        let locks = lockworks::lock_types().iter().copied().map(Self::Lock);
        let peers = peers::of_c_library().chain(peers::of_crates());
        locks.chain(peers.map(Self::Peer))
    }

    /// The locks that are tortured by default: all that are not broken, and the usual peers.
    pub fn usual() -> impl Iterator<Item = Self> {
        Self::all().filter(|contender| match contender {
            Self::Lock(lock) => !lock.is_broken(),
            Self::Peer(peer) => USUAL_PEERS.contains(&peer.bench.name()),
        })
    }

    /// The lock of that name.
    pub fn find(name: &str) -> Result<Self> {
        if let Some(contender) = Self::all().find(|contender| contender.name() == name) {
            return Ok(contender);
        }
        Err(match ELSEWHERE.contains(&name) {
            true => anyhow!(
                "{name} is of a library that is not on every machine; `make bench` measures it"
            ),
            false => names::unknown("lock", name, Self::all().map(|s| s.name())),
        })
    }

    /// The name of the lock.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Lock(lock) => lock.name(),
            Self::Peer(peer) => peer.bench.name(),
        }
    }

    /// Whether readers can hold the lock together.
    pub fn has_readers(&self) -> bool {
        match self {
            Self::Lock(lock) => lock.has_readers(),
            Self::Peer(peer) => peer.has_readers(),
        }
    }

    /// Whether throughput collapses with more threads than CPUs, because the next waiter is preempted.
    pub fn collapses(&self) -> bool {
        match self {
            Self::Lock(lock) => lock.spins() && (lock.is_fifo() || lock.is_numa_aware()),
            Self::Peer(peer) => peer.bench.order == Order::Fifo,
        }
    }
}

/// Mutual exclusion between threads, as the library's [`RawLock`] has it.
pub trait Exclusion: Sync {
    /// The queue node that a thread lends to the lock from locking to unlocking.
    type Node;

    /// A queue node for this lock.
    fn node(&self) -> Self::Node;

    /// Acquires the lock.
    fn lock(&self, node: &mut Self::Node);

    /// Releases the lock.
    ///
    /// # Safety
    ///
    /// The calling thread holds the lock, and acquired it with this `node`.
    unsafe fn unlock(&self, node: &mut Self::Node);

    /// Acquires the lock as a reader; alone, if it has no readers.
    fn read_lock(&self, node: &mut Self::Node);

    /// Releases the lock of a reader.
    ///
    /// # Safety
    ///
    /// As for `unlock`.
    unsafe fn read_unlock(&self, node: &mut Self::Node);
}

impl Exclusion for RawLock {
    type Node = Node;

    fn node(&self) -> Node {
        Node::new(self.lock_type())
    }

    fn lock(&self, node: &mut Node) {
        self.lock(node);
    }

    unsafe fn unlock(&self, node: &mut Node) {
        // SAFETY: as the caller promises.
        unsafe { self.unlock(node) }
    }

    fn read_lock(&self, node: &mut Node) {
        self.read_lock(node);
    }

    unsafe fn read_unlock(&self, node: &mut Node) {
        // SAFETY: as the caller promises.
        unsafe { self.read_unlock(node) }
    }
}

impl Exclusion for PeerLock {
    type Node = Loan;

    fn node(&self) -> Loan {
        self.loan()
    }

    fn lock(&self, loan: &mut Loan) {
        // SAFETY: the loan comes from `node`, and a run has only one lock.
        unsafe { self.lock(loan) };
    }

    unsafe fn unlock(&self, loan: &mut Loan) {
        // SAFETY: as the caller promises.
        unsafe { self.unlock(loan) }
    }

    fn read_lock(&self, loan: &mut Loan) {
        // SAFETY: the loan comes from `node`, and a run has only one lock.
        unsafe { self.read_lock(loan) };
    }

    unsafe fn read_unlock(&self, loan: &mut Loan) {
        // SAFETY: as the caller promises.
        unsafe { self.read_unlock(loan) }
    }
}
