//! The steps of a workload file after checking, with the amounts computed for one thread.

use toml::Spanned;

use lockworks_machine::description::Fault;

use super::description::{Action, Branch, Distribution, Duration, MemoryKind, Step, Which, Word};
use super::draw::{Draw, Weighted};
use super::memory::Layout;
use super::scope::{MAX_NS, Scope, unknown};

/// The greatest number of repetitions of steps.
const MAX_REPEATS: f64 = 1e6;

/// A step that a thread can take.
#[derive(Debug)]
pub(super) enum Act {
    Operation,
    Ticks,
    Compute(Draw),
    Sleep(Draw),
    Lock(Target, Vec<Act>),
    ReadLock(Target, Vec<Act>),
    Load(Access),
    Read(Access),
    Write(Access, u64),
    Increment(Access),
    AtomicAdd(Access, i32),
    Get(Target),
    Put(Target),
    Repeat(usize, Vec<Act>),
    OneIn(u32, Vec<Act>),
    Each(usize, Vec<Act>),
    Branch(Weighted, Vec<Vec<Act>>),
    SystemCall(Vec<Act>),
}

/// A piece of one of the kinds of memory that the file describes.
#[derive(Debug)]
pub(super) struct Target {
    /// The index of the description, in the order of the file.
    pub(super) memory: usize,
    pub(super) pick: Pick,
}

/// The choice among the pieces of a description.
#[derive(Debug)]
pub(super) enum Pick {
    /// The piece that an enclosing step uses, or the only piece.
    Current,
    Random,
    Own,
    Weighted(Weighted),
}

/// Some bytes of shared data.
#[derive(Debug)]
pub(super) struct Access {
    pub(super) target: Target,
    pub(super) at: usize,
    pub(super) bytes: u32,
}

/// The steps that enclose a step.
#[derive(Clone, Default)]
struct Around {
    in_loop: bool,
    /// The descriptions of memory of which an enclosing step uses a piece.
    used: Vec<usize>,
    /// Those of them of which an enclosing step holds the lock.
    locked: Vec<usize>,
}

impl Around {
    fn using(&self, memory: usize) -> Self {
        let mut inside = self.clone();
        inside.used.push(memory);
        inside
    }

    fn locking(&self, memory: usize) -> Self {
        let mut inside = self.using(memory);
        inside.locked.push(memory);
        inside
    }
}

/// Checks steps and computes their amounts.
pub(super) struct Compiler<'a> {
    pub(super) scope: Scope<'a>,
    pub(super) layouts: &'a [Layout<'a>],
}

