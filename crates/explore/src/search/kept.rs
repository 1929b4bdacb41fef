//! A search in a file, so that it can go on later.
//!
//! The file holds a line that names its kind, the length of the header, the header, and then the states
//! that are known, those that wait, the edges and the origins.

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io::{self, BufReader, BufWriter, Read, Write};
use std::path::Path;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use tempfile::NamedTempFile;
use thiserror::Error;

use crate::model::Model;

use super::progress::{Counts, Progress};

const KIND: &[u8] = b"a search of lockworks check, form 1\n";

/// Why a search cannot go on from a file, or be kept in it.
#[derive(Debug, Error)]
pub enum KeptError {
    /// The file cannot be read or written.
    #[error(transparent)]
    File(#[from] io::Error),
    /// The file holds something else.
    #[error("it is no search that was kept; choose a file that does not exist yet")]
    Other,
    /// The file holds a search of another check.
    #[error(
        "it is a search of another check, or of another lockworks; give the same options, or another file"
    )]
    OtherCheck,
}

/// All of a search but its many states.
#[derive(Serialize, Deserialize)]
struct Header<S> {
    /// The check and the program.
    identity: u128,
    seen: S,
    results: BTreeSet<Vec<u64>>,
    counts: Counts,
}

/// A search that goes on.
pub struct Kept<S> {
    /// The findings of its model.
    pub seen: S,
    pub(super) progress: Progress,
}

/// A file in which a search is kept, and what the search depends on.
pub struct Keeper<'a> {
    path: &'a Path,
    identity: u128,
}

impl<'a> Keeper<'a> {
    /// `identity`: a hash of the check and of the program.
    ///
    /// # Errors
    /// The directory of the file cannot be written.
    pub fn new(path: &'a Path, identity: u128) -> io::Result<Self> {
        let keeper = Self { path, identity };
        keeper.new_file()?;
        Ok(keeper)
    }

    /// A file beside the kept one, which is to take its place.
    fn new_file(&self) -> io::Result<NamedTempFile> {
        let directory = self.path.parent().filter(|path| *path != Path::new(""));
        NamedTempFile::new_in(directory.unwrap_or(Path::new(".")))
    }

    /// Removes the file, if there is one.
    pub(super) fn remove(&self) -> Result<(), KeptError> {
        match fs::remove_file(self.path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error.into()),
            _ => Ok(()),
        }
    }
}

impl<S: DeserializeOwned> Kept<S> {
    /// The search in a file; None: there is no such file.
    ///
    /// States are read onto disk if they do not fit into `memory` bytes.
    pub fn load(keeper: &Keeper, memory: Option<usize>) -> Result<Option<Self>, KeptError> {
        let file = match File::open(keeper.path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            file => file?,
        };
        let length = file.metadata()?.len();
        let mut file = BufReader::new(file);
        let mut kind = [0; KIND.len()];
        let mut bytes = [0; size_of::<u64>()];
        let read = file
            .read_exact(&mut kind)
            .and_then(|()| file.read_exact(&mut bytes));
        if kind != KIND || read.is_err() || u64::from_le_bytes(bytes) > length {
            return Err(KeptError::Other);
        }
        let mut header = vec![0; u64::from_le_bytes(bytes) as usize];
        file.read_exact(&mut header)?;
        let header: Header<S> = postcard::from_bytes(&header).map_err(|_| KeptError::Other)?;
        if header.identity != keeper.identity {
            return Err(KeptError::OtherCheck);
        }
        Ok(Some(Self {
            seen: header.seen,
            progress: Progress::read(header.counts, header.results, memory, &mut file)?,
        }))
    }
}

/// Keeps a search in a file. The file is replaced once all has been written.
pub(super) fn save<M: Model>(
    progress: &mut Progress,
    model: &M,
    keeper: &Keeper,
) -> Result<(), KeptError> {
    let header = Header {
        identity: keeper.identity,
        seen: model.seen(),
        results: progress.results.clone(),
        counts: progress.counts()?,
    };
    let header = postcard::to_stdvec(&header).map_err(io::Error::other)?;
    let new = keeper.new_file()?;
    let mut file = BufWriter::new(new.as_file());
    file.write_all(KIND)?;
    file.write_all(&(header.len() as u64).to_le_bytes())?;
    file.write_all(&header)?;
    progress.write(&mut file)?;
    file.flush()?;
    drop(file);
    new.persist(keeper.path).map_err(|error| error.error)?;
    Ok(())
}
