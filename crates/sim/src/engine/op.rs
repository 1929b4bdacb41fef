//! The operations that simulated code asks for.

/// Kinds of operation that simulated code asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// Load, stalling until the value is there.
    Load,
    /// Load of plain data, not waited for.
    Touch,
    /// Store through the buffer.
    Store,
    /// Exchange.
    Exchange,
    /// Compare `a`, and if equal store `b`.
    CompareExchange,
    /// Or.
    Or,
    /// And.
    And,
    /// Add.
    Add,
    /// Wait until `(value & a) == b`, or `!=` if not `equal`; for at most `polls` polls if that is not 0.
    Await,
    /// Ask for ownership, do not wait.
    Prefetch,
    /// Wait until the buffer is empty.
    Fence,
    /// A pause instruction in a loop that does other things too.
    Pause,
    /// Sleep if the value is `a`.
    Park,
    /// Wake up to `a` sleepers.
    Unpark,
    /// Sleep for `a` picoseconds.
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

    /// Does a wait end with this value?
    #[inline]
    pub(super) fn satisfied(&self, value: u64) -> bool {
        ((value & self.a) == self.b) == self.equal
    }
}
