//! The world of random runs: its threads, and the steps that they take.

mod backend;
mod memory;
mod report;

use std::collections::VecDeque;
use std::ptr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use hashbrown::HashMap;
use lockworks::{LockType, Settings};
use shuttle::rand::RngCore;
use shuttle::scheduler::Task;

use super::Program;
use super::fault::Fault;
use crate::automaton::Attributes;
use crate::config::{Config, Time};
use crate::headers::{Client, ConformanceClient};
use crate::hooks::{self, Request};
use crate::layout;
use crate::model::{EARLY, LATE};
use crate::mutation::{self, Change, Mutation};
use crate::site::{OperationKind, Site};
use crate::violation::Violation;

use report::Logged;

/// An interruption that may come does so before one operation in this many.
const INTERRUPTION_ODDS: u64 = 32;
/// The most polls of a bounded wait.
const MOST_LOOKS: u64 = 4;
/// One park in this many ends at once.
const EARLY_WAKE_ODDS: u64 = 8;
/// The most steps for each acquisition of each thread, far more than a correct lock needs.
const MOST_STEPS: usize = 20_000;
/// The number of steps kept for the report.
const LOG: usize = 10_000;
/// The number of locks that the conformance client nests.
const DEPTH: usize = 3;

/// The event that a blocked thread waits for.
#[derive(Clone, Copy)]
enum Wait {
    /// The condition of this operation.
    Condition(Request),
    /// A wake-up at this address.
    Wake(usize),
}

#[derive(Clone, Default)]
struct Thread {
    now: Attributes,
    waits: Option<Wait>,
    /// A store that a mutant performs after the next operation.
    deferred: Option<Request>,
}

/// The part of the world that changes in a run.
struct Run {
    /// The bytes that were written, by address. All others are 0, but those of nodes must not be read.
    memory: HashMap<usize, u8>,
    threads: Vec<Thread>,
    steps: usize,
    log: VecDeque<Logged>,
    fault: Option<Fault>,
    all_runs: usize,
    all_steps: u64,
}

/// The state that the threads of random runs share.
pub(super) struct World {
    config: Config,
    lock: &'static LockType,
    program: Program,
    mutation: Option<Mutation>,
    tunables: Settings,
    run: Mutex<Run>,
}

/// A random number below `n`, the same in a replay.
fn random(n: u64) -> u64 {
    shuttle::rand::thread_rng().next_u64() % n
}

/// Lets the scheduler choose another thread. Sleeping takes no time, and keeps the priority.
fn switch() {
    shuttle::thread::sleep(Duration::ZERO);
}

/// The task that starts the threads.
fn thread_of(task: usize) -> Option<usize> {
    task.checked_sub(1)
}

impl World {
    pub(super) fn new(
        config: Config,
        lock: &'static LockType,
        program: Program,
        mutation: Option<Mutation>,
    ) -> Self {
        Self {
            tunables: mutation::tunables(mutation, config.tunables),
            config,
            lock,
            program,
            mutation,
            run: Mutex::new(Run {
                memory: HashMap::new(),
                threads: Vec::new(),
                steps: 0,
                log: VecDeque::new(),
                fault: None,
                all_runs: 0,
                all_steps: 0,
            }),
        }
    }

    /// Must not be borrowed across a switch of tasks.
    fn run(&self) -> MutexGuard<'_, Run> {
        self.run.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Prepares the world for a run.
    pub(super) fn start(&self) {
        let mut run = self.run();
        run.memory.clear();
        for lock in 0..DEPTH.max(layout::LOCKS) {
            for (i, byte) in self
                .config
                .unlocked(self.lock)
                .to_le_bytes()
                .into_iter()
                .enumerate()
            {
                run.memory.insert(layout::lock(lock) + i, byte);
            }
        }
        run.threads = vec![Thread::default(); self.config.threads];
        run.steps = 0;
        run.log.clear();
        run.all_runs += 1;
    }

    pub(super) fn is_broken(&self) -> bool {
        self.run().fault.is_some()
    }

    /// The number of runs, the number of steps, and the failure of the last run.
    pub(super) fn outcome(&self) -> (usize, u64, Option<Fault>) {
        let run = self.run();
        (run.all_runs, run.all_steps, run.fault.clone())
    }

