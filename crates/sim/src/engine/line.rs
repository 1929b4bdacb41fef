//! A cache line: its data, the CPUs that have a copy of it, and the CPUs that have requested it.

use super::requests::Request;
use crate::model::Holders;

/// The size of a line in bytes.
pub(crate) const LINE: usize = 64;
/// The address at which simulated memory begins. No process has this address mapped, so code that
/// accesses memory without an operation of the contract faults. All simulated addresses fit 32
/// bits.
const BASE: usize = 1 << 28;
const WORD: usize = size_of::<u64>();

pub(super) const NOBODY: u16 = u16::MAX;

/// Returns the number of the line that contains an address.
#[inline]
pub(super) fn line_of(address: usize) -> usize {
    address.wrapping_sub(BASE) / LINE
}

/// Returns the address at which the line of this number begins.
pub(super) fn start_of(line: usize) -> usize {
    BASE + line * LINE
}

/// Returns the line that contains an address.
#[inline]
pub(super) fn find(lines: &mut [Line], address: usize) -> &mut Line {
    match lines.get_mut(line_of(address)) {
        Some(line) => line,
        None => outside(address),
    }
}

#[cold]
fn outside(address: usize) -> ! {
    panic!("access outside simulated memory, at {address:#x}")
}

/// The CPUs that share a line. Mostly there are two: the last writer of the line, and the first CPU
/// that read it after that. The bit set is used only if there are more.
struct Sharers {
    count: u16,
    first: [u16; 2],
    others: Box<[u64]>,
}

impl Sharers {
    #[inline]
    fn contains(&self, c: u16) -> bool {
        self.first.contains(&c)
            || self.count > 2 && self.others[usize::from(c / 64)] >> (c % 64) & 1 != 0
    }

    #[inline]
    fn insert(&mut self, c: u16) {
        if self.contains(c) {
            return;
        }
        match self.first.get_mut(usize::from(self.count)) {
            Some(place) => *place = c,
            None => self.others[usize::from(c / 64)] |= 1 << (c % 64),
        }
        self.count += 1;
    }

    /// Makes these two CPUs share the line, which no CPU shares yet. They may be the same CPU.
    #[inline]
    fn start(&mut self, owner: u16, c: u16) {
        self.first = [owner, if c == owner { NOBODY } else { c }];
        self.count = 1 + u16::from(c != owner);
    }

    fn iter(&self) -> impl Iterator<Item = u16> {
        let others = self.others.iter().filter(|_| self.count > 2).enumerate();
        let others = others.flat_map(|(at, &word)| {
            std::iter::successors(Some(word), |rest| Some(rest & rest.wrapping_sub(1)))
                .take_while(|&rest| rest != 0)
                .map(move |rest| at as u16 * 64 + rest.trailing_zeros() as u16)
        });
        let first = self.first.into_iter().filter(|&cpu| cpu != NOBODY);
        first.chain(others)
    }

    #[inline]
    fn clear(&mut self) {
        if self.count > 2 {
            self.others.fill(0);
        }
        self.first = [NOBODY; 2];
        self.count = 0;
    }
}

/// A simulated cache line. Its state, data and queues are on one cache line of the host each.
#[repr(C, align(64))]
pub(super) struct Line {
    pub(super) number: u32,
    /// The NUMA node of its memory.
    pub(super) home: u16,
    /// The CPU that has the only copy of the line, or [`NOBODY`].
    pub(super) owner: u16,
    /// The number of shared reads in progress.
    pub(super) readers: u16,
    /// Whether any cache has the line.
    pub(super) cached: bool,
    /// Whether the exclusive transaction in progress is a write.
    pub(super) writing: bool,
    /// The last-level caches of the CPUs that have the line, as a set of bits. Empty: there are too many.
    llcs: u64,
    /// The time at which the exclusive transaction in progress takes the line from the CPUs that
    /// have it. `u64::MAX` if no exclusive transaction is in progress.
    pub(super) lose_at: u64,
    /// The time until which the owner's access keeps the line from being taken.
    pub(super) hold_until: u64,
    sharers: Sharers,
    words: [u64; LINE / WORD],
    /// The requests that wait to be served, each with the time at which it arrives at the line.
    pub(super) requests: Vec<(u64, Request)>,
    /// The CPUs that have the line and wait for its data to change.
    pub(super) waiters: Vec<u16>,
    /// The time from which the next read of the shared line can be served.
    pub(super) read_free: u64,
    /// The time at which the latest write took the line from all others.
    pub(super) written_at: u64,
}

