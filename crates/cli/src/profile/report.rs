//! All processes together: by place, by mutex, and what would help.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::time::Duration;

use comfy_table::CellAlignment;
use serde::Serialize;

use super::advice::Advice;
use super::places::{Place, Places};
use super::record::{Counts, Record, Site};
use crate::output;
use crate::program::Library;
use crate::run;
use crate::torture::report::nanoseconds;
use crate::torture::scaled;

/// As JSON. Times are nanoseconds.
#[derive(Serialize)]
pub struct Report {
    command: Vec<String>,
    wall_s: f64,
    /// That it may run on.
    cpus: u64,
    /// That hand-offs are told apart by: NUMA nodes, or last-level caches where there is one node.
    nodes: u64,
    processes: usize,
    /// That have locked a mutex.
    threads: u64,
    /// Acquisitions for which there was no room, which no row has.
    lost: u64,
    /// Those of them that were contended.
    lost_contended: u64,
    /// Places in the code, those first that were waited at longest.
    places: Vec<Row>,
    /// Mutexes, likewise.
    mutexes: Vec<Row>,
    advice: Advice,
    /// To try it, if a lock may help.
    try_it: Option<String>,
    /// Whether the mutexes were those of our preload library, not glibc's.
    preloaded: bool,
}

/// A place with all mutexes that were locked there, or a mutex with all places.
#[derive(Default, Serialize)]
pub struct Row {
    /// Of the hottest first.
    pub places: Vec<Place>,
    /// Process and address.
    pub mutexes: Vec<(u64, u64)>,
    /// That locked it; where a process has 256 or more, at least.
    pub threads: u64,
    /// What was counted.
    #[serde(flatten)]
    pub counts: Counts,
}

impl Row {
    /// Of acquisitions.
    pub fn contended_share(&self) -> f64 {
        self.counts.contended as f64 / self.counts.acquisitions.max(1) as f64
    }
}

/// A mutex at a place, and the process.
type Seen<'a> = (&'a Record, &'a Site, Place);

impl Report {
    /// Of the records of all processes.
    pub fn new(records: &[Record], command: &[OsString], wall: Duration) -> Self {
        let seen = seen(records);
        let places = rows(&seen, |(_, _, place)| place.clone());
        let mutexes = rows(&seen, |(record, site, _)| (record.pid, site.mutex));
        let sum = |figure: fn(&Record) -> u64| records.iter().map(figure).sum();
        let nodes = records.iter().map(|record| record.nodes).max().unwrap_or(1);
        let cpus = std::thread::available_parallelism().map_or(1, usize::from) as u64;
        let waited = places.iter().map(|row| row.counts.waited_ns).sum();
        let advice = Advice::of(mutexes.first(), waited, wall, cpus, nodes);
        let command: Vec<String> = command
            .iter()
            .map(|word| word.to_string_lossy().into_owned())
            .collect();
        let preloaded = Library::is_loaded(run::LIBRARY);
        let words = shlex::try_join(command.iter().map(String::as_str));
        Self {
            wall_s: wall.as_secs_f64(),
            cpus,
            nodes,
            processes: records.len(),
            threads: sum(|record| record.threads),
            lost: sum(|record| record.lost),
            lost_contended: sum(|record| record.lost_contended),
            places,
            mutexes,
            try_it: (!advice.locks.is_empty() && !preloaded).then(|| {
                format!(
                    "lockworks compare --lock {} -- {}",
                    advice.locks.join(" --lock "),
                    words.unwrap_or_else(|_| command.join(" "))
                )
            }),
            preloaded,
            advice,
            command,
        }
    }

    /// For people.
    pub fn tables(&self, top: usize) -> String {
        let many = |n: u64, what: &str| format!("{n} {what}{}", if n == 1 { "" } else { "s" });
        let mut text = format!(
            "{:.2} s on {}; {} in {} locked {} at {}.\n",
            self.wall_s,
            many(self.cpus, "CPU"),
            many(self.threads, "thread"),
            match self.processes {
                1 => "1 process".to_owned(),
                n => format!("{n} processes"),
            },
            match self.mutexes.len() {
                1 => "1 mutex".to_owned(),
                n => format!("{n} mutexes"),
            },
            many(self.places.len() as u64, "place"),
        );
        if self.places.is_empty() {
            text.push_str("No pthread mutex was locked that can be seen.\n");
        } else {
            let places = self
                .places
                .iter()
                .map(|row| (row.places[0].name(), row.mutexes.len(), row));
            text.push_str(&self.table(["place", "mutexes"], places.take(top)));
            let mutexes = self.mutexes.iter().map(|row| {
                let (process, address) = row.mutexes[0];
                let name = match self.processes {
                    1 => format!("{address:#x}, {}", row.places[0].name()),
                    _ => format!("{address:#x} of {process}, {}", row.places[0].name()),
                };
                (name, row.places.len(), row)
            });
            text.push_str(&self.table(["mutex, hottest place", "places"], mutexes.take(top)));
        }
        if self.lost > 0 {
            text.push_str(&format!(
                "Lost for want of room: {} acquisitions, {} of them contended.\n",
                self.lost, self.lost_contended
            ));
        }
        text.push_str(&format!("{}\n", self.advice.text));
        if let Some(command) = &self.try_it {
            text.push_str(&format!("Try: {command}\n"));
        }
        if self.preloaded {
            text.push_str(&format!(
                "Measured with {} in place of glibc's mutexes.\n",
                run::LIBRARY
            ));
        }
        text
    }

