use std::alloc::{Layout, alloc_zeroed, dealloc, handle_alloc_error};
use std::mem::ManuallyDrop;
use std::ptr::NonNull;
use std::time::Instant;

use crate::{Cancel, LockType, WaitError};

/// Zeroed memory that shares no cache line with anything else. It is aligned to 128 bytes, since
/// processors fetch lines in pairs.
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
        // SAFETY: `new` has allocated it with this layout.
        unsafe { dealloc(self.start.as_ptr(), self.layout) }
    }
}

/// The queue node that a thread lends to a [`RawLock`] while it waits for or holds the lock. Locks that
/// need no queue node ignore it.
///
/// If it is dropped while it is lent, its memory is leaked, since other waiters may still reach it
/// through the lock.
///
/// ```
/// use lockworks::{Node, RawLock, find};
///
/// let mcs = find("mcs").unwrap();
/// let (outer, inner) = (RawLock::new(mcs), RawLock::new(mcs));
/// let (mut first, mut second) = (Node::new(mcs), Node::new(mcs));
/// outer.lock(&mut first);
/// inner.lock(&mut second); // each held lock needs a node of its own
/// // SAFETY: this thread has locked both above, with these nodes.
/// unsafe {
///     inner.unlock(&mut second);
///     outer.unlock(&mut first);
/// }
/// ```
#[derive(Debug)]
pub struct Node {
    lock_type: &'static LockType,
    memory: ManuallyDrop<Lines>,
    /// The lock to which it is lent.
    lent_to: Option<NonNull<u8>>,
}

// SAFETY: a node is memory that is not bound to a thread, whether it is lent or not.
unsafe impl Send for Node {}

impl Node {
    /// Allocates a queue node for locks of a type.
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
            // SAFETY: nothing else drops it.
            unsafe { ManuallyDrop::drop(&mut self.memory) };
        }
    }
}

/// A lock of a type that is chosen at run time. It has its cache lines to itself, and protects no value.
///
/// ```
/// use lockworks::{Node, RawLock, find};
///
/// let lock = RawLock::new(find("hq").unwrap());
/// let mut node = Node::new(lock.lock_type());
/// lock.lock(&mut node);
/// // SAFETY: this thread has locked it above, with this node.
/// unsafe { lock.unlock(&mut node) };
/// assert!(lock.try_lock(&mut node));
/// ```
#[derive(Debug)]
pub struct RawLock {
    lock_type: &'static LockType,
    memory: Lines,
}

// SAFETY: C code accesses the lock by atomic operations only.
unsafe impl Send for RawLock {}
// SAFETY: as above.
unsafe impl Sync for RawLock {}

impl RawLock {
    /// Allocates an unlocked lock.
    pub fn new(lock_type: &'static LockType) -> Self {
        let memory = Lines::new(lock_type.size());
        // SAFETY: the memory is zeroed, large enough and aligned, and nothing else refers to it yet.
        unsafe { lock_type.initialise(memory.start.as_ptr()) };
        Self { lock_type, memory }
    }

