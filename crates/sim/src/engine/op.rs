//! The operations that simulated code asks for.

/// The kind of an operation. `a`, `b`, `equal` and `polls` are the fields of [`Op`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// A load. The CPU stalls until the value is there.
    Load,
    /// A load of plain data. The CPU does not wait for the value.
    Touch,
    /// A store, through the buffer.
    Store,
    /// An atomic exchange: the new value is `a`.
    Exchange,
    /// An atomic compare-and-exchange: if the value is `a`, the new value is `b`.
    CompareExchange,
    /// An atomic bitwise or with `a`.
    Or,
    /// An atomic bitwise and with `a`.
    And,
    /// An atomic addition of `a`.
    Add,
    /// A wait until `(value & a) == b`, or `!= b` if `equal` is false. If `polls` is not 0, the
    /// wait ends after that many polls.
    Await,
    /// A request for ownership of the line. The CPU does not wait for it.
    Prefetch,
    /// A wait until the buffer is empty.
    Fence,
    /// A pause instruction in a loop that does other things too.
    Pause,
    /// A sleep, if the value is `a`. If `b` is not 0, it ends after that many picoseconds. The result
    /// is 0 if the CPU slept, else 1.
    Park,
    /// A wake-up of at most `a` sleepers. The waker has spent `b` picoseconds of its cost already. The
    /// result is the number of sleepers.
    Unpark,
    /// A sleep of `a` picoseconds.
    Sleep,
}

impl Kind {
    #[inline]
    pub(super) fn writes(self) -> bool {
        matches!(
            self,
            Self::Store
                | Self::Exchange
                | Self::CompareExchange
                | Self::Or
                | Self::And
                | Self::Add
                | Self::Prefetch
        )
    }
}

/// One operation of simulated code.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Op {
    pub(crate) address: usize,
    pub(crate) a: u64,
    pub(crate) b: u64,
    pub(crate) polls: u32,
    pub(crate) kind: Kind,
    pub(crate) size: u8,
    pub(crate) release: bool,
    pub(crate) equal: bool,
}

impl Op {
    #[inline]
    pub(crate) fn new(kind: Kind, address: usize, size: u32) -> Self {
        Self {
            kind,
            address,
            size: size as u8,
            release: false,
            equal: true,
            a: 0,
            b: 0,
            polls: 0,
        }
    }

    /// Whether a wait ends when the CPU reads this value.
    #[inline]
    pub(super) fn satisfied(&self, value: u64) -> bool {
        ((value & self.a) == self.b) == self.equal
    }
}
