//! The patch series: what goes into a kernel's tree, and in which steps.
//!
//! `kernel/series.toml` names files of ours, which go into the tree as they are in the repository,
//! and texts to insert beside anchors in the kernel's own files. A step's `change` says what it made
//! of one of our files; undone from the last step on, the changes give the earlier states.

use std::collections::{BTreeMap, BTreeSet};

use include_dir::{Dir, include_dir};
use serde::Deserialize;

use crate::edit::{self, Insert, Place};
use crate::error::Error;

/// The repository's directories that hold what goes into a kernel.
static EMBEDDED: [(&str, Dir); 4] = [
    ("locks", include_dir!("$CARGO_MANIFEST_DIR/../../locks")),
    (
        "worlds/kernel",
        include_dir!("$CARGO_MANIFEST_DIR/../../worlds/kernel"),
    ),
    ("kernel", include_dir!("$CARGO_MANIFEST_DIR/../../kernel")),
    (
        "clients",
        include_dir!("$CARGO_MANIFEST_DIR/../../clients"),
    ),
];

/// What is wrong with the series' own data.
#[derive(Debug, thiserror::Error)]
#[allow(missing_docs)]
pub enum SeriesError {
    #[error("{0}")]
    Format(#[from] toml::de::Error),
    #[error("patch '{0}' changes nothing")]
    Empty(String),
    #[error("subject '{0}' is not one line of ASCII")]
    Subject(String),
    #[error("'{0}' is no path inside of a tree")]
    Path(String),
    #[error("there is no file {0} to embed")]
    NoFile(String),
    #[error("{0} is added twice, or both added and edited")]
    Twice(String),
    #[error("patch '{patch}': an insert in {file} needs text, and one of `after` and `before`")]
    Insert { patch: String, file: String },
    #[error("patch '{patch}' changes {file}, which no patch before it adds")]
    NotAdded { patch: String, file: String },
    #[error("patch '{patch}': what {file} is changed into does not stand in it exactly once")]
    Change { patch: String, file: String },
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Data {
    versions: Vec<String>,
    directory: String,
    patch: Vec<PatchData>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct PatchData {
    subject: String,
    body: String,
    #[serde(default)]
    files: BTreeMap<String, String>,
    #[serde(default)]
    insert: Vec<InsertData>,
    #[serde(default)]
    change: Vec<ChangeData>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct InsertData {
    file: String,
    after: Option<String>,
    before: Option<String>,
    text: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ChangeData {
    file: String,
    old: String,
    new: String,
}

/// The contents of files by their paths in the tree.
pub(crate) type Contents = BTreeMap<String, String>;

/// What goes into a kernel's tree, and in which steps.
#[derive(Clone, Debug)]
pub struct Series {
    pub(crate) versions: Vec<String>,
    /// The directory in the tree that is ours alone.
    pub(crate) directory: String,
    pub(crate) patches: Vec<Patch>,
}

/// One step.
#[derive(Clone, Debug)]
pub(crate) struct Patch {
    pub subject: String,
    pub body: String,
    pub inserts: Vec<Insert>,
    /// Our files as they are after this step.
    pub files: Contents,
}

impl Series {
    /// The series of this version of Lockworks.
    pub fn embedded() -> Result<Self, SeriesError> {
        let read = |path: &str| {
            EMBEDDED.iter().find_map(|(directory, files)| {
                let inside = path.strip_prefix(directory)?.strip_prefix('/')?;
                files.get_file(inside)?.contents_utf8().map(str::to_owned)
            })
        };
        let path = "kernel/series.toml";
        let text = read(path).ok_or_else(|| SeriesError::NoFile(path.to_owned()))?;
        Self::new(&text, read)
    }

    /// A series from its description and the files of the repository.
    pub fn new(
        description: &str,
        read: impl Fn(&str) -> Option<String>,
    ) -> Result<Self, SeriesError> {
        let data: Data = toml::from_str(description)?;
        let directory = inside(&data.directory)?.to_owned();
        let patches = steps(&data.patch, &directory, read)?;
        Ok(Self {
            versions: data.versions,
            directory,
            patches,
        })
    }

    /// Our files as they are at last.
    pub(crate) fn files(&self) -> impl Iterator<Item = (&str, &str)> {
        let last = self.patches.last().map(|patch| &patch.files);
        last.into_iter()
            .flatten()
            .map(|(path, text)| (path.as_str(), text.as_str()))
    }

    /// The kernel's files that are edited.
    pub(crate) fn edited(&self) -> BTreeSet<&str> {
        let inserts = self.patches.iter().flat_map(|patch| &patch.inserts);
        inserts.map(|insert| insert.file.as_str()).collect()
    }

    /// All that is inserted in a file, in order.
    pub(crate) fn inserts<'a>(&'a self, file: &str) -> Vec<&'a Insert> {
        let inserts = self.patches.iter().flat_map(|patch| &patch.inserts);
        inserts.filter(|insert| insert.file == file).collect()
    }

    /// All files of ours and all edited ones after the first `steps` patches, made of the edited
    /// files as they are without us.
    pub(crate) fn after(&self, steps: usize, pristine: &Contents) -> Result<Contents, Error> {
        let mut contents = pristine.clone();
        for insert in self.patches[..steps].iter().flat_map(|p| &p.inserts) {
            if let Some(text) = contents.get_mut(&insert.file) {
                *text = edit::insert_all([insert], text)
                    .map_err(|misfit| Error::anchor(&insert.file, misfit))?;
            }
        }
        if let Some(last) = self.patches[..steps].last() {
            contents.extend(last.files.clone());
        }
        Ok(contents)
    }

    /// All files of ours and all edited ones when the series is applied.
    pub(crate) fn applied(&self, pristine: &Contents) -> Result<Contents, Error> {
        self.after(self.patches.len(), pristine)
    }
}

fn steps(
    data: &[PatchData],
    directory: &str,
    read: impl Fn(&str) -> Option<String>,
) -> Result<Vec<Patch>, SeriesError> {
    // In the order of the series: what is inserted.
    let mut inserts: Vec<Insert> = Vec::new();
    let mut last = Contents::new();
    let mut ends = Vec::new();
    for patch in data {
        if patch.files.is_empty() && patch.insert.is_empty() && patch.change.is_empty() {
            return Err(SeriesError::Empty(patch.subject.clone()));
        }
        let one_line = |c: char| c == ' ' || c.is_ascii_graphic();
        if patch.subject.is_empty() || !patch.subject.chars().all(one_line) {
            return Err(SeriesError::Subject(patch.subject.clone()));
        }
        for insert in &patch.insert {
            let insert = read_insert(patch, insert, &inserts)?;
            inserts.push(insert);
        }
        ends.push(inserts.len());
        for (name, source) in &patch.files {
            let text = read(source).ok_or_else(|| SeriesError::NoFile(source.clone()))?;
            let path = in_tree(directory, name)?;
            if last.insert(path.clone(), text).is_some() {
                return Err(SeriesError::Twice(path));
            }
        }
    }
    if let Some(insert) = inserts.iter().find(|i| last.contains_key(&i.file)) {
        return Err(SeriesError::Twice(insert.file.clone()));
    }

    // Back from the end: our files.
    let mut steps = Vec::new();
    for (index, patch) in data.iter().enumerate().rev() {
        let start = index.checked_sub(1).map_or(0, |earlier| ends[earlier]);
        steps.push(Patch {
            subject: patch.subject.clone(),
            body: patch.body.trim().to_owned(),
            inserts: inserts[start..ends[index]].to_vec(),
            files: last.clone(),
        });
        for name in patch.files.keys() {
            last.remove(&in_tree(directory, name)?);
        }
        for change in patch.change.iter().rev() {
            undo(patch, change, directory, &mut last)?;
        }
    }
    steps.reverse();
    Ok(steps)
}

fn read_insert(
    patch: &PatchData,
    insert: &InsertData,
    earlier: &[Insert],
) -> Result<Insert, SeriesError> {
    let (place, anchor) = match (&insert.after, &insert.before) {
        (Some(anchor), None) if !anchor.is_empty() => (Place::After, anchor),
        (None, Some(anchor)) if !anchor.is_empty() => (Place::Before, anchor),
        _ => return Err(wrong_insert(patch, insert)),
    };
    if insert.text.is_empty() {
        return Err(wrong_insert(patch, insert));
    }
    let file = inside(&insert.file)?.to_owned();
    let same = |other: &&Insert| {
        place == Place::After
            && other.place == place
            && other.file == file
            && other.anchor == *anchor
    };
    Ok(Insert {
        earlier: earlier.iter().filter(same).map(|i| &*i.text).collect(),
        file,
        anchor: anchor.clone(),
        place,
        text: insert.text.clone(),
    })
}

fn wrong_insert(patch: &PatchData, insert: &InsertData) -> SeriesError {
    SeriesError::Insert {
        patch: patch.subject.clone(),
        file: insert.file.clone(),
    }
}

/// Takes one of our files back to before a change.
fn undo(
    patch: &PatchData,
    change: &ChangeData,
    directory: &str,
    files: &mut Contents,
) -> Result<(), SeriesError> {
    let path = in_tree(directory, &change.file)?;
    let (patch, file) = (patch.subject.clone(), change.file.clone());
    let Some(text) = files.get_mut(&path) else {
        return Err(SeriesError::NotAdded { patch, file });
    };
    let new = &change.new;
    match edit::sole(text, new) {
        Some(at) if !new.is_empty() && *new != change.old => {
            text.replace_range(at..at + new.len(), &change.old);
            Ok(())
        }
        _ => Err(SeriesError::Change { patch, file }),
    }
}

/// The path in the tree of one of our files: in our directory, or with a leading slash in the tree.
fn in_tree(directory: &str, name: &str) -> Result<String, SeriesError> {
    match name.strip_prefix('/') {
        Some(path) => inside(path).map(str::to_owned),
        None => inside(name).map(|name| format!("{directory}/{name}")),
    }
}

fn inside(path: &str) -> Result<&str, SeriesError> {
    let plain =
        |part: &str| !matches!(part, "" | "." | "..") && !part.contains(char::is_whitespace);
    match path.split('/').all(plain) {
        true => Ok(path),
        false => Err(SeriesError::Path(path.to_owned())),
    }
}
