//! The record that a process leaves. `interpose/profile/record.h` has its layout.

use std::collections::HashMap;
use std::ffi::OsStr;
use std::fs::File;
use std::mem::offset_of;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use anyhow::{Result, ensure};

use crate::clock::{Clock, Now};
use crate::layout::{
    self, Event, Lock, LockSite, Mode, Profile, Wait, What, lock_and_mode, table, what,
};

/// Why locks with these properties are left to glibc. An rwlock can have the first one only.
pub const LEFT_TO_GLIBC: [(&str, &str); 4] = [
    (
        "process-shared",
        "the other processes may not have its library",
    ),
    ("robust", "its locks do not notice that their holder dies"),
    ("priority-inheriting", "its locks do not lend priorities"),
    ("priority-protecting", "its locks do not raise priorities"),
];

/// The bits of these properties in the kind of a lock, in the same order.
const BITS: [u32; 4] = [128, 16, 32, 64];

/// The state of a cause that another process has written completely.
const COMPLETE: u32 = 2;

/// The record of one process.
#[derive(Default)]
pub struct Record {
    /// The name of the file.
    pub file: String,
    /// The clock of the record.
    pub clock: Clock,
    /// The number of the process.
    pub pid: u64,
    /// The number of threads that have locked a mutex or an rwlock.
    pub threads: u64,
    /// The number of NUMA nodes, or of last-level caches if `LOCKWORKS_NEAR` says so.
    pub nodes: u64,
    /// Acquisitions that had no room in the record.
    pub lost: u64,
    /// The contended ones among the lost acquisitions.
    pub lost_contended: u64,
    /// Looks at what a holder does that had no room in the record.
    pub lost_causes: u64,
    /// Waits for conditions, or signals, that had no room in the record.
    pub lost_conditions: u64,
    /// The time that threads waited for spinlocks, in nanoseconds.
    pub spun_ns: u64,
    /// The executable and the libraries of the process.
    pub modules: Vec<Module>,
    /// The locks at each place where they were locked.
    pub sites: Vec<Site>,
    /// The waits for conditions, and their signals.
    pub conditions: Vec<Condition>,
    /// Those that had not ended when the process did, and if a timeline is asked for, the most recent ones.
    pub acquisitions: Vec<Acquisition>,
    /// The locks that a thread held alone when the process ended, by address: the address of the last byte
    /// of the call that locked each.
    pub held: HashMap<u64, u64>,
    /// The stacks of some acquisitions.
    pub samples: Vec<Sample>,
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
    /// The number of the file in its file system. None: it is not known.
    inode: Option<u64>,
}

/// The stacks of an acquisition and of its release.
pub struct Sample {
    /// The address of the lock.
    pub lock: u64,
    /// The mode.
    pub mode: Mode,
    /// The address of the last byte of the call that locked it.
    pub call: u64,
    /// The wait time. 0: it was not contended.
    pub waited_ns: u64,
    /// The number of acquisitions that it stands for.
    pub stands_for: u64,
    /// The stack of the acquisition.
    pub acquired: Box<layout::Frames>,
    /// That of the release, if there was one.
    pub released: Box<layout::Frames>,
}

/// A lock in a mode at a place in the code.
#[derive(Clone)]
pub struct Site {
    /// The address of the lock.
    pub lock: u64,
    /// The mode.
    pub mode: Mode,
    /// The address of the last byte of the call that locked it.
    pub call: u64,
    /// The kind of the lock, as glibc stores it.
    pub kind: u32,
    /// The counts.
    pub counts: Counts,
    /// A bit for each thread, by its number modulo 256.
    pub threads: [u64; 4],
    /// Why waits took long.
    pub causes: Vec<Cause>,
}

/// The waits for a condition at a place, or its signals there.
pub struct Condition {
    /// The address of the condition.
    pub address: u64,
    /// The address of the last byte of the calls.
    pub call: u64,
    /// Whether these are signals.
    pub is_signal: bool,
    /// The number of calls.
    pub calls: u64,
    /// The waits that ended at their deadline.
    pub timed_out: u64,
    /// The wake-ups after which the thread waited again, without unlocking the mutex in between.
    pub for_nothing: u64,
    /// The time of the waits, in nanoseconds.
    pub waited_ns: u64,
    /// The longest of them.
    pub waited_max_ns: u64,
}

