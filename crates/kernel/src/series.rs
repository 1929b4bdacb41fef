//! The patch series: our files and texts that go into a kernel's tree, step by step.
//!
//! `series.toml` names our files, which go into the tree as they are in the repository, and texts to
//! insert beside anchors in the kernel's own files. A header of ours comes with the first step whose
//! files include it, so that only the C files are listed.

use std::collections::{BTreeMap, BTreeSet};

use include_dir::{Dir, include_dir};
use serde::Deserialize;

use crate::edit::{self, Insert, Place};
use crate::error::{Error, SeriesError};
use crate::fit::{self, Need};
use crate::tree::Tree;
use crate::version;

/// The repository's directories that hold what goes into a kernel.
static EMBEDDED: [(&str, Dir); 3] = [
    ("locks", include_dir!("$CARGO_MANIFEST_DIR/../../locks")),
    (
        "worlds/kernel",
        include_dir!("$CARGO_MANIFEST_DIR/../../worlds/kernel"),
    ),
    ("clients", include_dir!("$CARGO_MANIFEST_DIR/../../clients")),
];

/// A series as `series.toml` describes it.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct SeriesData {
    versions: Vec<String>,
    directory: String,
    include: Vec<String>,
    #[serde(default)]
    rivals: Rivals,
    cover: Cover,
    patch: Vec<PatchData>,
}

/// Traces that other series for the same place leave in a tree.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Rivals {
    /// Files that they add.
    files: Vec<String>,
    /// Symbols that they define.
    symbols: Vec<String>,
    /// The files that may define these symbols. Ours are in a file of ours.
    kconfig: Vec<String>,
}

impl Rivals {
    /// The other series that a tree has, in words.
    pub fn found(&self, tree: &Tree) -> Result<Vec<String>, Error> {
        let mut found = Vec::new();
        for file in &self.files {
            if tree.read(file)?.is_some() {
                found.push(file.clone());
            }
        }
        for file in &self.kconfig {
            let text = tree.read(file)?.unwrap_or_default();
            for symbol in &self.symbols {
                let defines = |line: &str| line.trim() == format!("config {symbol}");
                if text.lines().any(defines) {
                    found.push(format!("CONFIG_{symbol} in {file}"));
                }
            }
        }
        Ok(found)
    }
}

/// The texts of the letter that goes before the patches.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Cover {
    /// Its subject.
    pub title: String,
    /// The purpose of the series.
    pub text: String,
    /// How it was tested.
    pub tested: String,
    /// The changes since the last version.
    pub changes: String,
}

