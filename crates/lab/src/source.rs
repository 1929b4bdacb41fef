//! Kernel sources, from Debian's package or the user's own tree.

use std::fs;
use std::path::{Path, PathBuf};

use lockworks_kernel::{Series, State};
use lockworks_programs::children::{self, Ending};

use crate::cache::{self, Cache, Progress};
use crate::debian;
use crate::error::{Attempt, Error, Result};
use crate::file_lock::FileLock;
use crate::tools;
use crate::version::Version;

/// A tree to build from. No other command changes a cached tree as long as this value exists.
#[derive(Debug)]
pub struct Tree {
    /// Its top directory.
    pub path: PathBuf,
    /// Its version.
    pub version: Version,
    /// The part of the names of its builds that identifies it.
    pub(crate) name: String,
    _unchanged: Option<FileLock>,
}

impl Tree {
    /// Opens the user's own tree, which is not changed.
    pub fn given(path: &Path) -> Result<Self> {
        let path = path.canonicalize().attempt_on("find the tree", path)?;
        let series = Series::embedded()?;
        let opened = lockworks_kernel::Tree::open(&path, &series)?;
        match lockworks_kernel::status(&series, &opened)?.state {
            State::Applied => Ok(Self {
                version: version_of(&opened)?,
                name: format!(
                    "{:016x}",
                    xxhash_rust::xxh3::xxh3_64(path.as_os_str().as_encoded_bytes())
                ),
                path,
                _unchanged: None,
            }),
            State::NotApplied => Err(Error::Refused(format!(
                "Lockworks is not in {0}; run `lockworks kernel apply {0}` first",
                path.display()
            ))),
            State::Changed => Err(Error::Refused(format!(
                "{0} was changed after the series was applied, or has the series of another version; see \
                 `lockworks kernel status {0}`",
                path.display()
            ))),
        }
    }

    /// Provides the cached tree of Debian's sources, with this version of Lockworks applied.
    pub fn cached(version: Version, cache: &Cache, progress: Progress) -> Result<Self> {
        let lock = cache.lock(&format!("source-{version}"), progress)?;
        let path = unpacked(version, cache, progress)?;
        lockworks_kernel::refresh(&path, &cache.path(&originals(version)))?;
        // Other commands may build from the tree, but not update it.
        lock.share().attempt_on("lock", &path)?;
        Ok(Self {
            path,
            version,
            name: version.to_string(),
            _unchanged: Some(lock),
        })
    }
}

/// Finds the version of a tree that the series supports.
fn version_of(tree: &lockworks_kernel::Tree) -> Result<Version> {
    let found = tree.version().to_string();
    let of = |known: &Version| found == known.name() || found.starts_with(&format!("{known}."));
    Version::ALL.into_iter().find(of).ok_or_else(|| {
        Error::Refused(format!(
            "there is no guest configuration for Linux {found}; give a tree of {}",
            Version::ALL.map(Version::name).join(", ")
        ))
    })
}

/// The Debian package with the sources of a kernel.
fn package_of(version: Version) -> String {
    format!("linux-source-{version}")
}

/// The cache entry with the original contents of the files that Lockworks edits.
fn originals(version: Version) -> String {
    format!("originals-{version}")
}

