//! Published tables, as the command line names them.

use anyhow::Result;
use lockworks_experiments::PublishedTable;

use crate::names::unknown;

/// The table of this name.
///
/// # Errors
/// No table has this name. The message has the nearest name.
pub fn find(name: &str) -> Result<PublishedTable> {
    PublishedTable::find(name).ok_or_else(|| {
        let all = PublishedTable::all();
        unknown("table", name, all.iter().map(PublishedTable::name))
    })
}

/// Checks settings of `--set` against the scenarios of a table.
///
/// # Errors
/// A value is unknown or out of its range. The message says what is allowed.
pub fn check_settings<'a>(
    table: &PublishedTable,
    settings: impl IntoIterator<Item = (&'a str, f64)>,
) -> Result<()> {
    let mut scenario = table.scenario(table.machine())?;
    settings
        .into_iter()
        .try_for_each(|(key, value)| crate::scenario::set(&mut scenario, key, value))
}
