//! Two profiles side by side: where threads wait longer than before, and where less.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::fs::File;
use std::io::BufReader;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context, Result};
use clap::value_parser;
use comfy_table::CellAlignment;
use serde::{Deserialize, Serialize};

use crate::places::Place;
use lockworks_ui::figures::nanoseconds;
use lockworks_ui::output::{self, Destination};
use lockworks_ui::table::Table;
use lockworks_ui::terminal;

/// Compare two profiles: where threads wait longer than before, and where less.
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  lockworks profile --json -o before.json -- ./server
  lockworks profile --json -o after.json -- ./server
  lockworks profile diff before.json after.json

All times are for a second of the run, summed over threads, so runs may differ in length. Places are \
compared by their functions and callers, since lines change. To profile a program with the name diff, type \
`lockworks profile -- diff`.")]
pub struct DiffArgs {
    /// The result of `lockworks profile --json` before a change
    before: PathBuf,

    /// The result after it
    after: PathBuf,

    /// Number of places to show; those that changed most come first
    #[arg(long, value_name = "N", default_value_t = 10, value_parser = value_parser!(u32).range(1..))]
    top: u32,

    /// Print JSON instead of a table
    #[arg(long)]
    json: bool,

    #[command(flatten)]
    destination: Destination,
}

/// What a result of `profile --json` has, as far as it is compared.
#[derive(Deserialize)]
struct Profile {
    wall_s: f64,
    places: Vec<Row>,
    rwlock_places: Vec<Row>,
}

#[derive(Deserialize)]
struct Row {
    places: Vec<Place>,
    waited_ns: u64,
    acquisitions: u64,
}

/// What threads do with locks at a place in a second of the run.
#[derive(Clone, Copy, Default, PartialEq, Debug, Serialize)]
struct Rates {
    /// Nanoseconds that all threads together wait.
    waited_ns: f64,
    acquisitions: f64,
}

/// A place in two profiles.
#[derive(PartialEq, Debug, Serialize)]
struct Change {
    place: String,
    before: Rates,
    after: Rates,
}

/// All places, those that changed most first, and all of them together.
#[derive(Serialize)]
struct Changes {
    total: Change,
    places: Vec<Change>,
}

/// Runs the command.
pub fn command(args: &DiffArgs) -> Result<ExitCode> {
    args.destination.check()?;
    let changes = Changes::between(&read(&args.before)?, &read(&args.after)?);
    args.destination.write(match args.json {
        true => output::json(&changes)?,
        false => changes.text(args.top as usize),
    })?;
    Ok(ExitCode::SUCCESS)
}

fn read(path: &Path) -> Result<Profile> {
    let file = File::open(path).with_context(|| format!("cannot read {}", path.display()))?;
    serde_json::from_reader(BufReader::new(file)).with_context(|| {
        let path = path.display();
        format!("{path} is no result of a profile; make one with `lockworks profile --json -o FILE -- PROGRAM`")
    })
}

impl Profile {
    /// The rates at each place.
    fn rates(&self) -> BTreeMap<String, Rates> {
        let mut rates: BTreeMap<String, Rates> = BTreeMap::new();
        for row in self.places.iter().chain(&self.rwlock_places) {
            let Some(place) = row.places.first() else {
                continue;
            };
            let of_place = rates.entry(name(place)).or_default();
            of_place.waited_ns += row.waited_ns as f64 / self.wall_s;
            of_place.acquisitions += row.acquisitions as f64 / self.wall_s;
        }
        rates
    }
}

/// The function and its callers, without lines.
fn name(place: &Place) -> String {
    let callers = place
        .all_callers()
        .filter_map(|frame| frame.function.clone());
    // Without symbols, the function is the module and the offset in it.
    std::iter::once(place.frame())
        .filter_map(|frame| frame.function)
        .chain(callers)
        .collect::<Vec<_>>()
        .join(" in ")
}

