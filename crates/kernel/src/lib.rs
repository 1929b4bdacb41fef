//! Lockworks in the Linux kernel: the patch series, building, booting, verdicts.

pub mod lab;

mod apply;
mod changes;
mod edit;
mod error;
mod mail;
mod patches;
mod series;
mod tree;

pub use apply::{apply, refresh, refresh_to, revert};
pub use error::Error;
pub use mail::Author;
pub use patches::{PatchFile, patches, write_patches};
pub use series::{Series, SeriesError};
pub use tree::{FileStatus, Kind, State, Status, Tree, Version, status};
