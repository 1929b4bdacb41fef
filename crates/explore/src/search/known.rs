//! The states that are known, by their hashes: in memory, and on disk where that is too small.
//!
//! On disk they are sorted by hash, in one part for each time that memory was full. A state that
//! is new in memory may be on disk. So before such states are explored, all of them are compared with
//! all parts in one pass.

use std::io::{self, Read, Write};

use hashbrown::HashTable;
use hashbrown::hash_table::Entry;

use super::tape::Tape;

/// The tables in memory, in the order of hashes. They grow, and are sorted, one at a time.
const SHARDS: usize = 64;
/// The most bytes that a state takes in memory.
const IN_MEMORY: u64 = 48;
/// The number of states on disk that are read at once.
const BLOCK: usize = 1 << 16;

/// A state's hash and number.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct State {
    /// The hash in pieces, so that a state takes 20 bytes.
    hash: [u32; 4],
    number: u32,
}

impl State {
    const BYTES: usize = size_of::<u128>() + size_of::<u32>();

    fn new(hash: u128, number: u32) -> Self {
        let piece = |i| (hash >> (96 - 32 * i)) as u32;
        Self {
            hash: std::array::from_fn(piece),
            number,
        }
    }

    /// The number of the state's table.
    fn shard(&self) -> usize {
        (self.hash[0] >> (u32::BITS - SHARDS.trailing_zeros())) as usize
    }

    /// The bits of the hash for the place in a table; those before chose the table.
    fn place(hash: &[u32; 4]) -> u64 {
        u64::from(hash[1]) << 32 | u64::from(hash[2])
    }

    fn to_bytes(self) -> [u8; Self::BYTES] {
        let mut bytes = [0; Self::BYTES];
        let numbers = self.hash.iter().chain([&self.number]);
        for (to, from) in bytes.chunks_exact_mut(size_of::<u32>()).zip(numbers) {
            to.copy_from_slice(&from.to_be_bytes());
        }
        bytes
    }

    fn from_bytes(bytes: &[u8]) -> Self {
        let number = |i: usize| {
            let bytes = &bytes[size_of::<u32>() * i..][..size_of::<u32>()];
            u32::from_be_bytes(bytes.try_into().expect("four bytes"))
        };
        Self {
            hash: std::array::from_fn(number),
            number: number(4),
        }
    }
}

/// The known states.
pub(super) struct Known {
    shards: Vec<HashTable<State>>,
    count: usize,
    /// The states on disk, sorted, in parts.
    parts: Vec<Tape>,
    /// The states from this number on are not on disk.
    first: u32,
    /// The states from this number on have not been compared with those on disk.
    compared: u32,
}

impl Known {
    pub(super) fn new() -> Self {
        Self {
            shards: (0..SHARDS).map(|_| HashTable::new()).collect(),
            count: 0,
            parts: Vec::new(),
            first: 0,
            compared: 0,
        }
    }

    /// The number of bytes in memory.
    pub(super) fn memory(&self) -> usize {
        let shards = self.shards.iter();
        shards.map(HashTable::allocation_size).sum::<usize>()
            + self.parts.iter().map(Tape::memory).sum::<usize>()
    }

    /// The number of bytes on disk.
    pub(super) fn on_disk(&self) -> u64 {
        self.parts.iter().map(Tape::on_disk).sum()
    }

    /// Returns the number of a state that is known, or gives it `number`.
    pub(super) fn find_or_add(&mut self, hash: u128, number: u32) -> Option<u32> {
        self.add(State::new(hash, number))
    }

    fn add(&mut self, state: State) -> Option<u32> {
        let shard = &mut self.shards[state.shard()];
        let entry = shard.entry(
            State::place(&state.hash),
            |other| other.hash == state.hash,
            |other| State::place(&other.hash),
        );
        match entry {
            Entry::Occupied(known) => Some(known.get().number),
            Entry::Vacant(new) => {
                new.insert(state);
                self.count += 1;
                None
            }
        }
    }

    /// The number of states in memory.
    pub(super) fn count(&self) -> usize {
        self.count
    }

    /// The number of states from `number` on that have been compared.
    pub(super) fn compared_from(&self, number: u32) -> u32 {
        match self.parts.is_empty() {
            true => u32::MAX,
            false => self.compared - number,
        }
    }

    /// Whether a state that was new in memory may be on disk.
    pub(super) fn is_doubtful(&self, number: u32) -> bool {
        !self.parts.is_empty() && number >= self.compared
    }

