//! Timelines in Perfetto's format, which ui.perfetto.dev and `trace_processor` read.
//!
//! Every run is a group of tracks, and in it every NUMA node. A thread has a track. Its slices say
//! when it waits, sleeps, has no CPU, and holds a lock. An arrow goes from a holder to the next one.

mod schema;

use std::collections::{BTreeMap, HashMap};
use std::path::Path;

use anyhow::{Result, ensure};
use lockworks_measurements::{Activity, Timeline};
use prost::Message;

use crate::output;

use schema::{
    ChildTracksOrdering, DebugAnnotation, EventType, Trace, TracePacket, TrackDescriptor,
    TrackEvent,
};

/// The number of events that a run records. It is enough for some thousand acquisitions, and the
/// file stays below some MB.
pub const RECORDED_EVENTS: usize = 30_000;

/// The ending of timelines, which Perfetto's own tools use.
const ENDING: &str = "pftrace";

/// The time between two steps of a counterexample, which have no times of their own.
const STEP_NS: u64 = 1000;

/// Fails if no timeline can be written to `path`.
pub fn check(path: &Path) -> Result<()> {
    ensure!(
        path.extension().is_some_and(|end| end == ENDING),
        "'{}' is no timeline; give a name that ends in .{ENDING}",
        path.display()
    );
    output::check_file(path)
}

/// Writes the timelines of runs, each under its title.
pub fn write_runs<'a>(
    path: &Path,
    runs: impl IntoIterator<Item = (String, &'a Timeline)>,
) -> Result<()> {
    let mut file = File::default();
    for (title, timeline) in runs {
        file.run(&title, timeline);
    }
    file.write(path)
}

/// A step of a thread, without a time of its own.
pub struct Step {
    /// The number of the thread.
    pub thread: usize,
    /// The name of its slice.
    pub name: String,
    /// The names and values of its annotations. Empty values are left out.
    pub details: Vec<(&'static str, String)>,
}

/// Writes runs that break a promise, each under its title: a step a microsecond.
pub fn write_counterexamples(
    path: &Path,
    runs: impl IntoIterator<Item = (String, Vec<Step>)>,
) -> Result<()> {
    let mut file = File::default();
    for (title, steps) in runs {
        file.counterexample(&title, steps);
    }
    file.write(path)
}

fn annotation((name, text): (&str, String)) -> DebugAnnotation {
    DebugAnnotation {
        name: Some(name.to_owned()),
        string_value: Some(text),
    }
}

fn event(kind: EventType, track: u64) -> TrackEvent {
    TrackEvent {
        r#type: Some(kind.into()),
        track_uuid: Some(track),
        ..TrackEvent::default()
    }
}

fn event_end(track: u64) -> TrackEvent {
    event(EventType::SliceEnd, track)
}

/// A slice that a thread has begun.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Slice {
    Waits(usize),
    Holds(usize),
    Sleeps,
    HasNoCpu,
}

impl Slice {
    fn name(self) -> &'static str {
        match self {
            Self::Waits(_) => "waits",
            Self::Holds(_) => "holds",
            Self::Sleeps => "sleeps",
            Self::HasNoCpu => "has no CPU",
        }
    }

    fn event(self, track: u64, place: Option<&str>) -> TrackEvent {
        let lock = match self {
            Self::Waits(lock) | Self::Holds(lock) => Some(("lock", format!("{lock:#x}"))),
            Self::Sleeps | Self::HasNoCpu => None,
        };
        let place = place.map(|place| ("place", place.to_owned()));
        TrackEvent {
            name: Some(self.name().to_owned()),
            debug_annotations: lock.into_iter().chain(place).map(annotation).collect(),
            ..event(EventType::SliceBegin, track)
        }
    }
}

#[derive(Default)]
struct File {
    trace: Trace,
    tracks: u64,
    flows: u64,
}

impl File {
    /// Adds a track below `parent`, after those that it already has.
    fn track(&mut self, name: &str, parent: Option<u64>) -> u64 {
        self.tracks += 1;
        self.packet(TracePacket {
            track_descriptor: Some(TrackDescriptor {
                uuid: Some(self.tracks),
                name: Some(name.to_owned()),
                parent_uuid: parent,
                child_ordering: Some(ChildTracksOrdering::Explicit.into()),
                sibling_order_rank: Some(self.tracks as i32),
            }),
            ..TracePacket::default()
        });
        self.tracks
    }

    fn event(&mut self, ns: u64, event: TrackEvent) {
        self.packet(TracePacket {
            timestamp: Some(ns),
            track_event: Some(event),
            ..TracePacket::default()
        });
    }

