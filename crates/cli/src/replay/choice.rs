//! A lock for each hot lock of a recorded program, chosen by replay.

use anyhow::Result;
use itertools::Itertools;
use lockworks_preload::plan::{Line, Plan};
use lockworks_sim::command_line::find_lock;
use lockworks_sim::sequences::Sequences;
use lockworks_ui::plot::figure::{Bar, Chart, Data, Draw, Figure};
use serde::Serialize;

use super::{Opened, under_glibc};

/// The locks that are tried in place of glibc's.
const CANDIDATES: [&str; 3] = ["mutex", "pv", "unfair"];

/// Locks for which threads wait for less of their time are left as they are.
const HOT: f64 = 0.001;

/// The most places that are tried, those with the longest waits first.
const MOST: usize = 8;

/// What a lock must earn with each seed: a smaller gain is not worth a line.
const GAIN: f64 = 1.02;

/// How much better than an earlier candidate a later one must be.
const BETTER: f64 = 1.01;

/// What was chosen for the locks of a place.
#[derive(Clone, Debug, Serialize)]
pub struct Choice {
    /// The line of the plan; the lock is `glibc` if they are left to it.
    #[serde(flatten)]
    pub line: Line,
    /// The number of locks that it is for.
    pub locks: usize,
    /// The share of the threads' time in which they waited for them.
    pub waited: f64,
    /// The program's rate with each lock that was tried, over that with glibc's, with the lines above: the
    /// least over the seeds.
    pub tried: Vec<(&'static str, f64)>,
    /// That of the lock that was chosen.
    pub earns: f64,
}

/// The choices, those for which threads waited longest first.
#[derive(Debug, Serialize)]
pub struct Choices {
    /// The choices.
    pub lines: Vec<Choice>,
    /// The share of the threads' time in which they waited for locks that a plan cannot name.
    pub nameless: f64,
}

impl Choices {
    /// The plan.
    pub fn plan(&self) -> Plan {
        let line = |choice: &Choice| Line {
            comment: format!(
                "{}: waits {:.1} %, earns {:+.0} %",
                choice.line.comment,
                100.0 * choice.waited,
                100.0 * (choice.earns - 1.0)
            ),
            ..choice.line.clone()
        };
        Plan {
            lines: self.lines.iter().map(line).collect(),
        }
    }
}

impl Draw for Choices {
    fn figures(&self, command: &str) -> Vec<Figure> {
        let tried = self.lines.iter().flat_map(|choice| {
            let comment = &choice.line.comment;
            choice
                .tried
                .iter()
                .map(move |&(lock, ratio)| (comment, lock, ratio))
        });
        let bars = tried.clone().map(|(comment, lock, ratio)| Bar {
            name: format!("{comment}: {lock}"),
            low: ratio,
            middle: ratio,
            high: ratio,
        });
        let lines = self.plan().lines.into_iter();
        let lines = lines
            .map(|line| format!("{} for {}", line.lock, line.comment))
            .join("; ");
        let text = match self.lines.is_empty() {
            true => {
                "Predicted by replay: threads wait for no mutex for 0.1 % of their time.".to_owned()
            }
            false => format!(
                "Predicted by replay: the program's rate with another lock for the mutexes of a place, over that \
                 with glibc's. Chosen: {lines}. The command compares the program with these locks and with \
                 glibc's, and writes the plan if it is better."
            ),
        };
        vec![Figure {
            id: "plan".to_owned(),
            title: "A lock for each hot mutex".to_owned(),
            text,
            command: command.to_owned(),
            chart: (!self.lines.is_empty()).then(|| Chart::Intervals {
                unit: "of glibc".to_owned(),
                bars: bars.collect(),
            }),
            data: Data::of(
                &tried.collect::<Vec<_>>(),
                &[
                    ("mutexes", &|(comment, ..)| comment.as_str().into()),
                    ("lock", &|(_, lock, _)| (*lock).into()),
                    ("of glibc", &|(.., ratio)| (*ratio).into()),
                ],
            ),
        }]
    }
}

impl Opened {
    /// Chooses a lock for each hot place. Each is tried with what was chosen above.
    pub fn choose(&self) -> Result<Choices> {
        let threads = &self.threads;
        let mut sequences = threads.sequences.clone();
        sequences.busy = 0.0;
        let life = sequences.ns / 1e9 * sequences.recorded() as f64;
        let mutexes = threads.locks.iter().enumerate();
        let mutexes =
            mutexes.filter(|(at, lock)| lock.waited_s > 0.0 && !sequences.locks[*at].has_readers);
        let line = |object: u32| self.recording.plan_line(object as usize, "glibc");
        let places = mutexes.into_group_map_by(|(_, lock)| {
            line(lock.object).map(|line| (line.module.build_id, line.address))
        });
        let waited = |locks: &[(usize, &super::threads::OfRecorded)]| {
            locks.iter().map(|(_, lock)| lock.waited_s).sum::<f64>() / life
        };
        let nameless = places.get(&None).map_or(0.0, |locks| waited(locks));
        let hot = places
            .into_iter()
            .filter(|(place, locks)| place.is_some() && waited(locks) > HOT)
            .map(|(_, locks)| locks)
            .sorted_by(|a, b| waited(b).total_cmp(&waited(a)))
            .take(MOST);
        let mut lines = Vec::new();
        let rates = |sequences: &Sequences| -> Result<Vec<f64>> {
            let row = under_glibc(threads, sequences, &self.machine, &self.recording)?;
            Ok(row.operations_per_second_by_seed)
        };
        let mut before = rates(&sequences)?;
        for locks in hot {
            let mut choice = Choice {
                line: line(locks[0].1.object).expect("the place is known"),
                locks: locks.len(),
                waited: waited(&locks),
                tried: Vec::new(),
                earns: 1.0,
            };
            let mut best = (None, before.clone());
            for name in CANDIDATES {
                let lock = find_lock(name)?;
                for (at, _) in &locks {
                    sequences.locks[*at].kind = Some(lock);
                }
                let after = rates(&sequences)?;
                let ratios = after
                    .iter()
                    .zip(&before)
                    .map(|(after, before)| after / before);
                let least = ratios.fold(f64::INFINITY, f64::min);
                choice.tried.push((lock.name(), least));
                if least > (choice.earns * BETTER).max(GAIN) {
                    choice.earns = least;
                    choice.line.lock = lock.name().to_owned();
                    best = (Some(lock), after);
                }
            }
            for (at, _) in &locks {
                sequences.locks[*at].kind = best.0;
            }
            before = best.1;
            lines.push(choice);
        }
        Ok(Choices { lines, nameless })
    }
}
