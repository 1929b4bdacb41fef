//! Tasks of guests.

use std::path::PathBuf;

use crate::monitor::MonitorSocket;

/// A task of a guest.
#[derive(Clone, Debug, Default)]
pub struct Task {
    /// The script of the guest that runs it.
    pub(crate) script: &'static str,
    /// Variables of the script.
    pub(crate) plan: Vec<(&'static str, String)>,
    /// A script of the user.
    pub(crate) command: Option<String>,
    /// Files of the user, by their names in /root.
    pub(crate) files: Vec<(String, Vec<u8>)>,
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
            ..Self::default()
        }
    }

    /// Runs commands in the guest's shell.
    pub fn command(script: &str) -> Self {
        Self {
            script: "command",
            command: Some(script.to_owned()),
            ..Self::default()
        }
    }

    /// Runs commands in the shell of a disk with Debian's programs. The files are in its /tmp.
    pub fn command_on(disk: PathBuf, script: &str) -> Self {
        let script = quoted(script);
        Self {
            disk: Some(disk),
            ..Self::command(&format!(
                ". /lockworks/functions.sh\n\
                 mount_disk && {{ [ -z \"$(ls /root)\" ] || cp /root/* /mnt/tmp; }} || exit 1\n\
                 cd /mnt/tmp && exec chroot /mnt /bin/sh -c 'cd /tmp; eval \"$0\"' {script}\n"
            ))
        }
    }

    /// Puts a file into /root of the guest.
    pub fn add_file(&mut self, name: &str, contents: Vec<u8>) {
        self.files.push((name.to_owned(), contents));
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

/// Quotes a text as one word for a shell.
pub(crate) fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\'', r"'\''"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shells_get_what_was_meant() {
        assert_eq!(quoted("a 'b' $c"), r"'a '\''b'\'' $c'");
    }
}
