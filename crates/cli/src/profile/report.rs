//! The report on the profiles of all processes together, for people and as JSON.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::os::unix::process::ExitStatusExt;
use std::process::ExitStatus;
use std::time::Duration;

use comfy_table::CellAlignment;
use itertools::Itertools;
use nix::sys::signal::Signal;
use serde::Serialize;

use super::advice::Advice;
use super::deadlock::{self, Deadlocked};
use super::hotspots::{Hotspot, hotspots, sightings};
use super::places::{Place, Places};
use super::record::{LEFT_TO_GLIBC, Record, Rwlocks};
use crate::figures::nanoseconds;
use crate::figures::{counted, scaled};
use crate::preload::{self, Library};
use crate::program::OtherLocks;
use crate::table::Table;
use crate::terminal;

/// The report, as JSON has it.
#[derive(Serialize)]
pub struct ProfileReport {
    command: Vec<String>,
    wall_s: f64,
    /// The signal that ended the program. None: it exited.
    signal: Option<String>,
    /// The exit status of the program. None: a signal ended it.
    status: Option<i32>,
    /// The number of CPUs that the program may run on.
    cpus: u64,
    /// The number of NUMA nodes, or of last-level caches if there is one node.
    nodes: u64,
    processes: usize,
    /// The number of threads that have locked a mutex.
    threads: u64,
    /// Acquisitions that are counted nowhere else, because there was no room.
    lost: u64,
    /// The contended ones among the lost acquisitions.
    lost_contended: u64,
    /// Places in the code, the hottest first.
    places: Vec<Hotspot>,
    /// Mutexes, the hottest first.
    mutexes: Vec<Hotspot>,
    /// Threads that wait for each other in a circle.
    deadlock: Vec<Deadlocked>,
    advice: Advice,
    /// A command that tries the advice. None: no lock would help.
    try_it: Option<String>,
    /// Whether the preload library served the mutexes, not glibc.
    preloaded: bool,
    /// The acquisitions of rwlocks.
    rwlocks: Rwlocks,
    /// Other locks that the program is made to use.
    other_locks: OtherLocks,
}

impl ProfileReport {
    /// A report on the records of all processes.
    pub fn new(
        records: &[Record],
        command: &[OsString],
        wall: Duration,
        status: ExitStatus,
        mut other_locks: OtherLocks,
    ) -> Self {
        let mut known = Places::default();
        let sightings = sightings(records, &mut known);
        let places = hotspots(&sightings, |(_, _, place)| place.clone());
        let mut mutexes = hotspots(&sightings, |(record, site, _)| (record.pid, site.mutex));
        for mutex in &mut mutexes {
            let (process, address) = mutex.mutexes[0];
            let record = records.iter().find(|record| record.pid == process);
            let Some(record) = record else { continue };
            mutex.variable = known.variable(record, address);
            let call = record.held.get(&address);
            mutex.held_at = call.map(|call| known.of(record, *call));
        }
        let deadlock = records
            .iter()
            .map(|record| deadlock::of(record, &mut known))
            .find(|found| !found.is_empty());
        let sum = |figure: fn(&Record) -> u64| records.iter().map(figure).sum();
        let nodes = records.iter().map(|record| record.nodes).max().unwrap_or(1);
        let cpus = std::thread::available_parallelism().map_or(1, usize::from) as u64;
        let advice = match deadlock {
            Some(_) => Advice::for_deadlock(),
            None => Advice::of(&mutexes, wall, cpus, nodes),
        };
        let mut rwlocks = Rwlocks::default();
        for record in records {
            rwlocks += record.rwlocks;
            for module in &record.modules {
                let name = module.path.file_name().unwrap_or_default();
                other_locks.add_library(&name.to_string_lossy());
            }
        }
        let command: Vec<String> = command
            .iter()
            .map(|word| word.to_string_lossy().into_owned())
            .collect();
        let preloaded = Library::is_loaded(preload::LIBRARY);
        let words = shlex::try_join(command.iter().map(String::as_str));
        Self {
            wall_s: wall.as_secs_f64(),
            signal: status
                .signal()
                .map(|number| match Signal::try_from(number) {
                    Ok(signal) => signal.to_string(),
                    Err(_) => format!("signal {number}"),
                }),
            status: status.code(),
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
            deadlock: deadlock.unwrap_or_default(),
            advice,
            rwlocks,
            other_locks,
            command,
        }
    }

