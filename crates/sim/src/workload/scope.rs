//! The names that amounts of a workload file may use, and their values.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::RangeInclusive;

use lockworks_machine::description::Fault;
use lockworks_machine::{Machine, Value};
use lockworks_names::{self as names, nearest};
use toml::Spanned;

use super::amount::Amount;

/// Facts that are known only in a run.
#[derive(Clone, Copy, Debug)]
pub(super) struct Circumstances<'a> {
    pub(super) threads: usize,
    pub(super) machine: &'a Machine,
    /// The CPU on which each thread starts.
    pub(super) machine_cpus: &'a [usize],
}

/// The names of facts that are known only in a run.
const OF_RUN: [&str; 4] = ["threads", "thread", "clock_ghz", "return_ns"];

/// The greatest span of a distribution, in whole nanoseconds.
pub(super) const MAX_NS: f64 = u32::MAX as f64;

/// The values of names, in a run or before one.
#[derive(Clone, Copy)]
pub(super) struct Scope<'a> {
    pub(super) constants: &'a BTreeMap<String, Value>,
    pub(super) values: &'a BTreeMap<String, Spanned<Amount>>,
    /// The facts of the run. `None` while a file is checked before a run.
    pub(super) run: Option<Circumstances<'a>>,
    pub(super) thread: usize,
}

impl Scope<'_> {
    /// Checks the expressions of named values. They may use constants and the facts of a run.
    pub(super) fn check_values(&self) -> Result<(), Fault> {
        for (name, value) in self.values {
            if self.constants.contains_key(name) || OF_RUN.contains(&name.as_str()) {
                let message = format!("`{name}` has a value already; choose another name");
                return Err(Fault::at(value, message));
            }
            let known = self.constants.keys().map(String::as_str).chain(OF_RUN);
            check_names(value, value.get_ref(), known)?;
        }
        Ok(())
    }

    /// Computes an amount, which must be in `range`. If the amount depends on a run and there is
    /// none yet, returns the least number of the range. `what` is the amount's name in messages.
    pub(super) fn amount<T>(
        &self,
        what: &str,
        at: &Spanned<T>,
        amount: &Amount,
        range: RangeInclusive<f64>,
    ) -> Result<f64, Fault> {
        let known = self.constants.keys().chain(self.values.keys());
        check_names(at, amount, known.map(String::as_str).chain(OF_RUN))?;
        if self.run.is_none() && self.depends_on_run(amount) {
            return Ok(*range.start());
        }
        let value = amount.value(&|name| self.look_up(name));
        if range.contains(&value) {
            return Ok(value);
        }
        let (low, high) = (range.start(), range.end());
        let message = format!("{what} cannot be {value}; it must be from {low} to {high}");
        Err(Fault::at(at, message))
    }

    /// Computes an amount as [`Self::amount`] does, and drops the fraction of an expression.
    pub(super) fn whole(
        &self,
        what: &str,
        amount: &Spanned<Amount>,
        range: RangeInclusive<f64>,
    ) -> Result<usize, Fault> {
        let value = self.amount(what, amount, amount.get_ref(), range)?;
        check_whole(what, amount)?;
        Ok(value as usize)
    }

    fn depends_on_run(&self, amount: &Amount) -> bool {
        let names: BTreeSet<&str> = amount.names();
        names.iter().any(|name| match self.values.get(*name) {
            Some(value) => self.depends_on_run(value.get_ref()),
            None => OF_RUN.contains(name),
        })
    }

    fn look_up(&self, name: &str) -> f64 {
        if let Some(constant) = self.constants.get(name) {
            return constant.value;
        }
        if let Some(value) = self.values.get(name) {
            return value.get_ref().value(&|name| self.look_up(name));
        }
        let run = self.run.expect("amounts that depend on a run wait for it");
        match name {
            "threads" => run.threads as f64,
            "thread" => self.thread as f64,
            "clock_ghz" => run.machine.clock_ghz(run.machine_cpus[self.thread]),
            "return_ns" => run.machine.return_ns(run.machine_cpus[self.thread]),
            _ => unreachable!("names have been checked"),
        }
    }
}

/// Checks that an amount is a whole number if it is written as a number.
pub(super) fn check_whole(what: &str, amount: &Spanned<Amount>) -> Result<(), Fault> {
    match amount.get_ref() {
        Amount::Number(number) if number.fract() != 0.0 => {
            let message = format!("{what} cannot be {number}; give a whole number");
            Err(Fault::at(amount, message))
        }
        _ => Ok(()),
    }
}

fn check_names<'a, T>(
    at: &Spanned<T>,
    amount: &Amount,
    known: impl Iterator<Item = &'a str> + Clone,
) -> Result<(), Fault> {
    for name in amount.names() {
        if !known.clone().any(|known| known == name) {
            return Err(unknown("name", name, at, known));
        }
    }
    Ok(())
}

/// Makes the fault that there is nothing of this name. Its message has the name nearest to it, or
/// all known names.
pub(super) fn unknown<'a, T>(
    what: &str,
    name: &str,
    at: &Spanned<T>,
    known: impl Iterator<Item = &'a str>,
) -> Fault {
    let known: Vec<&str> = known.collect();
    let meant = nearest(name, known.iter().copied());
    let message = names::unknown(what, name, '`', meant, || {
        format!("there are {}", known.join(", "))
    });
    Fault::at(at, message)
}
