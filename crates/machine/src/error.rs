//! Why there is no machine or workload of a description.

use std::path::PathBuf;

use lockworks_names::unknown;

/// Why there is no [`Machine`](crate::Machine), or nothing else that a file describes. Always one
/// line.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The name is neither that of a built-in description nor a path.
    #[error("{}", unknown_description(kind, name, *nearest, command))]
    Unknown {
        /// The kind of description: a machine or a workload.
        kind: &'static str,
        /// The name that was given.
        name: String,
        /// The name of a built-in description that is like it, if there is one.
        nearest: Option<&'static str>,
        /// The command that lists all names.
        command: &'static str,
    },
    /// The file cannot be read.
    #[error(
        "{}: cannot read the description of a {kind}: {cause}; give the path of a TOML file, or a \
         name that `{command}` lists",
        path.display()
    )]
    Read {
        /// The kind of description: a machine or a workload.
        kind: &'static str,
        /// The file.
        path: PathBuf,
        /// The reason that the system gives.
        cause: std::io::Error,
        /// The command that lists all names.
        command: &'static str,
    },
    /// The description is wrong.
    #[error("{origin}:{line}: {message}")]
    Description {
        /// The file.
        origin: String,
        /// The line, from 1.
        line: usize,
        /// A message that says what is wrong and what to do about it.
        message: String,
    },
    /// This machine cannot be measured.
    #[error("cannot measure this machine: {0}")]
    Measure(String),
    /// System files do not describe a machine.
    #[error("{0}; give the folder in which sys/devices/system and proc/cpuinfo of a machine lie")]
    Files(String),
}

fn unknown_description(kind: &str, name: &str, nearest: Option<&str>, command: &str) -> String {
    let list = format!("`{command}` lists them");
    let message = unknown(kind, name, '\'', nearest, || list.clone());
    match nearest {
        Some(_) => format!("{message} {list}"),
        None => message,
    }
}