    fn packet(&mut self, packet: TracePacket) {
        self.trace.packet.push(TracePacket {
            trusted_packet_sequence_id: Some(1),
            ..packet
        });
    }

    fn run(&mut self, title: &str, timeline: &Timeline) {
        let group = self.track(title, None);
        let nodes: BTreeMap<Option<u32>, u64> = {
            let mut nodes: Vec<_> = timeline.threads.iter().map(|t| t.node).collect();
            nodes.sort_unstable();
            nodes.dedup();
            let track = |node: Option<u32>| match node {
                Some(n) => (node, self.track(&format!("NUMA node {n}"), Some(group))),
                None => (node, group),
            };
            nodes.into_iter().map(track).collect()
        };
        let tracks: Vec<u64> = timeline
            .threads
            .iter()
            .map(|thread| self.track(&thread.name, Some(nodes[&thread.node])))
            .collect();
        let mut events = timeline.events.clone();
        events.sort_by_key(|event| event.ns);
        let mut open = vec![Vec::new(); tracks.len()];
        // The last holder of each lock, and the arrow that begins there.
        let mut holders: HashMap<usize, (u32, u64)> = HashMap::new();
        for one in &events {
            let place = one
                .place
                .map(|place| timeline.places[place as usize].as_str());
            let (track, open) = (tracks[one.thread as usize], &mut open[one.thread as usize]);
            match one.what {
                Activity::Waits(lock) => {
                    self.begin(one.ns, track, open, Slice::Waits(lock), place);
                }
                Activity::Sleeps => self.begin(one.ns, track, open, Slice::Sleeps, None),
                Activity::LosesCpu => self.begin(one.ns, track, open, Slice::HasNoCpu, None),
                Activity::Wakes => self.end(one.ns, track, open, Slice::Sleeps),
                Activity::GetsCpu => self.end(one.ns, track, open, Slice::HasNoCpu),
                Activity::Releases(lock) => self.end(one.ns, track, open, Slice::Holds(lock)),
                Activity::Holds(lock) => {
                    self.end(one.ns, track, open, Slice::Waits(lock));
                    self.flows += 1;
                    let before = holders.insert(lock, (one.thread, self.flows));
                    let before = before.filter(|(thread, _)| *thread != one.thread);
                    open.push(Slice::Holds(lock));
                    let event = TrackEvent {
                        flow_ids: vec![self.flows],
                        terminating_flow_ids: before.map(|(_, flow)| flow).into_iter().collect(),
                        ..Slice::Holds(lock).event(track, place)
                    };
                    self.event(one.ns, event);
                }
            }
        }
        let last = events.last().map_or(0, |event| event.ns);
        for (track, open) in tracks.iter().zip(open) {
            for _ in open {
                self.event(last, event_end(*track));
            }
        }
    }

    fn counterexample(&mut self, title: &str, steps: Vec<Step>) {
        let group = self.track(title, None);
        let threads = steps.iter().map(|step| step.thread).max().unwrap_or(0);
        let tracks: Vec<u64> = (0..=threads)
            .map(|thread| self.track(&format!("thread {thread}"), Some(group)))
            .collect();
        let mut end = 0;
        for (number, step) in (1..).zip(steps) {
            let (track, begin) = (tracks[step.thread], (number - 1) * STEP_NS);
            end = begin + STEP_NS;
            let number = ("step", number.to_string());
            let details = [number]
                .into_iter()
                .chain(step.details)
                .filter(|(_, text)| !text.is_empty());
            let event = TrackEvent {
                name: Some(step.name),
                debug_annotations: details.map(annotation).collect(),
                ..event(EventType::SliceBegin, track)
            };
            self.event(begin, event);
            self.event(end, event_end(track));
        }
        let event = TrackEvent {
            name: Some("the promise is broken".to_owned()),
            ..event(EventType::Instant, group)
        };
        self.event(end, event);
    }

    fn begin(
        &mut self,
        ns: u64,
        track: u64,
        open: &mut Vec<Slice>,
        slice: Slice,
        place: Option<&str>,
    ) {
        open.push(slice);
        self.event(ns, slice.event(track, place));
    }

    /// Ends a slice and those in it. A slice that began before the record has no end.
    fn end(&mut self, ns: u64, track: u64, open: &mut Vec<Slice>, slice: Slice) {
        if let Some(at) = open.iter().rposition(|one| *one == slice) {
            for _ in open.drain(at..) {
                self.event(ns, event_end(track));
            }
        }
    }

    fn write(&self, path: &Path) -> Result<()> {
        output::write_file(path, &self.trace.encode_to_vec())
    }
}
