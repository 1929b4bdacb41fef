//! The lock, or else, that a thread waits for in the futex system call.

use std::path::Path;

use nix::libc;
use serde::Serialize;

use crate::attach::process::{Frame, Process, State};
use crate::places::{Place, is_wrapper};
use crate::stack::{Stack, Unwinder};

/// Libraries in which the functions are that programs call to wait.
const LIBRARIES: [&str; 6] = [
    "libc.so.6",
    "libpthread.so.0",
    "liblockworks-preload.so",
    "liblockworks-profile.so",
    "ld-linux-x86-64.so.2",
    "libc++.so.1",
];

/// The library that serves the mutexes of a program in place of glibc.
pub const PRELOAD: &str = "liblockworks-preload.so";

/// The value that the word of a mutex has in glibc while threads may wait.
const CONTENDED: u32 = 2;

/// The bit of the readers of an rwlock that says that some wait until they may read.
const READERS_WAIT: u32 = 4;

/// The types and properties of a mutex that glibc stores in its kind, and those of the preload library.
const KINDS: u32 = 0x7ff;

/// The bits of a mutex that other processes share.
const SHARED: u32 = 128;

/// The offsets of the members of a mutex and of an rwlock in glibc.
mod member {
    pub const MUTEX_OWNER: usize = 8;
    pub const MUTEX_KIND: usize = 16;
    pub const RWLOCK_READERS: usize = 0;
    pub const RWLOCK_PHASE: u64 = 8;
    pub const RWLOCK_WRITERS: u64 = 12;
    pub const RWLOCK_WRITER: usize = 24;
    pub const LENGTH: usize = 32;
}

/// The kind of a lock.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    /// A pthread mutex.
    Mutex,
    /// An rwlock.
    Rwlock,
    /// A lock inside of glibc, as that of an arena of `malloc` or of a stream.
    Glibc,
}

impl Kind {
    /// The word for it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Mutex => "mutex",
            Self::Rwlock => "rwlock",
            Self::Glibc => "glibc's",
        }
    }
}

/// The thing that a thread waits for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum For {
    /// A lock at this address.
    Lock(u64, Kind),
    /// Something else, by the function that waits.
    Other(String),
}

/// A wait of a thread, which lasts as long as it sleeps.
#[derive(Clone, Debug)]
pub struct Wait {
    /// Its aim.
    pub what: For,
    /// The last byte of the call in the program. None: the stack cannot be followed.
    pub call: Option<u64>,
    /// Whether it ends by itself after some time.
    pub is_timed: bool,
}

/// The holder of a lock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Holder {
    /// A thread, by the number that the lock has.
    Thread(u32),
    /// Readers, which the lock does not name.
    Readers,
    /// A thread of another process, perhaps.
    Shared,
    /// None: the lock was released meanwhile.
    Free,
    /// The lock does not say.
    Unknown,
}

/// A system call that waits for a change of a word.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Futex {
    address: u64,
    value: u32,
    /// Whether it is the call with which glibc waits for locks.
    is_plain: bool,
    lends_priority: bool,
    is_timed: bool,
}

impl Futex {
    /// None: the call is another one.
    fn of(state: &State) -> Option<(Self, Frame)> {
        let State::Sleeps(number, [address, operation, value, until, ..], frame) = *state else {
            return None;
        };
        if i64::try_from(number) != Ok(libc::SYS_futex) {
            return None;
        }
        let command = operation as i32 & libc::FUTEX_CMD_MASK;
        let lends_priority = [libc::FUTEX_LOCK_PI, libc::FUTEX_LOCK_PI2].contains(&command);
        Some((
            Self {
                address,
                value: value as u32,
                is_plain: command == libc::FUTEX_WAIT,
                lends_priority,
                is_timed: until != 0,
            },
            frame,
        ))
    }
}

impl Wait {
    /// The wait of a thread that sleeps. None: it waits for nothing that threads wake it for.
    pub fn of(
        process: &Process,
        state: &State,
        is_thread: impl Fn(u32) -> bool,
        unwinder: &mut Unwinder,
        place_of: &mut impl FnMut(u64) -> Place,
    ) -> Option<Self> {
        let (futex, frame) = Futex::of(state)?;
        let memory = process.stack_memory(frame.stack);
        let stack = unwinder.stack(&process.record, &memory, frame.code, frame.stack, None);
        let (entry, outside) = entry(&stack, place_of);
        let library = &stack.calls[..outside.unwrap_or(stack.calls.len())];
        let is_served = |call: &u64| module(process, *call).is_some_and(|name| name == PRELOAD);
        let what = match library.iter().any(is_served) {
            true => served(process, &entry, &stack, outside, is_thread),
            false => waited_for(&futex, &entry, |address| {
                looks_like_mutex(&process.memory(address, member::LENGTH), &is_thread)
            }),
        };
        Some(Self {
            what,
            call: outside.map(|at| stack.calls[at]),
            is_timed: futex.is_timed,
        })
    }

