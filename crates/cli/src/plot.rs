//! Figures: what locks achieve as threads are added, and how fairly, panel beside panel.

use std::fs;
use std::ops::Range;
use std::path::Path;

use anyhow::{Context, Result, anyhow};
use plotters::coord::Shift;
use plotters::coord::ranged1d::{DefaultFormatting, KeyPointHint, Ranged};
use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, Pos, VPos};

use crate::output::write_file;

/// One machine or source: a column of the figure.
#[derive(Clone, Debug)]
pub struct Panel {
    /// Stands above it.
    pub title: String,
    /// What [`Point::throughput`] counts, as "million operations a second". Panels of the same unit
    /// have the same scale.
    pub unit: String,
    /// The locks.
    pub series: Vec<Series>,
}

/// One lock. Those of the same name look the same in all panels.
#[derive(Clone, Debug)]
pub struct Series {
    /// Name of the lock.
    pub name: String,
    /// By threads, upwards.
    pub points: Vec<Point>,
}

/// One measurement.
#[derive(Clone, Copy, Debug)]
pub struct Point {
    /// Number of threads.
    pub threads: usize,
    /// In the panel's unit.
    pub throughput: f64,
    /// Least and most over the rounds, if there were several.
    pub spread: Option<(f64, f64)>,
    /// Fairness factor, if known.
    pub fairness: Option<f64>,
}

/// Writes `base`.svg and `base`.png, each in full or not at all.
pub fn figure(base: &Path, panels: &[Panel]) -> Result<()> {
    // Sizes are measured with it and the PNG has it; a viewer of the SVG may take another face.
    let font = epaint_default_fonts::UBUNTU_LIGHT;
    plotters::style::register_font(FACE, FontStyle::Normal, font)
        .map_err(|_| anyhow!("the built-in font is damaged; build lockworks anew"))?;

    let figure = Figure::new(panels, 1);
    let mut svg = String::new();
    figure.draw(&SVGBackend::with_string(&mut svg, figure.size()).into_drawing_area())?;
    write_file(&base.with_extension("svg"), svg.as_bytes())?;

    let figure = Figure::new(panels, 2);
    let scratch = tempfile::tempdir().context("set TMPDIR to a directory that can be written")?;
    let png = scratch.path().join("figure.png");
    figure.draw(&BitMapBackend::new(&png, figure.size()).into_drawing_area())?;
    write_file(&base.with_extension("png"), &fs::read(png)?)
}

const FACE: &str = "sans-serif";
const INK: RGBColor = RGBColor(0x22, 0x22, 0x22);
const FAINT: RGBColor = RGBColor(0xdd, 0xdd, 0xdd);

// Pixels of the SVG; the PNG has twice as many.
const PANEL_WIDTH: u32 = 440;
const ROW_HEIGHT: u32 = 300;
/// A line of the legend.
const LEGEND_HEIGHT: u32 = 22;
const X_LABELS: i32 = 42;
const Y_LABELS: i32 = 64;
const MARGIN: i32 = 12;
/// Names in the width of a panel.
const LEGENDS_ABREAST: usize = 3;
/// Thread counts along an axis stay so far apart.
const LABEL_GAP: f64 = 24.0;

/// Corners around a point.
type Marker = &'static [(i32, i32)];

/// Colours that colour-blind people tell apart (Okabe and Ito), and markers for all others.
const LOOKS: [(RGBColor, Marker); 8] = [
    (
        RGBColor(0x00, 0x72, 0xb2),
        &[
            (-2, -5),
            (2, -5),
            (5, -2),
            (5, 2),
            (2, 5),
            (-2, 5),
            (-5, 2),
            (-5, -2),
        ],
    ),
    (
        RGBColor(0xd5, 0x5e, 0x00),
        &[(-4, -4), (4, -4), (4, 4), (-4, 4)],
    ),
    (RGBColor(0x00, 0x9e, 0x73), &[(0, -5), (5, 4), (-5, 4)]),
    (
        RGBColor(0xcc, 0x79, 0xa7),
        &[(0, -6), (5, 0), (0, 6), (-5, 0)],
    ),
    (RGBColor(0xe6, 0x9f, 0x00), &[(0, 5), (5, -4), (-5, -4)]),
    (
        RGBColor(0x56, 0xb4, 0xe9),
        &[(-5, -5), (5, 5), (5, -5), (-5, 5)],
    ),
    (
        RGBColor(0x55, 0x55, 0x55),
        &[(-2, -5), (2, -5), (2, 5), (-2, 5)],
    ),
    (
        RGBColor(0x8c, 0x56, 0x4b),
        &[(-5, -2), (5, -2), (5, 2), (-5, 2)],
    ),
];

