//! The page.

use std::time::{SystemTime, UNIX_EPOCH};

use anyhow::Result;
use serde::Serialize;

use super::answer::Answer;
use super::figure::Figure;

const TEMPLATE: &str = include_str!("page.html");
const SCRIPT: &str = include_str!("page.js");
/// Apache ECharts 5.6.0, as its authors distribute it (Apache-2.0). It draws lines, heat maps and
/// intervals as SVG, describes them to screen readers, and needs no build.
const CHARTS: &str = include_str!("echarts.min.js");

#[derive(Serialize)]
struct Contents<'a> {
    version: &'static str,
    /// When it was made, in seconds since 1970.
    made: u64,
    answer: &'a Answer,
    figures: &'a [Figure],
}

/// The page with all that it needs.
pub fn html(answer: &Answer, figures: &[Figure]) -> Result<String> {
    let contents = serde_json::to_string(&Contents {
        version: env!("CARGO_PKG_VERSION"),
        made: SystemTime::now().duration_since(UNIX_EPOCH)?.as_secs(),
        answer,
        figures,
    })?;
    // Within a script element, only `</` could end the text.
    let contents = contents.replace("</", "<\\/");
    Ok(TEMPLATE
        .replace("@SCRIPT@", SCRIPT)
        .replace("@CONTENTS@", &contents)
        .replace("@CHARTS@", CHARTS))
}
