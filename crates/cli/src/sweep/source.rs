//! The machines and workloads of points: built-in ones by name, files by their content.

use std::borrow::Cow;
use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use anyhow::{Context, Result, ensure};
use lockworks_machine::{MACHINES, Machine};
use lockworks_sim::{WORKLOADS, Workload};
use serde::{Deserialize, Serialize};
use xxhash_rust::xxh3::xxh3_128;

/// A machine or a workload.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Source {
    /// The name of a machine or workload that is part of Lockworks.
    Builtin(String),
    /// A machine or workload that a file describes.
    File {
        /// The name in the file.
        name: String,
        /// The hash of the content. It identifies the results; the path does not.
        hash: String,
        /// The absolute path of the file. None: this is the identity of a point.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        path: Option<PathBuf>,
    },
}

impl Source {
    /// The name, for tables.
    pub fn name(&self) -> &str {
        let (Self::Builtin(name) | Self::File { name, .. }) = self;
        name
    }

    /// The word for the command line: the name or the path.
    pub fn argument(&self) -> String {
        match self {
            Self::Builtin(name) => name.clone(),
            Self::File { name, path, .. } => match path {
                Some(path) => path.display().to_string(),
                None => name.clone(),
            },
        }
    }

    /// The same source without the path.
    #[must_use]
    pub fn identity(&self) -> Self {
        match self.clone() {
            Self::File { name, hash, .. } => Self::File {
                name,
                hash,
                path: None,
            },
            builtin => builtin,
        }
    }

    fn new(name: &str, content: &str, origin: Option<&str>) -> Result<Self> {
        let Some(origin) = origin else {
            return Ok(Self::Builtin(name.to_owned()));
        };
        let path = std::path::absolute(origin).with_context(|| origin.to_owned())?;
        Ok(Self::File {
            name: name.to_owned(),
            hash: format!("{:032x}", xxh3_128(content.as_bytes())),
            path: Some(path),
        })
    }
}

/// Finds a machine by its name, or reads its file. Paths are relative to `directory`.
pub fn machine(name_or_path: &str, directory: &Path) -> Result<(Source, Machine)> {
    let (text, origin) = MACHINES.open(name_or_path, directory)?;
    let machine = Machine::parse(&text, &origin)?;
    let file = matches!(text, Cow::Owned(_)).then_some(origin.as_str());
    // The file may inherit from others, so the merged description is the content.
    let source = Source::new(&machine.name, &machine.to_toml(), file)?;
    Ok((source, machine))
}

/// Finds a workload by its name, or reads its file. Paths are relative to `directory`.
pub fn workload(name_or_path: &str, directory: &Path) -> Result<(Source, Workload)> {
    let (text, origin) = WORKLOADS.open(name_or_path, directory)?;
    let workload = Workload::parse(&text, &origin)?;
    let file = matches!(text, Cow::Owned(_)).then_some(origin.as_str());
    let source = Source::new(&workload.name, &text, file)?;
    Ok((source, workload))
}

/// The machines and workloads that points of this process have used, each read once.
#[derive(Default)]
pub struct ReadSources {
    machines: Mutex<HashMap<Source, Arc<Machine>>>,
    workloads: Mutex<HashMap<Source, Arc<Workload>>>,
}

impl ReadSources {
    /// The machine of a point.
    pub fn machine(&self, source: &Source) -> Result<Arc<Machine>> {
        find(&self.machines, source, machine)
    }

    /// The workload of a point.
    pub fn workload(&self, source: &Source) -> Result<Arc<Workload>> {
        find(&self.workloads, source, workload)
    }
}

fn find<T>(
    known: &Mutex<HashMap<Source, Arc<T>>>,
    source: &Source,
    read: fn(&str, &Path) -> Result<(Source, T)>,
) -> Result<Arc<T>> {
    let mut known = known.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(found) = known.get(source) {
        return Ok(Arc::clone(found));
    }
    let (read, found) = read(&source.argument(), Path::new(""))?;
    ensure!(
        read.identity() == source.identity(),
        "{} is not the description that the point was made of; make the points again",
        source.argument()
    );
    let found = Arc::new(found);
    known.insert(source.clone(), Arc::clone(&found));
    Ok(found)
}
