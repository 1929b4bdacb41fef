//! The states that wait to be explored, whole, in the order in which they were found.

use std::collections::VecDeque;
use std::io::{self, Read, Write};

use super::tape::Tape;

/// The size at which a new tape begins. The space of a tape is free once all of it has been read.
const TAPE: u64 = 64 << 20;
/// The number of bytes that are read at once.
const BLOCK: usize = 1 << 20;

/// The waiting states.
pub(super) struct Queue {
    /// At least one.
    tapes: VecDeque<Tape>,
    /// The part of the first tape that was read, and where in it the next state begins.
    block: Vec<u8>,
    next: usize,
    /// The place in the first tape after the block.
    read: u64,
    count: usize,
}

impl Queue {
    pub(super) fn new() -> Self {
        Self {
            tapes: [Tape::default()].into(),
            block: Vec::new(),
            next: 0,
            read: 0,
            count: 0,
        }
    }

    pub(super) fn len(&self) -> usize {
        self.count
    }

    /// The number of bytes in memory.
    pub(super) fn memory(&self) -> usize {
        self.tapes.iter().map(Tape::memory).sum::<usize>() + self.block.capacity()
    }

    /// The number of bytes of all states.
    pub(super) fn bytes(&self) -> u64 {
        let tapes = self.tapes.iter().map(Tape::len).sum::<u64>() - self.read;
        (self.block.len() - self.next) as u64 + tapes
    }

    /// Writes the states to a file.
    pub(super) fn write(&self, file: &mut impl Write) -> io::Result<()> {
        file.write_all(&self.block[self.next..])?;
        let mut start = self.read;
        for tape in &self.tapes {
            tape.write(start, file)?;
            start = 0;
        }
        Ok(())
    }

    /// Reads so many states from a file.
    pub(super) fn read(count: usize, bytes: u64, file: &mut impl Read) -> io::Result<Self> {
        let mut queue = Self::new();
        queue.tapes[0].push_from(bytes, file)?;
        queue.count = count;
        Ok(queue)
    }

    /// The number of bytes on disk.
    pub(super) fn on_disk(&self) -> u64 {
        self.tapes.iter().map(Tape::on_disk).sum()
    }

    pub(super) fn push(&mut self, state: &[u8]) {
        if self.last().len() >= TAPE {
            self.tapes.push_back(Tape::default());
        }
        let last = self.last();
        last.push(&(state.len() as u32).to_le_bytes());
        last.push(state);
        self.count += 1;
    }

    fn last(&mut self) -> &mut Tape {
        self.tapes.back_mut().expect("there is one")
    }

    /// Moves the states to disk.
    pub(super) fn leave_memory(&mut self) -> io::Result<()> {
        self.tapes.iter_mut().try_for_each(Tape::leave_memory)
    }

    /// Appends the next state, with its length before it, to `states`; false if none waits.
    pub(super) fn pop_into(&mut self, states: &mut Vec<u8>) -> io::Result<bool> {
        if self.count == 0 {
            return Ok(false);
        }
        const LENGTH: usize = size_of::<u32>();
        self.fill(LENGTH)?;
        let length: [u8; LENGTH] = self.block[self.next..][..LENGTH]
            .try_into()
            .expect("so many");
        let all = LENGTH + u32::from_le_bytes(length) as usize;
        self.fill(all)?;
        states.extend_from_slice(&self.block[self.next..][..all]);
        self.next += all;
        self.count -= 1;
        Ok(true)
    }

    /// Reads on until the block has so many bytes more.
    fn fill(&mut self, wanted: usize) -> io::Result<()> {
        if self.block.len() - self.next >= wanted {
            return Ok(());
        }
        if self.read == self.tapes[0].len() && self.tapes.len() > 1 {
            self.tapes.pop_front();
            self.read = 0;
        }
        self.block.drain(..self.next);
        self.next = 0;
        let rest = self.block.len();
        let left = self.tapes[0].len() - self.read;
        let bytes = left.min(BLOCK.max(wanted) as u64) as usize;
        self.block.resize(rest + bytes, 0);
        if let Err(error) = self.tapes[0].read(self.read, &mut self.block[rest..]) {
            self.block.truncate(rest);
            return Err(error);
        }
        self.read += bytes as u64;
        if self.tapes.len() == 1 && self.read == self.tapes[0].len() {
            // All of the only tape has been read: begin anew.
            self.tapes[0].clear();
            self.read = 0;
        }
        Ok(())
    }
}
