//! The most recent acquisitions of each process, as timelines.

use std::collections::{BTreeMap, HashMap};

use lockworks_measurements::{Activity, Timeline, TimelineEvent, TimelineThread};

use crate::places::Places;
use crate::record::{Acquisition, Record};

/// A timeline of each process that has locked anything, under its title. Their times begin together.
pub fn of(records: &[Record]) -> Vec<(String, Timeline)> {
    let mut places = Places::default();
    let times = records.iter().flat_map(|record| &record.acquisitions);
    let begin = times.filter_map(|one| one.begun.or(one.acquired)).min();
    let recorded = records
        .iter()
        .filter(|record| !record.acquisitions.is_empty());
    let timeline = |record: &Record| {
        let title = format!("process {}", record.pid);
        (
            title,
            timeline(record, begin.unwrap_or_default(), &mut places),
        )
    };
    recorded.map(timeline).collect()
}

fn timeline(record: &Record, begin: u64, places: &mut Places) -> Timeline {
    let mut timeline = Timeline::default();
    let mut known: HashMap<u64, u32> = HashMap::new();
    let mut numbers: BTreeMap<u64, u32> = BTreeMap::new();
    for one in &record.acquisitions {
        numbers.insert(one.thread, 0);
    }
    let nodes: HashMap<u64, u32> = record
        .acquisitions
        .iter()
        .filter_map(|one| Some((one.thread, one.node?)))
        .collect();
    for (number, (thread, at)) in numbers.iter_mut().enumerate() {
        *at = number as u32;
        timeline.threads.push(TimelineThread {
            name: format!("thread {thread}"),
            node: nodes.get(thread).copied(),
        });
    }
    for one in &record.acquisitions {
        let place = one.call.map(|call| {
            *known.entry(call).or_insert_with(|| {
                timeline.places.push(places.of(record, call).name());
                timeline.places.len() as u32 - 1
            })
        });
        let event = |(ns, what): (u64, Activity)| TimelineEvent {
            ns: ns.saturating_sub(begin),
            thread: numbers[&one.thread],
            what,
            place,
        };
        timeline
            .events
            .extend(activities(one, record.ended).map(event));
    }
    timeline
}

/// The activity of the thread, and its time.
fn activities(one: &Acquisition, ended: u64) -> impl Iterator<Item = (u64, Activity)> {
    let lock = one.lock as usize;
    let waits = one.begun.map(|at| (at, Activity::Waits(lock)));
    let holds = one.acquired.map(|at| (at, Activity::Holds(lock)));
    let releases = one
        .acquired
        .map(|_| (one.released.unwrap_or(ended), Activity::Releases(lock)));
    [waits, holds, releases].into_iter().flatten()
}
