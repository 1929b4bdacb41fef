//! The machines that kernels are built and booted for, and all in which they differ here.

use std::fmt;
use std::path::Path;

use super::config::Variant;
use super::qemu::comma;
use super::tools::{Tool, tool};

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

    /// What building for it takes, beside what building takes.
    pub(crate) fn building(self) -> &'static [Tool] {
        const ARM64: [Tool; 1] = [tool("aarch64-linux-gnu-gcc", "gcc-aarch64-linux-gnu")];
        match self {
            Self::X86_64 => &[],
            Self::Arm64 => &ARM64,
        }
    }

    /// What booting takes, beside what booting takes.
    pub(crate) fn booting(self) -> &'static [Tool] {
        const X86_64: [Tool; 2] = [
            tool("qemu-system-x86_64", "qemu-system-x86"),
            tool("busybox", "busybox-static"),
        ];
        const ARM64: [Tool; 1] = [tool("qemu-system-aarch64", "qemu-system-arm")];
        match self {
            Self::X86_64 => &X86_64,
            Self::Arm64 => &ARM64,
        }
    }

    /// The program that emulates it.
    pub(crate) fn emulator(self) -> &'static str {
        match self {
            Self::X86_64 => "qemu-system-x86_64",
            Self::Arm64 => "qemu-system-aarch64",
        }
    }

    /// The board and its CPUs, as QEMU is told.
    pub(crate) fn board(self, hypervisor: bool) -> Vec<String> {
        let words = match (self, hypervisor) {
            (Self::X86_64, true) => ["-machine", "q35", "-cpu", "max,hypervisor=on"],
            (Self::X86_64, false) => ["-machine", "q35", "-cpu", "max,hypervisor=off"],
            // The older interrupt controller has no more than 8 CPUs.
            (Self::Arm64, _) => ["-machine", "virt,gic-version=3", "-cpu", "max"],
        };
        words.map(str::to_owned).into()
    }

    /// A second serial line into `file`, as QEMU is told. The guest knows it as `channel`.
    pub(crate) fn channel_into(self, file: &Path) -> Vec<String> {
        match self {
            Self::X86_64 => vec!["-serial".to_owned(), format!("file:{}", comma(file))],
            // The board has one; this one is on its PCI bus.
            Self::Arm64 => vec![
                "-chardev".to_owned(),
                format!("file,id=channel,path={}", comma(file)),
                "-device".to_owned(),
                "pci-serial,chardev=channel".to_owned(),
            ],
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