    /// The holder of the lock at present.
    pub fn holder(&self, process: &Process) -> Holder {
        match self.what {
            For::Lock(lock, kind) => holder(kind, &process.memory(lock, member::LENGTH)),
            For::Other(_) => Holder::Unknown,
        }
    }
}

/// The name of the file that has the code at an address.
fn module(process: &Process, address: u64) -> Option<&str> {
    let (module, _) = process.record.module(address)?;
    module.path.file_name()?.to_str()
}

/// Whether a function is one of those that programs call to wait, or is called by these.
fn is_entry(name: &str) -> bool {
    let name = bare(name);
    ["pthread_", "lll_lock", "futex", "mtx_", "cnd_", "sem_"]
        .iter()
        .any(|begin| name.starts_with(begin))
}

/// The name without the marks of glibc's aliases.
fn bare(name: &str) -> &str {
    let name = name.strip_prefix("__GI_").unwrap_or(name);
    let name = name.strip_suffix("64").unwrap_or(name);
    name.trim_start_matches('_')
}

/// The function that the program has called, and the number of the call on the stack.
fn entry(stack: &Stack, place_of: &mut impl FnMut(u64) -> Place) -> (String, Option<usize>) {
    let mut entry = String::new();
    for (at, call) in stack.calls.iter().enumerate() {
        let mut place = place_of(*call);
        // The function that a call enters, not those that are inlined into it.
        let outer = place.inlined_into.pop().and_then(|frame| frame.function);
        let function = outer.or(place.function).unwrap_or_default();
        let is_library = place.module.as_deref().and_then(Path::file_name);
        let is_library =
            is_library.is_some_and(|name| LIBRARIES.iter().any(|library| name == *library));
        if !is_library && !is_entry(&function) && at > 0 {
            // Members of std::mutex and the like, if they are not inlined.
            match is_wrapper(&function) && at + 1 < stack.calls.len() {
                true => continue,
                false => return (entry, Some(at)),
            }
        }
        if !function.is_empty() {
            bare(&function).clone_into(&mut entry);
        }
    }
    (entry, None)
}

/// The thing that glibc waits for.
fn waited_for(futex: &Futex, entry: &str, is_mutex: impl Fn(u64) -> bool) -> For {
    let address = futex.address;
    let locks = futex.lends_priority || futex.is_plain && futex.value == CONTENDED;
    let other = || For::Other(if entry.is_empty() { "futex" } else { entry }.to_owned());
    if entry.starts_with("pthread_rwlock_") {
        // The values of another C library are others.
        let begin = match (address % 8, futex.value) {
            (4, 2 | 3) => address - member::RWLOCK_WRITERS,
            (0, 2 | 3) => address - member::RWLOCK_PHASE,
            (0, value) if value & READERS_WAIT != 0 && value >> 31 == 0 => address,
            _ => return other(),
        };
        return For::Lock(begin, Kind::Rwlock);
    }
    let is_one_of = |names: [&str; 2]| names.iter().any(|begin| entry.starts_with(begin));
    let (locks_mutex, waits) = (
        is_one_of(["pthread_mutex_", "mtx_"]),
        is_one_of(["pthread_cond_", "cnd_"]),
    );
    // A wait for a condition ends with one for the mutex.
    if futex.lends_priority
        || locks && waits
        || locks_mutex && futex.value == CONTENDED
        || (locks || locks_mutex) && is_mutex(address)
    {
        return For::Lock(address, Kind::Mutex);
    }
    match locks && entry != "syscall" {
        true => For::Lock(address, Kind::Glibc),
        false => other(),
    }
}

/// The thing that a thread in the preload library waits for. A parked thread waits on a word of its own, so
/// the lock is looked for on its stack: it is the only address there of something that a thread holds.
fn served(
    process: &Process,
    entry: &str,
    stack: &Stack,
    outside: Option<usize>,
    is_thread: impl Fn(u32) -> bool,
) -> For {
    let kind = match entry {
        _ if entry.starts_with("pthread_rwlock_") => Kind::Rwlock,
        _ if ["pthread_mutex_", "mtx_"]
            .iter()
            .any(|begin| entry.starts_with(begin)) =>
        {
            Kind::Mutex
        }
        _ => return For::Other(entry.to_owned()),
    };
    let (Some(begin), Some(end)) = (
        stack.pointers.first(),
        outside.and_then(|at| stack.pointers.get(at)),
    ) else {
        return For::Other(entry.to_owned());
    };
    let words = process.memory(*begin, (end - begin).min(8192) as usize);
    let words = words
        .chunks_exact(8)
        .filter_map(|word| Some(u64::from_ne_bytes(word.try_into().ok()?)));
    let mut found: Vec<u64> = words
        .filter(|address| {
            let memory = || process.memory(*address, member::LENGTH);
            address % 8 == 0
                && *address > 4096
                && match kind {
                    Kind::Rwlock => {
                        matches!(holder(kind, &memory()), Holder::Thread(tid) if is_thread(tid))
                    }
                    _ => looks_like_mutex(&memory(), &is_thread),
                }
        })
        .collect();
    found.sort_unstable();
    found.dedup();
    match found.as_slice() {
        [lock] => For::Lock(*lock, kind),
        _ => For::Other(entry.to_owned()),
    }
}

