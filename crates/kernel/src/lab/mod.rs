//! From Debian's source package to a verdict: kernels built, booted in emulated NUMA guests, and
//! judged by what they say.

mod build;
mod cache;
pub mod children;
mod config;
mod console;
mod disk;
mod error;
mod guest;
mod initramfs;
mod locktorture;
mod qemu;
mod source;
mod terminal;
mod tools;
mod topology;
mod torture;

pub use build::{Built, build};
pub use cache::{Cache, Progress};
pub use config::Variant;
pub use console::{Complaint, Kind, complaints};
pub use disk::disk;
pub use error::{Error, Result};
pub use guest::{Guest, Judged, Lock, Said, Task, Tuning};
pub use locktorture::{Figures, fairness_bound};
pub use qemu::{Emulation, Input, Patience};
pub use source::{Tree, Version};
pub use tools::{BOOTING, BUILDING, Tool, provide};
pub use topology::{Topology, TopologyError};
pub use torture::{Plan, Round, Subject, Tortured, torture};
