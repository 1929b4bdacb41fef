//! Wait times by call stack, for flame graphs.

use std::collections::BTreeMap;

use itertools::Itertools;

use crate::callers::Callers;
use crate::places::{Frame, Places};
use crate::record::Record;

/// The waits at a call with the same callers.
pub struct Stack {
    /// The functions, from inside to outside.
    pub frames: Vec<Frame>,
    /// The number of contended acquisitions, and of waits that had not ended.
    pub contended: u64,
    /// The time that threads waited, in nanoseconds.
    pub waited_ns: u64,
}

/// The stacks of all processes at which threads waited.
pub fn of(records: &[Record]) -> Vec<Stack> {
    let mut places = Places::default();
    let mut sums: BTreeMap<Vec<Frame>, (u64, u64)> = BTreeMap::new();
    for record in records {
        let callers = Callers::of(record, &mut places);
        for site in &record.sites {
            for way in callers.ways(record, site, &mut places) {
                let part = site.counts.part(way.share, way.share_of_waits);
                let waits = part.contended + part.still_waiting;
                if part.waited_ns == 0 && waits == 0 {
                    continue;
                }
                let outer = way.place.all_callers().cloned();
                let frames = way.wrappers.into_iter().chain([way.place.frame()]);
                let sum = sums.entry(frames.chain(outer).collect()).or_default();
                *sum = (sum.0 + waits, sum.1 + part.waited_ns);
            }
        }
    }
    let stacks = sums.into_iter();
    let stack = |(frames, (contended, waited_ns))| Stack {
        frames,
        contended,
        waited_ns,
    };
    stacks.map(stack).collect()
}

/// A line for each stack: its functions from outside to inside, and the microseconds that threads waited.
pub fn collapsed(stacks: &[Stack]) -> String {
    let line = |stack: &Stack| {
        let frames = stack.frames.iter().rev();
        let names = frames.map(|frame| {
            let name = frame.function.as_deref().unwrap_or("?");
            name.replace([';', '\n'], ":")
        });
        format!("{} {}\n", names.format(";"), stack.waited_ns / 1000)
    };
    stacks.iter().map(line).collect()
}