/// Time that waits took long for one cause.
#[derive(Clone)]
pub struct Cause {
    /// The activity of the lock's holder.
    pub what: What,
    /// The system call, the address of the instruction or of the last byte of the call, or the error. It
    /// depends on what the holder did.
    pub detail: u64,
    /// The address of the last byte of the call with which the holder locked it. None: it is not known.
    pub held: Option<u64>,
    /// The time, in nanoseconds.
    pub ns: u64,
    /// The number of waits that had this cause first.
    pub waits: u64,
}

/// An acquisition of a lock, or a wait for it. Its times are in nanoseconds.
#[derive(Clone, Copy)]
pub struct Acquisition {
    /// The number of the thread, from 1.
    pub thread: u64,
    /// The NUMA node of the thread. None: it is not known.
    pub node: Option<u32>,
    /// The address of the lock.
    pub lock: u64,
    /// The address of the last byte of the call that locked it. None: it is not known.
    pub call: Option<u64>,
    /// When the thread began to wait. None: the lock was free.
    pub begun: Option<u64>,
    /// When the thread had the lock. None: it still waited when the process ended.
    pub acquired: Option<u64>,
    /// When the thread released it. None: it still held it when the process ended.
    pub released: Option<u64>,
}

/// The counts of a lock at a place. In a sum of counts, the longest time is the longer of the two.
#[derive(Clone, Copy, Default, serde::Serialize)]
pub struct Counts {
    /// How often the lock was acquired.
    pub acquisitions: u64,
    /// How often another thread was in the way at that moment.
    pub contended: u64,
    /// How often a mutex was locked again after a wait for a condition.
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
    /// How often the last holder was the same thread; of an rwlock, the last writer for a writer.
    pub from_same_thread: u64,
    /// How often the last holder was another thread on the same NUMA node.
    pub from_same_node: u64,
    /// How often the last holder was a thread on another NUMA node.
    pub from_other_node: u64,
}

impl Counts {
    /// A part of these counts: a share of the acquisitions, and a share of the wait time.
    pub fn part(&self, share: f64, share_of_waits: f64) -> Self {
        let part = |figure: u64| (figure as f64 * share).round() as u64;
        let part_of_waits = |figure: u64| (figure as f64 * share_of_waits).round() as u64;
        Self {
            acquisitions: part(self.acquisitions),
            contended: part(self.contended),
            after_condition: part(self.after_condition),
            still_waiting: part(self.still_waiting),
            still_waiting_ns: part(self.still_waiting_ns),
            waited_ns: part_of_waits(self.waited_ns),
            held_ns: part(self.held_ns),
            from_same_thread: part(self.from_same_thread),
            from_same_node: part(self.from_same_node),
            from_other_node: part(self.from_other_node),
            ..*self
        }
    }
}

impl std::ops::AddAssign for Counts {
    fn add_assign(&mut self, other: Self) {
        self.acquisitions = self.acquisitions.saturating_add(other.acquisitions);
        self.contended = self.contended.saturating_add(other.contended);
        self.after_condition = self.after_condition.saturating_add(other.after_condition);
        self.still_waiting = self.still_waiting.saturating_add(other.still_waiting);
        self.still_waiting_ns = self.still_waiting_ns.saturating_add(other.still_waiting_ns);
        self.waited_ns = self.waited_ns.saturating_add(other.waited_ns);
        self.waited_max_ns = self.waited_max_ns.max(other.waited_max_ns);
        self.held_ns = self.held_ns.saturating_add(other.held_ns);
        self.held_max_ns = self.held_max_ns.max(other.held_max_ns);
        self.from_same_thread = self.from_same_thread.saturating_add(other.from_same_thread);
        self.from_same_node = self.from_same_node.saturating_add(other.from_same_node);
        self.from_other_node = self.from_other_node.saturating_add(other.from_other_node);
    }
}

