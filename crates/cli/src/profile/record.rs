//! The record that a process leaves. `interpose/profile/record.h` has its layout.

use std::collections::HashMap;
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, ensure};

const MAGIC: u64 = 0x3366_6f72_506b_6f4c;
const HEADER: usize = 16;
const RWLOCKS_BYTES: u64 = 64;
const MOST_RWLOCKS: u64 = 64;
const WAIT_BYTES: u64 = 32;
const MOST_WAITS: u64 = 1024;
const MODULE_BYTES: u64 = 512;
const MUTEX_BYTES: u64 = 48;
const SITE_BYTES: u64 = 128;
const EVENT_BYTES: u64 = 48;
const MOST_EVENTS: u64 = 65536;

/// Why mutexes with these properties are left to glibc.
pub const LEFT_TO_GLIBC: [(&str, &str); 4] = [
    (
        "process-shared",
        "the other processes may not have its library",
    ),
    ("robust", "its locks do not notice that their holder dies"),
    ("priority-inheriting", "its locks do not lend priorities"),
    ("priority-protecting", "its locks do not raise priorities"),
];

/// The bits of these properties in the type of a mutex, in the same order.
const BITS: [u32; 4] = [128, 16, 32, 64];

/// The record of one process.
pub struct Record {
    /// The number of the process.
    pub pid: u64,
    /// The number of threads that have locked a mutex.
    pub threads: u64,
    /// The number of NUMA nodes, or of last-level caches if `LOCKWORKS_NEAR` says so.
    pub nodes: u64,
    /// Acquisitions that had no room in the record.
    pub lost: u64,
    /// The contended ones among the lost acquisitions.
    pub lost_contended: u64,
    /// The acquisitions of rwlocks.
    pub rwlocks: Rwlocks,
    /// The executable and the libraries of the process.
    pub modules: Vec<Module>,
    /// The mutexes at each place where they were locked.
    pub sites: Vec<Site>,
    /// Those that had not ended when the process did, and if a timeline is asked for, the most recent ones.
    pub acquisitions: Vec<Acquisition>,
    /// The mutexes that were held when the process ended, by address: the address of the last byte of the
    /// call that locked each.
    pub held: HashMap<u64, u64>,
    /// When the process ended, in nanoseconds.
    pub ended: u64,
}

/// An executable or a library, and the addresses that it was mapped at.
pub struct Module {
    start: u64,
    end: u64,
    offset: u64,
    /// The path of the file.
    pub path: PathBuf,
}

/// A mutex at a place in the code.
pub struct Site {
    /// The address of the mutex.
    pub mutex: u64,
    /// The address of the last byte of the call that locked it.
    pub call: u64,
    /// The type of the mutex, as glibc stores it.
    pub kind: u32,
    /// The counts.
    pub counts: Counts,
    /// A bit for each thread, by its number modulo 256.
    pub threads: [u64; 4],
}

/// An acquisition of a mutex, or a wait for it. Its times are in nanoseconds.
#[derive(Clone, Copy)]
pub struct Acquisition {
    /// The number of the thread, from 1.
    pub thread: u64,
    /// The NUMA node of the thread. None: it is not known.
    pub node: Option<u32>,
    /// The address of the mutex.
    pub mutex: u64,
    /// The address of the last byte of the call that locked it. None: it is not known.
    pub call: Option<u64>,
    /// When the thread began to wait. None: the mutex was free.
    pub begun: Option<u64>,
    /// When the thread had the mutex. None: it still waited when the process ended.
    pub acquired: Option<u64>,
    /// When the thread released it. None: it still held it when the process ended.
    pub released: Option<u64>,
}

/// The counts of all rwlocks together.
#[derive(Clone, Copy, Default, serde::Serialize)]
pub struct Rwlocks {
    /// How often an rwlock was locked, to read or to write.
    pub acquisitions: u64,
    /// How often a thread had to wait for it.
    pub contended: u64,
    /// The wait time, in nanoseconds. It includes waits that had not ended when the process did.
    pub waited_ns: u64,
    /// The number of threads that still waited when the process ended.
    pub still_waiting: u64,
}

impl std::ops::AddAssign for Rwlocks {
    fn add_assign(&mut self, other: Self) {
        self.acquisitions += other.acquisitions;
        self.contended += other.contended;
        self.waited_ns += other.waited_ns;
        self.still_waiting += other.still_waiting;
    }
}

