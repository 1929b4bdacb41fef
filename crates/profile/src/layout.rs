//! The structures of `interpose/profile/record.h`, and reading them from a file. The build fails if C has
//! others.

use std::fs::File;
use std::os::unix::fs::FileExt;

use nix::unistd::{Whence, lseek};

mod constants {
    include!(concat!(env!("OUT_DIR"), "/profile_constants.rs"));
}

pub(crate) use constants::*;

/// The mode in which a lock is acquired.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Mode {
    /// A mutex has no other.
    #[default]
    Mutex,
    /// An rwlock, together with other readers.
    Read,
    /// An rwlock, alone.
    Write,
}

include!(concat!(env!("OUT_DIR"), "/layout_Mode.rs"));

/// The occupation of a lock's holder while another thread waited for the lock, or of the waiter.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub enum What {
    /// It ran, in a long section.
    Ran,
    /// It could run, but had no CPU.
    Preempted,
    /// It could run, but the CPU quota of its control group was used up.
    Throttled,
    /// It slept in a system call.
    Slept,
    /// It waited for a page of memory.
    Faulted,
    /// It waited for another lock.
    Nested,
    /// The lock was free, or threads had it in turn, none for long.
    InTurn,
    /// The same, and the waiter could run, but had no CPU.
    Late,
    /// The kernel does not say.
    Unseen,
    /// Nobody looked.
    Unwatched,
}

include!(concat!(env!("OUT_DIR"), "/layout_What.rs"));

/// A mapping of code.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct Module {
    pub start: u64,
    pub end: u64,
    pub offset: u64,
    pub path: [u8; 488],
}

include!(concat!(env!("OUT_DIR"), "/layout_Module.rs"));

/// A lock in one mode.
#[repr(C, align(64))]
#[derive(Clone, Copy)]
pub struct Lock {
    pub key: u64,
    pub hold: u64,
    pub since: u64,
    pub begun: u64,
    pub first_site: u32,
    pub holder: u32,
    pub depth: u32,
    pub looker: u32,
    pub last_thread: u32,
    pub last_node: u32,
    pub kind: u32,
    pub stack: u32,
}

include!(concat!(env!("OUT_DIR"), "/layout_Lock.rs"));

/// The acquisitions of a lock in one mode at a place.
#[repr(C, align(64))]
#[derive(Clone, Copy)]
pub struct LockSite {
    pub lock: u32,
    pub next_site: u32,
    pub caller: u64,
    pub acquisitions: u64,
    pub contended: u64,
    pub after_condition: u64,
    pub waited: u64,
    pub waited_max: u64,
    pub held: u64,
    pub held_max: u64,
    pub from_same_thread: u64,
    pub from_same_node: u64,
    pub from_other_node: u64,
    pub threads: [u64; 4],
}

include!(concat!(env!("OUT_DIR"), "/layout_LockSite.rs"));

/// A wait in progress.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct Wait {
    pub key: u64,
    pub caller: u64,
    pub begun: u64,
    pub thread: u64,
    pub tid: u64,
}

include!(concat!(env!("OUT_DIR"), "/layout_Wait.rs"));

/// The time that threads waited long for a lock at a place for one cause.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct Cause {
    pub state: u32,
    pub what: u32,
    pub key: u64,
    pub caller: u64,
    pub holder: u64,
    pub detail: u64,
    pub ns: u64,
    pub waits: u64,
}

include!(concat!(env!("OUT_DIR"), "/layout_Cause.rs"));

/// An acquisition that has ended.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct Event {
    pub key: u64,
    pub caller: u64,
    pub begun: u64,
    pub acquired: u64,
    pub released: u64,
    pub thread: u32,
    pub node: u32,
}

include!(concat!(env!("OUT_DIR"), "/layout_Event.rs"));

/// The waits for a condition at a place, or its signals there.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct Condition {
    pub state: u32,
    pub is_signal: u32,
    pub cond: u64,
    pub caller: u64,
    pub calls: u64,
    pub timed_out: u64,
    pub for_nothing: u64,
    pub waited: u64,
    pub waited_max: u64,
}

include!(concat!(env!("OUT_DIR"), "/layout_Condition.rs"));

/// The registers of a thread, and what its stack has from the stack pointer on.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct Frames {
    pub code: u64,
    pub stack: u64,
    pub frame: u64,
    pub words: u64,
    pub word: [u64; 507],
}

include!(concat!(env!("OUT_DIR"), "/layout_Frames.rs"));

/// The stacks of an acquisition and of its release.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct Stack {
    pub site: u64,
    pub waited: u64,
    pub stands_for: u64,
    pub acquired: Frames,
    pub released: Frames,
}

include!(concat!(env!("OUT_DIR"), "/layout_Stack.rs"));

/// A step of a thread.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct RawStep {
    pub time: u64,
    pub object: u64,
    pub caller: u64,
    pub away: u32,
    pub cpu: u16,
    pub flags: u8,
    pub kind: u8,
}

include!(concat!(env!("OUT_DIR"), "/layout_RawStep.rs"));

/// The steps that a thread has taken one after the other.
#[repr(C)]
pub struct Block {
    pub thread: u64,
    pub number: u64,
    pub unused: [u64; 2],
    pub step: [RawStep; LW_PROFILE_BLOCK_STEPS],
}

