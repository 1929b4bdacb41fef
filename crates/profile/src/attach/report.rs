//! The report on samples of a process, for people and as JSON.

use std::cmp::Reverse;

use comfy_table::CellAlignment;
use itertools::Itertools;
use lockworks_ui::figures::{self, counted, nanoseconds};
use lockworks_ui::table::Table;
use lockworks_ui::terminal;
use serde::Serialize;

use crate::attach::sampler::{Found, Lock, Now, Sampler, meanwhile};
use crate::attach::wait::{Kind, PRELOAD};
use crate::deadlock::{self, Deadlocked};
use crate::places::{Place, Places};

/// The least share of the waits for a lock of an occupation that tables show.
const SHOWN: f64 = 0.01;

/// The report, as JSON has it.
#[derive(Serialize)]
pub struct AttachReport {
    /// The process.
    pub pid: u32,
    /// The name of its program.
    pub name: String,
    command: Vec<String>,
    /// The time that was sampled.
    pub seconds: f64,
    samples: u64,
    /// The samples of a second. It is lowered so that they take little of a CPU.
    hz: f64,
    /// The most threads at a time.
    threads: usize,
    /// Whether the process ended meanwhile.
    has_ended: bool,
    /// The share of the time in which threads ran, of that in which they ran or waited for locks. Waits in
    /// which a thread polls are in it, and cannot be seen.
    unseen_at_most: f64,
    /// The locks that threads waited for, the hottest first.
    pub locks: Vec<LockReport>,
    /// The waits for locks in the last sample, the longest first.
    pub waits: Vec<Now>,
    /// Waits for conditions, semaphores, threads, and words of other libraries.
    other_waits: Vec<OtherWaits>,
    /// Threads that wait for each other in a circle.
    pub deadlock: Vec<Deadlocked>,
    /// Whether the preload library serves the locks, not glibc.
    preloaded: bool,
}

/// A lock that threads waited for.
#[derive(Serialize)]
pub struct LockReport {
    /// Its variable, or its address.
    pub lock: String,
    /// Its address.
    address: u64,
    /// Its kind.
    pub kind: Kind,
    /// The places where threads waited, the hottest first.
    pub places: Vec<Place>,
    /// The number of threads that waited.
    pub threads: usize,
    /// The time that all threads together waited, in nanoseconds.
    pub waited_ns: u64,
    /// The longest wait so far, in nanoseconds.
    pub longest_ns: u64,
    /// How many times a sample saw a thread wait for it.
    seen: u64,
    /// The occupations of holders meanwhile, the longest first.
    pub meanwhile: Vec<Meanwhile>,
}

/// An occupation of holders.
#[derive(Serialize)]
pub struct Meanwhile {
    /// In words.
    pub holder: String,
    /// The place of the call, or of the instruction, if it is known.
    at: Option<Place>,
    /// The time that threads waited meanwhile, in nanoseconds.
    ns: u64,
    /// The share of the time that threads waited for the lock.
    share: f64,
}

/// Waits for something that is no lock, or is not known to be one.
#[derive(Serialize)]
struct OtherWaits {
    function: String,
    place: Option<Place>,
    threads: usize,
    waited_ns: u64,
}

impl LockReport {
    fn of((address, lock): (u64, Lock)) -> Self {
        let places = lock
            .places
            .into_iter()
            .sorted_by_key(|(_, ns)| Reverse(*ns));
        let causes = lock.meanwhile.causes.into_iter();
        Self {
            lock: lock.name,
            address,
            kind: lock.kind,
            places: places.map(|(place, _)| place).collect(),
            threads: lock.threads.len(),
            waited_ns: lock.waited_ns,
            longest_ns: lock.longest_ns,
            seen: lock.seen,
            meanwhile: causes
                .map(|cause| Meanwhile {
                    holder: meanwhile(&cause.doing),
                    at: cause.doing.at,
                    ns: cause.ns,
                    share: cause.share,
                })
                .collect(),
        }
    }
}

impl AttachReport {
    /// What was found since the last report.
    pub fn of(sampler: &mut Sampler, places: &mut Places, has_ended: bool) -> Self {
        let waits = sampler.waits(places);
        let Found {
            seconds,
            samples,
            ran_ns,
            threads,
            locks,
            others,
            deadlock,
        } = sampler.take();
        let process = &mut sampler.process;
        process.record.acquisitions = deadlock;
        let deadlock = deadlock::of(&process.record, places);
        let locks = locks.into_iter().map(LockReport::of);
        let locks = locks.sorted_by_key(|lock| Reverse((lock.waited_ns, lock.seen)));
        let locks: Vec<LockReport> = locks.collect();
        let waited: u64 = locks.iter().map(|lock| lock.waited_ns).sum();
        let others = others
            .into_iter()
            .map(|((function, place), other)| OtherWaits {
                function,
                place,
                threads: other.threads.len(),
                waited_ns: other.waited_ns,
            });
        Self {
            pid: process.pid,
            name: process.name.clone(),
            command: process.command.clone(),
            seconds,
            samples,
            hz: samples.saturating_sub(1) as f64 / seconds.max(1e-9),
            threads,
            has_ended,
            unseen_at_most: ran_ns as f64 / (ran_ns + waited).max(1) as f64,
            locks,
            waits,
            other_waits: others
                .sorted_by_key(|other| Reverse(other.waited_ns))
                .collect(),
            deadlock,
            preloaded: process.has_library(PRELOAD),
        }
    }

