//! Tables for people: their style, their figures, and what each part of the report shows in them.

use std::fmt::Write;

use comfy_table::{CellAlignment, ContentArrangement, LineStyle, Table, presets};

/// A result with a line in a table of its kind.
pub trait Row {
    /// What is above the table.
    const TITLE: &'static str;
    /// The columns.
    const HEADER: &'static [&'static str];
    /// The columns that have figures, from 0.
    const FIGURES: &'static [usize];

    /// Its cells, one for each column.
    fn cells(&self) -> Vec<String>;

    /// Whether it is what was required of it, or a sentence that says why not. `None` if nothing was
    /// required.
    fn judged(&self) -> Option<Result<(), String>>;
}

/// Appends a table of these results, if there are any.
pub fn write_rows<R: Row>(text: &mut String, rows: &[R]) {
    if rows.is_empty() {
        return;
    }
    let mut grid = grid(R::HEADER);
    for row in rows {
        grid.add_row(row.cells());
    }
    align_right(&mut grid, R::FIGURES.iter().copied());
    let _ = writeln!(text, "{}\n{grid}\n", R::TITLE);
}

/// `REQUIREMENT: met` or the opposite, as the last column of each table says.
pub fn verdict(requirement: &str, met: bool) -> String {
    format!("{requirement}: {}", if met { "met" } else { "NOT MET" })
}

/// Aligns columns of figures.
pub fn align_right(grid: &mut Table, columns: impl IntoIterator<Item = usize>) {
    for column in columns {
        if let Some(column) = grid.column_mut(column) {
            column.set_cell_alignment(CellAlignment::Right);
        }
    }
}

/// An empty table in the style of the `lockworks` command.
pub fn grid(header: &[&str]) -> Table {
    let mut grid = Table::new();
    grid.load_style(presets::UTF8_HORIZONTAL_ONLY.row_separator(LineStyle::none()))
        .set_content_arrangement(ContentArrangement::Disabled)
        .set_header(header);
    grid
}

/// A figure with three significant digits.
pub fn figure(value: f64) -> String {
    if value >= 10.0 {
        format!("{value:.1}")
    } else if value >= 1.0 {
        format!("{value:.2}")
    } else {
        format!("{value:.3}")
    }
}

/// A ratio with at least two significant digits.
pub fn ratio(value: f64) -> String {
    if value >= 0.1 {
        format!("{value:.2}")
    } else {
        format!("{value:.3}")
    }
}
