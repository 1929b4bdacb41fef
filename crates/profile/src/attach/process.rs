//! A process that runs: its threads, its memory and its code, as the kernel shows them to a process of the
//! same user. Nothing is stopped, and nothing is loaded into the process.

use std::fs;
use std::io::{self, IoSliceMut, Read};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use anyhow::{Error, Result, anyhow, bail};
use nix::errno::Errno;
use nix::sys::uio::{RemoteIoVec, process_vm_readv};
use nix::unistd::{Pid, Uid, User, geteuid};

use crate::record::{Module, Record};
use crate::stack::Memory;

/// The bit among the flags of a process that says that it is a thread of the kernel.
const KERNEL_THREAD: u64 = 0x0020_0000;

/// The bytes of a stack that are read at once.
const READ: usize = 8192;

/// The setting of the security module Yama that says who may read the memory of a process.
const YAMA: &str = "/proc/sys/kernel/yama/ptrace_scope";

/// A process.
pub struct Process {
    /// Its number.
    pub pid: u32,
    /// A thread of it that has not ended. The first thread may end before the others.
    alive: u32,
    /// The name of its program.
    pub name: String,
    /// Its program and arguments. Empty: it has overwritten them.
    pub command: Vec<String>,
    /// The code that is mapped, for names of places.
    pub record: Record,
    /// The directory that the paths of its files begin at. None: that of this process.
    root: Option<PathBuf>,
    /// The addresses of the heap.
    heap: (u64, u64),
}

/// The memory of a process from a stack pointer on.
pub struct StackMemory<'a> {
    process: &'a Process,
    begin: u64,
    bytes: Vec<u8>,
}

impl Memory for StackMemory<'_> {
    fn word(&self, address: u64) -> Option<u64> {
        let at = usize::try_from(address.checked_sub(self.begin)?).ok()?;
        match self.bytes.get(at..at.checked_add(8)?) {
            Some(bytes) => Some(u64::from_ne_bytes(bytes.try_into().ok()?)),
            None => {
                let bytes = self.process.memory(address, 8);
                Some(u64::from_ne_bytes(bytes.try_into().ok()?))
            }
        }
    }
}

/// The state of a thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// It has a CPU, or could run.
    Runs,
    /// It is in no system call, and does not run: it waits for a page, or is stopped.
    Faults(Frame),
    /// It sleeps in a system call with these arguments.
    Sleeps(usize, [u64; 6], Frame),
}

/// Where a thread left its code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Frame {
    /// The stack pointer.
    pub stack: u64,
    /// The address of the next instruction.
    pub code: u64,
}

impl State {
    /// What `/proc/PID/task/TID/syscall` says. None: it says nothing that is known.
    pub fn parse(text: &str) -> Option<Self> {
        let mut words = text.split_whitespace();
        let first = words.next()?;
        if first == "running" {
            return Some(Self::Runs);
        }
        let numbers: Option<Vec<u64>> = words.map(hexadecimal).collect();
        match (first.parse::<i64>().ok()?, numbers?.as_slice()) {
            // A thread that has ended has no stack.
            (-1, &[0, _]) => None,
            (-1, &[stack, code]) => Some(Self::Faults(Frame { stack, code })),
            (number, &[a, b, c, d, e, f, stack, code]) => {
                let number = usize::try_from(number).ok()?;
                Some(Self::Sleeps(
                    number,
                    [a, b, c, d, e, f],
                    Frame { stack, code },
                ))
            }
            _ => None,
        }
    }
}

fn hexadecimal(word: &str) -> Option<u64> {
    u64::from_str_radix(word.strip_prefix("0x")?, 16).ok()
}

