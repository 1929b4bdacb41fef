//! Whether the series fits a tree: all anchors are there, and so is what the code of our files needs.

use crate::edit::{self, Misfit};
use crate::error::Error;
use crate::series::{Contents, Series};
use crate::tree::Tree;

/// Texts that our files need in the kernel's, such as the name of a function in a header.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Need {
    /// The files that may have the texts. Each text is in one of them.
    pub files: Vec<String>,
    pub texts: Vec<String>,
    /// The first release that must have them.
    pub since: Option<(u32, u32)>,
    /// The first release that need not have them any more.
    pub before: Option<(u32, u32)>,
}

impl Need {
    /// What a tree lacks, in words.
    fn lack(&self, tree: &Tree) -> Result<Option<String>, Error> {
        let release = tree.version().numbers();
        if self.since.is_some_and(|since| release < since)
            || self.before.is_some_and(|before| release >= before)
        {
            return Ok(None);
        }
        let mut contents = String::new();
        for file in &self.files {
            contents += &tree.read(file)?.unwrap_or_default();
        }
        let lacking = self.texts.iter().filter(|text| !has(&contents, text));
        let lacking: Vec<String> = lacking.map(|text| format!("'{text}'")).collect();
        Ok((!lacking.is_empty()).then(|| {
            format!(
                "{} lacks {}, which files of Lockworks use",
                self.files.join(" or "),
                lacking.join(", ")
            )
        }))
    }
}

/// Whether a text occurs, and not just as a part of a longer name.
fn has(contents: &str, text: &str) -> bool {
    let in_name = |c: char| c == '_' || c.is_ascii_alphanumeric();
    let [starts, ends] = [text.starts_with(in_name), text.ends_with(in_name)];
    contents.match_indices(text).any(|(at, _)| {
        let goes_on = starts && contents[..at].ends_with(in_name)
            || ends && contents[at + text.len()..].starts_with(in_name);
        !goes_on
    })
}

/// Refuses a tree that the series does not fit, and names all that is missing. `pristine` holds the edited
/// files that the tree has, as they are without the series.
pub(crate) fn check(series: &Series, tree: &Tree, pristine: &Contents) -> Result<(), Error> {
    let mut wrong = Vec::new();
    for file in series.edited() {
        match pristine.get(file) {
            None => wrong.push(format!("{file} is missing")),
            Some(text) => {
                let misfits = edit::misfits(&series.inserts(file), text);
                wrong.extend(misfits.iter().map(|misfit| in_words(file, misfit)));
            }
        }
    }
    for need in series.patches.iter().flat_map(|patch| &patch.needs) {
        wrong.extend(need.lack(tree)?);
    }
    if wrong.is_empty() {
        return Ok(());
    }
    if !tree.is_tested() {
        wrong.push(format!(
            "Lockworks is tested with Linux {}, not with this version",
            series.versions.join(", ")
        ));
    }
    Err(Error::unfit(&wrong))
}

/// What is wrong with an anchor in a file.
pub(crate) fn in_words(file: &str, misfit: &Misfit) -> String {
    let line = misfit.anchor.lines().find(|line| !line.trim().is_empty());
    let anchor = line.unwrap_or_default().trim();
    format!(
        "{file} holds '{anchor}' {} times instead of once",
        misfit.found
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_not_part_of_a_longer_one() {
        assert!(has("int setup(void);\n", "setup"));
        assert!(has("setup", "setup"));
        assert!(has("presetup setup", "setup"));
        assert!(!has(
            "int presetup(void), setup_all(void), setup2;\n",
            "setup"
        ));
        assert!(has("CALL(setup, x)", "CALL(setup,"));
        assert!(has("x(*wait)(int)", "(*wait)"));
    }
}
