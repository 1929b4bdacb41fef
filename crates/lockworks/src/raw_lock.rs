use std::alloc::{Layout, alloc_zeroed, dealloc, handle_alloc_error};
use std::mem::ManuallyDrop;
use std::ptr::NonNull;
use std::time::Instant;

use crate::{Cancel, GivenUp, LockType};

/// Zeroed memory on lines of its own: 128 bytes, since processors fetch lines in pairs.
#[derive(Debug)]
struct Lines {
    start: NonNull<u8>,
    layout: Layout,
}

impl Lines {
    fn new(size: usize) -> Self {
        let layout = Layout::from_size_align(size.max(1), 128)
            .expect("a lock of sensible size")
            .pad_to_align();
        // SAFETY: the size is not 0.
        let start = unsafe { alloc_zeroed(layout) };
        let start = NonNull::new(start).unwrap_or_else(|| handle_alloc_error(layout));
        Self { start, layout }
    }
}

impl Drop for Lines {
    fn drop(&mut self) {
        // SAFETY: allocated in `new` with that layout.
        unsafe { dealloc(self.start.as_ptr(), self.layout) }
    }
}

/// The queue node that a thread lends to a [`RawLock`] from locking to
/// unlocking. Locks that need none ignore it. If it is dropped in between, its
/// memory is leaked, since others may still reach it through the lock.
///
/// ```
/// use lockworks::{Node, RawLock, find};
///
/// let mcs = find("mcs").unwrap();
/// let (outer, inner) = (RawLock::new(mcs), RawLock::new(mcs));
/// let (mut first, mut second) = (Node::new(mcs), Node::new(mcs));
/// outer.lock(&mut first);
/// inner.lock(&mut second); // one for each lock that is held
/// // SAFETY: locked above, with these nodes.
/// unsafe {
///     inner.unlock(&mut second);
///     outer.unlock(&mut first);
/// }
/// ```
#[derive(Debug)]
pub struct Node {
    lock_type: &'static LockType,
    memory: ManuallyDrop<Lines>,
    /// The lock that has it on loan.
    lent_to: Option<NonNull<u8>>,
}

// SAFETY: a node is memory; lent or not, it may be handed to another thread.
unsafe impl Send for Node {}

impl Node {
    /// A node for locks of that type.
    pub fn new(lock_type: &'static LockType) -> Self {
        Self {
            lock_type,
            memory: ManuallyDrop::new(Lines::new(lock_type.node_size())),
            lent_to: None,
        }
    }
}

impl Drop for Node {
    fn drop(&mut self) {
        if self.lent_to.is_none() {
            // SAFETY: dropped here only.
            unsafe { ManuallyDrop::drop(&mut self.memory) };
        }
    }
}

/// A lock of a type chosen at run time, on cache lines of its own. It protects
/// nothing by itself.
///
/// ```
/// use lockworks::{Node, RawLock, find};
///
/// let lock = RawLock::new(find("hq").unwrap());
/// let mut node = Node::new(lock.lock_type());
/// lock.lock(&mut node);
/// // SAFETY: locked above, by this thread and with this node.
/// unsafe { lock.unlock(&mut node) };
/// assert!(lock.try_lock(&mut node));
/// ```
#[derive(Debug)]
pub struct RawLock {
    lock_type: &'static LockType,
    memory: Lines,
}

// SAFETY: to be used by many threads is what a lock is for.
unsafe impl Send for RawLock {}
// SAFETY: as above.
unsafe impl Sync for RawLock {}

impl RawLock {
    /// An unlocked lock.
    pub fn new(lock_type: &'static LockType) -> Self {
        let memory = Lines::new(lock_type.size());
        // SAFETY: zeroed, large and aligned enough, and ours alone still.
        unsafe { lock_type.initialise(memory.start.as_ptr()) };
        Self { lock_type, memory }
    }

