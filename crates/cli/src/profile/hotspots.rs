//! The places in the code and the mutexes for which threads waited, the hottest first.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;

use super::places::{Place, Places};
use super::record::{Counts, Record, Site};

/// A place with all mutexes that were locked there, or a mutex with all places where it was locked.
#[derive(Default, Serialize)]
pub struct Hotspot {
    /// The places, the hottest first.
    pub places: Vec<Place>,
    /// The process and the address of each mutex.
    pub mutexes: Vec<(u64, u64)>,
    /// The static variable that the first of these mutexes is, or the variable and an offset in it. None:
    /// it has no symbol, or is on the heap or a stack.
    pub variable: Option<String>,
    /// Where the first of these mutexes was locked that was held when the process ended. None: it was free.
    pub held_at: Option<Place>,
    /// The property of a mutex among them for which `lockworks run` leaves it to glibc.
    pub left_to_glibc: Option<&'static str>,
    /// The number of threads that locked the mutexes. It is a lower bound if a process has more
    /// than 255 threads.
    pub threads: u64,
    /// The counts.
    #[serde(flatten)]
    pub counts: Counts,
}

impl Hotspot {
    /// The first of these mutexes, as tables name it.
    pub fn mutex(&self) -> String {
        match &self.variable {
            Some(name) => name.clone(),
            None => format!("{:#x}", self.mutexes[0].1),
        }
    }

    /// The share of the acquisitions that were contended.
    pub fn contended_share(&self) -> f64 {
        self.counts.contended as f64 / self.counts.acquisitions.max(1) as f64
    }
}

/// A mutex at a place in the code of a process.
type Sighting<'a> = (&'a Record, &'a Site, Place);

/// The mutexes of all processes, each at each place, the hottest first.
pub fn sightings<'a>(records: &'a [Record], places: &mut Places) -> Vec<Sighting<'a>> {
    let mut sightings = Vec::new();
    for record in records {
        let mut known: BTreeMap<u64, Place> = BTreeMap::new();
        for site in &record.sites {
            let place = known
                .entry(site.call)
                .or_insert_with(|| places.of(record, site.call));
            sightings.push((record, site, place.clone()));
        }
    }
    sightings.sort_by_key(|(_, site, _)| heat(&site.counts));
    sightings
}

/// A key by which the hottest comes first.
fn heat(counts: &Counts) -> impl Ord + use<> {
    Reverse((counts.waited_ns, counts.acquisitions))
}

/// Sums up the sightings with the same key. The hottest key comes first.
pub fn hotspots<K: Ord>(sightings: &[Sighting], key: impl Fn(&Sighting) -> K) -> Vec<Hotspot> {
    let mut groups: BTreeMap<K, Vec<&Sighting>> = BTreeMap::new();
    for sighting in sightings {
        groups.entry(key(sighting)).or_default().push(sighting);
    }
    let mut hotspots: Vec<Hotspot> = groups.into_values().map(|group| hotspot(&group)).collect();
    hotspots.sort_by_key(|hotspot| heat(&hotspot.counts));
    hotspots
}

fn hotspot(group: &[&Sighting]) -> Hotspot {
    let mut hotspot = Hotspot::default();
    let mut threads: BTreeMap<u64, [u64; 4]> = BTreeMap::new();
    let mut mutexes = BTreeSet::new();
    for (record, site, place) in group {
        hotspot.counts += site.counts;
        hotspot.left_to_glibc = hotspot.left_to_glibc.or(site.left_to_glibc());
        let of = threads.entry(record.pid).or_default();
        for (all, these) in of.iter_mut().zip(site.threads) {
            *all |= these;
        }
        if !hotspot.places.contains(place) {
            hotspot.places.push(place.clone());
        }
        if mutexes.insert((record.pid, site.mutex)) {
            hotspot.mutexes.push((record.pid, site.mutex));
        }
    }
    let bits = threads
        .values()
        .flatten()
        .map(|bits| u64::from(bits.count_ones()));
    hotspot.threads = bits.sum();
    hotspot
}
