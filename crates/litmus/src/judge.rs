//! Judges a test: which final states a model allows.

use std::collections::BTreeMap;

use super::candidates::{self, Step, Visitor};
use super::error::Refusal;
use super::execution::{Event, Execution, Fence, Kind, Mark};
use super::syntax::{Condition, Observed, Test, location_of};
use super::thread::Trace;
use super::{Allowed, Memory, is_allowed};

/// Judges a test by a model.
pub(super) fn judge(test: &Test, model: Memory) -> Result<Allowed, Refusal> {
    let traces = candidates::traces(test)?;
    let events = || {
        let all = traces.iter().flatten();
        all.flat_map(|trace| &trace.events)
    };
    if !model.is_kernel()
        && let Some(event) = events().find(|event| is_rcu(event))
    {
        return Err(Refusal::new(
            event.line,
            format!("grace periods and SRCU, which only lkmm has; the model is {model}"),
        ));
    }
    if let Some(line) = test.c11.filter(|_| !model.has_c11_functions()) {
        return Err(Refusal::new(
            line,
            format!("a function of C11, which c11 and sc have; the model is {model}"),
        ));
    }
    let has_memory = |condition: &Condition| {
        let mut all = Vec::new();
        condition.observed(&mut all);
        all.iter().any(|part| matches!(part, Observed::Location(_)))
    };
    let mut judge = Judge {
        model,
        test,
        may_race: (model.is_kernel() || model == Memory::C11)
            && events()
                .any(|e| matches!(e.kind, Kind::Read(Mark::Plain) | Kind::Write(Mark::Plain))),
        filters_by_variables: !test.filter.as_ref().is_some_and(has_memory),
        observes_memory: has_memory(&test.condition),
        observed: test.observed(),
        states: BTreeMap::new(),
        allowed: Allowed::default(),
    };
    candidates::visit(test, &traces, &mut judge)?;
    let mut allowed = judge.allowed;
    allowed.satisfying = judge.states.values().filter(|holds| **holds).count();
    allowed.others = judge.states.len() - allowed.satisfying;
    allowed.states = judge.states;
    Ok(allowed)
}

fn is_rcu(event: &Event) -> bool {
    match event.kind {
        Kind::Read(mark) | Kind::Write(mark) => matches!(mark, Mark::SrcuLock | Mark::SrcuUnlock),
        Kind::Fence(fence) => matches!(
            fence,
            Fence::SyncRcu | Fence::SyncSrcu | Fence::AfterSrcuReadUnlock
        ),
    }
}

struct Judge<'a> {
    model: Memory,
    test: &'a Test,
    /// Whether the test has plain accesses whose races the model reports.
    may_race: bool,
    /// Whether the filter depends on variables of threads only.
    filters_by_variables: bool,
    observes_memory: bool,
    observed: Vec<Observed>,
    /// The final states that are allowed, and whether the condition holds.
    states: BTreeMap<Vec<i64>, bool>,
    allowed: Allowed,
}

fn value(traces: &[&Trace], memory: &[i64], of: Observed) -> i64 {
    match of {
        // A thread that has a fault has set some of its variables only.
        Observed::Variable(thread, variable) => traces[thread].variables[variable],
        Observed::Location(location) => memory[location],
    }
}

impl Judge<'_> {
    fn state(&self, traces: &[&Trace], memory: &[i64]) -> Vec<i64> {
        let parts = self.observed.iter();
        parts.map(|part| value(traces, memory, *part)).collect()
    }

    /// Whether there may be flags that have not been seen.
    fn asks_flags(&self) -> bool {
        let allowed = &self.allowed;
        let all = allowed.has_race && (allowed.has_mixed_accesses || !self.model.is_kernel());
        self.may_race && !all
    }

    /// Whether one more candidate of an allowed state can tell anything new.
    fn is_settled(&self, state: &[i64]) -> bool {
        !self.asks_flags() && self.states.contains_key(state)
    }

    fn is_filtered(&self, traces: &[&Trace], memory: &[i64]) -> bool {
        let filter = self.test.filter.as_ref();
        filter.is_some_and(|filter| !filter.holds(&|part| value(traces, memory, part)))
    }
}

impl Visitor for Judge<'_> {
    fn traces(&mut self, traces: &[&Trace]) -> Step {
        if traces.iter().any(|trace| trace.fault.is_some()) {
            return Step::On;
        }
        if self.filters_by_variables && self.is_filtered(traces, &[]) {
            return Step::Back;
        }
        if !self.observes_memory && self.is_settled(&self.state(traces, &[])) {
            return Step::Back;
        }
        Step::On
    }

    fn part(&mut self, part: &Execution) -> Step {
        match is_allowed(self.model, part) {
            Ok(()) => Step::On,
            Err(_) => Step::Back,
        }
    }

    fn whole(
        &mut self,
        traces: &[&Trace],
        whole: &Execution,
        memory: &[i64],
    ) -> Result<(), Refusal> {
        let fault = traces.iter().find_map(|trace| trace.fault.as_ref());
        let state = self.state(traces, memory);
        if fault.is_none() && (self.is_filtered(traces, memory) || self.is_settled(&state)) {
            return Ok(());
        }
        let Ok(flags) = self.model.judge(whole, self.asks_flags()) else {
            return Ok(());
        };
        if let Some(fault) = fault {
            return Err(fault.clone());
        }
        self.allowed.has_race |= flags.race;
        self.allowed.has_mixed_accesses |= flags.mixed;
        let holds = self
            .test
            .condition
            .holds(&|part| value(traces, memory, part));
        if holds && self.allowed.witness.is_empty() {
            self.allowed.witness = witness(self.test, whole);
        }
        self.states.insert(state, holds);
        Ok(())
    }
}

/// The accesses of an execution, as rows: thread, line, event, what it reads from.
fn witness(test: &Test, x: &Execution) -> Vec<super::WitnessRow> {
    let name = |value: i64| {
        let location = location_of(value).and_then(|location| test.locations.get(location));
        location.map_or(value.to_string(), |location| format!("&{}", location.name))
    };
    let rows = x.events.iter().enumerate().filter_map(|(i, event)| {
        let thread = event.thread?;
        let location = event
            .location
            .map(|location| &test.locations[location].name);
        let location = location.map_or("", String::as_str);
        let (text, is_read) = match event.kind {
            Kind::Read(mark) => (
                format!("read {location} = {} ({mark})", name(event.value)),
                true,
            ),
            Kind::Write(mark) => (
                format!("write {location} = {} ({mark})", name(event.value)),
                false,
            ),
            Kind::Fence(fence) => (format!("{fence} {location}").trim_end().to_owned(), false),
        };
        let write =
            x.rf.pairs()
                .find(|(_, read)| *read == i)
                .map(|(write, _)| write);
        let from = write.filter(|_| is_read).map(|write| &x.events[write]);
        let reads_from = from.map(|write| match write.thread {
            None => "initial value".to_owned(),
            Some(thread) => format!("P{thread}, line {}", write.line),
        });
        Some(super::WitnessRow {
            thread,
            line: event.line,
            event: text,
            reads_from,
        })
    });
    rows.collect()
}
