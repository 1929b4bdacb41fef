//! A run: a machine, a lock, the threads that use it, and the outcome.

use corosensei::stack::DefaultStack;
use corosensei::{Coroutine, CoroutineResult};
use lockworks::{LockType, Settings};
use lockworks_measurements::{Histogram, Timeline, TimelineThread, latencies};
use rand::SeedableRng;
use rand_pcg::Pcg32;

use crate::engine::{Engine, EngineCounts, Recorder, SharingCounts, Step};
use crate::hooks::{self, Context};
use crate::lock::Handoffs;
use crate::model::Model;
use crate::placement::Placement;
use crate::program::{Program, Setup};
use crate::scenario::Scenario;

/// The size of a thread's stack in bytes. It is enough for the frames of locks and workloads; pages
/// that are never touched cost nothing.
const STACK_BYTES: usize = 32 << 10;

/// The warm-up before the measured time is that time over this.
const WARM_UP: u64 = 10;

/// All that determines a run. The same description gives the same outcome, to the bit.
pub struct Run<'a> {
    /// Machine, workload and model.
    pub scenario: &'a Scenario,
    /// The lock, from [`crate::lock_types`].
    pub lock: &'static LockType,
    /// The number of threads.
    pub threads: usize,
    /// The placement of the threads.
    pub placement: Placement,
    /// How threads share CPUs, unless each has one of its own.
    pub sharing: Option<Sharing>,
    /// The virtual time that is measured, in seconds. A warm-up of a tenth of it comes before.
    pub seconds: f64,
    /// Settings of the locks.
    pub tunables: Settings,
    /// Whether threads with an odd number have priority: CNA then does not pass over them.
    pub odd_threads_have_priority: bool,
    /// The seed of all random choices of threads and locks.
    pub seed: u64,
}

/// Threads that take turns on fewer CPUs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sharing {
    /// The number of CPUs, which are the first of the placement.
    pub cpus: usize,
    /// The number of guests. The threads are their virtual CPUs, the same number in each guest, and
    /// each guest runs the workload by itself. `None`: the threads belong to one program.
    pub guests: Option<usize>,
    /// Whether each thread stays on one CPU.
    pub pinned: bool,
}

/// The outcome of a run.
#[derive(Clone, Debug, PartialEq)]
pub struct SimulationOutcome {
    /// The number of operations of each thread in the measured time.
    pub operations: Vec<u64>,
    /// The virtual time that was measured, in seconds.
    pub seconds: f64,
    /// Operations per virtual second. Delays by events that are too rare to sample are included as
    /// their mean.
    pub operations_per_second: f64,
    /// The numbers of hand-offs of the locks under test.
    pub handoffs: Handoffs,
    /// The number of times that a thread entered a critical section while another thread was in it,
    /// warm-up included.
    pub violations: u64,
    /// The name and count of each event of the locks.
    pub events: Vec<(&'static str, u64)>,
    /// The number of acquisitions of the locks under test, warm-up included.
    pub acquisitions: u64,
    /// Those of them for which a thread asked before the lock was released last.
    pub contended: u64,
    /// The wait for each acquisition in the measured time, in nanoseconds. The locked paths of
    /// lockrefs are included.
    pub waits: Histogram<u64>,
    /// The number of atomic read-modify-writes with which locks were acquired and released, warm-up
    /// included.
    pub lock_rmws: u64,
    /// The time of these read-modify-writes, as a share of the time in which CPUs had a thread to
    /// run.
    pub lock_rmw_share: f64,
    /// The counts of the events of threads that share CPUs, warm-up included. `None` if each thread
    /// has a CPU of its own.
    pub sharing: Option<SharingCounts>,
    /// The counts of the engine's own work.
    pub engine: EngineCounts,
}

impl SimulationOutcome {
    /// The virtual time of all threads together in seconds, warm-up included.
    pub fn thread_seconds(&self) -> f64 {
        self.operations.len() as f64 * self.seconds * (1.0 + 1.0 / WARM_UP as f64)
    }
}

/// The reason for which a run cannot start or continue.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// The run needs more CPUs than the machine has.
    #[error("{machine} has {cpus} CPUs, not {threads}; ask for at most {cpus} threads")]
    TooManyThreads {
        /// The machine's name.
        machine: String,
        /// The number of its CPUs.
        cpus: usize,
        /// The number of CPUs that the run needs, one for each thread unless threads share CPUs.
        threads: usize,
    },
    /// The run has no threads.
    #[error("no threads to run; ask for at least 1")]
    NoThreads,
    /// There is no CPU to share, or the threads cannot be divided equally among the guests.
    #[error(
        "{threads} threads cannot run as {guests} guests on {cpus} CPUs; use at least 1 CPU, and \
         the same number of threads in each guest"
    )]
    CannotShare {
        /// The number of threads of all guests together.
        threads: usize,
        /// The number of guests.
        guests: usize,
        /// The number of CPUs to share.
        cpus: usize,
    },
    /// The workload cannot run with this machine and number of threads.
    #[error(transparent)]
    Workload(#[from] lockworks_machine::Error),
    /// All CPUs are blocked, and no event can unblock one.
    #[error("deadlock of {lock} after {microseconds} us of virtual time:\n{}", cpus.join("\n"))]
    Deadlock {
        /// The lock's name.
        lock: String,
        /// The virtual time of the deadlock.
        microseconds: u64,
        /// A line of text for each CPU, which says what the CPU was doing.
        cpus: Vec<String>,
    },
}