impl Cover {
    /// Checks that the letter needs no encoding, because git gives it none.
    fn check(&self) -> Result<(), SeriesError> {
        check_subject(&self.title)?;
        let texts = [&self.text, &self.tested, &self.changes];
        match texts.iter().any(|text| !text.is_ascii()) {
            true => Err(SeriesError::Cover),
            false => Ok(()),
        }
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct PatchData {
    subject: String,
    body: String,
    /// Files of the repository that go into our directory under their own names.
    #[serde(default)]
    files: Vec<String>,
    /// Files of the repository that go elsewhere, by their paths in the tree.
    #[serde(default)]
    elsewhere: BTreeMap<String, String>,
    /// Text at the end of files in our directory.
    #[serde(default)]
    append: BTreeMap<String, String>,
    #[serde(default)]
    insert: Vec<InsertData>,
    #[serde(default)]
    need: Vec<NeedData>,
}

/// What the code of our files needs in the kernel's files.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct NeedData {
    files: Vec<String>,
    texts: Vec<String>,
    /// The releases that need it: from this one on, and before that one.
    since: Option<String>,
    before: Option<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct InsertData {
    /// Of the inserts of a choice, the first one is made that fits.
    choice: Option<String>,
    file: String,
    after: Option<String>,
    before: Option<String>,
    text: String,
}

/// The contents of files by their paths in the tree.
pub(crate) type Contents = BTreeMap<String, String>;

/// The patch series for a kernel's tree.
#[derive(Clone, Debug)]
pub struct Series {
    pub(crate) versions: Vec<String>,
    /// The directory in the tree that is ours alone.
    pub(crate) directory: String,
    pub(crate) rivals: Rivals,
    pub(crate) cover: Cover,
    pub(crate) patches: Vec<Patch>,
}

/// One step of the series.
#[derive(Clone, Debug)]
pub(crate) struct Patch {
    pub subject: String,
    pub body: String,
    pub inserts: Vec<Insert>,
    pub needs: Vec<Need>,
    /// All our files as they are after this step.
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
        Self::new(include_str!("../series.toml"), read)
    }

    /// A series made of its description and the files of the repository.
    pub fn new(
        description: &str,
        read: impl Fn(&str) -> Option<String>,
    ) -> Result<Self, SeriesError> {
        let data: SeriesData = toml::from_str(description)?;
        inside(&data.directory)?;
        data.cover.check()?;
        let mut steps = Steps::new(&data, read)?;
        let patches = data.patch.iter().map(|patch| steps.next(patch));
        let patches = patches.collect::<Result<Vec<_>, _>>()?;
        steps.nothing_twice()?;
        Ok(Self {
            versions: data.versions,
            directory: data.directory,
            rivals: data.rivals,
            cover: data.cover,
            patches,
        })
    }

    /// The series for one tree: of the inserts of a choice, only the one that fits it. If none does, it
    /// has the first one, which then names what is missing.
    pub(crate) fn fitting(&self, tree: &Tree) -> Result<Self, Error> {
        let mut choices: BTreeMap<&str, Vec<&Insert>> = BTreeMap::new();
        for insert in self.patches.iter().flat_map(|patch| &patch.inserts) {
            if let Some(choice) = &insert.choice {
                choices.entry(choice).or_default().push(insert);
            }
        }
        let mut left_out = Vec::new();
        for mut candidates in choices.into_values() {
            let mut chosen = 0;
            for (place, insert) in candidates.iter().enumerate() {
                let text = tree.read(&insert.file)?;
                if text.is_some_and(|text| text.contains(&insert.anchor)) {
                    chosen = place;
                    break;
                }
            }
            candidates.remove(chosen);
            left_out.extend(candidates);
        }
        let mut fitting = self.clone();
        for patch in &mut fitting.patches {
            patch.inserts.retain(|insert| !left_out.contains(&insert));
        }
        Ok(fitting)
    }

    /// Our files as they are after the last step.
    pub(crate) fn files(&self) -> impl Iterator<Item = (&str, &str)> {
        let last = self.patches.last().map(|patch| &patch.files);
        last.into_iter()
            .flatten()
            .map(|(path, text)| (path.as_str(), text.as_str()))
    }

    /// The kernel's files that the series edits.
    pub(crate) fn edited(&self) -> BTreeSet<&str> {
        let inserts = self.patches.iter().flat_map(|patch| &patch.inserts);
        inserts.map(|insert| insert.file.as_str()).collect()
    }

    /// All inserts in a file, in order.
    pub(crate) fn inserts<'a>(&'a self, file: &str) -> Vec<&'a Insert> {
        let inserts = self.patches.iter().flat_map(|patch| &patch.inserts);
        inserts.filter(|insert| insert.file == file).collect()
    }

    /// All files of ours and all edited files after the first `steps` patches. `pristine` holds the
    /// edited files as they are without the series.
    pub(crate) fn after(&self, steps: usize, pristine: &Contents) -> Result<Contents, Error> {
        let mut contents = pristine.clone();
        for insert in self.patches[..steps].iter().flat_map(|p| &p.inserts) {
            if let Some(text) = contents.get_mut(&insert.file) {
                *text = edit::insert_all([insert], text)
                    .map_err(|misfit| Error::unfit(&[fit::in_words(&insert.file, &misfit)]))?;
            }
        }
        if let Some(last) = self.patches[..steps].last() {
            contents.extend(last.files.clone());
        }
        Ok(contents)
    }

    /// All files of ours and all edited files when the series is applied.
    pub(crate) fn applied(&self, pristine: &Contents) -> Result<Contents, Error> {
        self.after(self.patches.len(), pristine)
    }
}

/// Makes the steps of a series, one after another.
struct Steps<'a, Read> {
    data: &'a SeriesData,
    read: Read,
    /// Names in our directory that a step lists: including such a file does not add it.
    listed: BTreeSet<&'a str>,
    /// Files that steps extend: nothing else adds them.
    grown: BTreeSet<String>,
    /// The inserts of all steps so far, in order.
    inserts: Vec<Insert>,
    /// Our files after the steps so far.
    files: Contents,
}

impl<'a, Read: Fn(&str) -> Option<String>> Steps<'a, Read> {
    fn new(data: &'a SeriesData, read: Read) -> Result<Self, SeriesError> {
        let mut listed = BTreeSet::new();
        for name in data
            .patch
            .iter()
            .flat_map(|patch| &patch.files)
            .map(|source| file_name(source))
        {
            if !listed.insert(name) {
                return Err(SeriesError::Twice(name.to_owned()));
            }
        }
        let appended = data.patch.iter().flat_map(|patch| patch.append.keys());
        let grown = appended.map(|name| Ok(format!("{}/{}", data.directory, inside(name)?)));
        let grown = grown.collect::<Result<_, SeriesError>>()?;
        Ok(Self {
            data,
            read,
            listed,
            grown,
            inserts: Vec::new(),
            files: Contents::new(),
        })
    }

    fn next(&mut self, patch: &PatchData) -> Result<Patch, SeriesError> {
        let adds =
            !(patch.files.is_empty() && patch.elsewhere.is_empty() && patch.append.is_empty());
        if !adds && patch.insert.is_empty() {
            return Err(SeriesError::Empty(patch.subject.clone()));
        }
        check_subject(&patch.subject)?;
        let start = self.inserts.len();
        for insert in &patch.insert {
            let insert = read_insert(patch, insert, &self.inserts)?;
            self.inserts.push(insert);
        }
        self.add_with_headers(&patch.files)?;
        for (path, source) in &patch.elsewhere {
            let text = self.source(source)?;
            self.add(inside(path)?.to_owned(), text)?;
        }
        for (name, text) in &patch.append {
            let path = self.in_directory(name)?;
            *self.files.entry(path).or_default() += text;
        }
        Ok(Patch {
            subject: patch.subject.clone(),
            body: patch.body.trim().to_owned(),
            inserts: self.inserts[start..].to_vec(),
            needs: patch
                .need
                .iter()
                .map(|need| read_need(patch, need))
                .collect::<Result<_, _>>()?,
            files: self.files.clone(),
        })
    }

