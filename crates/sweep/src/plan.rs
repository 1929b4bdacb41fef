//! A plan: a file in TOML whose tables describe points, and the points that it describes.

use std::collections::HashSet;
use std::ops::Range;
use std::path::Path;

use anyhow::{Context, Result};
use clap::Command;
use lockworks_machine::description::Fault;
use lockworks_names::{nearest, unknown};
use toml::de::{DeTable, DeValue};

use crate::point::Point;
use crate::table::Table;

/// The most points of a plan, and the most numbers of a range.
pub const MOST_POINTS: usize = 1_000_000;

/// The key of a plan's tables.
const SWEEP: &str = "sweep";

/// The points of a plan, each once, with their keys.
pub struct Plan {
    /// The points, in the order of the plan.
    pub points: Vec<(String, Point)>,
}

impl Plan {
    /// Reads a plan. `lockworks` is the whole command line.
    ///
    /// # Errors
    ///
    /// If there is no such file, or the plan is wrong. The message names the line.
    pub fn read(path: &Path, lockworks: &Command) -> Result<Self> {
        let text = std::fs::read_to_string(path).with_context(|| {
            let path = path.display();
            format!("cannot read the plan {path}; give the path of a TOML file")
        })?;
        let directory = path.parent().unwrap_or(Path::new(""));
        let origin = path.display().to_string();
        let points = parse(&text, directory, lockworks);
        let points = points.map_err(|fault| fault.locate(&text, &origin))?;
        let mut seen = HashSet::new();
        let mut keyed = Vec::new();
        for point in points {
            let key = point.key()?;
            if seen.insert(key.clone()) {
                keyed.push((key, point));
            }
        }
        Ok(Self { points: keyed })
    }

    /// Keeps the points of part `part` of `parts`, counted from 1.
    pub fn keep_part(&mut self, part: usize, parts: usize) {
        let mut number = 0;
        self.points.retain(|_| {
            number += 1;
            number % parts == part % parts
        });
    }
}

/// Reads a plan from its text. Paths of machines and workloads are relative to `directory`.
fn parse(text: &str, directory: &Path, lockworks: &Command) -> Result<Vec<Point>, Fault> {
    let root = DeTable::parse(text)?;
    let mut points = Vec::new();
    for (key, value) in root.into_inner() {
        if key.get_ref() != SWEEP {
            let meant = nearest(key.get_ref(), [SWEEP]);
            let allowed = || "a plan has [[sweep]] tables".to_owned();
            return Err(Fault::at(
                &key,
                unknown("key", key.get_ref(), '`', meant, allowed),
            ));
        }
        let span = value.span();
        let DeValue::Array(tables) = value.into_inner() else {
            return Err(fault(
                &span,
                "write [[sweep]], with two brackets, above each table",
            ));
        };
        for table in tables {
            let span = table.span();
            let DeValue::Table(table) = table.into_inner() else {
                return Err(fault(&span, "this is no table; begin one with [[sweep]]"));
            };
            Table::read(span, table, directory, lockworks)?.expand(&mut points)?;
        }
    }
    if points.is_empty() {
        let end = text.trim_end().len();
        return Err(fault(
            &(end..end),
            "the plan has no points; begin a table with [[sweep]]",
        ));
    }
    Ok(points)
}

/// The fault that something in these bytes of the plan is wrong.
pub fn fault(span: &Range<usize>, message: impl ToString) -> Fault {
    Fault {
        span: span.clone(),
        message: message.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::point::Kind;
    use crate::table::key_of;

    /// Each option takes one of these.
    const VALUES: [&str; 18] = [
        "true",
        "false",
        "0",
        "1",
        "2",
        "3",
        "50.5",
        "[0]",
        "\"sc\"",
        "\"late\"",
        "\"plain\"",
        "\"linux-qspinlock\"",
        "\"epyc-9654-nps4\"",
        "\"readers\"",
        "\"spread\"",
        "\"tas\"",
        "{ mutex_spin = 7 }",
        "{ machine.rmw_cycles = 77 }",
    ];

    /// Plans, to one of which the value of each option makes a difference.
    const PLANS: [(Kind, &str); 8] = [
        (Kind::Check, "locks = \"mutex\""),
        (Kind::Check, "locks = \"rwlock\""),
        (Kind::Check, "locks = \"qspinlock\""),
        (Kind::Check, "locks = \"mutex\"\nrandom = 10"),
        (Kind::Check, "acquisitions = 1"),
        (Kind::Sim, "locks = \"cna\"\nthreads = 2"),
        (Kind::Sim, "locks = \"cna\"\nvcpus = 2"),
        (Kind::Sim, "placements = \"compact\""),
    ];

    /// The keys of a plan's points, and what these run. None: the plan is refused.
    fn runs(plan: &str) -> Option<(Vec<String>, Vec<String>)> {
        let points = parse(plan, Path::new(""), &Command::default()).ok()?;
        let keys = points.iter().map(|point| point.key().unwrap()).collect();
        let runs = points
            .iter()
            .map(|point| point.planned().unwrap())
            .collect();
        Some((keys, runs))
    }

    /// Whether a plan with this value of an option runs something else. Its points are others then, unless
    /// the option is a limit.
    fn obeys(kind: Kind, option: &str, plan: &str, value: &str) -> bool {
        let plan = format!("[[sweep]]\nkind = \"{}\"\n{plan}\n", kind.name());
        let Some((keys, planned)) = runs(&format!("{plan}{} = {value}\n", key_of(option))) else {
            return false;
        };
        let (keys_without, without) = runs(&plan).unwrap();
        let is_obeyed = planned != without;
        if is_obeyed {
            let is_same = keys == keys_without;
            assert_eq!(is_same, kind.is_limit(option), "{option} = {value}");
        }
        is_obeyed
    }

    /// Options that a point will have are tried too. For a value of another kind, add it above. A test of
    /// the command tries all other options, which are refused.
    #[test]
    fn every_option_of_a_point_is_obeyed() {
        for kind in [Kind::Sim, Kind::Check] {
            let plans = || PLANS.iter().filter(|(of, _)| *of == kind);
            for option in kind.options() {
                let mut tried = plans().flat_map(|(_, plan)| VALUES.map(|value| (plan, value)));
                let is_obeyed = tried.any(|(plan, value)| obeys(kind, option, plan, value));
                assert!(is_obeyed, "{} ignores {option}", kind.name());
            }
        }
    }
}

#[cfg(test)]
mod properties {
    use lockworks_properties::{names_a_line, nearly};
    use proptest::prelude::*;

    use super::*;

    const PLAN: &str = r#"[[sweep]]
machines = ["kunpeng-920"]
workloads = "locktorture-old"
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
memory = ["c11", "sc"]
priority = [0]
seconds = 5
"#;

    #[test]
    fn the_plan_has_the_product_of_its_values() {
        let points = parse(PLAN, Path::new(""), &Command::default()).map_err(|fault| fault.message);
        let points = points.map(|points| points.len());
        assert_eq!(points, Ok(2 * 6 * 3 * 2 * 2 + 2 * 2 * 2));
    }

    proptest! {
        /// A text is refused in one line that names the place, or has points.
        #[test]
        fn a_changed_plan_is_refused_or_has_points(text in nearly(vec![PLAN], 3)) {
            match parse(&text, Path::new(""), &Command::default()) {
                Ok(points) => prop_assert!(!points.is_empty()),
                Err(fault) => names_a_line(&fault.locate(&text, "x.toml").to_string())?,
            }
        }
    }
}