    fn table<'a>(
        &self,
        [what, number]: [&str; 2],
        rows: impl Iterator<Item = (String, usize, &'a Row)>,
    ) -> String {
        let mut table = output::table(&[
            what,
            number,
            "threads",
            "locked",
            "contended",
            "waited",
            "longest",
            "held",
            "longest",
            "before: same",
            "near",
            "far",
        ]);
        table.add_rows(rows.map(|(name, number, row)| {
            let counts = &row.counts;
            let times = counts.acquisitions.max(1);
            let from = counts.from_same_thread + counts.from_same_node + counts.from_other_node;
            let percent = |n: u64, of: u64| format!("{:.1} %", 100.0 * n as f64 / of.max(1) as f64);
            [
                name,
                number.to_string(),
                row.threads.to_string(),
                scaled(counts.acquisitions as f64),
                percent(counts.contended, times),
                nanoseconds(counts.waited_ns),
                nanoseconds(counts.waited_max_ns),
                nanoseconds(counts.held_ns / times),
                nanoseconds(counts.held_max_ns),
                percent(counts.from_same_thread, from),
                percent(counts.from_same_node, from),
                match self.nodes {
                    0 | 1 => "-".to_owned(),
                    _ => percent(counts.from_other_node, from),
                },
            ]
        }));
        for column in table.column_iter_mut().skip(1) {
            column.set_cell_alignment(CellAlignment::Right);
        }
        format!("{table}\n")
    }
}

/// Each with its place, the hottest first.
fn seen(records: &[Record]) -> Vec<Seen<'_>> {
    let mut places = Places::default();
    let mut seen = Vec::new();
    for record in records {
        let mut known: BTreeMap<u64, Place> = BTreeMap::new();
        for site in &record.sites {
            let place = known
                .entry(site.call)
                .or_insert_with(|| match record.module(site.call) {
                    Some((module, offset)) => places.find(&module.path, offset),
                    None => Place {
                        offset: site.call,
                        ..Place::default()
                    },
                });
            seen.push((record, site, place.clone()));
        }
    }
    seen.sort_by_key(|(_, site, _)| heat(&site.counts));
    seen
}

/// The least is the hottest.
fn heat(counts: &Counts) -> impl Ord + use<> {
    std::cmp::Reverse((counts.waited_ns, counts.acquisitions))
}

/// Put together those with the same key, the hottest first.
fn rows<K: Ord>(seen: &[Seen], key: impl Fn(&Seen) -> K) -> Vec<Row> {
    let mut groups: BTreeMap<K, Vec<&Seen>> = BTreeMap::new();
    for one in seen {
        groups.entry(key(one)).or_default().push(one);
    }
    let mut rows: Vec<Row> = groups.into_values().map(|group| row(&group)).collect();
    rows.sort_by_key(|row| heat(&row.counts));
    rows
}

fn row(group: &[&Seen]) -> Row {
    let mut row = Row::default();
    let mut threads: BTreeMap<u64, [u64; 4]> = BTreeMap::new();
    let mut mutexes = BTreeSet::new();
    for (record, site, place) in group {
        row.counts += site.counts;
        let of = threads.entry(record.pid).or_default();
        for (all, these) in of.iter_mut().zip(site.threads) {
            *all |= these;
        }
        if !row.places.contains(place) {
            row.places.push(place.clone());
        }
        if mutexes.insert((record.pid, site.mutex)) {
            row.mutexes.push((record.pid, site.mutex));
        }
    }
    let bits = threads
        .values()
        .flatten()
        .map(|bits| u64::from(bits.count_ones()));
    row.threads = bits.sum();
    row
}
