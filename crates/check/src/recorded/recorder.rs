//! Follows a run, and notes what its operations read and write.

use std::collections::HashMap;

use lockworks_explore::State;

use crate::cells::{CellId, Place};
use crate::model::{Choice, Model, Picks};
use crate::site::{OperationKind, Order, Request};

/// A write of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Source {
    /// The value that a place has at first.
    Initial,
    /// The part-th write of an operation of a thread.
    Write {
        thread: usize,
        operation: usize,
        part: usize,
    },
}

/// An access to a place in memory.
#[derive(Clone, Copy, Debug)]
pub(super) struct Access {
    pub(super) place: usize,
    pub(super) value: u64,
    /// The write that a read has seen.
    pub(super) from: Source,
}

/// An operation of a thread.
#[derive(Clone, Debug)]
pub(super) struct Operation {
    pub(super) kind: OperationKind,
    pub(super) order: Order,
    pub(super) reads: Vec<Access>,
    pub(super) writes: Vec<Access>,
}

/// The writes of a place, in their order.
#[derive(Clone, Debug)]
pub(super) struct Writes {
    pub(super) initial: u64,
    pub(super) order: Vec<Source>,
}

/// The operations of a run so far.
pub(super) struct Recorder {
    /// The operations of each thread in program order.
    pub(super) operations: Vec<Vec<Operation>>,
    /// For each thread, the operations of its window, and whether each has been done.
    windows: Vec<Vec<(usize, bool)>>,
    pub(super) places: Vec<Writes>,
    /// The place that a cell is now.
    of_cells: HashMap<CellId, usize>,
    /// Cells of plain data, whose writes the search does not keep.
    plain: Vec<CellId>,
}

impl Recorder {
    pub(super) fn new(threads: usize) -> Self {
        Self {
            operations: vec![Vec::new(); threads],
            windows: vec![Vec::new(); threads],
            places: Vec::new(),
            of_cells: HashMap::new(),
            plain: Vec::new(),
        }
    }

    /// Notes a step that is about to be taken.
    pub(super) fn before<const N: usize>(
        &mut self,
        model: &mut Model<N>,
        state: &State<N>,
        thread: usize,
        choice: Choice,
    ) {
        match choice {
            Choice::Barrier
            | Choice::Interruption
            | Choice::Fork
            | Choice::Wake
            | Choice::TimeOut => {}
            Choice::Delay => {
                let request = model.request(state, thread).expect("a choice was made");
                let operation = self.begin(thread, &request);
                self.windows[thread].push((operation, false));
            }
            Choice::Forward { entry } => {
                let request = model.request(state, thread).expect("a choice was made");
                let operation = self.begin(thread, &request);
                let (store, _) = self.windows[thread][usize::from(entry)];
                let local = model.chosen(state, thread, choice);
                let parts = model.parts_of(local).expect("its cells are known");
                for (part, id) in parts.cells().iter().enumerate() {
                    let access = Access {
                        place: self.place(model, state, *id),
                        value: 0,
                        from: Source::Write {
                            thread,
                            operation: store,
                            part,
                        },
                    };
                    self.operations[thread][operation].reads.push(access);
                }
                self.windows[thread].push((operation, true));
            }
            Choice::Operate { picks, .. } => {
                let request = model.request(state, thread).expect("a choice was made");
                let operation = self.begin(thread, &request);
                self.operate(model, state, (thread, operation), choice, &request, &picks);
                if !self.windows[thread].is_empty() {
                    self.windows[thread].push((operation, true));
                }
            }
            Choice::Late { entry, picks, .. } => {
                let entry = usize::from(entry);
                let (operation, _) = self.windows[thread][entry];
                let local = model.chosen(state, thread, choice);
                let request = model.operation(local).expect("it was delayed");
                self.operate(model, state, (thread, operation), choice, &request, &picks);
                self.windows[thread][entry].1 = true;
                let begin = self.windows[thread].iter().position(|(_, done)| !done);
                let done = begin.unwrap_or(self.windows[thread].len());
                self.windows[thread].drain(..done);
            }
        }
    }