    /// Tables and advice for people.
    pub fn tables(&self, top: usize) -> String {
        let mut text = terminal::prose(&format!(
            "{:.2} s on {}; {} in {} locked {} at {}.\n",
            self.wall_s,
            counted(self.cpus, "CPU"),
            counted(self.threads, "thread"),
            match self.processes {
                1 => "1 process".to_owned(),
                n => format!("{n} processes"),
            },
            match self.mutexes.len() {
                1 => "1 mutex".to_owned(),
                n => format!("{n} mutexes"),
            },
            counted(self.places.len() as u64, "place"),
        ));
        if let Some(signal) = &self.signal {
            text.push_str(&format!("The program was ended by {signal}.\n"));
        }
        if self.places.is_empty() {
            text.push_str(&terminal::prose(&format!(
                "The program locked no pthread mutex, so no lock of Lockworks would serve it; {}.\n",
                self.other_locks.words()
            )));
        } else {
            let places = self
                .places
                .iter()
                .map(|row| (row.places[0].name(), row.mutexes.len(), row));
            text.push_str(&self.table(["place", "mutexes"], places.take(top)));
            let mutexes = self.mutexes.iter().map(|row| {
                let (process, _) = row.mutexes[0];
                let mutex = row.mutex();
                let name = match self.processes {
                    1 => format!("{mutex}, {}", row.places[0].name()),
                    _ => format!("{mutex} of {process}, {}", row.places[0].name()),
                };
                (name, row.places.len(), row)
            });
            text.push_str(&self.table(["mutex, hottest place", "places"], mutexes.take(top)));
        }
        if self.lost > 0 {
            text.push_str(&format!(
                "Lost, because there was no room: {} acquisitions, {} of them contended.\n",
                self.lost, self.lost_contended
            ));
        }
        let nameless: BTreeSet<_> = self
            .places
            .iter()
            .take(top)
            .filter_map(|row| match &row.places[0] {
                Place {
                    function: None,
                    module,
                    ..
                } => module.as_deref()?.file_name(),
                _ => None,
            })
            .map(|name| name.to_string_lossy())
            .collect();
        if !nameless.is_empty() {
            let those: Vec<_> = nameless.into_iter().collect();
            text.push_str(&terminal::prose(&format!(
                "No symbols: {}. Install the debugging symbols of the package, or build with -g, to see \
                 functions and lines.\n",
                those.join(", ")
            )));
        }
        for line in self.not_served() {
            text.push_str(&format!("{}\n", terminal::prose(&line)));
        }
        if !self.places.is_empty() {
            text.push_str(&format!("{}\n", terminal::prose(&self.advice.text)));
        }
        if let Some(command) = &self.try_it {
            text.push_str(&format!("Try: {command}\n"));
        }
        if self.preloaded {
            text.push_str(&format!(
                "Measured with {} in place of glibc's mutexes.\n",
                preload::LIBRARY
            ));
        }
        text
    }

    /// What no lock of Lockworks serves, and waits that did not end, each in a line.
    fn not_served(&self) -> Vec<String> {
        let mut lines = Vec::new();
        if self.rwlocks.acquisitions + self.rwlocks.still_waiting > 0 {
            lines.push(format!(
                "{} rwlock operations, {} of them waited, for {} in all; under `lockworks run` the lock rwlock serves them.",
                scaled(self.rwlocks.acquisitions as f64),
                scaled((self.rwlocks.contended + self.rwlocks.still_waiting) as f64),
                nanoseconds(self.rwlocks.waited_ns)
            ));
        }
        if let (Some(locks), false) = (self.other_locks.runtime, self.places.is_empty()) {
            lines.push(format!(
                "Neither measured nor served by Lockworks: {locks}."
            ));
        }
        for (property, reason) in LEFT_TO_GLIBC {
            let those = self.mutexes.iter();
            let those = those.filter(|row| row.left_to_glibc == Some(property));
            let number = those.clone().count() as u64;
            let acquisitions: u64 = those.map(|row| row.counts.acquisitions).sum();
            if number > 0 {
                lines.push(format!(
                    "`lockworks run` leaves {number} {property} {} to glibc, locked {} times: {reason}.",
                    if number == 1 { "mutex" } else { "mutexes" },
                    scaled(acquisitions as f64)
                ));
            }
        }
        let mut waiting = Vec::new();
        for row in self
            .mutexes
            .iter()
            .filter(|row| row.counts.still_waiting > 0)
        {
            let held = row.held_at.as_ref();
            waiting.push(format!(
                "{} at {} for {}, {} so far{}",
                counted(row.counts.still_waiting, "thread"),
                row.places[0].name(),
                row.mutex(),
                nanoseconds(row.counts.still_waiting_ns),
                held.map_or(String::new(), |place| format!(
                    ", held since {}",
                    place.name()
                ))
            ));
        }
        if self.rwlocks.still_waiting > 0 {
            let threads = counted(self.rwlocks.still_waiting, "thread");
            waiting.push(format!("{threads} for rwlocks"));
        }
        if !self.deadlock.is_empty() {
            let steps = self.deadlock.iter().map(|one| {
                format!(
                    "thread {} waits at {} for {}, which thread {} has held since {}",
                    one.thread, one.waits_at, one.waits_for, one.held_by, one.held_since
                )
            });
            lines.push(format!("Deadlock: {}.", steps.format("; ")));
        } else if !waiting.is_empty() {
            lines.push(format!("Still waiting at the end: {}.", waiting.join("; ")));
        }
        lines
    }

    fn table<'a>(
        &self,
        [what, number]: [&str; 2],
        rows: impl Iterator<Item = (String, usize, &'a Hotspot)>,
    ) -> String {
        let mut table = Table::new(&[
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
