//! Builds kernels from Debian's source packages or the user's tree, boots them in emulated NUMA guests,
//! and judges their consoles and messages.

mod arch;
mod build;
mod busybox;
mod cache;
pub mod compare;
mod complaint;
mod config;
mod console;
mod debian;
mod disk;
mod emulation;
mod error;
mod file_lock;
mod guest;
mod guest_state;
mod initramfs;
mod lock;
mod locktorture;
mod machine;
mod message;
mod monitor;
mod qemu;
mod requirements;
mod serial;
mod source;
mod task;
mod terminal;
mod tools;
mod topology;
mod torture;
mod variant;
mod version;

pub use arch::Arch;
pub use build::{Built, build};
pub use cache::{Cache, Progress};
pub use complaint::{Complaint, ComplaintKind};
pub use console::complaints;
pub use disk::disk;
pub use emulation::Emulation;
pub use error::{Error, Result};
pub use file_lock::FileLock;
pub use guest::{Guest, GuestVerdict, Tuning};
pub use lock::Lock;
pub use locktorture::{TortureFigures, fairness_bound};
pub use machine::Input;
pub use message::GuestMessage;
pub use qemu::WaitLimits;
pub use requirements::{provide_to_boot, provide_to_build};
pub use source::Tree;
pub use task::Task;
pub use terminal::restore as restore_terminal;
pub use topology::{Topology, TopologyError};
pub use torture::{
    Disturbances, LocktorturePlan, SoakPlan, SoakRow, Soaked, TortureOutcome, TortureRound,
    TortureSubject, soak, torture,
};
pub use variant::Variant;
pub use version::Version;
