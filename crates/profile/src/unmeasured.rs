//! Processes that have no record, or one that cannot be read.

use std::collections::BTreeMap;
use std::io;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::net::{SocketAddr, UnixDatagram};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};

use itertools::Itertools;
use nix::errno::Errno;
use serde::Serialize;

/// The processes that were not measured.
#[derive(Default, Serialize)]
#[serde(transparent)]
pub struct Unmeasured {
    /// The number of processes for each reason.
    reasons: BTreeMap<String, u64>,
}

impl Unmeasured {
    /// Adds a process.
    pub fn add(&mut self, reason: String) {
        *self.reasons.entry(reason).or_default() += 1;
    }

    /// The number of processes.
    #[cfg(test)]
    pub fn processes(&self) -> u64 {
        self.reasons.values().sum()
    }

    /// Those processes in words. None: all were measured.
    pub fn in_words(&self) -> Option<String> {
        let reasons = self
            .reasons
            .iter()
            .map(|(reason, processes)| match processes {
                1 => format!("1 process is not measured, {reason}"),
                n => format!("{n} processes are not measured, {reason}"),
            });
        (!self.reasons.is_empty()).then(|| reasons.format("; ").to_string())
    }
}

/// Receives the errors of processes that cannot have a record.
pub struct Listener {
    socket: UnixDatagram,
    address: SocketAddr,
    has_ended: Arc<AtomicBool>,
    thread: JoinHandle<Unmeasured>,
}

impl Listener {
    /// Starts to receive the errors of processes that should have had a record in this directory. None: the
    /// system does not let it, so that such processes print a message.
    pub fn start(directory: &Path) -> Option<Self> {
        let address = SocketAddr::from_abstract_name(directory.as_os_str().as_bytes()).ok()?;
        let socket = UnixDatagram::bind_addr(&address).ok()?;
        let receiver = socket.try_clone().ok()?;
        let has_ended = Arc::new(AtomicBool::new(false));
        let ends = has_ended.clone();
        Some(Self {
            socket,
            address,
            has_ended,
            thread: thread::spawn(move || receive(&receiver, &ends)),
        })
    }

    /// Returns the processes whose errors have been sent so far.
    pub fn end(self) -> Unmeasured {
        self.has_ended.store(true, Ordering::Relaxed);
        // The receiver now takes what has arrived, and waits for no more. If it waits already, a datagram wakes it;
        // that cannot be sent only if others have arrived, which wake it too.
        let _ = self.socket.set_nonblocking(true);
        let _ = self.socket.send_to_addr(&[], &self.address);
        self.thread.join().unwrap_or_default()
    }
}

/// The length of an error.
const LENGTH: usize = size_of::<u32>();

/// Receives errors until `has_ended` and none is left. Any process can send to the socket, so what is no error is
/// ignored.
fn receive(socket: &UnixDatagram, has_ended: &AtomicBool) -> Unmeasured {
    let mut unmeasured = Unmeasured::default();
    loop {
        // The rest of a longer datagram would be cut off.
        let mut datagram = [0; LENGTH + 1];
        match socket.recv(&mut datagram) {
            Ok(LENGTH) => {
                let [error @ .., _] = datagram;
                let error = Errno::from_raw(u32::from_ne_bytes(error).cast_signed());
                unmeasured.add(reason(error).to_owned());
            }
            Ok(_) => {}
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                if has_ended.load(Ordering::Relaxed) {
                    return unmeasured;
                }
            }
            Err(_) => return unmeasured,
        }
    }
}

fn reason(error: Errno) -> &'static str {
    match error {
        Errno::EACCES | Errno::EPERM => "of another user, or confined",
        Errno::EFBIG => "under a limit of the size of files (ulimit -f)",
        Errno::ENOMEM | Errno::EAGAIN => "under a limit of memory (ulimit -v)",
        Errno::EMFILE | Errno::ENFILE => "under a limit of open files (ulimit -n)",
        Errno::ENOSPC | Errno::EDQUOT => {
            "no room for the record; set TMPDIR to a directory with some room"
        }
        Errno::ENOENT | Errno::ENOTDIR => "it does not see the directory of the records",
        other => other.desc(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_errors_count() {
        let directory = tempfile::tempdir().unwrap();
        let listener = Listener::start(directory.path()).expect("a socket");
        let sender = UnixDatagram::unbound().unwrap();
        let error = (Errno::ENOSPC as u32).to_ne_bytes();
        for datagram in [&[][..], &error, b"longer than an error", &[1], &error] {
            sender.send_to_addr(datagram, &listener.address).unwrap();
        }
        assert_eq!(listener.end().processes(), 2);
    }
}
