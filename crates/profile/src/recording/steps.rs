//! The steps that a process has left in shared memory, as a recording.

use std::collections::{BTreeMap, HashMap};
use std::ffi::OsString;
use std::fs::File;
use std::mem::offset_of;
use std::path::Path;

use anyhow::{Context, Result};

use super::file::{Kind, Recording, Step, Thread};
use super::sites::{Files, LockSites};
use crate::layout::{self, Block, RawStep, Steps, written};
use crate::places::Places;
use crate::record::Record;
use crate::{Measured, STEPS};

/// The steps of a process.
struct Left<'a> {
    record: &'a Record,
    /// The steps of each thread, by its number.
    threads: BTreeMap<u64, Vec<RawStep>>,
    /// When each mutex was initialised first, and the return address of that call.
    initialised: HashMap<u64, (u64, u64)>,
    knows_away: bool,
    real_time: bool,
    /// What steps add to the time for which a lock is held, and to that in which it is not.
    empty: [u64; 2],
    lost: u64,
}

impl<'a> Left<'a> {
    fn read(path: &Path, record: &'a Record) -> Result<Option<Self>> {
        let Ok(file) = File::open(path) else {
            return Ok(None);
        };
        let number = |at: usize| -> Result<u64> { Ok(written(&file, at, 1)?[0]) };
        if number(offset_of!(Steps, magic))? != layout::LW_PROFILE_STEPS_MAGIC as u64 {
            return Ok(None);
        }
        let blocks = number(offset_of!(Steps, blocks))?.min(number(offset_of!(Steps, most))?);
        let mut of_threads: BTreeMap<u64, Vec<(u64, Vec<RawStep>)>> = BTreeMap::new();
        for at in 0..blocks as usize {
            let at = size_of::<Steps>() + at * size_of::<Block>();
            let [thread, number] = [offset_of!(Block, thread), offset_of!(Block, number)]
                .map(|word| number(at + word).unwrap_or(0));
            let mut steps: Vec<RawStep> = written(
                &file,
                at + offset_of!(Block, step),
                layout::LW_PROFILE_BLOCK_STEPS,
            )?;
            // A thread fills a block in order, and a step that is complete has a kind.
            let complete = steps.iter().take_while(|step| step.kind != 0);
            steps.truncate(complete.count());
            of_threads.entry(thread).or_default().push((number, steps));
        }
        let mut initialised = HashMap::new();
        let threads = of_threads.into_iter().map(|(thread, mut blocks)| {
            blocks.sort_by_key(|(number, _)| *number);
            let steps = blocks.into_iter().flat_map(|(_, steps)| steps).collect();
            (thread, without_initialisations(steps, &mut initialised))
        });
        let threads = threads.collect();
        Ok(Some(Self {
            record,
            threads,
            initialised,
            knows_away: number(offset_of!(Steps, knows_away))? != 0,
            real_time: number(offset_of!(Steps, real_time))? != 0,
            empty: [
                number(offset_of!(Steps, empty_held))?,
                number(offset_of!(Steps, empty_apart))?,
            ],
            lost: number(offset_of!(Steps, lost))?,
        }))
    }

    fn steps(&self) -> usize {
        self.threads.values().map(Vec::len).sum()
    }
}

/// The steps without those that initialise a mutex, whose first ones are noted. The time without a CPU before
/// such a step is then before the next one.
fn without_initialisations(
    steps: Vec<RawStep>,
    initialised: &mut HashMap<u64, (u64, u64)>,
) -> Vec<RawStep> {
    let mut left = Vec::with_capacity(steps.len());
    let (mut away, mut slept) = (0, 0);
    for mut step in steps {
        step.away = step.away.saturating_add(away);
        step.flags |= slept;
        (away, slept) = (0, 0);
        if u32::from(step.kind) == layout::LW_PROFILE_STEP_INITIALISES as u32 {
            away = step.away;
            slept = step.flags & layout::LW_PROFILE_STEP_SLEPT as u8;
            let first = initialised.entry(step.object);
            let this = (step.time, step.caller);
            let first = first.or_insert(this);
            *first = (*first).min(this);
        } else {
            left.push(step);
        }
    }
    left
}

/// The names of things, in the order in which they were first seen.
#[derive(Default)]
struct Names {
    known: HashMap<u64, u32>,
    names: Vec<String>,
}

