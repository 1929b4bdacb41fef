//! Lockworks in the Linux kernel: the patch series, and kernels that are built, booted and judged.

pub mod lab;

mod apply;
mod edit;
mod error;
mod files;
mod git;
mod inspection;
mod patches;
mod series;
mod tree;
mod version;

pub use apply::{apply, refresh, refresh_to, revert};
pub use error::{Error, SeriesError};
pub use inspection::{FileKind, FileStatus, State, Status, status};
pub use patches::{Author, PatchFile, patches, write_patches};
pub use series::Series;
pub use tree::Tree;
pub use version::KernelVersion;