    /// The description of the lock.
    ///
    /// ```
    /// use lockworks::{RawLock, find};
    ///
    /// assert_eq!(RawLock::new(find("hq").unwrap()).lock_type().name(), "hq");
    /// ```
    pub fn lock_type(&self) -> &'static LockType {
        self.lock_type
    }

    /// Acquires the lock, and waits as long as that takes. It waits forever if this thread holds the
    /// lock already. The acquisition has acquire order.
    ///
    /// # Panics
    ///
    /// If `node` is for another lock type, or is lent already.
    pub fn lock(&self, node: &mut Node) {
        self.check(node);
        // SAFETY: `Lines` has the size and the alignment that the type wants. `node` is not lent, and
        // its memory is not freed while it is.
        unsafe {
            self.lock_type
                .lock(self.address(), node.memory.start.as_ptr())
        };
        node.lent_to = Some(self.memory.start);
    }

    /// Acquires the lock if that needs no waiting, and returns whether it did.
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

    /// Acquires the lock, unless the wait ends first because `deadline` comes or `cancel` is cancelled.
    /// `None` means that there is no deadline or no cancellation. A free lock is acquired in any case.
    ///
    /// ```
    /// use std::time::{Duration, Instant};
    ///
    /// use lockworks::{WaitError, Node, RawLock, find};
    ///
    /// let pv = find("pv").expect("the lock whose waiters park");
    /// let (lock, mut node) = (RawLock::new(pv), Node::new(pv));
    /// lock.lock(&mut node);
    /// let soon = Instant::now() + Duration::from_millis(1);
    /// let waited = std::thread::scope(|scope| {
    ///     let waiter = scope.spawn(|| lock.lock_until(&mut Node::new(pv), Some(soon), None));
    ///     waiter.join().unwrap()
    /// });
    /// assert_eq!(waited, Err(WaitError::TimedOut));
    /// // SAFETY: this thread has locked it above, with this node.
    /// unsafe { lock.unlock(&mut node) };
    /// ```
    ///
    /// # Errors
    ///
    /// If the wait ended before the lock was acquired: see [`WaitError`].
    ///
    /// # Panics
    ///
    /// As [`lock`](Self::lock) does. Also if a wait for this type of lock
    /// [cannot have a limit](LockType::can_time_out), or if another thread waits with `cancel`.
    pub fn lock_until(
        &self,
        node: &mut Node,
        deadline: Option<Instant>,
        cancel: Option<&Cancel>,
    ) -> Result<(), WaitError> {
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

    /// Releases the lock, with release order.
    ///
    /// # Safety
    ///
    /// This thread holds the lock, and acquired it with this `node`.
    pub unsafe fn unlock(&self, node: &mut Node) {
        debug_assert_eq!(
            node.lent_to,
            Some(self.memory.start),
            "a lock is unlocked with the node that it was locked with"
        );
        // SAFETY: as the caller promises.
        unsafe {
            self.lock_type
                .unlock(self.address(), node.memory.start.as_ptr())
        };
        node.lent_to = None;
    }

    /// Acquires the lock together with other readers, and waits as long as that takes; alone, if the
    /// lock [has no readers](LockType::has_readers).
    ///
    /// # Panics
    ///
    /// As [`lock`](Self::lock) does.
    ///
    /// ```
    /// use lockworks::{Node, RawLock, find};
    ///
    /// let rwlock = find("rwlock").unwrap();
    /// let lock = RawLock::new(rwlock);
    /// let mut node = Node::new(rwlock);
    /// lock.read_lock(&mut node);
    /// assert!(!lock.try_lock(&mut Node::new(rwlock)));
    /// // SAFETY: this thread has acquired it above, with this node.
    /// unsafe { lock.read_unlock(&mut node) };
    /// ```
    pub fn read_lock(&self, node: &mut Node) {
        self.check(node);
        // SAFETY: as in `lock`.
        unsafe {
            self.lock_type
                .read_lock(self.address(), node.memory.start.as_ptr())
        };
        node.lent_to = Some(self.memory.start);
    }

    /// Releases the lock, with release order.
    ///
    /// # Safety
    ///
    /// This thread has acquired the lock by [`read_lock`](Self::read_lock), with this `node`.
    pub unsafe fn read_unlock(&self, node: &mut Node) {
        // SAFETY: as the caller promises.
        unsafe {
            self.lock_type
                .read_unlock(self.address(), node.memory.start.as_ptr())
        };
        node.lent_to = None;
    }

    fn address(&self) -> *mut u8 {
        self.memory.start.as_ptr()
    }

    fn check(&self, node: &Node) {
        assert!(
            std::ptr::eq(self.lock_type, node.lock_type),
            "the queue node is for another lock type"
        );
        assert!(node.lent_to.is_none(), "the queue node is lent already");
    }
}
