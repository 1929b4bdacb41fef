//! Finds things by their names on the command line, and suggests the nearest name for an unknown
//! one.

use crate::nearest;
use itertools::Itertools;
use lockworks::{Setting, SettingError, Tunable};

/// The candidate that the user probably meant. In this order: the same name in another spelling,
/// the only one that contains the given letters, the longest one that the given name begins with,
/// or the most similar one.
fn meant<'a>(given: &str, candidates: &[&'a str]) -> Option<&'a str> {
    let plain = |name: &str| {
        let name = name.to_lowercase().replace('-', "_");
        name.strip_prefix("lw_").map_or(name.clone(), str::to_owned)
    };
    let given = plain(given);
    let sound = candidates
        .iter()
        .copied()
        .filter(|name| lockworks::find(name).is_none_or(|lock| !lock.is_broken()));
    let longer = sound
        .clone()
        .filter(|name| given.len() >= 4 && plain(name).contains(&given));
    let shorter = sound
        .clone()
        .filter(|name| name.len() >= 2 && given.starts_with(&plain(name)));
    let alike = nearest(&given, sound.clone());
    sound
        .clone()
        .find(|name| plain(name) == given)
        .or_else(|| longer.exactly_one().ok())
        .or_else(|| shorter.max_by_key(|name| name.len()))
        .or(alike)
}

/// The error for a name that is none of the candidates. The message names the nearest candidate, or
/// all of them if none is near. For a lockref it names the commands that take lockrefs.
pub fn unknown<'a>(
    kind: &str,
    given: &str,
    candidates: impl IntoIterator<Item = &'a str>,
) -> anyhow::Error {
    if kind == "lock" && lockworks::find_lockref(given).is_some() {
        return anyhow::anyhow!(
            "'{given}' is a lockref; `lockworks check` takes lockrefs, \
             but not all of its subcommands do"
        );
    }
    let candidates: Vec<&str> = candidates.into_iter().collect();
    let meant = meant(given, &candidates);
    anyhow::Error::msg(crate::unknown(kind, given, '\'', meant, || {
        format!("choose from {}", candidates.join(", "))
    }))
}

/// The one of `all` that has this name.
pub fn by_name<T: Copy>(
    kind: &str,
    given: &str,
    all: impl IntoIterator<Item = T>,
    name: fn(T) -> &'static str,
) -> anyhow::Result<T> {
    let all: Vec<T> = all.into_iter().collect();
    let found = all.iter().find(|one| name(**one) == given);
    found
        .copied()
        .ok_or_else(|| unknown(kind, given, all.iter().map(|one| name(*one))))
}

/// The setting of a tunable that an option gives.
pub fn setting(text: &str) -> anyhow::Result<Setting> {
    text.parse().map_err(|error| match error {
        SettingError::Unknown(name) => {
            unknown("tunable", &name, Tunable::all().iter().map(|t| t.name))
        }
        other => other.into(),
    })
}

/// A share in percent.
pub fn percent(text: &str) -> Result<f64, String> {
    match text.parse() {
        Ok(percent) if (0.0..=100.0).contains(&percent) => Ok(percent),
        _ => Err("give a number from 0 to 100".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::{meant, unknown};

    #[test]
    fn names_the_nearest_or_all() {
        let text = |given| unknown("lock", given, ["cna", "ticket"]).to_string();
        assert_eq!(text("cnaa"), "unknown lock 'cnaa'; did you mean 'cna'?");
        // The three letters in common with ticket are too few.
        for given in ["xyz", "ticlog"] {
            let all = format!("unknown lock '{given}'; choose from cna, ticket");
            assert_eq!(text(given), all);
        }
        let lockref = "'lockref-cna' is a lockref; `lockworks check` takes lockrefs, \
                       but not all of its subcommands do";
        assert_eq!(text("lockref-cna"), lockref);
    }

    #[test]
    fn a_name_that_is_meant_is_found() {
        let locks = ["busted", "qspinlock", "hq", "pv", "cna", "pthread_mutex"];
        for (given, name) in [
            ("CNA", Some("cna")),
            ("lw_pv", Some("pv")),
            ("hq-spinlock", Some("hq")),
            ("pvqspinlock", Some("pv")),
            ("mutex", Some("pthread_mutex")),
            ("qspinlok", Some("qspinlock")),
            ("bust", None),
            ("futex", None),
        ] {
            assert_eq!(meant(given, &locks), name, "{given}");
        }
    }
}