    /// Adds files and the headers that they include, unless these are there or have a step of their
    /// own.
    fn add_with_headers(&mut self, sources: &[String]) -> Result<(), SeriesError> {
        let mut wanted = sources.to_vec();
        while let Some(source) = wanted.pop() {
            let text = self.source(&source)?;
            for header in included(&text) {
                let listed = self.listed.contains(header);
                let waits = wanted.iter().any(|other| file_name(other) == header);
                if listed || waits || self.files.contains_key(&self.in_directory(header)?) {
                    continue;
                }
                let candidates = self.data.include.iter();
                let found = candidates
                    .map(|directory| format!("{directory}/{header}"))
                    .find(|candidate| (self.read)(candidate).is_some());
                wanted.push(found.ok_or_else(|| SeriesError::NoHeader {
                    file: source.clone(),
                    header: header.to_owned(),
                })?);
            }
            self.add(self.in_directory(file_name(&source))?, text)?;
        }
        Ok(())
    }

    fn add(&mut self, path: String, text: String) -> Result<(), SeriesError> {
        if self.grown.contains(&path) || self.files.contains_key(&path) {
            return Err(SeriesError::Twice(path));
        }
        self.files.insert(path, text);
        Ok(())
    }

    fn source(&self, path: &str) -> Result<String, SeriesError> {
        (self.read)(path).ok_or_else(|| SeriesError::NoFile(path.to_owned()))
    }

    fn in_directory(&self, name: &str) -> Result<String, SeriesError> {
        Ok(format!("{}/{}", self.data.directory, inside(name)?))
    }

    /// Refuses a file that is both ours and edited.
    fn nothing_twice(&self) -> Result<(), SeriesError> {
        let mut inserts = self.inserts.iter();
        match inserts.find(|insert| self.files.contains_key(&insert.file)) {
            None => Ok(()),
            Some(insert) => Err(SeriesError::Twice(insert.file.clone())),
        }
    }
}

fn check_subject(subject: &str) -> Result<(), SeriesError> {
    let one_line = |c: char| c == ' ' || c.is_ascii_graphic();
    match !subject.is_empty() && subject.chars().all(one_line) {
        true => Ok(()),
        false => Err(SeriesError::Subject(subject.to_owned())),
    }
}

/// The files of ours that a C file includes: those in quotes whose names have no directory.
fn included(text: &str) -> impl Iterator<Item = &str> {
    text.lines()
        .filter_map(|line| {
            line.trim_start()
                .strip_prefix("#include \"")?
                .split_once('"')
        })
        .map(|(name, _)| name)
        .filter(|name| !name.contains('/'))
}

fn file_name(path: &str) -> &str {
    path.rsplit_once('/').map_or(path, |(_, name)| name)
}

fn read_insert(
    patch: &PatchData,
    insert: &InsertData,
    earlier: &[Insert],
) -> Result<Insert, SeriesError> {
    let wrong = || SeriesError::Insert {
        patch: patch.subject.clone(),
        file: insert.file.clone(),
    };
    let (place, anchor) = match (&insert.after, &insert.before) {
        (Some(anchor), None) if !anchor.is_empty() => (Place::After, anchor),
        (None, Some(anchor)) if !anchor.is_empty() => (Place::Before, anchor),
        _ => return Err(wrong()),
    };
    if insert.text.is_empty() {
        return Err(wrong());
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
        choice: insert.choice.clone(),
        anchor: anchor.clone(),
        place,
        text: insert.text.clone(),
    })
}

fn read_need(patch: &PatchData, need: &NeedData) -> Result<Need, SeriesError> {
    let wrong = || SeriesError::Need {
        patch: patch.subject.clone(),
        files: need.files.join(", "),
    };
    if need.files.is_empty() || need.texts.is_empty() || need.texts.iter().any(String::is_empty) {
        return Err(wrong());
    }
    let release = |text: &Option<String>| match text {
        Some(text) => version::numbers(text).map(Some).ok_or_else(wrong),
        None => Ok(None),
    };
    let files = need
        .files
        .iter()
        .map(|file| inside(file).map(str::to_owned));
    Ok(Need {
        files: files.collect::<Result<_, _>>()?,
        texts: need.texts.clone(),
        since: release(&need.since)?,
        before: release(&need.before)?,
    })
}

fn inside(path: &str) -> Result<&str, SeriesError> {
    let plain =
        |part: &str| !matches!(part, "" | "." | "..") && !part.contains(char::is_whitespace);
    match path.split('/').all(plain) {
        true => Ok(path),
        false => Err(SeriesError::Path(path.to_owned())),
    }
}
