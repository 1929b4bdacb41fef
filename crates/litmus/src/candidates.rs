//! The candidate executions of a test: a trace of each thread, where each read sees a write of its
//! value, and an order of the writes of each location.
//!
//! Only candidates are built in which each location by itself is coherent and read-modify-writes
//! are atomic, which all models require.

use std::collections::BTreeSet;

use super::error::Refusal;
use super::execution::{Event, Execution, Kind, Mark};
use super::relation::Relation;
use super::syntax::Test;
use super::thread::{self, Trace};

/// Whether to go on with what a candidate is part of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Step {
    On,
    Back,
}

/// A judge of candidates.
pub(super) trait Visitor {
    /// Whether candidates with these traces can be of interest.
    fn traces(&mut self, traces: &[&Trace]) -> Step;

    /// A candidate in which only some locations have their relations; the more it has, the more
    /// axioms it breaks.
    fn part(&mut self, part: &Execution) -> Step;

    /// A candidate, with the final values of all locations.
    fn whole(
        &mut self,
        traces: &[&Trace],
        whole: &Execution,
        memory: &[i64],
    ) -> Result<(), Refusal>;
}

/// The traces of each thread.
///
/// A read may see any value that is written to its location. First all values are found that some path of
/// a thread writes, wherever its conditions come from: a value may exist only because a thread reads
/// what follows from it. Then those are left out that no trace writes.
pub(super) fn traces(test: &Test) -> Result<Vec<Vec<Trace>>, Refusal> {
    let mut values = values(test)?;
    loop {
        let all = test.threads.iter().enumerate();
        let traces: Vec<Vec<Trace>> = all
            .map(|(number, thread)| thread::traces(number, thread, &values))
            .collect::<Result<_, _>>()?;
        let mut left = initial(test);
        for (location, value) in traces.iter().flatten().flat_map(written) {
            left[location].insert(value);
        }
        for (left, values) in left.iter_mut().zip(&values) {
            left.retain(|value| values.contains(value));
        }
        if left == values {
            return Ok(traces);
        }
        values = left;
    }
}

/// All values that each location may have: steps of one write each, as many as there are writes, since
/// each value has a chain of writes behind it.
fn values(test: &Test) -> Result<Vec<BTreeSet<i64>>, Refusal> {
    let mut values = initial(test);
    let mut steps = 0;
    loop {
        let mut grown = values.clone();
        let mut most = 0;
        for (number, thread) in test.threads.iter().enumerate() {
            let (written, writes) = thread::written(number, thread, &values)?;
            most += writes;
            for (location, value) in written {
                grown[location].insert(value);
            }
        }
        if grown == values || steps > most {
            return Ok(values);
        }
        values = grown;
        steps += 1;
    }
}

fn initial(test: &Test) -> Vec<BTreeSet<i64>> {
    let initial = test.locations.iter().map(|l| BTreeSet::from([l.initial]));
    initial.collect()
}

fn is_write(event: &Event) -> bool {
    matches!(event.kind, Kind::Write(_))
}

/// Visits all candidates of these traces.
pub(super) fn visit(
    test: &Test,
    traces: &[Vec<Trace>],
    visitor: &mut impl Visitor,
) -> Result<(), Refusal> {
    // All values that each thread and those after it can write.
    let mut later: Vec<BTreeSet<(usize, i64)>> = vec![BTreeSet::new()];
    for of_thread in traces.iter().rev() {
        let mut writes = later.last().cloned().unwrap_or_default();
        writes.extend(of_thread.iter().flat_map(written));
        later.push(writes);
    }
    later.reverse();
    let initial = test.locations.iter().enumerate();
    let mut search = Search {
        test,
        traces,
        later,
        visitor,
        chosen: Vec::new(),
        read: Vec::new(),
        written: initial.map(|(i, l)| (i, l.initial)).collect(),
    };
    search.threads()
}

fn written(trace: &Trace) -> impl Iterator<Item = (usize, i64)> + '_ {
    let writes = trace.events.iter().filter(|event| is_write(event));
    writes.filter_map(|event| Some((event.location?, event.value)))
}

