//! The memory of a random run: its regions, the bytes that were written, and what they must be.

use crate::headers;
use crate::hooks::Request;
use crate::layout::{self, Region};
use crate::violation::Violation;

use super::{DEPTH, Program, Run, World};

impl World {
    /// The region of an address; None: there is no memory.
    pub(super) fn region(&self, address: usize) -> Option<Region> {
        let lies_in = |base: usize, size: usize| (base..base + size).contains(&address);
        if self.program == Program::Conformance {
            let lock = (0..DEPTH).find(|i| lies_in(layout::lock(*i), self.lock.size()));
            if let Some(i) = lock {
                return Some(Region::Lock(i));
            }
            let nodes = headers::LW_CLIENT_NODES * self.lock.node_size().next_multiple_of(64);
            if lies_in(layout::client_memory(), headers::CLIENT_MEMORY_SIZE)
                || lies_in(layout::client_nodes(), self.config.threads * nodes)
            {
                return Some(Region::Variables);
            }
        }
        layout::resolve(address, self.config.threads).map(|(region, _)| region)
    }

    /// The value of an operation's memory; None: some of it was never written.
    pub(super) fn read(&self, run: &Run, request: &Request) -> Option<u64> {
        let size = usize::from(request.site.size);
        let mut bytes = [0; 8];
        for (i, byte) in bytes[..size].iter_mut().enumerate() {
            let address = request.address + i;
            *byte = match run.memory.get(&address) {
                Some(byte) => *byte,
                None if self.starts_as_zero(address) => 0,
                None => return None,
            };
        }
        Some(u64::from_le_bytes(bytes))
    }

    fn starts_as_zero(&self, address: usize) -> bool {
        let size = headers::NODE.size;
        match self.region(address) {
            None | Some(Region::Lent { .. }) => false,
            Some(Region::Node { thread, index }) => {
                index == 0 && is_count(address - layout::slot_nodes(thread + 1), size)
            }
            Some(Region::Queue { .. }) => {
                let waiters = headers::NODE.waiters;
                let offset = address % size;
                (waiters..waiters + size_of::<u64>()).contains(&offset)
            }
            Some(_) => true,
        }
    }

    pub(super) fn write(
        &self,
        run: &mut Run,
        request: &Request,
        value: u64,
    ) -> Result<(), Violation> {
        let size = usize::from(request.site.size);
        for (i, byte) in value.to_le_bytes()[..size].iter().enumerate() {
            run.memory.insert(request.address + i, *byte);
        }
        match self.region(request.address) {
            Some(Region::Lock(i)) if self.lock.has_tail_word() => {
                self.check_word(run.word(layout::lock(i)))
            }
            Some(Region::Queue { node }) if value == 0 && is_waiters(request.address) => {
                let layout = headers::NODE;
                run.forget(layout::node_queues(node), layout.size, |offset| {
                    (layout.waiters..layout.waiters + size).contains(&offset)
                });
                Ok(())
            }
            _ => Ok(()),
        }
    }

    /// Checks a lock word that has a tail.
    fn check_word(&self, word: u32) -> Result<(), Violation> {
        match self.config.wrong_piece(self.lock, word, u32::MAX) {
            Some((piece, value)) => Err(Violation::OutOfRange { piece, value }),
            None => Ok(()),
        }
    }

    /// Checks, when all threads have ended, that everything is as it was at the start.
    pub(super) fn check_end(&self, run: &Run) -> Result<(), Violation> {
        let locks = match self.program {
            Program::Check => layout::LOCKS,
            Program::Conformance => DEPTH,
        };
        let service = headers::WORD.service;
        let held = |i| self.lock.has_tail_word() && run.word(layout::lock(i)) & !service != 0;
        if (0..locks).any(held) {
            let what = "the lock is not free";
            return Err(Violation::LeftBehind { what });
        }
        let count = headers::NODE.count;
        if (1..=self.config.threads).any(|slot| run.word(layout::slot_nodes(slot) + count) != 0) {
            let what = "a queue node is still in use";
            return Err(Violation::LeftBehind { what });
        }
        let waiters = |node| layout::node_queues(node) + headers::NODE.waiters;
        if (0..self.config.nodes).any(|node| run.word(waiters(node)) != 0) {
            let what = "the queue of a NUMA node is still in use";
            return Err(Violation::LeftBehind { what });
        }
        Ok(())
    }
}

impl Run {
    fn word(&self, address: usize) -> u32 {
        let byte = |i: usize| self.memory.get(&(address + i)).copied().unwrap_or(0);
        u32::from_le_bytes(std::array::from_fn(byte))
    }

    /// Forgets the contents of a node that its owner no longer uses.
    pub(super) fn forget(&mut self, node: usize, size: usize, keep: impl Fn(usize) -> bool) {
        for offset in (0..size).filter(|offset| !keep(*offset)) {
            self.memory.remove(&(node + offset));
        }
    }
}

/// Whether an address is in the count of a slot's first node.
pub(super) fn is_count(offset: usize, node_size: usize) -> bool {
    let count = headers::NODE.count;
    offset < node_size && (count..count + size_of::<u32>()).contains(&offset)
}

/// Whether an address is in the field that says which lock has the queue of a NUMA node.
fn is_waiters(address: usize) -> bool {
    let layout = headers::NODE;
    address % layout.size == layout.waiters
}