impl Run<'_> {
    /// Simulates the run and returns its outcome.
    ///
    /// # Errors
    /// See [`RunError`].
    pub fn run(&self) -> Result<SimulationOutcome, RunError> {
        self.run_program(|setup| Ok(self.scenario.workload.program(setup)?))
    }

    /// Simulates the run, and records the first `most` events of the measured time.
    ///
    /// # Errors
    /// See [`RunError`].
    pub fn record(&self, most: usize) -> Result<(SimulationOutcome, Timeline), RunError> {
        self.simulate(|setup| Ok(self.scenario.workload.program(setup)?), most)
    }

    /// Simulates the run with the program that `build` returns instead of the scenario's workload.
    pub(crate) fn run_program(
        &self,
        build: impl Fn(&mut Setup) -> Result<Box<dyn Program>, RunError>,
    ) -> Result<SimulationOutcome, RunError> {
        self.simulate(build, 0).map(|(outcome, _)| outcome)
    }

    /// Simulates the run with this program, and records at most this number of events.
    fn simulate(
        &self,
        build: impl Fn(&mut Setup) -> Result<Box<dyn Program>, RunError>,
        recorded: usize,
    ) -> Result<(SimulationOutcome, Timeline), RunError> {
        if self.threads == 0 {
            return Err(RunError::NoThreads);
        }
        let machine = &self.scenario.machine;
        let cpus = self.sharing.map_or(self.threads, |sharing| sharing.cpus);
        let guests = self.sharing.and_then(|sharing| sharing.guests);
        if cpus == 0 || guests.is_some_and(|n| n == 0 || !self.threads.is_multiple_of(n)) {
            return Err(RunError::CannotShare {
                threads: self.threads,
                guests: guests.unwrap_or(1),
                cpus,
            });
        }
        let shared =
            self.placement
                .place(machine, cpus)
                .ok_or_else(|| RunError::TooManyThreads {
                    machine: machine.name.clone(),
                    cpus: machine.cpus(),
                    threads: cpus,
                })?;
        let machine_cpus: Vec<usize> = (0..self.threads).map(|t| shared[t % cpus]).collect();
        let measured = (self.seconds * 1e12) as u64;
        let warm_up = measured / WARM_UP;
        let model = Model::new(machine, machine_cpus, &self.scenario.parameters);
        let mut engine = Engine::new(model, warm_up + measured, self.seed);
        if let Some(sharing) = self.sharing {
            engine.share(shared, sharing.guests, sharing.pinned);
        }
        if recorded > 0 {
            engine.recorder = Some(Recorder::new(warm_up, recorded, self.threads));
        }
        let threads = (0..self.threads).map(|thread| TimelineThread {
            name: match guests {
                Some(_) => format!("virtual CPU {thread}"),
                None => format!("thread {thread}"),
            },
            node: Some(engine.model().node(thread).into()),
        });
        let mut timeline = Timeline {
            threads: threads.collect(),
            ..Timeline::default()
        };
        let mut context = Context {
            engine,
            yielders: vec![std::ptr::null(); self.threads],
            tunables: self.tunables,
            nodes: 0,
            node_queues: vec![None; machine.nodes()],
            parked_heads: None,
            slots_wanted: None,
            slots_reads: Vec::new(),
            slots_held: Vec::new(),
            events: vec![0; hooks::event_names().count()],
            random: (0..self.threads as u64)
                .map(|t| (self.seed + t + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15))
                .collect(),
            generators: (0..self.threads as u64)
                .map(|t| Pcg32::seed_from_u64(self.seed << 16 | t))
                .collect(),
            priority: (0..self.threads)
                .map(|t| self.odd_threads_have_priority && t % 2 == 1)
                .collect(),
            waited: vec![0; self.threads],
            waits: latencies(),
            operations: vec![0; self.threads],
            rmws: 0,
            rmw_time: 0,
            warm_up,
            wait_call_ps: 0,
            wake_call_ps: 0,
        };
        for thread in 0..self.threads {
            let node = context.engine.model().node(thread);
            let size = hooks::slot_nodes_size();
            let nodes = context
                .engine
                .allocate(format!("queue nodes of CPU {thread}"), size, node);
            if thread == 0 {
                context.nodes = nodes;
            }
        }
        let mut setup = Setup::new(&mut context.engine, self.lock, machine, self.threads);
        let programs: Vec<_> = (0..guests.unwrap_or(1))
            .map(|_| build(&mut setup))
            .collect::<Result<_, _>>()?;
        let per_guest = self.threads / programs.len();
        [context.wait_call_ps, context.wake_call_ps] =
            programs[0].sleep_calls_ns().map(|ns| (ns * 1000.0) as u64);

        let context: *mut Context = &mut context;
        let guard = hooks::enter(context);
        let mut coroutines: Vec<_> = (0..self.threads)
            .map(|thread| {
                let stack = DefaultStack::new(STACK_BYTES).expect("memory for a coroutine's stack");
                let program = &programs[thread / per_guest];
                // SAFETY: the closure borrows `programs`. The coroutines are reset below, before
                // `programs` is dropped.
                unsafe {
                    Coroutine::with_stack_unchecked(stack, move |yielder, ()| {
                        hooks::with(|c| c.yielders[thread] = yielder);
                        program.thread(thread);
                    })
                }
            })
            .collect();
        hooks::with(|c| c.engine.advance());
        let end = loop {
            match hooks::with(|c| c.engine.next) {
                Step::Resume(thread) => {
                    if let CoroutineResult::Return(()) = coroutines[thread].resume(()) {
                        hooks::with(|c| c.engine.finish_current());
                    }
                }
                end => break end,
            }
        };
        for coroutine in &mut coroutines {
            // SAFETY: the frames of suspended threads contain nothing that must be dropped. Those
            // of the locks are C frames, which cannot be unwound, so they are discarded.
            unsafe { coroutine.force_reset() };
        }
        drop(guard);
        // SAFETY: as above.
        let context = unsafe { &mut *context };

        if let Step::Deadlock = end {
            return Err(RunError::Deadlock {
                lock: self.lock.name().to_string(),
                microseconds: context.engine.now() / 1_000_000,
                cpus: context.engine.describe_cpus(),
            });
        }
        let seconds = measured as f64 / 1e12;
        let total: u64 = context.operations.iter().sum();
        if let Some(recorder) = context.engine.recorder.take() {
            timeline.events = recorder.into_events();
        }
        let rare = programs[0].rare_delay_ns() / 1e9;
        let locks: Vec<_> = programs.iter().flat_map(|p| p.locks()).collect();
        let outcome = SimulationOutcome {
            operations_per_second: if total == 0 {
                0.0
            } else {
                1.0 / (seconds / total as f64 + rare)
            },
            operations: context.operations.clone(),
            seconds,
            handoffs: locks.iter().fold(Handoffs::default(), |sum, lock| {
                let h = lock.handoffs();
                Handoffs {
                    local: sum.local + h.local,
                    remote: sum.remote + h.remote,
                    reacquisitions: sum.reacquisitions + h.reacquisitions,
                }
            }),
            violations: locks.iter().map(|l| l.violations()).sum(),
            acquisitions: locks.iter().map(|l| l.acquisitions()).sum(),
            contended: locks.iter().map(|l| l.contended()).sum(),
            events: hooks::event_names()
                .zip(context.events.iter().copied())
                .collect(),
            waits: context.waits.clone(),
            lock_rmws: context.rmws,
            lock_rmw_share: context.rmw_time as f64 / context.engine.running_time() as f64,
            sharing: context.engine.sharing_counts(),
            engine: context.engine.counts(),
        };
        Ok((outcome, timeline))
    }
}