impl Compiler<'_> {
    /// Compiles the steps that a thread takes once, at its beginning.
    pub(super) fn start(&self, steps: &[Spanned<Step>]) -> Result<Vec<Act>, Fault> {
        self.steps(steps, &Around::default())
    }

    /// Compiles the steps that a thread repeats.
    pub(super) fn body(&self, steps: &Spanned<Vec<Spanned<Step>>>) -> Result<Vec<Act>, Fault> {
        let around = Around {
            in_loop: true,
            ..Around::default()
        };
        let acts = self.steps(steps.get_ref(), &around)?;
        // Before a run, weights and repetitions may not be known yet.
        if self.scope.run.is_some() || contains(&acts, completes) {
            return Ok(acts);
        }
        let message =
            "no step of the loop completes an operation; add \"operation\" where one is complete";
        Err(Fault::at(steps, message))
    }

    fn steps(&self, steps: &[Spanned<Step>], around: &Around) -> Result<Vec<Act>, Fault> {
        let acts = steps.iter().map(|step| self.step(step, around));
        // A step that does nothing is removed, so that a constant of 0 can disable a step.
        let acts = acts.filter(|act| !matches!(act, Ok(act) if is_nothing(act)));
        acts.collect()
    }

    fn step(&self, step: &Spanned<Step>, around: &Around) -> Result<Act, Fault> {
        match step.get_ref() {
            Step::Word(Word::Operation) => Ok(Act::Operation),
            Step::Word(Word::Ticks) if around.in_loop => Ok(Act::Ticks),
            Step::Word(Word::Ticks) => Err(Fault::at(step, "\"ticks\" is allowed in `loop` only")),
            Step::Action(action) => self.action(step, action, around),
        }
    }

    fn action(&self, step: &Spanned<Step>, action: &Action, around: &Around) -> Result<Act, Fault> {
        let (actions, others) = action.keys();
        let &[verb] = actions.as_slice() else {
            let message = if actions.is_empty() {
                "a step needs an action, for example compute, lock, load or write".to_owned()
            } else {
                let both = actions.join("` and `");
                format!("a step has one action, not `{both}`; make it several steps")
            };
            return Err(Fault::at(step, message));
        };
        let allowed: &[&str] = match verb {
            "lock" | "read_lock" => &["which", "steps"],
            "load" | "read" | "increment" => &["which", "at", "bytes"],
            "write" => &["which", "at", "bytes", "value"],
            "atomic_add" => &["which", "at", "value"],
            "get" | "put" => &["which"],
            "repeat" | "one_in" | "each" => &["steps"],
            _ => &[],
        };
        if let Some(other) = others.iter().find(|other| !allowed.contains(other)) {
            let message = match allowed {
                [] => format!("`{verb}` takes no `{other}`"),
                _ => format!("`{verb}` takes no `{other}`, only {}", allowed.join(", ")),
            };
            return Err(Fault::at(step, message));
        }
        let inner = |around: &Around| match &action.steps {
            Some(steps) => self.steps(steps, around),
            None if matches!(verb, "lock" | "read_lock") => Ok(Vec::new()),
            None => Err(Fault::at(step, format!("`{verb}` needs `steps`"))),
        };

        if let Some(duration) = &action.compute {
            return Ok(Act::Compute(self.duration(duration)?));
        }
        if let Some(duration) = &action.sleep {
            return Ok(Act::Sleep(self.duration(duration)?));
        }
        if let Some(name) = action.lock.as_ref().or(action.read_lock.as_ref()) {
            let kinds: &[_] = match action.lock {
                Some(_) => &[MemoryKind::Lock, MemoryKind::FutexMutex],
                None => &[MemoryKind::Lock],
            };
            let memory = self.memory(name, kinds)?;
            if around.locked.contains(&memory) {
                let message = format!(
                    "`{}` is locked by an enclosing step; lock it once",
                    name.get_ref()
                );
                return Err(Fault::at(name, message));
            }
            let target = self.target(name, memory, action, around)?;
            let acts = inner(&around.locking(memory))?;
            return Ok(match action.lock {
                Some(_) => Act::Lock(target, acts),
                None => Act::ReadLock(target, acts),
            });
        }
        if let Some(name) = &action.load {
            return Ok(Act::Load(self.access(name, action, 8, around)?));
        }
        if let Some(name) = &action.read {
            return Ok(Act::Read(self.access(name, action, 8, around)?));
        }
        if let Some(name) = &action.write {
            let access = self.access(name, action, 8, around)?;
            let value = action.value.as_ref();
            let value = value.map(|value| self.scope.whole("a value", value, 0.0..=MAX_NS));
            return Ok(Act::Write(access, value.transpose()?.unwrap_or(0) as u64));
        }
        if let Some(name) = &action.increment {
            return Ok(Act::Increment(self.access(name, action, 8, around)?));
        }
        if let Some(name) = &action.atomic_add {
            let access = self.access(name, action, 4, around)?;
            let range = f64::from(i32::MIN)..=f64::from(i32::MAX);
            let value = action.value.as_ref();
            let value = value.map(|value| {
                super::scope::check_whole("a value", value)?;
                self.scope.amount("a value", value, value.get_ref(), range)
            });
            let value = value.transpose()?.unwrap_or(1.0) as i32;
            return Ok(Act::AtomicAdd(access, value));
        }
        if let Some(name) = &action.get {
            let memory = self.memory(name, &[MemoryKind::Lockref])?;
            return Ok(Act::Get(self.target(name, memory, action, around)?));
        }
        if let Some(name) = &action.put {
            let memory = self.memory(name, &[MemoryKind::Lockref])?;
            return Ok(Act::Put(self.target(name, memory, action, around)?));
        }
        if let Some(times) = &action.repeat {
            let times = self.scope.whole("repeat", times, 0.0..=MAX_REPEATS)?;
            return Ok(Act::Repeat(times, inner(around)?));
        }
        if let Some(odds) = &action.one_in {
            let odds = self.scope.whole("one_in", odds, 1.0..=MAX_NS)?;
            return Ok(Act::OneIn(odds as u32, inner(around)?));
        }
        if let Some(name) = &action.each {
            let memory = self.memory(name, &[MemoryKind::Data])?;
            return Ok(Act::Each(memory, inner(&around.using(memory))?));
        }
        if let Some(branches) = &action.branch {
            return self.branch(branches, around);
        }
        let steps = action.system_call.as_ref().expect("the verb that is left");
        Ok(Act::SystemCall(self.steps(steps, around)?))
    }

    fn branch(&self, branches: &Spanned<Vec<Branch>>, around: &Around) -> Result<Act, Fault> {
        let ways = branches.get_ref();
        let weights = ways.iter().map(|way| {
            let weight = way.weight.get_ref();
            self.scope
                .amount("a weight", &way.weight, weight, 0.0..=1e12)
        });
        let weighted = self.weighted(branches, weights.collect::<Result<_, _>>()?)?;
        let ways = ways.iter().map(|way| self.steps(&way.steps, around));
        Ok(Act::Branch(weighted, ways.collect::<Result<_, _>>()?))
    }

    fn weighted<T>(&self, at: &Spanned<T>, weights: Vec<f64>) -> Result<Weighted, Fault> {
        match Weighted::new(weights.iter().copied()) {
            Some(weighted) => Ok(weighted),
            // Before a run, the weights may not be known yet.
            None if self.scope.run.is_none() && !weights.is_empty() => {
                Ok(Weighted::new([1.0]).expect("a weight that is not 0"))
            }
            None if weights.is_empty() => Err(Fault::at(at, "the list is empty; add an entry")),
            None => Err(Fault::at(at, "all weights are 0; give one that is above 0")),
        }
    }

    fn duration(&self, duration: &Spanned<Duration>) -> Result<Draw, Fault> {
        let amount = |what: &str, amount: &super::amount::Amount| {
            self.scope.amount(what, duration, amount, 0.0..=1e12)
        };
        Ok(match duration.get_ref() {
            Duration::Constant(time) => Draw::Constant(amount("a time in ns", time)?),
            Duration::Distribution(Distribution::Around(mean)) => Draw::Around {
                mean: amount("a mean in ns", mean)?,
            },
            Duration::Distribution(Distribution::Exponential(mean)) => Draw::Exponential {
                mean: amount("a mean in ns", mean)?,
            },
            Duration::Distribution(Distribution::Uniform([low, high])) => {
                let low = amount("the low end in ns", low)?;
                let high = amount("the high end in ns", high)?;
                if low > high && self.scope.run.is_some() {
                    let message = format!("the low end {low} is above the high end {high}");
                    return Err(Fault::at(duration, message));
                }
                let span = high - low;
                if span > MAX_NS {
                    let message = format!("{span} ns between the ends; at most {MAX_NS}");
                    return Err(Fault::at(duration, message));
                }
                Draw::Uniform {
                    low,
                    span: span as u32,
                }
            }
        })
    }

    /// Finds a description of memory by its name. It must be of one of these kinds.
    fn memory(&self, name: &Spanned<String>, kinds: &[MemoryKind]) -> Result<usize, Fault> {
        let names = self.layouts.iter().map(|layout| layout.name);
        let memory = names.clone().position(|known| known == name.get_ref());
        let memory = memory.ok_or_else(|| unknown("memory", name.get_ref(), name, names))?;
        let kind = self.layouts[memory].kind;
        if kinds.contains(&kind) {
            return Ok(memory);
        }
        let message = format!(
            "`{}` is {kind}; this step needs {}",
            name.get_ref(),
            kinds
                .iter()
                .map(MemoryKind::to_string)
                .collect::<Vec<_>>()
                .join(" or ")
        );
        Err(Fault::at(name, message))
    }

    fn target(
        &self,
        name: &Spanned<String>,
        memory: usize,
        action: &Action,
        around: &Around,
    ) -> Result<Target, Fault> {
        let layout = &self.layouts[memory];
        let pick = match action.which.as_ref().map(|which| (which, which.get_ref())) {
            Some((_, Which::Random)) => Pick::Random,
            Some((_, Which::Own)) => Pick::Own,
            Some((which, Which::Zipf(exponent))) => {
                let exponent = self
                    .scope
                    .amount("the exponent", which, exponent, 0.0..=100.0)?;
                let weight = |i: usize| ((i + 1) as f64).powf(-exponent);
                Pick::Weighted(self.weighted(which, (0..layout.count).map(weight).collect())?)
            }
            Some((which, Which::Weights(weights))) => {
                if weights.len() != layout.count && self.scope.run.is_some() {
                    let (weights, count) = (weights.len(), layout.count);
                    let message = format!(
                        "`which` has {weights} weights, and there are {count} of `{}`; give \
                         {count} weights",
                        layout.name
                    );
                    return Err(Fault::at(which, message));
                }
                let weights = weights
                    .iter()
                    .map(|weight| self.scope.amount("a weight", which, weight, 0.0..=1e12));
                Pick::Weighted(self.weighted(which, weights.collect::<Result<_, _>>()?)?)
            }
            None if layout.is_one || around.used.contains(&memory) => Pick::Current,
            None => {
                let message = format!(
                    "there are several `{}`; say which, for example which = \"random\"",
                    layout.name
                );
                return Err(Fault::at(name, message));
            }
        };
        Ok(Target { memory, pick })
    }

    fn access(
        &self,
        name: &Spanned<String>,
        action: &Action,
        usual_bytes: u32,
        around: &Around,
    ) -> Result<Access, Fault> {
        let memory = self.memory(name, &[MemoryKind::Data, MemoryKind::Lock])?;
        let room = self.layouts[memory].data_bytes;
        let bytes = match &action.bytes {
            None => usual_bytes,
            Some(amount) => {
                let bytes = self.scope.whole("bytes", amount, 1.0..=8.0)?;
                if !bytes.is_power_of_two() {
                    let message = format!("bytes cannot be {bytes}; it must be 1, 2, 4 or 8");
                    return Err(Fault::at(amount, message));
                }
                bytes as u32
            }
        };
        let at = match &action.at {
            None => 0,
            Some(amount) => {
                let at = self.scope.whole("at", amount, 0.0..=MAX_NS)?;
                if !at.is_multiple_of(bytes as usize) {
                    let message = format!("at = {at} is not a multiple of the {bytes} bytes");
                    return Err(Fault::at(amount, message));
                }
                at
            }
        };
        let end = at + bytes as usize;
        if end > room && (self.scope.run.is_some() || room == 0) {
            let message = format!(
                "bytes {at} to {} of `{}`, which has {room} bytes of data; give it more `bytes`",
                end - 1,
                name.get_ref()
            );
            return Err(Fault::at(name, message));
        }
        Ok(Access {
            target: self.target(name, memory, action, around)?,
            at,
            bytes,
        })
    }
}

