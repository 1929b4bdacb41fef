//! The report on the profiles of all processes together, for people and as JSON.

use std::cmp::Reverse;
use std::collections::BTreeSet;
use std::ffi::OsString;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::ExitStatus;
use std::time::Duration;

use comfy_table::CellAlignment;
use itertools::Itertools;
use nix::sys::signal::Signal;
use serde::Serialize;

use crate::advice::{Advice, Rule, is_worthwhile};
use crate::conditions::{self, Waits};
use crate::deadlock::{self, Deadlocked};
use crate::hotspots::{ByMode, Hotspot, Sighting, hotspots, sightings};
use crate::places::{Place, Places};
use crate::record::{Counts, LEFT_TO_GLIBC, Record};
use crate::slow::Cause;
use crate::unmeasured::Unmeasured;
use lockworks_preload::{LIBRARY, Library, OtherLocks};
use lockworks_ui::figures::{self, count, counted, nanoseconds, or_dash, share_of};
use lockworks_ui::plot::figure::{Bar, Chart, Data, Draw, Figure};
use lockworks_ui::table::Table;
use lockworks_ui::terminal;

/// The least share of the slow waits at a place of a cause that tables show.
const SHOWN: f64 = 0.01;

/// A run of a program.
pub struct Run<'a> {
    /// The program and its arguments.
    pub command: &'a [OsString],
    /// How long it ran.
    pub wall: Duration,
    /// How it ended.
    pub status: ExitStatus,
    /// Whether it does not end by itself, or not before its parent.
    pub is_server: bool,
    /// Its processes that were not measured.
    pub unmeasured: Unmeasured,
}

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
    /// The number of other processes for each reason why they were not measured.
    unmeasured: Unmeasured,
    /// The number of threads that have locked a mutex or an rwlock.
    threads: u64,
    /// Acquisitions that are counted nowhere else, because there was no room.
    lost: u64,
    /// The contended ones among the lost acquisitions.
    lost_contended: u64,
    /// Looks at what a holder does that are counted nowhere, because there was no room.
    lost_causes: u64,
    /// The time that all threads together waited for spinlocks, in nanoseconds.
    spun_ns: u64,
    /// Places in the code that lock mutexes, the hottest first.
    places: Vec<Hotspot>,
    /// Mutexes, the hottest first.
    mutexes: Vec<Hotspot>,
    /// Places in the code that lock rwlocks, the hottest first.
    rwlock_places: Vec<Hotspot>,
    /// Rwlocks, the hottest first.
    rwlocks: Vec<Hotspot>,
    /// Places in the code that wait for conditions, those with the longest waits first.
    conditions: Vec<Waits>,
    /// Waits for conditions, or signals, that are counted nowhere, because there was no room.
    lost_conditions: u64,
    /// Threads that wait for each other in a circle.
    deadlock: Vec<Deadlocked>,
    advice: Advice,
    /// A command that tries the advice. None: no lock would help.
    try_it: Option<String>,
    /// Whether the preload library served the locks, not glibc.
    preloaded: bool,
    /// The number of callers that tables show.
    #[serde(skip)]
    depth: usize,
    /// Other locks that the program is made to use.
    other_locks: OtherLocks,
}

