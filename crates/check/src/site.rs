//! The operations in the source of the lock files, collected by the linker.

use std::ffi::{CStr, c_char};
use std::fmt;
use std::sync::OnceLock;

use serde::{Deserialize, Serialize};

/// The kind of an operation, `enum lw_check_kind` in C.
#[repr(u8)]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[allow(missing_docs)]
pub enum OperationKind {
    Load,
    Store,
    Exchange,
    CompareExchange,
    Or,
    And,
    Add,
    Fence,
    AwaitEqual,
    AwaitNotEqual,
    AwaitEqualBounded,
    AwaitNotEqualBounded,
    Pause,
    Park,
    Unpark,
    PlainRead,
    PlainWrite,
    Clock,
    Choose,
}

include!(concat!(env!("OUT_DIR"), "/layout_OperationKind.rs"));

impl OperationKind {
    /// Whether the operation reads and writes in one step.
    pub fn is_read_modify_write(self) -> bool {
        matches!(
            self,
            Self::Exchange | Self::CompareExchange | Self::Or | Self::And | Self::Add
        )
    }

    /// The value that an operation with the operands `a` and `b` writes after it has read `old`. None:
    /// it writes nothing.
    pub(crate) fn written(self, old: u64, a: u64, b: u64) -> Option<u64> {
        match self {
            Self::Exchange => Some(a),
            Self::CompareExchange => (old == a).then_some(b),
            Self::Or => Some(old | a),
            Self::And => Some(old & a),
            Self::Add => Some(old.wrapping_add(a)),
            _ => None,
        }
    }

    /// Whether the operation waits without a bound for another thread's store.
    pub fn waits(self) -> bool {
        matches!(self, Self::AwaitEqual | Self::AwaitNotEqual)
    }

    /// Whether the operation accesses memory that threads share.
    pub fn is_access(self) -> bool {
        !matches!(self, Self::Fence | Self::Pause | Self::Clock | Self::Choose)
    }

    /// The name of the operation in the lock files, without the prefix.
    pub fn name(self) -> &'static str {
        match self {
            Self::Load => "load",
            Self::Store => "store",
            Self::Exchange => "xchg",
            Self::CompareExchange => "cmpxchg",
            Self::Or => "fetch_or",
            Self::And => "fetch_and",
            Self::Add => "fetch_add",
            Self::Fence => "fence",
            Self::AwaitEqual => "await_eq",
            Self::AwaitNotEqual => "await_ne",
            Self::AwaitEqualBounded => "await_eq_bounded",
            Self::AwaitNotEqualBounded => "await_ne_bounded",
            Self::Pause => "pause",
            Self::Park => "park",
            Self::Unpark => "unpark",
            Self::PlainRead => "plain_read",
            Self::PlainWrite => "plain_write",
            Self::Clock => "clock",
            Self::Choose => "choose",
        }
    }
}

/// A memory order, `enum lw_check_order` in C.
#[repr(u8)]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[allow(missing_docs)]
pub enum Order {
    /// The access is not atomic, and a race unless it is ordered.
    Plain,
    Relaxed,
    Dependency,
    Acquire,
    Release,
    AcqRel,
    SeqCst,
}

include!(concat!(env!("OUT_DIR"), "/layout_Order.rs"));

impl Order {
    /// Whether a read with this order sees everything that the write it reads has released.
    pub fn acquires(self) -> bool {
        matches!(
            self,
            Self::Dependency | Self::Acquire | Self::AcqRel | Self::SeqCst
        )
    }

    /// Whether a write with this order releases everything that its thread has seen.
    pub fn releases(self) -> bool {
        matches!(self, Self::Release | Self::AcqRel | Self::SeqCst)
    }

    /// The name of the order in the lock files.
    pub fn name(self) -> &'static str {
        match self {
            Self::Plain => "plain",
            Self::Relaxed => "relaxed",
            Self::Dependency => "dependency",
            Self::Acquire => "acquire",
            Self::Release => "release",
            Self::AcqRel => "acq_rel",
            Self::SeqCst => "seq_cst",
        }
    }
}

/// An operation in the source, `struct lw_check_site` in C.
#[derive(Clone, Copy)]
#[repr(C, align(16))]
pub struct Site {
    file: *const c_char,
    function: *const c_char,
    operand: *const c_char,
    /// The line in the source file.
    pub line: u32,
    /// The kind of operation.
    pub kind: OperationKind,
    /// The memory order.
    pub order: Order,
    /// The number of bytes that the operation accesses.
    pub size: u8,
    /// The memory order of a compare-and-swap that fails.
    pub failure: Order,
}

include!(concat!(env!("OUT_DIR"), "/layout_Site.rs"));

// SAFETY: C constants, whose strings are constants too.
unsafe impl Sync for Site {}
// SAFETY: as above.
unsafe impl Send for Site {}

/// The operation that a thread is about to do.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Request {
    pub(crate) site: &'static Site,
    pub(crate) address: usize,
    pub(crate) a: u64,
    pub(crate) b: u64,
}

unsafe extern "C" {
    #[link_name = "__start_lw_check_sites"]
    static FIRST: Site;
    #[link_name = "__stop_lw_check_sites"]
    static END: Site;
}

fn built_in() -> &'static [Site] {
    let (first, end) = (&raw const FIRST, &raw const END);
    // SAFETY: the linker has put the sites, and nothing else, between the two symbols.
    unsafe { std::slice::from_raw_parts(first, end.offset_from(first) as usize) }
}