impl Process {
    /// A process that may be looked at.
    ///
    /// # Errors
    /// It does not exist, is none, or may not be looked at: the message says why.
    pub fn open(pid: u32) -> Result<Self> {
        let at = PathBuf::from(format!("/proc/{pid}"));
        let Ok(status) = fs::read_to_string(at.join("status")) else {
            bail!("there is no process {pid}; `ps -e` lists all");
        };
        let field = |name: &str| field(&status, name);
        if let Some(leader) = field("Tgid").filter(|leader| *leader != pid.to_string()) {
            bail!("{pid} is a thread of process {leader}; type --pid {leader}");
        }
        if is_kernel_thread(&at) {
            bail!(
                "{pid} is a thread of the kernel ({}), which has no mutexes",
                field("Name").unwrap_or("?")
            );
        }
        let threads = thread_numbers(&at).unwrap_or_default();
        let leader_ended = field("State").is_some_and(|state| state.starts_with(['Z', 'X']));
        let others = threads.iter().find(|tid| **tid != pid);
        let alive = match (leader_ended, others) {
            (false, _) => pid,
            (true, Some(other)) => *other,
            (true, None) => {
                bail!("process {pid} has ended; its parent has not asked for its status")
            }
        };
        let mut process = Self {
            pid,
            alive,
            name: field("Name").unwrap_or("?").to_owned(),
            command: words(&fs::read(at.join("cmdline")).unwrap_or_default()),
            record: Record::default(),
            root: None,
            heap: (0, 0),
        };
        if let Err(error) = process
            .thread_state(alive)
            .and_then(|_| process.read_code())
        {
            return Err(process.refusal(&error, &status));
        }
        let program = process.path("exe");
        let mut kind = [0; 5];
        let mut opened = fs::File::open(program);
        if let Ok(file) = &mut opened
            && file.read_exact(&mut kind).is_ok()
            && kind == *b"\x7fELF\x01"
        {
            bail!("process {pid} is a program of 32 bits; only those of 64 bits can be looked at");
        }
        Ok(process)
    }

    /// Why the process may not be looked at.
    fn refusal(&self, error: &io::Error, status: &str) -> Error {
        let owner =
            field(status, "Uid").and_then(|ids| ids.split_whitespace().next()?.parse().ok());
        let scope = fs::read_to_string(YAMA).ok();
        let scope = scope.and_then(|number| number.trim().parse().ok());
        let why = refusal(error, owner.map(Uid::from_raw), geteuid(), scope);
        anyhow!(
            "may not look into process {} ({}): {why}",
            self.pid,
            self.name
        )
    }

    fn path(&self, below: &str) -> PathBuf {
        PathBuf::from(format!("/proc/{}/task/{}/{below}", self.pid, self.alive))
    }

    /// The numbers of its threads. A first thread that has ended is among them as long as there are others.
    pub fn threads(&self) -> Vec<u32> {
        thread_numbers(&PathBuf::from(format!("/proc/{}", self.pid))).unwrap_or_default()
    }

    /// Has memory be read as that of this thread, since others may have ended.
    pub fn read_by(&mut self, tid: u32) {
        self.alive = tid;
    }

    /// The state of a thread.
    pub fn thread_state(&self, tid: u32) -> io::Result<State> {
        let text = self.read(tid, "syscall")?;
        State::parse(&text).ok_or_else(|| io::ErrorKind::InvalidData.into())
    }

    /// How often a thread has been given a CPU. It is the same as long as the thread sleeps. None: this
    /// kernel does not count that.
    pub fn turns(&self, tid: u32) -> Option<u64> {
        let text = self.read(tid, "schedstat").ok()?;
        let turns = text.split_whitespace().nth(2)?.parse().ok()?;
        (turns != 0).then_some(turns)
    }

    /// The name of a thread, and its number in its own namespace, as its mutexes have it.
    pub fn name_and_number(&self, tid: u32) -> Option<(String, u32)> {
        let status = self.read(tid, "status").ok()?;
        let inner = field(&status, "NSpid").and_then(|all| all.split_whitespace().last());
        let inner = inner.and_then(|number| number.parse().ok());
        Some((field(&status, "Name")?.to_owned(), inner.unwrap_or(tid)))
    }

    /// Whether a thread is stopped, by a signal or a debugger.
    pub fn is_stopped(&self, tid: u32) -> bool {
        let stat = self.read(tid, "stat").unwrap_or_default();
        let state = stat.rsplit(')').next().unwrap_or_default();
        state.trim_start().starts_with(['T', 't'])
    }

    fn read(&self, tid: u32, what: &str) -> io::Result<String> {
        let mut file = fs::File::open(format!("/proc/{}/task/{tid}/{what}", self.pid))?;
        // The kernel gives all of such a file at once.
        let mut bytes = [0; 4096];
        let length = file.read(&mut bytes)?;
        Ok(String::from_utf8_lossy(&bytes[..length]).into_owned())
    }

    /// Reads memory, as much as is there. Empty: none is.
    pub fn memory(&self, address: u64, length: usize) -> Vec<u8> {
        let mut bytes = vec![0; length];
        let from = RemoteIoVec {
            base: address as usize,
            len: length,
        };
        let pid = Pid::from_raw(self.alive.cast_signed());
        let read = process_vm_readv(pid, &mut [IoSliceMut::new(&mut bytes)], &[from]);
        bytes.truncate(read.unwrap_or(0));
        bytes
    }