impl ProfileReport {
    /// A report on the records of all processes.
    pub fn new(records: &[Record], run: Run, mut other_locks: OtherLocks, depth: usize) -> Self {
        let Run {
            command,
            wall,
            status,
            is_server,
            unmeasured,
        } = run;
        // `compare` runs a program that ends by itself, with success.
        let try_with = match status.success() && !is_server {
            true => "compare",
            false => "run",
        };
        let mut known = Places::default();
        let (of_mutexes, of_rwlocks) = sightings(records, &mut known, depth);
        let mut by_lock = |sightings: &[Sighting]| {
            let mut locks = hotspots(sightings, |one| (one.record.pid, one.site.lock));
            for lock in &mut locks {
                let (process, address) = lock.locks[0];
                let record = records.iter().find(|record| record.pid == process);
                let Some(record) = record else { continue };
                lock.variable = known.variable(record, address);
                let call = record.held.get(&address);
                lock.held_at = call.map(|call| known.of_lock(record, *call));
            }
            locks
        };
        let (mutexes, rwlocks) = (by_lock(&of_mutexes), by_lock(&of_rwlocks));
        let by_place = |sightings: &[Sighting]| hotspots(sightings, |one| one.place.clone());
        let deadlock = records
            .iter()
            .map(|record| deadlock::of(record, &mut known))
            .find(|found| !found.is_empty());
        let sum = |figure: fn(&Record) -> u64| records.iter().map(figure).sum();
        let nodes = records.iter().map(|record| record.nodes).max().unwrap_or(1);
        let cpus = std::thread::available_parallelism().map_or(1, usize::from) as u64;
        let advice = match deadlock {
            Some(_) => Advice::for_deadlock(),
            None => Advice::of(&mutexes, &rwlocks, wall, cpus, nodes),
        };
        let spun_ns = records
            .iter()
            .fold(0_u64, |sum, record| sum.saturating_add(record.spun_ns));
        let lost_contended = sum(|record| record.lost_contended);
        let unseen: Vec<String> = [
            unmeasured.in_words(),
            is_worthwhile(spun_ns, wall).then(|| {
                format!(
                    "{} waited for pthread spinlocks, which `lockworks run` serves, but whose places are not \
                     measured",
                    nanoseconds(spun_ns)
                )
            }),
            (lost_contended > 0)
                .then(|| format!("{lost_contended} contended acquisitions had no room")),
        ]
        .into_iter()
        .flatten()
        .collect();
        for record in records {
            for module in &record.modules {
                let name = module.path.file_name().unwrap_or_default();
                other_locks.add_library(&name.to_string_lossy());
            }
        }
        let has_locks = !(mutexes.is_empty() && rwlocks.is_empty());
        let advice = match has_locks {
            true => advice,
            false => advice.without_locks(&other_locks),
        };
        let advice = advice.unless(&unseen, has_locks);
        let command: Vec<String> = command
            .iter()
            .map(|word| word.to_string_lossy().into_owned())
            .collect();
        let preloaded = Library::is_loaded(LIBRARY);
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
            unmeasured,
            threads: sum(|record| record.threads),
            lost: sum(|record| record.lost),
            lost_contended,
            lost_causes: sum(|record| record.lost_causes),
            spun_ns,
            conditions: conditions::waits(records, &mut known),
            lost_conditions: sum(|record| record.lost_conditions),
            places: by_place(&of_mutexes),
            mutexes,
            rwlock_places: by_place(&of_rwlocks),
            rwlocks,
            try_it: (!advice.locks.is_empty() && !preloaded).then(|| {
                format!(
                    "lockworks {try_with} --lock {} -- {}",
                    match try_with {
                        "compare" => advice.locks.join(" --lock "),
                        _ => advice.locks[0].to_owned(),
                    },
                    words.unwrap_or_else(|_| command.join(" "))
                )
            }),
            preloaded,
            depth,
            deadlock: deadlock.unwrap_or_default(),
            advice,
            other_locks,
            command,
        }
    }

    /// The time that the program ran, in seconds.
    pub fn seconds(&self) -> f64 {
        self.wall_s
    }

    /// Tables and advice for people.
    pub fn tables(&self, top: usize) -> String {
        let mut text = terminal::prose(&format!(
            "{:.2} s on {}; {} in {} locked {}.\n",
            self.wall_s,
            counted(self.cpus, "CPU"),
            counted(self.threads, "thread"),
            match self.processes {
                1 => "1 process".to_owned(),
                n => format!("{n} processes"),
            },
            self.locked()
        ));
        if let Some(signal) = &self.signal {
            text.push_str(&format!("The program was ended by {signal}.\n"));
        }
        if !self.mutexes.is_empty() {
            let places = named_places(&self.places, self.depth);
            text.push_str(&self.table(["place", "mutexes"], places.take(top)));
            let mutexes = self.mutexes.iter().map(|row| self.named(row));
            text.push_str(&self.table(["mutex, hottest place", "places"], mutexes.take(top)));
        }
        if !self.rwlocks.is_empty() {
            let places = named_places(&self.rwlock_places, self.depth);
            text.push_str(&rwlock_table(["place", "rwlocks"], places.take(top)));
            let rwlocks = self.rwlocks.iter().map(|row| self.named(row));
            text.push_str(&rwlock_table(
                ["rwlock, hottest place", "places"],
                rwlocks.take(top),
            ));
        }
        let slow = self.places.iter().chain(&self.rwlock_places);
        let slow = slow.filter(|row| row.slow.waited_ns > 0);
        let slow = slow.sorted_by_key(|row| Reverse(row.slow.waited_ns));
        text.push_str(&slow_table(slow.take(top)));
        text.push_str(&conditions::table(self.conditions.iter().take(top)));
        if self.lost_conditions > 0 {
            text.push_str(&format!(
                "Lost, because there was no room: {} waits for conditions, or signals.\n",
                self.lost_conditions
            ));
        }
        if self.lost_causes > 0 {
            text.push_str(&format!(
                "Lost, because there was no room: {} looks at what a holder did.\n",
                self.lost_causes
            ));
        }
        if self.lost > 0 {
            text.push_str(&format!(
                "Lost, because there was no room: {} acquisitions, {} of them contended.\n",
                self.lost, self.lost_contended
            ));
        }
        let shown = self.places.iter().take(top);
        let nameless: BTreeSet<_> = shown
            .chain(self.rwlock_places.iter().take(top))
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
        if let (Some(line), true) = (
            self.unmeasured.in_words(),
            self.advice.rule != Rule::NotMeasured,
        ) {
            text.push_str(&format!("{}\n", terminal::prose(&format!("{line}."))));
        }
        for line in self.not_served() {
            text.push_str(&format!("{}\n", terminal::prose(&line)));
        }
        text.push_str(&format!("{}\n", terminal::prose(&self.advice.text)));
        if let Some(command) = &self.try_it {
            text.push_str(&format!("Try: {command}\n"));
        }
        if self.preloaded {
            text.push_str(&format!(
                "Measured with {} in place of glibc's locks.\n",
                LIBRARY
            ));
        }
        text
    }

    /// All mutexes and rwlocks.
    fn locks(&self) -> impl Iterator<Item = &Hotspot> {
        self.mutexes.iter().chain(&self.rwlocks)
    }

    /// How many locks the program locked at how many places.
    fn locked(&self) -> String {
        let number = |locks: usize, one: &str, several: &str, places: usize| {
            let locks = match locks {
                1 => format!("1 {one}"),
                n => format!("{n} {several}"),
            };
            format!("{locks} at {}", counted(places as u64, "place"))
        };
        let mutexes = number(self.mutexes.len(), "mutex", "mutexes", self.places.len());
        let places = self.rwlock_places.len();
        let rwlocks = number(self.rwlocks.len(), "rwlock", "rwlocks", places);
        match (self.mutexes.len(), self.rwlocks.len()) {
            (_, 0) => mutexes,
            (0, _) => rwlocks,
            _ => format!("{mutexes}, and {rwlocks}"),
        }
    }

    /// The row of a lock: its name, its number of places, and itself.
    fn named<'a>(&self, row: &'a Hotspot) -> (String, usize, &'a Hotspot) {
        let (process, _) = row.locks[0];
        let (lock, place) = (row.lock(), row.places[0].name());
        let name = match self.processes {
            1 => format!("{lock}, {place}"),
            _ => format!("{lock} of {process}, {place}"),
        };
        (name, row.places.len(), row)
    }

    /// The locks that no lock of Lockworks serves, and waits that did not end, each in a line.
    fn not_served(&self) -> Vec<String> {
        let mut lines = Vec::new();
        if let (Some(locks), false) = (self.other_locks.runtime, self.locks().next().is_none()) {
            lines.push(format!(
                "Neither measured nor served by Lockworks: {locks}."
            ));
        }
        for (rows, one, several) in [
            (&self.mutexes, "mutex", "mutexes"),
            (&self.rwlocks, "rwlock", "rwlocks"),
        ] {
            for (property, reason) in LEFT_TO_GLIBC {
                let those = rows.iter();
                let those = those.filter(|row| row.left_to_glibc == Some(property));
                let number = those.clone().count();
                let acquisitions: u64 = those.map(|row| row.counts.acquisitions).sum();
                if number > 0 {
                    lines.push(format!(
                        "`lockworks run` leaves {number} {property} {} to glibc, locked {}: {reason}.",
                        if number == 1 { one } else { several },
                        match acquisitions {
                            1 => "once".to_owned(),
                            n => format!("{} times", count(n)),
                        }
                    ));
                }
            }
        }
        let mut waiting = Vec::new();
        for row in self.locks().filter(|row| row.counts.still_waiting > 0) {
            let held = row.held_at.as_ref();
            waiting.push(format!(
                "{} at {} for {}, {} so far{}",
                counted(row.counts.still_waiting, "thread"),
                row.places[0].name(),
                row.lock(),
                nanoseconds(row.counts.still_waiting_ns),
                held.map_or(String::new(), |place| format!(
                    ", held since {}",
                    place.name()
                ))
            ));
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
            let from = counts.from_same_thread + counts.from_same_node + counts.from_other_node;
            let [locked, contended, waited, waited_max, held, held_max] = cells(counts);
            [
                name,
                number.to_string(),
                row.threads.to_string(),
                locked,
                contended,
                waited,
                waited_max,
                held,
                held_max,
                share_of(counts.from_same_thread, from),
                share_of(counts.from_same_node, from),
                match self.nodes {
                    0 | 1 => "-".to_owned(),
                    _ => share_of(counts.from_other_node, from),
                },
            ]
        }));
        for column in table.column_iter_mut().skip(1) {
            column.set_cell_alignment(CellAlignment::Right);
        }
        format!("{table}\n")
    }
}

