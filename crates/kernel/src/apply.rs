//! Putting the series into a tree, and taking it out again.

use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use crate::changes::Changes;
use crate::edit::{self, Found};
use crate::error::Error;
use crate::inspection::{Inspection, State};
use crate::series::{Contents, Series};
use crate::tree::Tree;

/// Puts the series into a tree, in full or not at all. False: it was there, and nothing was written.
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

/// Takes the series out of a tree, to the byte, in full or not at all; what compilers made of our
/// files goes too. False: it was not there, and nothing was written.
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

/// Brings a tree of our own to the series as it is now, whatever series of ours is in it. Files that
/// are as they should be keep their times, so that little is compiled again. Copies of the kernel's
/// files as they were are kept in the directory `pristine`, which belongs to the tree: it goes when
/// the tree is unpacked afresh. Gives the paths of what was written and removed.
pub fn refresh(tree: &Path, pristine: &Path) -> Result<Vec<PathBuf>, Error> {
    refresh_to(&Series::embedded()?, tree, pristine)
}

/// [`refresh`] to any series.
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
    // All originals: a file that the series no longer edits goes back to what it was.
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

/// A file as it is without us.
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

/// All files below a directory, which may be missing.
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
