//! Names that are unknown: the name that was probably meant, and the message.

pub mod command_line;

use std::fmt::Display;

/// The least Jaro-Winkler similarity of a name that is suggested, from 0 to 1.
const SIMILAR: f64 = 0.8;

/// The name that is most like `given`, if one is like it at all.
pub fn nearest<'a>(given: &str, names: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    names
        .into_iter()
        .map(|name| (strsim::jaro_winkler(name, given), name))
        .max_by(|a, b| a.0.total_cmp(&b.0))
        .filter(|(similarity, _)| *similarity >= SIMILAR)
        .map(|(_, name)| name)
}

/// The message that there is no `kind` of the name `given`. It suggests the name that was meant; if
/// there is none, it ends with `allowed`. `quote` is the sign around names: `'` for names on the
/// command line, a backtick for names in files.
pub fn unknown(
    kind: &str,
    given: &str,
    quote: char,
    meant: Option<&str>,
    allowed: impl FnOnce() -> String,
) -> String {
    let end = match meant {
        Some(name) => did_you_mean(format_args!("{quote}{name}{quote}")),
        None => allowed(),
    };
    format!("unknown {kind} {quote}{given}{quote}; {end}")
}

/// The question that suggests a name.
pub fn did_you_mean(name: impl Display) -> String {
    format!("did you mean {name}?")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_suggests_the_nearest_name_or_says_what_is_allowed() {
        let message = |given| {
            let meant = nearest(given, ["title", "name"]);
            unknown("key", given, '`', meant, || {
                "the keys are title, name".to_owned()
            })
        };
        assert_eq!(
            message("titel"),
            "unknown key `titel`; did you mean `title`?"
        );
        assert_eq!(
            message("xyz"),
            "unknown key `xyz`; the keys are title, name"
        );
    }
}
