//! The heat map: a panel for each lock, with a row for each machine and workload and a column for
//! each number of threads. The last columns are those of threads that share CPUs. The darker a cell,
//! the further is the lock from the best one.

use std::fmt;
use std::path::Path;

use anyhow::Result;
use itertools::Itertools;
use plotters::coord::Shift;
use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, Pos, VPos};

use super::cells::{Cell, Measured, Plan};
use crate::output::write_file;

// Sizes are in pixels.
const COLUMN: i32 = 13;
const ROW: i32 = 13;
const GAP: i32 = 14;
const LABELS: i32 = 300;
/// With this, the legend fits.
const LEAST_WIDTH: i32 = LABELS + 700;
const HEAD: i32 = 52;
const FOOT: i32 = 34;

const INK: RGBColor = RGBColor(0x22, 0x22, 0x22);
/// The colours of some shares, from dark to light. Darkness alone tells them apart, so people who
/// see no colours read them too.
const COLOURS: [(f64, [f64; 3]); 6] = [
    (0.0, [60.0, 0.0, 40.0]),
    (0.5, [150.0, 20.0, 40.0]),
    (0.75, [225.0, 90.0, 40.0]),
    (0.9, [250.0, 190.0, 90.0]),
    (0.97, [252.0, 238.0, 190.0]),
    (1.0, [232.0, 243.0, 250.0]),
];

type Area<'s> = DrawingArea<SVGBackend<'s>, Shift>;

/// The colour of a share; above 1 that of 1.
fn colour(share: f64) -> RGBColor {
    let share = share.clamp(0.0, 1.0);
    let above = COLOURS.iter().position(|(at, _)| *at >= share).unwrap_or(0);
    let ((high, light), (low, dark)) = (COLOURS[above], COLOURS[above.saturating_sub(1)]);
    let part = if high > low {
        (share - low) / (high - low)
    } else {
        1.0
    };
    let mix = |i: usize| (dark[i] + part * (light[i] - dark[i])).round() as u8;
    RGBColor(mix(0), mix(1), mix(2))
}

fn text(size: i32, horizontal: HPos) -> TextStyle<'static> {
    let style = TextStyle::from(("sans-serif", size)).color(&INK);
    style.pos(Pos::new(horizontal, VPos::Center))
}

/// The column of a cell: the number of threads, and of CPUs that they share.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Column {
    cpus: Option<usize>,
    /// [`usize::MAX`]: as many threads as the machine has CPUs.
    threads: usize,
}

impl Column {
    fn of(cell: &Cell, plan: &Plan) -> Self {
        let all = plan.all_cpus && cell.cpus.is_none() && cell.threads == plan.most(cell);
        Self {
            cpus: cell.cpus,
            threads: if all { usize::MAX } else { cell.threads },
        }
    }
}

impl fmt::Display for Column {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.cpus, self.threads) {
            (Some(cpus), threads) => write!(f, "{threads}/{cpus}"),
            (None, usize::MAX) => f.write_str("all"),
            (None, threads) => threads.fmt(f),
        }
    }
}