    /// The memory from a stack pointer on.
    pub fn stack_memory(&self, begin: u64) -> StackMemory<'_> {
        StackMemory {
            process: self,
            begin,
            bytes: self.memory(begin, READ),
        }
    }

    /// Reads where code is mapped, which changes as libraries are loaded.
    pub fn read_code(&mut self) -> io::Result<()> {
        let maps = fs::read(self.path("maps"))?;
        let maps = String::from_utf8_lossy(&maps);
        if self.root.is_none() && self.is_elsewhere() {
            self.root = Some(self.path("root"));
        }
        self.record.pid = self.pid.into();
        self.record.modules.clear();
        for Mapping {
            start,
            end,
            offset,
            is_code,
            inode,
            path,
        } in maps.lines().filter_map(Mapping::parse)
        {
            if path == "[heap]" {
                self.heap = (start, end);
            }
            if is_code && path.starts_with('/') {
                let path = match &self.root {
                    Some(root) => root.join(path.trim_start_matches('/')),
                    None => path.into(),
                };
                self.record
                    .modules
                    .push(Module::new(start, end, offset, path, inode));
            }
        }
        Ok(())
    }

    /// Whether paths mean other files to the process than to this one.
    fn is_elsewhere(&self) -> bool {
        let root = |at: &Path| at.metadata().map(|found| (found.dev(), found.ino())).ok();
        let theirs = root(&self.path("root/."));
        theirs.is_some() && theirs != root(Path::new("/"))
    }

    /// Whether a library of this name is loaded.
    pub fn has_library(&self, name: &str) -> bool {
        let mut modules = self.record.modules.iter();
        modules.any(|module| module.path.file_name().is_some_and(|file| file == name))
    }

    /// Whether an address is in the heap that grows by `brk`.
    pub fn is_on_heap(&self, address: u64) -> bool {
        (self.heap.0..self.heap.1).contains(&address)
    }
}

/// The numbers of all processes with several threads that this user runs; for root, of all users.
pub fn visible() -> Vec<u32> {
    let me = geteuid();
    let own = std::process::id();
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    let numbers = entries.filter_map(|entry| {
        let pid: u32 = entry.file_name().to_str()?.parse().ok()?;
        let task = entry.path().join("task");
        // The links of this directory are its threads, itself and its parent.
        let has_threads = task.metadata().is_ok_and(|task| task.nlink() > 3);
        let is_mine = me.is_root()
            || entry
                .metadata()
                .is_ok_and(|found| found.uid() == me.as_raw());
        (pid != own && is_mine && has_threads).then_some(pid)
    });
    numbers.collect()
}

/// A line of `/proc/PID/maps`.
struct Mapping<'a> {
    start: u64,
    end: u64,
    offset: u64,
    is_code: bool,
    inode: u64,
    path: &'a str,
}

impl<'a> Mapping<'a> {
    fn parse(line: &'a str) -> Option<Self> {
        let number = |word| u64::from_str_radix(word, 16).ok();
        let mut words = line.splitn(6, ' ');
        let (start, end) = words.next()?.split_once('-')?;
        let (rights, offset) = (words.next()?, words.next()?);
        let inode = words.nth(1)?.parse().ok()?;
        let path = words.next().unwrap_or_default().trim_start();
        Some(Self {
            start: number(start)?,
            end: number(end)?,
            offset: number(offset)?,
            is_code: rights.contains('x'),
            inode,
            path: path.strip_suffix(" (deleted)").unwrap_or(path),
        })
    }
}

/// A line of a `status` file.
fn field<'a>(status: &'a str, name: &str) -> Option<&'a str> {
    let mut lines = status.lines();
    lines.find_map(|line| Some(line.strip_prefix(name)?.strip_prefix(':')?.trim()))
}

/// The words of a command line.
fn words(bytes: &[u8]) -> Vec<String> {
    let text = String::from_utf8_lossy(bytes);
    let words = text.trim_end_matches('\0').split('\0');
    words
        .filter(|_| !bytes.is_empty())
        .map(str::to_owned)
        .collect()
}

fn thread_numbers(process: &Path) -> io::Result<Vec<u32>> {
    let tasks = fs::read_dir(process.join("task"))?;
    let numbers = tasks.filter_map(|task| task.ok()?.file_name().to_str()?.parse().ok());
    let mut numbers: Vec<u32> = numbers.collect();
    numbers.sort_unstable();
    Ok(numbers)
}

fn is_kernel_thread(at: &Path) -> bool {
    let stat = fs::read_to_string(at.join("stat")).unwrap_or_default();
    let after_name = stat.rsplit(')').next().unwrap_or_default();
    let flags = after_name.split_whitespace().nth(6);
    let flags = flags.and_then(|flags| flags.parse::<u64>().ok());
    flags.is_some_and(|flags| flags & KERNEL_THREAD != 0)
}

