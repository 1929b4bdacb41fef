//! The programs of the guest's first file system: a statically linked busybox.

use std::fs;
use std::path::PathBuf;

use lockworks_programs::children::{self, Ending};

use crate::arch::Arch;
use crate::cache::{self, Cache, Progress};
use crate::debian;
use crate::error::{Attempt, Error, Result};
use crate::tools;

/// Fetches the busybox of an architecture, unless it is the one of this machine.
pub(crate) fn provide(arch: Arch, cache: &Cache, progress: Progress) -> Result<()> {
    if arch == Arch::X86_64 {
        return Ok(());
    }
    let target = fetched(arch, cache);
    let _lock = cache.lock(&format!("busybox-{arch}"), progress)?;
    if target.is_file() {
        return Ok(());
    }
    progress(&format!("fetching busybox for {arch}"));
    let staging = cache::staging(&target)?;
    let archive = staging.join("package.tar");
    // Without root, mmdebstrap would ask for more rights than taking a package apart needs.
    let mode = match nix::unistd::geteuid().is_root() {
        true => "--mode=root",
        false => "--mode=chrootless",
    };
    let options = [
        mode,
        "--variant=extract",
        &format!("--architectures={arch}"),
        "--include=busybox-static",
    ];
    debian::archive(&options, &archive, cache, progress)?;
    let mut unpack = children::command("tar", Ending::Killed);
    unpack
        .args(["--extract", "--file"])
        .arg(&archive)
        .arg("--directory")
        .arg(&staging)
        .arg("./bin/busybox");
    tools::run_logged(unpack, "unpacking busybox", &cache.path("busybox.log"))?;
    fs::rename(staging.join("bin/busybox"), &target).attempt_on("make", &target)?;
    cache::remove(&staging)
}

fn fetched(arch: Arch, cache: &Cache) -> PathBuf {
    cache.path(&format!("busybox-{arch}-{}", debian::SUITE))
}

/// Reads the busybox of an architecture.
pub(crate) fn read(arch: Arch, cache: &Cache) -> Result<Vec<u8>> {
    match arch {
        Arch::X86_64 => installed(),
        Arch::Arm64 => {
            let path = fetched(arch, cache);
            fs::read(&path).attempt_on("read", &path)
        }
    }
}

/// Reads the busybox that is installed on this machine.
pub(crate) fn installed() -> Result<Vec<u8>> {
    const LOADER: &[u8] = b"/lib64/ld-linux";
    let refused = || {
        Error::Refused(
            "there is no static busybox for the guest; install the Debian package busybox-static"
                .into(),
        )
    };
    let path = tools::find("busybox").ok_or_else(refused)?;
    let program = fs::read(&path).attempt_on("read", &path)?;
    // A dynamically linked program names its loader near its beginning.
    let head = &program[..program.len().min(4096)];
    match head.windows(LOADER.len()).any(|bytes| bytes == LOADER) {
        true => Err(refused()),
        false => Ok(program),
    }
}