impl Changes {
    fn between(before: &Profile, after: &Profile) -> Self {
        let mut places: BTreeMap<String, [Rates; 2]> = BTreeMap::new();
        for (at, profile) in [before, after].into_iter().enumerate() {
            for (name, rates) in profile.rates() {
                places.entry(name).or_default()[at] = rates;
            }
        }
        let change = |(place, [before, after]): (String, [Rates; 2])| Change {
            place,
            before,
            after,
        };
        let mut places: Vec<Change> = places.into_iter().map(change).collect();
        places.sort_by_key(|change| Reverse(change.size() as u64));
        let sum = |of: fn(&Change) -> Rates| Rates {
            waited_ns: places.iter().map(|change| of(change).waited_ns).sum(),
            acquisitions: places.iter().map(|change| of(change).acquisitions).sum(),
        };
        let total = Change {
            place: "all places".to_owned(),
            before: sum(|change| change.before),
            after: sum(|change| change.after),
        };
        Self { total, places }
    }

    fn text(&self, top: usize) -> String {
        let mut table = Table::new(&["place", "waited before", "after", "times", "locked"]);
        for column in table.column_iter_mut().skip(1) {
            column.set_cell_alignment(CellAlignment::Right);
        }
        for change in self.places.iter().take(top) {
            table.add_row(change.cells());
        }
        table.add_row(self.total.cells());
        let Rates { waited_ns, .. } = self.total.before;
        let sentence = terminal::prose(&format!(
            "In a second of the run, threads waited for {} before and {} after.",
            nanoseconds(waited_ns as u64),
            nanoseconds(self.total.after.waited_ns as u64),
        ));
        format!("{}\n{sentence}\n", table.trim_fmt())
    }
}

impl Change {
    fn size(&self) -> f64 {
        (self.after.waited_ns - self.before.waited_ns).abs()
    }

    /// The place, the waits, and how many times as many waits and acquisitions there are.
    fn cells(&self) -> Vec<String> {
        let times = |before: f64, after: f64| match before > 0.0 {
            true => format!("{:.2}", after / before),
            false => "new".to_owned(),
        };
        vec![
            self.place.clone(),
            nanoseconds(self.before.waited_ns as u64),
            nanoseconds(self.after.waited_ns as u64),
            times(self.before.waited_ns, self.after.waited_ns),
            times(self.before.acquisitions, self.after.acquisitions),
        ]
    }
}

#[cfg(test)]
mod tests {
    use super::{Changes, Profile};

    fn profile(wall_s: f64, rows: &[(&str, &str, u64)]) -> Profile {
        let places: Vec<_> = rows
            .iter()
            .map(|(function, line, waited_ns)| {
                serde_json::json!({
                    "places": [{
                        "function": function, "line": line, "module": null, "offset": 1,
                        "inlined_into": [], "callers": [],
                    }],
                    "waited_ns": waited_ns,
                    "acquisitions": 10,
                })
            })
            .collect();
        let json = serde_json::json!({"wall_s": wall_s, "places": places, "rwlock_places": []});
        serde_json::from_value(json).expect("a profile")
    }

    #[test]
    fn what_changed_most_comes_first() {
        let before = profile(
            2.0,
            &[
                ("a", "x.c:1", 200),
                ("b", "x.c:5", 4000),
                ("b", "x.c:6", 2000),
            ],
        );
        let after = profile(
            1.0,
            &[
                ("b", "x.c:9", 1000),
                ("new", "x.c:2", 50),
                ("a", "x.c:1", 100),
            ],
        );
        let changes = Changes::between(&before, &after);
        let waits: Vec<_> = changes
            .places
            .iter()
            .map(|change| {
                (
                    change.place.as_str(),
                    change.before.waited_ns,
                    change.after.waited_ns,
                )
            })
            .collect();
        assert_eq!(
            waits,
            [
                ("b", 3000.0, 1000.0),
                ("new", 0.0, 50.0),
                ("a", 100.0, 100.0)
            ]
        );
        assert_eq!(changes.total.after.waited_ns, 1150.0);
        assert_eq!(changes.places[0].cells()[3..], ["0.33", "1.00"]);
        assert_eq!(changes.places[1].cells()[3..], ["new", "new"]);
    }
}