fn read(trace: &Trace) -> impl Iterator<Item = (usize, i64)> + '_ {
    let is_read = |event: &&Event| matches!(event.kind, Kind::Read(_));
    let reads = trace.events.iter().filter(is_read);
    reads.filter_map(|event| Some((event.location?, event.value)))
}

/// Chooses traces thread by thread.
struct Search<'a, V> {
    test: &'a Test,
    traces: &'a [Vec<Trace>],
    later: Vec<BTreeSet<(usize, i64)>>,
    visitor: &'a mut V,
    chosen: Vec<&'a Trace>,
    /// The values that the chosen traces read and write, with the initial ones.
    read: Vec<(usize, i64)>,
    written: Vec<(usize, i64)>,
}

impl<V: Visitor> Search<'_, V> {
    fn threads(&mut self) -> Result<(), Refusal> {
        let Some(traces) = self.traces.get(self.chosen.len()) else {
            return self.executions();
        };
        for trace in traces {
            let (reads, writes) = (self.read.len(), self.written.len());
            self.chosen.push(trace);
            self.read.extend(read(trace));
            self.written.extend(written(trace));
            let later = &self.later[self.chosen.len()];
            let can_be = |read| later.contains(read) || self.written.contains(read);
            if self.read.iter().all(can_be) {
                self.threads()?;
            }
            self.chosen.pop();
            self.read.truncate(reads);
            self.written.truncate(writes);
        }
        Ok(())
    }

    fn executions(&mut self) -> Result<(), Refusal> {
        if self.visitor.traces(&self.chosen) == Step::Back {
            return Ok(());
        }
        let mut execution = without_memory(self.test, &self.chosen);
        let mut memory: Vec<i64> = self.test.locations.iter().map(|l| l.initial).collect();
        let mut places: Vec<Vec<Place>> = Vec::new();
        for (location, last) in memory.iter_mut().enumerate() {
            let all = Place::all(&execution, location);
            if all.is_empty() {
                return Ok(());
            }
            if all.len() > 1 || all[0].has_relations() {
                places.push(all);
            } else {
                *last = all[0].last;
            }
        }
        // Those without a choice first, so that parts are judged early.
        places.sort_by_key(Vec::len);
        self.memory(&places, &mut execution, &mut memory)
    }

    fn memory(
        &mut self,
        places: &[Vec<Place>],
        execution: &mut Execution,
        memory: &mut [i64],
    ) -> Result<(), Refusal> {
        let Some((first, rest)) = places.split_first() else {
            return self.visitor.whole(&self.chosen, execution, memory);
        };
        let combinations: usize = rest.iter().map(Vec::len).product();
        for place in first {
            memory[place.location] = place.last;
            place.relations(execution, Relation::insert);
            if combinations <= FEW || self.visitor.part(execution) == Step::On {
                self.memory(rest, execution, memory)?;
            }
            place.relations(execution, Relation::remove);
        }
        Ok(())
    }
}

/// To judge a part pays where it can save more candidates than this.
const FEW: usize = 2;

/// An execution with all events and all relations but those of memory.
fn without_memory(test: &Test, traces: &[&Trace]) -> Execution {
    let initial = test.locations.iter().enumerate();
    let mut events: Vec<Event> = initial
        .map(|(location, of)| Event {
            thread: None,
            kind: Kind::Write(Mark::Once),
            location: Some(location),
            value: of.initial,
            of_rmw: false,
            line: 0,
        })
        .collect();
    let mut starts = Vec::new();
    for trace in traces {
        starts.push(events.len());
        events.extend(trace.events.iter().cloned());
    }
    let mut execution = Execution::new(events);
    for (trace, start) in traces.iter().zip(starts) {
        for (read, write) in &trace.rmw {
            execution.rmw.insert(start + read, start + write);
        }
        for (i, dependencies) in trace.dependencies.iter().enumerate() {
            for read in 0..trace.events.len() {
                let is_in = |set: u128| set >> read & 1 == 1;
                if is_in(dependencies.addr) {
                    execution.addr.insert(start + read, start + i);
                }
                if is_in(dependencies.data) {
                    execution.data.insert(start + read, start + i);
                }
                if is_in(dependencies.ctrl) {
                    execution.ctrl.insert(start + read, start + i);
                }
            }
        }
    }
    execution
}

