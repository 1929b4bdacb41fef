//! The requests of a CPU for cache lines that have not arrived.

/// The number of lines that a CPU can request at a time.
const LIMIT: usize = 16;

/// A CPU's request for a line.
#[derive(Clone, Copy)]
pub(super) struct Request {
    /// The time at which the CPU sent the request.
    pub(super) issued: u64,
    pub(super) cpu: u16,
    /// The slot of this request in [`Requests`].
    pub(super) slot: u8,
    /// Whether the CPU wants to write the line.
    pub(super) write: bool,
}

/// The requests of a CPU. The fields that are needed most often come first.
#[repr(C)]
pub(super) struct Requests {
    /// The number of the CPU.
    pub(super) cpu: u16,
    /// The slots of `lines` that are in use, one bit each.
    in_use: u16,
    /// The line of each request.
    lines: [u32; LIMIT],
}

impl Requests {
    pub(super) fn new(cpu: u16) -> Self {
        Self {
            cpu,
            in_use: 0,
            lines: [0; LIMIT],
        }
    }

    /// Whether a prefetch is not dropped: some slots stay free for what the CPU cannot do without.
    #[inline]
    pub(super) fn has_room(&self) -> bool {
        self.in_use.count_ones() < LIMIT as u32 - 4
    }

    /// Whether the CPU has requested the line with this number.
    #[inline]
    pub(super) fn contains(&self, line: u32) -> bool {
        let mut slots = self.in_use;
        while slots != 0 {
            if self.lines[slots.trailing_zeros() as usize % LIMIT] == line {
                return true;
            }
            slots &= slots - 1;
        }
        false
    }

    /// Adds a request for the line with this number, which the CPU sent at the time `issued`.
    #[inline]
    pub(super) fn add(&mut self, line: u32, write: bool, issued: u64) -> Request {
        let slot = self.in_use.trailing_ones();
        self.lines[slot as usize] = line;
        self.in_use |= 1 << slot;
        Request {
            issued,
            cpu: self.cpu,
            slot: slot as u8,
            write,
        }
    }

    /// Removes the request in this slot, whose line has arrived.
    #[inline]
    pub(super) fn end(&mut self, slot: u8) {
        self.in_use &= !(1 << slot);
    }
}