/// The looks of the nth name. When colours come again, they do so with other markers.
fn look(n: usize) -> (RGBColor, Marker) {
    let (colour, _) = LOOKS[n % LOOKS.len()];
    let (_, marker) = LOOKS[(n + n / LOOKS.len()) % LOOKS.len()];
    (colour, marker)
}

type Area<B> = DrawingArea<B, Shift>;

/// One of the rows of a figure.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Quantity {
    Throughput,
    Fairness,
}

impl Quantity {
    /// Of a point: the value, least and most.
    fn of(self, point: &Point) -> Option<(f64, f64, f64)> {
        let same = |value| (value, value, value);
        match self {
            Self::Throughput => Some(match point.spread {
                Some((least, most)) => (point.throughput, least, most),
                None => same(point.throughput),
            }),
            Self::Fairness => point.fairness.map(same),
        }
    }

    fn is_in(self, panel: &Panel) -> bool {
        let mut points = panel.series.iter().flat_map(|series| &series.points);
        points.any(|point| self.of(point).is_some())
    }
}

/// Panels, at one of the two sizes.
struct Figure<'a> {
    panels: &'a [Panel],
    /// Names of all series; the place of a name decides about its looks.
    names: Vec<&'a str>,
    rows: Vec<Quantity>,
    /// Pixels for each pixel of the SVG.
    scale: u32,
}

