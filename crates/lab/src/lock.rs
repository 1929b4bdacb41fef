//! The slow paths that the spinlocks of a guest can have.

/// A slow path of the kernel's spinlocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lock {
    /// The stock slow path.
    Stock,
    /// Lockworks' queued spinlock.
    Qspinlock,
    /// Lockworks' CNA.
    Cna,
    /// Lockworks' HQ for spinlocks that opted in, the stock slow path for others.
    Hq,
    /// Lockworks' mutex, whose waiters spin.
    Mutex,
    /// The stock native slow path, even if the kernel detects a hypervisor.
    Native,
    /// The kernel's byte lock.
    Byte,
    /// The stock paravirt lock.
    StockPv,
    /// Lockworks' queued unfair lock.
    Unfair,
    /// Lockworks' paravirt lock.
    Pv,
    /// Lockworks' mutex, whose waiters halt.
    PvMutex,
}

impl Lock {
    /// All locks; those that `lockworks_guest=` can choose are last.
    pub const ALL: [Self; 11] = [
        Self::Stock,
        Self::Qspinlock,
        Self::Cna,
        Self::Hq,
        Self::Mutex,
        Self::Native,
        Self::StockPv,
        Self::Pv,
        Self::PvMutex,
        Self::Byte,
        Self::Unfair,
    ];

    /// The locks that overcommitted guests are compared with.
    pub const COMPARED: &[Self] = Self::ALL.split_at(4).1;

    /// The locks that `lockworks_guest=` can choose.
    pub const OF_GUESTS: &[Self] = Self::ALL.split_at(5).1;

    /// The name on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Self::Stock => "stock",
            Self::Qspinlock => "qspinlock",
            Self::Cna => "cna",
            Self::Hq => "hq",
            Self::Mutex => "mutex",
            Self::Native => "native",
            Self::Byte => "byte",
            Self::StockPv => "stock-pv",
            Self::Unfair => "unfair",
            Self::Pv => "pv",
            Self::PvMutex => "pv-mutex",
        }
    }

    /// Whether its waiters halt. Such a lock needs a kernel that calls spinlocks through `pv_ops`.
    pub fn is_paravirt(self) -> bool {
        matches!(self, Self::StockPv | Self::Pv | Self::PvMutex)
    }

    /// Whether `lockworks_guest=` can choose it.
    pub fn is_of_guests(self) -> bool {
        Self::OF_GUESTS.contains(&self)
    }

    /// Whether a running guest can change to another slow path.
    pub fn takes_turns(self) -> bool {
        !self.is_of_guests() || self == Self::Unfair
    }

    pub(crate) fn parameters(self) -> String {
        match self {
            Self::Stock => "numa_spinlock=off qspinlock=stock".to_owned(),
            Self::Qspinlock => "numa_spinlock=off qspinlock=lockworks".to_owned(),
            Self::Cna => "numa_spinlock=cna".to_owned(),
            Self::Hq => "numa_spinlock=hq qspinlock=stock".to_owned(),
            Self::Mutex => "numa_spinlock=mutex qspinlock=stock".to_owned(),
            _ => format!("lockworks_guest={} numa_spinlock=off", self.name()),
        }
    }
}
