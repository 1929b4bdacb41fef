//! The shared memory of a workload file: its layout, and its contents when it has been set up.

use std::fmt;

use lockworks_machine::description::Fault;
use toml::Spanned;

use super::amount::Amount;
use super::description::{Memory, MemoryKind};
use super::futex::Mutex;
use super::scope::Scope;
use crate::lock::{SimLock, SimLockref};
use crate::program::Setup;

/// The greatest number of pieces of one description.
const MAX_COUNT: f64 = 65_536.0;
/// The greatest size of a piece in bytes.
const MAX_BYTES: f64 = 16_777_216.0;
/// The greatest size of all memory that a file describes, in bytes.
const MAX_TOTAL: usize = 64 << 20;
/// The alignment of data behind a lock in bytes, as compilers align data.
const ALIGNMENT: usize = 8;

impl fmt::Display for MemoryKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Data => "data",
            Self::Lock => "a lock",
            Self::FutexMutex => "a futex_mutex",
            Self::Lockref => "a lockref",
        })
    }
}

/// The layout of the pieces of a description.
#[derive(Debug)]
pub(super) struct Layout<'a> {
    pub(super) name: &'a str,
    pub(super) kind: MemoryKind,
    pub(super) count: usize,
    /// Whether the file describes exactly one piece.
    pub(super) is_one: bool,
    pub(super) data_bytes: usize,
    data_at: usize,
    syscall_ns: f64,
    bucket_critical_ns: f64,
}

/// A key of a memory, its value, and the kinds of memory that allow the key.
type KeyOfKinds<'a> = (&'a str, &'a Option<Spanned<Amount>>, &'a [MemoryKind]);

impl<'a> Layout<'a> {
    /// Checks all descriptions and computes their amounts.
    pub(super) fn all(
        memory: &'a [Spanned<Memory>],
        scope: &Scope<'_>,
    ) -> Result<Vec<Layout<'a>>, Fault> {
        let mut layouts: Vec<Layout> = Vec::new();
        let mut total = 0;
        for described in memory {
            let layout = Layout::new(described, scope)?;
            if layouts.iter().any(|other| other.name == layout.name) {
                let message = format!("a second `{}`; choose another name", layout.name);
                return Err(Fault::at(described, message));
            }
            total += layout.count * (layout.data_bytes + layout.data_at);
            if total > MAX_TOTAL {
                let message = format!("{total} bytes of memory in all; at most {MAX_TOTAL}");
                return Err(Fault::at(described, message));
            }
            layouts.push(layout);
        }
        Ok(layouts)
    }

    fn new(described: &'a Spanned<Memory>, scope: &Scope<'_>) -> Result<Self, Fault> {
        let Memory {
            name,
            kind,
            count,
            bytes,
            data_at,
            syscall_ns,
            bucket_critical_ns,
        } = described.get_ref();
        let keys: [KeyOfKinds<'_>; 4] = [
            ("bytes", bytes, &[MemoryKind::Data, MemoryKind::Lock]),
            ("data_at", data_at, &[MemoryKind::Lock]),
            ("syscall_ns", syscall_ns, &[MemoryKind::FutexMutex]),
            (
                "bucket_critical_ns",
                bucket_critical_ns,
                &[MemoryKind::FutexMutex],
            ),
        ];
        for (key, amount, kinds) in keys {
            if let Some(amount) = amount
                && !kinds.contains(kind)
            {
                return Err(Fault::at(amount, format!("{kind} has no `{key}`")));
            }
        }
        let whole = |what, amount: &Option<Spanned<Amount>>, range, usual| match amount {
            Some(amount) => scope.whole(what, amount, range),
            None => Ok(usual),
        };
        let time = |key: &str, amount: &Option<Spanned<Amount>>| match amount {
            Some(amount) => scope.amount(key, amount, amount.get_ref(), 0.0..=1e12),
            None if *kind == MemoryKind::FutexMutex => {
                Err(Fault::at(described, format!("{kind} needs `{key}`")))
            }
            None => Ok(0.0),
        };
        let usual_bytes = if *kind == MemoryKind::Data { 64 } else { 0 };
        Ok(Self {
            name,
            kind: *kind,
            count: whole("count", count, 1.0..=MAX_COUNT, 1)?,
            is_one: count.is_none(),
            data_bytes: whole("bytes", bytes, 1.0..=MAX_BYTES, usual_bytes)?,
            data_at: whole("data_at", data_at, 0.0..=MAX_BYTES, ALIGNMENT)?,
            syscall_ns: time("syscall_ns", syscall_ns)?,
            bucket_critical_ns: time("bucket_critical_ns", bucket_critical_ns)?,
        })
    }

    /// Sets up all pieces in simulated memory.
    pub(super) fn build(&self, setup: &mut Setup) -> Vec<Piece> {
        (0..self.count).map(|_| self.piece(setup)).collect()
    }

    fn piece(&self, setup: &mut Setup) -> Piece {
        match self.kind {
            MemoryKind::Data => Piece::Data(setup.allocate(self.name, self.data_bytes)),
            MemoryKind::Lock if self.data_bytes == 0 => Piece::Lock {
                lock: setup.lock(self.name),
                data: 0,
            },
            MemoryKind::Lock => {
                let data_at = setup.lock_size().max(self.data_at);
                let data_at = data_at.next_multiple_of(ALIGNMENT);
                let address = setup.allocate(self.name, data_at + self.data_bytes);
                Piece::Lock {
                    lock: setup.lock_at(address),
                    data: address + data_at,
                }
            }
            MemoryKind::FutexMutex => {
                Piece::FutexMutex(Mutex::new(self.syscall_ns, self.bucket_critical_ns, setup))
            }
            MemoryKind::Lockref => Piece::Lockref(setup.lockref(self.name, 1)),
        }
    }
}

/// Memory that is set up.
pub(super) enum Piece {
    /// Data at this address.
    Data(usize),
    /// A lock, and the address of the data behind it.
    Lock {
        lock: SimLock,
        data: usize,
    },
    FutexMutex(Mutex),
    Lockref(SimLockref),
}

impl Piece {
    /// Returns the address of the piece's data.
    pub(super) fn data(&self) -> usize {
        match self {
            Self::Data(address) | Self::Lock { data: address, .. } => *address,
            Self::FutexMutex(_) | Self::Lockref(_) => {
                unreachable!("steps that access data have been checked")
            }
        }
    }

    /// Returns the lock under test in the piece, if it has one.
    pub(super) fn lock(&self) -> Option<&SimLock> {
        match self {
            Self::Data(_) => None,
            Self::Lock { lock, .. } => Some(lock),
            Self::FutexMutex(mutex) => Some(mutex.bucket()),
            Self::Lockref(lockref) => Some(lockref.lock()),
        }
    }
}
