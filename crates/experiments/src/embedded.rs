//! The files of `experiments/`, embedded in the program.

use anyhow::{Context, Result};
use include_dir::{Dir, include_dir};
use lockworks_machine::description::utf8;

static EXPERIMENTS: Dir = include_dir!("$CARGO_MANIFEST_DIR/../../experiments");

/// A file: its name without the ending, and its contents.
pub(crate) type Named<'a> = (&'a str, &'a str);

/// The files that published tables come from, each kind in alphabetical order.
#[derive(Clone, Debug)]
pub(crate) struct Files<'a> {
    /// The descriptions, `experiments/NAME.toml`.
    pub descriptions: Vec<Named<'a>>,
    /// The figures, `experiments/published/NAME.csv`.
    pub figures: Vec<Named<'a>>,
    /// The saved fits, `experiments/fits/NAME.toml`.
    pub fits: Vec<Named<'a>>,
}

/// All embedded files.
///
/// # Errors
/// A file or its name is not UTF-8.
pub(crate) fn files() -> Result<Files<'static>> {
    let directory = |name| {
        EXPERIMENTS
            .get_dir(name)
            .expect("a directory of experiments/")
    };
    Ok(Files {
        descriptions: named(&EXPERIMENTS, "toml")?,
        figures: named(directory("published"), "csv")?,
        fits: named(directory("fits"), "toml")?,
    })
}

/// The files of a directory that have this ending.
fn named(directory: &'static Dir, ending: &str) -> Result<Vec<Named<'static>>> {
    let mut files: Vec<Named> = directory
        .files()
        .filter(|file| file.path().extension().is_some_and(|end| end == ending))
        .map(|file| {
            let origin = || format!("experiments/{}", file.path().display());
            let stem = file.path().file_stem().and_then(|stem| stem.to_str());
            let stem = stem.with_context(|| format!("{}: rename it in ASCII", origin()))?;
            Ok((stem, utf8(file.contents(), origin)?))
        })
        .collect::<Result<_>>()?;
    files.sort_unstable();
    Ok(files)
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::Path;

    use super::*;

    fn names_on_disk(directory: &str, ending: &str) -> Vec<String> {
        let path = Path::new(env!("CARGO_MANIFEST_DIR"))
            .join("../../experiments")
            .join(directory);
        let entries = fs::read_dir(path)
            .unwrap()
            .map(|entry| entry.unwrap().path());
        let mut names: Vec<String> = entries
            .filter(|path| path.extension().is_some_and(|end| end == ending))
            .map(|path| path.file_stem().unwrap().to_str().unwrap().to_owned())
            .collect();
        names.sort_unstable();
        names
    }

    /// Fails if a file was added to the directories and the crate was not built again.
    #[test]
    fn every_file_of_the_directories_is_embedded() {
        let Files {
            descriptions,
            figures,
            fits,
        } = files().unwrap();
        for (embedded, directory, ending) in [
            (descriptions, ".", "toml"),
            (figures, "published", "csv"),
            (fits, "fits", "toml"),
        ] {
            let names: Vec<&str> = embedded.iter().map(|(name, _)| *name).collect();
            assert_eq!(names, names_on_disk(directory, ending), "{directory}");
        }
    }
}