impl Holders for Line {
    #[inline]
    fn llcs(&self) -> u64 {
        self.llcs
    }

    fn cpus(&self) -> impl Iterator<Item = u16> {
        self.sharers.iter()
    }
}

impl Line {
    pub(super) fn new(number: usize, home: u16, cpus: usize) -> Self {
        Self {
            number: number as u32,
            home,
            owner: NOBODY,
            cached: false,
            writing: false,
            readers: 0,
            sharers: Sharers {
                count: 0,
                first: [NOBODY; 2],
                others: vec![0; cpus.div_ceil(64)].into(),
            },
            llcs: 0,
            lose_at: u64::MAX,
            hold_until: 0,
            read_free: 0,
            written_at: 0,
            words: [0; LINE / WORD],
            requests: Vec::new(),
            waiters: Vec::new(),
        }
    }

    // The CPUs that have the line.

    /// Whether an exclusive transaction is in progress.
    #[inline]
    pub(super) fn is_busy(&self) -> bool {
        self.lose_at != u64::MAX
    }

    /// Whether a transaction in progress keeps a new one from being served.
    #[inline]
    pub(super) fn is_closed(&self, write: bool) -> bool {
        self.is_busy() || write && self.readers > 0
    }

    /// Whether `c` can access the line at `now` without a transaction.
    #[inline]
    pub(super) fn hits(&self, c: u16, write: bool, now: u64) -> bool {
        let being_taken = now >= self.lose_at && (write || self.writing);
        !being_taken && (self.owner == c || !write && self.sharers.contains(c))
    }

    /// Whether a CPU other than `c` shares the line.
    #[inline]
    pub(super) fn has_other_sharers(&self, c: u16) -> bool {
        self.sharers.count > u16::from(self.sharers.contains(c))
    }

    /// Makes `c` one of the CPUs that share the line.
    #[inline]
    pub(super) fn share(&mut self, c: u16, llcs: u64) {
        self.llcs |= llcs;
        if self.owner == NOBODY {
            self.sharers.insert(c);
        } else {
            self.sharers.start(self.owner, c);
            self.owner = NOBODY;
        }
    }

    /// Makes `c` the only CPU that has the line.
    #[inline]
    pub(super) fn own(&mut self, c: u16, llcs: u64) {
        self.sharers.clear();
        self.owner = c;
        self.llcs = llcs;
        self.hold_until = 0;
    }

    /// Lets the owner keep the line until the time `until`, because it is accessing the line.
    #[inline]
    pub(super) fn hold(&mut self, until: u64) {
        self.hold_until = self.hold_until.max(until);
    }

    /// Removes and returns the request that arrives first, if it can be served now.
    #[inline]
    pub(super) fn next_request(&mut self) -> Option<Request> {
        if self.requests.is_empty() || self.is_busy() {
            return None;
        }
        let mut at = 0;
        for i in 1..self.requests.len() {
            if self.requests[i].0 < self.requests[at].0 {
                at = i;
            }
        }
        (!self.is_closed(self.requests[at].1.write)).then(|| self.requests.swap_remove(at).1)
    }

    // The data of the line. Shifts and masks pick values, without branches on their size.

    #[inline]
    pub(super) fn read(&self, address: usize, size: u8) -> u64 {
        let (word, shift, mask) = word_of(address, size);
        self.words[word] >> shift & mask
    }

    #[inline]
    pub(super) fn write(&mut self, address: usize, size: u8, value: u64) {
        let (word, shift, mask) = word_of(address, size);
        let word = &mut self.words[word];
        *word = *word & !(mask << shift) | (value & mask) << shift;
    }
}

/// Locates a naturally aligned integer of `size` bytes: the index of its word in the line, and the
/// shift and mask that select it in the word.
#[inline]
fn word_of(address: usize, size: u8) -> (usize, u32, u64) {
    debug_assert!(size.is_power_of_two() && address.is_multiple_of(size.into()));
    let byte = (address % WORD) as u32;
    let shift = if cfg!(target_endian = "little") {
        byte * 8
    } else {
        (WORD as u32 - u32::from(size) - byte) * 8
    };
    let mask = u64::MAX >> (64 - u32::from(size) * 8);
    (address % LINE / WORD, shift, mask)
}
