//! Bytes that are written at the end and read anywhere, in a file once memory is full.

use std::fs::File;
use std::io::{self, Read, Write};
use std::os::unix::fs::FileExt;

/// The number of bytes that are copied at once.
const BLOCK: u64 = 1 << 20;

/// The most bytes of a file that are read into memory.
const PIECE: u64 = 64 << 20;

/// A sequence of bytes. The first ones may be in a temporary file, which the system removes.
#[derive(Debug, Default)]
pub(super) struct Tape {
    file: Option<File>,
    /// The number of bytes in the file.
    filed: u64,
    /// The bytes after these.
    tail: Vec<u8>,
}

impl Tape {
    pub(super) fn len(&self) -> u64 {
        self.filed + self.tail.len() as u64
    }

    /// The number of bytes in memory.
    pub(super) fn memory(&self) -> usize {
        self.tail.capacity()
    }

    /// The number of bytes on disk.
    pub(super) fn on_disk(&self) -> u64 {
        self.filed
    }

    pub(super) fn push(&mut self, bytes: &[u8]) {
        self.tail.extend_from_slice(bytes);
    }

    /// Forgets all bytes.
    pub(super) fn clear(&mut self) {
        self.file = None;
        self.filed = 0;
        self.tail.clear();
    }

    /// Moves all bytes to the file. If that fails, they stay in memory.
    pub(super) fn leave_memory(&mut self) -> io::Result<()> {
        if self.tail.is_empty() {
            return Ok(());
        }
        let file = match &self.file {
            Some(file) => file,
            None => self.file.insert(tempfile::tempfile()?),
        };
        file.write_all_at(&self.tail, self.filed)?;
        self.filed += self.tail.len() as u64;
        self.tail = Vec::new();
        Ok(())
    }

    /// Writes the bytes from `start` on to a file.
    pub(super) fn write(&self, mut start: u64, file: &mut impl Write) -> io::Result<()> {
        let mut block = vec![0; BLOCK as usize];
        while start < self.len() {
            let bytes = (self.len() - start).min(BLOCK);
            block.truncate(bytes as usize);
            self.read(start, &mut block)?;
            file.write_all(&block)?;
            start += bytes;
        }
        Ok(())
    }

    /// Appends the next bytes of a file.
    pub(super) fn push_from(&mut self, bytes: u64, file: &mut impl Read) -> io::Result<()> {
        let mut left = bytes;
        while left > 0 {
            let start = self.tail.len();
            let piece = left.min(PIECE);
            self.tail.resize(start + piece as usize, 0);
            file.read_exact(&mut self.tail[start..])?;
            left -= piece;
            if left > 0 {
                self.leave_memory()?;
            }
        }
        Ok(())
    }

    /// Reads `bytes.len()` bytes from `start` on.
    pub(super) fn read(&self, start: u64, bytes: &mut [u8]) -> io::Result<()> {
        let in_file = self.filed.saturating_sub(start).min(bytes.len() as u64) as usize;
        if let (1.., Some(file)) = (in_file, &self.file) {
            file.read_exact_at(&mut bytes[..in_file], start)?;
        }
        let start = (start + in_file as u64 - self.filed.min(start + in_file as u64)) as usize;
        let rest = bytes.len() - in_file;
        bytes[in_file..].copy_from_slice(&self.tail[start..start + rest]);
        Ok(())
    }
}
