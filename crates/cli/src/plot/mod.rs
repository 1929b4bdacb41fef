//! Figures: the throughput and fairness of locks by number of threads, panel beside panel.

mod axis;
mod drawing;
mod looks;
mod panel;

use std::fs;
use std::path::Path;

use anyhow::{Context, Result, anyhow};
use plotters::prelude::*;

use self::drawing::{FACE, Figure};
pub use self::panel::{Panel, Point, Series};
use crate::output::write_file;

/// Writes a figure of these panels to `base`.svg and `base`.png, each completely or not at all.
pub fn figure(base: &Path, panels: &[Panel]) -> Result<()> {
    // Text is measured with this font, and the PNG has it. A viewer of the SVG may use another one.
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

#[cfg(test)]
mod tests {
    use super::*;

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
    fn a_figure_without_locks_is_drawn() {
        let directory = tempfile::tempdir().unwrap();
        let nothing = [panel("Nothing", Vec::new())];
        figure(&directory.path().join("figure"), &nothing).unwrap();
    }
}
