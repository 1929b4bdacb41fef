//! The compilers that kernels are built with.

use std::fmt;
use std::process::Command;

use crate::arch::Arch;
use crate::tools::{Tool, program};

/// A compiler with its linker and assembler.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Compiler {
    /// GCC with GNU binutils.
    Gcc,
    /// Clang with LLVM's other tools.
    Clang,
}

/// The argument of make that selects Clang, for every architecture.
const LLVM: &str = "LLVM=-19";

impl Compiler {
    /// All compilers.
    pub const ALL: [Self; 2] = [Self::Gcc, Self::Clang];

    /// The name on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Self::Gcc => "gcc",
            Self::Clang => "clang",
        }
    }

    /// The arguments of make that select the compiler and the architecture.
    pub(crate) fn make(self, arch: Arch) -> &'static [&'static str] {
        match (self, arch) {
            (Self::Gcc, Arch::X86_64) => &[],
            (Self::Gcc, Arch::Arm64) => &["ARCH=arm64", "CROSS_COMPILE=aarch64-linux-gnu-"],
            (Self::Clang, Arch::X86_64) => &[LLVM],
            (Self::Clang, Arch::Arm64) => &["ARCH=arm64", LLVM],
        }
    }

    /// The versions of the compiler and the linker, in their own words.
    pub(crate) fn versions(self, arch: Arch) -> String {
        let programs = match (self, arch) {
            (Self::Gcc, Arch::X86_64) => ["gcc", "ld"],
            (Self::Gcc, Arch::Arm64) => ["aarch64-linux-gnu-gcc", "aarch64-linux-gnu-ld"],
            (Self::Clang, _) => ["clang-19", "ld.lld-19"],
        };
        let version = |program: &str| {
            let said = Command::new(program)
                .arg("--version")
                .env("LC_ALL", "C")
                .output();
            said.map_or_else(|_| Vec::new(), |said| said.stdout)
        };
        String::from_utf8_lossy(&programs.map(version).concat()).into_owned()
    }

    /// The tools that compiling for an architecture needs.
    pub(crate) fn tools(self, arch: Arch) -> &'static [Tool] {
        const ARM64: [Tool; 1] = [program("aarch64-linux-gnu-gcc", "gcc-aarch64-linux-gnu")];
        const CLANG: [Tool; 3] = [
            program("clang-19", "clang-19"),
            program("ld.lld-19", "lld-19"),
            program("llvm-ar-19", "llvm-19"),
        ];
        match (self, arch) {
            (Self::Gcc, Arch::X86_64) => &[],
            (Self::Gcc, Arch::Arm64) => &ARM64,
            (Self::Clang, _) => &CLANG,
        }
    }
}

impl fmt::Display for Compiler {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.write_str(self.name())
    }
}
