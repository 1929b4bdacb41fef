//! A page of figures, in one file that needs no network.

use std::collections::HashSet;
use std::time::{SystemTime, UNIX_EPOCH};

use anyhow::Result;
use serde::Serialize;

use super::figure::Figure;
use super::{CHARTS, ECHARTS};

const TEMPLATE: &str = include_str!("page.html");
const SCRIPT: &str = include_str!("page.js");

/// The text above the figures.
#[derive(Default, Serialize)]
pub struct Heading {
    /// The title of the page.
    pub title: String,
    /// The answer to the question in the title. Empty: none.
    pub what: String,
    /// How sure that is.
    pub how_sure: String,
    /// The lock that the heat map shows first.
    pub lock: String,
    /// The parts that failed, each with why.
    pub failures: Vec<String>,
}

impl Heading {
    /// The heading of figures that answer no question.
    pub fn of_figures(figures: &[Figure]) -> Self {
        Self {
            title: figures
                .first()
                .map_or_else(String::new, |figure| figure.title.clone()),
            lock: "mutex".to_owned(),
            ..Self::default()
        }
    }
}

#[derive(Serialize)]
struct Contents<'a> {
    version: &'static str,
    /// When it was made, in seconds since 1970.
    made: u64,
    answer: &'a Heading,
    figures: &'a [Figure],
}

/// The page with all that it needs. The titles of the figures differ, as they name their data too.
pub fn html(answer: &Heading, figures: &[Figure]) -> Result<String> {
    debug_assert!(
        figures
            .iter()
            .map(|figure| &figure.title)
            .collect::<HashSet<_>>()
            .len()
            == figures.len(),
        "two figures with one title"
    );
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
        .replace("@CHARTS@", CHARTS)
        .replace("@ECHARTS@", ECHARTS))
}
