//! Lockworks in the Linux kernel: the patch series, its application to a tree, and its commands.

mod apply;
mod command;
mod edit;
mod error;
mod files;
mod fit;
mod git;
mod inspection;
mod patches;
mod series;
mod tree;
mod version;

pub use apply::{apply, refresh, refresh_to, revert};
pub use command::{SeriesCommand, remote_share};
pub use error::{Error, SeriesError};
pub use inspection::{FileKind, FileStatus, State, Status, status};
pub use patches::{Author, PatchFile, patches, write_patches};
pub use series::Series;
pub use tree::Tree;
pub use version::KernelVersion;