/// The counts of a mutex at a place. In a sum of counts, the longest time is the longer of the two.
#[derive(Clone, Copy, Default, serde::Serialize)]
pub struct Counts {
    /// How often the mutex was locked.
    pub acquisitions: u64,
    /// How often another thread held the mutex at that moment.
    pub contended: u64,
    /// How often the mutex was locked again after a wait for a condition.
    pub after_condition: u64,
    /// The number of threads that still waited when the process ended.
    pub still_waiting: u64,
    /// The time of the waits that had not ended then, in nanoseconds.
    pub still_waiting_ns: u64,
    /// The wait time of contended acquisitions and of those waits, in nanoseconds.
    pub waited_ns: u64,
    /// The longest wait time, in nanoseconds.
    pub waited_max_ns: u64,
    /// The hold time of all acquisitions, in nanoseconds.
    pub held_ns: u64,
    /// The longest hold time, in nanoseconds.
    pub held_max_ns: u64,
    /// How often the last holder was the same thread.
    pub from_same_thread: u64,
    /// How often the last holder was another thread on the same NUMA node.
    pub from_same_node: u64,
    /// How often the last holder was a thread on another NUMA node.
    pub from_other_node: u64,
}

impl std::ops::AddAssign for Counts {
    fn add_assign(&mut self, other: Self) {
        self.acquisitions += other.acquisitions;
        self.contended += other.contended;
        self.after_condition += other.after_condition;
        self.still_waiting += other.still_waiting;
        self.still_waiting_ns += other.still_waiting_ns;
        self.waited_ns += other.waited_ns;
        self.waited_max_ns = self.waited_max_ns.max(other.waited_max_ns);
        self.held_ns += other.held_ns;
        self.held_max_ns = self.held_max_ns.max(other.held_max_ns);
        self.from_same_thread += other.from_same_thread;
        self.from_same_node += other.from_same_node;
        self.from_other_node += other.from_other_node;
    }
}

impl Record {
    /// Reads the record in a file. None: the process ended before it began its record. Waits in
    /// progress last until the process exits, or until `now`, a time in nanoseconds, if it does not.
    pub fn read(path: &Path, now: u64) -> Result<Option<Self>> {
        let file = File::open(path)?;
        let read = || -> std::io::Result<_> {
            let mut header = [0; 8 * HEADER];
            file.read_exact_at(&mut header, 0)?;
            Ok(words(&header))
        };
        let header = read().with_context(|| format!("{} is damaged", path.display()))?;
        if header[0] == 0 {
            return Ok(None);
        }
        ensure!(
            header[0] == MAGIC && header[3..6] == [MODULE_BYTES, MUTEX_BYTES, SITE_BYTES],
            "the profile library has another version than this command; install both again"
        );
        let [
            _,
            pid,
            nodes,
            _,
            _,
            _,
            most_modules,
            most_mutexes,
            most_sites,
        ] = header[..9]
        else {
            unreachable!("it is longer");
        };
        let (modules, sites) = (header[9].min(most_modules), header[10].min(most_sites));
        let ended = if header[14] == 0 { now } else { header[14] };
        let mut at = 8 * HEADER as u64;
        let mut table = |size: u64, most: u64, used: u64| -> Result<Vec<u8>> {
            let mut bytes = vec![0; (size * used) as usize];
            file.read_exact_at(&mut bytes, at)?;
            at += size * most;
            Ok(bytes)
        };
        let rwlocks = table(RWLOCKS_BYTES, MOST_RWLOCKS, MOST_RWLOCKS)?;
        let waits = table(WAIT_BYTES, MOST_WAITS, MOST_WAITS)?;
        let modules = table(MODULE_BYTES, most_modules, modules)?;
        let mutexes = table(MUTEX_BYTES, most_mutexes, most_mutexes)?;
        let sites = table(SITE_BYTES, most_sites, sites)?;
        let events = table(EVENT_BYTES, MOST_EVENTS, header[15].min(MOST_EVENTS))?;
        let site = |bytes: &[u8]| Site::of(&words(bytes), &mutexes);
        let mut record = Self {
            pid,
            threads: header[11],
            nodes,
            lost: header[12],
            lost_contended: header[13],
            rwlocks: Rwlocks::default(),
            modules: modules
                .chunks(MODULE_BYTES as usize)
                .map(Module::of)
                .collect(),
            sites: sites.chunks(SITE_BYTES as usize).map(site).collect(),
            acquisitions: events
                .chunks(EVENT_BYTES as usize)
                .filter_map(Acquisition::of_event)
                .collect(),
            held: HashMap::new(),
            ended,
        };
        for (mutex, site) in mutexes.chunks(MUTEX_BYTES as usize).filter_map(held) {
            let call = record.sites.get(site).map(|site| site.call);
            record.held.extend(call.map(|call| (mutex.mutex, call)));
            record.acquisitions.push(Acquisition { call, ..mutex });
        }
        for counts in rwlocks.chunks(RWLOCKS_BYTES as usize).map(words) {
            record.rwlocks += Rwlocks {
                acquisitions: counts[0],
                contended: counts[1],
                waited_ns: counts[2],
                still_waiting: 0,
            };
        }
        for wait in waits.chunks(WAIT_BYTES as usize).map(words) {
            // Without an address it is free, and without a time it has not begun.
            let (lock, caller, begun) = (wait[0], wait[1], wait[2]);
            if lock != 0 && begun != 0 {
                record.acquisitions.push(Acquisition {
                    thread: wait[3],
                    node: None,
                    mutex: lock,
                    call: (caller != 0).then(|| caller - 1),
                    begun: Some(begun),
                    acquired: None,
                    released: None,
                });
                record.add_wait(lock, caller, ended.saturating_sub(begun));
            }
        }
        Ok(Some(record))
    }

