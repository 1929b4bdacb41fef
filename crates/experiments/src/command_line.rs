//! Published tables, as the command line names them.

use crate::PublishedTable;
use anyhow::Result;

use lockworks_names::command_line::unknown;

/// The table of this name.
///
/// # Errors
/// No table has this name: the message has the nearest name. Or a file of the tables is wrong.
pub fn find(name: &str) -> Result<PublishedTable> {
    if let Some(table) = PublishedTable::find(name)? {
        return Ok(table);
    }
    let all = PublishedTable::all()?;
    Err(unknown("table", name, all.iter().map(PublishedTable::name)))
}

/// The names of all tables.
///
/// # Errors
/// A file of the tables is wrong.
pub fn names() -> Result<Vec<String>> {
    let all = PublishedTable::all()?;
    Ok(all.iter().map(|table| table.name().to_owned()).collect())
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
        .try_for_each(|(key, value)| lockworks_sim::command_line::set(&mut scenario, key, value))
}
