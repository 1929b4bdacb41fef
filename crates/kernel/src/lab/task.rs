//! Tasks of guests.

use std::path::PathBuf;

use super::monitor::MonitorSocket;

/// A task of a guest.
#[derive(Clone, Debug)]
pub struct Task {
    /// The script of the guest that runs it.
    pub(crate) script: &'static str,
    /// Variables of the script.
    pub(crate) plan: Vec<(&'static str, String)>,
    /// A script of the user.
    pub(crate) command: Option<String>,
    /// The image of a disk that the script mounts.
    pub(crate) disk: Option<PathBuf>,
    /// The connection through which the task has the machine controlled. The machine then has room for
    /// more memory.
    pub(crate) monitor: Option<MonitorSocket>,
}

impl Task {
    /// Runs a shell on the console.
    pub fn shell() -> Self {
        Self {
            script: "shell",
            plan: Vec::new(),
            command: None,
            disk: None,
            monitor: None,
        }
    }

    /// Runs commands in the guest's shell.
    pub fn command(script: &str) -> Self {
        Self {
            script: "command",
            plan: Vec::new(),
            command: Some(script.to_owned()),
            disk: None,
            monitor: None,
        }
    }

    /// Runs a workload for a number of seconds.
    pub fn workload(name: &str, seconds: u32) -> Self {
        Self {
            plan: vec![("LENGTH", seconds.to_string())],
            ..Self::command(&format!("exec sh /lockworks/{name}.sh\n"))
        }
    }

    /// Runs a workload that needs the programs on a disk.
    pub fn workload_on(disk: PathBuf, name: &str, seconds: u32) -> Self {
        Self {
            plan: vec![
                ("LENGTH", seconds.to_string()),
                ("WORKLOAD", name.to_owned()),
            ],
            disk: Some(disk),
            ..Self::command("exec sh /lockworks/disk.sh\n")
        }
    }
}
