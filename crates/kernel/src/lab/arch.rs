//! The machines that kernels are built and booted for, and all in which they differ here.

use std::fmt;

use super::variant::Variant;

/// An architecture, and the machine of it that is emulated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Arch {
    /// A PC.
    X86_64,
    /// QEMU's own board, described to the kernel by a device tree.
    Arm64,
}

impl Arch {
    /// All of them.
    pub const ALL: [Self; 2] = [Self::X86_64, Self::Arm64];

    /// As it is called.
    pub fn name(self) -> &'static str {
        match self {
            Self::X86_64 => "x86-64",
            Self::Arm64 => "arm64",
        }
    }

    /// How its kernels can be configured.
    pub fn variants(self) -> &'static [Variant] {
        match self {
            Self::X86_64 => &Variant::ALL,
            Self::Arm64 => &[Variant::Native, Variant::Debug],
        }
    }

    /// Whether its kernels use another lock where they see that they are guests.
    pub fn tells_guests(self) -> bool {
        self == Self::X86_64
    }

    /// The kernel to boot, in a build directory.
    pub(crate) fn image(self) -> &'static str {
        match self {
            Self::X86_64 => "arch/x86/boot/bzImage",
            Self::Arm64 => "arch/arm64/boot/Image",
        }
    }

    /// What make is told to build for it.
    pub(crate) fn make(self) -> &'static [&'static str] {
        match self {
            Self::X86_64 => &[],
            Self::Arm64 => &["ARCH=arm64", "CROSS_COMPILE=aarch64-linux-gnu-"],
        }
    }

    /// The device that is the second serial line.
    pub(crate) fn channel(self) -> &'static str {
        match self {
            Self::X86_64 => "/dev/ttyS1",
            Self::Arm64 => "/dev/ttyS0",
        }
    }

    /// What only its kernels are told: where the console is, and what of the emulation is amiss.
    pub(crate) fn parameters(self) -> &'static str {
        match self {
            Self::X86_64 => "console=ttyS0 tsc=unstable",
            Self::Arm64 => "console=ttyAMA0",
        }
    }
}

impl fmt::Display for Arch {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.write_str(self.name())
    }
}
