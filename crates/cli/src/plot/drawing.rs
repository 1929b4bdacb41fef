//! How a figure is drawn: legend, panels side by side, throughput above fairness.

use anyhow::Result;
use plotters::coord::Shift;
use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, Pos, VPos};

use super::axis::ThreadAxis;
use super::looks::{Marker, look};
use super::panel::{Panel, Point};

const FACE: &str = "sans-serif";
const INK: RGBColor = RGBColor(0x22, 0x22, 0x22);
const FAINT: RGBColor = RGBColor(0xdd, 0xdd, 0xdd);

// Sizes are in pixels.
const PANEL_WIDTH: u32 = 440;
const ROW_HEIGHT: u32 = 300;
/// The height of a line of the legend.
const LEGEND_HEIGHT: u32 = 22;
const X_LABELS: i32 = 42;
const Y_LABELS: i32 = 64;
const MARGIN: i32 = 12;
/// The number of names in the width of a panel.
const LEGENDS_ABREAST: usize = 3;

type Area<'s> = DrawingArea<SVGBackend<'s>, Shift>;

/// The quantity that a row of the figure shows.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Quantity {
    Throughput,
    Fairness,
}

impl Quantity {
    /// The value of a point.
    fn of(self, point: &Point) -> Option<f64> {
        match self {
            Self::Throughput => Some(point.throughput),
            Self::Fairness => point.fairness,
        }
    }

    /// The lowest and highest value of a point.
    fn spread(self, point: &Point) -> Option<(f64, f64)> {
        point.spread.filter(|_| self == Self::Throughput)
    }

    fn is_in(self, panel: &Panel) -> bool {
        let mut points = panel.series.iter().flat_map(|series| &series.points);
        points.any(|point| self.of(point).is_some())
    }
}

/// A figure of some panels.
pub struct Figure<'a> {
    panels: &'a [Panel],
    /// The names of all series. Colour and marker of a name follow from its position.
    names: Vec<&'a str>,
    rows: Vec<Quantity>,
}

impl<'a> Figure<'a> {
    /// The figure of these panels.
    pub fn new(panels: &'a [Panel]) -> Self {
        let mut names: Vec<&str> = Vec::new();
        for series in panels.iter().flat_map(|panel| &panel.series) {
            if !names.contains(&series.name.as_str()) {
                names.push(&series.name);
            }
        }
        let mut rows = vec![Quantity::Throughput, Quantity::Fairness];
        rows.retain(|row| panels.iter().any(|panel| row.is_in(panel)));
        Self {
            panels,
            names,
            rows,
        }
    }

    /// Width and height, in pixels.
    pub fn size(&self) -> (u32, u32) {
        let width = PANEL_WIDTH * self.panels.len() as u32;
        let height = self.legend_height() + ROW_HEIGHT * self.rows.len() as u32;
        (width, height)
    }

    /// Draws the figure.
    pub fn draw(&self, area: &Area) -> Result<()> {
        area.fill(&WHITE)?;
        let (legend, body) = area.split_vertically(self.legend_height());
        self.legend(&legend)?;
        let cells = body.split_evenly((self.rows.len(), self.panels.len()));
        let of_rows = self.rows.iter().zip(cells.chunks(self.panels.len()));
        for (&row, cells) in of_rows {
            for (panel, cell) in self.panels.iter().zip(cells) {
                if row.is_in(panel) {
                    self.chart(cell, panel, row)?;
                } else {
                    self.absence(cell)?;
                }
            }
        }
        area.present()?;
        Ok(())
    }

    fn legend_columns(&self) -> usize {
        self.names.len().min(LEGENDS_ABREAST * self.panels.len())
    }

    fn legend_height(&self) -> u32 {
        LEGEND_HEIGHT * (1 + self.names.len().div_ceil(self.legend_columns().max(1)) as u32)
    }

