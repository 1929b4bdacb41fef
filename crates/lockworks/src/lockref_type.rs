use std::ffi::{c_char, c_void};
use std::sync::LazyLock;

use crate::LockType;
use crate::lock_type::{table, text};

/// The description of a lockref: the lock in it, and its operations.
///
/// This is `struct lw_lockref_type` of `locks/registry/lockref_type.h`. The model checker describes its
/// build of the lockrefs by the same structure.
///
/// ```
/// let lockref_type = lockworks::find_lockref("lockref-cna").unwrap();
/// assert_eq!(lockref_type.lock().name(), "cna");
/// ```
#[repr(C)]
#[derive(Debug)]
pub struct LockrefType {
    name: *const c_char,
    lock: *const LockType,
    pub(crate) init: unsafe extern "C" fn(*mut c_void, i32),
    pub(crate) get: unsafe extern "C" fn(*mut c_void),
    pub(crate) get_not_zero: unsafe extern "C" fn(*mut c_void) -> bool,
    pub(crate) get_not_dead: unsafe extern "C" fn(*mut c_void) -> bool,
    pub(crate) put_or_lock: unsafe extern "C" fn(*mut c_void) -> bool,
    pub(crate) put_not_zero: unsafe extern "C" fn(*mut c_void) -> bool,
    pub(crate) put_return: unsafe extern "C" fn(*mut c_void) -> i32,
    pub(crate) count: unsafe extern "C" fn(*mut c_void) -> i32,
    pub(crate) set_count: unsafe extern "C" fn(*mut c_void, i32),
    pub(crate) mark_dead: unsafe extern "C" fn(*mut c_void),
}

include!(concat!(env!("OUT_DIR"), "/layout_LockrefType.rs"));

// SAFETY: every value is a C constant, which holds nothing but pointers to constants.
unsafe impl Sync for LockrefType {}
// SAFETY: as above.
unsafe impl Send for LockrefType {}

impl LockrefType {
    /// The size of a lockref in bytes, which is also its alignment.
    ///
    /// ```
    /// assert_eq!(lockworks::LockrefType::SIZE, 8);
    /// ```
    pub const SIZE: usize = 8;

    /// The lockref's name, by which [`find_lockref`] finds it: `lockref-` and the name of its lock.
    ///
    /// ```
    /// assert_eq!(lockworks::lockref_types()[0].name(), "lockref-tas");
    /// ```
    pub fn name(&self) -> &'static str {
        // SAFETY: set by the C side to a constant string.
        unsafe { text(self.name) }
    }

    /// The lock in the lockref, which has the lockref's address.
    ///
    /// ```
    /// assert_eq!(lockworks::lockref_types()[0].lock().name(), "tas");
    /// ```
    pub fn lock(&self) -> &'static LockType {
        // SAFETY: set by the C side to the address of a constant.
        unsafe { &*self.lock }
    }
}

unsafe extern "C" {
    /// A table that ends with NULL, so its length is not known here.
    static lw_lockref_types: [*const LockrefType; 0];
}

/// Every lockref of the library, in the order in which tables show their locks.
///
/// ```
/// for lockref_type in lockworks::lockref_types() {
///     println!("{}", lockref_type.name());
/// }
/// ```
pub fn lockref_types() -> &'static [&'static LockrefType] {
    static TYPES: LazyLock<Vec<&'static LockrefType>> = LazyLock::new(|| {
        // SAFETY: `lw_lockref_types` is a constant table of constants, which ends with NULL.
        unsafe {
            table((&raw const lw_lockref_types).cast()).map(|entry: *const LockrefType| &*entry)
        }
        .collect()
    });
    &TYPES
}

/// Finds a lockref by its name.
///
/// ```
/// assert!(lockworks::find_lockref("lockref-hq").is_some());
/// assert!(lockworks::find_lockref("lockref-mcs").is_none());
/// ```
pub fn find_lockref(name: &str) -> Option<&'static LockrefType> {
    lockref_types()
        .iter()
        .copied()
        .find(|lockref_type| lockref_type.name() == name)
}
