//! Memory as cells, and the findings about them.
//!
//! A cell is a range of bytes that no operation splits. A search first assumes which ranges are cells,
//! which cells only one thread uses, and that there are no acquire fences. If an assumption proves
//! wrong, the search starts again with the new finding.

use std::collections::{BTreeMap, BTreeSet};

use lockworks_explore::{CellNames, RenamedCells, Renaming, Sibling, WORD};
use serde::{Deserialize, Serialize};

use crate::layout::{self, Region};
use crate::names::{self, Names};
use crate::site::{OperationKind, Order, Request, Site};

/// The possible numbers of entries of a view, one for each shared cell. The smallest that fits is used.
pub(crate) const VIEWS: [usize; 5] = [32, 64, 128, 256, 1024];
/// The most cells of one operation.
pub(crate) const PARTS: usize = 4;

/// The bits of an address from here on are the number of a thread, plus 1, that reads plain data there, or
/// uses memory there that ends. Above them is the kind of a record.
const READS_SHIFT: usize = 40;
const RECORD_SHIFT: usize = READS_SHIFT + 8;

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

impl Cell {
    /// Whether the cell stands for accesses of a thread, not for memory.
    pub(crate) fn is_record(&self) -> bool {
        self.address >> READS_SHIFT != 0
    }
}

/// The place of a cell's value in a state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Place {
    /// Only one thread uses the cell: the number among such cells.
    Private { thread: u8, number: u16 },
    /// Several threads use the cell: the number among such cells, which is its entry in views.
    Shared { number: u16 },
}

/// What a record of a cell that has plain accesses is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Recorded {
    /// The last plain write, by any thread.
    PlainWrite = 1,
    /// The last plain read by a thread.
    PlainRead,
    /// The last atomic write by a thread, or read and write.
    Write,
    /// The last atomic read by a thread.
    Read,
}

impl Recorded {
    /// The record of an access.
    pub(crate) fn of(site: &Site) -> Self {
        let writes = site.kind == OperationKind::Store || site.kind.is_read_modify_write();
        match (site.order, writes) {
            (Order::Plain, true) => Self::PlainWrite,
            (Order::Plain, false) => Self::PlainRead,
            (_, true) => Self::Write,
            (_, false) => Self::Read,
        }
    }

    /// Whether two accesses are a race if nothing orders them.
    pub(crate) fn conflicts(self, other: Self) -> bool {
        let plain = |record| matches!(record, Self::PlainWrite | Self::PlainRead);
        let writes = |record| matches!(record, Self::PlainWrite | Self::Write);
        (plain(self) || plain(other)) && (writes(self) || writes(other))
    }
}

/// A record of the accesses to a cell.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Record {
    /// The cell.
    of: CellId,
    pub(crate) kind: Recorded,
    /// None: of all threads.
    thread: Option<usize>,
    /// The cell for the record.
    pub(crate) cell: CellId,
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

    fn push(&mut self, cell: CellId) -> Result<(), Refusal> {
        let next = self.cells.get_mut(usize::from(self.count));
        *next.ok_or(Refusal::TooManyParts)? = cell;
        self.count += 1;
        Ok(())
    }
}

/// The findings of earlier attempts that a search relies on. An address stands for its class: a
/// finding about the node of one thread holds for the nodes of all.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Findings {
    /// The number of entries of views, one of [`VIEWS`]; 0 where there are no views.
    pub(crate) view: usize,
    boundaries: BTreeSet<usize>,
    shared: BTreeSet<usize>,
    /// Cells that have plain accesses, besides atomic ones.
    plain: BTreeSet<usize>,
    /// Pairs of cells that an operation touches together, by their addresses.
    together: BTreeSet<(usize, usize)>,
    /// A thread makes an acquire fence, so that the views of its earlier reads matter.
    pub(crate) acquire_fences: bool,
    /// A thread makes a sequentially consistent load.
    pub(crate) sc_loads: bool,
}

