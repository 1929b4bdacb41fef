//! The terminal that results are printed on, and prose that fits it.

use std::borrow::Cow;
use std::io;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use unicode_width::UnicodeWidthStr;

/// Whether results go to a file rather than to standard output.
static TO_FILE: AtomicBool = AtomicBool::new(false);

/// The greatest width of prose, in columns.
const PROSE: usize = 100;

/// Sets whether results go to a file rather than to standard output.
pub fn results_go_to_file(to_file: bool) {
    TO_FILE.store(to_file, Relaxed);
}

/// The width of the terminal that results go to. None: they go to a file or a pipe.
pub fn width() -> Option<usize> {
    if TO_FILE.load(Relaxed) {
        return None;
    }
    let (width, _) = terminal_size::terminal_size_of(io::stdout())?;
    Some(usize::from(width.0))
}

fn prose_width() -> usize {
    width().map_or(PROSE, |width| width.min(PROSE))
}

/// Prose, wrapped. Each line of `paragraphs` is a paragraph.
pub fn prose(paragraphs: &str) -> String {
    // Names and commands have hyphens, at which they are not to be broken.
    let options = textwrap::Options::new(prose_width());
    textwrap::fill(
        paragraphs,
        options.word_splitter(textwrap::WordSplitter::NoHyphenation),
    )
}

/// Lines of a result, wrapped on a terminal only, so that elsewhere each can be searched for. Words
/// are never broken, since they may be names or commands. A line that begins with spaces goes on
/// below its first word.
pub fn fitted(lines: &str) -> String {
    match width() {
        Some(width) => fitted_to(lines, width),
        None => lines.to_owned(),
    }
}

/// Text in which control characters, except for tabs and ends of lines, are replaced. A name that another program has chosen
/// can so not change the terminal.
pub fn printable(text: &str) -> Cow<'_, str> {
    let is_control = |c: char| c.is_control() && !['\t', '\n'].contains(&c);
    match text.contains(is_control) {
        true => text.replace(is_control, "\u{fffd}").into(),
        false => text.into(),
    }
}

/// Prints a warning to standard error, wrapped if that is a terminal.
pub fn warn(warning: &str) {
    let text = format!("lockworks: warning: {}", printable(warning));
    eprintln!(
        "{}",
        match terminal_size::terminal_size_of(io::stderr()) {
            Some((width, _)) => fitted_to(&text, usize::from(width.0)),
            None => text,
        }
    );
}

fn fitted_to(lines: &str, width: usize) -> String {
    let wrapped = lines.split('\n').map(|line| {
        let indent = " ".repeat(line.len() - line.trim_start_matches(' ').len());
        let options = textwrap::Options::new(width)
            .subsequent_indent(&indent)
            .break_words(false)
            .word_splitter(textwrap::WordSplitter::NoHyphenation);
        textwrap::fill(line, options)
    });
    wrapped.collect::<Vec<_>>().join("\n")
}

/// A term and its meaning, wrapped. Further lines of the meaning stand below its first.
pub fn definition(term: &str, meaning: &str) -> String {
    let indent = " ".repeat(term.width());
    let options = textwrap::Options::new(prose_width())
        .initial_indent(term)
        .subsequent_indent(&indent);
    textwrap::fill(meaning, options)
}

#[cfg(test)]
mod tests {
    use super::{fitted_to, printable};

    #[test]
    fn names_do_not_change_the_terminal() {
        assert_eq!(
            printable("a\u{1b}]0;title\u{7}\r\tb\u{9b}2J\n"),
            "a\u{fffd}]0;title\u{fffd}\u{fffd}\tb\u{fffd}2J\n"
        );
        assert_eq!(printable("größer, 日本\n"), "größer, 日本\n");
    }

    #[test]
    fn lines_wrap_between_words_and_words_stay_whole() {
        for (line, wrapped) in [
            ("", ""),
            ("one two\n", "one two\n"),
            ("one two three", "one two\nthree"),
            ("  one two three\nfour", "  one two\n  three\nfour"),
            ("run oracle-x5-4-longer", "run\noracle-x5-4-longer"),
            ("  a     b", "  a     b"),
        ] {
            assert_eq!(fitted_to(line, 10), wrapped);
        }
    }
}
