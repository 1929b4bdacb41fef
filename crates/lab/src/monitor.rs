//! Control of a running machine: over QEMU's monitor, and of the threads that emulate its CPUs.

use std::io::{BufRead, BufReader, ErrorKind, Write};
use std::os::fd::AsRawFd;
use std::os::unix::net::UnixStream;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use nix::errno::Errno;
use nix::fcntl::{FcntlArg, FdFlag, fcntl};
use nix::sys::ptrace;
use nix::sys::wait::{WaitPidFlag, WaitStatus, waitpid};
use nix::unistd::Pid;
use serde_json::{Value, json};

use crate::error::{Attempt, Error, Result};

/// The longest time that QEMU may take for an answer.
const ANSWER: Duration = Duration::from_secs(60);

/// QEMU's end of the monitor's connection, which its process inherits.
#[derive(Clone, Debug)]
pub(crate) struct MonitorSocket(Arc<Mutex<Option<UnixStream>>>);

impl MonitorSocket {
    /// Closes this process's copy of the socket once QEMU has it, so that the connection ends with QEMU.
    pub fn close(&self) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = None;
    }

    /// The options of QEMU; none once the socket is closed.
    pub fn arguments(&self) -> Vec<String> {
        let socket = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(socket) = &*socket else {
            return Vec::new();
        };
        let socket = format!("socket,id=monitor,fd={}", socket.as_raw_fd());
        let words = ["-chardev", &socket, "-mon", "chardev=monitor,mode=control"];
        words.map(str::to_owned).into()
    }
}

/// Our end of the connection.
#[derive(Debug)]
pub(crate) struct Monitor {
    stream: BufReader<UnixStream>,
    /// Whether QEMU accepts commands already.
    is_ready: bool,
    /// Whether QEMU was found to have ended.
    has_ended: bool,
    /// The threads that emulate the CPUs, by the number of the CPU.
    threads: Vec<Pid>,
}

impl Monitor {
    /// Makes a connection. The other end goes to the machine.
    pub fn new() -> Result<(Self, MonitorSocket)> {
        let make = || -> std::io::Result<_> {
            let (ours, other) = UnixStream::pair()?;
            ours.set_read_timeout(Some(ANSWER))?;
            // QEMU inherits this end. Other programs are not started meanwhile.
            fcntl(&other, FcntlArg::F_SETFD(FdFlag::empty()))?;
            Ok((ours, other))
        };
        let (ours, other) = make().attempt(|| "connect to QEMU's monitor".to_owned())?;
        let monitor = Self {
            stream: BufReader::new(ours),
            is_ready: false,
            has_ended: false,
            threads: Vec::new(),
        };
        Ok((monitor, MonitorSocket(Arc::new(Mutex::new(Some(other))))))
    }

    /// Whether a request failed because QEMU has ended, as it does with the guest.
    pub fn has_ended(&self) -> bool {
        self.has_ended
    }

    /// Stops the machine, with its clock, for a time.
    pub fn stop(&mut self, time: Duration) -> Result<()> {
        self.execute("stop", json!({}))?;
        thread::sleep(time);
        self.execute("cont", json!({})).map(drop)
    }

    /// Suspends a CPU for a time, in which the others run and the guest's clock goes on. If one
    /// thread emulates all CPUs, all are suspended.
    pub fn suspend(&mut self, cpu: usize, time: Duration) -> Result<()> {
        if self.threads.is_empty() {
            let cpus = self.execute("query-cpus-fast", json!({}))?;
            let thread =
                |cpu: &Value| Some(Pid::from_raw(cpu["thread-id"].as_i64()?.try_into().ok()?));
            self.threads = cpus
                .as_array()
                .into_iter()
                .flatten()
                .filter_map(thread)
                .collect();
        }
        let thread = self.threads.get(cpu).copied();
        let thread =
            thread.ok_or_else(|| Error::Refused(format!("QEMU names no thread of CPU {cpu}")))?;
        let suspended = suspend(thread, time);
        self.has_ended |= suspended
            .as_ref()
            .is_err_and(|error| error.raw_os_error() == Some(Errno::ESRCH as i32));
        suspended.attempt(|| format!("suspend the thread of CPU {cpu}"))
    }

    /// Adds memory of this size in MiB to a node.
    pub fn add_memory(&mut self, number: u32, node: u32, size: u32) -> Result<()> {
        let size = u64::from(size) << 20;
        let backend =
            json!({"qom-type": "memory-backend-ram", "id": format!("more{number}"), "size": size});
        self.execute("object-add", backend)?;
        let device = json!({
            "driver": "pc-dimm", "id": format!("dimm{number}"), "memdev": format!("more{number}"), "node": node,
        });
        self.execute("device_add", device).map(drop)
    }