    /// Draws the names above the panels, where they cover no data.
    fn legend(&self, area: &Area) -> Result<()> {
        let text = Self::text(16).pos(Pos::new(HPos::Left, VPos::Center));
        let columns = self.legend_columns();
        let entry = PANEL_WIDTH as i32 / LEGENDS_ABREAST as i32;
        let left = (area.dim_in_pixel().0 as i32 - entry * columns as i32) / 2;
        for (index, name) in self.names.iter().enumerate() {
            let x = left + entry * (index % columns) as i32 + MARGIN;
            let y = LEGEND_HEIGHT as i32 * (1 + index / columns) as i32;
            let (colour, marker) = self.looks(name);
            let (middle, end) = (x + 14, x + 28);
            area.draw(&PathElement::new([(x, y), (end, y)], Self::line(colour)))?;
            area.draw(&(EmptyElement::at((middle, y)) + Self::marker(colour, marker)))?;
            area.draw_text(name, &text, (end + 7, y + 1))?;
        }
        Ok(())
    }

    fn absence(&self, area: &Area) -> Result<()> {
        let (width, height) = area.dim_in_pixel();
        let text = Self::text(15).pos(Pos::new(HPos::Center, VPos::Center));
        let centre = (width as i32 / 2, height as i32 / 2);
        area.draw_text("no fairness figures", &text, centre)?;
        Ok(())
    }

    fn chart(&self, area: &Area, panel: &Panel, row: Quantity) -> Result<()> {
        let (y, y_label) = match row {
            Quantity::Throughput => {
                let highest = self.highest(&panel.unit);
                (-0.04 * highest..1.08 * highest, panel.unit.as_str())
            }
            Quantity::Fairness => (0.48..1.02, "fairness factor (0.5 is strictly fair)"),
        };

        let plot_width = f64::from(PANEL_WIDTH as i32 - Y_LABELS - 2 * MARGIN);
        let mut builder = ChartBuilder::on(area);
        builder
            .margin(MARGIN)
            .x_label_area_size(X_LABELS)
            .y_label_area_size(Y_LABELS);
        if row == self.rows[0] {
            builder.caption(&panel.title, Self::text(18));
        }
        let mut chart = builder.build_cartesian_2d(ThreadAxis::new(panel, plot_width), y)?;
        chart
            .configure_mesh()
            .light_line_style(TRANSPARENT)
            .bold_line_style(FAINT.stroke_width(1))
            .axis_style(INK.stroke_width(1))
            .label_style(Self::text(14))
            .axis_desc_style(Self::text(15))
            .x_desc("threads")
            .y_desc(y_label)
            .y_labels(8)
            .y_label_formatter(&|y| format!("{}", (y * 1e6).round() / 1e6))
            .draw()?;

        for series in &panel.series {
            let (colour, marker) = self.looks(&series.name);
            let points = series.points.iter();
            chart.draw_series(points.clone().filter_map(|point| {
                let (least, most) = row.spread(point)?;
                let ends = [(point.threads, least), (point.threads, most)];
                Some(PathElement::new(ends, Self::line(colour)))
            }))?;
            let values = points.filter_map(|point| Some((point.threads, row.of(point)?)));
            chart.draw_series(LineSeries::new(values.clone(), Self::line(colour)))?;
            chart.draw_series(
                values.map(|at| EmptyElement::at(at) + Self::marker(colour, marker)),
            )?;
        }
        Ok(())
    }

    /// The highest throughput, spread included, in all panels of a unit, which share a scale.
    fn highest(&self, unit: &str) -> f64 {
        let panels = self.panels.iter().filter(|panel| panel.unit == unit);
        panels
            .flat_map(|panel| &panel.series)
            .flat_map(|series| &series.points)
            .map(|point| point.spread.map_or(point.throughput, |(_, most)| most))
            .fold(f64::MIN_POSITIVE, f64::max)
    }

    fn looks(&self, name: &str) -> (RGBColor, Marker) {
        let index = self.names.iter().position(|other| *other == name);
        look(index.expect("a name of this figure"))
    }

    fn text(size: i32) -> TextStyle<'static> {
        TextStyle::from((FACE, size)).color(&INK)
    }

    fn line(colour: RGBColor) -> ShapeStyle {
        colour.stroke_width(2)
    }

    /// A marker at the origin.
    fn marker(colour: RGBColor, marker: Marker) -> Polygon<(i32, i32)> {
        Polygon::new(marker.to_vec(), colour.filled())
    }
}