impl Record {
    /// Reads the record in a file. None: the process ended before it began its record.
    /// Waits in progress last until the process exits, or until `now` if it does not.
    pub fn read(path: &Path, now: Now) -> Result<Option<Self>> {
        let file = File::open(path)?;
        let number = |at: usize| -> Result<u64> { Ok(table(&file, at, 1)?[0]) };
        let magic = number(offset_of!(Profile, magic))?;
        if magic == 0 {
            return Ok(None);
        }
        ensure!(
            magic == layout::LW_PROFILE_MAGIC as u64
                && number(offset_of!(Profile, size))? == size_of::<Profile>() as u64,
            "another version of the library wrote it; install library and command again"
        );
        ensure!(
            file.metadata()?.len() >= size_of::<Profile>() as u64,
            "it is cut off"
        );
        let threads = number(offset_of!(Profile, threads))?;
        // Tables of a process that has locked nothing are empty.
        let all = |length| if threads == 0 { 0 } else { length };
        let used = |at, most| Ok::<_, anyhow::Error>((number(at)? as usize).min(most));
        let modules = used(offset_of!(Profile, modules), layout::LW_PROFILE_MODULES)?;
        let sites = used(offset_of!(Profile, sites), layout::LW_PROFILE_SITES)?;
        let events = used(offset_of!(Profile, events), layout::LW_PROFILE_EVENTS)?;
        let clock = Clock::new(
            number(offset_of!(Profile, has_tsc))? != 0,
            number(offset_of!(Profile, time))?,
            number(offset_of!(Profile, at_ns))?,
            now,
        );
        let ended = clock
            .at(number(offset_of!(Profile, ended))?)
            .unwrap_or(now.ns);

        let causes: Vec<layout::Cause> = table(
            &file,
            offset_of!(Profile, cause),
            all(layout::LW_PROFILE_CAUSES),
        )?;
        let waits: Vec<Wait> = table(
            &file,
            offset_of!(Profile, wait),
            all(layout::LW_PROFILE_WAITS),
        )?;
        let modules = table(&file, offset_of!(Profile, module), modules)?;
        let locks: Vec<Lock> = table(
            &file,
            offset_of!(Profile, lock),
            all(layout::LW_PROFILE_LOCKS),
        )?;
        let sites: Vec<LockSite> = table(&file, offset_of!(Profile, site), sites)?;
        let stacks = used(offset_of!(Profile, stacks), layout::LW_PROFILE_STACKS)?;
        let stacks: Vec<layout::Stack> = table(&file, offset_of!(Profile, stack), stacks)?;
        let events: Vec<Event> = table(&file, offset_of!(Profile, event), events)?;
        let conditions: Vec<layout::Condition> = table(
            &file,
            offset_of!(Profile, condition),
            all(layout::LW_PROFILE_CONDITIONS),
        )?;
        let name = path.file_name().unwrap_or_default();
        let mut record = Self {
            file: name.to_string_lossy().into_owned(),
            clock,
            pid: number(offset_of!(Profile, pid))?,
            threads,
            nodes: number(offset_of!(Profile, nodes))?,
            lost: number(offset_of!(Profile, lost))?,
            lost_contended: number(offset_of!(Profile, lost_contended))?,
            lost_causes: number(offset_of!(Profile, lost_causes))?,
            lost_conditions: number(offset_of!(Profile, lost_conditions))?,
            spun_ns: clock.span(number(offset_of!(Profile, spun))?),
            modules: modules.iter().map(Module::of).collect(),
            sites: Vec::new(),
            conditions: conditions
                .iter()
                .filter(|condition| condition.state == COMPLETE)
                .map(|condition| Condition::of(condition, &clock))
                .collect(),
            acquisitions: events
                .iter()
                .filter_map(|event| Acquisition::of_event(event, &clock))
                .collect(),
            held: HashMap::new(),
            samples: stacks
                .iter()
                .filter_map(|stack| Sample::of(stack, &sites, &locks, &clock))
                .collect(),
            ended,
        };
        for lock in &locks {
            let site = sites.get((lock.first_site as usize).wrapping_sub(1));
            if let (Some(site), true) = (site, lock.depth != 0) {
                let held = Acquisition::held(lock, site, &clock);
                record.held.extend(held.call.map(|call| (held.lock, call)));
                record.acquisitions.push(held);
            }
        }
        let sites = sites.iter().filter(|site| site.caller != 0);
        record.sites = sites
            .filter_map(|site| Site::of(site, &locks, &clock))
            .collect();
        // Without a key it is free, and without a time it has not begun.
        for wait in waits.iter().filter(|wait| wait.key != 0 && wait.begun != 0) {
            let awaited = Acquisition::awaited(wait, &clock);
            let begun = awaited.begun.unwrap_or(ended);
            record.add_wait(wait, ended.saturating_sub(begun));
            record.acquisitions.push(awaited);
        }
        for cause in causes.iter().filter(|cause| cause.state == COMPLETE) {
            record.add_cause(cause);
        }
        record.distribute_unwatched();
        Ok(Some(record))
    }

