//! Figures: the throughput and fairness of locks by number of threads, panel beside panel.

mod axis;
mod drawing;
mod looks;
mod panel;
pub mod throughput;

use std::path::Path;

use anyhow::Result;
use plotters::prelude::*;

use self::drawing::Figure;
use self::panel::{Panel, Point, Series};
use crate::output::write_file;

/// Writes a figure of these panels to `path`, an SVG, completely or not at all.
fn figure(path: &Path, panels: &[Panel]) -> Result<()> {
    let figure = Figure::new(panels);
    let mut svg = String::new();
    figure.draw(&SVGBackend::with_string(&mut svg, figure.size()).into_drawing_area())?;
    write_file(path, svg.as_bytes())
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
    fn writes_the_panels() {
        let directory = tempfile::tempdir().unwrap();
        let panels = [
            panel("Here", vec![series("cna", [2.7, 3.2, 10.4], Some(0.5))]),
            panel("There", vec![series("stock", [2.7, 3.3, 5.9], None)]),
        ];
        let path = directory.path().join("figure.svg");
        figure(&path, &panels).unwrap();

        let svg = std::fs::read_to_string(path).unwrap();
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
    }

    #[test]
    fn a_figure_without_locks_is_drawn() {
        let directory = tempfile::tempdir().unwrap();
        let nothing = [panel("Nothing", Vec::new())];
        figure(&directory.path().join("figure.svg"), &nothing).unwrap();
    }
}
