//! What is to be different in a replay: the locks, how long they are held, how many they are, how many threads
//! there are of a class.

use anyhow::{Context, Result, bail, ensure};
use itertools::Itertools;
use lockworks::LockType;
use lockworks_names::command_line::unknown;
use lockworks_sim::command_line::find_lock;
use lockworks_sim::sequences::{Act, Sequences};

use super::threads::{OfRecorded, is_place};

/// A change of the locks of a place or of a variable.
pub struct Change {
    /// The name of the variable, or the function that locked it first.
    of: String,
    what: What,
}

enum What {
    /// They are locks of this type.
    Kind(&'static LockType),
    /// They are held for this many times as long.
    Hold(f64),
    /// Each of them is this many.
    Split(u32),
}

/// The most locks that one becomes.
const MOST_SPLIT: u32 = 1024;

/// The locks to compare, and those that certain places have.
pub fn locks(asked: &[String]) -> Result<(Vec<&'static LockType>, Vec<Change>)> {
    let (mut locks, mut changes) = (Vec::new(), Vec::new());
    for text in asked {
        match text.rsplit_once('=') {
            Some((of, kind)) => changes.push(Change {
                of: of.to_owned(),
                what: What::Kind(find_lock(kind)?),
            }),
            None => locks.push(find_lock(text)?),
        }
    }
    if locks.is_empty() {
        locks.push(find_lock("glibc")?);
    }
    Ok((locks, changes))
}

/// Sets the number of threads of a class, `NAME=N`.
pub fn class(sequences: &mut Sequences, text: &str) -> Result<()> {
    let (name, number) = text.rsplit_once('=').context("give --class NAME=N")?;
    let number: usize = number.parse().ok().filter(|n| *n > 0).with_context(|| {
        format!("'{number}' is no number of threads; give --class {name}=N with N from 1 on")
    })?;
    let names: Vec<String> = sequences.classes.iter().map(|c| c.name.clone()).collect();
    let class = sequences
        .classes
        .iter_mut()
        .find(|class| class.name == name);
    let class = class.with_context(|| {
        format!(
            "no class of threads is called '{name}'; there {} {}",
            if names.len() == 1 { "is" } else { "are" },
            names.join(", ")
        )
    })?;
    class.count = Some(number);
    Ok(())
}

impl Change {
    /// `PLACE=-50%`.
    pub fn hold(text: &str) -> Result<Self> {
        let (of, change) = text.rsplit_once('=').context("give --hold PLACE=-50%")?;
        let number = change.trim_end_matches('%').parse::<f64>().ok();
        let number = number.filter(|percent| (-100.0..=1e6).contains(percent));
        let number = number.with_context(|| {
            format!("'{change}' is no change of a time; give for example --hold {of}=-50%")
        })?;
        Ok(Self {
            of: of.to_owned(),
            what: What::Hold(1.0 + number / 100.0),
        })
    }

    /// `LOCK=4`.
    pub fn split(text: &str) -> Result<Self> {
        let (of, number) = text.rsplit_once('=').context("give --split LOCK=4")?;
        let number = number.parse().ok().filter(|n| (1..=MOST_SPLIT).contains(n));
        let number = number.with_context(|| {
            format!("a lock can be split into 1 to {MOST_SPLIT}; give for example --split {of}=4")
        })?;
        Ok(Self {
            of: of.to_owned(),
            what: What::Split(number),
        })
    }

    /// Applies the change to threads, whose locks did this.
    pub fn apply(&self, threads: &mut Sequences, locks: &[OfRecorded]) -> Result<()> {
        let found: Vec<u32> = locks
            .iter()
            .positions(|lock| lock.lock == self.of || is_place(&lock.place, &self.of))
            .map(|at| at as u32)
            .collect();
        if found.is_empty() {
            let names = locks
                .iter()
                .flat_map(|lock| [lock.lock.as_str(), &lock.place]);
            bail!(unknown("lock or place", &self.of, names.unique()));
        }
        match self.what {
            What::Kind(kind) => {
                for lock in found {
                    threads.locks[lock as usize].kind = Some(kind);
                }
            }
            What::Hold(factor) => hold(threads, &found, factor),
            What::Split(number) => {
                let all = threads.locks.len() + found.len() * number as usize;
                ensure!(all < 1 << 16, "{all} locks are too many to simulate");
                found.iter().for_each(|lock| split(threads, *lock, number));
            }
        }
        Ok(())
    }
}

/// Lets threads compute for this many times as long while they hold one of the locks.
fn hold(threads: &mut Sequences, locks: &[u32], factor: f64) {
    for lane in &mut threads.lanes {
        let mut depth = 0usize;
        for act in &mut lane.acts {
            match act {
                Act::Acquire(lock) | Act::Read(lock) | Act::Try { lock, .. }
                    if locks.contains(lock) =>
                {
                    depth += 1;
                }
                Act::Release(lock) | Act::ReleaseRead(lock) if locks.contains(lock) => {
                    depth = depth.saturating_sub(1);
                }
                Act::Compute(ns) if depth > 0 => *ns *= factor as f32,
                _ => {}
            }
        }
    }
}

/// Makes several locks of one. Which of them an acquisition takes is chosen at random, each time anew.
fn split(threads: &mut Sequences, lock: u32, number: u32) {
    let first = threads.locks.len() as u32;
    let one = threads.locks[lock as usize].clone();
    threads
        .locks
        .extend(std::iter::repeat_n(one, number as usize - 1));
    let mut random = 0x9e37_79b9_7f4a_7c15_u64;
    let mut choose = || {
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        match (random >> 33) as u32 % number {
            0 => lock,
            n => first + n - 1,
        }
    };
    for lane in &mut threads.lanes {
        // The lock that stands for it, of each acquisition that is not released yet.
        let mut held = Vec::new();
        for act in &mut lane.acts {
            match act {
                Act::Acquire(of) | Act::Read(of) | Act::Try { lock: of, .. } if *of == lock => {
                    *of = choose();
                    held.push(*of);
                }
                Act::Release(of) | Act::ReleaseRead(of) if *of == lock => {
                    *of = held.pop().unwrap_or(lock);
                }
                // It waits for a condition with the one that it has.
                Act::Take { lock: of, .. } if *of == lock => {
                    *of = held.last().copied().unwrap_or(lock);
                }
                _ => {}
            }
        }
    }
}
