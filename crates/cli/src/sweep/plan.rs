//! A plan: a file in TOML whose tables describe points, and the points that it describes.

use std::collections::{BTreeMap, HashSet};
use std::ops::Range;
use std::path::Path;

use anyhow::{Context, Result};
use itertools::Itertools;
use lockworks::Setting;
use lockworks_machine::description::Fault;
use lockworks_machine::names::{nearest, unknown};
use serde::Deserialize;
use toml::Spanned;
use toml::de::{DeTable, DeValue, ValueDeserializer};

use super::checks::CheckTable;
use super::point::{Point, PointRun};
use super::simulations::SimTable;
use super::values::{Values, Whole, given};
use crate::names;

/// The most points of a plan.
const MOST_POINTS: usize = 1_000_000;

/// The key of a plan's tables.
const SWEEP: &str = "sweep";

/// The tunables of a table, each with the values that it takes.
pub type Tunables = BTreeMap<String, Spanned<Values<Whole>>>;

/// The points of a plan, each once, with their keys.
pub struct Plan {
    /// The points, in the order of the plan.
    pub points: Vec<(String, Point)>,
}

impl Plan {
    /// Reads a plan.
    ///
    /// # Errors
    ///
    /// If there is no such file, or the plan is wrong. The message names the line.
    pub fn read(path: &Path) -> Result<Self> {
        let text = std::fs::read_to_string(path).with_context(|| {
            format!(
                "cannot read the plan {}; give the path of a TOML file",
                path.display()
            )
        })?;
        let directory = path.parent().unwrap_or(Path::new(""));
        let origin = path.display().to_string();
        Ok(Self::parse(&text, directory).map_err(|fault| fault.locate(&text, &origin))?)
    }

    /// Reads a plan from its text. Paths of machines and workloads are relative to `directory`.
    fn parse(text: &str, directory: &Path) -> Result<Self, Fault> {
        let root = DeTable::parse(text)?;
        let end = text.trim_end().len();
        let mut points = Vec::new();
        let mut tables = 0;
        for (key, value) in root.into_inner() {
            if key.get_ref() != SWEEP {
                let meant = nearest(key.get_ref(), [SWEEP]);
                let message = unknown("key", key.get_ref(), '`', meant, || {
                    "a plan has [[sweep]] tables".to_owned()
                });
                return Err(Fault::at(&key, message));
            }
            let span = value.span();
            let DeValue::Array(array) = value.into_inner() else {
                let message = "write [[sweep]], with two brackets, above each table";
                return Err(Fault {
                    span,
                    message: message.to_owned(),
                });
            };
            for table in array {
                tables += 1;
                expand(table, directory, &mut points)?;
            }
        }
        if tables == 0 {
            let message = "the plan has no points; begin a table with [[sweep]]";
            return Err(Fault {
                span: end..end,
                message: message.to_owned(),
            });
        }
        let mut seen = HashSet::new();
        let keyed = points.into_iter().map(|point| (point.key(), point));
        let points = keyed.filter(|(key, _)| seen.insert(key.clone())).collect();
        Ok(Self { points })
    }
}

/// Adds the points of one table.
fn expand(
    table: Spanned<DeValue>,
    directory: &Path,
    points: &mut Vec<Point>,
) -> Result<(), Fault> {
    let span = table.span();
    let DeValue::Table(mut table) = table.into_inner() else {
        let message = "this is no table; begin one with [[sweep]]";
        return Err(Fault {
            span,
            message: message.to_owned(),
        });
    };
    let kind = table.remove("kind");
    let kind = kind
        .as_ref()
        .map(|kind| (kind.span(), kind.get_ref().as_str()));
    let rest = || ValueDeserializer::from(Spanned::new(span.clone(), DeValue::Table(table)));
    let wrong = Fault::from;
    match kind {
        None | Some((_, Some("sim"))) => {
            let table = SimTable::deserialize(rest()).map_err(wrong)?;
            table.expand(&span, directory, points)
        }
        Some((_, Some("check"))) => {
            let table = CheckTable::deserialize(rest()).map_err(wrong)?;
            table.expand(&span, points)
        }
        Some((at, given)) => {
            let Some(given) = given else {
                let message = "the kind must be a text; give \"sim\" or \"check\"".to_owned();
                return Err(Fault { span: at, message });
            };
            let meant = nearest(given, ["sim", "check"]);
            let message = unknown("kind", given, '`', meant, || {
                "choose from sim, check".to_owned()
            });
            Err(Fault { span: at, message })
        }
    }
}

/// The fault that something in these bytes of the plan is wrong.
pub fn fault(span: &Range<usize>, error: &anyhow::Error) -> Fault {
    Fault {
        span: span.clone(),
        message: format!("{error:#}"),
    }
}

/// Adds a point to those of a plan. A plan that has too many is refused with the place `span`.
pub fn add(points: &mut Vec<Point>, run: PointRun, span: &Range<usize>) -> Result<(), Fault> {
    if points.len() == MOST_POINTS {
        return Err(Fault {
            span: span.clone(),
            message: format!("the plan has more than {MOST_POINTS} points; give fewer values"),
        });
    }
    points.push(Point::new(run));
    Ok(())
}

/// All combinations of the values of tunables.
pub fn tunings(tunables: &Tunables) -> Result<Vec<BTreeMap<String, u64>>, Fault> {
    let mut choices = Vec::new();
    for (name, values) in tunables {
        let mut of_name = Vec::new();
        for (span, Whole(numbers)) in given(values)? {
            for number in numbers {
                names::setting(&format!("{name}={number}"))
                    .map_err(|error| fault(&span, &error))?;
                of_name.push((name.clone(), number));
            }
        }
        choices.push(of_name);
    }
    let combinations = choices.into_iter().multi_cartesian_product();
    Ok(combinations.map(BTreeMap::from_iter).collect())
}

/// The settings of tunables.
pub fn settings(tune: &BTreeMap<String, u64>) -> Result<Vec<Setting>> {
    tune.iter()
        .map(|(name, value)| names::setting(&format!("{name}={value}")))
        .collect()
}

#[cfg(test)]
mod properties {
    use lockworks_properties::{names_a_line, nearly};
    use proptest::prelude::*;

    use super::*;

    const PLAN: &str = r#"[[sweep]]
machines = ["kunpeng-920"]
workloads = "locktorture"
locks = ["cna", "hq"]
threads = [1, "2..8:2", "all"]
seeds = "1..3"
ms = 0.5
tune.hqlock_fairness_threshold = [1, 10]
set.machine.rmw_cycles = [10, 20]

[[sweep]]
kind = "check"
locks = ["tas", "cond"]
acquisitions = [1, 2]
memory = ["weak", "sc"]
priority = [0]
seconds = 5
"#;

    #[test]
    fn the_plan_has_the_product_of_its_values() {
        let plan = Plan::parse(PLAN, Path::new("")).map_err(|fault| fault.message);
        let points = plan.map(|plan| plan.points.len());
        assert_eq!(points, Ok(2 * 6 * 3 * 2 * 2 + 2 * 2 * 2));
    }

    proptest! {
        /// A text is refused in one line that names the place, or each of its points has a key of
        /// its own.
        #[test]
        fn a_changed_plan_is_refused_or_has_points(text in nearly(vec![PLAN], 3)) {
            match Plan::parse(&text, Path::new("")) {
                Ok(plan) => {
                    let keys: HashSet<_> = plan.points.iter().map(|(key, _)| key).collect();
                    prop_assert_eq!(keys.len(), plan.points.len());
                }
                Err(fault) => names_a_line(&fault.locate(&text, "x.toml").to_string())?,
            }
        }
    }
}
