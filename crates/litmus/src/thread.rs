//! The traces of a thread: its sequences of events, for values that its reads may have.
//!
//! To find these values, a thread also runs with reads whose value is unknown ([`written`]). Its conditions
//! then go either way, so that it writes all that some path writes.

use std::collections::BTreeSet;

use super::error::Refusal;
use super::execution::{Event, Fence, Kind, Mark};
use super::syntax::{
    Action, Binary, CompareExchange, Expression, Statement, Thread, Unary, Update, location_of,
};

/// Threads with more events are refused, so that a set of events is a number.
const MOST_EVENTS: usize = 128;
/// More sequences of one thread are refused.
const MOST_TRACES: usize = 200_000;

/// A set of events of a thread.
type Events = u128;

/// A sequence of events of a thread, and its dependencies. Events have their numbers in it.
#[derive(Clone, Debug)]
pub(super) struct Trace {
    pub(super) events: Vec<Event>,
    pub(super) rmw: Vec<(usize, usize)>,
    /// For each event, the reads that it depends on.
    pub(super) dependencies: Vec<Dependencies>,
    /// The final values of variables.
    pub(super) variables: Vec<i64>,
    /// Why the thread ended early.
    pub(super) fault: Option<Refusal>,
}

#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Dependencies {
    pub(super) addr: Events,
    pub(super) data: Events,
    pub(super) ctrl: Events,
}

/// A value, if it is known, and the reads that it was computed from.
#[derive(Clone, Copy)]
struct Tainted {
    value: Option<i64>,
    from: Events,
}

impl Tainted {
    fn constant(value: i64) -> Self {
        Self {
            value: Some(value),
            from: 0,
        }
    }

    /// A value that is computed from this one.
    fn map(self, of: impl Fn(i64) -> i64) -> Self {
        Self {
            value: self.value.map(of),
            ..self
        }
    }
}

/// A thread cannot go on: it has a fault, or reads a value that it cannot read there.
enum Stop {
    Fault(Refusal),
    Impossible,
}

/// All traces of a thread whose reads have values of these, by location.
pub(super) fn traces(
    number: usize,
    thread: &Thread,
    values: &[BTreeSet<i64>],
) -> Result<Vec<Trace>, Refusal> {
    let mut traces = Vec::new();
    runs(number, thread, values, false, |run, fault| {
        traces.push(Trace {
            variables: run.variables.iter().filter_map(|v| v.value).collect(),
            events: run.events,
            rmw: run.rmw,
            dependencies: run.dependencies,
            fault,
        });
    })?;
    Ok(traces)
}

/// The locations and values that a thread may write, and the most writes of a run, where each read has one
/// of these values or an unknown one.
pub(super) fn written(
    number: usize,
    thread: &Thread,
    values: &[BTreeSet<i64>],
) -> Result<(BTreeSet<(usize, i64)>, usize), Refusal> {
    let mut written = BTreeSet::new();
    let mut most = 0;
    // Without a condition, only values with a chain of writes behind them are built. That leaves out those of
    // `==` or `!` around a cycle, as docs/reference/checker-internals.md says.
    let unknown = has_condition(&thread.body);
    runs(number, thread, values, unknown, |run, _| {
        most = most.max(run.written.len());
        written.extend(run.written.iter().filter_map(|(l, v)| Some((*l, (*v)?))));
    })?;
    Ok((written, most))
}

/// Whether values decide which events a thread has.
fn has_condition(statements: &[Statement]) -> bool {
    statements.iter().any(|statement| match &statement.action {
        Action::If { .. } | Action::Lock(_) => true,
        Action::Assign(_, value) | Action::Evaluate(value) => is_conditional(value),
        Action::Store { address, value, .. } => is_conditional(address) || is_conditional(value),
        Action::Fence(_) | Action::SyncSrcu(_) => false,
    })
}

fn is_conditional(expression: &Expression) -> bool {
    match expression {
        Expression::Number(_) | Expression::Variable(_) => false,
        Expression::Load(value, _) | Expression::Unary(_, value) => is_conditional(value),
        Expression::Binary(_, a, b) => is_conditional(a) || is_conditional(b),
        Expression::Rmw { update, .. } => {
            matches!(update, Update::CompareExchange(..) | Update::AddUnless(..))
        }
        Expression::CompareExchange(_) | Expression::TryLock(_) | Expression::IsLocked(_) => true,
    }
}

