//! Variants of locks: the same code with other memory orders, as somebody else's version has them.
//!
//! A variant is a file in `crates/check/variants`. It names operations as the lists of mutants do.

use include_dir::{Dir, include_dir};
use serde::{Deserialize, Serialize};

use crate::mutation::{Change, Mutation};
use crate::site::Site;

static FILES: Dir = include_dir!("$CARGO_MANIFEST_DIR/variants");

/// A lock with other memory orders.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Variant {
    /// The name of the variant, which is that of its file.
    pub name: String,
    /// The lock.
    pub lock: String,
    /// Where the orders come from.
    pub source: String,
    /// The operations with another order.
    pub orders: Vec<Mutation>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    lock: String,
    source: String,
    order: Vec<Entry>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Entry {
    at: Vec<String>,
    order: String,
}

/// There is no such variant.
#[derive(Debug, thiserror::Error, PartialEq)]
#[error("no variant is called '{name}'; the variants are {known}")]
pub struct UnknownVariant {
    name: String,
    known: String,
}

impl Variant {
    /// The names of all variants.
    pub fn names() -> Vec<&'static str> {
        let mut names: Vec<_> = FILES
            .files()
            .filter_map(|file| file.path().file_stem()?.to_str())
            .collect();
        names.sort_unstable();
        names
    }

    /// The variant of this name.
    ///
    /// # Errors
    /// There is none.
    ///
    /// # Panics
    /// If the variant's file, which is part of the program, cannot be read.
    pub fn named(name: &str) -> Result<Self, UnknownVariant> {
        let unknown = || UnknownVariant {
            name: name.to_owned(),
            known: Self::names().join(", "),
        };
        let file = FILES.get_file(format!("{name}.toml")).ok_or_else(unknown)?;
        let text = file.contents_utf8().expect("a variant is a text");
        Ok(Self::read(name, text).unwrap_or_else(|error| panic!("variant {name}: {error}")))
    }

    fn read(name: &str, text: &str) -> Result<Self, String> {
        let file: File = toml::from_str(text).map_err(|error| error.to_string())?;
        let mut orders = Vec::new();
        for Entry { at, order } in &file.order {
            let change: Change = order.parse().map_err(|_| format!("no order '{order}'"))?;
            if !matches!(change, Change::Order(_) | Change::Wmb) {
                return Err(format!("'{order}' is no order"));
            }
            for place in at {
                let site = Site::named(place).map_err(|error| error.to_string())?;
                orders.push(Mutation::at(site, change));
            }
        }
        Ok(Self {
            name: name.to_owned(),
            lock: file.lock,
            source: file.source,
            orders,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_variants_can_be_read() {
        for name in Variant::names() {
            let variant = Variant::named(name).unwrap();
            assert!(crate::Check::new(&crate::Config::new(&variant.lock), None).is_ok());
            assert!(!variant.orders.is_empty());
        }
        assert!(
            Variant::named("linux")
                .unwrap_err()
                .to_string()
                .contains("linux-qspinlock")
        );
    }

    #[test]
    fn only_orders_of_operations_that_exist_are_read() {
        let with = |at: &str, order: &str| {
            let text = format!(
                "lock = \"qspinlock\"\nsource = \"nobody\"\n[[order]]\nat = [\"{at}\"]\norder = \"{order}\"\n"
            );
            Variant::read("mine", &text)
        };
        let place = "lw_qspinlock_lock_slow: load node->next";
        assert_eq!(with(place, "relaxed").unwrap().orders.len(), 1);
        assert!(with(place, "drop").unwrap_err().contains("no order"));
        assert!(
            with(place, "strong")
                .unwrap_err()
                .contains("no order 'strong'")
        );
        assert!(with("lw_nothing: load x", "relaxed").is_err());
    }
}
