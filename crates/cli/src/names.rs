//! Names given on the command line that nothing goes by.

use lockworks::{Setting, SettingError, Tunable};

/// How alike a name must be to what was given for it to be what was meant.
const ALIKE: f64 = 0.7;

/// The error for a name that is none of the candidates: with the nearest of them, or else all; if a
/// lock was wanted and it is a lockref, with what takes those.
pub fn unknown<'a>(
    kind: &str,
    given: &str,
    candidates: impl IntoIterator<Item = &'a str>,
) -> anyhow::Error {
    if kind == "lock" && lockworks::find_lockref(given).is_some() {
        return anyhow::anyhow!("'{given}' is a lockref; only `lockworks check` takes those");
    }
    let candidates: Vec<&str> = candidates.into_iter().collect();
    let nearest = candidates
        .iter()
        .map(|name| (strsim::jaro_winkler(given, name), name))
        .filter(|(likeness, _)| *likeness >= ALIKE)
        .max_by(|a, b| a.0.total_cmp(&b.0));
    match nearest {
        Some((_, name)) => anyhow::anyhow!("unknown {kind} '{given}'; did you mean '{name}'?"),
        None => anyhow::anyhow!(
            "unknown {kind} '{given}'; choose from {}",
            candidates.join(", ")
        ),
    }
}

/// A setting of a tunable, as an option gives it.
pub fn setting(text: &str) -> anyhow::Result<Setting> {
    text.parse().map_err(|error| match error {
        SettingError::Unknown(name) => {
            unknown("tunable", &name, Tunable::all().iter().map(|t| t.name))
        }
        other => other.into(),
    })
}

#[cfg(test)]
mod tests {
    use super::unknown;

    #[test]
    fn names_the_nearest_or_all() {
        let text = |given| unknown("lock", given, ["cna", "ticket"]).to_string();
        assert_eq!(text("cnaa"), "unknown lock 'cnaa'; did you mean 'cna'?");
        assert_eq!(text("xyz"), "unknown lock 'xyz'; choose from cna, ticket");
        let lockref = "'lockref-cna' is a lockref; only `lockworks check` takes those";
        assert_eq!(text("lockref-cna"), lockref);
    }
}
