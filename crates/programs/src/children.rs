//! Child processes. None outlives this process, however it ends.

use std::collections::HashSet;
use std::ffi::OsStr;
use std::fs;
use std::io;
use std::process::{Child, Command, ExitStatus};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread;
use std::time::{Duration, Instant};

use nix::errno::Errno;
use nix::sys::signal::{Signal, kill, killpg};
use nix::sys::wait::{Id, WaitPidFlag, WaitStatus, waitid, waitpid};
use nix::unistd::Pid;

/// How a program is ended early.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ending {
    /// SIGTERM ends the program, so that it can clean up: make removes unfinished files.
    Asked,
    /// SIGKILL ends the program, since it has nothing to clean up.
    Killed,
}

impl Ending {
    fn signal(self) -> Signal {
        match self {
            Self::Asked => Signal::SIGTERM,
            Self::Killed => Signal::SIGKILL,
        }
    }
}

/// A running program, which leads a process group of its own.
#[derive(Debug)]
pub struct Running {
    child: Child,
    ending: Ending,
}

struct Registry {
    groups: Vec<(Pid, Ending)>,
    closed: bool,
}

/// Whether this process has called [`adopt`].
static ADOPTS: AtomicBool = AtomicBool::new(false);

static REGISTRY: Mutex<Registry> = Mutex::new(Registry {
    groups: Vec::new(),
    closed: false,
});

/// The longest time that a program may take to clean up.
const CLEANING_UP: Duration = Duration::from_secs(5);

/// Makes a command that the system ends if this process is killed.
pub fn command(program: impl AsRef<OsStr>, ending: Ending) -> Command {
    let mut command = Command::new("setpriv");
    let signal = ending.signal().as_str();
    command
        .args(["--pdeathsig", &signal[3..], "--"])
        .arg(program);
    command
}

impl Running {
    /// Starts a program.
    pub fn start(command: &mut Command, ending: Ending) -> io::Result<Self> {
        use std::os::unix::process::CommandExt;
        let mut registry = REGISTRY.lock().expect("nobody panics with it");
        if registry.closed {
            drop(registry);
            wait_for_the_end();
        }
        let child = command.process_group(0).spawn()?;
        registry.groups.push((group(&child), ending));
        Ok(Self { child, ending })
    }

    /// The number of the process, and of its group.
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// Asks the program and its children to end, by SIGTERM.
    pub fn ask_to_end(&self) -> io::Result<()> {
        Ok(killpg(group(&self.child), Signal::SIGTERM)?)
    }

    /// The child process, whose standard streams are there if they are pipes.
    pub fn streams(&mut self) -> &mut Child {
        &mut self.child
    }

    /// Waits until the program ends.
    pub fn wait(&mut self) -> io::Result<ExitStatus> {
        let status = self.child.wait()?;
        self.forget();
        Ok(status)
    }

    /// Waits until the program ends, for `limit` at most. Then it is ended, with its children: by its
    /// signal, and by SIGKILL if that does not suffice. Returns its status, and whether it was ended.
    pub fn wait_for(&mut self, limit: Duration) -> io::Result<(ExitStatus, bool)> {
        let (process, signal) = (group(&self.child), self.ending.signal());
        let given_up = thread::scope(|scope| {
            let (ended, has_ended) = mpsc::channel::<()>();
            let watcher = scope.spawn(move || {
                let is_late = |wait| has_ended.recv_timeout(wait) == Err(RecvTimeoutError::Timeout);
                let late = is_late(limit);
                if late {
                    let _ = killpg(process, signal);
                    if is_late(CLEANING_UP) {
                        let _ = killpg(process, Signal::SIGKILL);
                    }
                }
                late
            });
            // The process stays, so no other can have its number, until the watcher is done.
            let options = WaitPidFlag::WEXITED | WaitPidFlag::WNOWAIT;
            while waitid(Id::Pid(process), options) == Err(Errno::EINTR) {}
            drop(ended);
            watcher.join().expect("the watcher does not panic")
        });
        Ok((self.wait()?, given_up))
    }