impl Findings {
    /// Adds the findings of another model of the same check.
    pub(crate) fn add(&mut self, other: &Self) {
        self.view = self.view.max(other.view);
        self.boundaries.extend(&other.boundaries);
        self.shared.extend(&other.shared);
        self.plain.extend(&other.plain);
        self.together.extend(&other.together);
        self.acquire_fences |= other.acquire_fences;
        self.sc_loads |= other.sc_loads;
    }

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
    Restart,
    /// There is no memory at the address.
    NoMemory,
    /// There are more shared cells than a view has entries.
    TooManyCells,
    /// An operation touches more than [`PARTS`] cells.
    TooManyParts,
}

/// The cells met in a search.
pub(crate) struct Cells {
    threads: usize,
    /// The size of a lock, in bytes.
    pub(crate) lock_size: usize,
    pub(crate) cells: Vec<Cell>,
    by_address: BTreeMap<usize, CellId>,
    pub(crate) shared: usize,
    pub(crate) private: usize,
    /// For each shared cell, the cells that an operation touches together with it.
    pub(crate) siblings: Vec<Vec<Sibling>>,
    /// Cells of plain data, each with the cell for the reads of a thread that reads there.
    readers: Vec<(CellId, CellId)>,
    /// The memory that ends while threads run.
    mortal: Mortal,
    /// Regions of such memory, each with a thread that uses it and the cell for its uses.
    uses: Vec<(Region, usize, CellId)>,
    /// The records of cells that have plain accesses.
    records: Vec<Record>,
    /// Whether races are searched for.
    races: bool,
}

/// The memory that ends while threads run: then its owner, or the thread that destroys it, may use it for
/// something else.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mortal {
    Nothing,
    /// The nodes that threads lend.
    Lent,
    /// These nodes, and a lock.
    LentAndLock(usize),
}

impl Mortal {
    /// Whether the uses of a region by a thread matter. A thread knows its own.
    fn includes(self, region: Region, thread: usize) -> bool {
        match (self, region) {
            (Self::Nothing, _) => false,
            (_, Region::Lent { thread: owner, .. }) => owner != thread,
            (Self::LentAndLock(mortal), Region::Lock(lock)) => lock == mortal,
            _ => false,
        }
    }
}

impl Cells {
    pub(crate) fn new(threads: usize, lock_size: usize, mortal: Mortal) -> Self {
        Self {
            threads,
            lock_size,
            mortal,
            uses: Vec::new(),
            records: Vec::new(),
            races: false,
            cells: Vec::new(),
            by_address: BTreeMap::new(),
            shared: 0,
            private: 0,
            siblings: Vec::new(),
            readers: Vec::new(),
        }
    }

    /// The same, if `races` are to be searched for with the records of accesses.
    pub(crate) fn with_races(self, races: bool) -> Self {
        Self { races, ..self }
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
            return Err(Refusal::Restart);
        }
        let is_load = site.kind == OperationKind::Load || site.kind.waits();
        let sc_load = is_load && site.order == Order::SeqCst;
        if sc_load && !findings.sc_loads {
            findings.sc_loads = true;
            return Err(Refusal::Restart);
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
        let (region, offset) = layout::resolve(start, self.threads).ok_or(Refusal::NoMemory)?;
        if matches!(region, Region::Lock(_)) && offset + (end - start) > self.lock_size {
            return Err(Refusal::NoMemory);
        }
        for boundary in [start, end] {
            if findings.boundaries.insert(boundary) && self.splits(boundary) {
                return Err(Refusal::Restart);
            }
        }
        let mut parts = Parts::default();
        let mut at = start;
        while at < end {
            let next = findings.boundaries.range(at + 1..).next();
            let next = *next.expect("the end is a boundary");
            let id = self.cell(findings, thread, at, next - at, region)?;
            parts.push(id)?;
            at = next;
        }
        self.note_siblings(findings, &parts)?;
        if site.kind != OperationKind::Unpark {
            self.find_uses(findings, thread, start, region)?;
            self.find_records(findings, thread, site, &parts, region)?;
        }
        Ok(parts)
    }

