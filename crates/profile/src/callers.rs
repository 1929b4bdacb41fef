//! The callers of acquisitions, from the copies of stacks in a record.
//!
//! Many programs lock through a function of their own, such as `port::Mutex::Lock()`, or the constructor of a
//! lock guard. The place of interest is the function that uses it. That one both locks and unlocks the lock: of
//! the functions on the stack of the acquisition, it is the innermost that is on the stack of the release too.
//! A function that ends with the call to unlock may jump there, so that it is not on the stack of the release. Then
//! the innermost function of both is at the same call in both stacks, and what it called is the one of interest.

use std::collections::{BTreeMap, HashMap, HashSet};

use crate::layout::{Frames, Mode};
use crate::places::{Frame, Place, Places, is_wrapper};
use crate::record::{Record, Sample, Site};
use crate::stack::{Memory, Unwinder};

/// A way to a call that locks a lock, and its part in the acquisitions there.
#[derive(Clone)]
pub struct Way {
    /// The function that locks and unlocks the lock, with all its callers.
    pub place: Place,
    /// The functions between this one and the call, from inside to outside.
    pub wrappers: Vec<Frame>,
    /// The share of the acquisitions.
    pub share: f64,
    /// The share of the wait time.
    pub share_of_waits: f64,
}

/// The callers of all locks of a process.
pub struct Callers {
    ways: HashMap<(u64, Mode, u64), Vec<Way>>,
}

impl Callers {
    /// Follows all stacks in a record.
    pub fn of(record: &Record, places: &mut Places) -> Self {
        let mut unwinder = Unwinder::default();
        let mut known: HashMap<u64, Place> = HashMap::new();
        let mut samples: HashMap<_, Vec<&Sample>> = HashMap::new();
        for sample in &record.samples {
            let key = (sample.lock, sample.mode, sample.call);
            samples.entry(key).or_default().push(sample);
        }
        let mut ways = HashMap::new();
        for (key, samples) in samples {
            // Some acquisitions are in the sample even if they are not contended: they show who else uses it.
            let is_contended = samples.iter().any(|sample| sample.waited_ns > 0);
            let mut sums: BTreeMap<(Place, Vec<Frame>), (f64, f64)> = BTreeMap::new();
            for sample in samples {
                let mut calls = |frames: &Frames| -> Vec<Place> {
                    let calls = calls(record, frames, &mut unwinder).into_iter();
                    let place = |call| {
                        let place = known.entry(call);
                        place.or_insert_with(|| places.of(record, call)).clone()
                    };
                    calls.map(place).collect()
                };
                let released = calls(&sample.released);
                let acquired = calls(&sample.acquired);
                let own = places.of(record, sample.call);
                let (times, waited) = sums.entry(way(own, acquired, &released)).or_default();
                if is_contended && sample.waited_ns == 0 {
                    continue;
                }
                *times += sample.stands_for as f64;
                *waited += sample.stands_for as f64 * sample.waited_ns as f64;
            }
            let all = sums.values().map(|(times, _)| times).sum::<f64>().max(1.0);
            let all_waited: f64 = sums.values().map(|(_, waited)| waited).sum();
            let of_key = sums
                .into_iter()
                .map(|((place, wrappers), (times, waited))| Way {
                    place,
                    wrappers,
                    share: times / all,
                    share_of_waits: match all_waited > 0.0 {
                        true => waited / all_waited,
                        false => times / all,
                    },
                });
            ways.insert(key, of_key.collect());
        }
        Self { ways }
    }

    /// The ways to a site, at least one. A wait that has not ended has no stack: it may be on any way.
    pub fn ways(&self, record: &Record, site: &Site, places: &mut Places) -> Vec<Way> {
        match self.ways.get(&(site.lock, site.mode, site.call)) {
            Some(ways) if !ways.is_empty() && site.counts.still_waiting == 0 => ways.clone(),
            _ => vec![call(record, site, places)],
        }
    }