    /// Compares all states below `end` with those on disk. Returns those that were known, each with the
    /// number that it had before.
    pub(super) fn compare(&mut self, end: u32) -> io::Result<Vec<(u32, u32)>> {
        let mut twice = Vec::new();
        let mut on_disk = Vec::new();
        for part in &self.parts {
            let mut part = Reader::new(part);
            on_disk.push((part.next()?, part));
        }
        for shard in &self.shards {
            if on_disk.is_empty() {
                break;
            }
            let new = sorted(shard, self.compared);
            for (next, part) in &mut on_disk {
                for state in &new {
                    while let Some(old) = *next
                        && old.hash < state.hash
                    {
                        *next = part.next()?;
                    }
                    if let Some(old) = next.filter(|old| old.hash == state.hash) {
                        twice.push((*state, old.number));
                    }
                }
            }
        }
        for (state, number) in &twice {
            // Later ones find the number that counts.
            self.rename(*state, *number);
        }
        self.compared = end;
        Ok(twice
            .into_iter()
            .map(|(state, number)| (state.number, number))
            .collect())
    }

    /// The numbers of states in the parts that [`write`](Self::write) writes.
    pub(super) fn parts(&self) -> Vec<u64> {
        let in_memory = self.shards.iter().flatten();
        let new = in_memory.filter(|state| state.number >= self.first);
        let parts = self
            .parts
            .iter()
            .map(|part| part.len() / State::BYTES as u64);
        parts.chain([new.count() as u64]).collect()
    }

    /// Writes all states to a file, in sorted parts. Those in memory must have been compared.
    pub(super) fn write(&self, file: &mut impl Write) -> io::Result<()> {
        for part in &self.parts {
            part.write(0, file)?;
        }
        for shard in &self.shards {
            for state in sorted(shard, self.first) {
                file.write_all(&state.to_bytes())?;
            }
        }
        Ok(())
    }

    /// Reads parts of so many states from a file, of which all have numbers below `end`: into memory if
    /// they fit into so many bytes, else onto disk.
    pub(super) fn read(
        parts: &[u64],
        end: u32,
        most: Option<usize>,
        file: &mut impl Read,
    ) -> io::Result<Self> {
        let mut known = Self::new();
        let all: u64 = parts.iter().sum();
        if most.is_some_and(|most| all * IN_MEMORY > most as u64) {
            for states in parts {
                let mut part = Tape::default();
                part.push_from(states * State::BYTES as u64, file)?;
                part.leave_memory()?;
                known.parts.push(part);
            }
            known.first = end;
        } else {
            let mut bytes = [0; State::BYTES];
            for _ in 0..all {
                file.read_exact(&mut bytes)?;
                known.add(State::from_bytes(&bytes));
            }
        }
        known.compared = end;
        Ok(known)
    }

    /// Moves all states to disk. Those in memory must have been compared.
    pub(super) fn clear_memory(&mut self) -> io::Result<()> {
        let mut part = Tape::default();
        for shard in &self.shards {
            for state in sorted(shard, self.first) {
                part.push(&state.to_bytes());
            }
            part.leave_memory()?;
        }
        self.parts.push(part);
        self.first = self.compared;
        for shard in &mut self.shards {
            *shard = HashTable::new();
        }
        self.count = 0;
        Ok(())
    }

    fn rename(&mut self, state: State, number: u32) {
        let shard = &mut self.shards[state.shard()];
        let known = shard.find_mut(State::place(&state.hash), |other| other.hash == state.hash);
        known.expect("it is in memory").number = number;
    }
}

/// The states of a table with this number or a higher one, sorted.
fn sorted(shard: &HashTable<State>, first: u32) -> Vec<State> {
    let all = shard.iter().copied();
    let mut states: Vec<State> = all.filter(|state| state.number >= first).collect();
    states.sort_unstable();
    states
}

/// Reads the states of a part in their order.
struct Reader<'a> {
    part: &'a Tape,
    at: u64,
    block: Vec<u8>,
    in_block: usize,
}

impl<'a> Reader<'a> {
    fn new(part: &'a Tape) -> Self {
        Self {
            part,
            at: 0,
            block: Vec::new(),
            in_block: 0,
        }
    }

    fn next(&mut self) -> io::Result<Option<State>> {
        if self.in_block == self.block.len() {
            let left = self.part.len() - self.at;
            let bytes = left.min((BLOCK * State::BYTES) as u64) as usize;
            if bytes == 0 {
                return Ok(None);
            }
            self.block.resize(bytes, 0);
            self.part.read(self.at, &mut self.block)?;
            self.at += bytes as u64;
            self.in_block = 0;
        }
        let state = State::from_bytes(&self.block[self.in_block..]);
        self.in_block += State::BYTES;
        Ok(Some(state))
    }
}