    /// Makes the cells for the records of an access, if there are plain accesses too.
    fn find_records(
        &mut self,
        findings: &mut Findings,
        thread: usize,
        site: &Site,
        parts: &Parts,
        region: Region,
    ) -> Result<(), Refusal> {
        let kind = Recorded::of(site);
        let by = (kind != Recorded::PlainWrite).then_some(thread);
        for of in parts.cells() {
            let address = self.cell_at(*of).address;
            let class = layout::class(address, self.threads);
            let is_shared = matches!(self.cell_at(*of).place, Place::Shared { .. });
            if !self.races || !is_shared {
                continue;
            }
            if site.order == Order::Plain && findings.plain.insert(class) {
                return Err(Refusal::Restart);
            }
            let is_known =
                |record: &Record| (record.of, record.kind, record.thread) == (*of, kind, by);
            if !findings.plain.contains(&class) || self.records.iter().any(is_known) {
                continue;
            }
            let number = by.map_or(0, |thread| thread + 1);
            let record = address + (number << READS_SHIFT) + ((kind as usize) << RECORD_SHIFT);
            findings.shared.insert(record);
            let cell = self.cell(findings, thread, record, 1, region)?;
            self.records.push(Record {
                of: *of,
                kind,
                thread: by,
                cell,
            });
        }
        Ok(())
    }

    /// The records of the accesses to a cell.
    pub(crate) fn records_of(&self, cell: CellId) -> impl Iterator<Item = Record> {
        let records = self.records.iter().copied();
        records.filter(move |record| record.of == cell)
    }

    /// The cell for the record of a thread's access to a cell.
    pub(crate) fn record_of(&self, of: CellId, kind: Recorded, thread: usize) -> Option<CellId> {
        let by = (kind != Recorded::PlainWrite).then_some(thread);
        let mut records = self.records_of(of);
        let own = records.find(|record| (record.kind, record.thread) == (kind, by));
        own.map(|record| record.cell)
    }

    /// Whether there are such records.
    pub(crate) fn has_records(&self) -> bool {
        !self.records.is_empty()
    }

    /// Makes a cell for the uses of memory that ends.
    fn find_uses(
        &mut self,
        findings: &mut Findings,
        thread: usize,
        address: usize,
        region: Region,
    ) -> Result<(), Refusal> {
        if !self.mortal.includes(region, thread) || self.use_of(region, thread).is_some() {
            return Ok(());
        }
        let size = match region {
            Region::Lent { .. } => layout::LENT_STRIDE,
            _ => layout::STRIDE,
        };
        // No operation touches the last byte of a region.
        let uses = address / size * size + size - 1 + ((thread + 1) << READS_SHIFT);
        findings.shared.insert(layout::class(uses, self.threads));
        let cell = self.cell(findings, thread, uses, 1, region)?;
        self.uses.push((region, thread, cell));
        Ok(())
    }

    /// The cell for the uses of a region by a thread, if they matter.
    pub(crate) fn use_of(&self, region: Region, thread: usize) -> Option<CellId> {
        let found = self
            .uses
            .iter()
            .find(|(of, by, _)| (*of, *by) == (region, thread));
        found.map(|(.., cell)| *cell)
    }

