//! The architectures that kernels are built for, and their differences for building and booting.

use std::fmt;

use crate::variant::Variant;

/// An architecture. Its guests run on one emulated machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Arch {
    /// A PC.
    X86_64,
    /// The board `virt` of QEMU, which a device tree describes to the kernel.
    Arm64,
}

impl Arch {
    /// All architectures.
    pub const ALL: [Self; 2] = [Self::X86_64, Self::Arm64];

    /// The name on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Self::X86_64 => "x86-64",
            Self::Arm64 => "arm64",
        }
    }

    /// The configurations in which its kernels can be built.
    pub fn variants(self) -> &'static [Variant] {
        match self {
            Self::X86_64 => &Variant::ALL,
            Self::Arm64 => &[Variant::Native, Variant::Debug],
        }
    }

    /// Whether its kernels use another lock if they detect that they run in a guest.
    pub fn tells_guests(self) -> bool {
        self == Self::X86_64
    }

    /// Whether memory can be added to its guests. The board for Arm adds memory only by ACPI.
    pub fn adds_memory(self) -> bool {
        self == Self::X86_64
    }

    /// The path of the kernel image in a build directory.
    pub(crate) fn image(self) -> &'static str {
        match self {
            Self::X86_64 => "arch/x86/boot/bzImage",
            Self::Arm64 => "arch/arm64/boot/Image",
        }
    }

    /// The device of the second serial line in the guest.
    pub(crate) fn channel(self) -> &'static str {
        match self {
            Self::X86_64 => "/dev/ttyS1",
            Self::Arm64 => "/dev/ttyS0",
        }
    }

    /// Kernel parameters of this architecture: the console, and workarounds for the emulation.
    pub(crate) fn parameters(self) -> &'static str {
        match self {
            // On a busy host, the timer of an emulated machine may come too late for the check at boot.
            Self::X86_64 => "console=ttyS0 tsc=unstable no_timer_check",
            Self::Arm64 => "console=ttyAMA0",
        }
    }
}

impl fmt::Display for Arch {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.write_str(self.name())
    }
}