/// Whether the step itself completes an operation.
pub(super) fn completes(act: &Act) -> bool {
    matches!(act, Act::Operation)
}

/// Whether the step itself can take time, by computing, sleeping or an access to memory.
pub(super) fn takes_time(act: &Act) -> bool {
    match act {
        Act::Compute(draw) | Act::Sleep(draw) => draw.takes_time(),
        Act::Lock(..)
        | Act::ReadLock(..)
        | Act::Load(_)
        | Act::Read(_)
        | Act::Write(..)
        | Act::Increment(_)
        | Act::AtomicAdd(..)
        | Act::Get(_)
        | Act::Put(_) => true,
        _ => false,
    }
}

/// Whether one of these steps is such a step, or contains one, reached or not.
fn contains(acts: &[Act], is_such: fn(&Act) -> bool) -> bool {
    let inside = |act: &Act| match act {
        Act::Lock(_, acts)
        | Act::ReadLock(_, acts)
        | Act::Repeat(_, acts)
        | Act::OneIn(_, acts)
        | Act::Each(_, acts)
        | Act::SystemCall(acts) => contains(acts, is_such),
        Act::Branch(_, ways) => ways.iter().any(|way| contains(way, is_such)),
        _ => false,
    };
    acts.iter().any(|act| is_such(act) || inside(act))
}

/// Whether a thread that takes these steps can reach such a step.
pub(super) fn can(acts: &[Act], is_such: fn(&Act) -> bool) -> bool {
    let inside = |act: &Act| match act {
        Act::Repeat(0, _) => false,
        Act::Lock(_, acts)
        | Act::ReadLock(_, acts)
        | Act::Repeat(_, acts)
        | Act::OneIn(_, acts)
        | Act::Each(_, acts)
        | Act::SystemCall(acts) => can(acts, is_such),
        Act::Branch(weights, ways) => {
            let mut ways = ways.iter().enumerate();
            ways.any(|(at, way)| weights.can_choose(at) && can(way, is_such))
        }
        _ => false,
    };
    acts.iter().any(|act| is_such(act) || inside(act))
}

fn is_nothing(act: &Act) -> bool {
    match act {
        Act::Sleep(Draw::Constant(time)) => *time == 0.0,
        Act::OneIn(_, acts) => acts.is_empty(),
        _ => false,
    }
}
