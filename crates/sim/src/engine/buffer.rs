//! The in-order buffer of a CPU. It has stores, and loads whose value no code waits for.

/// The number of entries of a buffer, that is, of loads and stores that a CPU has in flight.
const ENTRIES: u8 = 8;

/// A buffered store or load. All fields are those of a store; a load has only a line, which
/// [`Buffer`] keeps.
#[derive(Clone, Copy, Default)]
pub(super) struct Entry {
    pub(super) value: u64,
    pub(super) address: u32,
    pub(super) size: u8,
    pub(super) release: bool,
}

impl Entry {
    pub(super) fn address(&self) -> usize {
        self.address as usize
    }

    fn end(&self) -> usize {
        self.address() + usize::from(self.size)
    }

    fn overlaps(&self, address: usize, size: u8) -> bool {
        self.address() < address + usize::from(size) && address < self.end()
    }

    /// Returns the value of `size` bytes at `address`, if the entry contains all of them.
    pub(super) fn forward(&self, address: usize, size: u8) -> Option<u64> {
        let inside = self.address() <= address && address + usize::from(size) <= self.end();
        inside.then(|| {
            let shifted = self.value >> ((address - self.address()) * 8);
            shifted & (u64::MAX >> (64 - u32::from(size) * 8))
        })
    }
}

/// A set of indices in the buffer, one bit each.
#[derive(Clone, Copy)]
pub(super) struct Indices(u8);

impl Iterator for Indices {
    type Item = usize;

    #[inline]
    fn next(&mut self) -> Option<usize> {
        let index = self.0.trailing_zeros() as usize;
        (self.0 != 0).then(|| {
            self.0 &= self.0 - 1;
            index
        })
    }
}

/// A ring of entries. A complete entry stays until all older entries are complete too. The fields
/// that every access needs come first.
#[derive(Default)]
#[repr(C)]
pub(super) struct Buffer {
    /// The index of the oldest entry.
    first: u8,
    len: u8,
    /// The indices of stores that are not complete, one bit each.
    stores: u8,
    /// The indices of loads that are not complete, one bit each.
    loads: u8,
    /// The number of the line that each entry accesses.
    lines: [u32; ENTRIES as usize],
    entries: [Entry; ENTRIES as usize],
}

impl Buffer {
    pub(super) fn len(&self) -> u8 {
        self.len
    }

    #[inline]
    pub(super) fn is_empty(&self) -> bool {
        self.len == 0
    }

    #[inline]
    pub(super) fn is_full(&self) -> bool {
        self.len == ENTRIES
    }

    /// Whether the buffer has loads that are not complete.
    #[inline]
    pub(super) fn has_loads(&self) -> bool {
        self.loads != 0
    }

    /// Returns the index of the `i`th oldest entry, counted from 0.
    #[inline]
    fn index(&self, i: u8) -> usize {
        usize::from((self.first + i) % ENTRIES)
    }

    #[inline]
    pub(super) fn entry(&self, index: usize) -> &Entry {
        &self.entries[index % ENTRIES as usize]
    }

    #[inline]
    pub(super) fn line(&self, index: usize) -> usize {
        self.lines[index % ENTRIES as usize] as usize
    }

    #[inline]
    pub(super) fn push(&mut self, entry: Entry, line: u32, is_store: bool) {
        let index = self.index(self.len);
        self.entries[index] = entry;
        self.lines[index] = line;
        let incomplete = if is_store {
            &mut self.stores
        } else {
            &mut self.loads
        };
        *incomplete |= 1 << index;
        self.len += 1;
    }

    /// Marks the store at `index` as complete, when it has been committed.
    #[inline]
    pub(super) fn complete_store(&mut self, index: usize) {
        self.stores &= !(1 << index);
    }

    /// Completes the loads of a line that has arrived. Returns whether there were any.
    #[inline]
    pub(super) fn complete_loads(&mut self, line: usize) -> bool {
        let before = self.loads;
        for index in Indices(before) {
            if self.line(index) == line {
                self.loads &= !(1 << index);
            }
        }
        self.loads != before
    }

    /// Whether the buffer has an incomplete load of this line.
    #[inline]
    pub(super) fn is_loading(&self, line: usize) -> bool {
        Indices(self.loads).any(|index| self.line(index) == line)
    }

    /// Drops the complete entries that are older than all others. Returns the index of the oldest
    /// entry
    /// that is left, if that is a store.
    #[inline]
    pub(super) fn first_store(&mut self) -> Option<usize> {
        let incomplete = (self.stores | self.loads).rotate_right(self.first.into());
        let complete = (incomplete.trailing_zeros() as u8).min(self.len);
        self.first = (self.first + complete) % ENTRIES;
        self.len -= complete;
        (self.stores >> self.first & 1 != 0).then_some(self.first.into())
    }

    /// Returns the indices of the stores that have retired: those that are older than every
    /// incomplete
    /// load.
    #[inline]
    pub(super) fn retired(&self) -> impl Iterator<Item = usize> + use<> {
        let first = self.first;
        let loads = self.loads.rotate_right(first.into());
        let before = (loads & loads.wrapping_neg()).wrapping_sub(1);
        Indices(self.stores.rotate_right(first.into()) & before)
            .map(move |i| (i + usize::from(first)) % ENTRIES as usize)
    }

    /// Returns the youngest incomplete store that overlaps with these bytes.
    #[inline]
    pub(super) fn overlap(&self, address: usize, size: u8) -> Option<&Entry> {
        (0..self.len)
            .rev()
            .map(|i| self.index(i))
            .filter(|&index| self.stores >> index & 1 != 0)
            .map(|index| self.entry(index))
            .find(|e| e.overlaps(address, size))
    }

    /// Whether the `i`th oldest entry is a load that is not complete.
    pub(super) fn is_load(&self, i: u8) -> bool {
        self.loads >> self.index(i) & 1 != 0
    }

    fn is_store(&self, i: u8) -> bool {
        self.stores >> self.index(i) & 1 != 0
    }

    /// Returns the index of the `i`th oldest entry if it is a store that need not wait for older
    /// stores: it has no release order, and they are to other lines.
    pub(super) fn independent_store(&self, i: u8) -> Option<usize> {
        let index = self.index(i);
        let same_line = |j| self.is_store(j) && self.lines[self.index(j)] == self.lines[index];
        (self.is_store(i) && !self.entries[index].release && !(0..i).any(same_line))
            .then_some(index)
    }
}