/// Takes all runs of a thread, with the fault that each ends with.
fn runs<'a>(
    number: usize,
    thread: &Thread,
    values: &'a [BTreeSet<i64>],
    unknown: bool,
    mut take: impl FnMut(Run<'a>, Option<Refusal>),
) -> Result<(), Refusal> {
    let mut chosen: Vec<(usize, usize)> = Vec::new();
    let mut taken = 0;
    loop {
        let mut run = Run::new(number, thread, values, unknown, std::mem::take(&mut chosen));
        let end = run.statements(&thread.body, 0);
        chosen = std::mem::take(&mut run.choices);
        let fault = match end {
            Ok(()) => None,
            Err(Stop::Fault(fault)) => Some(fault),
            Err(Stop::Impossible) => {
                if !advance(&mut chosen) {
                    return Ok(());
                }
                continue;
            }
        };
        if run.events.len() > MOST_EVENTS {
            let line = run.events[MOST_EVENTS].line;
            return Err(Refusal::new(
                line,
                format!("more than {MOST_EVENTS} events of P{number}"),
            ));
        }
        take(run, fault);
        taken += 1;
        if taken > MOST_TRACES {
            let line = thread.body.first().map_or(1, |statement| statement.line);
            return Err(Refusal::new(
                line,
                format!("more than {MOST_TRACES} sequences of events of P{number}"),
            ));
        }
        if !advance(&mut chosen) {
            return Ok(());
        }
    }
}

/// The next choices in order, each a number and how many there are.
fn advance(choices: &mut Vec<(usize, usize)>) -> bool {
    while let Some((choice, of)) = choices.pop() {
        if choice + 1 < of {
            choices.push((choice + 1, of));
            return true;
        }
    }
    false
}

/// A run of a thread, in which choices say what reads see.
struct Run<'a> {
    thread: usize,
    values: &'a [BTreeSet<i64>],
    /// Whether a read may have an unknown value.
    unknown: bool,
    choices: Vec<(usize, usize)>,
    /// The number of choices that have been made.
    made: usize,
    variables: Vec<Tainted>,
    events: Vec<Event>,
    /// The locations and values of its writes.
    written: Vec<(usize, Option<i64>)>,
    rmw: Vec<(usize, usize)>,
    dependencies: Vec<Dependencies>,
    /// The reads that decide the conditions of the branches that it is in.
    ctrl: Events,
    line: usize,
}

impl<'a> Run<'a> {
    fn new(
        number: usize,
        thread: &Thread,
        values: &'a [BTreeSet<i64>],
        unknown: bool,
        choices: Vec<(usize, usize)>,
    ) -> Self {
        let variables = thread.variables.iter();
        Self {
            thread: number,
            values,
            unknown,
            choices,
            made: 0,
            variables: variables.map(|v| Tainted::constant(v.initial)).collect(),
            events: Vec::new(),
            written: Vec::new(),
            rmw: Vec::new(),
            dependencies: Vec::new(),
            ctrl: 0,
            line: 0,
        }
    }

    fn statements(&mut self, statements: &[Statement], ctrl: Events) -> Result<(), Stop> {
        for statement in statements {
            self.ctrl = ctrl;
            self.line = statement.line;
            self.action(&statement.action)?;
        }
        Ok(())
    }

    fn action(&mut self, action: &Action) -> Result<(), Stop> {
        match action {
            Action::Assign(variable, value) => self.variables[*variable] = self.value(value)?,
            Action::Evaluate(value) => _ = self.value(value)?,
            Action::Store {
                address,
                value,
                mark,
            } => {
                let address = self.value(address)?;
                let value = self.value(value)?;
                let location = self.location(address)?;
                self.write(*mark, location, address.from, value, false);
            }
            Action::Fence(fence) => _ = self.event(Kind::Fence(*fence), None, 0, false),
            Action::SyncSrcu(address) => {
                let address = self.value(address)?;
                let location = self.location(address)?;
                self.event(Kind::Fence(Fence::SyncSrcu), Some(location), 0, false);
            }
            Action::Lock(address) => {
                let address = self.value(address)?;
                if !self.try_lock(address, true)?.1 {
                    return Err(Stop::Impossible);
                }
            }
            Action::If {
                condition,
                then,
                otherwise,
            } => {
                let condition = self.value(condition)?;
                let ctrl = self.ctrl | condition.from;
                let branch = match self.is(condition.value.map(|value| value != 0)) {
                    true => then,
                    false => otherwise,
                };
                self.statements(branch, ctrl)?;
            }
        }
        Ok(())
    }

