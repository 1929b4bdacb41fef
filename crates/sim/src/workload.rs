//! Workloads: what simulated threads do. Most are files that describe it; others are recordings of threads.
//!
//! The files of `experiments/workloads/` are part of Lockworks. `docs/guides/workloads.md` explains
//! the format. Two parts of workloads need code, which is here: a blocking mutex on a futex, and a
//! count of references. Files use them as kinds of memory.

mod amount;
mod description;
mod draw;
mod futex;
mod interpreter;
mod memory;
mod scope;
mod steps;

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use include_dir::{Dir, include_dir};
use lockworks_machine::description::{Builtin, Fault, Library};
use lockworks_machine::{Error, Machine, Value};
use toml::Spanned;

use crate::placement::Placement;
use crate::program::{Program, Setup};
use crate::sequences::Sequences;
use amount::Amount;
use description::{Description, Step};
use interpreter::{Interpreter, Steps};
use memory::Layout;
use scope::{Circumstances, Scope};
use steps::{Compiler, can, completes, takes_time};

static FILES: Dir = include_dir!("$CARGO_MANIFEST_DIR/../../experiments/workloads");

/// The workloads that are part of Lockworks: every file in `experiments/workloads/`.
pub const WORKLOADS: Library = Library {
    kind: "workload",
    directory: "experiments/workloads",
    command: "lockworks sim --workloads",
    files: &FILES,
};

/// A workload of the threads of a run, with its constants.
#[derive(Clone, Debug)]
pub struct Workload {
    /// The name of the workload.
    pub name: String,
    /// The description of the workload in one line.
    pub title: String,
    /// Why absolute rates mean nothing, and only ratios of locks do. None: rates are predictions too.
    pub ratios_only: Option<String>,
    placement: Option<Placement>,
    constants: BTreeMap<String, Value>,
    source: Source,
}

/// What a workload is from.
#[derive(Clone, Debug)]
enum Source {
    File(Arc<File>),
    Recording(Arc<Sequences>),
}

/// The file that a workload is from.
#[derive(Debug)]
struct File {
    description: Description,
    text: String,
    origin: String,
}

impl File {
    fn locate(&self, fault: Fault) -> Error {
        fault.locate(&self.text, &self.origin)
    }
}

/// A workload whose amounts have been computed for a run. Its memory has not been set up yet.
struct PlannedRun<'a> {
    layouts: Vec<Layout<'a>>,
    threads: Vec<Steps>,
    rare_delay_ns: f64,
    sleep_calls_ns: [f64; 2],
    shared_core_slowdown: Option<f64>,
}

impl Workload {
    /// Returns all workloads that are part of Lockworks, in the order of their names.
    ///
    /// # Errors
    ///
    /// If a file in `experiments/workloads/` is wrong. The message names the file and the line.
    pub fn all() -> Result<Vec<Self>, Error> {
        let parse = |Builtin { name, text }| Self::parse(text, &WORKLOADS.origin(name));
        WORKLOADS.all()?.into_iter().map(parse).collect()
    }

    /// Finds the workload of a name, or reads the file at a path. An argument that contains `/` or
    /// ends in `.toml` is a path.
    ///
    /// # Errors
    ///
    /// If there is no such workload, or its description is wrong.
    pub fn find(name_or_path: &str) -> Result<Self, Error> {
        let (text, origin) = WORKLOADS.open(name_or_path, Path::new(""))?;
        Self::parse(&text, &origin)
    }

    /// Makes a workload from the text of its file. Errors name `origin` as the file.
    ///
    /// # Errors
    ///
    /// If the description is wrong.
    pub fn parse(text: &str, origin: &str) -> Result<Self, Error> {
        let description: Description =
            toml::from_str(text).map_err(|error| Fault::from(error).locate(text, origin))?;
        let file = Arc::new(File {
            description,
            text: text.to_owned(),
            origin: origin.to_owned(),
        });
        let description = &file.description;
        let workload = Self {
            name: description.name.clone(),
            title: description.title.clone(),
            ratios_only: description.ratios_only.clone(),
            placement: None,
            constants: description.constants.clone(),
            source: Source::File(Arc::clone(&file)),
        };
        let checked = workload.checked(&file);
        checked.map_err(|fault| file.locate(fault))
    }