    /// The cells for the uses of a region by all threads.
    pub(crate) fn uses_of(&self, region: Region) -> impl Iterator<Item = CellId> {
        let uses = self.uses.iter().filter(move |(of, ..)| *of == region);
        uses.map(|(.., cell)| *cell)
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
            let data = names::address(renaming, cell.address % (1 << READS_SHIFT));
            let record = cell.address >> RECORD_SHIFT << RECORD_SHIFT;
            let address = match (cell.address >> READS_SHIFT) % (1 << (RECORD_SHIFT - READS_SHIFT))
            {
                0 => data + record,
                reader => data + record + ((renaming.thread(reader - 1) + 1) << READS_SHIFT),
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

    pub(crate) fn names(&self, has_tail_word: bool) -> CellNames<Names> {
        let mut names = CellNames {
            shared: Vec::new(),
            private: Vec::new(),
        };
        for cell in &self.cells {
            let of_place = match cell.place {
                Place::Shared { .. } => &mut names.shared,
                Place::Private { .. } => &mut names.private,
            };
            of_place.push(Names::at(
                cell.address,
                cell.size,
                self.threads,
                has_tail_word,
            ));
        }
        names
    }

    /// Notes that an operation touches these cells together.
    fn note_siblings(&self, findings: &mut Findings, parts: &Parts) -> Result<(), Refusal> {
        let shared = |id: &&CellId| matches!(self.cell_at(**id).place, Place::Shared { .. });
        let addresses = || {
            parts
                .cells()
                .iter()
                .filter(shared)
                .map(|id| self.cell_at(*id).address)
        };
        let known = findings.together.len();
        for one in addresses() {
            let others = addresses().filter(|other| *other != one);
            findings.together.extend(others.map(|other| (one, other)));
        }
        match findings.together.len() == known {
            true => Ok(()),
            false => Err(Refusal::Restart),
        }
    }

    fn cell_at(&self, id: CellId) -> &Cell {
        &self.cells[usize::from(id)]
    }

    /// Adds a shared cell to the siblings of those that operations touch together with it.
    fn join_siblings(&mut self, findings: &Findings, number: u16, address: usize) {
        let mut own = Vec::new();
        for (_, other) in findings.together.range((address, 0)..(address + 1, 0)) {
            if let Some(id) = self.by_address.get(other)
                && let Place::Shared { number: sibling } = self.cell_at(*id).place
            {
                let offset = |address| (address % WORD) as u8;
                own.push(Sibling {
                    number: sibling,
                    offset: offset(*other),
                });
                self.siblings[usize::from(sibling)].push(Sibling {
                    number,
                    offset: offset(address),
                });
            }
        }
        self.siblings.push(own);
    }

    /// Returns the cells of plain data: one for writes, and for a read also one for the later reads of
    /// the thread.
    fn touch_plain(
        &mut self,
        findings: &mut Findings,
        thread: usize,
        request: &Request,
    ) -> Result<Parts, Refusal> {
        let address = request.address;
        let size = usize::from(request.site.size);
        let (region, offset) = layout::resolve(address, self.threads).ok_or(Refusal::NoMemory)?;
        if matches!(region, Region::Lock(_)) && offset + size > self.lock_size {
            return Err(Refusal::NoMemory);
        }
        let reads = address + ((thread + 1) << READS_SHIFT);
        let mut parts = Parts::default();
        for address in [address, reads] {
            let class = layout::class(address, self.threads);
            let is_private = |cell: &Cell| {
                layout::class(cell.address, self.threads) == class
                    && matches!(cell.place, Place::Private { .. })
            };
            if findings.shared.insert(class) && self.cells.iter().any(is_private) {
                return Err(Refusal::Restart);
            }
        }
        let data = self.cell(findings, thread, address, size, region)?;
        parts.push(data)?;
        if request.site.kind == OperationKind::PlainRead {
            let known = self.cells.len();
            let reads = self.cell(findings, thread, reads, size, region)?;
            parts.push(reads)?;
            if self.cells.len() > known {
                self.readers.push((data, reads));
            }
        }
        Ok(parts)
    }

    /// The cells for the reads of plain data by each thread that reads there.
    pub(crate) fn reads_of(&self, data: CellId) -> impl Iterator<Item = CellId> {
        let readers = self.readers.iter();
        readers
            .filter(move |(of, _)| *of == data)
            .map(|(_, reads)| *reads)
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
                    Err(Refusal::Restart)
                }
                _ => Ok(id),
            };
        }
        let always_shared = matches!(
            region,
            Region::Lock(_)
                | Region::Wanted { .. }
                | Region::Reads { .. }
                | Region::Held { .. }
                | Region::Queue { .. }
                | Region::Table
                | Region::Variables
                | Region::Global
        );
        let place = if always_shared || findings.shared.contains(&class) {
            if findings.view != 0 && self.shared == findings.view {
                let larger = VIEWS.into_iter().find(|entries| *entries > self.shared);
                findings.view = larger.ok_or(Refusal::TooManyCells)?;
                return Err(Refusal::Restart);
            }
            let number = self.shared as u16;
            self.join_siblings(findings, number, address);
            self.shared += 1;
            Place::Shared { number }
        } else {
            self.private += 1;
            Place::Private {
                thread: thread as u8,
                number: (self.private - 1) as u16,
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
