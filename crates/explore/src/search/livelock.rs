//! Livelocks: states from which no progress leads to an end.

use std::io;

use super::tape::Tape;

/// The number of bytes that are read at once.
const BLOCK: u64 = 1 << 20;
/// In place of the number of successors: all threads have ended in this state.
const END: u32 = u32::MAX;

/// The successors by progress of all explored states, those of one state after those of another.
pub(super) struct Edges(pub(super) Tape);

impl Edges {
    /// Notes the successors of the next state.
    pub(super) fn push(&mut self, successors: &[u32]) {
        for number in successors.iter().chain([&(successors.len() as u32)]) {
            self.0.push(&number.to_le_bytes());
        }
    }

    /// Notes that the next state is an end.
    pub(super) fn push_end(&mut self) {
        self.0.push(&END.to_le_bytes());
    }

    /// One of the `states` from which no progress leads to an end.
    ///
    /// Most successors have higher numbers, so that few passes from the last state to the first find
    /// all states that can end.
    pub(super) fn stranded(&self, states: u32) -> io::Result<Option<u32>> {
        let mut can_end = vec![0u64; states as usize / 64 + 1];
        let bit = |state: u32| (state as usize / 64, 1 << (state % 64));
        loop {
            let mut changed = false;
            let mut numbers = Backwards::new(&self.0);
            for state in (0..states).rev() {
                let ends = match numbers.next()? {
                    END => true,
                    count => {
                        let mut any = false;
                        for _ in 0..count {
                            let (word, mask) = bit(numbers.next()?);
                            any |= can_end[word] & mask != 0;
                        }
                        any
                    }
                };
                let (word, mask) = bit(state);
                changed |= ends && can_end[word] & mask == 0;
                can_end[word] |= if ends { mask } else { 0 };
            }
            if !changed {
                break;
            }
        }
        Ok((0..states).find(|state| {
            let (word, mask) = bit(*state);
            can_end[word] & mask == 0
        }))
    }
}

/// Reads the numbers on a tape from the last to the first.
struct Backwards<'a> {
    tape: &'a Tape,
    /// The place of the block on the tape.
    start: u64,
    block: Vec<u8>,
}

impl<'a> Backwards<'a> {
    fn new(tape: &'a Tape) -> Self {
        Self {
            tape,
            start: tape.len(),
            block: Vec::new(),
        }
    }

    fn next(&mut self) -> io::Result<u32> {
        if self.block.is_empty() {
            let bytes = self.start.min(BLOCK);
            self.start -= bytes;
            self.block.resize(bytes as usize, 0);
            self.tape.read(self.start, &mut self.block)?;
        }
        let (rest, number) = self.block.split_last_chunk().expect("the tape has more");
        let number = u32::from_le_bytes(*number);
        let rest = rest.len();
        self.block.truncate(rest);
        Ok(number)
    }
}