include!(concat!(env!("OUT_DIR"), "/layout_Block.rs"));

/// The beginning of the file with steps. Blocks follow.
#[repr(C)]
pub struct Steps {
    pub magic: u64,
    pub size: u64,
    pub from: u64,
    pub until: u64,
    pub knows_away: u64,
    pub real_time: u64,
    pub most: u64,
    pub blocks: u64,
    pub lost: u64,
    pub empty_held: u64,
    pub empty_apart: u64,
    pub unused: [u64; 8181],
}

include!(concat!(env!("OUT_DIR"), "/layout_Steps.rs"));

use crate::recording::Kind;
include!(concat!(env!("OUT_DIR"), "/layout_Kind.rs"));

/// The whole file.
#[repr(C)]
pub struct Profile {
    pub magic: u64,
    pub size: u64,
    pub pid: u64,
    pub nodes: u64,
    pub has_tsc: u64,
    pub time: u64,
    pub at_ns: u64,
    pub modules: u64,
    pub locks: u64,
    pub sites: u64,
    pub threads: u64,
    pub lost: u64,
    pub lost_contended: u64,
    pub lost_causes: u64,
    pub lost_conditions: u64,
    pub spun: u64,
    pub events: u64,
    pub stacks: u64,
    pub ended: u64,
    pub wait: [Wait; LW_PROFILE_WAITS],
    pub cause: [Cause; LW_PROFILE_CAUSES],
    pub module: [Module; LW_PROFILE_MODULES],
    pub lock: [Lock; LW_PROFILE_LOCKS],
    pub site: [LockSite; LW_PROFILE_SITES],
    pub event: [Event; LW_PROFILE_EVENTS],
    pub condition: [Condition; LW_PROFILE_CONDITIONS],
    pub stack: [Stack; LW_PROFILE_STACKS],
}

include!(concat!(env!("OUT_DIR"), "/layout_Profile.rs"));

/// A type of numbers only.
///
/// # Safety
///
/// Any bytes are a value of the type.
pub unsafe trait Numbers: Copy {}

// SAFETY: a number.
unsafe impl Numbers for u64 {}
// SAFETY: numbers, without padding between them.
unsafe impl Numbers for Module {}
// SAFETY: as above.
unsafe impl Numbers for Lock {}
// SAFETY: as above.
unsafe impl Numbers for LockSite {}
// SAFETY: as above.
unsafe impl Numbers for Wait {}
// SAFETY: as above.
unsafe impl Numbers for Cause {}
// SAFETY: as above.
unsafe impl Numbers for Event {}
// SAFETY: as above.
unsafe impl Numbers for Condition {}
// SAFETY: as above.
unsafe impl Numbers for Stack {}
// SAFETY: as above.
unsafe impl Numbers for RawStep {}

/// Reads the first `length` entries of the table at an offset in the file. Pages that nobody has written to
/// are zeros, and are not read.
pub fn table<T: Numbers>(file: &File, at: usize, length: usize) -> std::io::Result<Vec<T>> {
    let mut bytes = vec![0; length * size_of::<T>()];
    let end = (at + bytes.len()) as i64;
    let mut next = at as i64;
    while next < end {
        let Ok(data) = lseek(file, next, Whence::SeekData) else {
            break;
        };
        let hole = lseek(file, data, Whence::SeekHole)?.min(end);
        if data < hole {
            let part = &mut bytes[data as usize - at..hole as usize - at];
            file.read_exact_at(part, data as u64)?;
        }
        next = hole.max(data + 1);
    }
    Ok(entries(&bytes))
}

/// The entries at `at`, of a file that has all of them: to look for holes takes as long as the file has pages.
pub fn written<T: Numbers>(file: &File, at: usize, length: usize) -> std::io::Result<Vec<T>> {
    let mut bytes = vec![0; length * size_of::<T>()];
    file.read_exact_at(&mut bytes, at as u64)?;
    Ok(entries(&bytes))
}

fn entries<T: Numbers>(bytes: &[u8]) -> Vec<T> {
    let entries = bytes.chunks_exact(size_of::<T>());
    // SAFETY: each chunk has the bytes of an entry, and any bytes are one.
    let entry = |chunk: &[u8]| unsafe { chunk.as_ptr().cast::<T>().read_unaligned() };
    entries.map(entry).collect()
}

/// The meaning of a number in a cause.
pub fn what(number: u32) -> What {
    let all = [
        What::Ran,
        What::Preempted,
        What::Throttled,
        What::Slept,
        What::Faulted,
        What::Nested,
        What::InTurn,
        What::Late,
        What::Unwatched,
    ];
    let mut all = all.into_iter();
    let what = all.find(|what| *what as u32 == number);
    what.unwrap_or(What::Unseen)
}

/// The address and the mode that a key consists of.
pub fn lock_and_mode(key: u64) -> (u64, Mode) {
    let bits = key as usize & LW_PROFILE_MODE_MASK;
    let mut modes = [Mode::Mutex, Mode::Read, Mode::Write].into_iter();
    let mode = modes.find(|mode| *mode as usize == bits);
    (key >> LW_PROFILE_MODE_BITS, mode.unwrap_or_default())
}
