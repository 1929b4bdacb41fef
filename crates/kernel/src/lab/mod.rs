//! From Debian's source package to a verdict: kernels built, booted in emulated NUMA guests, and
//! judged by what they say.

mod arch;
mod build;
mod busybox;
mod cache;
pub mod children;
pub mod compare;
mod config;
mod console;
mod debian;
mod disk;
mod error;
mod file_lock;
mod guest;
mod initramfs;
mod locktorture;
mod qemu;
mod source;
mod terminal;
mod tools;
mod topology;
mod torture;

pub use arch::Arch;
pub use build::{Built, build};
pub use cache::{Cache, Progress};
pub use config::Variant;
pub use console::{Complaint, Kind, complaints};
pub use disk::disk;
pub use error::{Error, Result};
pub use file_lock::FileLock;
pub use guest::{Guest, Judged, Lock, Said, Task, Tuning};
pub use locktorture::{Figures, fairness_bound};
pub use qemu::{Emulation, Input, Patience};
pub use source::{Tree, Version};
pub use tools::{provide_to_boot, provide_to_build};
pub use topology::{Topology, TopologyError};
pub use torture::{Plan, Round, Subject, Tortured, torture};
