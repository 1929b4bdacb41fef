//! Memory as cells, and what has been found out about them.
//!
//! A cell is a range of bytes that no operation splits. Which ranges those are, which cells
//! only one thread uses, and whether there are acquire fences, is assumed at first and found out
//! on the way; a search whose assumption fails starts anew with what was found.

use std::collections::{BTreeMap, BTreeSet};

use crate::hooks::Request;
use crate::layout::{self, Region};
use crate::site::Kind;
use crate::symmetry::{Names, Renaming};

/// Entries of views, one for each cell that several threads use: as few as will do.
pub(crate) const VIEWS: [usize; 3] = [32, 64, 128];
/// Most cells of one operation: a plain write touches one for each thread that reads.
pub(crate) const PARTS: usize = layout::THREADS + 1;

/// Bytes of the largest word.
pub(crate) const WORD: usize = 8;
/// Above all addresses: what tells a thread's reads of plain data from the data.
const READS_SHIFT: usize = 40;

pub(crate) type CellId = u16;

/// A cell.
#[derive(Clone, Debug)]
pub(crate) struct Cell {
    pub(crate) address: usize,
    pub(crate) size: usize,
    pub(crate) region: Region,
    /// The one thread that uses it, or the cell's entry in views.
    pub(crate) place: Place,
}

/// Where a cell's value is kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Place {
    /// One thread uses it: the number among such cells.
    Private { thread: u8, number: u8 },
    /// Several do: the number among such cells, which is its entry in views.
    Shared { number: u8 },
}

/// The cells that an operation touches, in the order of their addresses.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Parts {
    cells: [CellId; PARTS],
    count: u8,
}

impl Parts {
    pub(crate) fn cells(&self) -> &[CellId] {
        &self.cells[..usize::from(self.count)]
    }
}

/// What a search relies on, found out by those before it. Addresses stand for their class: what
/// is found of one thread's node holds for the nodes of all.
#[derive(Clone, Debug, Default)]
pub(crate) struct Findings {
    /// Entries of views, of [`VIEWS`]; 0 where there are none.
    pub(crate) view: usize,
    boundaries: BTreeSet<usize>,
    shared: BTreeSet<usize>,
    /// Address of plain data and the thread that reads it.
    readers: BTreeSet<(usize, usize)>,
    /// Some thread makes an acquire fence, so what it read before matters.
    pub(crate) acquire_fences: bool,
}

impl Findings {
    pub(crate) fn new(view: usize) -> Self {
        Self {
            view,
            ..Self::default()
        }
    }
}

/// Why a search cannot go on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Refusal {
    /// An assumption failed: start anew, it is known now.
    Anew,
    /// There is nothing at that address.
    NoMemory,
    /// More shared cells than a view has entries.
    TooManyCells,
}

/// The cells met in a search.
pub(crate) struct Cells {
    threads: usize,
    pub(crate) cells: Vec<Cell>,
    by_address: BTreeMap<usize, CellId>,
    pub(crate) shared: usize,
    pub(crate) private: usize,
    /// For each shared cell, those that some operation touches together with it.
    pub(crate) siblings: Vec<Vec<Sibling>>,
}

/// A cell of the same word as another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Sibling {
    /// Its number among the shared cells.
    pub(crate) number: u8,
    /// Its place in the word.
    pub(crate) offset: u8,
}

/// For each cell by its number, that of the one which it becomes when threads are renamed.
#[derive(Debug)]
pub(crate) struct RenamedCells {
    pub(crate) shared: Vec<u8>,
    /// Which one becomes it.
    pub(crate) shared_before: Vec<u8>,
    pub(crate) private: Vec<u8>,
}

/// How threads are named in each cell, by its number.
#[derive(Debug, Default)]
pub(crate) struct CellNames {
    pub(crate) shared: Vec<Names>,
    pub(crate) private: Vec<Names>,
}

impl Cells {
    pub(crate) fn new(threads: usize) -> Self {
        Self {
            threads,
            cells: Vec::new(),
            by_address: BTreeMap::new(),
            shared: 0,
            private: 0,
            siblings: Vec::new(),
        }
    }

    /// The cells that `thread` is about to touch.
    pub(crate) fn touch(
        &mut self,
        findings: &mut Findings,
        thread: usize,
        request: &Request,
    ) -> Result<Parts, Refusal> {
        let site = request.site;
        if site.kind == Kind::Fence && site.order.acquires() && !findings.acquire_fences {
            findings.acquire_fences = true;
            return Err(Refusal::Anew);
        }
        if !site.kind.is_access() {
            return Ok(Parts::default());
        }
        if matches!(site.kind, Kind::PlainRead | Kind::PlainWrite) {
            return self.touch_plain(findings, thread, request);
        }
        let (start, end) = (request.address, request.address + usize::from(site.size));
        let (region, _) = layout::resolve(start, self.threads).ok_or(Refusal::NoMemory)?;
        for boundary in [start, end] {
            if findings.boundaries.insert(boundary) && self.splits(boundary) {
                return Err(Refusal::Anew);
            }
        }
        let mut parts = Parts::default();
        let mut at = start;
        while at < end {
            let next = findings.boundaries.range(at + 1..).next();
            let next = *next.expect("the end is a boundary");
            let id = self.cell(findings, thread, at, next - at, region)?;
            parts.cells[usize::from(parts.count)] = id;
            parts.count += 1;
            at = next;
        }
        self.note_siblings(&parts);
        Ok(parts)
    }

