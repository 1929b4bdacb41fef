//! Tables for people: their style, the format of their figures, and the results in their rows.

use std::fmt::Write;

use comfy_table::CellAlignment;

use lockworks_ui::output;
use lockworks_ui::table::Table;

/// A result that is one row of a table.
pub trait Row {
    /// The line above the table.
    const TITLE: &'static str;
    /// The headings of the columns.
    const HEADER: &'static [&'static str];
    /// The columns that have figures, counted from 0.
    const FIGURES: &'static [usize];

    /// The cells of the row, one for each column.
    fn cells(&self) -> Vec<String>;

    /// The verdict: `Ok` if the requirement is met, `Err` with a sentence if it is not. `None` if
    /// nothing is required.
    fn judged(&self) -> Option<Result<(), String>>;
}

/// Appends a table of these results, if there are any.
pub fn write_rows<R: Row>(text: &mut String, rows: &[R]) {
    if rows.is_empty() {
        return;
    }
    let mut grid = output::table(R::HEADER);
    for row in rows {
        grid.add_row(row.cells());
    }
    align_right(&mut grid, R::FIGURES.iter().copied());
    let _ = writeln!(text, "{}\n{grid}\n", R::TITLE);
}

/// The text of a table's last column: `REQUIREMENT: met` or `REQUIREMENT: NOT MET`.
pub fn verdict(requirement: &str, met: bool) -> String {
    format!("{requirement}: {}", if met { "met" } else { "NOT MET" })
}

/// Aligns columns of figures to the right.
pub fn align_right(grid: &mut Table, columns: impl IntoIterator<Item = usize>) {
    for column in columns {
        if let Some(column) = grid.column_mut(column) {
            column.set_cell_alignment(CellAlignment::Right);
        }
    }
}

/// Formats a figure: one decimal from 10, two decimals from 1, three below.
pub fn figure(value: f64) -> String {
    if value >= 10.0 {
        format!("{value:.1}")
    } else if value >= 1.0 {
        format!("{value:.2}")
    } else {
        format!("{value:.3}")
    }
}

/// Formats a ratio: two decimals, and three below 0.1.
pub fn ratio(value: f64) -> String {
    if value >= 0.1 {
        format!("{value:.2}")
    } else {
        format!("{value:.3}")
    }
}
