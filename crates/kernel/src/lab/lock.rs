//! The slow paths that the spinlocks of a guest can have.

/// A slow path that the kernel's spinlocks can have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lock {
    /// The kernel's own.
    Stock,
    /// Lockworks' queued spinlock.
    Qspinlock,
    /// Lockworks' CNA.
    Cna,
    /// Lockworks' HQ where spinlocks opted in to it, the kernel's own elsewhere.
    Hq,
    /// The kernel's own, as if it were no guest.
    Native,
    /// The kernel's byte lock.
    Byte,
    /// The kernel's own paravirt lock.
    StockPv,
    /// Lockworks' queued unfair lock.
    Unfair,
    /// Lockworks' paravirt lock as Linux 4.2 had it.
    Pv42,
    /// Lockworks' paravirt lock.
    Pv,
}

impl Lock {
    /// All of them.
    pub const ALL: [Self; 10] = [
        Self::Stock,
        Self::Qspinlock,
        Self::Cna,
        Self::Hq,
        Self::Native,
        Self::Pv42,
        Self::StockPv,
        Self::Pv,
        Self::Byte,
        Self::Unfair,
    ];

    /// Those that a guest can be told to have when it is booted.
    pub const OF_GUESTS: [Self; 6] = [
        Self::Native,
        Self::Pv42,
        Self::StockPv,
        Self::Pv,
        Self::Byte,
        Self::Unfair,
    ];

    /// As it is called.
    pub fn name(self) -> &'static str {
        match self {
            Self::Stock => "stock",
            Self::Qspinlock => "qspinlock",
            Self::Cna => "cna",
            Self::Hq => "hq",
            Self::Native => "native",
            Self::Byte => "byte",
            Self::StockPv => "stock-pv",
            Self::Unfair => "unfair",
            Self::Pv42 => "pv42",
            Self::Pv => "pv",
        }
    }

    /// Does it let CPUs halt? It then takes a kernel whose spinlocks are called through `pv_ops`.
    pub fn is_paravirt(self) -> bool {
        matches!(self, Self::StockPv | Self::Pv42 | Self::Pv)
    }

    /// Is it one that guests can be told to have?
    pub fn is_of_guests(self) -> bool {
        Self::OF_GUESTS.contains(&self)
    }

    /// Can others take its place in a running guest?
    pub fn takes_turns(self) -> bool {
        !self.is_of_guests() || self == Self::Unfair
    }

    pub(crate) fn parameters(self) -> String {
        match self {
            Self::Stock => "numa_spinlock=off qspinlock=stock".to_owned(),
            Self::Qspinlock => "numa_spinlock=off qspinlock=lockworks".to_owned(),
            Self::Cna => "numa_spinlock=cna".to_owned(),
            Self::Hq => "numa_spinlock=hq qspinlock=stock".to_owned(),
            _ => format!("lockworks_guest={} numa_spinlock=off", self.name()),
        }
    }
}