    /// Makes a workload from the threads of a recording.
    pub fn recorded(name: &str, title: &str, sequences: Sequences) -> Self {
        Self {
            name: name.to_owned(),
            title: title.to_owned(),
            ratios_only: None,
            placement: Some(Placement::Compact),
            constants: BTreeMap::new(),
            source: Source::Recording(Arc::new(sequences)),
        }
    }

    /// Checks everything that does not depend on a run.
    fn checked(&self, file: &File) -> Result<Self, Fault> {
        let description = &file.description;
        self.scope(file).check_values()?;
        if let Some(gather) = &description.gather {
            scope::check_whole("gather", gather)?;
        }
        let top_level = |key, amount, range| top_level(&self.scope(file), key, amount, range);
        let gather = top_level("gather", &description.gather, 1.0..=1e6)?;
        let placement = match (description.placement.get_ref().as_str(), gather) {
            ("gather", Some(_)) => None,
            ("gather", None) => {
                let message = "placement `gather` needs the number of threads in a group; add \
                               gather = 4, or another number, below";
                return Err(Fault::at(&description.placement, message));
            }
            (other, _) => Some(
                other
                    .parse()
                    .map_err(|message: String| Fault::at(&description.placement, message))?,
            ),
        };
        top_level("job_operations", &description.job_operations, 1.0..=1e15)?;
        self.plan(file, None, 1)?;
        Ok(Self {
            placement,
            ..self.clone()
        })
    }

    /// Checks that the workload can run with `threads` threads on `machine`, with its current
    /// constants.
    ///
    /// # Errors
    ///
    /// If an amount is impossible, for example a time below 0.
    pub fn check(&self, machine: &Machine, threads: usize) -> Result<(), Error> {
        let Source::File(file) = &self.source else {
            return Ok(());
        };
        let circumstances = Circumstances {
            threads,
            machine,
            machine_cpus: &vec![0; threads.max(1)],
        };
        let plan = self.plan(file, Some(circumstances), threads);
        plan.map(drop).map_err(|fault| file.locate(fault))
    }

    /// Returns the placement of the threads that applies unless the user chooses another one.
    pub fn placement(&self) -> Placement {
        self.placement.clone().unwrap_or_else(|| self.gather(1))
    }

    /// Returns a random placement in groups, of the size that the workload's `gather` says.
    pub fn gather(&self, seed: u64) -> Placement {
        let size = self.top_level("gather", |description| &description.gather);
        Placement::Gather {
            size: size.unwrap_or(1.0) as usize,
            seed,
        }
    }

    /// Returns the workload's constants: each with its key, and its value with mark and source.
    pub fn constants(&self) -> impl Iterator<Item = (&str, &Value)> {
        self.constants.iter().map(|(k, v)| (k.as_str(), v))
    }

    /// Returns a constant for a change, or `None` if there is none of that name.
    pub fn constant_mut(&mut self, key: &str) -> Option<&mut Value> {
        self.constants.get_mut(key)
    }

    /// Returns the number of operations in the whole job. `None` if the workload has no end.
    pub fn job(&self) -> Option<f64> {
        self.top_level("job_operations", |description| &description.job_operations)
    }

    fn scope<'a>(&'a self, file: &'a File) -> Scope<'a> {
        Scope {
            constants: &self.constants,
            values: &file.description.values,
            run: None,
            thread: 0,
        }
    }

    /// Computes an amount that is at the top level of the file, outside of all tables. None: there is no
    /// such amount.
    fn top_level(
        &self,
        key: &str,
        amount: impl Fn(&Description) -> &Option<Spanned<Amount>>,
    ) -> Option<f64> {
        let Source::File(file) = &self.source else {
            return None;
        };
        let amount = amount(&file.description);
        top_level(&self.scope(file), key, amount, 0.0..=f64::INFINITY)
            .ok()
            .flatten()
    }

