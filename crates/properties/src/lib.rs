//! Shared by the tests of parsers: texts that are nearly valid, and the form of errors.

use std::fmt::Debug;

use proptest::prelude::*;
use proptest::sample::Index;

/// Characters that have a meaning in one of the formats.
const SPECIAL: &str = "\"'\\\n\t[]{}()=,.:#+-*/_ 0123456789eEnx";

/// A change of a text. Its place is drawn apart from it.
#[derive(Clone, Debug)]
enum Change {
    Remove,
    Replace(char),
    Insert(char),
    RemoveLine,
    RepeatLine,
}

impl Change {
    fn any() -> impl Strategy<Value = Self> {
        let special: Vec<char> = SPECIAL.chars().collect();
        let character =
            || prop_oneof![3 => prop::sample::select(special.clone()), 1 => any::<char>()];
        prop_oneof![
            1 => Just(Self::Remove),
            3 => character().prop_map(Self::Replace),
            3 => character().prop_map(Self::Insert),
            1 => Just(Self::RemoveLine),
            1 => Just(Self::RepeatLine),
        ]
    }

    fn make(&self, text: &str, place: &Index) -> String {
        let whole_lines = matches!(self, Self::RemoveLine | Self::RepeatLine);
        let mut pieces: Vec<&str> = match whole_lines {
            true => text.split_inclusive('\n').collect(),
            false => text.split("").filter(|piece| !piece.is_empty()).collect(),
        };
        let place = place.index(pieces.len() + 1);
        let end = pieces.len().min(place + 1);
        let mut new = [0; 4];
        match self {
            Self::Remove | Self::RemoveLine => drop(pieces.drain(place..end)),
            Self::RepeatLine => pieces.extend_from_within(place..end),
            Self::Replace(character) => {
                pieces.splice(place..end, [&*character.encode_utf8(&mut new)]);
            }
            Self::Insert(character) => pieces.insert(place, character.encode_utf8(&mut new)),
        }
        pieces.concat()
    }
}

/// One of `texts` after up to `most` changes of a character or a line.
pub fn nearly<T>(texts: Vec<T>, most: usize) -> impl Strategy<Value = String>
where
    T: AsRef<str> + Clone + Debug + 'static,
{
    let changes = prop::collection::vec((any::<Index>(), Change::any()), 0..=most);
    (prop::sample::select(texts), changes).prop_map(|(text, changes)| {
        let text = text.as_ref().to_owned();
        changes
            .iter()
            .fold(text, |text, (place, change)| change.make(&text, place))
    })
}

/// Mistakes to make in a valid text: what to replace, by what, and how the error begins. They are
/// written as a diff with the error below it. What is replaced holds until the next mistake that
/// gives it.
///
/// ```
/// let diff = "-title\n+titel\n2: unknown field `titel`\n+\n1: missing field `title`";
/// let unknown = ("title".into(), "titel".into(), "2: unknown field `titel`");
/// let missing = ("title".into(), String::new(), "1: missing field `title`");
/// assert_eq!(lockworks_properties::mistakes(diff), [unknown, missing]);
/// ```
pub fn mistakes(diff: &str) -> Vec<(String, String, &str)> {
    let mut mistakes = Vec::new();
    let (mut from, mut to) = (Vec::new(), Vec::new());
    let mut is_complete = false;
    for line in diff.lines() {
        if let Some(text) = line.strip_prefix('-') {
            if std::mem::take(&mut is_complete) {
                from.clear();
            }
            from.push(text);
        } else if let Some(text) = line.strip_prefix('+') {
            to.push(text);
        } else {
            mistakes.push((from.join("\n"), to.join("\n"), line));
            to.clear();
            is_complete = true;
        }
    }
    mistakes
}

/// Checks that an error is one line, and begins with a file and the number of a line.
///
/// # Errors
/// If it is anything else.
pub fn names_a_line(error: &str) -> Result<(), TestCaseError> {
    let mut parts = error.splitn(3, ':');
    let file = parts.next().unwrap_or_default();
    let line = parts.next().and_then(|line| line.parse::<usize>().ok());
    let message = parts.next().unwrap_or_default();
    prop_assert!(!file.is_empty(), "no file: {error:?}");
    prop_assert!(line.is_some_and(|line| line > 0), "no line: {error:?}");
    prop_assert!(!message.trim().is_empty(), "no message: {error:?}");
    prop_assert!(!error.contains(char::is_control), "not one line: {error:?}");
    Ok(())
}
