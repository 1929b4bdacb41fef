//! Pictures of results, for `--plot` and for `lockworks report`. Results make their figures. ECharts
//! draws them, in the browser that shows a page, or here for an SVG.

pub mod figure;
pub mod page;

use std::path::Path;

use anyhow::{Context as _, Result, ensure};
use itertools::Itertools;
use rquickjs::{Context, Function, Runtime};

use crate::output;

use figure::{Draw, Figure};
use page::Heading;

/// Apache ECharts 5.6.0, as its authors distribute it (Apache-2.0). It draws lines, heat maps and
/// intervals as SVG, describes them to screen readers, and needs neither a build nor a browser.
const ECHARTS: &str = include_str!("echarts.min.js");
const CHARTS: &str = include_str!("charts.js");
const SVG: &str = include_str!("svg.js");

/// The stack of the engine that runs ECharts, in bytes.
const STACK: usize = 1 << 20;

/// Fails if no picture can be written to `path`.
pub fn check(path: Option<&Path>) -> Result<()> {
    let Some(path) = path else {
        return Ok(());
    };
    ensure!(
        path.extension()
            .is_some_and(|end| end == "svg" || end == "html"),
        "'{}' is no picture; give a name that ends in .svg or .html",
        path.display()
    );
    output::check_file(path)
}

/// Draws the results of this command.
pub fn draw(path: &Path, results: &impl Draw) -> Result<()> {
    write(path, &results.figures(&this_command()))
}

/// This command as a user would type it.
pub fn this_command() -> String {
    let words = std::env::args().skip(1);
    ["lockworks".to_owned()].into_iter().chain(words).join(" ")
}

/// Writes the figures that have a chart to `path`, an SVG or an HTML page.
pub fn write(path: &Path, figures: &[Figure]) -> Result<()> {
    ensure!(
        figures.iter().any(Figure::has_chart),
        "there is nothing to draw, so '{}' is not written",
        path.display()
    );
    let picture = match path.extension() {
        Some(end) if end == "html" => page::html(&Heading::of_figures(figures), figures)?,
        _ => svg(figures)?,
    };
    output::write_file(path, picture.as_bytes())
}

/// The charts below each other.
fn svg(figures: &[Figure]) -> Result<String> {
    let figures: Vec<&Figure> = figures.iter().filter(|figure| figure.has_chart()).collect();
    let figures = serde_json::to_string(&figures)?;
    let runtime = Runtime::new()?;
    runtime.set_max_stack_size(STACK);
    let drawn: Result<String, rquickjs::Error> = Context::full(&runtime)?.with(|engine| {
        for script in [ECHARTS, CHARTS, SVG] {
            engine.eval::<(), _>(script)?;
        }
        let picture: Function = engine.globals().get("picture")?;
        picture.call((engine.json_parse(figures)?,))
    });
    drawn.context("cannot draw the picture")
}