/// Why a process of a user may not be looked at by another one, and what to do.
fn refusal(error: &io::Error, owner: Option<Uid>, me: Uid, scope: Option<u32>) -> String {
    let as_root = "run this command as root";
    match (error.raw_os_error().map(Errno::from_raw), owner, scope) {
        (Some(Errno::ENOENT | Errno::ESRCH), _, _) => "it has just ended".to_owned(),
        (Some(Errno::EACCES | Errno::EPERM), Some(owner), _) if owner != me && !me.is_root() => {
            let user = User::from_uid(owner).ok().flatten();
            let user = user.map_or_else(|| owner.to_string(), |user| user.name);
            format!("it is of user {user}; run this command as that user, or as root")
        }
        (Some(Errno::EACCES | Errno::EPERM), _, Some(3)) => {
            "kernel.yama.ptrace_scope is 3, which forbids it to everybody until the machine starts again".to_owned()
        }
        (Some(Errno::EACCES | Errno::EPERM), _, Some(2)) => {
            format!("kernel.yama.ptrace_scope is 2, which allows it to root only; {as_root}")
        }
        (Some(Errno::EACCES | Errno::EPERM), _, Some(1)) if !me.is_root() => format!(
            "kernel.yama.ptrace_scope is 1, which allows it to parents of the process only; {as_root}, or type \
             `sysctl kernel.yama.ptrace_scope=0` as root"
        ),
        (Some(Errno::EACCES | Errno::EPERM), _, _) => format!(
            "{error}; it has more rights than this command (CAP_SYS_PTRACE, in its user namespace), or a \
             container forbids it"
        ),
        _ => error.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use std::io;

    use nix::errno::Errno;
    use nix::unistd::Uid;

    use super::{Frame, Mapping, State, refusal, words};

    #[test]
    fn states_are_read_and_parts_of_them_are_none() {
        let frame = Frame {
            stack: 0x7ffd,
            code: 0x55,
        };
        let sleeps = State::Sleeps(202, [0x10, 0x80, 2, 0, 0, 0xffff_ffff], frame);
        let text = "202 0x10 0x80 0x2 0x0 0x0 0xffffffff 0x7ffd 0x55\n";
        assert_eq!(State::parse(text), Some(sleeps));
        assert_eq!(State::parse("-1 0x7ffd 0x55\n"), Some(State::Faults(frame)));
        assert_eq!(State::parse("running\n"), Some(State::Runs));
        assert_eq!(State::parse("-1 0x0 0x0\n"), None);
        for end in 0..text.len() - "0x55\n".len() {
            assert_eq!(State::parse(&text[..end]), None, "{end}");
        }
    }

    #[test]
    fn mappings_are_read() {
        let line = "7f00-7f80 r-xp 00002000 08:01 42                   /usr/lib/a b.so (deleted)";
        let code = Mapping::parse(line).expect("a mapping");
        assert_eq!(
            (code.start, code.end, code.offset, code.is_code),
            (0x7f00, 0x7f80, 0x2000, true)
        );
        assert_eq!(code.path, "/usr/lib/a b.so");
        let nameless = Mapping::parse("7f00-7f80 rw-p 00000000 00:00 0 ").expect("a mapping");
        assert_eq!((nameless.path, nameless.is_code), ("", false));
        assert!(Mapping::parse("7f00").is_none());
    }

    #[test]
    fn a_refusal_names_the_setting_or_the_user() {
        let forbidden = io::Error::from(Errno::EPERM);
        let (root, me, other) = (
            Uid::from_raw(0),
            Uid::from_raw(1000),
            Uid::from_raw(4_000_000),
        );
        for (owner, scope, expected) in [
            (me, Some(1), "kernel.yama.ptrace_scope=0"),
            (me, Some(2), "kernel.yama.ptrace_scope is 2"),
            (me, Some(3), "kernel.yama.ptrace_scope is 3"),
            (other, Some(1), "user 4000000"),
            (me, Some(0), "CAP_SYS_PTRACE"),
            (me, None, "CAP_SYS_PTRACE"),
        ] {
            let said = refusal(&forbidden, Some(owner), me, scope);
            assert!(said.contains(expected), "{said}");
        }
        let said = refusal(&forbidden, Some(me), root, Some(1));
        assert!(said.contains("CAP_SYS_PTRACE"), "{said}");
        let gone = refusal(&Errno::ESRCH.into(), Some(me), me, Some(1));
        assert_eq!(gone, "it has just ended");
    }

    #[test]
    fn a_command_line_may_be_empty() {
        assert_eq!(words(b"a\0b c\0"), ["a", "b c"]);
        assert!(words(b"").is_empty());
    }
}