    /// Tables for people.
    pub fn tables(&self, top: usize) -> String {
        let mut text = terminal::prose(&format!(
            "{:.2} s of process {} ({}) with {}: {}, {:.0} a second.\n",
            self.seconds,
            self.pid,
            self.name,
            counted(self.threads as u64, "thread"),
            counted(self.samples, "sample"),
            self.hz
        ));
        let mut line = |words: &str| text.push_str(&format!("{}\n", terminal::prose(words)));
        if self.has_ended {
            line("The process has ended.");
        }
        if self.locks.is_empty() {
            line("No thread was seen to wait for a lock.");
        }
        text.push_str(&self.lock_table(top));
        text.push_str(&meanwhile_table(self.locks.iter().take(top)));
        text.push_str(&self.wait_table(top));
        text.push_str(&self.other_table(top));
        for words in self.notes() {
            text.push_str(&format!("{}\n", terminal::prose(&words)));
        }
        text
    }

    /// What the tables do not say.
    fn notes(&self) -> Vec<String> {
        let mut lines = Vec::new();
        if !self.deadlock.is_empty() {
            let steps = self.deadlock.iter().map(|one| {
                format!(
                    "thread {} waits at {} for {}, which thread {} holds",
                    one.thread, one.waits_at, one.waits_for, one.held_by
                )
            });
            lines.push(format!(
                "Deadlock: {}. Lock these in one order everywhere; a lock cannot help.",
                steps.format("; ")
            ));
        }
        if self.preloaded {
            lines.push(format!(
                "{PRELOAD} serves the mutexes. Its waiters poll before they park, and a lock is found on the \
                 stack of its waiter; where that is not clear, the wait is among the others."
            ));
        }
        lines.push(format!(
            "Only threads that sleep are seen to wait. Those that poll a lock, or are woken and have no CPU \
             yet, count as running: at most {} of the time that threads ran or waited for locks.",
            figures::percent(self.unseen_at_most)
        ));
        if self.deadlock.is_empty() && !self.locks.is_empty() {
            lines.push(
                "How often locks are taken, and what would help, is known only of a program that is started \
                 by `lockworks profile -- PROGRAM`."
                    .to_owned(),
            );
        }
        lines
    }

    fn lock_table(&self, top: usize) -> String {
        let mut table = Table::new(&[
            "lock, hottest place",
            "kind",
            "places",
            "threads",
            "waited",
            "longest",
            "waiters",
        ]);
        for lock in self.locks.iter().take(top) {
            table.add_row([
                format!("{}, {}", lock.lock, place_name(lock.places.first())),
                lock.kind.name().to_owned(),
                lock.places.len().to_string(),
                lock.threads.to_string(),
                nanoseconds(lock.waited_ns),
                nanoseconds(lock.longest_ns),
                self.waiters(lock),
            ]);
        }
        printed(table, &[2, 3, 4, 5, 6])
    }

    /// How many threads waited for a lock at a time, on average.
    pub fn waiters(&self, lock: &LockReport) -> String {
        format!(
            "{:.2}",
            lock.waited_ns as f64 / 1e9 / self.seconds.max(1e-9)
        )
    }

    fn wait_table(&self, top: usize) -> String {
        let mut table = Table::new(&["waits now", "at", "for", "since", "held by", "which"]);
        for wait in self.waits.iter().take(top) {
            let named = |thread: u32, name: &str| format!("{thread} {name}");
            let holder = wait.held_by.zip(wait.holder_name.as_deref());
            table.add_row([
                named(wait.thread, &wait.name),
                place_name(Some(&wait.place)),
                wait.lock.clone(),
                nanoseconds(wait.waited_ns),
                holder.map_or("?".to_owned(), |(thread, name)| named(thread, name)),
                wait.holder.clone(),
            ]);
        }
        printed(table, &[3])
    }

    fn other_table(&self, top: usize) -> String {
        let mut table = Table::new(&["other waits in", "at", "threads", "waited"]);
        for other in self.other_waits.iter().take(top) {
            table.add_row([
                other.function.clone(),
                place_name(other.place.as_ref()),
                other.threads.to_string(),
                nanoseconds(other.waited_ns),
            ]);
        }
        printed(table, &[2, 3])
    }
}

/// A place as tables name it.
pub fn place_name(place: Option<&Place>) -> String {
    match place {
        Some(place) if *place != Place::default() => place.name(),
        _ => "?".to_owned(),
    }
}

/// A table of what holders did while threads waited. A lock has a line for each occupation.
fn meanwhile_table<'a>(locks: impl Iterator<Item = &'a LockReport>) -> String {
    let mut table = Table::new(&["waits for", "meanwhile", "share", "time"]);
    for lock in locks {
        let shown = lock.meanwhile.iter().enumerate();
        for (_, cause) in shown.filter(|(at, cause)| *at == 0 || cause.share >= SHOWN) {
            table.add_row([
                lock.lock.clone(),
                cause.holder.clone(),
                figures::percent(cause.share),
                nanoseconds(cause.ns),
            ]);
        }
    }
    printed(table, &[2, 3])
}

/// A table whose columns of figures are aligned. Empty: it has no rows.
pub fn printed(mut table: Table, figures: &[usize]) -> String {
    if table.is_empty() {
        return String::new();
    }
    for column in figures {
        if let Some(column) = table.column_mut(*column) {
            column.set_cell_alignment(CellAlignment::Right);
        }
    }
    format!("{table}\n")
}