    /// Returns the status of the program if it has ended.
    pub fn try_wait(&mut self) -> io::Result<Option<ExitStatus>> {
        let status = self.child.try_wait()?;
        if status.is_some() {
            self.forget();
        }
        Ok(status)
    }

    fn forget(&self) {
        let mut registry = REGISTRY.lock().expect("nobody panics with it");
        // The thread that closed the registry is about to end this process, with the right status.
        if registry.closed {
            drop(registry);
            wait_for_the_end();
        }
        let gone = group(&self.child);
        registry.groups.retain(|(group, _)| *group != gone);
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        if matches!(self.child.try_wait(), Ok(None)) {
            let _ = killpg(group(&self.child), self.ending.signal());
            let _ = self.child.wait();
        }
        self.forget();
    }
}

fn group(child: &Child) -> Pid {
    Pid::from_raw(child.id().cast_signed())
}

/// Whether a process of a group has not ended. The group of ended processes exists until their parents
/// have collected all of them, which init need not do soon.
fn runs(group: Pid) -> bool {
    if killpg(group, None) == Err(Errno::ESRCH) {
        return false;
    }
    let Ok(processes) = fs::read_dir("/proc") else {
        return true;
    };
    let group = group.to_string();
    let mut stats =
        processes.filter_map(|entry| fs::read_to_string(entry.ok()?.path().join("stat")).ok());
    stats.any(|stat| {
        // PID (NAME) STATE PARENT GROUP ...; the name may contain anything.
        let mut fields = stat.rsplit(") ").next().unwrap_or_default().split(' ');
        let has_ended = matches!(fields.next(), Some("Z" | "X"));
        fields.nth(1) == Some(group.as_str()) && !has_ended
    })
}

/// Has processes that lose their parent become children of this process: those that a program leaves in the
/// background.
pub fn adopt() -> io::Result<()> {
    ADOPTS.store(true, Ordering::Relaxed);
    Ok(nix::sys::prctl::set_child_subreaper(true)?)
}

/// Collects the children of this process that have ended, when no [`Running`] program is left. Returns whether
/// there are others.
fn has_children() -> bool {
    loop {
        match waitpid(None, Some(WaitPidFlag::WNOHANG)) {
            Ok(WaitStatus::Exited(..) | WaitStatus::Signaled(..)) | Err(Errno::EINTR) => {}
            Ok(_) => return true,
            Err(_) => return false,
        }
    }
}

/// The children of this process that have not ended. This reads a file of each process of the system.
fn children() -> Vec<Pid> {
    let Ok(processes) = fs::read_dir("/proc") else {
        return Vec::new();
    };
    let own = std::process::id().to_string();
    let is_child = |process: &fs::DirEntry| {
        let stat = fs::read_to_string(process.path().join("stat")).unwrap_or_default();
        let mut fields = stat.rsplit(") ").next().unwrap_or_default().split(' ');
        !matches!(fields.next(), Some("Z" | "X")) && fields.next() == Some(own.as_str())
    };
    let children = processes.filter_map(Result::ok).filter(is_child);
    let pids = children.filter_map(|child| child.file_name().to_str()?.parse().ok());
    pids.map(Pid::from_raw).collect()
}

/// What became of the processes that a program left in the background.
#[derive(Debug, Default, PartialEq)]
pub struct Left {
    /// Whether they were ended.
    pub were_ended: bool,
    /// Those that could not be ended: they are of another user, or the kernel does not let them end.
    pub remain: Vec<Pid>,
}

impl Left {
    /// What is to be said of those that remain. None: there are none.
    pub fn warning(&self) -> Option<String> {
        let first = self.remain.first()?;
        Some(format!(
            "process {first}, which the program has left in the background, goes on: it is of another user, or SIGKILL \
             does not end it; look at it by `ps -p {first}`"
        ))
    }
}