    /// Adds a wait that was in progress when the process ended. Without a caller it is for an rwlock.
    fn add_wait(&mut self, mutex: u64, caller: u64, waited_ns: u64) {
        if caller == 0 {
            self.rwlocks.still_waiting += 1;
            self.rwlocks.waited_ns += waited_ns;
            return;
        }
        let kind = self.sites.iter().find(|site| site.mutex == mutex);
        self.sites.push(Site {
            mutex,
            call: caller - 1,
            kind: kind.map_or(0, |site| site.kind),
            counts: Counts {
                still_waiting: 1,
                still_waiting_ns: waited_ns,
                waited_ns,
                waited_max_ns: waited_ns,
                ..Counts::default()
            },
            threads: [0; 4],
        });
    }

    /// The module that has this address, and the offset in its file.
    pub fn module(&self, address: u64) -> Option<(&Module, u64)> {
        let module = self
            .modules
            .iter()
            .find(|m| (m.start..m.end).contains(&address))?;
        Some((module, address - module.start + module.offset))
    }
}

impl Acquisition {
    /// An entry of the ring. None: it is not complete.
    fn of_event(event: &[u8]) -> Option<Self> {
        let event = words(event);
        let [thread, node] = halves(event[5]);
        (thread != 0 && event[4] != 0).then(|| Self {
            thread: thread.into(),
            node: Some(node),
            mutex: event[0],
            call: Some(event[1].wrapping_sub(1)),
            begun: some(event[2]),
            acquired: some(event[3]),
            released: some(event[4]),
        })
    }
}

impl Module {
    /// The address where the code was mapped, and its offset in the file.
    pub fn start(&self) -> (u64, u64) {
        (self.start, self.offset)
    }

    fn of(bytes: &[u8]) -> Self {
        use std::os::unix::ffi::OsStrExt;
        let numbers = words(&bytes[..24]);
        let path = bytes[24..]
            .split(|&byte| byte == 0)
            .next()
            .unwrap_or_default();
        Self {
            start: numbers[0],
            end: numbers[1],
            offset: numbers[2],
            path: std::ffi::OsStr::from_bytes(path).into(),
        }
    }
}

impl Site {
    /// The property for which `lockworks run` leaves the mutex to glibc. None: it serves the mutex.
    pub fn left_to_glibc(&self) -> Option<&'static str> {
        let bit = BITS.iter().position(|bit| self.kind & bit != 0)?;
        Some(LEFT_TO_GLIBC[bit].0)
    }

    fn of(site: &[u64], mutexes: &[u8]) -> Self {
        let mutex = (site[0] as u32) as usize * MUTEX_BYTES as usize;
        let mutex = mutexes.get(mutex..mutex + MUTEX_BYTES as usize);
        let mutex = mutex.map_or_else(Vec::new, words);
        let [_, kind] = halves(mutex.last().copied().unwrap_or_default());
        Self {
            mutex: mutex.first().copied().unwrap_or_default(),
            kind,
            call: site[1].wrapping_sub(1),
            counts: Counts {
                acquisitions: site[2],
                contended: site[3],
                after_condition: site[4],
                still_waiting: 0,
                still_waiting_ns: 0,
                waited_ns: site[5],
                waited_max_ns: site[6],
                held_ns: site[7],
                held_max_ns: site[8],
                from_same_thread: site[9],
                from_same_node: site[10],
                from_other_node: site[11],
            },
            threads: [site[12], site[13], site[14], site[15]],
        }
    }
}

fn words(bytes: &[u8]) -> Vec<u64> {
    let words = bytes.as_chunks().0.iter();
    words.map(|word| u64::from_ne_bytes(*word)).collect()
}

/// The acquisition of a mutex that is held, and the number of the site that made it. None: it is free.
fn held(mutex: &[u8]) -> Option<(Acquisition, usize)> {
    let mutex = words(mutex);
    let ([site, holder], [depth, _]) = (halves(mutex[3]), halves(mutex[4]));
    let acquisition = Acquisition {
        thread: holder.into(),
        node: None,
        mutex: mutex[0],
        call: None,
        begun: some(mutex[2]),
        acquired: some(mutex[1]),
        released: None,
    };
    (depth != 0 && site != 0).then_some((acquisition, site as usize - 1))
}

/// The two 32-bit numbers in a word, the one at the lower address first.
fn halves(word: u64) -> [u32; 2] {
    let bytes = word.to_ne_bytes();
    let halves = bytes.as_chunks().0;
    [0, 1].map(|half| u32::from_ne_bytes(halves[half]))
}

/// A number that is 0 if there is none.
fn some(number: u64) -> Option<u64> {
    (number != 0).then_some(number)
}
