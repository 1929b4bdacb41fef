//! The terminal that results are printed on, and prose that fits it.

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
    textwrap::fill(paragraphs, prose_width())
}

/// A term and its meaning, wrapped. Further lines of the meaning stand below its first.
pub fn definition(term: &str, meaning: &str) -> String {
    let indent = " ".repeat(term.width());
    let options = textwrap::Options::new(prose_width())
        .initial_indent(term)
        .subsequent_indent(&indent);
    textwrap::fill(meaning, options)
}