/// Unpacks Debian's sources, unless the cache holds them.
fn unpacked(version: Version, cache: &Cache, progress: Progress) -> Result<PathBuf> {
    let package = package_of(version);
    let path = cache.path(&format!("tree-{version}"));
    let stamp = cache.path(&format!("tree-{version}.stamp"));
    let installed = PathBuf::from(format!("/usr/src/{package}.tar.xz"));
    let from = fs::read_to_string(&stamp).ok();
    let newer = |archive: &Path| from.as_ref().is_some_and(|from| *from != identity(archive));
    if path.is_dir() && !(installed.is_file() && newer(&installed)) {
        return Ok(path);
    }

    let archive = archive(version, cache, progress)?;
    progress(&format!("unpacking {package}"));
    let staging = cache::staging(&path)?;
    let mut tar = children::command("tar", Ending::Killed);
    tar.args(["--extract", "--strip-components=1", "--file"])
        .arg(&archive)
        .arg("--directory")
        .arg(&staging);
    tools::run_logged(
        tar,
        &format!("unpacking {}", archive.display()),
        &cache.path("unpack.log"),
    )?;
    // Files of the new archive may be older than earlier builds, so these are removed.
    for entry in fs::read_dir(cache.path("")).attempt_on("read", &path)? {
        let entry = entry.attempt_on("read", &path)?;
        let name = entry.file_name().to_string_lossy().into_owned();
        let stale = name == originals(version)
            || name == format!("configurations-{version}")
            || name.starts_with(&format!("build-{version}-"));
        if stale && entry.path().is_dir() {
            cache::remove(&entry.path())?;
        }
    }
    cache::remove(&path)?;
    fs::write(&stamp, identity(&archive)).attempt_on("write", &stamp)?;
    fs::rename(&staging, &path).attempt_on("make", &path)?;
    Ok(path)
}

/// A text that differs between an archive and its successor.
fn identity(archive: &Path) -> String {
    match archive.metadata() {
        Ok(found) => format!("{} {:?}\n", found.len(), found.modified().ok()),
        Err(_) => String::new(),
    }
}

/// Finds Debian's archive, installed or in the cache, or else fetches it.
fn archive(version: Version, cache: &Cache, progress: Progress) -> Result<PathBuf> {
    let package = package_of(version);
    let within = format!("usr/src/{package}.tar.xz");
    let installed = Path::new("/").join(&within);
    let fetched = cache.path("packages").join(&package);
    for found in [&installed, &fetched.join(&within)] {
        if found.is_file() {
            return Ok(found.clone());
        }
    }
    progress(&format!("fetching {package}"));
    if nix::unistd::geteuid().is_root() {
        match tools::install(&[&package], cache, progress) {
            Ok(()) if installed.is_file() => return Ok(installed),
            Err(error @ Error::NoSpace { .. }) => return Err(error),
            _ => {}
        }
    }
    fetch(&package, &fetched, cache)?;
    Ok(fetched.join(within))
}

/// Downloads a Debian package and unpacks it into a directory, which does not need root.
fn fetch(package: &str, directory: &Path, cache: &Cache) -> Result<()> {
    if let Some(parent) = directory.parent() {
        fs::create_dir_all(parent).attempt_on("make the directory", parent)?;
    }
    let staging = cache::staging(directory)?;
    let log = cache.path("apt.log");
    let mut apt = children::command("apt-get", Ending::Asked);
    apt.args(["download", package]).current_dir(&staging);
    let fetched = tools::run_logged(apt, &format!("apt-get download {package}"), &log);
    fetched
        .or_else(|error| match error {
            Error::NoSpace { .. } => Err(error),
            _ => debian::download_newer(package, &staging, cache),
        })
        .map_err(|error| {
            let from = format!("{}, {}", tools::mirrors(), debian::newer());
            match tools::not_had(&[package], &from, error) {
                Error::Refused(why) => {
                    Error::Refused(format!("{why}; or give a source tree with --tree"))
                }
                other => other,
            }
        })?;
    let is_package = |path: &PathBuf| path.extension().is_some_and(|e| e == "deb");
    let file = fs::read_dir(&staging)
        .attempt_on("read", &staging)?
        .filter_map(|entry| Some(entry.ok()?.path()))
        .find(is_package)
        .ok_or_else(|| Error::Refused(format!("apt-get brought no {package}")))?;
    let mut unpack = children::command("dpkg-deb", Ending::Killed);
    unpack.arg("-x").args([&file, &staging]);
    tools::run_logged(unpack, &format!("unpacking {package}"), &log)?;
    fs::remove_file(&file).attempt_on("remove", &file)?;
    fs::rename(&staging, directory).attempt_on("make", directory)
}
