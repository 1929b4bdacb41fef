//! A cache line: its data, the CPUs that have it, and the CPUs that want it.

/// Bytes of a line.
pub(crate) const LINE: usize = 64;
/// Where simulated memory begins. No process has this address mapped, so code that goes around the
/// operation set faults. All simulated addresses fit 32 bits.
const BASE: usize = 1 << 28;
const WORD: usize = size_of::<u64>();

pub(super) const NOBODY: u16 = u16::MAX;

/// The number of the line that an address is in.
#[inline]
pub(super) fn line_of(address: usize) -> usize {
    address.wrapping_sub(BASE) / LINE
}

/// The address that the line of this number begins at.
pub(super) fn start_of(line: usize) -> usize {
    BASE + line * LINE
}

/// The line of an address.
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

/// CPUs that share a line. Mostly there are two, the last to write it and the first to read it
/// after that; only more of them touch the bit set.
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

    /// Makes these two CPUs share the line, which no CPU has shared yet. They may be the same CPU.
    #[inline]
    fn start(&mut self, owner: u16, c: u16) {
        self.first = [owner, if c == owner { NOBODY } else { c }];
        self.count = 1 + u16::from(c != owner);
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

/// The request of one CPU for the line.
#[derive(Clone, Copy)]
pub(super) struct Request {
    pub(super) issued: u64,
    pub(super) cpu: u16,
    /// Its place among the CPU's requests.
    pub(super) slot: u8,
    pub(super) write: bool,
}

/// State, data and queues are on a cache line each.
#[repr(C, align(64))]
pub(super) struct Line {
    pub(super) number: u32,
    /// The node of its memory.
    pub(super) home: u16,
    /// The only CPU to have the line, or [`NOBODY`].
    pub(super) owner: u16,
    /// Shared reads going on.
    pub(super) readers: u16,
    /// Is it in any cache?
    pub(super) cached: bool,
    /// Does the exclusive transaction going on write?
    pub(super) writing: bool,
    /// The last-level caches of the CPUs that have it.
    pub(super) llcs: u64,
    /// When the exclusive transaction going on takes the line from the CPUs that have it; never, if
    /// none is going on.
    pub(super) lose_at: u64,
    pub(super) hold_until: u64,
    sharers: Sharers,
    words: [u64; LINE / WORD],
    /// The requests that wait to be served, with the times at which they arrive.
    pub(super) requests: Vec<(u64, Request)>,
    /// CPUs that have the line and wait for it to change.
    pub(super) waiters: Vec<u16>,
    pub(super) read_free: u64,
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
            words: [0; LINE / WORD],
            requests: Vec::new(),
            waiters: Vec::new(),
        }
    }

    // The CPUs that have the line.

    /// Is an exclusive transaction going on?
    #[inline]
    pub(super) fn is_busy(&self) -> bool {
        self.lose_at != u64::MAX
    }

    /// Does a transaction going on keep a new one from being served?
    #[inline]
    pub(super) fn is_closed(&self, write: bool) -> bool {
        self.is_busy() || write && self.readers > 0
    }

    /// May `c` access the line right now without a transaction?
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

    /// Makes `c` the only one to have the line.
    #[inline]
    pub(super) fn own(&mut self, c: u16, llcs: u64) {
        self.sharers.clear();
        self.owner = c;
        self.llcs = llcs;
        self.hold_until = 0;
    }

    /// The owner is busy with the line until then.
    #[inline]
    pub(super) fn hold(&mut self, until: u64) {
        self.hold_until = self.hold_until.max(until);
    }

    /// The request that is the next in the order of arrival, if it can be served now.
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
        let (word, shift, mask) = place(address, size);
        self.words[word] >> shift & mask
    }

    #[inline]
    pub(super) fn write(&mut self, address: usize, size: u8, value: u64) {
        let (word, shift, mask) = place(address, size);
        let word = &mut self.words[word];
        *word = *word & !(mask << shift) | (value & mask) << shift;
    }
}

/// Word of its line, shift and mask of a naturally aligned integer of `size` bytes.
#[inline]
fn place(address: usize, size: u8) -> (usize, u32, u64) {
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
