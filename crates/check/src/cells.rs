//! Memory as cells, and the findings about them.
//!
//! A cell is a range of bytes that no operation splits. A search first assumes which ranges are cells,
//! which cells only one thread uses, and that there are no acquire fences. If an assumption proves
//! wrong, the search starts again with the new finding.

use std::collections::{BTreeMap, BTreeSet};

use crate::hooks::Request;
use crate::layout::{self, Region};
use crate::site::OperationKind;
use crate::symmetry::{Names, Renaming};

/// The possible numbers of entries of a view, one for each shared cell. The smallest that fits is used.
pub(crate) const VIEWS: [usize; 3] = [32, 64, 128];
/// The most cells of one operation: a plain write touches one cell for each thread that reads.
pub(crate) const PARTS: usize = layout::THREADS + 1;

/// The size of the largest word in bytes.
pub(crate) const WORD: usize = 8;
/// The bits of an address from here on are the number of a thread, plus 1, that reads plain data there.
const READS_SHIFT: usize = 40;

pub(crate) type CellId = u16;

/// A cell.
#[derive(Clone, Debug)]
pub(crate) struct Cell {
    pub(crate) address: usize,
    pub(crate) size: usize,
    pub(crate) region: Region,
    /// The place of the cell's value.
    pub(crate) place: Place,
}

/// The place of a cell's value in a state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Place {
    /// Only one thread uses the cell: the number among such cells.
    Private { thread: u8, number: u8 },
    /// Several threads use the cell: the number among such cells, which is its entry in views.
    Shared { number: u8 },
}

/// The cells that an operation touches, sorted by address.
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

/// The findings of earlier attempts that a search relies on. An address stands for its class: a
/// finding about the node of one thread holds for the nodes of all.
#[derive(Clone, Debug, Default)]
pub(crate) struct Findings {
    /// The number of entries of views, one of [`VIEWS`]; 0 where there are no views.
    pub(crate) view: usize,
    boundaries: BTreeSet<usize>,
    shared: BTreeSet<usize>,
    /// Addresses of plain data, each with a thread that reads there.
    readers: BTreeSet<(usize, usize)>,
    /// A thread makes an acquire fence, so that the views of its earlier reads matter.
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

/// The reason why a search cannot go on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Refusal {
    /// An assumption was wrong: the search must start again with the new finding.
    Anew,
    /// There is no memory at the address.
    NoMemory,
    /// There are more shared cells than a view has entries.
    TooManyCells,
}

/// The cells met in a search.
pub(crate) struct Cells {
    threads: usize,
    pub(crate) cells: Vec<Cell>,
    by_address: BTreeMap<usize, CellId>,
    pub(crate) shared: usize,
    pub(crate) private: usize,
    /// For each shared cell, the cells that an operation touches together with it.
    pub(crate) siblings: Vec<Vec<Sibling>>,
}

/// A cell of the same word as another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Sibling {
    /// The cell's number among the shared cells.
    pub(crate) number: u8,
    /// The cell's offset in the word.
    pub(crate) offset: u8,
}

/// For each cell, by its number, the number of the cell that it becomes when threads are renamed.
#[derive(Debug)]
pub(crate) struct RenamedCells {
    pub(crate) shared: Vec<u8>,
    /// The inverse of `shared`.
    pub(crate) shared_before: Vec<u8>,
    pub(crate) private: Vec<u8>,
}

/// For each cell, by its number, the way in which its value names threads.
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

    /// Returns the cells that the next operation of `thread` touches.
    pub(crate) fn touch(
        &mut self,
        findings: &mut Findings,
        thread: usize,
        request: &Request,
    ) -> Result<Parts, Refusal> {
        let site = request.site;
        if site.kind == OperationKind::Fence && site.order.acquires() && !findings.acquire_fences {
            findings.acquire_fences = true;
            return Err(Refusal::Anew);
        }
        if !site.kind.is_access() {
            return Ok(Parts::default());
        }
        if matches!(
            site.kind,
            OperationKind::PlainRead | OperationKind::PlainWrite
        ) {
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

    /// The cells that cells become when threads are renamed. The cells of all renamed threads must be
    /// known.
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

    /// Returns the cells of plain data: one for writes, and one for the later reads of each thread.
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
        if request.site.kind == OperationKind::PlainRead {
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