impl Draw for ProfileReport {
    fn figures(&self, command: &str) -> Vec<Figure> {
        let slow = self.drawn_slow_waits(command);
        [self.drawn_locks(command)]
            .into_iter()
            .chain(slow)
            .collect()
    }
}

/// The rows of places: their names, their numbers of locks, and themselves. No two names are alike: places with the
/// same function and line differ in a caller, or else in the offset in the file.
fn named_places(rows: &[Hotspot], depth: usize) -> impl Iterator<Item = (String, usize, &Hotspot)> {
    let alike = |depth: usize| {
        rows.iter()
            .map(move |row| row.places[0].name_with(depth))
            .counts()
    };
    let deepest = rows.iter().map(|row| row.places[0].all_callers().count());
    let deepest = deepest.max().unwrap_or(0);
    let depths: Vec<_> = (depth..=deepest.max(depth))
        .map(|depth| (depth, alike(depth)))
        .collect();
    rows.iter().map(move |row| {
        let place = &row.places[0];
        let mut names = depths
            .iter()
            .map(|(depth, alike)| (place.name_with(*depth), alike));
        let own = names.find(|(name, alike)| alike[name] == 1);
        let name = own.map_or_else(
            || format!("{} ({:#x})", place.name_with(depth), place.offset),
            |(name, _)| name,
        );
        (name, row.locks.len(), row)
    })
}

