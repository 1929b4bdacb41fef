//! Where a plan finds the locks of a recording.

use std::collections::HashMap;
use std::path::PathBuf;

use lockworks_preload::plan::{Line, Module};
use serde::{Deserialize, Serialize};

use super::file::Recording;
use crate::places::Places;
use crate::record::Record;

/// An address in an executable or library.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Site {
    /// The module, by its place in [`Sites::modules`].
    pub module: usize,
    /// The address in its file.
    pub address: u64,
    /// What is there.
    pub name: String,
}

/// Where a plan finds a lock. None: it is not known, or a plan cannot name it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct LockSites {
    /// The static variable that it is or is part of.
    pub variable: Option<Site>,
    /// The return address of the call that initialised it first, if that is a mutex.
    pub initialised: Option<Site>,
    /// The return address of the call that locked it first, or tried to.
    pub first_locked: Option<Site>,
}

impl LockSites {
    /// The site by which a plan names the lock best: one that other locks do not share, if there is one, and
    /// one that does not depend on which thread comes first.
    pub fn best(&self) -> Option<&Site> {
        let sites = [&self.variable, &self.initialised, &self.first_locked];
        sites.into_iter().flatten().next()
    }
}

/// Where plans find the locks of a recording.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Sites {
    /// The executables and libraries.
    pub modules: Vec<Module>,
    /// For each of the recording's objects.
    pub objects: Vec<LockSites>,
}

impl Recording {
    /// The line of a plan that gives a lock to one of the objects, and to all others that have the same site.
    /// None: a plan cannot name it.
    pub fn plan_line(&self, object: usize, lock: &str) -> Option<Line> {
        let site = self.sites.objects.get(object)?.best()?;
        Some(Line {
            lock: lock.to_owned(),
            module: self.sites.modules.get(site.module)?.clone(),
            address: site.address,
            comment: site.name.clone(),
        })
    }
}

/// The files of sites.
#[derive(Default)]
pub struct Files {
    known: HashMap<PathBuf, Option<usize>>,
    /// Those that plans can name.
    pub modules: Vec<Module>,
}

impl Files {
    /// The site of a call that returns to an address in a process.
    pub fn call(&mut self, places: &mut Places, record: &Record, returns_to: u64) -> Option<Site> {
        // What follows the call may belong to another function.
        let call = returns_to.wrapping_sub(1);
        let (file, address) = places.code_in_file(record, call)?;
        let name = places.of_lock(record, call).name();
        self.site(file, address.wrapping_add(1), name)
    }

    /// The site of a static variable at an address in a process.
    pub fn variable(&mut self, places: &mut Places, record: &Record, at: u64) -> Option<Site> {
        let (file, address) = places.variable_in_file(record, at)?;
        self.site(file, address, places.lock(record, at))
    }

    fn site(&mut self, file: PathBuf, address: u64, name: String) -> Option<Site> {
        let module = *self.known.entry(file).or_insert_with_key(|file| {
            let module = Module::of(file).ok()?;
            self.modules.push(module);
            Some(self.modules.len() - 1)
        });
        Some(Site {
            module: module?,
            address,
            name,
        })
    }
}