    fn plan<'a>(
        &'a self,
        file: &'a File,
        run: Option<Circumstances<'a>>,
        threads: usize,
    ) -> Result<PlannedRun<'a>, Fault> {
        let description = &file.description;
        let scope = Scope {
            run,
            ..self.scope(file)
        };
        let layouts = Layout::all(&description.memory, &scope)?;
        if layouts
            .iter()
            .all(|layout| layout.kind == description::MemoryKind::Data)
        {
            let message = "no memory is a lock; add [[memory]] with kind = \"lock\"";
            return Err(Fault::at(&description.thread.body, message));
        }
        let steps = |thread| {
            let compiler = Compiler {
                scope: Scope { thread, ..scope },
                layouts: &layouts,
            };
            Ok(Steps {
                start: compiler.start(&description.thread.start)?,
                body: compiler.body(&description.thread.body)?,
            })
        };
        let threads = (0..threads).map(steps).collect::<Result<Vec<_>, Fault>>()?;
        if run.is_some() {
            check_progress(&description.thread.body, &threads)?;
        }
        let time = |key, amount| top_level(&scope, key, amount, 0.0..=1e12);
        let slowdown = &description.shared_core_slowdown;
        Ok(PlannedRun {
            threads,
            rare_delay_ns: time("rare_delay_ns", &description.rare_delay_ns)?.unwrap_or(0.0),
            sleep_calls_ns: [
                time("wait_call_ns", &description.wait_call_ns)?.unwrap_or(0.0),
                time("wake_call_ns", &description.wake_call_ns)?.unwrap_or(0.0),
            ],
            shared_core_slowdown: top_level(&scope, "shared_core_slowdown", slowdown, 0.0..=100.0)?,
            layouts,
        })
    }

    pub(crate) fn program(&self, setup: &mut Setup) -> Result<Box<dyn Program>, Error> {
        let file = match &self.source {
            Source::File(file) => file,
            Source::Recording(sequences) => return Ok(sequences.program(setup)),
        };
        let circumstances = Circumstances {
            threads: setup.threads,
            machine: setup.machine,
            machine_cpus: &setup.machine_cpus(),
        };
        let plan = self.plan(file, Some(circumstances), setup.threads);
        let plan = plan.map_err(|fault| file.locate(fault))?;
        Ok(Box::new(Interpreter {
            memory: plan.layouts.iter().map(|l| l.build(setup)).collect(),
            threads: plan.threads,
            rare_delay_ns: plan.rare_delay_ns,
            sleep_calls_ns: plan.sleep_calls_ns,
            shared_core_slowdown: plan.shared_core_slowdown,
        }))
    }
}

/// Checks that each thread's loop takes time, and that some thread completes operations. Without
/// that, a run would not end or would count nothing.
fn check_progress(body: &Spanned<Vec<Spanned<Step>>>, threads: &[Steps]) -> Result<(), Fault> {
    if let Some(thread) = threads
        .iter()
        .position(|steps| !can(&steps.body, takes_time))
    {
        let message = format!(
            "the loop of thread {thread} takes no time and uses no memory; add a step, for example \
             {{ compute = 100 }} or {{ lock = NAME }}"
        );
        return Err(Fault::at(body, message));
    }
    if !threads.iter().any(|steps| can(&steps.body, completes)) {
        let message = "no thread ever reaches \"operation\"; check each `repeat` and `weight` \
                       around it, which must be above 0";
        return Err(Fault::at(body, message));
    }
    Ok(())
}

fn top_level(
    scope: &Scope<'_>,
    key: &str,
    amount: &Option<Spanned<Amount>>,
    range: std::ops::RangeInclusive<f64>,
) -> Result<Option<f64>, Fault> {
    amount
        .as_ref()
        .map(|amount| scope.amount(key, amount, amount.get_ref(), range))
        .transpose()
}
