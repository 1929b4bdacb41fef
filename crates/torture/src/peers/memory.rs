//! Memory for locks whose type is known at run time only.

use std::cell::UnsafeCell;
use std::ffi::c_void;

/// Two cache lines, in bytes, since processors fetch lines in pairs.
const SIZE: usize = 128;

#[repr(C, align(128))]
struct Line(UnsafeCell<[u8; SIZE]>);

// SAFETY: only locks and their holders use the contents, through pointers.
unsafe impl Sync for Line {}

/// Zeroed pieces of memory, each of which has its pairs of cache lines to itself.
pub struct Pieces {
    lines: Box<[Line]>,
    /// The index of the line with which each piece begins.
    starts: Vec<usize>,
}

impl Pieces {
    /// Makes one piece for each of these sizes, in bytes.
    pub fn new(sizes: impl IntoIterator<Item = usize>) -> Self {
        let mut end = 0;
        let starts = sizes
            .into_iter()
            .map(|size| {
                let start = end;
                end += size.div_ceil(SIZE);
                start
            })
            .collect();
        let lines = (0..end).map(|_| Line(UnsafeCell::new([0; SIZE]))).collect();
        Self { lines, starts }
    }

    /// The address of a piece. The piece must not have size 0.
    pub fn at(&self, piece: usize) -> *mut c_void {
        self.lines[self.starts[piece]].0.get().cast()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_lie_apart() {
        let pieces = Pieces::new([1, 128, 129, 1]);
        let places: Vec<usize> = (0..4).map(|piece| pieces.at(piece).addr()).collect();
        let apart: Vec<usize> = places.windows(2).map(|pair| pair[1] - pair[0]).collect();
        assert_eq!(apart, [128, 128, 256]);
        assert_eq!(places[0] % 128, 0);
    }
}
