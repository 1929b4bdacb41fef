//! Applies the series to a tree, and reverts it.

use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use crate::changes::Changes;
use crate::edit::{self, Found};
use crate::error::Error;
use crate::inspection::{Inspection, State};
use crate::series::{Contents, Series};
use crate::tree::Tree;

/// Applies the series to a tree, in full or not at all. Returns false, without writing anything, if
/// it was applied.
pub fn apply(series: &Series, tree: &Tree) -> Result<bool, Error> {
    let seen = Inspection::new(series, tree)?;
    match seen.state {
        State::Applied => return Ok(false),
        State::Changed => return Err(seen.changed()),
        State::NotApplied => seen.no_foreign()?,
    }
    let mut changes = Changes::default();
    for (file, text) in series.applied(&seen.pristine)? {
        changes.write(tree.root().join(file), text);
    }
    changes.make(tree.root())?;
    Ok(true)
}

/// Reverts the series, to the byte, in full or not at all, and removes what compilers made of our
/// files. Returns false, without writing anything, if the series was not applied.
pub fn revert(series: &Series, tree: &Tree) -> Result<bool, Error> {
    let seen = Inspection::new(series, tree)?;
    match seen.state {
        State::NotApplied => return Ok(false),
        State::Changed => return Err(seen.changed()),
        State::Applied => seen.no_foreign()?,
    }
    let mut changes = Changes::default();
    for (file, text) in &seen.pristine {
        changes.write(tree.root().join(file), text.as_str());
    }
    let own = series.files().map(|(file, _)| file);
    for file in own.chain(seen.products.iter().map(String::as_str)) {
        changes.remove(tree.root().join(file));
    }
    changes.make(tree.root())?;
    Ok(true)
}

/// Updates a tree of our own from any version of the series to this one. Files that do not change keep
/// their times, so that little is compiled again. The directory `pristine` keeps copies of the
/// kernel's original files; it must be removed when the tree is unpacked again. Returns the paths of
/// all files that were written or removed.
pub fn refresh(tree: &Path, pristine: &Path) -> Result<Vec<PathBuf>, Error> {
    refresh_to(&Series::embedded()?, tree, pristine)
}

/// Updates a tree to a series, as [`refresh`] does.
pub fn refresh_to(series: &Series, tree: &Path, pristine: &Path) -> Result<Vec<PathBuf>, Error> {
    let tree = Tree::open(tree, series)?;
    let mut originals = read_below(pristine)?;
    let mut copies = Changes::default();
    for file in series.edited() {
        if !originals.contains_key(file) {
            let text = original(series, &tree, file)?;
            copies.write(pristine.join(file), text.as_str());
            originals.insert(file.to_owned(), text);
        }
    }
    // All originals are written: a file that the series no longer edits is restored.
    let wanted = series.applied(&originals)?;
    fs::create_dir_all(pristine).map_err(|error| Error::Write {
        path: pristine.to_owned(),
        error,
    })?;
    copies.make(pristine)?;

    let mut changes = Changes::default();
    let mut changed = Vec::new();
    for (file, text) in wanted {
        if tree.read(&file)?.as_ref() != Some(&text) {
            changed.push(tree.root().join(&file));
            changes.write(tree.root().join(file), text);
        }
    }
    for file in Inspection::new(series, &tree)?.foreign {
        changed.push(tree.root().join(&file));
        changes.remove(tree.root().join(file));
    }
    changes.make(tree.root())?;
    Ok(changed)
}

/// The contents of a file without our inserts.
fn original(series: &Series, tree: &Tree, file: &str) -> Result<String, Error> {
    let text = tree.read_edited(file)?;
    match edit::remove_all(&series.inserts(file), &text) {
        Found::All(without) => Ok(without),
        Found::None => Ok(text),
        Found::Some => Err(Error::Changed {
            file: file.to_owned(),
            how: "holds part of what Lockworks inserts",
        }),
    }
}

/// Reads all files below a directory, which may be missing.
fn read_below(top: &Path) -> Result<Contents, Error> {
    let mut found = Contents::new();
    let mut directories = vec![PathBuf::new()];
    while let Some(directory) = directories.pop() {
        let path = top.join(&directory);
        let entries = match fs::read_dir(&path) {
            Err(error) if error.kind() == ErrorKind::NotFound => continue,
            entries => entries.map_err(Error::read(&path))?,
        };
        for entry in entries {
            let entry = entry.map_err(Error::read(&path))?;
            let name = directory.join(entry.file_name());
            if entry.file_type().map_err(Error::read(&path))?.is_dir() {
                directories.push(name);
                continue;
            }
            let text = fs::read_to_string(entry.path()).map_err(Error::read(&entry.path()))?;
            found.insert(name.to_string_lossy().into_owned(), text);
        }
    }
    Ok(found)
}
