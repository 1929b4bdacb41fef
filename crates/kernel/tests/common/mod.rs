//! Small trees, and looking at them.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::process::Command;

use tempfile::TempDir;

pub const MAKEFILE: &str = "VERSION = 6\nPATCHLEVEL = 12\nSUBLEVEL = 9\nEXTRAVERSION =\n";

/// Path, mode, inode, modification time and contents of each file but git's own.
pub type Snapshot = BTreeMap<String, (u32, u64, i64, Vec<u8>)>;

pub fn snapshot(top: &Path) -> Snapshot {
    let mut found = Snapshot::new();
    let mut directories = vec![top.to_owned()];
    while let Some(directory) = directories.pop() {
        for entry in fs::read_dir(directory).unwrap() {
            let path = entry.unwrap().path();
            let name = path.strip_prefix(top).unwrap().to_str().unwrap().to_owned();
            let data = fs::symlink_metadata(&path).unwrap();
            if name == ".git" {
            } else if data.is_dir() {
                found.insert(name, (data.mode(), 0, 0, Vec::new()));
                directories.push(path);
            } else {
                let time = data.mtime() * 1_000_000_000 + data.mtime_nsec();
                let contents = fs::read(path).unwrap_or_default();
                found.insert(name, (data.mode(), data.ino(), time, contents));
            }
        }
    }
    found
}

/// Without what a rewritten file cannot keep.
pub fn contents(top: &Path) -> BTreeMap<String, (u32, Vec<u8>)> {
    let found = snapshot(top).into_iter();
    found
        .map(|(name, (mode, _, _, text))| (name, (mode, text)))
        .collect()
}

pub fn write(top: &Path, file: &str, text: &str) {
    let path = top.join(file);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, text).unwrap();
}

/// A tree of the given files, and what every tree has.
pub fn tree(files: &[(&str, &str)]) -> TempDir {
    let directory = tempfile::tempdir().unwrap();
    for (file, text) in [
        ("Makefile", MAKEFILE),
        ("Kbuild", "# all\n"),
        ("Kconfig", "# all\n"),
    ] {
        write(directory.path(), file, text);
    }
    for (file, text) in files {
        write(directory.path(), file, text);
    }
    directory
}

/// Runs git with nobody's settings.
pub fn git(directory: &Path, arguments: &[&str]) -> String {
    let output = Command::new("git")
        .current_dir(directory)
        .args([
            "-c",
            "user.name=A. Tester",
            "-c",
            "user.email=a@tester.example",
        ])
        .args(["-c", "core.autocrlf=false", "-c", "commit.gpgsign=false"])
        .args(arguments)
        .env("GIT_CONFIG_GLOBAL", "/dev/null")
        .env("GIT_CONFIG_SYSTEM", "/dev/null")
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "git {arguments:?}: {said}{errors}");
    said
}

pub fn commit_all(directory: &Path) {
    git(directory, &["init", "-q"]);
    git(directory, &["add", "-A"]);
    git(directory, &["commit", "-q", "-m", "Begin"]);
}