    /// Its type.
    ///
    /// ```
    /// use lockworks::{RawLock, find};
    ///
    /// assert_eq!(RawLock::new(find("hq").unwrap()).lock_type().name(), "hq");
    /// ```
    pub fn lock_type(&self) -> &'static LockType {
        self.lock_type
    }

    /// Acquires the lock, waiting as long as it takes; forever if this thread holds it already.
    ///
    /// # Panics
    ///
    /// If `node` is for another lock type or on loan already.
    pub fn lock(&self, node: &mut Node) {
        self.check(node);
        // SAFETY: `Lines` gives both the size and alignment that their type wants; `node`
        // is not on loan, and cannot be dropped while it is.
        unsafe {
            self.lock_type
                .lock(self.address(), node.memory.start.as_ptr())
        };
        node.lent_to = Some(self.memory.start);
    }

    /// Acquires the lock if that needs no waiting; gives whether it did.
    ///
    /// # Panics
    ///
    /// As [`lock`](Self::lock) does.
    ///
    /// ```
    /// use lockworks::{Node, RawLock, find};
    ///
    /// let lock = RawLock::new(find("cna").unwrap());
    /// assert!(lock.try_lock(&mut Node::new(lock.lock_type())));
    /// assert!(!lock.try_lock(&mut Node::new(lock.lock_type())));
    /// ```
    pub fn try_lock(&self, node: &mut Node) -> bool {
        self.check(node);
        // SAFETY: as in `lock`.
        let locked = unsafe {
            self.lock_type
                .try_lock(self.address(), node.memory.start.as_ptr())
        };
        if locked {
            node.lent_to = Some(self.memory.start);
        }
        locked
    }

    /// Acquires the lock as [`lock`](Self::lock) does, but waits no longer than until `deadline`,
    /// or until `cancel` is cancelled; `None` stands for never. A lock that can be had without
    /// waiting is acquired in any case.
    ///
    /// ```
    /// use std::time::{Duration, Instant};
    ///
    /// use lockworks::{GivenUp, Node, RawLock, find};
    ///
    /// let pv = find("pv").expect("the lock whose waiters halt");
    /// let (lock, mut node) = (RawLock::new(pv), Node::new(pv));
    /// lock.lock(&mut node);
    /// let soon = Instant::now() + Duration::from_millis(1);
    /// let waited = std::thread::scope(|scope| {
    ///     let waiter = scope.spawn(|| lock.lock_until(&mut Node::new(pv), Some(soon), None));
    ///     waiter.join().unwrap()
    /// });
    /// assert_eq!(waited, Err(GivenUp::TimedOut));
    /// // SAFETY: locked above, by this thread and with this node.
    /// unsafe { lock.unlock(&mut node) };
    /// ```
    ///
    /// # Errors
    ///
    /// If the lock was not had; see [`GivenUp`].
    ///
    /// # Panics
    ///
    /// As [`lock`](Self::lock) does; if those who wait for this type of lock never
    /// [give up](LockType::may_give_up); if another waits with `cancel`.
    pub fn lock_until(
        &self,
        node: &mut Node,
        deadline: Option<Instant>,
        cancel: Option<&Cancel>,
    ) -> Result<(), GivenUp> {
        self.check(node);
        // SAFETY: as in `lock`.
        unsafe {
            self.lock_type.lock_until(
                self.address(),
                node.memory.start.as_ptr(),
                deadline,
                cancel,
            )?;
        }
        node.lent_to = Some(self.memory.start);
        Ok(())
    }

    /// Releases the lock.
    ///
    /// # Safety
    ///
    /// This thread holds it, and acquired it with this `node`.
    pub unsafe fn unlock(&self, node: &mut Node) {
        debug_assert_eq!(
            node.lent_to,
            Some(self.memory.start),
            "unlocked with the node it was locked with"
        );
        // SAFETY: as the caller promises.
        unsafe {
            self.lock_type
                .unlock(self.address(), node.memory.start.as_ptr())
        };
        node.lent_to = None;
    }

    fn address(&self) -> *mut u8 {
        self.memory.start.as_ptr()
    }

    fn check(&self, node: &Node) {
        assert!(
            std::ptr::eq(self.lock_type, node.lock_type),
            "a queue node for another lock type"
        );
        assert!(node.lent_to.is_none(), "a queue node on loan already");
    }
}
