//! The record that a process leaves. `interpose/profile/record.h` has its layout.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, ensure};

const MAGIC: u64 = 0x3166_6f72_506b_6f4c;
const HEADER: usize = 16;
const MODULE_BYTES: u64 = 512;
const MUTEX_BYTES: u64 = 40;
const SITE_BYTES: u64 = 128;

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
    /// The executable and the libraries of the process.
    pub modules: Vec<Module>,
    /// The mutexes at each place where they were locked.
    pub sites: Vec<Site>,
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
    /// The counts.
    pub counts: Counts,
    /// A bit for each thread, by its number modulo 256.
    pub threads: [u64; 4],
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
    /// The wait time of contended acquisitions, in nanoseconds.
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
    /// Reads the record in a file. None: the process ended before it began its record.
    pub fn read(path: &Path) -> Result<Option<Self>> {
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
        let mut at = 8 * HEADER as u64;
        let mut table = |size: u64, most: u64, used: u64| -> Result<Vec<u8>> {
            let mut bytes = vec![0; (size * used) as usize];
            file.read_exact_at(&mut bytes, at)?;
            at += size * most;
            Ok(bytes)
        };
        let modules = table(MODULE_BYTES, most_modules, modules)?;
        let mutexes = table(MUTEX_BYTES, most_mutexes, most_mutexes)?;
        let sites = table(SITE_BYTES, most_sites, sites)?;
        let site = |bytes: &[u8]| Site::of(&words(bytes), &mutexes);
        Ok(Some(Self {
            pid,
            threads: header[11],
            nodes,
            lost: header[12],
            lost_contended: header[13],
            modules: modules
                .chunks(MODULE_BYTES as usize)
                .map(Module::of)
                .collect(),
            sites: sites.chunks(SITE_BYTES as usize).map(site).collect(),
        }))
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

impl Module {
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
    fn of(site: &[u64], mutexes: &[u8]) -> Self {
        let mutex = (site[0] as u32) as usize * MUTEX_BYTES as usize;
        let address = mutexes.get(mutex..mutex + 8);
        Self {
            mutex: address.map_or(0, |bytes| words(bytes)[0]),
            call: site[1].wrapping_sub(1),
            counts: Counts {
                acquisitions: site[2],
                contended: site[3],
                after_condition: site[4],
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