impl<'a> Figure<'a> {
    fn new(panels: &'a [Panel], scale: u32) -> Self {
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
            scale,
        }
    }

    fn size(&self) -> (u32, u32) {
        let width = PANEL_WIDTH * self.panels.len() as u32;
        let height = self.legend_height() + ROW_HEIGHT * self.rows.len() as u32;
        (width * self.scale, height * self.scale)
    }

    fn draw<B: DrawingBackend>(&self, area: &Area<B>) -> Result<()>
    where
        B::ErrorType: 'static,
    {
        area.fill(&WHITE)?;
        let (legend, body) = area.split_vertically(self.legend_height() * self.scale);
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

    /// The names above the panels, where they cover no data.
    fn legend<B: DrawingBackend>(&self, area: &Area<B>) -> Result<()>
    where
        B::ErrorType: 'static,
    {
        let text = self.text(16).pos(Pos::new(HPos::Left, VPos::Center));
        let columns = self.legend_columns();
        let entry = self.pixels(PANEL_WIDTH as i32) / LEGENDS_ABREAST as i32;
        let left = (area.dim_in_pixel().0 as i32 - entry * columns as i32) / 2;
        for (place, name) in self.names.iter().enumerate() {
            let x = left + entry * (place % columns) as i32 + self.pixels(MARGIN);
            let y = self.pixels(LEGEND_HEIGHT as i32) * (1 + place / columns) as i32;
            let (colour, marker) = self.looks(name);
            let (middle, end) = (x + self.pixels(14), x + self.pixels(28));
            area.draw(&PathElement::new([(x, y), (end, y)], self.line(colour)))?;
            area.draw(&(EmptyElement::at((middle, y)) + self.marker(colour, marker)))?;
            area.draw_text(name, &text, (end + self.pixels(7), y + self.pixels(1)))?;
        }
        Ok(())
    }

    fn absence<B: DrawingBackend>(&self, area: &Area<B>) -> Result<()>
    where
        B::ErrorType: 'static,
    {
        let (width, height) = area.dim_in_pixel();
        let text = self.text(15).pos(Pos::new(HPos::Center, VPos::Center));
        let centre = (width as i32 / 2, height as i32 / 2);
        area.draw_text("no fairness figures", &text, centre)?;
        Ok(())
    }

    fn chart<B: DrawingBackend>(&self, area: &Area<B>, panel: &Panel, row: Quantity) -> Result<()>
    where
        B::ErrorType: 'static,
    {
        let (y, y_label) = match row {
            Quantity::Throughput => {
                let highest = self.highest(&panel.unit);
                (-0.04 * highest..1.08 * highest, panel.unit.as_str())
            }
            Quantity::Fairness => (0.48..1.02, "fairness factor (0.5 is strictly fair)"),
        };

        let mut builder = ChartBuilder::on(area);
        builder
            .margin(self.pixels(MARGIN))
            .x_label_area_size(self.pixels(X_LABELS))
            .y_label_area_size(self.pixels(Y_LABELS));
        if row == self.rows[0] {
            builder.caption(&panel.title, self.text(18));
        }
        let mut chart = builder.build_cartesian_2d(ThreadAxis::new(panel), y)?;
        chart
            .configure_mesh()
            .light_line_style(TRANSPARENT)
            .bold_line_style(FAINT.stroke_width(self.scale))
            .axis_style(INK.stroke_width(self.scale))
            .label_style(self.text(14))
            .axis_desc_style(self.text(15))
            .x_desc("threads")
            .y_desc(y_label)
            .y_labels(8)
            .y_label_formatter(&|y| format!("{}", (y * 1e6).round() / 1e6))
            .draw()?;

        for series in &panel.series {
            let (colour, marker) = self.looks(&series.name);
            let points: Vec<_> = series
                .points
                .iter()
                .filter_map(|point| Some((point.threads, row.of(point)?)))
                .collect();
            let values = points.iter().map(|&(x, (value, ..))| (x, value));
            chart.draw_series(points.iter().map(|&(x, (_, least, most))| {
                PathElement::new([(x, least), (x, most)], self.line(colour))
            }))?;
            chart.draw_series(LineSeries::new(values.clone(), self.line(colour)))?;
            chart
                .draw_series(values.map(|at| EmptyElement::at(at) + self.marker(colour, marker)))?;
        }
        Ok(())
    }

    /// The highest throughput, spread included, in any panel of that unit: these share a scale.
    fn highest(&self, unit: &str) -> f64 {
        let panels = self.panels.iter().filter(|panel| panel.unit == unit);
        panels
            .flat_map(|panel| &panel.series)
            .flat_map(|series| &series.points)
            .filter_map(|point| Quantity::Throughput.of(point))
            .map(|(_, _, most)| most)
            .fold(f64::MIN_POSITIVE, f64::max)
    }

    fn looks(&self, name: &str) -> (RGBColor, Marker) {
        let place = self.names.iter().position(|other| *other == name);
        look(place.expect("a name of this figure"))
    }

    fn pixels(&self, size: i32) -> i32 {
        size * self.scale as i32
    }

    fn text(&self, size: i32) -> TextStyle<'static> {
        TextStyle::from((FACE, self.pixels(size))).color(&INK)
    }

    fn line(&self, colour: RGBColor) -> ShapeStyle {
        colour.stroke_width(2 * self.scale)
    }

    /// A marker around the origin.
    fn marker(&self, colour: RGBColor, marker: Marker) -> Polygon<(i32, i32)> {
        let corners = marker
            .iter()
            .map(|&(x, y)| (self.pixels(x), self.pixels(y)));
        Polygon::new(corners.collect::<Vec<_>>(), colour.filled())
    }
}

/// Numbers of threads, each doubling as long as any other.
struct ThreadAxis {
    /// All of the panel, upwards.
    threads: Vec<usize>,
    /// How far apart labels have to be, in doublings.
    label_gap: f64,
}

impl ThreadAxis {
    fn new(panel: &Panel) -> Self {
        let points = panel.series.iter().flat_map(|series| &series.points);
        let mut threads: Vec<usize> = points.map(|point| point.threads).collect();
        threads.sort_unstable();
        threads.dedup();
        let mut axis = Self {
            threads,
            label_gap: 0.0,
        };
        let width = f64::from(PANEL_WIDTH as i32 - Y_LABELS - 2 * MARGIN);
        let (start, end) = axis.ends();
        axis.label_gap = LABEL_GAP / width * (end - start);
        axis
    }

