//! The messages of a guest, over its second serial line.

/// A message of a guest.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum GuestMessage {
    /// A keyword of our scripts, and its arguments.
    Word(String, String),
    /// A line that the user's command printed.
    Output(String),
}

impl GuestMessage {
    pub(crate) fn read(line: &str) -> Vec<Self> {
        let Some((before, word)) = line.split_once("@lockworks ") else {
            return vec![Self::Output(line.to_owned())];
        };
        let (word, rest) = word.split_once(' ').unwrap_or((word, ""));
        let word = Self::Word(word.to_owned(), rest.to_owned());
        match before {
            // The last line of the command may not end with a newline.
            "" => vec![word],
            before => vec![Self::Output(before.to_owned()), word],
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_and_output_are_told_apart() {
        let word = |word: &str, rest: &str| GuestMessage::Word(word.into(), rest.into());
        let output = |line: &str| GuestMessage::Output(line.into());
        assert_eq!(
            GuestMessage::read("@lockworks status 0"),
            [word("status", "0")]
        );
        assert_eq!(GuestMessage::read("@lockworks end"), [word("end", "")]);
        assert_eq!(GuestMessage::read("hello"), [output("hello")]);
        assert_eq!(
            GuestMessage::read("no end@lockworks status 1"),
            [output("no end"), word("status", "1")]
        );
    }
}
