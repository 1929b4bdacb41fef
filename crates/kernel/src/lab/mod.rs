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
mod emulation;
mod error;
mod file_lock;
mod guest;
mod initramfs;
mod locktorture;
mod machine;
mod qemu;
mod requirements;
mod serial;
mod source;
mod terminal;
mod tools;
mod topology;
mod torture;
mod variant;
mod version;

pub use arch::Arch;
pub use build::{Built, build};
pub use cache::{Cache, Progress};
pub use console::{Complaint, Kind, complaints};
pub use disk::disk;
pub use emulation::Emulation;
pub use error::{Error, Result};
pub use file_lock::FileLock;
pub use guest::{Guest, Judged, Lock, Said, Task, Tuning};
pub use locktorture::{Figures, fairness_bound};
pub use machine::Input;
pub use qemu::Patience;
pub use requirements::{provide_to_boot, provide_to_build};
pub use source::Tree;
pub use topology::{Topology, TopologyError};
pub use torture::{Plan, Round, Subject, Tortured, torture};
pub use variant::Variant;
pub use version::Version;