/// Writes the heat map of the judged locks to `path`, an SVG.
pub fn write(path: &Path, plan: &Plan, measured: &[Measured]) -> Result<()> {
    let rows: Vec<String> = measured.iter().map(|m| m.cell.place()).unique().collect();
    let its_columns = measured.iter().map(|m| Column::of(&m.cell, plan));
    let its_columns: Vec<Column> = its_columns.collect();
    let columns: Vec<Column> = its_columns.iter().copied().sorted().dedup().collect();
    // The row and the column of each cell.
    let places: Vec<(i32, i32)> = measured
        .iter()
        .zip(&its_columns)
        .map(|(measured, its)| {
            let place = measured.cell.place();
            let row = rows.iter().position(|row| *row == place);
            let column = columns.iter().position(|column| column == its);
            let place = row
                .zip(column)
                .expect("rows and columns are those of cells");
            (place.0 as i32, place.1 as i32)
        })
        .collect();
    let panel = COLUMN * columns.len() as i32 + GAP;
    let size = (
        (LABELS + panel * plan.judged.len() as i32).max(LEAST_WIDTH) as u32,
        (HEAD + ROW * rows.len() as i32 + FOOT) as u32,
    );
    let mut svg = String::new();
    {
        let area = SVGBackend::with_string(&mut svg, size).into_drawing_area();
        area.fill(&WHITE)?;
        for (row, place) in rows.iter().enumerate() {
            let at = (LABELS - 6, HEAD + ROW * row as i32 + ROW / 2);
            area.draw_text(place, &text(11, HPos::Right), at)?;
        }
        for (index, lock) in plan.judged.iter().enumerate() {
            let left = LABELS + panel * index as i32;
            head(&area, left, lock, &columns)?;
            let lock = plan.lock(lock).expect("a judged lock runs");
            for (measured, (row, column)) in measured.iter().zip(&places) {
                let (x, y) = (left + COLUMN * column, HEAD + ROW * row);
                let corners = [(x, y), (x + COLUMN - 1, y + ROW - 1)];
                let share = measured.share(lock);
                area.draw(&Rectangle::new(corners, colour(share).filled()))?;
                if measured.figures[lock].fairness > plan.fair {
                    let centre = (x + COLUMN / 2, y + ROW / 2);
                    let ink = if share < 0.8 { WHITE } else { INK };
                    area.draw(&Circle::new(centre, 2, ink.filled()))?;
                }
            }
        }
        legend(&area, HEAD + ROW * rows.len() as i32 + FOOT / 2, plan.fair)?;
        area.present()?;
    }
    write_file(path, svg.as_bytes())
}

/// The name of a lock and the numbers of threads above its panel.
fn head(area: &Area, left: i32, lock: &str, columns: &[Column]) -> Result<()> {
    area.draw_text(lock, &text(16, HPos::Left), (left, 14))?;
    let upright = TextStyle::from(("sans-serif", 10)).color(&INK);
    let upright = upright.transform(FontTransform::Rotate270);
    let upright = upright.pos(Pos::new(HPos::Left, VPos::Center));
    for (column, label) in columns.iter().enumerate() {
        let at = (left + COLUMN * column as i32 + COLUMN / 2, HEAD - 4);
        area.draw_text(&label.to_string(), &upright, at)?;
    }
    Ok(())
}

fn legend(area: &Area, y: i32, fair: f64) -> Result<()> {
    let shares = [0.25, 0.5, 0.75, 0.9, 0.95, 1.0];
    area.draw_text("share of the best", &text(11, HPos::Right), (LABELS - 6, y))?;
    let mut x = LABELS;
    for share in shares {
        let corners = [(x, y - ROW / 2), (x + COLUMN - 1, y + ROW / 2)];
        area.draw(&Rectangle::new(corners, colour(share).filled()))?;
        area.draw_text(
            &share.to_string(),
            &text(11, HPos::Left),
            (x + COLUMN + 2, y),
        )?;
        x += COLUMN + 34;
    }
    area.draw(&Circle::new((x + 4, y), 2, INK.filled()))?;
    let unfair = format!("fairness factor above {fair}; all: all CPUs; 16/8: 16 threads on 8 CPUs");
    area.draw_text(&unfair, &text(11, HPos::Left), (x + 12, y))?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_better_share_is_lighter() {
        let light = |share: f64| {
            let RGBColor(r, g, b) = colour(share);
            299 * u32::from(r) + 587 * u32::from(g) + 114 * u32::from(b)
        };
        let shares: Vec<u32> = (0..=20).map(|n| light(f64::from(n) / 20.0)).collect();
        assert!(shares.is_sorted_by(|a, b| a < b), "{shares:?}");
        assert_eq!(light(1.5), light(1.0));
    }
}
