//! The ways in which addresses and values name threads, and what they become when threads are renamed.

use lockworks_explore::{Naming, Renaming};

use crate::headers;
use crate::layout::{self, Region};
use crate::site::Request;

/// The address after a renaming.
pub(crate) fn address(renaming: &Renaming, old: usize) -> usize {
    layout::renamed(old, renaming.to())
}

/// The operation after a renaming, where its values name threads in the way of `names`.
pub(crate) fn request(renaming: &Renaming, names: Names, old: Request) -> Request {
    Request {
        site: old.site,
        address: address(renaming, old.address),
        a: names.renamed(renaming, old.a),
        b: names.renamed(renaming, old.b),
    }
}

/// The way in which the values of a piece of memory name threads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Names {
    None,
    /// By the address of a queue node.
    Address,
    /// By the tail of a lock's word, in the bits from `shift` on.
    Tail {
        shift: u32,
    },
}

/// The place of the tail in a lock's word.
const TAIL: u32 = headers::WORD.tail_shift;

impl Names {
    /// The names in `size` bytes at an address.
    pub(crate) fn at(address: usize, size: usize, threads: usize, has_tail_word: bool) -> Self {
        let Some((region, offset)) = layout::resolve(address, threads) else {
            return Self::None;
        };
        match region {
            Region::Lock(_) if has_tail_word => TAIL
                .checked_sub(8 * offset as u32)
                .map_or(Self::None, |shift| Self::Tail { shift }),
            Region::Queue { .. } if offset % headers::NODE.size == headers::NODE.waiters => {
                Self::Tail { shift: 0 }
            }
            Region::Data(_) | Region::Variables | Region::Reads { .. } | Region::Held { .. } => {
                Self::None
            }
            _ if size == size_of::<u64>() => Self::Address,
            Region::Node { .. } | Region::Lent { .. } | Region::Queue { .. }
                if size == size_of::<u32>() =>
            {
                Self::Tail { shift: TAIL }
            }
            _ => Self::None,
        }
    }
}

impl Naming for Names {
    fn renamed(self, renaming: &Renaming, old: u64) -> u64 {
        let new_name = |thread: usize| renaming.to().get(thread).copied().map(usize::from);
        match self {
            Self::None => old,
            Self::Address => address(renaming, old as usize) as u64,
            Self::Tail { shift } => {
                let tail = usize::from((old >> shift) as u16);
                let (slot, node) = headers::slot_and_node(tail);
                match slot.checked_sub(1).and_then(new_name) {
                    Some(new) => {
                        let renamed = (new + 1) * layout::NODES + node;
                        old ^ ((tail ^ renamed) as u64) << shift
                    }
                    None => old,
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use lockworks_explore::Symmetry;

    #[test]
    fn names_of_threads_are_found_in_values() {
        let symmetry = Symmetry::new(3, |one, other| one % 2 == other % 2);
        let swap = &symmetry.swaps[0];
        let node = |thread: usize| (layout::slot_nodes(thread + 1) + 8) as u64;
        let lent = |thread| layout::lent(thread, 1) as u64;
        let tail = |slot: u64, shift: u32| (slot << 2 | 3) << shift | 1 << 63;
        let word = Names::Tail { shift: 16 };
        for (names, old, new) in [
            (Names::Address, node(0), node(2)),
            (Names::Address, node(1), node(1)),
            (Names::Address, node(3), node(3)),
            (Names::Address, lent(2), lent(0)),
            (Names::Address, 0, 0),
            (Names::None, node(0), node(0)),
            (word, tail(1, 16) | 5, tail(3, 16) | 5),
            (word, tail(2, 16), tail(2, 16)),
            (word, tail(0, 16), tail(0, 16)),
            (word, tail(4, 16), tail(4, 16)),
            (Names::Tail { shift: 0 }, tail(3, 0), tail(1, 0)),
        ] {
            assert_eq!(names.renamed(swap, old), new, "{names:?} {old:#x}");
            assert_eq!(names.renamed(swap, new), old, "{names:?} {new:#x}");
        }
        assert_eq!(swap.set(0b011), 0b110);
    }
}