    fn fault<T>(&self, what: impl Into<String>) -> Result<T, Stop> {
        Err(Stop::Fault(Refusal::new(self.line, what)))
    }

    fn location(&mut self, address: Tainted) -> Result<usize, Stop> {
        let Some(address) = address.value else {
            return Ok(self.pick(self.values.len()));
        };
        match location_of(address) {
            Some(location) if location < self.values.len() => Ok(location),
            _ => self.fault(format!(
                "P{} accesses the address {address}, where no variable is",
                self.thread
            )),
        }
    }

    /// Chooses one of so many.
    fn pick(&mut self, of: usize) -> usize {
        if self.made == self.choices.len() {
            self.choices.push((0, of));
        }
        let choice = self.choices[self.made].0;
        self.made += 1;
        choice
    }

    /// Whether something is so, or may be.
    fn is(&mut self, known: Option<bool>) -> bool {
        known.unwrap_or_else(|| self.pick(2) == 1)
    }

    fn event(&mut self, kind: Kind, location: Option<usize>, value: i64, of_rmw: bool) -> usize {
        self.events.push(Event {
            thread: Some(self.thread),
            kind,
            location,
            value,
            of_rmw,
            line: self.line,
        });
        self.dependencies.push(Dependencies {
            ctrl: self.ctrl,
            ..Dependencies::default()
        });
        self.events.len() - 1
    }

    fn bit(event: usize) -> Events {
        1 << (event % MOST_EVENTS)
    }

    /// A read of a value that some write has.
    fn read(&mut self, mark: Mark, location: usize, addr: Events, of_rmw: bool) -> Tainted {
        let value = self.choose(location);
        let event = self.event(
            Kind::Read(mark),
            Some(location),
            value.unwrap_or_default(),
            of_rmw,
        );
        self.dependencies[event].addr = addr;
        Tainted {
            value,
            from: Self::bit(event),
        }
    }

    /// The value that a read has.
    fn choose(&mut self, location: usize) -> Option<i64> {
        let values = &self.values[location];
        let choice = self.pick(values.len() + usize::from(self.unknown));
        values.iter().nth(choice).copied()
    }

    fn write(
        &mut self,
        mark: Mark,
        location: usize,
        addr: Events,
        value: Tainted,
        of_rmw: bool,
    ) -> usize {
        self.written.push((location, value.value));
        let event = self.event(
            Kind::Write(mark),
            Some(location),
            value.value.unwrap_or_default(),
            of_rmw,
        );
        self.dependencies[event].addr = addr;
        self.dependencies[event].data = value.from;
        event
    }

    /// Acquires a lock that is free, else does what a failed attempt does.
    fn try_lock(&mut self, address: Tainted, must: bool) -> Result<(Tainted, bool), Stop> {
        let location = self.location(address)?;
        let value = self.choose(location);
        let is_free = self.is(value.map(|value| value == 0));
        if must && !is_free {
            return Ok((Tainted::constant(0), false));
        }
        let mark = if is_free {
            Mark::LockRead
        } else {
            Mark::LockQuery
        };
        let value = value.unwrap_or_default();
        let read = self.event(Kind::Read(mark), Some(location), value, false);
        self.dependencies[read].addr = address.from;
        if is_free {
            let held = Tainted::constant(1);
            let write = self.write(Mark::LockWrite, location, address.from, held, false);
            self.rmw.push((read, write));
        }
        let result = Tainted {
            value: Some(i64::from(is_free)),
            from: Self::bit(read),
        };
        Ok((result, is_free))
    }

    fn value(&mut self, expression: &Expression) -> Result<Tainted, Stop> {
        Ok(match expression {
            Expression::Number(number) => Tainted::constant(*number),
            Expression::Variable(variable) => self.variables[*variable],
            Expression::Load(address, mark) => {
                let address = self.value(address)?;
                let location = self.location(address)?;
                self.read(*mark, location, address.from, false)
            }
            Expression::Unary(operator, value) => self.value(value)?.map(|value| match operator {
                Unary::Not => i64::from(value == 0),
                Unary::Negate => value.wrapping_neg(),
                Unary::Complement => !value,
            }),
            Expression::Binary(operator, a, b) => {
                let (a, b) = (self.value(a)?, self.value(b)?);
                self.binary(*operator, a, b)?
            }
            Expression::Rmw {
                address,
                update,
                marks,
            } => self.rmw(address, update, *marks)?,
            Expression::CompareExchange(operation) => self.compare_exchange(operation)?,
            Expression::TryLock(address) => {
                let address = self.value(address)?;
                self.try_lock(address, false)?.0
            }
            Expression::IsLocked(address) => {
                let address = self.value(address)?;
                let location = self.location(address)?;
                let read = self.read(Mark::LockQuery, location, address.from, false);
                read.map(|value| i64::from(value != 0))
            }
        })
    }

