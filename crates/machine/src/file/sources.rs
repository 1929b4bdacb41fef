//! The text of a description: its file, and the descriptions that it inherits.

use std::ops::Range;
use std::path::Path;

use serde::Deserialize;
use toml::Spanned;
use toml::de::{DeArray, DeTable, DeValue};

use crate::description::Fault;
use crate::{Error, MACHINES};

/// The only key that is read before a file is merged over the description that it inherits.
#[derive(Deserialize)]
struct Head {
    inherits: Option<Spanned<String>>,
}

/// A description and those that it inherits, in that order. Each text begins with as many spaces as
/// all texts before it have bytes, so that a span identifies its file.
#[derive(Default)]
pub(super) struct Sources {
    files: Vec<(String, String)>,
}

impl Sources {
    pub(super) fn load(text: &str, origin: &str) -> Result<Sources, Error> {
        let mut sources = Sources::default();
        sources.add(text, origin);
        while let Some(base) = sources.base()? {
            let (_, origin) = &sources.files[sources.files.len() - 1];
            let directory = Path::new(origin).parent().unwrap_or(Path::new(""));
            let (text, origin) = MACHINES
                .open(base.get_ref(), directory)
                .map_err(|e| sources.error(Fault::at(&base, format!("inherits: {e}"))))?;
            if sources.files.iter().any(|(_, o)| *o == origin) {
                let message = format!("{origin} inherits from itself; break the circle");
                return Err(sources.error(Fault::at(&base, message)));
            }
            sources.add(&text, &origin);
        }
        Ok(sources)
    }

    fn add(&mut self, text: &str, origin: &str) {
        let start = self.files.last().map_or(0, |(text, _)| text.len() + 1);
        self.files
            .push((format!("{:start$}{text}", ""), origin.to_owned()));
    }

    /// The name of the description that the last file inherits from.
    fn base(&self) -> Result<Option<Spanned<String>>, Error> {
        let (text, _) = &self.files[self.files.len() - 1];
        toml::from_str(text)
            .map(|head: Head| head.inherits)
            .map_err(|e| self.error(Fault::from(e)))
    }

    /// The number of the file that these bytes are in. The file that inherits from all others is 0.
    pub(super) fn file_of(&self, span: &Range<usize>) -> usize {
        let before = |(text, _): &(String, String)| text.len() < span.start;
        self.files.partition_point(before).min(self.files.len() - 1)
    }

    pub(super) fn error(&self, mut fault: Fault) -> Error {
        let file = self.file_of(&fault.span);
        let (text, origin) = &self.files[file];
        if file > 0 {
            let (_, heir) = &self.files[0];
            fault.message = format!("{}; {heir} inherits this", fault.message);
        }
        fault.locate(text, origin)
    }

    /// The merged description.
    pub(super) fn merged(&self) -> Result<Spanned<DeTable<'_>>, Fault> {
        let mut merged = Spanned::new(0..0, DeTable::new());
        for (number, (text, _)) in self.files.iter().enumerate().rev() {
            let mut table = DeTable::parse(text)?;
            if number > 0 {
                infer(table.get_mut());
            }
            merged = Spanned::new(table.span(), merged.into_inner());
            merge(merged.get_mut(), table.into_inner());
        }
        merged.get_mut().remove("inherits");
        Ok(merged)
    }
}

/// Marks all values that were measured on the exact part (E) as inferred (I). An heir is another
/// machine, on which nobody has measured them.
fn infer(table: &mut DeTable<'_>) {
    for (key, value) in table.iter_mut() {
        let is_mark = &**key.get_ref() == "mark";
        infer_value(value.get_mut(), is_mark);
    }
}

fn infer_value(value: &mut DeValue<'_>, is_mark: bool) {
    match value {
        DeValue::String(mark) if is_mark && mark == "E" => *mark = "I".into(),
        DeValue::Table(table) => infer(table),
        DeValue::Array(list) => {
            for value in list.iter_mut() {
                infer_value(value.get_mut(), false);
            }
        }
        _ => {}
    }
}

/// Puts `over` on top of `base`: key by key in the two tables that only group keys, and relation by
/// relation.
fn merge<'a>(base: &mut DeTable<'a>, over: DeTable<'a>) {
    for (key, value) in over {
        let name = &**key.get_ref();
        let groups = matches!(name, "topology" | "costs");
        let relations = name == "relation";
        let old = base.get_mut(name).map(Spanned::get_mut);
        match (old, value.span(), value.into_inner()) {
            (Some(DeValue::Table(old)), _, DeValue::Table(new)) if groups => old.extend(new),
            (Some(DeValue::Array(old)), span, DeValue::Array(new)) if relations => {
                let merged = merge_relations(std::mem::replace(old, DeArray::new()), new);
                base.insert(key, Spanned::new(span, DeValue::Array(merged)));
            }
            (_, span, value) => {
                base.insert(key, Spanned::new(span, value));
            }
        }
    }
}

/// The relations of `over`, and those of `base` that it does not replace. A relation replaces that of
/// the same unit and distance.
fn merge_relations<'a>(base: DeArray<'a>, over: DeArray<'a>) -> DeArray<'a> {
    let replaced: Vec<_> = over.iter().map(unit_and_distance).collect();
    let is_kept = |old: &Spanned<DeValue<'a>>| !replaced.contains(&unit_and_distance(old));
    let kept: Vec<_> = base.into_iter().filter(is_kept).collect();
    over.into_iter().chain(kept).collect()
}

/// The unit and the distance of a relation that has not been checked.
fn unit_and_distance(relation: &Spanned<DeValue<'_>>) -> (Option<String>, Option<String>) {
    let value = |key| relation.get_ref().get(key).map(Spanned::get_ref);
    (
        value("share").and_then(DeValue::as_str).map(str::to_owned),
        value("hops")
            .and_then(DeValue::as_integer)
            .map(ToString::to_string),
    )
}