    /// Asks the guest to give up memory that was added.
    pub fn remove_memory(&mut self, number: u32) -> Result<()> {
        self.execute("device_del", json!({"id": format!("dimm{number}")}))
            .map(drop)
    }

    /// Frees memory that the guest has given up.
    pub fn free_memory(&mut self, number: u32) -> Result<()> {
        let backend = json!({"id": format!("more{number}")});
        let mut tries = 0;
        loop {
            // The guest sees the memory vanish a moment before QEMU does.
            match self.execute("object-del", backend.clone()) {
                Err(_) if tries < 50 => tries += 1,
                result => return result.map(drop),
            }
            thread::sleep(Duration::from_millis(100));
        }
    }

    /// Executes a command, and returns what it returns.
    fn execute(&mut self, command: &str, arguments: Value) -> Result<Value> {
        if !self.is_ready {
            self.is_ready = true;
            self.execute("qmp_capabilities", json!({}))?;
        }
        let what = || format!("execute {command} in QEMU");
        let line = json!({"execute": command, "arguments": arguments}).to_string();
        let mut exchange = || -> std::io::Result<_> {
            writeln!(self.stream.get_ref(), "{line}")?;
            loop {
                let mut line = String::new();
                if self.stream.read_line(&mut line)? == 0 {
                    return Err(ErrorKind::BrokenPipe.into());
                }
                if let Some(answer) = answer(&line) {
                    return Ok(answer);
                }
            }
        };
        let answer = exchange();
        let ended = [ErrorKind::BrokenPipe, ErrorKind::ConnectionReset];
        self.has_ended |= answer
            .as_ref()
            .is_err_and(|error| ended.contains(&error.kind()));
        answer
            .attempt(what)?
            .map_err(|why| Error::Refused(format!("cannot {}: {why}", what())))
    }
}

/// QEMU's answer to the command in a line: its value, or why it failed; `None` if it is an event or
/// the greeting.
fn answer(line: &str) -> Option<std::result::Result<Value, String>> {
    let said: Value = match serde_json::from_str(line) {
        Ok(said) => said,
        Err(error) => return Some(Err(error.to_string())),
    };
    if let Some(value) = said.get("return") {
        return Some(Ok(value.clone()));
    }
    let error = said.get("error")?;
    let why = error["desc"].as_str().unwrap_or("no reason given");
    Some(Err(why.to_owned()))
}

/// Suspends a thread of a child process for a time. The process's other threads run on, which
/// SIGSTOP would not let them.
fn suspend(thread: Pid, time: Duration) -> std::io::Result<()> {
    ptrace::seize(thread, ptrace::Options::empty())?;
    ptrace::interrupt(thread)?;
    let stopped = waitpid(thread, Some(WaitPidFlag::__WALL))?;
    std::thread::sleep(time);
    // A signal that came first has stopped the thread; it is still to be delivered.
    let signal = match stopped {
        WaitStatus::Stopped(_, signal) => Some(signal),
        _ => None,
    };
    Ok(ptrace::detach(thread, signal)?)
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::process::Command;

    use super::*;

    #[test]
    fn answers_are_told_from_events() {
        assert_eq!(answer(r#"{"QMP": {"version": {}}}"#), None);
        assert_eq!(answer(r#"{"event": "STOP", "timestamp": {}}"#), None);
        assert_eq!(answer(r#"{"return": {}}"#), Some(Ok(json!({}))));
        let refused = answer(r#"{"error": {"class": "GenericError", "desc": "no slot is free"}}"#);
        assert_eq!(refused, Some(Err("no slot is free".to_owned())));
        assert!(answer("not JSON").unwrap().is_err());
    }

    #[test]
    fn the_end_of_qemu_is_noticed() {
        let (mut monitor, socket) = Monitor::new().unwrap();
        socket.close();
        assert_eq!(socket.arguments(), [""; 0]);
        assert!(!monitor.has_ended());
        assert!(monitor.stop(Duration::ZERO).is_err());
        assert!(monitor.has_ended());
    }

    #[test]
    fn a_thread_is_suspended_and_runs_on() {
        let mut child = Command::new("sh")
            .args(["-c", "while :; do :; done"])
            .spawn()
            .unwrap();
        let thread = Pid::from_raw(child.id().cast_signed());
        let state = move || {
            let stat = fs::read_to_string(format!("/proc/{thread}/stat")).unwrap();
            stat.rsplit(") ").next().unwrap()[..1].to_owned()
        };
        let watcher = thread::spawn(move || {
            // A traced thread that is stopped has the state t.
            (0..1000).any(|_| {
                thread::sleep(Duration::from_millis(5));
                state() == "t"
            })
        });
        suspend(thread, Duration::from_secs(1)).unwrap();
        let state = state();
        child.kill().unwrap();
        child.wait().unwrap();
        assert_eq!(state, "R");
        assert!(watcher.join().unwrap());
    }
}
