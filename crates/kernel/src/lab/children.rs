//! Child processes. None outlives this process, however it ends.

use std::io;
use std::process::{Child, Command, ExitStatus};
use std::sync::Mutex;
use std::thread;
use std::time::{Duration, Instant};

use nix::errno::Errno;
use nix::sys::signal::{Signal, killpg};
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

static REGISTRY: Mutex<Registry> = Mutex::new(Registry {
    groups: Vec::new(),
    closed: false,
});

/// The longest time that a program may take to clean up.
const CLEANING_UP: Duration = Duration::from_secs(5);

/// Makes a command that the system ends if this process is killed.
pub fn command(program: &str, ending: Ending) -> Command {
    let mut command = Command::new("setpriv");
    let signal = ending.signal().as_str();
    command.args(["--pdeathsig", &signal[3..], "--", program]);
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

fn wait_for_the_end() -> ! {
    loop {
        thread::park();
    }
}

/// Ends all programs, and lets no others start. The caller must end this process next.
pub fn stop_all() {
    super::terminal::restore();
    let groups = {
        let mut registry = REGISTRY.lock().expect("nobody panics with it");
        registry.closed = true;
        std::mem::take(&mut registry.groups)
    };
    for (group, ending) in &groups {
        let _ = killpg(*group, ending.signal());
    }
    let begin = Instant::now();
    let there = |group: Pid| killpg(group, None) != Err(Errno::ESRCH);
    while begin.elapsed() < CLEANING_UP && groups.iter().any(|(group, _)| there(*group)) {
        thread::sleep(Duration::from_millis(20));
    }
    for (group, _) in &groups {
        let _ = killpg(*group, Signal::SIGKILL);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dropping_ends_the_group() {
        let mut shell = command("sh", Ending::Killed);
        let running = Running::start(shell.args(["-c", "sleep 600 & wait"]), Ending::Killed)
            .expect("there is a shell");
        let group = group(&running.child);
        drop(running);
        let begin = Instant::now();
        // The group exists until init has collected its processes.
        while killpg(group, None) != Err(Errno::ESRCH) {
            assert!(begin.elapsed() < Duration::from_secs(10));
            thread::sleep(Duration::from_millis(10));
        }
    }
}
