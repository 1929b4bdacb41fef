//! The guest's first file system.

use std::io::{self, Write};

use cpio::newc::{Builder, ModeFileType, trailer};

use crate::config::GUEST;
use crate::error::{Attempt, Result};

/// A file of the archive.
#[derive(Clone, Debug)]
pub(crate) struct Entry {
    /// The path, without a leading slash.
    pub path: String,
    pub contents: Vec<u8>,
}

/// Directories for files and mounts.
const DIRECTORIES: [&str; 10] = [
    "bin",
    "dev",
    "etc",
    "mnt",
    "proc",
    "root",
    "sys",
    "tmp",
    "lockworks",
    "lockworks/modules",
];

/// Makes an archive of `busybox`, the guest's scripts and `more`.
pub(crate) fn archive(busybox: &[u8], more: &[Entry]) -> Result<Vec<u8>> {
    let scripts = GUEST
        .files()
        .filter(|file| file.path().extension().is_none_or(|e| e == "sh"))
        .map(|file| {
            let name = file.path().to_string_lossy().into_owned();
            let path = match name.as_str() {
                "init" => name,
                _ => format!("lockworks/{name}"),
            };
            (path, file.contents())
        });
    let mut archive = Archive(Vec::new());
    let write = || -> io::Result<()> {
        for directory in DIRECTORIES {
            archive.add(directory, ModeFileType::Directory, &[])?;
        }
        archive.add("bin/busybox", ModeFileType::Regular, busybox)?;
        for (path, contents) in scripts {
            archive.add(&path, ModeFileType::Regular, contents)?;
        }
        for entry in more {
            archive.add(&entry.path, ModeFileType::Regular, &entry.contents)?;
        }
        Ok(())
    };
    write().attempt(|| "make the guest's initramfs".to_owned())?;
    trailer(archive.0).attempt(|| "make the guest's initramfs".to_owned())
}

struct Archive(Vec<u8>);

impl Archive {
    fn add(&mut self, path: &str, kind: ModeFileType, contents: &[u8]) -> io::Result<()> {
        let length = u32::try_from(contents.len()).map_err(io::Error::other)?;
        let mut file = Builder::new(path)
            .mode(0o755)
            .set_mode_file_type(kind)
            .write(&mut self.0, length);
        file.write_all(contents)?;
        file.finish().map(drop)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use cpio::newc::Reader;

    #[test]
    fn holds_what_the_guest_needs() {
        let more = [Entry {
            path: "lockworks/modules/plan".into(),
            contents: b"TASK=x\n".into(),
        }];
        let archive = archive(b"busybox", &more).unwrap();
        let mut rest = archive.as_slice();
        let mut found = Vec::new();
        loop {
            let mut reader = Reader::new(rest).unwrap();
            if reader.entry().is_trailer() {
                break;
            }
            let (name, mode) = (reader.entry().name().to_owned(), reader.entry().mode());
            let mut contents = Vec::new();
            io::Read::read_to_end(&mut reader, &mut contents).unwrap();
            rest = reader.finish().unwrap();
            found.push((name, mode, contents));
        }
        for (name, ..) in &found {
            let parent = name.rsplit_once('/').map(|(parent, _)| parent);
            // The kernel does not make missing directories.
            assert!(parent.is_none_or(|parent| found.iter().any(|(n, ..)| n == parent)));
        }
        let file = |name: &str| found.iter().find(|(n, ..)| n == name).expect(name);
        assert_eq!(file("proc").1, 0o040_755);
        assert_eq!(file("bin/busybox").1, 0o100_755);
        assert_eq!(file("lockworks/modules/plan").2, b"TASK=x\n");
        assert!(file("init").2.starts_with(b"#!/bin/busybox sh\n"));
        assert!(!file("lockworks/torture.sh").2.is_empty());
        assert!(!found.iter().any(|(name, ..)| name.ends_with(".config")));
    }
}
