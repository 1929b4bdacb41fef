use std::path::PathBuf;

/// Why there is no [`Machine`](crate::Machine). Always one line.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// Neither a built-in machine nor a path.
    #[error("unknown machine '{name}'{suggestion}; `lockworks machines` lists them")]
    Unknown {
        /// What was asked for.
        name: String,
        /// `; did you mean ...?`, or nothing.
        suggestion: String,
    },
    /// The file cannot be read.
    #[error("{}: cannot read the machine description: {cause}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// What the system said.
        cause: std::io::Error,
    },
    /// The description is wrong.
    #[error("{origin}:{line}: {message}")]
    Description {
        /// The file.
        origin: String,
        /// Where in it, from 1.
        line: usize,
        /// What is wrong and what to do about it.
        message: String,
    },
    /// This machine cannot be measured.
    #[error("cannot measure this machine: {0}")]
    Measure(String),
}
