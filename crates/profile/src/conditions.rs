//! The places in the code where threads waited for conditions, and where these were signalled.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use comfy_table::CellAlignment;
use serde::Serialize;

use crate::places::{Place, Places};
use crate::record::{Condition, Record};
use lockworks_ui::figures::{count, nanoseconds, or_dash};
use lockworks_ui::table::Table;

/// The waits for conditions at a place.
#[derive(Default, Serialize)]
pub struct Waits {
    /// The place.
    pub place: Place,
    /// The conditions: static variables, or addresses.
    pub conditions: Vec<String>,
    /// The number of waits that have ended.
    pub waits: u64,
    /// Their time, in nanoseconds. It ends with the signal if the thread then waited for the mutex.
    pub waited_ns: u64,
    /// The longest of them.
    pub waited_max_ns: u64,
    /// The waits that ended at their deadline.
    pub timed_out: u64,
    /// The wake-ups after which the thread waited again, without unlocking the mutex in between.
    pub for_nothing: u64,
    /// Where these conditions were signalled, most often first.
    pub signals: Vec<Signals>,
}

/// The signals of conditions at a place.
#[derive(Clone, Serialize)]
pub struct Signals {
    /// The place.
    pub place: Place,
    /// Their number.
    pub signals: u64,
}

/// The waits for conditions in all processes, by place, the longest first.
pub fn waits(records: &[Record], places: &mut Places) -> Vec<Waits> {
    let mut waits: BTreeMap<Place, Waits> = BTreeMap::new();
    for record in records {
        let (signals, calls): (Vec<&Condition>, Vec<&Condition>) =
            record.conditions.iter().partition(|one| one.is_signal);
        for wait in calls {
            let place = places.of(record, wait.call);
            let of = waits.entry(place.clone()).or_default();
            of.place = place;
            of.add(wait);
            let name = places.lock(record, wait.address);
            if !of.conditions.contains(&name) {
                of.conditions.push(name);
                for signal in signals.iter().filter(|one| one.address == wait.address) {
                    of.add_signals(places.of(record, signal.call), signal.calls);
                }
            }
        }
    }
    let mut waits: Vec<Waits> = waits.into_values().collect();
    for of in &mut waits {
        of.signals.sort_by_key(|one| Reverse(one.signals));
    }
    waits.sort_by_key(|of| Reverse((of.waited_ns, of.waits)));
    waits
}

impl Waits {
    fn add(&mut self, wait: &Condition) {
        self.waits = self.waits.saturating_add(wait.calls);
        self.waited_ns = self.waited_ns.saturating_add(wait.waited_ns);
        self.waited_max_ns = self.waited_max_ns.max(wait.waited_max_ns);
        self.timed_out = self.timed_out.saturating_add(wait.timed_out);
        self.for_nothing = self.for_nothing.saturating_add(wait.for_nothing);
    }

    fn add_signals(&mut self, place: Place, signals: u64) {
        match self.signals.iter_mut().find(|one| one.place == place) {
            Some(one) => one.signals = one.signals.saturating_add(signals),
            None => self.signals.push(Signals { place, signals }),
        }
    }
}

/// A table of waits for conditions. Empty: there were none.
pub fn table<'a>(waits: impl Iterator<Item = &'a Waits>) -> String {
    let mut table = Table::new(&[
        "waits for a condition at",
        "waits",
        "waited",
        "longest",
        "timed out",
        "for nothing",
        "signalled at",
    ]);
    table.add_rows(waits.map(|of| {
        [
            of.place.name(),
            count(of.waits),
            nanoseconds(of.waited_ns),
            nanoseconds(of.waited_max_ns),
            count(of.timed_out),
            count(of.for_nothing),
            or_dash(of.signals.first().map(|one| one.place.name())),
        ]
    }));
    if table.is_empty() {
        return String::new();
    }
    for column in table.column_iter_mut().skip(1).take(5) {
        column.set_cell_alignment(CellAlignment::Right);
    }
    format!("{table}\n")
}
