//! Tables, which fit the terminal that they are printed on.

use std::collections::HashSet;
use std::fmt;
use std::iter::{self, zip};
use std::ops::{Deref, DerefMut};

use comfy_table::{ColumnConstraint, ContentArrangement, LineStyle, Width, presets};
use unicode_width::UnicodeWidthStr;

use crate::terminal;

/// A cell up to this width is a figure or a name, which is never wrapped.
const FIGURE: usize = 14;

/// A word up to this width is never broken.
const WORD: usize = 44;

/// A table in the style of all commands. On a terminal it fits the width: text wraps, and columns
/// that still have no room follow in blocks below, each beginning with the columns that tell the
/// rows apart. Elsewhere every row is one line.
pub struct Table(comfy_table::Table);

impl Table {
    /// An empty table.
    pub fn new(header: &[&str]) -> Self {
        let mut table = comfy_table::Table::new();
        table
            .load_style(presets::UTF8_HORIZONTAL_ONLY.row_separator(LineStyle::none()))
            .set_content_arrangement(ContentArrangement::Disabled)
            .set_header(header);
        Self(table)
    }

    /// The table without spaces at the ends of lines.
    pub fn trim_fmt(&self) -> String {
        let text = self.to_string();
        let lines: Vec<&str> = text.lines().map(str::trim_end).collect();
        lines.join("\n")
    }

    /// The table with no line wider than `width`.
    fn fitted(&self, width: usize) -> String {
        let mut table = self.0.clone();
        for column in table.column_iter_mut() {
            column.set_padding((0, 1));
        }
        let columns: Vec<ColumnWidth> = (0..table.column_count())
            .map(|index| self.column_width(index))
            .collect();
        let blocks = blocks(&columns, self.key_columns(), width);
        let blocks = blocks.iter().map(|block| {
            let widths = shared_out(&columns, block, width);
            for column in table.column_iter_mut() {
                let place = block.iter().position(|index| *index == column.index);
                column.set_constraint(match place {
                    None => ColumnConstraint::Hidden,
                    Some(place) => {
                        let width = widths[place] + usize::from(column.padding_width());
                        ColumnConstraint::Absolute(Width::Fixed(width as u16))
                    }
                });
            }
            table.set_content_arrangement(ContentArrangement::Dynamic);
            table.to_string()
        });
        blocks.collect::<Vec<_>>().join("\n\n")
    }

    /// How many columns, from the left, are needed to tell the rows apart.
    fn key_columns(&self) -> usize {
        let rows: Vec<Vec<String>> = self
            .0
            .row_iter()
            .map(|row| row.cell_iter().map(comfy_table::Cell::content).collect())
            .collect();
        let tell_apart = |count: &usize| {
            let mut seen = HashSet::new();
            rows.iter()
                .all(|row| seen.insert(&row[..row.len().min(*count)]))
        };
        (1..=2).find(tell_apart).unwrap_or(2)
    }

    fn column_width(&self, index: usize) -> ColumnWidth {
        let header = self.0.header().and_then(|row| row.cell_iter().nth(index));
        let header = header.map(comfy_table::Cell::content).unwrap_or_default();
        let cells = self.0.column_cells_iter(index).flatten();
        let cells: Vec<String> = cells.map(comfy_table::Cell::content).collect();
        let widest = |widths: &mut dyn Iterator<Item = usize>| widths.max().unwrap_or(0);
        let word = |text: &str| widest(&mut text.split_whitespace().map(UnicodeWidthStr::width));
        let narrowest = |cell: &String| match cell.width() {
            width if width <= FIGURE => width,
            width => word(cell).clamp(FIGURE, WORD).min(width),
        };
        let all = cells.iter().chain(iter::once(&header));
        ColumnWidth {
            least: word(&header).max(widest(&mut cells.iter().map(narrowest))),
            full: widest(&mut all.map(|cell| cell.width())),
        }
    }
}

impl fmt::Display for Table {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        let full = self.0.to_string();
        match terminal::width() {
            Some(width) if full.lines().any(|line| line.width() > width) => {
                f.write_str(&self.fitted(width))
            }
            _ => f.write_str(&full),
        }
    }
}