    fn binary(&self, operator: Binary, a: Tainted, b: Tainted) -> Result<Tainted, Stop> {
        let value = match (a.value, b.value) {
            (Some(a), Some(b)) => match operator.of(a, b) {
                None => return self.fault(format!("P{} divides by zero", self.thread)),
                known => known,
            },
            _ => None,
        };
        Ok(Tainted {
            value,
            from: a.from | b.from,
        })
    }

    /// C11 reads the expected value first, and writes it if another is found. Both are plain accesses.
    fn compare_exchange(&mut self, operation: &CompareExchange) -> Result<Tainted, Stop> {
        let address = self.value(&operation.address)?;
        let expected_at = self.value(&operation.expected)?;
        let new = self.value(&operation.new)?;
        let (location, expected_location) = (self.location(address)?, self.location(expected_at)?);
        let expected = self.read(Mark::Plain, expected_location, expected_at.from, false);
        let (of_read, of_write) = operation.marks;
        let old = self.read(of_read, location, address.from, true);
        let read = self.events.len() - 1;
        let same = old
            .value
            .zip(expected.value)
            .map(|(old, expected)| old == expected);
        let succeeds = self.is(same) && !(operation.is_weak && self.pick(2) == 1);
        if succeeds {
            let write = self.write(of_write, location, address.from, new, true);
            self.rmw.push((read, write));
        } else {
            // A load, which may have an order of its own.
            self.events[read].kind = Kind::Read(operation.failure);
            self.events[read].of_rmw = false;
            self.write(Mark::Plain, expected_location, expected_at.from, old, false);
        }
        Ok(Tainted {
            value: Some(i64::from(succeeds)),
            from: old.from | expected.from,
        })
    }

    fn rmw(
        &mut self,
        address: &Expression,
        update: &Update,
        (of_read, of_write): (Mark, Mark),
    ) -> Result<Tainted, Stop> {
        let address = self.value(address)?;
        let location = self.location(address)?;
        let mut operand = |value: &Expression| self.value(value);
        let (first, second) = match update {
            Update::Exchange(new) => (operand(new)?, Tainted::constant(0)),
            Update::CompareExchange(a, b) | Update::AddUnless(a, b) => (operand(a)?, operand(b)?),
            Update::Fetch(_, value) | Update::Apply(_, value) => {
                (operand(value)?, Tainted::constant(0))
            }
        };
        let old = self.read(of_read, location, address.from, true);
        let read = self.events.len() - 1;
        let same = |a: Tainted, b: Tainted| Some(a.value? == b.value?);
        // The value to be written, if any, and the result.
        let (new, result) = match update {
            Update::Exchange(_) => (Some(first), old),
            Update::CompareExchange(..) => (self.is(same(old, first)).then_some(second), old),
            Update::Fetch(operator, _) | Update::Apply(operator, _) => {
                let new = self.binary(*operator, old, first)?;
                let is_fetch = matches!(update, Update::Fetch(..));
                // The value written depends on the operand; the result, by herd7, on the read.
                let result = match is_fetch {
                    true => old,
                    false => Tainted {
                        value: new.value,
                        ..old
                    },
                };
                (Some(new), result)
            }
            Update::AddUnless(..) => {
                let adds = !self.is(same(old, second));
                let new = self.binary(Binary::Add, old, first)?;
                let result = Tainted {
                    value: Some(i64::from(adds)),
                    from: old.from | second.from,
                };
                if !adds {
                    // Linux reads the value, and makes an atomic operation only if it will add.
                    self.events[read].kind = Kind::Read(Mark::Unless);
                }
                (adds.then_some(new), result)
            }
        };
        if let Some(new) = new {
            let write = self.write(of_write, location, address.from, new, true);
            self.rmw.push((read, write));
        }
        Ok(result)
    }
}