impl Names {
    fn number(&mut self, address: u64, name: impl FnOnce() -> String) -> u32 {
        *self.known.entry(address).or_insert_with(|| {
            self.names.push(name());
            self.names.len() as u32 - 1
        })
    }
}

/// The recording of the process with the most steps.
pub fn read(measured: &Measured, command: &[OsString]) -> Result<Recording> {
    let directory = measured.directory.path();
    let mut all = Vec::new();
    for record in &measured.records {
        let path = directory.join(format!("{}{STEPS}", record.file));
        all.extend(Left::read(&path, record)?);
    }
    let others = (measured.records.len() as u64).saturating_sub(1);
    let most = all.into_iter().max_by_key(Left::steps);
    let left = most.context(
        "nothing was recorded: no process of the program could make a file of its steps; set TMPDIR to a \
         directory with more room",
    )?;
    let (mut places, mut objects, mut calls) =
        (Places::default(), Names::default(), Names::default());
    let clock = &left.record.clock;
    let first = left
        .threads
        .values()
        .filter_map(|steps| steps.first())
        .map(|step| step.time)
        .min();
    let first = first.unwrap_or_default();
    let mut recording = Recording {
        command: command
            .iter()
            .map(|word| word.to_string_lossy().into_owned())
            .collect(),
        seconds: 0.0,
        cpus: std::thread::available_parallelism()?.get(),
        knows_away: left.knows_away,
        step_ns: left.empty.map(|time| clock.span(time)),
        real_time: left.real_time,
        other_cpus: 0.0,
        machine: None,
        lost: left.lost,
        other_processes: others,
        threads: Vec::new(),
        objects: Vec::new(),
        places: Vec::new(),
        sites: Default::default(),
        steps: Vec::new(),
    };
    let mut first_locked: HashMap<u64, (u64, u64)> = HashMap::new();
    for steps in left.threads.values() {
        let function = steps
            .first()
            .filter(|step| Kind::of(step.kind) == Some(Kind::Begins) && step.object != 0);
        recording.threads.push(Thread {
            function: function.map(|step| places.of(left.record, step.object).name()),
            steps: steps.len(),
        });
        let mut last = 0;
        for step in steps {
            let kind = Kind::of(step.kind).context("a step without a kind")?;
            if matches!(kind, Kind::Waits | Kind::Acquires | Kind::Fails) && step.caller != 0 {
                let this = (step.time, step.caller);
                let first = first_locked.entry(step.object).or_insert(this);
                *first = (*first).min(this);
            }
            let has_object = kind.has_object();
            let call = step.caller.wrapping_sub(1);
            // Of two CPUs, the counters may differ by some nanoseconds.
            let before = last;
            last = clock.span(step.time.saturating_sub(first)).max(last);
            // A longer time does not fit.
            let away_ns = match step.away {
                u32::MAX => last - before,
                units => u64::from(units) * 16,
            };
            recording.steps.push(Step {
                ns: last,
                kind,
                object: has_object.then(|| {
                    objects.number(step.object, || {
                        let name = places.variable(left.record, step.object);
                        name.unwrap_or_else(|| format!("{:#x}", step.object))
                    })
                }),
                place: (step.caller != 0)
                    .then(|| calls.number(call, || places.of_lock(left.record, call).name())),
                away_ns,
                tried: u32::from(step.flags) & layout::LW_PROFILE_STEP_TRIED as u32 != 0,
                slept: u32::from(step.flags) & layout::LW_PROFILE_STEP_SLEPT as u32 != 0,
                mode: step.flags & layout::LW_PROFILE_STEP_MODE as u8,
                cpu: (step.cpu != u16::MAX).then_some(step.cpu),
            });
            recording.seconds = recording.seconds.max(last as f64 / 1e9);
        }
    }
    let mut files = Files::default();
    let mut addresses: Vec<(u64, u32)> = objects.known.into_iter().collect();
    addresses.sort_unstable_by_key(|(_, number)| *number);
    for (address, _) in addresses {
        let mut call = |calls: &HashMap<u64, (u64, u64)>| {
            let (_, returns_to) = calls.get(&address)?;
            files.call(&mut places, left.record, *returns_to)
        };
        let (initialised, first_locked) = (call(&left.initialised), call(&first_locked));
        recording.sites.objects.push(LockSites {
            variable: files.variable(&mut places, left.record, address),
            initialised,
            first_locked,
        });
    }
    recording.sites.modules = files.modules;
    recording.objects = objects.names;
    recording.places = calls.names;
    Ok(recording)
}