fn number(memory: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_ne_bytes(memory.get(at..at + 4)?.try_into().ok()?))
}

/// Whether a mutex is there that a thread of the process holds.
fn looks_like_mutex(memory: &[u8], is_thread: impl Fn(u32) -> bool) -> bool {
    let [Some(word), Some(owner), Some(kind)] =
        [0, member::MUTEX_OWNER, member::MUTEX_KIND].map(|at| number(memory, at))
    else {
        return false;
    };
    word != 0 && kind & !KINDS == 0 && is_thread(owner)
}

fn holder(kind: Kind, memory: &[u8]) -> Holder {
    let member = |at| number(memory, at);
    match kind {
        Kind::Glibc => Holder::Unknown,
        Kind::Mutex => match (
            member(0),
            member(member::MUTEX_OWNER),
            member(member::MUTEX_KIND),
        ) {
            (Some(_), Some(_), Some(kind)) if kind & SHARED != 0 => Holder::Shared,
            (Some(0), ..) | (_, Some(0), _) => Holder::Free,
            (_, Some(owner), _) => Holder::Thread(owner),
            _ => Holder::Unknown,
        },
        Kind::Rwlock => match (
            member(member::RWLOCK_WRITER),
            member(member::RWLOCK_READERS),
        ) {
            (Some(writer), _) if writer != 0 => Holder::Thread(writer),
            (_, Some(readers)) if readers >> 3 != 0 => Holder::Readers,
            (Some(_), Some(_)) => Holder::Free,
            _ => Holder::Unknown,
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn memory(numbers: &[u32]) -> Vec<u8> {
        numbers
            .iter()
            .flat_map(|number| number.to_ne_bytes())
            .collect()
    }

    #[test]
    fn locks_are_told_from_other_futexes() {
        let plain = |address, value| Futex {
            address,
            value,
            is_plain: true,
            lends_priority: false,
            is_timed: false,
        };
        let other = |address, value| Futex {
            is_plain: false,
            ..plain(address, value)
        };
        let lock = |address, kind| For::Lock(address, kind);
        for (futex, entry, is_mutex, expected) in [
            (
                plain(64, 2),
                "pthread_mutex_lock",
                true,
                lock(64, Kind::Mutex),
            ),
            (
                plain(64, 2),
                "pthread_cond_wait",
                false,
                lock(64, Kind::Mutex),
            ),
            (
                other(64, 0),
                "pthread_cond_wait",
                false,
                For::Other("pthread_cond_wait".into()),
            ),
            (plain(64, 2), "malloc", false, lock(64, Kind::Glibc)),
            (plain(64, 2), "", true, lock(64, Kind::Mutex)),
            (plain(64, 2), "syscall", false, For::Other("syscall".into())),
            (
                other(72, 3),
                "pthread_rwlock_rdlock",
                false,
                lock(64, Kind::Rwlock),
            ),
            (
                other(72, 2),
                "pthread_rwlock_wrlock",
                false,
                lock(64, Kind::Rwlock),
            ),
            (
                other(76, 3),
                "pthread_rwlock_wrlock",
                false,
                lock(64, Kind::Rwlock),
            ),
            (
                other(64, 12),
                "pthread_rwlock_rdlock",
                false,
                lock(64, Kind::Rwlock),
            ),
            (other(64, 0), "", false, For::Other("futex".into())),
            // Those of musl.
            (
                plain(68, 0x8000_0010),
                "pthread_mutex_lock",
                false,
                For::Other("pthread_mutex_lock".into()),
            ),
            (
                plain(64, u32::MAX),
                "pthread_rwlock_rdlock",
                false,
                For::Other("pthread_rwlock_rdlock".into()),
            ),
        ] {
            assert_eq!(
                waited_for(&futex, entry, |_| is_mutex),
                expected,
                "{entry} {futex:?}"
            );
        }
    }

    #[test]
    fn holders_are_read_and_memory_that_is_gone_has_none() {
        let mutex = memory(&[2, 0, 77, 1, 0, 0, 0, 0]);
        assert_eq!(holder(Kind::Mutex, &mutex), Holder::Thread(77));
        assert!(looks_like_mutex(&mutex, |tid| tid == 77));
        assert!(!looks_like_mutex(&mutex, |tid| tid == 78));
        assert_eq!(holder(Kind::Mutex, &memory(&[0, 0, 0, 1, 0])), Holder::Free);
        assert_eq!(
            holder(Kind::Mutex, &memory(&[2, 0, 77, 1, 128])),
            Holder::Shared
        );
        let rwlock = memory(&[2 << 3 | 4, 0, 0, 0, 0, 0, 0, 0]);
        assert_eq!(holder(Kind::Rwlock, &rwlock), Holder::Readers);
        let written = memory(&[3, 0, 1, 1, 0, 0, 77, 0]);
        assert_eq!(holder(Kind::Rwlock, &written), Holder::Thread(77));
        for end in 0..16 {
            assert_eq!(holder(Kind::Rwlock, &mutex[..end]), Holder::Unknown);
        }
    }
}