    /// From the first to the last and a little more, in doublings.
    fn ends(&self) -> (f64, f64) {
        let Range { start, end } = self.range();
        let (start, end) = ((start as f64).log2(), (end as f64).log2());
        let more = 0.04 * (end - start) + 0.1;
        (start - more, end + more)
    }
}

impl Ranged for ThreadAxis {
    type FormatOption = DefaultFormatting;
    type ValueType = usize;

    fn map(&self, threads: &usize, limit: (i32, i32)) -> i32 {
        let (start, end) = self.ends();
        let along = ((*threads as f64).log2() - start) / (end - start);
        limit.0 + (f64::from(limit.1 - limit.0) * along).round() as i32
    }

    /// The last, then downwards those that have room.
    fn key_points<Hint: KeyPointHint>(&self, hint: Hint) -> Vec<usize> {
        let mut labelled: Vec<usize> = Vec::new();
        if hint.weight().allow_light_points() {
            return labelled;
        }
        for &threads in self.threads.iter().rev() {
            let has_room =
                |&above: &usize| (above as f64).log2() - (threads as f64).log2() >= self.label_gap;
            if labelled.last().is_none_or(has_room) {
                labelled.push(threads);
            }
        }
        labelled
    }

    fn range(&self) -> Range<usize> {
        let first = self.threads.first().copied().unwrap_or(1);
        first..self.threads.last().copied().unwrap_or(1)
    }
}

#[cfg(test)]
mod tests {
    use plotters::coord::ranged1d::BoldPoints;

    use super::*;

    #[test]
    fn no_two_names_look_alike() {
        let looks: Vec<_> = (0..16).map(look).collect();
        for (n, one) in looks.iter().enumerate() {
            assert!(!looks[..n].contains(one), "{n}");
        }
    }

    fn series(name: &str, throughput: [f64; 3], fairness: Option<f64>) -> Series {
        let point = |(threads, throughput)| Point {
            threads,
            throughput,
            spread: Some((0.9 * throughput, 1.1 * throughput)),
            fairness,
        };
        Series {
            name: name.to_owned(),
            points: [1, 2, 142].into_iter().zip(throughput).map(point).collect(),
        }
    }

    fn panel(title: &str, series: Vec<Series>) -> Panel {
        Panel {
            title: title.to_owned(),
            unit: "million operations a second".to_owned(),
            series,
        }
    }

    #[test]
    fn writes_both_files() {
        let directory = tempfile::tempdir().unwrap();
        let panels = [
            panel("Here", vec![series("cna", [2.7, 3.2, 10.4], Some(0.5))]),
            panel("There", vec![series("stock", [2.7, 3.3, 5.9], None)]),
        ];
        figure(&directory.path().join("figure"), &panels).unwrap();

        let svg = fs::read_to_string(directory.path().join("figure.svg")).unwrap();
        for text in [
            "Here",
            "There",
            "cna",
            "stock",
            "142",
            "no fairness figures",
        ] {
            assert!(svg.contains(&format!("\n{text}\n")), "{text}");
        }
        let png = fs::read(directory.path().join("figure.png")).unwrap();
        assert!(png.starts_with(b"\x89PNG"));
    }

    #[test]
    fn labels_keep_their_distance() {
        let mut axis = ThreadAxis::new(&panel("", vec![series("cna", [1.0; 3], None)]));
        assert_eq!(axis.key_points(BoldPoints(9)), [142, 2, 1]);
        axis.label_gap = 2.0;
        assert_eq!(axis.key_points(BoldPoints(9)), [142, 2]);
    }

    #[test]
    fn nothing_to_draw_is_no_panic() {
        let directory = tempfile::tempdir().unwrap();
        let nothing = [panel("Nothing", Vec::new())];
        figure(&directory.path().join("figure"), &nothing).unwrap();
    }
}
