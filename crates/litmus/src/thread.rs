//! The traces of a thread: its sequences of events, for values that its reads may have.

use std::collections::BTreeSet;

use super::error::Refusal;
use super::execution::{Event, Fence, Kind, Mark};
use super::syntax::{Action, Expression, Statement, Thread, Unary, Update, location_of};

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

/// A value, and the reads that it was computed from.
#[derive(Clone, Copy)]
struct Tainted {
    value: i64,
    from: Events,
}

impl Tainted {
    fn constant(value: i64) -> Self {
        Self { value, from: 0 }
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
    let mut chosen: Vec<(usize, usize)> = Vec::new();
    loop {
        let mut run = Run::new(number, thread, values, std::mem::take(&mut chosen));
        let end = run.statements(&thread.body, 0);
        chosen = run.choices;
        let fault = match end {
            Ok(()) => None,
            Err(Stop::Fault(fault)) => Some(fault),
            Err(Stop::Impossible) => {
                if !advance(&mut chosen) {
                    return Ok(traces);
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
        traces.push(Trace {
            events: run.events,
            rmw: run.rmw,
            dependencies: run.dependencies,
            variables: run.variables.iter().map(|v| v.value).collect(),
            fault,
        });
        if traces.len() > MOST_TRACES {
            let line = thread.body.first().map_or(1, |statement| statement.line);
            return Err(Refusal::new(
                line,
                format!("more than {MOST_TRACES} sequences of events of P{number}"),
            ));
        }
        if !advance(&mut chosen) {
            return Ok(traces);
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
    choices: Vec<(usize, usize)>,
    /// The number of choices that have been made.
    made: usize,
    variables: Vec<Tainted>,
    events: Vec<Event>,
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
        choices: Vec<(usize, usize)>,
    ) -> Self {
        let variables = thread.variables.iter();
        Self {
            thread: number,
            values,
            choices,
            made: 0,
            variables: variables.map(|v| Tainted::constant(v.initial)).collect(),
            events: Vec::new(),
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
                let branch = if condition.value != 0 {
                    then
                } else {
                    otherwise
                };
                self.statements(branch, ctrl)?;
            }
        }
        Ok(())
    }

    fn fault<T>(&self, what: impl Into<String>) -> Result<T, Stop> {
        Err(Stop::Fault(Refusal::new(self.line, what)))
    }

    fn location(&self, address: Tainted) -> Result<usize, Stop> {
        match location_of(address.value) {
            Some(location) if location < self.values.len() => Ok(location),
            _ => self.fault(format!(
                "P{} accesses the address {}, where no variable is",
                self.thread, address.value
            )),
        }
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
        let event = self.event(Kind::Read(mark), Some(location), value, of_rmw);
        self.dependencies[event].addr = addr;
        Tainted {
            value,
            from: Self::bit(event),
        }
    }

    fn choose(&mut self, location: usize) -> i64 {
        let values = &self.values[location];
        if self.made == self.choices.len() {
            self.choices.push((0, values.len()));
        }
        let choice = self.choices[self.made].0;
        self.made += 1;
        *values
            .iter()
            .nth(choice)
            .expect("each location has its initial value")
    }

    fn write(
        &mut self,
        mark: Mark,
        location: usize,
        addr: Events,
        value: Tainted,
        of_rmw: bool,
    ) -> usize {
        let event = self.event(Kind::Write(mark), Some(location), value.value, of_rmw);
        self.dependencies[event].addr = addr;
        self.dependencies[event].data = value.from;
        event
    }

    /// Acquires a lock that is free, else does what a failed attempt does.
    fn try_lock(&mut self, address: Tainted, must: bool) -> Result<(Tainted, bool), Stop> {
        let location = self.location(address)?;
        let value = self.choose(location);
        let is_free = value == 0;
        if must && !is_free {
            return Ok((Tainted::constant(0), false));
        }
        let mark = if is_free {
            Mark::LockRead
        } else {
            Mark::LockQuery
        };
        let read = self.event(Kind::Read(mark), Some(location), value, false);
        self.dependencies[read].addr = address.from;
        if is_free {
            let held = Tainted::constant(1);
            let write = self.write(Mark::LockWrite, location, address.from, held, false);
            self.rmw.push((read, write));
        }
        let result = Tainted {
            value: i64::from(is_free),
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
            Expression::Unary(operator, value) => {
                let value = self.value(value)?;
                let result = match operator {
                    Unary::Not => i64::from(value.value == 0),
                    Unary::Negate => value.value.wrapping_neg(),
                    Unary::Complement => !value.value,
                };
                Tainted {
                    value: result,
                    ..value
                }
            }
            Expression::Binary(operator, a, b) => {
                let (a, b) = (self.value(a)?, self.value(b)?);
                match operator.of(a.value, b.value) {
                    Some(value) => Tainted {
                        value,
                        from: a.from | b.from,
                    },
                    None => return self.fault(format!("P{} divides by zero", self.thread)),
                }
            }
            Expression::Rmw {
                address,
                update,
                mark,
            } => self.rmw(address, update, *mark)?,
            Expression::TryLock(address) => {
                let address = self.value(address)?;
                self.try_lock(address, false)?.0
            }
            Expression::IsLocked(address) => {
                let address = self.value(address)?;
                let location = self.location(address)?;
                let read = self.read(Mark::LockQuery, location, address.from, false);
                Tainted {
                    value: i64::from(read.value != 0),
                    ..read
                }
            }
        })
    }

    fn rmw(&mut self, address: &Expression, update: &Update, mark: Mark) -> Result<Tainted, Stop> {
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
        let old = self.read(mark, location, address.from, true);
        let both = old.from | first.from;
        // The value to be written, if any, and the result.
        let (new, result) = match update {
            Update::Exchange(_) => (Some(first), old),
            Update::CompareExchange(..) => ((old.value == first.value).then_some(second), old),
            Update::Fetch(operator, _) | Update::Apply(operator, _) => {
                let Some(value) = operator.of(old.value, first.value) else {
                    return self.fault(format!("P{} divides by zero", self.thread));
                };
                let new = Tainted { value, from: both };
                let is_fetch = matches!(update, Update::Fetch(..));
                // The value written depends on the operand; the result, by herd7, on the read.
                let result = if is_fetch {
                    old
                } else {
                    Tainted { value, ..old }
                };
                (Some(new), result)
            }
            Update::AddUnless(..) => {
                let adds = old.value != second.value;
                let new = Tainted {
                    value: old.value.wrapping_add(first.value),
                    from: both,
                };
                let result = Tainted {
                    value: i64::from(adds),
                    from: old.from | second.from,
                };
                (adds.then_some(new), result)
            }
        };
        if let Some(new) = new {
            let read = self.events.len() - 1;
            let write = self.write(mark, location, address.from, new, true);
            self.rmw.push((read, write));
        }
        Ok(result)
    }
}