/// A place in the code of a program, as figures name it.
fn place_name(place: &Place) -> String {
    match (&place.function, &place.line) {
        (Some(function), Some(line)) => format!("{function} ({line})"),
        (Some(function), None) => function.clone(),
        _ => {
            let module = place.module.as_deref().and_then(Path::file_name);
            let module = module.unwrap_or_default().to_string_lossy();
            format!("{module}+{:#x}", place.offset)
        }
    }
}

impl ProfileReport {
    /// The hottest locks.
    fn drawn_locks(&self, command: &str) -> Figure {
        let name = |row: &Hotspot| {
            let shown = row.places.iter().take(2).map(place_name).join(", ");
            match row.places.len() {
                0..=2 => shown,
                several => format!("{shown} and {} more", several - 2),
            }
        };
        let heat = |row: &&Hotspot| Reverse((row.counts.waited_ns, row.counts.acquisitions));
        let locks: Vec<&Hotspot> = self.locks().sorted_by_key(heat).take(10).collect();
        let ms = |ns: u64| ns as f64 / 1e6;
        let each = |counts: &Counts, sum: u64| sum as f64 / counts.acquisitions.max(1) as f64;
        let hot = locks.iter().filter(|row| row.counts.waited_ns > 0);
        let text = format!(
            "The ten locks that threads waited for the longest, by the places where they are locked. {}",
            self.advice.text
        );
        let data = Data::of(
            &locks,
            &[
                ("locked in", &|row| name(row).into()),
                ("kind", &|row| row.kind().into()),
                ("threads", &|row| row.threads.into()),
                ("locked", &|row| row.counts.acquisitions.into()),
                ("contended %", &|row| {
                    ((1000.0 * each(&row.counts, row.counts.contended)).round() / 10.0).into()
                }),
                ("waited ms", &|row| ms(row.counts.waited_ns).round().into()),
                ("held ns on average", &|row| {
                    each(&row.counts, row.counts.held_ns).round().into()
                }),
            ],
        );
        let bars = hot.map(|row| Bar::exact(name(row), ms(row.counts.waited_ns)));
        waits(
            "hot",
            "The program's mutexes and rwlocks",
            text,
            command,
            bars.collect(),
            data,
        )
    }

