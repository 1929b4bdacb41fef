//! A search in a file, so that it can go on later.
//!
//! The file holds a line that names its kind, the length of the header, the header, and then the states
//! that are known, those that wait, the edges and the origins.

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io::{self, BufReader, BufWriter, Read, Write};
use std::path::Path;

use serde::{Deserialize, Serialize};
use tempfile::NamedTempFile;
use thiserror::Error;
use xxhash_rust::xxh3::Xxh3;

use crate::automaton::{Learned, LocalId};
use crate::cells::Findings;
use crate::config::Config;
use crate::model::Model;
use crate::mutation::Mutation;
use crate::source::loaded_source;

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
struct Header {
    /// The check and the program.
    identity: u128,
    findings: Findings,
    steps: Vec<Learned>,
    relied_on: Vec<LocalId>,
    covered: Vec<bool>,
    events: [u64; 2],
    cut: bool,
    results: BTreeSet<Vec<u64>>,
    counts: Counts,
}

/// A search that goes on.
pub(crate) struct Kept {
    pub(crate) findings: Findings,
    pub(crate) steps: Vec<Learned>,
    pub(super) relied_on: Vec<LocalId>,
    pub(super) covered: Vec<bool>,
    pub(super) events: [u64; 2],
    pub(super) cut: bool,
    pub(super) progress: Progress,
}

/// A file in which a search is kept, and what the search depends on.
pub(crate) struct Keeper<'a> {
    path: &'a Path,
    /// A hash of the check, of this program, and of the source that it has loaded.
    identity: u128,
}

impl<'a> Keeper<'a> {
    /// # Errors
    /// The directory of the file cannot be written, or the program cannot be read.
    pub(crate) fn new(
        path: &'a Path,
        config: &Config,
        mutation: Option<Mutation>,
    ) -> Result<Self, KeptError> {
        let mut hash = Xxh3::new();
        hash.update(&fs::read("/proc/self/exe")?);
        if let Some(source) = loaded_source() {
            hash.update(&fs::read(source)?);
        }
        hash.update(&postcard::to_stdvec(&(config, mutation)).map_err(io::Error::other)?);
        let keeper = Self {
            path,
            identity: hash.digest128(),
        };
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

impl Kept {
    /// The search in a file; None: there is no such file.
    ///
    /// States are read onto disk if they do not fit into `memory` bytes.
    pub(crate) fn load(keeper: &Keeper, memory: Option<usize>) -> Result<Option<Self>, KeptError> {
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
        let header: Header = postcard::from_bytes(&header).map_err(|_| KeptError::Other)?;
        if header.identity != keeper.identity {
            return Err(KeptError::OtherCheck);
        }
        Ok(Some(Self {
            findings: header.findings,
            steps: header.steps,
            relied_on: header.relied_on,
            covered: header.covered,
            events: header.events,
            cut: header.cut,
            progress: Progress::read(header.counts, header.results, memory, &mut file)?,
        }))
    }
}

/// Keeps a search in a file. The file is replaced once all has been written.
pub(super) fn save<const N: usize>(
    progress: &mut Progress,
    model: &Model<N>,
    keeper: &Keeper,
) -> Result<(), KeptError> {
    let header = Header {
        identity: keeper.identity,
        findings: model.findings.clone(),
        steps: model.automata.log().steps().clone(),
        relied_on: model.automata.relied_on(),
        covered: model.covered.clone(),
        events: model.events,
        cut: model.cut,
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
