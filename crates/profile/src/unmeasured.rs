//! Processes that have no record, or one that cannot be read.

use std::collections::BTreeMap;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::net::{SocketAddr, UnixDatagram};
use std::path::Path;
use std::thread::{self, JoinHandle};

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
    pub fn processes(&self) -> u64 {
        self.reasons.values().sum()
    }

    /// The number of processes for each reason.
    pub fn reasons(&self) -> impl Iterator<Item = (&str, u64)> {
        self.reasons.iter().map(|(reason, n)| (reason.as_str(), *n))
    }
}

/// Receives the errors of processes that cannot have a record.
pub struct Listener {
    socket: UnixDatagram,
    address: SocketAddr,
    thread: JoinHandle<Unmeasured>,
}

impl Listener {
    /// Starts to receive the errors of processes that should have had a record in this directory. None: the
    /// system does not let it, so that such processes print a message.
    pub fn start(directory: &Path) -> Option<Self> {
        let address = SocketAddr::from_abstract_name(directory.as_os_str().as_bytes()).ok()?;
        let socket = UnixDatagram::bind_addr(&address).ok()?;
        let receiver = socket.try_clone().ok()?;
        Some(Self {
            socket,
            address,
            thread: thread::spawn(move || receive(&receiver)),
        })
    }

    /// Returns the processes whose errors have been sent so far.
    pub fn end(self) -> Unmeasured {
        // Datagrams arrive in order, so all others come before this one.
        match self.socket.send_to_addr(&[], &self.address) {
            Ok(_) => self.thread.join().unwrap_or_default(),
            Err(_) => Unmeasured::default(),
        }
    }
}

/// Receives errors until a datagram is empty.
fn receive(socket: &UnixDatagram) -> Unmeasured {
    let mut unmeasured = Unmeasured::default();
    let mut error = [0; 4];
    while let Ok(length) = socket.recv(&mut error)
        && length > 0
    {
        let error = Errno::from_raw(u32::from_ne_bytes(error).cast_signed());
        unmeasured.add(reason(error).to_owned());
    }
    unmeasured
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