    /// The activity of holders during slow waits. None: no wait was slow.
    fn drawn_slow_waits(&self, command: &str) -> Option<Figure> {
        let places = self.places.iter().chain(&self.rwlock_places);
        let causes = places.flat_map(|row| {
            let at = &row.places[0];
            row.slow
                .causes
                .iter()
                .map(move |cause| (place_name(at), cause))
        });
        let longest = causes
            .sorted_by_key(|(_, cause)| Reverse(cause.ns))
            .take(10);
        let causes: Vec<(String, &Cause)> = longest.collect();
        let bars = causes.iter().map(|(place, cause)| {
            Bar::exact(
                format!("{place}: {}", cause.meanwhile),
                cause.ns as f64 / 1e6,
            )
        });
        let text = "What the holder of the lock did while other threads waited long for it, by the \
                    places where they waited. Share is that of the slow waits at the place.";
        let data = Data::of(
            &causes,
            &[
                ("waited in", &|(place, _)| place.as_str().into()),
                ("meanwhile", &|(_, cause)| cause.meanwhile.as_str().into()),
                ("share %", &|(_, cause)| {
                    (100.0 * cause.share).round().into()
                }),
                ("waited ms", &|(_, cause)| {
                    ((cause.ns as f64 / 1e4).round() / 100.0).into()
                }),
                ("locked in", &|(_, cause)| {
                    cause.doing.held_at.as_ref().map(place_name).into()
                }),
            ],
        );
        let bars: Vec<Bar> = bars.collect();
        let title = "Why waits took long";
        (!causes.is_empty()).then(|| waits("slow", title, text.to_owned(), command, bars, data))
    }
}

/// A figure of the time that threads waited.
fn waits(id: &str, title: &str, text: String, command: &str, bars: Vec<Bar>, data: Data) -> Figure {
    Figure {
        id: id.to_owned(),
        title: title.to_owned(),
        text,
        command: command.to_owned(),
        chart: (!bars.is_empty()).then_some(Chart::Bars {
            unit: "milliseconds that threads waited, in all",
            alike: true,
            bars,
        }),
        data,
    }
}

/// The cells of counts: locked, contended, waited, longest, held, longest.
fn cells(counts: &Counts) -> [String; 6] {
    let times = counts.acquisitions.max(1);
    [
        count(counts.acquisitions),
        share_of(counts.contended, times),
        nanoseconds(counts.waited_ns),
        nanoseconds(counts.waited_max_ns),
        nanoseconds(counts.held_ns / times),
        nanoseconds(counts.held_max_ns),
    ]
}

/// A table of what holders did while threads waited long. A place has a line for each cause.
fn slow_table<'a>(rows: impl Iterator<Item = &'a Hotspot>) -> String {
    let mut table = Table::new(&[
        "slow waits at",
        "meanwhile",
        "share",
        "time",
        "waits",
        "holds it since",
    ]);
    for row in rows {
        let causes = row.slow.causes.iter().enumerate();
        for (_, cause) in causes.filter(|(at, cause)| *at == 0 || cause.share >= SHOWN) {
            let held = cause.doing.held_at.as_ref();
            table.add_row([
                row.places[0].full_name(),
                cause.meanwhile.clone(),
                figures::percent(cause.share),
                nanoseconds(cause.ns),
                count(row.slow.waits),
                or_dash(held.map(Place::full_name)),
            ]);
        }
    }
    if table.is_empty() {
        return String::new();
    }
    for column in [2, 3, 4] {
        if let Some(column) = table.column_mut(column) {
            column.set_cell_alignment(CellAlignment::Right);
        }
    }
    format!("{table}\n")
}

/// A table of rwlocks. Each has a line for its readers and one for its writers, if there were any.
fn rwlock_table<'a>(
    [what, number]: [&str; 2],
    rows: impl Iterator<Item = (String, usize, &'a Hotspot)>,
) -> String {
    let mut table = Table::new(&[
        what,
        "to",
        number,
        "threads",
        "locked",
        "contended",
        "waited",
        "longest",
        "held",
        "longest",
    ]);
    for (name, number, row) in rows {
        let Some(ByMode { reads, writes }) = row.by_mode else {
            continue;
        };
        for (mode, counts) in [("read", reads), ("write", writes)] {
            if counts.acquisitions + counts.still_waiting > 0 {
                let [number, threads] = [number.to_string(), row.threads.to_string()];
                let first = [name.clone(), mode.to_owned(), number, threads];
                table.add_row(first.into_iter().chain(cells(&counts)));
            }
        }
    }
    for column in table.column_iter_mut().skip(2) {
        column.set_cell_alignment(CellAlignment::Right);
    }
    format!("{table}\n")
}