/// No operation, or more than one, has a name.
#[derive(Debug, thiserror::Error)]
pub(crate) enum UnknownSite {
    #[error("no operation is '{0}'")]
    None(String),
    #[error("{count} operations are '{at}'; add #1 to #{count}")]
    Ambiguous { at: String, count: usize },
}

/// The operations of a source that was loaded.
struct Added {
    /// The sites that its code names.
    own: &'static [Site],
    /// Copies of all sites: those that are built in, and then these.
    all: &'static [Site],
}

static ADDED: OnceLock<Added> = OnceLock::new();

/// Adds the operations of a source to those of [`Site::all`].
pub(crate) fn add(own: &'static [Site]) {
    let all = [built_in(), own].concat().leak();
    let first = ADDED.set(Added { own, all });
    assert!(first.is_ok(), "one source is loaded");
}

impl Site {
    /// Sets the place of an operation, whose other members the assembly of a source has.
    pub(crate) fn set_place(
        &mut self,
        file: &'static CStr,
        function: &'static CStr,
        operand: &'static CStr,
        line: u32,
    ) {
        self.file = file.as_ptr();
        self.function = function.as_ptr();
        self.operand = operand.as_ptr();
        self.line = line;
    }

    /// All operations of all locks, clients and litmus tests, and of a source that was loaded.
    pub fn all() -> &'static [Self] {
        ADDED.get().map_or_else(built_in, |added| added.all)
    }

    /// The operation's index in [`all`](Self::all).
    ///
    /// # Panics
    /// If it is none of them.
    pub fn number(&self) -> usize {
        let at = std::ptr::from_ref(self);
        let within = |sites: &[Self]| {
            let range = sites.as_ptr_range();
            range
                .contains(&at)
                .then(|| (at.addr() - range.start.addr()) / size_of::<Self>())
        };
        let added = |added: &Added| {
            let own = within(added.own).map(|number| built_in().len() + number);
            own.or_else(|| within(added.all))
        };
        within(built_in())
            .or_else(|| ADDED.get().and_then(added))
            .expect("one of the sites")
    }

    /// The operation that `at` names: "function: kind operand", with #n where there are several alike.
    pub(crate) fn named(at: &str) -> Result<&'static Self, UnknownSite> {
        let (name, number) = match at.rsplit_once(" #") {
            Some((name, number)) => (name, number.parse::<usize>().ok()),
            None => (at, None),
        };
        let found = Self::alike(name, true);
        match (number, found.as_slice()) {
            (None, [site]) => Ok(site),
            (None, [_, _, ..]) => Err(UnknownSite::Ambiguous {
                at: at.to_owned(),
                count: found.len(),
            }),
            (Some(number), [_, _, ..]) if (1..=found.len()).contains(&number) => {
                Ok(found[number - 1])
            }
            _ => Err(UnknownSite::None(at.to_owned())),
        }
    }

    /// The name by which [`named`](Self::named) finds the operation.
    pub(crate) fn name(&self) -> String {
        let name = format!("{}: {self}", self.function());
        let found = Self::alike(&name, self.is_built_in());
        let mut numbers = found.iter().map(|other| other.number());
        match numbers.position(|number| number == self.number()) {
            Some(place) if found.len() > 1 => format!("{name} #{}", place + 1),
            _ => name,
        }
    }

    /// The operations called "function: kind operand", from the top of the file: of the locks that are built
    /// in, or of a source that was loaded.
    fn alike(name: &str, is_built_in: bool) -> Vec<&'static Self> {
        let is_it = |site: &&Self| {
            site.is_built_in() == is_built_in && format!("{}: {site}", site.function()) == name
        };
        let mut found: Vec<&Self> = Self::all().iter().filter(is_it).collect();
        found.sort_by_key(|site| site.line);
        found
    }

    /// Whether the operation is no part of a source that was loaded.
    pub fn is_built_in(&self) -> bool {
        self.number() < built_in().len()
    }

    /// Whether it is one of the threads of a check, which are no part of a lock.
    pub fn is_of_client(&self) -> bool {
        self.is_built_in() && self.file().ends_with("client.c")
    }

    /// The name of the source file, without its directory.
    pub fn file(&self) -> &'static str {
        let path = self.text(self.file);
        path.rsplit('/').next().unwrap_or(path)
    }

    /// The source file, as the compiler was given it.
    pub fn path(&self) -> &'static str {
        self.text(self.file)
    }

    /// The C function that the operation is in.
    pub fn function(&self) -> &'static str {
        self.text(self.function)
    }

    /// The operand as it is written in the source.
    pub fn operand(&self) -> &'static str {
        let text = self.text(self.operand);
        text.strip_prefix('&').unwrap_or(text)
    }

    fn text(&self, text: *const c_char) -> &'static str {
        // SAFETY: a string literal.
        unsafe { CStr::from_ptr(text) }
            .to_str()
            .expect("source text is ASCII")
    }
}

impl PartialEq for Site {
    fn eq(&self, other: &Self) -> bool {
        std::ptr::eq(self, other) || self.number() == other.number()
    }
}

impl fmt::Debug for Site {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{} {self}", self.file(), self.line)
    }
}

impl fmt::Display for Site {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.kind.name())?;
        if !self.operand().is_empty() {
            write!(f, " {}", self.operand())?;
        }
        Ok(())
    }
}