    /// The tasks that can go on; None: the run is over.
    pub(super) fn ready<'t>(&self, runnable: &[&'t Task]) -> Option<Vec<&'t Task>> {
        let mut run = self.run();
        if run.fault.is_some() {
            return None;
        }
        let ready: Vec<&Task> = runnable
            .iter()
            .filter(|task| match thread_of(task.id().into()) {
                None => true,
                Some(thread) => match run.threads[thread].waits {
                    None => true,
                    Some(Wait::Condition(request)) => self.is_met(&run, &request),
                    Some(Wait::Wake(_)) => false,
                },
            })
            .copied()
            .collect();
        let most_steps =
            MOST_STEPS * self.config.threads * self.config.acquisitions.max(1) as usize;
        if ready.is_empty() {
            let threads = (0..run.threads.len())
                .filter(|thread| run.threads[*thread].waits.is_some())
                .collect();
            run.fault = Some(Violation::Deadlock { threads }.into());
        } else if run.steps > most_steps {
            run.fault = Some(Fault::Endless(run.steps));
        }
        run.fault.is_none().then_some(ready)
    }

    /// Runs the first task of a run.
    pub(super) fn run_threads(self: &Arc<Self>) {
        let threads: Vec<_> = (0..self.config.threads)
            .map(|thread| {
                let world = Arc::clone(self);
                shuttle::thread::spawn(move || world.run_thread(thread))
            })
            .collect();
        for thread in threads {
            // A run ends when a thread does not.
            _ = thread.join();
        }
        let mut run = self.run();
        if let Err(violation) = self.check_end(&run) {
            run.fault.get_or_insert(violation.into());
        }
    }

    fn run_thread(&self, thread: usize) {
        let number = thread as u32;
        match self.program {
            // SAFETY: the client's lock type and addresses are those of this world.
            Program::Check => unsafe { hooks::lw_check_thread(&self.client(), number) },
            Program::Conformance => {
                let client = ConformanceClient {
                    lock: ptr::from_ref(self.lock),
                    locks: std::array::from_fn(layout::lock),
                    memory: layout::client_memory(),
                    nodes: layout::client_nodes(),
                    threads: self.config.threads as u32,
                    depth: DEPTH as u32,
                    rounds: self.config.acquisitions,
                    inside: None,
                    outside: None,
                };
                // SAFETY: as above.
                let times = unsafe { hooks::lw_check_client_thread(&client, number) };
                if times > 0 {
                    self.stop(Fault::Seen { thread, times });
                }
            }
        }
        self.do_deferred(thread);
    }

    fn client(&self) -> Client {
        Client {
            lock: ptr::from_ref(self.lock),
            locks: std::array::from_fn(layout::lock),
            data: std::array::from_fn(layout::data),
            threads: self.config.threads as u32,
            acquisitions: self.config.acquisitions,
            two_locks: self.config.locks == 2,
            trylock: self.config.trylock,
            cancel: self.config.cancel,
            lockref: ptr::null(),
            object: 0,
            litmus: ptr::null(),
            variables: 0,
        }
    }

    /// Ends the run: this thread never goes on.
    fn stop(&self, fault: Fault) -> ! {
        self.run().fault.get_or_insert(fault);
        loop {
            switch();
        }
    }

    fn change(&self, request: &Request) -> Option<Change> {
        self.mutation.and_then(|m| m.change_of(request))
    }

    /// Runs the interruptions that come before an operation.
    fn interruptions(&self, thread: usize, site: &'static Site) {
        loop {
            let may_come = {
                let run = self.run();
                let of = &run.threads[thread];
                self.program == Program::Check
                    && of.now.level < self.config.nesting
                    && of.deferred.is_none()
            };
            if !may_come || random(INTERRUPTION_ODDS) != 0 {
                return;
            }
            switch();
            let (before, level) = {
                let mut run = self.run();
                run.log(Logged {
                    thread,
                    site,
                    address: 0,
                    value: None,
                });
                let now = &mut run.threads[thread].now;
                let before = *now;
                now.interrupt();
                (before, now.level)
            };
            // SAFETY: the client's lock type and addresses are those of this world.
            unsafe { hooks::lw_check_interruption(&self.client(), level.into()) };
            self.run().threads[thread].now.resume(&before);
        }
    }

    fn do_deferred(&self, thread: usize) {
        let deferred = self.run().threads[thread].deferred.take();
        if let Some(request) = deferred {
            self.step(thread, request);
        }
    }

    /// Performs an operation, once the scheduler lets it and the condition that it waits for holds.
    fn step(&self, thread: usize, asked: Request) -> u64 {
        let site = asked.site;
        let kind = mutation::kind(self.change(&asked), site.kind);
        let request = self.mutation.map_or(asked, |m| m.apply(asked));
        match kind {
            Some(kind) if kind.waits() => {
                self.run().threads[thread].waits = Some(Wait::Condition(request));
            }
            // A spinning thread yields between polls.
            Some(OperationKind::AwaitEqualBounded | OperationKind::AwaitNotEqualBounded) => {
                for _ in 0..random(MOST_LOOKS) {
                    if self.is_met(&self.run(), &request) {
                        break;
                    }
                    shuttle::thread::yield_now();
                }
            }
            _ => {}
        }
        let only_looks = site.kind.waits() && kind == Some(OperationKind::Load);
        if only_looks || kind == Some(OperationKind::Pause) {
            // A loop that only polls or tries must let other threads run.
            shuttle::thread::yield_now();
        } else {
            switch();
        }
        self.run().threads[thread].waits = None;
        let done = match kind {
            None | Some(OperationKind::Pause) => Ok(0),
            Some(OperationKind::Clock) => Ok(self.clock()),
            Some(OperationKind::Choose) => Ok(choose(request.a)),
            Some(OperationKind::Unpark) => Ok(self.unpark(&request)),
            Some(kind) => self.perform(&mut self.run(), thread, kind, &request),
        };
        let value = match done {
            Ok(value) => value,
            Err(violation) => {
                self.log(thread, &request, request.a);
                self.stop(violation.into())
            }
        };
        let stores = matches!(site.kind, OperationKind::Store | OperationKind::PlainWrite);
        self.log(thread, &request, if stores { request.a } else { value });
        if kind == Some(OperationKind::Park) && value == request.a && random(EARLY_WAKE_ODDS) != 0 {
            self.run().threads[thread].waits = Some(Wait::Wake(request.address));
            switch();
        }
        self.run().threads[thread].now.go_on();
        match self.change(&asked) {
            Some(Change::Blind) => asked.a,
            _ => value,
        }
    }

    fn log(&self, thread: usize, request: &Request, value: u64) {
        self.run().log(Logged {
            thread,
            site: request.site,
            address: request.address,
            value: Some(value),
        });
    }

    fn clock(&self) -> u64 {
        let late = match self.config.time {
            Time::Any => random(2) == 1,
            Time::Early => false,
            Time::Late => true,
        };
        if late { LATE } else { EARLY }
    }

    /// Wakes random threads among those parked at the address.
    fn unpark(&self, request: &Request) -> u64 {
        let first = random(self.config.threads as u64) as usize;
        let mut run = self.run();
        let mut left = request.a;
        for i in 0..self.config.threads {
            let thread = &mut run.threads[(first + i) % self.config.threads];
            if left > 0
                && let Some(Wait::Wake(address)) = thread.waits
                && address == request.address
            {
                thread.waits = None;
                left -= 1;
            }
        }
        0
    }

    fn is_met(&self, run: &Run, request: &Request) -> bool {
        // A read of memory that must not be read is reported at once.
        let Some(value) = self.read(run, request) else {
            return true;
        };
        match request.site.kind {
            OperationKind::AwaitEqual | OperationKind::AwaitEqualBounded => {
                value & request.a == request.b
            }
            _ => value & request.a != request.b,
        }
    }

    fn perform(
        &self,
        run: &mut Run,
        thread: usize,
        kind: OperationKind,
        request: &Request,
    ) -> Result<u64, Violation> {
        if kind == OperationKind::Fence {
            return Ok(0);
        }
        let address = request.address;
        let region = self
            .region(address)
            .ok_or(Violation::NoMemory { thread, address })?;
        if let Some((owner, node)) = region.node() {
            let now = run.threads[owner].now;
            let used = match node.checked_sub(layout::NODES) {
                None => usize::from(now.depth) > node,
                Some(lent) => now.lent & 1 << lent != 0,
            };
            if owner != thread && !used {
                return Err(Violation::NodeReleased { owner, thread });
            }
        }
        if matches!(kind, OperationKind::Store | OperationKind::PlainWrite) {
            self.write(run, request, request.a)?;
            return Ok(0);
        }
        let old = self
            .read(run, request)
            .ok_or(Violation::Uninitialised { thread })?;
        let new = kind.written(old, request.a, request.b);
        if let Some(new) = new {
            self.write(run, request, new)?;
        }
        Ok(old)
    }
}

impl Run {
    fn log(&mut self, step: Logged) {
        self.steps += 1;
        self.all_steps += 1;
        if self.log.len() == LOG {
            self.log.pop_front();
        }
        self.log.push_back(step);
    }
}

/// A random choice in which 0 is as likely as all other values together. Locks do rare things at 0,
/// such as one hand-off in 128 in CNA.
fn choose(n: u64) -> u64 {
    if random(2) == 0 { 0 } else { random(n) }
}
