//! Applies the series to a tree, and reverts it, by `git apply`.

use std::fs::{self, Metadata};
use std::os::unix::fs::{MetadataExt, chown};
use std::path::{Path, PathBuf};

use crate::edit::{self, Found};
use crate::error::Error;
use crate::files;
use crate::fit;
use crate::git;
use crate::inspection::{Inspection, State};
use crate::series::{Contents, Series};
use crate::tree::Tree;

/// Applies the series to a tree, in full or not at all. Returns false, without writing anything, if
/// it was applied.
pub fn apply(series: &Series, tree: &Tree) -> Result<bool, Error> {
    let series = &series.fitting(tree)?;
    let seen = Inspection::new(series, tree)?;
    match seen.state {
        State::Applied => return Ok(false),
        State::Changed => return Err(seen.changed()),
        State::NotApplied => {
            seen.is_free(series, tree)?;
            fit::check(series, tree, &seen.pristine)?;
        }
    }
    patch(tree, series, &seen.pristine, &[])?;
    Ok(true)
}

/// Reverts the series, to the byte, in full or not at all, and removes what compilers made of our
/// files. Returns false, without writing anything, if the series was not applied.
pub fn revert(series: &Series, tree: &Tree) -> Result<bool, Error> {
    let series = &series.fitting(tree)?;
    let seen = Inspection::new(series, tree)?;
    match seen.state {
        State::NotApplied => return Ok(false),
        State::Changed => return Err(seen.changed()),
        State::Applied => seen.no_foreign()?,
    }
    patch(tree, series, &seen.pristine, &["--reverse"])?;
    for product in &seen.products {
        files::remove(tree.root(), product)?;
    }
    Ok(true)
}

/// Applies the series to a tree as one patch, or reverts it. `pristine` has the edited files without
/// the series, so the patch fits exactly.
fn patch(tree: &Tree, series: &Series, pristine: &Contents, how: &[&str]) -> Result<(), Error> {
    let scratch = tempfile::tempdir().map_err(Error::write(&std::env::temp_dir()))?;
    files::write_below(&scratch.path().join("a"), pristine)?;
    let applied = series.applied(pristine)?;
    files::write_below(&scratch.path().join("b"), &applied)?;
    let mut diff = git::command(scratch.path());
    diff.args([
        "diff",
        "--no-index",
        "--no-prefix",
        "--no-renames",
        "--binary",
    ])
    .args(["a", "b"]);
    let patch = git::run(diff, "diff", "", &[1])?;

    let apply = |more: &[&str]| {
        let mut apply = git::command(tree.root());
        // Not a repository: git then patches the files of the directory that it runs in.
        apply
            .env("GIT_DIR", scratch.path().join("none"))
            .args(["apply", "--whitespace=nowarn"])
            .args(how)
            .args(more)
            .arg("-");
        git::run(apply, "apply", &patch, &[0])
    };
    apply(&["--check"]).map_err(|error| Error::Unchanged(Box::new(error)))?;
    // git writes files anew.
    let edited = pristine.keys().map(|file| tree.root().join(file));
    let edited: Vec<(PathBuf, Metadata)> = edited
        .map(|path| {
            fs::metadata(&path)
                .map(|old| (path.clone(), old))
                .map_err(Error::read(&path))
        })
        .collect::<Result<_, _>>()?;
    let before: Vec<(&String, Option<String>)> = applied
        .keys()
        .map(|file| Ok((file, tree.read(file)?)))
        .collect::<Result<_, Error>>()?;
    let mut done = apply(&[]).map(drop);
    if done.is_err() {
        restore(tree, &before);
    }
    for (path, old) in edited {
        // Only root can change the owner. Other users keep the files that they write.
        let _ = chown(&path, Some(old.uid()), Some(old.gid()));
        let set = fs::set_permissions(&path, old.permissions());
        done = done.and(set.map_err(Error::write(&path)));
    }
    done
}

/// Gives files the contents that they had, as far as they can be written: git stops at the first one
/// that it cannot write, such as one on a full disk.
fn restore(tree: &Tree, before: &[(&String, Option<String>)]) {
    for (file, text) in before {
        let now = tree.read(file);
        let _ = match text {
            Some(text) if !matches!(&now, Ok(Some(now)) if now == text) => {
                files::write(&tree.root().join(file), text)
            }
            None if !matches!(now, Ok(None)) => files::remove(tree.root(), file),
            _ => Ok(()),
        };
    }
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
    let series = &series.fitting(&tree)?;
    let mut originals = Contents::new();
    for file in files::below(pristine)? {
        let path = pristine.join(&file);
        let text = fs::read_to_string(&path).map_err(Error::read(&path))?;
        originals.insert(file.to_string_lossy().into_owned(), text);
    }
    for file in series.edited() {
        if !originals.contains_key(file) {
            let text = original(series, &tree, file)?;
            files::write(&pristine.join(file), &text)?;
            originals.insert(file.to_owned(), text);
        }
    }
    fit::check(series, &tree, &originals)?;
    let mut changed = Vec::new();
    // All originals are written: a file that the series no longer edits is restored.
    for (file, text) in series.applied(&originals)? {
        if tree.read(&file)?.as_ref() != Some(&text) {
            let path = tree.root().join(&file);
            files::write(&path, &text)?;
            changed.push(path);
        }
    }
    for file in Inspection::new(series, &tree)?.foreign {
        files::remove(tree.root(), &file)?;
        changed.push(tree.root().join(file));
    }
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