    /// Adds a wait that was in progress when the process ended.
    fn add_wait(&mut self, wait: &Wait, waited_ns: u64) {
        let counts = Counts {
            still_waiting: 1,
            still_waiting_ns: waited_ns,
            waited_ns,
            waited_max_ns: waited_ns,
            ..Counts::default()
        };
        self.add_site(wait.key, wait.caller.wrapping_sub(1), counts);
    }

    /// Adds a cause to the site of the waits, which may be new: timed waits that fail have none.
    fn add_cause(&mut self, cause: &layout::Cause) {
        let (lock, mode) = lock_and_mode(cause.key);
        let call = cause.caller.wrapping_sub(1);
        let is_here = |site: &Site| (site.lock, site.mode, site.call) == (lock, mode, call);
        let at = self.sites.iter().position(is_here).unwrap_or_else(|| {
            self.add_site(cause.key, call, Counts::default());
            self.sites.len() - 1
        });
        let what = what(cause.what);
        self.sites[at].causes.push(Cause {
            what,
            detail: match what {
                What::Nested => cause.detail.wrapping_sub(1),
                _ => cause.detail,
            },
            held: some(cause.holder).map(|caller| caller - 1),
            // If the record was read while time moved to another cause, the sum may be negative.
            ns: cause.ns.cast_signed().max(0).cast_unsigned(),
            waits: cause.waits,
        });
    }

    /// Distributes the time of waits at which nobody looked as the causes that were seen: at the same place,
    /// else at the other places of the lock.
    fn distribute_unwatched(&mut self) {
        let seen = |site: &Site| -> Vec<Cause> {
            let seen = site.causes.iter();
            seen.filter(|cause| cause.what != What::Unwatched)
                .cloned()
                .collect()
        };
        let mut by_lock: HashMap<(u64, Mode), Vec<Cause>> = HashMap::new();
        for site in &self.sites {
            let of_lock = by_lock.entry((site.lock, site.mode)).or_default();
            of_lock.extend(seen(site));
        }
        for site in &mut self.sites {
            let unwatched = site.causes.iter();
            let unwatched: u64 = unwatched
                .filter(|cause| cause.what == What::Unwatched)
                .map(|cause| cause.ns)
                .fold(0, u64::saturating_add);
            let mut like = seen(site);
            if like.iter().all(|cause| cause.ns == 0) {
                like.clone_from(&by_lock[&(site.lock, site.mode)]);
            }
            let all: f64 = like.iter().map(|cause| cause.ns as f64).sum();
            if unwatched == 0 || all == 0.0 {
                continue;
            }
            site.causes
                .iter_mut()
                .filter(|cause| cause.what == What::Unwatched)
                .for_each(|cause| cause.ns = 0);
            site.causes.extend(like.into_iter().map(|cause| Cause {
                ns: (unwatched as f64 * cause.ns as f64 / all) as u64,
                waits: 0,
                ..cause
            }));
        }
    }