impl Deref for Table {
    type Target = comfy_table::Table;

    fn deref(&self) -> &comfy_table::Table {
        &self.0
    }
}

impl DerefMut for Table {
    fn deref_mut(&mut self) -> &mut comfy_table::Table {
        &mut self.0
    }
}

/// The widths that a column may have, without padding.
#[derive(Clone, Copy)]
struct ColumnWidth {
    /// The width below which figures or words would be broken.
    least: usize,
    /// The width at which no cell wraps.
    full: usize,
}

/// The space behind a column: its padding and the separator.
const GAP: usize = 2;

/// The blocks of columns that fit side by side. Every block begins with the key columns.
fn blocks(columns: &[ColumnWidth], keys: usize, width: usize) -> Vec<Vec<usize>> {
    let least = |index: &usize| columns[*index].least + GAP;
    let keys: Vec<usize> = (0..keys.min(columns.len())).collect();
    let mut blocks = vec![keys.clone()];
    for index in keys.len()..columns.len() {
        let last = blocks.last().expect("there is a block");
        let taken: usize = last.iter().map(least).sum();
        if last.len() > keys.len() && taken + least(&index) > width {
            blocks.push(keys.clone());
        }
        blocks.last_mut().expect("there is a block").push(index);
    }
    blocks
}

/// The widths of the columns of a block. The rest of `width` goes to the columns that wrap most.
fn shared_out(columns: &[ColumnWidth], block: &[usize], width: usize) -> Vec<usize> {
    let columns: Vec<ColumnWidth> = block.iter().map(|index| columns[*index]).collect();
    let mut widths: Vec<usize> = columns.iter().map(|column| column.least).collect();
    let gaps = GAP * columns.len();
    while widths.iter().sum::<usize>() + gaps < width {
        let lines =
            |(column, width): (&ColumnWidth, &mut usize)| column.full as f64 / *width as f64;
        let lines = zip(&columns, &mut widths).map(lines);
        let most = lines.enumerate().max_by(|a, b| a.1.total_cmp(&b.1));
        match most {
            Some((place, lines)) if lines > 1.0 => widths[place] += 1,
            _ => break,
        }
    }
    widths
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wide() -> Table {
        let mut table = Table::new(&["threads", "lock", "ops/s", "of pthread_mutex", "summary"]);
        let summary = "a lock whose waiters queue in the order in which they arrive";
        for (threads, lock) in [("1", "cna"), ("1", "mutex"), ("2", "cna"), ("2", "mutex")] {
            table.add_row([threads, lock, "38.2M..41.6M", "12.3 us", summary]);
        }
        table
    }

    #[track_caller]
    fn assert_fits(text: &str, width: usize) {
        for line in text.lines() {
            assert!(line.width() <= width, "{width}: {line:?}\n{text}");
        }
    }

    #[test]
    fn text_wraps_and_figures_do_not() {
        let table = wide();
        for width in [66, 80, 100] {
            let text = table.fitted(width);
            assert_fits(&text, width);
            assert_eq!(text.matches("38.2M..41.6M").count(), 4, "{text}");
            assert_eq!(text.matches("12.3 us").count(), 4, "{text}");
            assert_eq!(text.matches("threads").count(), 1, "{text}");
        }
    }

    #[test]
    fn columns_without_room_follow_with_the_keys_of_their_rows() {
        let table = wide();
        assert_eq!(table.key_columns(), 2);
        let text = table.fitted(40);
        assert_fits(&text, 40);
        assert_eq!(text.matches("threads").count(), 3, "{text}");
        assert_eq!(text.matches("mutex").count(), 3 * 2 + 1, "{text}");
        for whole in ["38.2M..41.6M", "12.3 us", "arrive"] {
            assert_eq!(text.matches(whole).count(), 4, "{text}");
        }
    }

    #[test]
    fn a_terminal_too_narrow_for_one_column_breaks_words() {
        assert!(!wide().fitted(5).is_empty());
    }
}