    /// Notes the state after a step: queue nodes that were returned are other places from now on.
    pub(super) fn after<const N: usize>(&mut self, model: &Model<N>, state: &State<N>) {
        for (thread, window) in self.windows.iter().enumerate() {
            assert_eq!(window.len(), usize::from(state.threads[thread].window.len));
        }
        if !model.config.memory.is_weak() {
            return;
        }
        let (places, plain) = (&self.places, &self.plain);
        self.of_cells.retain(|id, place| {
            let cell = &model.cells.cells[usize::from(*id)];
            let Place::Shared { number } = cell.place else {
                return true;
            };
            let writes = state.messages(usize::from(number)).len();
            plain.contains(id) || places[*place].order.len() == writes
        });
    }

    /// Appends an operation to a thread.
    fn begin(&mut self, thread: usize, request: &Request) -> usize {
        self.operations[thread].push(Operation {
            kind: request.site.kind,
            order: request.site.order,
            reads: Vec::new(),
            writes: Vec::new(),
        });
        self.operations[thread].len() - 1
    }

    /// The place that a cell is now.
    fn place<const N: usize>(&mut self, model: &Model<N>, state: &State<N>, id: CellId) -> usize {
        let places = &mut self.places;
        *self.of_cells.entry(id).or_insert_with(|| {
            let initial = match model.cells.cells[usize::from(id)].place {
                Place::Shared { number } => state.messages(usize::from(number))[0].value,
                Place::Private { number, .. } => state.private[usize::from(number)],
            };
            places.push(Writes {
                initial,
                order: vec![Source::Initial],
            });
            places.len() - 1
        })
    }

    /// Notes what an operation reads and writes.
    fn operate<const N: usize>(
        &mut self,
        model: &Model<N>,
        state: &State<N>,
        (thread, operation): (usize, usize),
        choice: Choice,
        request: &Request,
        picks: &Picks,
    ) {
        let kind = request.site.kind;
        assert!(
            !matches!(kind, OperationKind::Park | OperationKind::Unpark),
            "threads that park are not recorded"
        );
        let local = model.chosen(state, thread, choice);
        if !kind.is_access() {
            return;
        }
        let parts = model.parts_of(local).expect("its cells are known");
        let is_plain = matches!(kind, OperationKind::PlainRead | OperationKind::PlainWrite);
        // The second cell of a plain read is for races.
        let cells = match is_plain {
            true => &parts.cells()[..1],
            false => parts.cells(),
        };
        let is_store = matches!(kind, OperationKind::Store | OperationKind::PlainWrite);
        let (mut old, mut shift) = (0, 0);
        for (id, pick) in cells.iter().zip(picks) {
            let place = self.place(model, state, *id);
            let cell = &model.cells.cells[usize::from(*id)];
            if is_plain && !self.plain.contains(id) {
                self.plain.push(*id);
            }
            if is_store {
                continue;
            }
            let order = &self.places[place].order;
            let seen = match cell.place {
                Place::Shared { .. } if !is_plain && model.config.memory.is_weak() => {
                    usize::from(*pick)
                }
                _ => order.len() - 1,
            };
            let value = match cell.place {
                Place::Shared { number } if is_plain => state.newest(usize::from(number)),
                Place::Shared { number } => {
                    let messages = state.messages(usize::from(number));
                    messages[usize::from(*pick).min(messages.len() - 1)].value
                }
                Place::Private { number, .. } => state.private[usize::from(number)],
            };
            old |= value << shift;
            shift += 8 * cell.size;
            let access = Access {
                place,
                value,
                from: order[seen],
            };
            self.operations[thread][operation].reads.push(access);
        }
        let new = match is_store {
            true => Some(request.a),
            false => kind.written(old, request.a, request.b),
        };
        let Some(mut new) = new else {
            return;
        };
        for (part, (id, pick)) in cells.iter().zip(picks).enumerate() {
            let place = self.place(model, state, *id);
            let cell = &model.cells.cells[usize::from(*id)];
            let order = &mut self.places[place].order;
            let from = Source::Write {
                thread,
                operation,
                part,
            };
            let position = match cell.place {
                Place::Shared { .. } if !is_plain && model.config.memory.is_weak() => {
                    usize::from(*pick) + usize::from(!is_store)
                }
                _ => order.len(),
            };
            order.insert(position, from);
            let bytes = u64::MAX >> (64 - 8 * cell.size);
            let access = Access {
                place,
                value: new & bytes,
                from,
            };
            self.operations[thread][operation].writes.push(access);
            new = new.checked_shr(8 * cell.size as u32).unwrap_or(0);
        }
    }
}
