//! What a guest is to do.

use std::path::PathBuf;

/// What the guest is to do.
#[derive(Clone, Debug)]
pub struct Task {
    /// The guest's script for it.
    pub(crate) script: &'static str,
    /// What the script is told.
    pub(crate) plan: Vec<(&'static str, String)>,
    /// A script of the user's.
    pub(crate) command: Option<String>,
    /// An image of a disk that the script takes.
    pub(crate) disk: Option<PathBuf>,
}

impl Task {
    /// A shell on the console.
    pub fn shell() -> Self {
        Self {
            script: "shell",
            plan: Vec::new(),
            command: None,
            disk: None,
        }
    }

    /// Commands for the guest's shell.
    pub fn command(script: &str) -> Self {
        Self {
            script: "command",
            plan: Vec::new(),
            command: Some(script.to_owned()),
            disk: None,
        }
    }

    /// A workload of ours, for so many seconds.
    pub fn workload(name: &str, seconds: u32) -> Self {
        Self {
            plan: vec![("LENGTH", seconds.to_string())],
            ..Self::command(&format!("exec sh /lockworks/{name}.sh\n"))
        }
    }

    /// A workload of ours that takes the programs on a disk.
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
