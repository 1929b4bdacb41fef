//! The memory with which a source begins: its static and thread-local variables, and its locks, which a
//! function of the source may initialise.
//!
//! The source's accesses that are not atomic find their values in real memory, which is mapped at the
//! addresses of the check. The engine has the values; they are in this memory only for a moment.

use std::io;
use std::ops::Range;
use std::sync::OnceLock;

use crate::cells::Cell;
use crate::layout::{self, Region};
use crate::machine;

/// What a source has at the start.
#[derive(Default)]
pub(crate) struct Image {
    /// Where its static variables are, and their values.
    pub(crate) globals: Range<usize>,
    /// The offset, size and name of each.
    pub(crate) names: Vec<(usize, usize, String)>,
    /// The number by which the system knows its thread-local variables, and their values.
    pub(crate) module: usize,
    pub(crate) of_locals: Vec<u8>,
    /// What a function may initialise: one, or one for each number of tokens of a semaphore, from 1.
    pub(crate) starts: Vec<Start>,
}

/// The memory that a function may initialise.
#[derive(Default, PartialEq)]
pub(crate) struct Start {
    /// The static variables.
    pub(crate) globals: Vec<u8>,
    /// The bytes of each lock. None: its type says what they are.
    pub(crate) locks: Option<[Vec<u8>; layout::LOCKS]>,
}

/// The most tokens of a semaphore.
pub(crate) const MOST_TOKENS: usize = 8;

static IMAGE: OnceLock<Image> = OnceLock::new();

/// Sets the image.
///
/// # Panics
/// If it was set before.
pub(crate) fn set(image: Image) {
    assert!(IMAGE.set(image).is_ok(), "one source is loaded");
}

/// Whether there is a source.
pub(crate) fn is_set() -> bool {
    IMAGE.get().is_some()
}

/// Maps memory at the addresses of the check.
pub(crate) fn map() -> io::Result<()> {
    let Range { start, end } = layout::MEMORY;
    // SAFETY: nothing is mapped there yet, or the call fails.
    let mapped = unsafe {
        libc::mmap(
            start as *mut _,
            end - start,
            libc::PROT_READ | libc::PROT_WRITE,
            libc::MAP_PRIVATE
                | libc::MAP_ANONYMOUS
                | libc::MAP_FIXED_NOREPLACE
                | libc::MAP_NORESERVE,
            -1,
            0,
        )
    };
    match mapped as usize == start {
        true => Ok(()),
        false => Err(io::Error::last_os_error()),
    }
}

/// The name of memory in the check: a static variable of a source has one of its own.
pub(crate) fn canonical(address: usize) -> usize {
    match IMAGE.get() {
        Some(image) if image.globals.contains(&address) => {
            layout::global(address - image.globals.start)
        }
        _ => address,
    }
}

/// Whether an access of the source is one of the check: neither to the running thread's stack nor to
/// constants and other memory of the program.
pub(crate) fn is_shared(address: usize) -> bool {
    /// No memory of programs is below this, but that of the check.
    const LOWEST: usize = 1 << 32;
    machine::runs_lock_code()
        && !machine::with(|machine| machine.is_on_stack(address))
        && (address < LOWEST || canonical(address) != address)
}

/// Whether such an access finds memory.
pub(crate) fn is_memory(address: usize) -> bool {
    layout::MEMORY.contains(&address) || canonical(address) != address
}

/// The running thread's variable at this offset, if the module is that of the source.
pub(crate) fn thread_local(module: usize, offset: usize) -> Option<usize> {
    let own = IMAGE.get().is_none_or(|image| image.module == module);
    let thread = || match machine::runs_lock_code() {
        true => machine::with(|machine| machine.thread()),
        false => 0,
    };
    own.then(|| layout::local(thread()) + offset)
}

/// Whether the function that initialises a semaphore is told the number of its tokens.
pub(crate) fn has_tokens() -> bool {
    IMAGE.get().is_some_and(|image| image.starts.len() > 1)
}

/// The first value of a cell, if the image has it, where a semaphore has so many tokens.
pub(crate) fn value(cell: &Cell, tokens: u8) -> Option<u64> {
    let image = IMAGE.get().filter(|_| !cell.is_record())?;
    let (_, offset) = layout::resolve(cell.address, layout::THREADS)?;
    let start = image.starts.get(usize::from(tokens.max(1)) - 1);
    let start = start.or(image.starts.last())?;
    let bytes = match cell.region {
        Region::Lock(i) => start.locks.as_ref()?.get(i)?,
        Region::Local { .. } => &image.of_locals,
        Region::Global => &start.globals,
        _ => return None,
    };
    let part = bytes.get(offset..)?.iter().take(cell.size);
    Some(
        part.rev()
            .fold(0, |value, byte| value << 8 | u64::from(*byte)),
    )
}

/// The name of the static variable at an offset.
pub(crate) fn name(offset: usize) -> String {
    let names = IMAGE.get().into_iter().flat_map(|image| &image.names);
    let mut within = names.filter(|(start, size, _)| (*start..start + size).contains(&offset));
    match within.next() {
        Some((start, _, name)) if *start == offset => name.clone(),
        Some((start, _, name)) => format!("{name}+{}", offset - start),
        None => format!("static+{offset}"),
    }
}
