//! The memory models.

use std::fmt;

use clap::ValueEnum;
use serde::{Deserialize, Serialize};

/// How memory behaves.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, ValueEnum)]
pub enum Memory {
    /// One operation after another; orders mean nothing.
    #[serde(rename = "sc")]
    Sc,
    /// C11's orders as they are written, without load buffering.
    #[serde(rename = "c11")]
    C11,
    /// ARMv8 with LSE: all threads see a store at the same time, and later operations of a thread may
    /// be done first.
    #[serde(rename = "arm")]
    Arm,
    /// The Linux kernel's memory model, with the operations as the kernel's world compiles them.
    #[serde(rename = "lkmm")]
    Lkmm,
    /// The same before Linux 6.3: a read-modify-write does not carry on what the write before it has
    /// released.
    #[serde(rename = "lkmm-6.2")]
    #[value(name = "lkmm-6.2")]
    Lkmm62,
    /// x86: each thread has a buffer of stores, which reach memory in their order.
    #[serde(rename = "tso")]
    Tso,
    /// RISC-V's weak memory, with atomic memory operations: all threads see a store at the same time, and
    /// later operations of a thread may be done first.
    #[serde(rename = "riscv")]
    Riscv,
}

impl Memory {
    /// All models.
    pub const ALL: [Self; 7] = [
        Self::Sc,
        Self::Tso,
        Self::C11,
        Self::Arm,
        Self::Riscv,
        Self::Lkmm,
        Self::Lkmm62,
    ];

    /// The model's name, as `--memory` takes it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Sc => "sc",
            Self::C11 => "c11",
            Self::Arm => "arm",
            Self::Lkmm => "lkmm",
            Self::Lkmm62 => "lkmm-6.2",
            Self::Tso => "tso",
            Self::Riscv => "riscv",
        }
    }

    /// Whether threads may read old values.
    pub fn is_weak(self) -> bool {
        !matches!(self, Self::Sc | Self::Tso)
    }

    /// Whether a thread may do an operation before an earlier one.
    pub fn delays(self) -> bool {
        !matches!(self, Self::Sc | Self::C11)
    }

    /// Whether it is a weak machine in which all threads see a store at the same time.
    pub fn is_multi_copy_atomic(self) -> bool {
        matches!(self, Self::Arm | Self::Riscv)
    }

    /// Whether it judges the functions of `<stdatomic.h>` in litmus files. Their translations to other machines
    /// are not those of the kernel's operations.
    pub fn has_c11_functions(self) -> bool {
        matches!(self, Self::C11 | Self::Sc)
    }

    /// Whether operations mean what the kernel's world compiles them to.
    pub fn is_kernel(self) -> bool {
        matches!(self, Self::Lkmm | Self::Lkmm62)
    }
}

impl fmt::Display for Memory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}