/// The time between two looks at which processes are left.
const LOOK: Duration = Duration::from_millis(100);

/// Waits until a program that has ended has left no process in the background, and calls `say` with those that
/// are left, now and then. Ends them when `is_over` returns true: by SIGTERM, and by SIGKILL if that does not
/// suffice. Gives up those that remain even then.
pub fn wait_for_left(mut say: impl FnMut(&[Pid]), mut is_over: impl FnMut() -> bool) -> Left {
    let mut looked: Option<Instant> = None;
    while has_children() {
        if looked.is_none_or(|at| at.elapsed() > LOOK) {
            say(&children());
            looked = Some(Instant::now());
        }
        if is_over() {
            let mut remain = end_children(Signal::SIGTERM);
            if !remain.is_empty() {
                remain = end_children(Signal::SIGKILL);
            }
            return Left {
                were_ended: true,
                remain,
            };
        }
        thread::sleep(Duration::from_millis(5));
    }
    Left::default()
}

/// Ends the children of this process by a signal, also those that become its children meanwhile. Returns those
/// that remain: after [`CLEANING_UP`], or at once if they are of other users.
fn end_children(signal: Signal) -> Vec<Pid> {
    let begin = Instant::now();
    let mut signalled = HashSet::new();
    let is_refused = |child: &Pid| kill(*child, None) == Err(Errno::EPERM);
    loop {
        let left = if has_children() {
            children()
        } else {
            Vec::new()
        };
        for child in &left {
            if signalled.insert(*child) {
                // It may have ended, or be of another user.
                let _ = kill(*child, signal);
            }
        }
        if left.iter().all(is_refused) || begin.elapsed() > CLEANING_UP {
            return left;
        }
        thread::sleep(Duration::from_millis(20));
    }
}

fn wait_for_the_end() -> ! {
    loop {
        thread::park();
    }
}

/// Ends all programs, and lets no others start. The caller must end this process next.
pub fn stop_all() {
    let groups = {
        let mut registry = REGISTRY.lock().expect("nobody panics with it");
        registry.closed = true;
        std::mem::take(&mut registry.groups)
    };
    for (group, ending) in &groups {
        let _ = killpg(*group, ending.signal());
    }
    let begin = Instant::now();
    while begin.elapsed() < CLEANING_UP && groups.iter().any(|(group, _)| runs(*group)) {
        thread::sleep(Duration::from_millis(20));
    }
    for (group, _) in &groups {
        let _ = killpg(*group, Signal::SIGKILL);
    }
    if ADOPTS.load(Ordering::Relaxed) {
        wait_for_left(|_| {}, || true);
    }
}

/// How a process ended, for a sentence: "exit status 1" or "signal 11 (SIGSEGV)".
pub fn in_words(status: ExitStatus) -> String {
    status.to_string().replacen(": ", " ", 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A test that takes so long hangs.
    const HANG: Duration = Duration::from_secs(600);

    fn await_end(group: Pid) {
        let begin = Instant::now();
        while runs(group) {
            assert!(begin.elapsed() < HANG, "a process of group {group} runs");
            thread::sleep(Duration::from_millis(10));
        }
    }

    #[test]
    fn dropping_ends_the_group() {
        let mut shell = command("sh", Ending::Killed);
        let running = Running::start(shell.args(["-c", "sleep 6000 & wait"]), Ending::Killed)
            .expect("there is a shell");
        let group = group(&running.child);
        assert!(runs(group));
        drop(running);
        await_end(group);
    }

    #[test]
    fn a_process_that_nobody_has_collected_does_not_run() {
        let mut shell = command("sh", Ending::Killed);
        let mut running =
            Running::start(shell.args(["-c", "exit 3"]), Ending::Killed).expect("there is a shell");
        let group = group(&running.child);
        await_end(group);
        assert_eq!(killpg(group, None), Ok(()), "the group exists");
        assert_eq!(running.wait().expect("a child").code(), Some(3));
        assert!(!runs(group));
    }
}
