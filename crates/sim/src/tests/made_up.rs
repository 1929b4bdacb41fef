//! Broken locks with one mistake each, which tests must find.

use std::ffi::{CStr, c_void};
use std::ptr;

use lockworks::{LockDescription, LockType};

use crate::engine::{Kind, Op};
use crate::hooks::operate;
use crate::thread::{compare_exchange, write};

/// A lock that excludes nobody, although its trylock fails as it should.
pub(super) static NONE: LockType = made_up(c"none", nothing, never, nothing);
/// A test-and-set lock that is released without release order.
pub(super) static RELAXED: LockType = made_up(c"relaxed", acquire, try_acquire, release_relaxed);
/// A test-and-set lock that is never released.
pub(super) static STUCK: LockType = made_up(c"stuck", acquire, try_acquire, nothing);

type Act = unsafe extern "C" fn(*mut c_void, *mut c_void);
type Try = unsafe extern "C" fn(*mut c_void, *mut c_void) -> bool;

const fn made_up(name: &'static CStr, lock: Act, try_lock: Try, unlock: Act) -> LockType {
    let description = LockDescription {
        name: name.as_ptr(),
        summary: name.as_ptr(),
        origin: name.as_ptr(),
        tunables: ptr::null(),
        size: 4,
        node_size: 0,
        traits: 0,
        unlocked: 0,
        lock,
        try_lock,
        unlock,
        lock_limited: None,
        read_lock: None,
        read_try_lock: None,
        read_unlock: None,
        read_lock_limited: None,
    };
    // SAFETY: the functions access only their four bytes.
    unsafe { LockType::new(description) }
}

extern "C" fn nothing(_: *mut c_void, _: *mut c_void) {}

extern "C" fn never(_: *mut c_void, _: *mut c_void) -> bool {
    false
}

extern "C" fn acquire(lock: *mut c_void, node: *mut c_void) {
    while !try_acquire(lock, node) {
        operate(Op {
            a: u32::MAX.into(),
            b: 0,
            ..Op::new(Kind::Await, lock.addr(), 4)
        });
    }
}

extern "C" fn try_acquire(lock: *mut c_void, _: *mut c_void) -> bool {
    compare_exchange(lock.addr(), 0, 1) == 0
}

extern "C" fn release_relaxed(lock: *mut c_void, _: *mut c_void) {
    write(lock.addr(), 4, 0);
}