    /// Where each cell's value goes when threads are renamed. All that threads may touch who have
    /// other names is known.
    pub(crate) fn renamed(&self, renaming: &Renaming) -> RenamedCells {
        let mut renamed = RenamedCells {
            shared: vec![0; self.shared],
            shared_before: vec![0; self.shared],
            private: vec![0; self.private],
        };
        for cell in &self.cells {
            let data = renaming.address(cell.address % (1 << READS_SHIFT));
            let address = match cell.address >> READS_SHIFT {
                0 => data,
                reader => data + ((renaming.thread(reader - 1) + 1) << READS_SHIFT),
            };
            let image = self.by_address[&address];
            match (cell.place, self.cells[usize::from(image)].place) {
                (Place::Shared { number }, Place::Shared { number: new }) => {
                    renamed.shared[usize::from(number)] = new;
                    renamed.shared_before[usize::from(new)] = number;
                }
                (Place::Private { number, .. }, Place::Private { number: new, .. }) => {
                    renamed.private[usize::from(number)] = new;
                }
                _ => unreachable!("what is found of one thread's node holds for the nodes of all"),
            }
        }
        renamed
    }

    pub(crate) fn names(&self, tail_word: bool) -> CellNames {
        let mut names = CellNames::default();
        for cell in &self.cells {
            let of_place = match cell.place {
                Place::Shared { .. } => &mut names.shared,
                Place::Private { .. } => &mut names.private,
            };
            of_place.push(Names::at(cell.address, cell.size, self.threads, tail_word));
        }
        names
    }

    fn note_siblings(&mut self, parts: &Parts) {
        let shared = |id: &CellId| match self.cells[usize::from(*id)].place {
            Place::Shared { number } => Some(Sibling {
                number,
                offset: (self.cells[usize::from(*id)].address % WORD) as u8,
            }),
            Place::Private { .. } => None,
        };
        let together: Vec<Sibling> = parts.cells().iter().filter_map(shared).collect();
        for one in &together {
            for other in together.iter().filter(|other| *other != one) {
                let siblings = &mut self.siblings[usize::from(one.number)];
                if !siblings.contains(other) {
                    siblings.push(*other);
                }
            }
        }
    }

    /// Plain data is a cell of writes, and one of the reads of each thread since.
    fn touch_plain(
        &mut self,
        findings: &mut Findings,
        thread: usize,
        request: &Request,
    ) -> Result<Parts, Refusal> {
        let address = request.address;
        let size = usize::from(request.site.size);
        let (region, _) = layout::resolve(address, self.threads).ok_or(Refusal::NoMemory)?;
        let reads = |reader: usize| address + ((reader + 1) << READS_SHIFT);
        let mut addresses = vec![address];
        if request.site.kind == Kind::PlainRead {
            if findings.readers.insert((address, thread)) {
                return Err(Refusal::Anew);
            }
            addresses.push(reads(thread));
        } else {
            let readers = findings.readers.range((address, 0)..(address + 1, 0));
            addresses.extend(readers.map(|(_, reader)| reads(*reader)));
        }
        let mut parts = Parts::default();
        for address in addresses {
            findings.shared.insert(layout::class(address, self.threads));
            parts.cells[usize::from(parts.count)] =
                self.cell(findings, thread, address, size, region)?;
            parts.count += 1;
        }
        Ok(parts)
    }

    fn splits(&self, boundary: usize) -> bool {
        let before = self.by_address.range(..boundary).next_back();
        before.is_some_and(|(start, id)| start + self.cells[usize::from(*id)].size > boundary)
    }

    fn cell(
        &mut self,
        findings: &mut Findings,
        thread: usize,
        address: usize,
        size: usize,
        region: Region,
    ) -> Result<CellId, Refusal> {
        let class = layout::class(address, self.threads);
        if let Some(&id) = self.by_address.get(&address) {
            let cell = &self.cells[usize::from(id)];
            return match cell.place {
                Place::Private { thread: owner, .. } if usize::from(owner) != thread => {
                    findings.shared.insert(class);
                    Err(Refusal::Anew)
                }
                _ => Ok(id),
            };
        }
        let always_shared = matches!(
            region,
            Region::Lock(_)
                | Region::Wanted { .. }
                | Region::Queue { .. }
                | Region::Table
                | Region::Variables
        );
        let place = if always_shared || findings.shared.contains(&class) {
            if findings.view != 0 && self.shared == findings.view {
                let larger = VIEWS.into_iter().find(|entries| *entries > self.shared);
                findings.view = larger.ok_or(Refusal::TooManyCells)?;
                return Err(Refusal::Anew);
            }
            if self.shared == usize::from(u8::MAX) {
                return Err(Refusal::TooManyCells);
            }
            self.shared += 1;
            self.siblings.push(Vec::new());
            Place::Shared {
                number: (self.shared - 1) as u8,
            }
        } else {
            if self.private == usize::from(u8::MAX) {
                return Err(Refusal::TooManyCells);
            }
            self.private += 1;
            Place::Private {
                thread: thread as u8,
                number: (self.private - 1) as u8,
            }
        };
        let id = self.cells.len() as CellId;
        self.cells.push(Cell {
            address,
            size,
            region,
            place,
        });
        self.by_address.insert(address, id);
        Ok(id)
    }
}
