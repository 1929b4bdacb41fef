//! The Debian packages that building and booting kernels need.

use crate::arch::Arch;
use crate::busybox;
use crate::cache::{Cache, Progress};
use crate::compiler::Compiler;
use crate::error::Result;
use crate::tools::{self, Tool, checked, file, program};

/// Tools for building a kernel for any architecture.
const BUILDING: [Tool; 11] = [
    program("make", "make"),
    program("gcc", "gcc"),
    program("flex", "flex"),
    program("bison", "bison"),
    program("bc", "bc"),
    program("perl", "perl"),
    program("tar", "tar"),
    program("xz", "xz-utils"),
    program("depmod", "kmod"),
    program("setpriv", "util-linux"),
    file("/usr/include/gelf.h", "libelf-dev"),
];

/// Tools for booting a kernel of any architecture.
const BOOTING: [Tool; 1] = [program("setpriv", "util-linux")];

/// Additional tools for booting a kernel of an architecture.
fn booting_on(arch: Arch) -> &'static [Tool] {
    const X86_64: [Tool; 2] = [
        program("qemu-system-x86_64", "qemu-system-x86"),
        checked(|| busybox::installed().is_ok(), "busybox-static"),
    ];
    const ARM64: [Tool; 1] = [program("qemu-system-aarch64", "qemu-system-arm")];
    match arch {
        Arch::X86_64 => &X86_64,
        Arch::Arm64 => &ARM64,
    }
}

/// Provides everything that building a kernel needs: root installs what is missing.
pub fn provide_to_build(
    arch: Arch,
    compiler: Compiler,
    cache: &Cache,
    progress: Progress,
) -> Result<()> {
    let all = [&BUILDING, compiler.tools(arch)].concat();
    tools::provide(&all, cache, progress)
}

/// Provides everything that building and booting a kernel needs: root installs what is missing.
pub fn provide_to_boot(
    arch: Arch,
    compiler: Compiler,
    cache: &Cache,
    progress: Progress,
) -> Result<()> {
    let all = [&BOOTING, booting_on(arch)].concat();
    tools::provide(&all, cache, progress)?;
    provide_to_build(arch, compiler, cache, progress)?;
    busybox::provide(arch, cache, progress)
}
