//! A disk with the programs that workloads need beyond busybox.

use std::fs;
use std::path::PathBuf;

use lockworks_programs::children::{self, Ending};

use crate::cache::{self, Cache, Progress};
use crate::debian::{self, SUITE};
use crate::error::{Attempt, Result};
use crate::tools::{self, Tool};

const TOOLS: [Tool; 2] = [
    tools::program("mke2fs", "e2fsprogs"),
    tools::program("tar", "tar"),
];

const PACKAGES: &str = "nginx-light,wrk,memcached,libmemcached-tools,redis-server,redis-tools,\
                        libleveldb1d,rt-tests,tcc,libc6-dev,make";

/// Makes the image of the disk, unless it is in the cache. Guests do not change it.
pub fn disk(cache: &Cache, progress: Progress) -> Result<PathBuf> {
    let made_of = format!("{SUITE} {PACKAGES}");
    let name = format!(
        "disk-{:016x}",
        xxhash_rust::xxh3::xxh3_64(made_of.as_bytes())
    );
    let _lock = cache.lock(&name, progress)?;
    let image = cache.path(&format!("{name}.img"));
    if image.exists() {
        return Ok(image);
    }
    tools::provide(&TOOLS, cache, progress)?;
    let staging = cache::staging(&image)?;
    let (archive, root) = (staging.join("root.tar"), staging.join("root"));
    let unfinished = staging.join("image");
    let log = cache.path("disk.log");
    fs::create_dir(&root).attempt_on("make the directory", &root)?;

    progress("making a disk: fetching Debian packages");
    let options = ["--variant=apt", &format!("--include={PACKAGES}")];
    debian::archive(&options, &archive, cache, progress)?;
    progress("making a disk");
    // The guest has its own devices, and only root could make them here.
    let mut unpack = children::command("tar", Ending::Killed);
    unpack
        .args(["--extract", "--exclude=./dev/*", "--file"])
        .arg(&archive)
        .arg("--directory")
        .arg(&root);
    tools::run_logged(unpack, "unpacking the disk's files", &log)?;
    let mke2fs = tools::find("mke2fs").unwrap_or_else(|| "mke2fs".into());
    let mut format = children::command(mke2fs, Ending::Killed);
    format
        .args(["-q", "-t", "ext4", "-d"])
        .args([&root, &unfinished])
        .arg("1G");
    tools::run_logged(format, "mke2fs", &log)?;
    fs::rename(&unfinished, &image).attempt_on("make", &image)?;
    cache::remove(&staging)?;
    Ok(image)
}