/// An order of the writes of a location, and the write that each read sees.
struct Place {
    location: usize,
    order: Vec<usize>,
    /// Writes and reads.
    seen: Vec<(usize, usize)>,
    /// The final value.
    last: i64,
}

impl Place {
    fn has_relations(&self) -> bool {
        self.order.len() > 1 || !self.seen.is_empty()
    }

    fn relations(&self, execution: &mut Execution, change: impl Fn(&mut Relation, usize, usize)) {
        for (i, first) in self.order.iter().enumerate() {
            for second in &self.order[i + 1..] {
                change(&mut execution.co, *first, *second);
            }
        }
        for (write, read) in &self.seen {
            change(&mut execution.rf, *write, *read);
        }
    }

    /// All coherent ones of a location.
    fn all(execution: &Execution, location: usize) -> Vec<Self> {
        let events = &execution.events;
        let here = (0..events.len()).filter(|event| events[*event].location == Some(location));
        let (mut writes, mut reads) = (Vec::new(), Vec::new());
        for event in here {
            match events[event].kind {
                Kind::Write(_) => writes.push(event),
                Kind::Read(_) => reads.push(event),
                Kind::Fence(_) => {}
            }
        }
        let mut orders = Orders {
            execution,
            // The initial value is the first event.
            order: vec![writes.remove(0)],
            left: writes,
            reads,
            location,
            found: Vec::new(),
        };
        orders.extend();
        orders.found
    }
}

/// Orders the writes of a location one by one.
struct Orders<'a> {
    execution: &'a Execution,
    location: usize,
    order: Vec<usize>,
    left: Vec<usize>,
    reads: Vec<usize>,
    found: Vec<Place>,
}

impl Orders<'_> {
    fn extend(&mut self) {
        if self.left.is_empty() {
            self.see(0, &mut Vec::new());
            return;
        }
        let events = &self.execution.events;
        for i in 0..self.left.len() {
            let write = self.left[i];
            let po = &self.execution.po;
            let follows_another = self.left.iter().any(|other| po.contains(*other, write));
            // A read-modify-write follows the write that it reads.
            let last = self.order[self.order.len() - 1];
            let read = self.read_of(write);
            let can_follow = read.is_none_or(|read| events[last].value == events[read].value);
            if follows_another || !can_follow {
                continue;
            }
            self.left.remove(i);
            self.order.push(write);
            self.extend();
            self.order.pop();
            self.left.insert(i, write);
        }
    }

    /// The read of the read-modify-write of a write.
    fn read_of(&self, write: usize) -> Option<usize> {
        let mut reads = self.reads.iter().copied();
        reads.find(|read| self.execution.rmw.contains(*read, write))
    }

    /// Chooses what each read from the given one on sees, by place in the order of writes.
    fn see(&mut self, next: usize, seen: &mut Vec<usize>) {
        let (events, po) = (&self.execution.events, &self.execution.po);
        let Some(&read) = self.reads.get(next) else {
            let pairs = seen.iter().zip(&self.reads);
            let place = Place {
                location: self.location,
                order: self.order.clone(),
                seen: pairs
                    .map(|(place, read)| (self.order[*place], *read))
                    .collect(),
                last: events[self.order[self.order.len() - 1]].value,
            };
            self.found.push(place);
            return;
        };
        let mut first = 0;
        let mut end = self.order.len();
        for (place, write) in self.order.iter().enumerate() {
            if po.contains(*write, read) {
                first = first.max(place);
            }
            if po.contains(read, *write) {
                end = end.min(place);
            }
        }
        // Earlier reads of the thread have seen no newer write.
        for (earlier, place) in self.reads.iter().zip(seen.iter()) {
            if po.contains(*earlier, read) {
                first = first.max(*place);
            }
        }
        let write = self.execution.rmw.after(read).next();
        if let Some(write) = write {
            // It sees the write just before its own.
            let own = self.order.iter().position(|other| *other == write);
            first = first.max(own.map_or(0, |own| own.saturating_sub(1)));
        }
        for place in first..end {
            if events[self.order[place]].value == events[read].value {
                seen.push(place);
                self.see(next + 1, seen);
                seen.pop();
            }
        }
    }
}
