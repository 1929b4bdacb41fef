//! Runs the steps of a workload file.

use super::memory::Piece;
use super::steps::{Access, Act, Pick, Target};
use crate::lock::SimLock;
use crate::program::Program;
use crate::thread::{
    TimerTicks, atomic_add, increment, let_others_run, load, one_in, operation_done,
    operations_so_far, random, read, sleep, system_call, work, work_on_shared_core, write,
};

/// The number of consecutive passes without an access to shared memory after which other CPUs run.
const MAX_IDLE_PASSES: u32 = 100;

/// The steps of one thread.
pub(super) struct Steps {
    pub(super) start: Vec<Act>,
    pub(super) body: Vec<Act>,
}

/// The program of a workload file.
pub(super) struct Interpreter {
    /// The pieces of each description of memory.
    pub(super) memory: Vec<Vec<Piece>>,
    /// The steps of each thread.
    pub(super) threads: Vec<Steps>,
    pub(super) rare_delay_ns: f64,
    pub(super) sleep_calls_ns: [f64; 2],
    pub(super) shared_core_slowdown: Option<f64>,
}

impl Program for Interpreter {
    fn thread(&self, thread: usize) {
        let mut runner = Runner {
            program: self,
            thread,
            current: vec![0; self.memory.len()],
            ticks: None,
            idle_passes: 0,
        };
        let steps = &self.threads[thread];
        runner.run(&steps.start);
        runner.ticks = Some(TimerTicks::new(thread));
        loop {
            runner.pass(&steps.body);
        }
    }

    fn locks(&self) -> Vec<&SimLock> {
        self.memory
            .iter()
            .flatten()
            .filter_map(Piece::lock)
            .collect()
    }

    fn sleep_calls_ns(&self) -> [f64; 2] {
        self.sleep_calls_ns
    }

    fn rare_delay_ns(&self) -> f64 {
        self.rare_delay_ns
    }
}

/// A thread that takes steps.
struct Runner<'a> {
    program: &'a Interpreter,
    thread: usize,
    /// For each description of memory, the index of the piece that enclosing steps use.
    current: Vec<usize>,
    ticks: Option<TimerTicks>,
    /// The number of consecutive passes that have not accessed shared memory.
    idle_passes: u32,
}

impl<'a> Runner<'a> {
    /// Takes the steps of a loop once. Virtual time goes on and other CPUs run, even if the loop
    /// takes no time and never accesses shared memory.
    fn pass(&mut self, acts: &'a [Act]) {
        let before = operations_so_far();
        self.run(acts);
        if operations_so_far() != before {
            self.idle_passes = 0;
            return;
        }
        self.idle_passes += 1;
        if self.idle_passes == MAX_IDLE_PASSES {
            self.idle_passes = 0;
            work(1.0);
            let_others_run();
        }
    }

    fn run(&mut self, acts: &'a [Act]) {
        for act in acts {
            self.act(act);
        }
    }

    fn act(&mut self, act: &'a Act) {
        let thread = self.thread;
        match act {
            Act::Operation => operation_done(thread),
            Act::Ticks => self
                .ticks
                .as_mut()
                .expect("ticks are taken in the loop")
                .pass(),
            Act::Compute(draw) => self.compute(draw.nanoseconds(thread)),
            Act::Sleep(draw) => sleep(draw.nanoseconds(thread)),
            Act::Lock(target, acts) => self.lock(target, acts),
            Act::ReadLock(target, acts) => self.read_lock(target, acts),
            Act::Load(access) => {
                load(self.address(access), access.bytes);
            }
            Act::Read(access) => {
                read(self.address(access), access.bytes);
            }
            Act::Write(access, value) => write(self.address(access), access.bytes, *value),
            Act::Increment(access) => increment(self.address(access), access.bytes),
            Act::AtomicAdd(access, value) => atomic_add(self.address(access), *value),
            Act::Get(target) => self.lockref(target).get(thread),
            Act::Put(target) => self.lockref(target).put(thread),
            Act::Repeat(times, acts) => (0..*times).for_each(|_| self.pass(acts)),
            Act::OneIn(odds, acts) => {
                if one_in(thread, *odds) {
                    self.run(acts);
                }
            }
            Act::Each(memory, acts) => {
                for piece in 0..self.program.memory[*memory].len() {
                    self.using(*memory, piece, |runner| runner.run(acts));
                }
            }
            Act::Branch(weights, ways) => self.run(&ways[weights.choose(thread)]),
            Act::SystemCall(acts) => system_call(|| self.run(acts)),
        }
    }

    fn compute(&self, nanoseconds: f64) {
        match self.program.shared_core_slowdown {
            Some(slowdown) => work_on_shared_core(nanoseconds, slowdown),
            None => work(nanoseconds),
        }
    }

    fn lock(&mut self, target: &'a Target, acts: &'a [Act]) {
        let piece = self.pick(target);
        let (program, thread) = (self.program, self.thread);
        self.using(target.memory, piece, |runner| {
            let critical = || runner.run(acts);
            match &program.memory[target.memory][piece] {
                Piece::Lock { lock, .. } => lock.with(thread, critical),
                Piece::FutexMutex(mutex) => mutex.with(thread, critical),
                Piece::Data(_) | Piece::Lockref(_) => unreachable!("locked memory has a lock"),
            }
        });
    }

    fn read_lock(&mut self, target: &'a Target, acts: &'a [Act]) {
        let piece = self.pick(target);
        let (program, thread) = (self.program, self.thread);
        self.using(target.memory, piece, |runner| {
            match &program.memory[target.memory][piece] {
                Piece::Lock { lock, .. } => lock.read_with(thread, || runner.run(acts)),
                _ => unreachable!("memory with readers has a lock"),
            }
        });
    }

    /// Runs `inside` with `piece` as the piece of `memory` that its steps use.
    fn using(&mut self, memory: usize, piece: usize, inside: impl FnOnce(&mut Self)) {
        let before = std::mem::replace(&mut self.current[memory], piece);
        inside(self);
        self.current[memory] = before;
    }

    fn pick(&self, target: &Target) -> usize {
        let count = self.program.memory[target.memory].len();
        match &target.pick {
            Pick::Current => self.current[target.memory],
            Pick::Random => random(self.thread, count as u32) as usize,
            Pick::Own => self.thread % count,
            Pick::Weighted(weights) => weights.choose(self.thread),
        }
    }

    fn address(&self, access: &Access) -> usize {
        let piece = self.pick(&access.target);
        self.program.memory[access.target.memory][piece].data() + access.at
    }

    fn lockref(&self, target: &Target) -> &'a crate::lock::SimLockref {
        match &self.program.memory[target.memory][self.pick(target)] {
            Piece::Lockref(lockref) => lockref,
            _ => unreachable!("what is referred to is a lockref"),
        }
    }
}
