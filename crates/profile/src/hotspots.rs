//! The places in the code and the locks for which threads waited, the hottest first.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;

use crate::callers::Callers;
use crate::layout::Mode;
use crate::places::{Place, Places, shortened};
use crate::record::{Counts, Record, Site};
use crate::slow::SlowWaits;

/// A place with all locks that were acquired there, or a lock with all places where it was acquired.
#[derive(Clone, Default, Serialize)]
pub struct Hotspot {
    /// The places, the hottest first.
    pub places: Vec<Place>,
    /// The process and the address of each lock.
    pub locks: Vec<(u64, u64)>,
    /// The static variable that the first of these locks is, or the variable and an offset in it. None:
    /// it has no symbol, or is on the heap or a stack.
    pub variable: Option<String>,
    /// Where the lock was acquired by a thread that held it alone when the process ended. None: none did.
    pub held_at: Option<Place>,
    /// The property of a lock among them for which `lockworks run` leaves it to glibc.
    pub left_to_glibc: Option<&'static str>,
    /// The number of threads that acquired the locks. It is a lower bound if a process has more
    /// than 255 threads.
    pub threads: u64,
    /// The counts.
    #[serde(flatten)]
    pub counts: Counts,
    /// The part of the wait time in which threads waited to be let on, without work, in nanoseconds.
    pub idle_ns: u64,
    /// The waits that took long, and why.
    pub slow: SlowWaits,
    /// The counts of readers and of writers by themselves, if the locks are rwlocks.
    #[serde(flatten)]
    pub by_mode: Option<ByMode>,
}

/// The counts of an rwlock in each mode.
#[derive(Clone, Copy, Default, Serialize)]
pub struct ByMode {
    /// The counts of readers.
    pub reads: Counts,
    /// The counts of writers.
    pub writes: Counts,
}

impl Hotspot {
    /// The first of these locks, as tables name it.
    pub fn lock(&self) -> String {
        match &self.variable {
            Some(name) => shortened(name).into_owned(),
            None => format!("{:#x}", self.locks[0].1),
        }
    }

    /// The word for these locks.
    pub fn kind(&self) -> &'static str {
        match self.by_mode {
            None => "mutex",
            Some(_) => "rwlock",
        }
    }

    /// The time that threads waited for it while they had work.
    pub fn busy_ns(&self) -> u64 {
        self.counts.waited_ns.saturating_sub(self.idle_ns)
    }

    /// The share of the acquisitions that were contended.
    pub fn contended_share(&self) -> f64 {
        self.counts.contended as f64 / self.counts.acquisitions.max(1) as f64
    }
}

/// A lock in a mode at a place in the code of a process.
pub struct Sighting<'a> {
    /// The process.
    pub record: &'a Record,
    /// The lock and its counts.
    pub site: Site,
    /// The place.
    pub place: Place,
    slow: SlowWaits,
}

