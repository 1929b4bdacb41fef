//! Builds kernels from Debian's source packages or the user's tree, boots them in emulated NUMA guests,
//! and judges their consoles and messages.

mod arch;
mod build;
mod busybox;
mod cache;
mod command;
mod compare;
mod compiler;
mod complaint;
mod config;
#[cfg(test)]
mod configurations;
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

pub use command::{BuildArgs, GuestCommand, GuestRunArgs};
pub use terminal::restore as restore_terminal;