    /// The only function that uses the lock at a site, with all its callers if these are the same too. If there
    /// are several, it is not known what each of them does, so this is the call itself.
    pub fn user(&self, record: &Record, site: &Site, places: &mut Places) -> Place {
        let ways = self.ways(record, site, places);
        let without_callers = |way: &Way| Place {
            callers: Vec::new(),
            ..way.place.clone()
        };
        let users: HashSet<Place> = ways.iter().map(without_callers).collect();
        match <[Place; 1]>::try_from(users.into_iter().collect::<Vec<_>>()) {
            Ok([user]) => user,
            Err(_) => call(record, site, places).place,
        }
    }
}

/// The call at a site, of which nothing else is known.
fn call(record: &Record, site: &Site, places: &mut Places) -> Way {
    Way {
        place: places.of(record, site.call),
        wrappers: Vec::new(),
        share: 1.0,
        share_of_waits: 1.0,
    }
}

/// The calls on a stack, from inside to outside.
fn calls(record: &Record, frames: &Frames, unwinder: &mut Unwinder) -> Vec<u64> {
    match frames.words {
        0 => Vec::new(),
        _ => {
            let frame = Some(frames.frame);
            let stack = unwinder.stack(record, frames, frames.code, frames.stack, frame);
            stack.calls
        }
    }
}

impl Memory for Frames {
    fn word(&self, address: u64) -> Option<u64> {
        let at = address.checked_sub(self.stack)? / 8;
        let words = self.word.get(..self.words as usize).unwrap_or(&self.word);
        words.get(usize::try_from(at).ok()?).copied()
    }
}

/// The function that locks and unlocks a lock, with all its callers, and the functions between this and the call
/// at the place `own`.
fn way(own: Place, acquired: Vec<Place>, released: &[Place]) -> (Place, Vec<Frame>) {
    let Some(begin) = acquired.iter().position(|place| same_code(place, &own)) else {
        return (own, Vec::new());
    };
    let stack = &acquired[begin..];
    let is_glibc = |place: &Place| {
        let name = place.module.as_deref().and_then(|path| path.file_name());
        name.is_some_and(|name| name.to_string_lossy().starts_with("libc.so"))
    };
    let frames = |place: &Place| -> Vec<Frame> {
        let frames = std::iter::once(place.frame()).chain(place.inlined_into.iter().cloned());
        frames.collect()
    };
    let unlocking: HashSet<String> = released
        .iter()
        .filter(|place| !is_glibc(place))
        .flat_map(frames)
        .filter_map(|frame| frame.function)
        .collect();
    let all = || {
        let places = stack.iter().enumerate();
        places.flat_map(|(at, place)| {
            let frames = frames(place).into_iter().enumerate();
            frames.map(move |(nth, frame)| (at, nth, frame))
        })
    };
    let is_common = |frame: &Frame| {
        let function = frame.function.as_ref();
        function.is_some_and(|name| unlocking.contains(name) && !is_wrapper(name))
    };
    let is_users = |frame: &Frame| {
        let function = frame.function.as_deref();
        function.is_some_and(|name| !is_wrapper(name))
    };
    let found = all()
        .find(|(_, _, frame)| is_common(frame))
        .or_else(|| all().find(|(at, _, frame)| is_users(frame) && !is_glibc(&stack[*at])));
    let (mut at, mut nth) = found.map_or((0, 0), |(at, nth, _)| (at, nth));
    if at > 0 && released.iter().any(|place| same_code(place, &stack[at])) {
        let called = &stack[at - 1];
        if frames(called).last().is_some_and(is_users) {
            (at, nth) = (at - 1, called.inlined_into.len());
        }
    }
    let wrappers = all().take_while(|(a, n, _)| (*a, *n) < (at, nth));
    let wrappers = wrappers.map(|(_, _, frame)| frame).collect();
    let mut place = stack[at].clone().outer(nth);
    place.callers = stack[at + 1..].iter().flat_map(frames).collect();
    (place, wrappers)
}

/// Whether both are the same place in a file.
fn same_code(a: &Place, b: &Place) -> bool {
    (&a.module, a.offset) == (&b.module, b.offset)
}