    fn add_site(&mut self, key: u64, call: u64, counts: Counts) {
        let (lock, mode) = lock_and_mode(key);
        let known = self.sites.iter().find(|site| site.lock == lock);
        self.sites.push(Site {
            lock,
            mode,
            call,
            kind: known.map_or(0, |site| site.kind),
            counts,
            threads: [0; 4],
            causes: Vec::new(),
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

impl Cause {
    /// A share of it.
    pub fn part(&self, share: f64) -> Self {
        Self {
            ns: (self.ns as f64 * share).round() as u64,
            waits: (self.waits as f64 * share).round() as u64,
            ..self.clone()
        }
    }
}

impl Acquisition {
    /// An entry of the ring. None: it is not complete.
    fn of_event(event: &Event, clock: &Clock) -> Option<Self> {
        (event.thread != 0 && event.released != 0).then(|| Self {
            thread: event.thread.into(),
            node: Some(event.node),
            lock: lock_and_mode(event.key).0,
            call: Some(event.caller.wrapping_sub(1)),
            begun: clock.at(event.begun),
            acquired: clock.at(event.acquired),
            released: clock.at(event.released),
        })
    }

    /// That of the thread that holds a lock alone.
    fn held(lock: &Lock, site: &LockSite, clock: &Clock) -> Self {
        Self {
            thread: lock.holder.into(),
            node: None,
            lock: lock_and_mode(lock.key).0,
            call: Some(site.caller.wrapping_sub(1)),
            begun: clock.at(lock.begun),
            acquired: clock.at(lock.since),
            released: None,
        }
    }

    /// That of a thread that still waited.
    fn awaited(wait: &Wait, clock: &Clock) -> Self {
        Self {
            thread: wait.thread,
            node: None,
            lock: lock_and_mode(wait.key).0,
            call: some(wait.caller).map(|caller| caller - 1),
            begun: clock.at(wait.begun),
            acquired: None,
            released: None,
        }
    }
}

impl Condition {
    fn of(condition: &layout::Condition, clock: &Clock) -> Self {
        Self {
            address: condition.cond,
            call: condition.caller.wrapping_sub(1),
            is_signal: condition.is_signal != 0,
            calls: condition.calls,
            timed_out: condition.timed_out,
            for_nothing: condition.for_nothing,
            waited_ns: clock.span(condition.waited),
            waited_max_ns: clock.span(condition.waited_max),
        }
    }
}

impl Module {
    /// Code of a file that is mapped at these addresses.
    pub fn new(start: u64, end: u64, offset: u64, path: PathBuf, inode: u64) -> Self {
        Self {
            start,
            end,
            offset,
            path,
            inode: Some(inode),
        }
    }

    /// Opens the file. None: it is gone, or another file has its path now. The devices of files are not compared,
    /// since btrfs and overlayfs give a mapping another one than the file.
    pub fn open(&self) -> Option<File> {
        let file = open_regular(&self.path)?;
        let inode = file.metadata().ok()?.ino();
        self.inode
            .is_none_or(|known| known == inode)
            .then_some(file)
    }

    /// The address where the code was mapped, and its offset in the file.
    pub fn start(&self) -> (u64, u64) {
        (self.start, self.offset)
    }

    fn of(module: &layout::Module) -> Self {
        let mut path = module.path.split(|&byte| byte == 0);
        Self {
            start: module.start,
            end: module.end,
            offset: module.offset,
            path: OsStr::from_bytes(path.next().unwrap_or_default()).into(),
            inode: None,
        }
    }
}

impl Sample {
    /// None: it is not complete.
    fn of(
        stack: &layout::Stack,
        sites: &[LockSite],
        locks: &[Lock],
        clock: &Clock,
    ) -> Option<Self> {
        let site = sites.get((stack.site as usize).wrapping_sub(1))?;
        let (lock, mode) = lock_and_mode(locks.get(site.lock as usize)?.key);
        Some(Self {
            lock,
            mode,
            call: site.caller.wrapping_sub(1),
            waited_ns: clock.span(stack.waited),
            stands_for: stack.stands_for,
            acquired: Box::new(stack.acquired),
            released: Box::new(stack.released),
        })
    }
}

impl Site {
    /// The property for which `lockworks run` leaves the lock to glibc. None: it serves the lock.
    pub fn left_to_glibc(&self) -> Option<&'static str> {
        let bit = BITS.iter().position(|bit| self.kind & bit != 0)?;
        Some(LEFT_TO_GLIBC[bit].0)
    }

    /// None: the record is damaged.
    fn of(site: &LockSite, locks: &[Lock], clock: &Clock) -> Option<Self> {
        let of = locks.get(site.lock as usize)?;
        let (lock, mode) = lock_and_mode(of.key);
        Some(Self {
            lock,
            mode,
            kind: of.kind,
            call: site.caller.wrapping_sub(1),
            counts: Counts {
                acquisitions: site.acquisitions,
                contended: site.contended,
                after_condition: site.after_condition,
                still_waiting: 0,
                still_waiting_ns: 0,
                waited_ns: clock.span(site.waited),
                waited_max_ns: clock.span(site.waited_max),
                held_ns: clock.span(site.held),
                held_max_ns: clock.span(site.held_max),
                from_same_thread: site.from_same_thread,
                from_same_node: site.from_same_node,
                from_other_node: site.from_other_node,
            },
            threads: site.threads,
            causes: Vec::new(),
        })
    }
}

/// Opens a file. None: it is not there, or no regular file; to open a pipe would wait for a writer.
pub fn open_regular(path: &Path) -> Option<File> {
    let mut options = File::options();
    let options = options.read(true).custom_flags(nix::libc::O_NONBLOCK);
    let file = options.open(path).ok()?;
    file.metadata().ok()?.is_file().then_some(file)
}

/// A number that is 0 if there is none.
fn some(number: u64) -> Option<u64> {
    (number != 0).then_some(number)
}
