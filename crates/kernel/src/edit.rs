//! Edits of a kernel's file: text inserted beside an anchor, and removed again.

/// The side of the anchor that the text goes to.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Place {
    After,
    Before,
}

/// Text inserted beside a literal anchor.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Insert {
    /// Of the inserts of a choice, the first one is made that fits.
    pub choice: Option<String>,
    pub file: String,
    pub anchor: String,
    pub place: Place,
    pub text: String,
    /// The texts that earlier inserts put after the same anchor. The text of this one follows.
    pub earlier: String,
}

/// An anchor that does not occur exactly once in the file.
#[derive(Debug, PartialEq)]
pub(crate) struct Misfit {
    pub anchor: String,
    pub found: usize,
}

/// The inserts that a file holds.
#[derive(Debug, PartialEq)]
pub(crate) enum Found {
    /// All inserts, with the contents of the file without them.
    All(String),
    Some,
    None,
}

impl Insert {
    /// The texts before and after the inserted text.
    fn sides(&self) -> (String, &str) {
        match self.place {
            Place::After => (format!("{}{}", self.anchor, self.earlier), ""),
            Place::Before => (String::new(), &self.anchor),
        }
    }

    fn insert(&self, contents: &str) -> Result<String, Misfit> {
        let misfit = |found| Misfit {
            anchor: self.anchor.clone(),
            found,
        };
        match contents.matches(&self.anchor).count() {
            1 => {}
            found => return Err(misfit(found)),
        }
        let (before, behind) = self.sides();
        let site = contents
            .find(&format!("{before}{behind}"))
            .ok_or_else(|| misfit(0))?;
        let mut edited = contents.to_owned();
        edited.insert_str(site + before.len(), &self.text);
        Ok(edited)
    }

    fn remove(&self, contents: &str) -> Option<String> {
        let (before, behind) = self.sides();
        let whole = format!("{before}{}{behind}", self.text);
        let start = sole(contents, &whole)? + before.len();
        let mut restored = contents.to_owned();
        restored.replace_range(start..start + self.text.len(), "");
        Some(restored)
    }
}

/// Inserts all texts, one after another.
pub(crate) fn insert_all<'a>(
    inserts: impl IntoIterator<Item = &'a Insert>,
    contents: &str,
) -> Result<String, Misfit> {
    inserts
        .into_iter()
        .try_fold(contents.to_owned(), |contents, insert| {
            insert.insert(&contents)
        })
}

/// All anchors that do not fit. An anchor in a text that could not be inserted is not among them.
pub(crate) fn misfits(inserts: &[&Insert], contents: &str) -> Vec<Misfit> {
    let mut contents = contents.to_owned();
    let mut left_out = String::new();
    let mut found = Vec::new();
    for insert in inserts {
        match insert.insert(&contents) {
            Ok(edited) => contents = edited,
            Err(misfit) => {
                if !left_out.contains(&insert.anchor) && !found.contains(&misfit) {
                    found.push(misfit);
                }
                left_out += &insert.text;
            }
        }
    }
    found
}

/// Removes all inserts, the last one first.
pub(crate) fn remove_all(inserts: &[&Insert], contents: &str) -> Found {
    let mut restored = contents.to_owned();
    let mut removed = 0;
    for insert in inserts.iter().rev() {
        if let Some(without) = insert.remove(&restored) {
            restored = without;
            removed += 1;
        }
    }
    if removed == 0 {
        return Found::None;
    }
    // The inserts must give the same file again, or it was changed in between.
    let again = insert_all(inserts.iter().copied(), &restored);
    match removed == inserts.len() && again.as_deref() == Ok(contents) {
        true => Found::All(restored),
        false => Found::Some,
    }
}

/// The position of a pattern that occurs exactly once.
pub(crate) fn sole(contents: &str, pattern: &str) -> Option<usize> {
    let mut matches = contents.match_indices(pattern);
    match (matches.next(), matches.next()) {
        (Some((at, _)), None) => Some(at),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn insert(place: Place, anchor: &str, text: &str, earlier: &str) -> Insert {
        Insert {
            choice: None,
            file: "Makefile".to_owned(),
            anchor: anchor.to_owned(),
            place,
            text: text.to_owned(),
            earlier: earlier.to_owned(),
        }
    }

    #[test]
    fn inserts_at_one_anchor_keep_their_order() {
        let inserts = [
            insert(Place::After, "a\n", "1\n", ""),
            insert(Place::After, "a\n", "2\n", "1\n"),
            insert(Place::Before, "b\n", "3\n", ""),
            insert(Place::Before, "b\n", "4\n", ""),
            insert(Place::After, "1\n2\n", "5\n", ""),
        ];
        let edited = insert_all(&inserts, "a\nb\n").unwrap();
        assert_eq!(edited, "a\n1\n2\n5\n3\n4\nb\n");
        let inserts: Vec<&Insert> = inserts.iter().collect();
        let found = remove_all(&inserts, &edited);
        assert_eq!(found, Found::All("a\nb\n".to_owned()));
    }

    #[test]
    fn an_anchor_stands_exactly_once() {
        let inserts = [insert(Place::After, "a\n", "1\n", "")];
        for (contents, found) in [("b\n", 0), ("a\na\n", 2)] {
            let anchor = "a\n".to_owned();
            let misfit = insert_all(&inserts, contents);
            assert_eq!(misfit, Err(Misfit { anchor, found }));
        }
    }

    #[test]
    fn all_anchors_that_do_not_fit_are_found() {
        let inserts = [
            insert(Place::After, "a\n", "1\n", ""),
            insert(Place::After, "a\n", "2\n", "1\n"),
            insert(Place::Before, "b\n", "3\n", ""),
            insert(Place::After, "1\n", "4\n", ""),
            insert(Place::After, "c\n", "5\n", ""),
        ];
        let inserts: Vec<&Insert> = inserts.iter().collect();
        let found = |contents| -> Vec<(String, usize)> {
            let found = misfits(&inserts, contents).into_iter();
            found.map(|misfit| (misfit.anchor, misfit.found)).collect()
        };
        assert_eq!(found("a\nb\nc\n"), []);
        assert_eq!(
            found("b\nc\nc\n"),
            [("a\n".to_owned(), 0), ("c\n".to_owned(), 2)]
        );
    }

    #[test]
    fn part_of_the_inserts_is_seen() {
        let first = insert(Place::After, "a\n", "1\n", "");
        let second = insert(Place::Before, "b\n", "2\n", "");
        let inserts = [&first, &second];
        assert_eq!(remove_all(&inserts, "a\nb\n"), Found::None);
        assert_eq!(remove_all(&inserts, "a\n1\nb\n"), Found::Some);
        assert_eq!(remove_all(&inserts, "a\n1 \n2\nb\n"), Found::Some);
        // The text is there, but the anchor no longer tells where it came from.
        assert_eq!(remove_all(&[&first], "a\n1\na\n"), Found::Some);
    }
}
