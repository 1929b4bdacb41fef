//! The text of a description: its file, and the descriptions that it inherits.

use std::path::Path;

use serde::Deserialize;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

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
            .map_err(|e| self.error(e.into()))
    }

    pub(super) fn error(&self, fault: Fault) -> Error {
        let index = self
            .files
            .partition_point(|(text, _)| text.len() < fault.span.start);
        let (text, origin) = &self.files[index.min(self.files.len() - 1)];
        fault.locate(text, origin)
    }

    /// The merged description.
    pub(super) fn merged(&self) -> Result<Spanned<DeTable<'_>>, Fault> {
        let mut merged = Spanned::new(0..0, DeTable::new());
        for (text, _) in self.files.iter().rev() {
            let table = DeTable::parse(text)?;
            merged = Spanned::new(table.span(), merged.into_inner());
            merge(merged.get_mut(), table.into_inner());
        }
        merged.get_mut().remove("inherits");
        Ok(merged)
    }
}

/// Puts `over` on top of `base`, key by key in the two tables that only group keys.
fn merge<'a>(base: &mut DeTable<'a>, over: DeTable<'a>) {
    for (key, value) in over {
        let groups = matches!(&**key.get_ref(), "topology" | "costs");
        let old = base.get_mut(&**key.get_ref()).map(Spanned::get_mut);
        match (old, value.span(), value.into_inner()) {
            (Some(DeValue::Table(old)), _, DeValue::Table(new)) if groups => old.extend(new),
            (_, span, value) => {
                base.insert(key, Spanned::new(span, value));
            }
        }
    }
}