/// The locks of all processes, each at each place, the hottest first: the mutexes, and the rwlocks.
pub fn sightings<'a>(
    records: &'a [Record],
    places: &mut Places,
    depth: usize,
) -> (Vec<Sighting<'a>>, Vec<Sighting<'a>>) {
    let mut found = Vec::new();
    for record in records {
        let callers = Callers::of(record, places);
        for site in &record.sites {
            let user = callers.user(record, site, places);
            places.note(record, site.call, &user);
            if depth == 0 {
                found.push((record, site.clone(), user));
                continue;
            }
            for mut way in callers.ways(record, site, places) {
                let shown = depth.saturating_sub(way.place.inlined_into.len());
                way.place.callers.truncate(shown);
                let part = Site {
                    counts: site.counts.part(way.share, way.share_of_waits),
                    causes: site
                        .causes
                        .iter()
                        .map(|cause| cause.part(way.share_of_waits))
                        .collect(),
                    ..site.clone()
                };
                found.push((record, part, way.place));
            }
        }
    }
    let sightings = found.into_iter().map(|(record, site, place)| Sighting {
        slow: SlowWaits::of(record, &site.causes, places),
        record,
        site,
        place,
    });
    let mut sightings: Vec<Sighting> = sightings.collect();
    sightings.sort_by_key(|sighting| heat(&sighting.site.counts));
    let is_of_mutex = |sighting: &Sighting| sighting.site.mode == Mode::Mutex;
    sightings.into_iter().partition(is_of_mutex)
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

/// Hold time up to which a thread does nothing while it holds a lock, in nanoseconds.
const NOTHING: u64 = 1000;

/// The mean hold time in nanoseconds. Of several holds the longest is left out: during it the holder may
/// have lost its CPU. A part of a site's counts has the longest hold of the site, so that may be more than
/// all holds of the part.
fn usual_hold(counts: &Counts) -> u64 {
    let rest = counts.held_ns.checked_sub(counts.held_max_ns);
    match (counts.acquisitions, rest) {
        (4.., Some(rest)) => rest / (counts.acquisitions - 1),
        (acquisitions, _) => counts.held_ns / acquisitions.max(1),
    }
}

/// The time for which threads waited at a site for holders that mostly waited for events, only to release the
/// lock again: the holder lets them on when there is work.
fn idle_ns(site: &Site, slow: &SlowWaits) -> u64 {
    if usual_hold(&site.counts) > NOTHING {
        return 0;
    }
    let causes = slow.causes.iter();
    let events = causes.filter(|cause| cause.doing.waits_for_events());
    let idle: f64 = events.map(|cause| cause.share).sum();
    // If holders mostly wait for events, they only prepare for that in the rest of the time.
    match idle >= 0.5 {
        true => site.counts.waited_ns,
        false => 0,
    }
}

fn hotspot(group: &[&Sighting]) -> Hotspot {
    let mut hotspot = Hotspot::default();
    let mut threads: BTreeMap<u64, [u64; 4]> = BTreeMap::new();
    let mut locks = BTreeSet::new();
    for Sighting {
        record,
        site,
        place,
        slow,
    } in group
    {
        hotspot.counts += site.counts;
        hotspot.slow += slow;
        hotspot.idle_ns = hotspot.idle_ns.saturating_add(idle_ns(site, slow));
        match site.mode {
            Mode::Mutex => {}
            Mode::Read => hotspot.by_mode.get_or_insert_default().reads += site.counts,
            Mode::Write => hotspot.by_mode.get_or_insert_default().writes += site.counts,
        }
        hotspot.left_to_glibc = hotspot.left_to_glibc.or(site.left_to_glibc());
        let of = threads.entry(record.pid).or_default();
        for (all, these) in of.iter_mut().zip(site.threads) {
            *all |= these;
        }
        if !hotspot.places.contains(place) {
            hotspot.places.push(place.clone());
        }
        if locks.insert((record.pid, site.lock)) {
            hotspot.locks.push((record.pid, site.lock));
        }
    }
    let bits = threads
        .values()
        .flatten()
        .map(|bits| u64::from(bits.count_ones()));
    hotspot.threads = bits.sum();
    hotspot
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_late_hold_of_several_is_no_work() {
        let held = |times: &[u64]| Counts {
            acquisitions: times.len() as u64,
            held_ns: times.iter().sum(),
            held_max_ns: times.iter().copied().max().unwrap_or(0),
            ..Counts::default()
        };
        let late = 4_000_000;
        assert_eq!(usual_hold(&held(&[200, 300, late, 100, 400])), 250);
        assert!(usual_hold(&held(&[late, 100])) > NOTHING);
        assert!(usual_hold(&held(&[late, late, 100, 100])) > NOTHING);
        assert_eq!(usual_hold(&held(&[])), 0);
        let holds = held(&[&[late][..], &[100_000; 99]].concat());
        assert_eq!(usual_hold(&holds), 100_000);
        assert!(usual_hold(&holds.part(0.1, 0.1)) > NOTHING);
    }
}
