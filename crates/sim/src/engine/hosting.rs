//! The effects of shared CPUs on simulated code: a runner can lose its CPU at any point of its
//! code, and gets one again later.
//!
//! A runner without a CPU is preempted. The rest of its work waits, its spin loops do not poll, and
//! a lock that it holds stays held. Accesses that it has begun end as usual; the code after them
//! waits. If the runner moves to another CPU, its copies of lines move with it at no cost.
//!
//! To wake a thread takes time of the waker. It takes more if the sleeper's CPU must be interrupted:
//! because it is idle, or because the sleeper preempts the runner there. A thread that goes to sleep
//! leaves its CPU first; if it is woken meanwhile, it goes on at once. With lazy preemption, a sleeper
//! that another CPU wakes interrupts nobody: the runner that it preempts is only marked. That one gives
//! way at its next tick, or where a system call returns before.
//!
//! A virtual CPU of a guest halts where a thread would sleep. A kick takes time of the kicker. The
//! halted runner wants a CPU again after the wake latency, or much earlier if KVM still polls for
//! it.
//!
//! A runner that spins for a window of time leaves its guest: a pause-loop exit. A loop whose
//! pauses are further apart than a gap never causes one. The host then yields the CPU to the next
//! runner of the same guest that waits for a CPU, if there is one, in the order of KVM. The window
//! doubles with each exit until the runner is scheduled again.
//!
//! A thread of a program that holds a lock may ask for an extension of its time slice. If it is to
//! be preempted meanwhile, it keeps the CPU for that time more, and gives it back as soon as it has
//! released the lock.

use crate::event_queue::Event;
use lockworks_measurements::Activity;

use crate::model::HostTimes;

use super::cpu::State;
use super::op::Kind;
use super::scheduler::{Scheduler, Status};
use super::{Engine, line};

/// Counts of the events of runners that share CPUs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SharingCounts {
    /// The number of times that a runner had nothing to do and left its CPU.
    pub halts: u64,
    /// The number of halts that ended while the host still polled.
    pub polls_successful: u64,
    /// The number of times that a runner woke another.
    pub kicks: u64,
    /// The number of turns that ended with the slice, or because another runner had precedence.
    pub preemptions: u64,
    /// The number of times that a runner moved to another CPU.
    pub migrations: u64,
    /// The number of pause-loop exits of spinning runners.
    pub pause_exits: u64,
    /// The number of pause-loop exits that gave the CPU to another runner of the guest.
    pub directed_yields: u64,
    /// The time that runners waited for a CPU, in picoseconds, of all runners together.
    pub steal: u64,
    /// The time that runners were preempted while they held a lock, in picoseconds, of all runners
    /// together.
    pub preempted_holder: u64,
}

struct Hosted {
    /// The number of the runner's current turn or halt. Events with another number are outdated.
    generation: u32,
    /// The time of spinning after which a pause-loop exit follows.
    window: u64,
    /// The times of the first and last pause of a loop. Consecutive pauses of a loop are no further
    /// apart than the gap.
    first_pause: u64,
    last_pause: u64,
    /// The time for which the host polls before a halted runner loses its CPU.
    poll: u64,
    halted_at: u64,
    locks_held: u32,
    /// The time of the last release. Computing that has not ended yet comes before it.
    held_until: u64,
    preempted_at: u64,
    /// Whether the runner is in the kernel, where it keeps its CPU until it sleeps or leaves.
    in_kernel: bool,
    /// Whether the runner must yield its CPU when it leaves the kernel.
    needs_resched: bool,
    /// Whether another CPU than its own wakes the sleeper.
    woken_from_afar: bool,
    extension: Extension,
}

/// An extension of a time slice.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Extension {
    /// The runner does not ask for one.
    None,
    /// The runner asks for one, in case that its slice ends.
    Requested,
    /// The slice has ended, and the runner has its CPU for some time more.
    Granted,
    /// That time has passed as well.
    Expired,
}

/// The outcome of a request for an extension, when the lock was released.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Extended {
    /// The slice did not end while the runner held the lock.
    NotNeeded,
    /// The runner released the lock in time, and must give back its CPU.
    InTime,
    /// The extension ended before the release.
    TooShort,
}

pub(super) struct Hosting {
    scheduler: Scheduler,
    times: HostTimes,
    guests: bool,
    /// The machine's CPUs that are shared.
    machine_cpus: Vec<usize>,
    /// For each of these CPUs, the index of the other one on the same core.
    siblings: Vec<Option<usize>>,
    /// For each of these CPUs, the time at which the last runner that lost it has left it.
    left_at: Vec<u64>,
    runners: Vec<Hosted>,
    balance_is_due: bool,
    counts: SharingCounts,
}

impl Hosting {
    pub(super) fn new(
        times: HostTimes,
        machine_cpus: Vec<usize>,
        siblings: Vec<Option<usize>>,
        llcs: &[u16],
        runners: usize,
        guests: Option<usize>,
        pinned: bool,
    ) -> Self {
        let per_guest = runners.div_ceil(guests.unwrap_or(1));
        Self {
            scheduler: Scheduler::new(times.scheduler, llcs, runners, per_guest, pinned),
            runners: (0..runners)
                .map(|_| Hosted {
                    generation: 0,
                    window: times.pause_window,
                    first_pause: 0,
                    last_pause: 0,
                    poll: 0,
                    halted_at: 0,
                    locks_held: 0,
                    held_until: 0,
                    preempted_at: 0,
                    in_kernel: false,
                    needs_resched: false,
                    woken_from_afar: false,
                    extension: Extension::None,
                })
                .collect(),
            guests: guests.is_some(),
            left_at: vec![0; machine_cpus.len()],
            machine_cpus,
            siblings,
            balance_is_due: false,
            counts: SharingCounts::default(),
            times,
        }
    }

    pub(super) fn has_guests(&self) -> bool {
        self.guests
    }

    pub(super) fn counts(&self, now: u64) -> SharingCounts {
        SharingCounts {
            steal: self.scheduler.queued(now),
            migrations: self.scheduler.migrations,
            ..self.counts
        }
    }

    /// Wakes a sleeper. Returns the waker's cost, and the latency until the sleeper wants a CPU, or
    /// goes on if it has one.
    pub(super) fn kick(&mut self, sleeper: u16, waker: usize, now: u64) -> (u64, u64) {
        self.counts.kicks += 1;
        let times = &self.times;
        let (interrupt, none) = (times.wake_cost, times.wake_busy_cost);
        match self.status(sleeper.into()) {
            Status::Polling if self.guests => (interrupt, times.poll_latency),
            _ if self.guests => (interrupt, times.wake_latency),
            Status::Asleep => {
                let processor = self.scheduler.place(sleeper);
                let afar = processor != self.processor(waker);
                self.runners[usize::from(sleeper)].woken_from_afar = afar;
                if self.scheduler.running_on(processor).is_none() {
                    (interrupt, times.wake_latency)
                } else if afar
                    && !times.lazy
                    && self.scheduler.would_preempt(sleeper, processor, now)
                {
                    (interrupt, interrupt)
                } else {
                    (none, none)
                }
            }
            status => {
                // It does not leave.
                if status == Status::Polling {
                    let hosted = &mut self.runners[usize::from(sleeper)];
                    hosted.generation = hosted.generation.wrapping_add(1);
                    self.scheduler.set_status(sleeper, Status::On, now);
                }
                (none, none + self.times.enter)
            }
        }
    }

    /// Records a pause of `c` at `now`. Returns whether `c` has been spinning for a window.
    pub(super) fn has_paused_long(&mut self, c: usize, now: u64) -> bool {
        let hosted = &mut self.runners[c];
        if now - hosted.last_pause > self.times.pause_gap {
            hosted.first_pause = now;
        }
        hosted.last_pause = now;
        let exits = self.guests && hosted.window > 0 && now - hosted.first_pause > hosted.window;
        if exits {
            hosted.first_pause = now;
        }
        exits
    }

    fn processor(&self, c: usize) -> usize {
        self.scheduler.runners[c].processor
    }

    fn status(&self, c: usize) -> Status {
        self.scheduler.runners[c].status
    }
}

impl Engine {
    fn hosting(&mut self) -> &mut Hosting {
        self.hosting.as_mut().expect("CPUs are shared")
    }

    /// Records that the current runner has acquired or released a lock under test.
    pub(crate) fn note_lock(&mut self, acquired: bool) {
        let (c, time) = (self.current, self.time());
        if let Some(hosting) = &mut self.hosting {
            let hosted = &mut hosting.runners[c];
            if acquired {
                hosted.locks_held += 1;
            } else {
                hosted.locks_held -= 1;
                hosted.held_until = time;
            }
        }
    }

    /// Whether `c` runs now: it neither sleeps nor waits for a CPU.
    pub(crate) fn is_running(&self, c: usize) -> bool {
        let cpu = &self.cpus[c];
        !cpu.preempted && cpu.state != State::Parked
    }

    /// The CPU that the current runner is on.
    pub(crate) fn current_cpu(&self) -> usize {
        match &self.hosting {
            Some(hosting) => hosting.scheduler.runners[self.current].processor,
            None => self.current,
        }
    }

    /// The time in which CPUs had a runner, in picoseconds, of all CPUs together.
    pub(crate) fn running_time(&self) -> u64 {
        let now = self.fabric.now;
        match &self.hosting {
            Some(hosting) => hosting.scheduler.ran(now),
            None => now * self.cpus.len() as u64,
        }
    }

    /// Whether another runner on the core of the current one works, and neither sleeps nor spins.
    pub(crate) fn shares_core(&self) -> bool {
        let works = |c: u16| {
            let state = self.cpus[usize::from(c)].state;
            !matches!(state, State::Waiting | State::Missing | State::Parked)
        };
        let Some(hosting) = &self.hosting else {
            let mut others = self.model().others_on_core(self.current);
            return others.any(works);
        };
        let processor = hosting.processor(self.current);
        let other =
            hosting.siblings[processor].and_then(|other| hosting.scheduler.running_on(other));
        other.is_some_and(works)
    }

    /// Disables preemption of the current runner.
    pub(crate) fn enter_kernel(&mut self) {
        let c = self.current;
        if let Some(hosting) = &mut self.hosting {
            hosting.runners[c].in_kernel = true;
        }
    }

    /// Enables preemption of the current runner. Returns whether it should have been preempted.
    pub(crate) fn leave_kernel(&mut self) -> bool {
        let c = self.current;
        self.hosting.as_mut().is_some_and(|hosting| {
            hosting.runners[c].in_kernel = false;
            hosting.runners[c].needs_resched || hosting.scheduler.is_marked(c as u16)
        })
    }

    /// Whether the current runner, which returns from a system call, gives way there.
    pub(crate) fn gives_way_after_call(&self) -> bool {
        let c = self.current;
        self.hosting.as_ref().is_some_and(|hosting| {
            !hosting.runners[c].in_kernel && hosting.scheduler.is_marked(c as u16)
        })
    }

    /// Records that the current runner asks for an extension of its time slice. Virtual CPUs cannot.
    pub(crate) fn request_extension(&mut self) {
        let c = self.current;
        if let Some(hosting) = self.hosting.as_mut().filter(|hosting| !hosting.guests) {
            let extension = &mut hosting.runners[c].extension;
            if *extension == Extension::None {
                *extension = Extension::Requested;
            }
        }
    }

    /// Notes that the current runner makes a system call, which ends an extension. Returns whether the
    /// runner must give back its CPU.
    pub(crate) fn call_ends_extension(&mut self) -> bool {
        let c = self.current;
        let hosting = self.hosting.as_mut();
        hosting.is_some_and(|hosting| {
            let extension = &mut hosting.runners[c].extension;
            let ends = *extension == Extension::Granted;
            if ends {
                *extension = Extension::Expired;
            }
            ends
        })
    }

    /// Ends the request of the current runner.
    pub(crate) fn end_extension(&mut self) -> Extended {
        let c = self.current;
        let Some(hosting) = &mut self.hosting else {
            return Extended::NotNeeded;
        };
        match std::mem::replace(&mut hosting.runners[c].extension, Extension::None) {
            Extension::None | Extension::Requested => Extended::NotNeeded,
            Extension::Granted => Extended::InTime,
            Extension::Expired => Extended::TooShort,
        }
    }

    /// Whether the current runner, which is in the kernel, should yield its CPU.
    pub(crate) fn should_yield(&self) -> bool {
        let hosting = self.hosting.as_ref();
        hosting.is_some_and(|hosting| hosting.runners[self.current].needs_resched)
    }

    /// Handles an operation of `c` that waits.
    #[inline(never)]
    pub(super) fn hosted_wait(&mut self, c: usize, kind: Kind) {
        match self.cpus[c].state {
            State::Parked if !self.cpus[c].preempted => self.halt(c),
            State::Waiting | State::Missing if kind == Kind::Await => self.watch_spinning(c),
            _ => {}
        }
    }

    fn watch_spinning(&mut self, c: usize) {
        let generation = self.cpus[c].generation;
        let now = self.fabric.now;
        let hosting = self.hosting();
        if hosting.guests && hosting.times.pause_window > 0 {
            let at = now + hosting.runners[c].window;
            self.fabric
                .queue
                .push(at, Event::Spin(c as u16, generation));
        }
    }

    /// Handles a pause-loop exit: `c` has spun for a window.
    pub(super) fn pause_exit(&mut self, c: usize, generation: u32) {
        let cpu = &self.cpus[c];
        let spins = match cpu.state {
            State::Waiting | State::Missing => true,
            State::Starting => cpu.op.kind == Kind::Pause,
            _ => false,
        };
        if cpu.generation != generation || !spins || cpu.preempted {
            return;
        }
        let now = self.fabric.now;
        let hosting = self.hosting();
        hosting.counts.pause_exits += 1;
        hosting.runners[c].window *= 2;
        let processor = hosting.processor(c);
        let scheduler = &mut hosting.scheduler;
        let marked = scheduler.is_marked(c as u16);
        let target = scheduler.yield_target(c as u16);
        if marked {
            self.preempt(processor);
            self.run_next(processor, None);
        } else if let Some(target) = target.filter(|&t| scheduler.may_go_first(t, now)) {
            let next = scheduler.first(processor);
            let next = next.filter(|&n| scheduler.may_go_first(n, now));
            let other = hosting.processor(target.into());
            hosting.counts.directed_yields += 1;
            self.preempt(other);
            self.run_next(other, Some(target));
            if other != processor && next.is_some() {
                self.preempt(processor);
                self.run_next(processor, next);
            }
        }
        let hosting = self.hosting();
        if hosting.status(c) == Status::Queued {
            hosting.scheduler.runners[c].yielded = true;
        } else {
            self.watch_spinning(c);
        }
    }

    /// Halts `c`, which has nothing to do.
    fn halt(&mut self, c: usize) {
        let now = self.fabric.now;
        // To sleep for no time is to yield the CPU.
        let parks = self.cpus[c].op.kind == Kind::Park;
        let hosting = self.hosting();
        let processor = hosting.processor(c);
        hosting.counts.halts += 1;
        let leave = hosting.times.leave;
        hosting.left_at[processor] = now + leave;
        let hosted = &mut hosting.runners[c];
        hosted.halted_at = now;
        hosted.generation = hosted.generation.wrapping_add(1);
        let polls = hosted.poll > 0 && !hosting.scheduler.someone_waits(processor);
        let may_be_woken = hosting.guests || parks;
        let keeps_cpu = if polls { hosted.poll } else { leave };
        if keeps_cpu > 0 && may_be_woken {
            let end = Event::Poll(c as u16, hosted.generation);
            let at = now + keeps_cpu;
            hosting.scheduler.set_status(c as u16, Status::Polling, now);
            self.fabric.queue.push(at, end);
        } else {
            self.preempt(processor);
            self.run_next(processor, None);
        }
    }

    /// Ends the host's polling for `c`, or its time to leave.
    pub(super) fn poll_over(&mut self, c: usize, generation: u32) {
        let hosting = self.hosting();
        if hosting.runners[c].generation == generation && hosting.status(c) == Status::Polling {
            let processor = hosting.processor(c);
            self.preempt(processor);
            self.run_next(processor, None);
        }
    }

    /// Wakes `c`, which slept and wants to continue.
    pub(super) fn hosted_wake(&mut self, c: usize) {
        self.complete(c, 0);
        let now = self.fabric.now;
        let hosting = self.hosting();
        match hosting.status(c) {
            Status::Polling => {
                hosting.counts.polls_successful += 1;
                hosting.scheduler.set_status(c as u16, Status::On, now);
            }
            Status::Asleep => {
                if hosting.guests {
                    hosting.adapt_polling(c, now);
                }
                let (processor, ahead) = hosting.scheduler.wake(c as u16, now);
                let afar = std::mem::take(&mut hosting.runners[c].woken_from_afar);
                let lazily = ahead && afar && hosting.times.lazy;
                let waits = !ahead || lazily && hosting.scheduler.mark(processor);
                if waits || self.preempt_if_allowed(processor) {
                    self.run_next(processor, None);
                }
                self.plan_balance();
            }
            // The runner was woken before it could sleep.
            Status::On | Status::Queued => {}
        }
    }

    /// Stops the runner that `processor` runs, if there is one.
    fn preempt(&mut self, processor: usize) {
        let now = self.fabric.now;
        let hosting = self.hosting.as_mut().expect("CPUs are shared");
        let Some(c) = hosting.scheduler.stop(processor, now) else {
            return;
        };
        let c = usize::from(c);
        let cpu = &mut self.cpus[c];
        let hosted = &mut hosting.runners[c];
        hosted.generation = hosted.generation.wrapping_add(1);
        hosted.needs_resched = false;
        // Also if the runner goes to sleep.
        if hosted.extension == Extension::Granted {
            hosted.extension = Extension::Expired;
        }
        let was_preempted = cpu.preempted;
        if !was_preempted {
            hosted.preempted_at = now;
        }
        if cpu.state == State::Parked {
            hosting.scheduler.sleep(c as u16, now);
            cpu.preempted = true;
        } else {
            hosting.counts.preemptions += 1;
            hosting.left_at[processor] = now + hosting.times.leave;
            hosting.scheduler.enqueue(c as u16, now, true);
            if !was_preempted {
                self.freeze(c);
            }
        }
    }

    /// Lets an idle processor run `chosen`, or the runner whose turn it is.
    fn run_next(&mut self, processor: usize, chosen: Option<u16>) {
        let now = self.fabric.now;
        let hosting = self.hosting();
        if hosting.scheduler.running_on(processor).is_none() {
            let next = match chosen {
                Some(c) => {
                    hosting.scheduler.start(processor, c, now);
                    chosen
                }
                None => hosting.scheduler.next(processor, now),
            };
            if let Some(c) = next {
                self.switch_to(processor, c);
            }
        }
        if let Some(at) = self.hosting().scheduler.slice_end(processor, now) {
            let turn = self.hosting().scheduler.processors[processor].turn;
            let end = Event::Slice(processor as u16, turn);
            self.fabric.queue.push(at, end);
        }
    }

    fn switch_to(&mut self, processor: usize, c: u16) {
        let hosting = self.hosting.as_mut().expect("CPUs are shared");
        let hosted = &mut hosting.runners[usize::from(c)];
        hosted.generation = hosted.generation.wrapping_add(1);
        let begins = Event::Run(c, hosted.generation);
        let at = self.fabric.now.max(hosting.left_at[processor]) + hosting.times.enter;
        self.fabric.queue.push(at, begins);
        let machine_cpu = hosting.machine_cpus[processor];
        if self.fabric.model.machine_cpu(c.into()) != machine_cpu {
            self.fabric.model.set_machine_cpu(c.into(), machine_cpu);
            self.cpus[usize::from(c)].move_to_machine_cpu(&self.fabric.model);
        }
    }

    /// Starts the turn of `c` after the switch to it.
    pub(super) fn run_hosted(&mut self, c: usize, generation: u32) {
        let now = self.fabric.now;
        let hosting = self.hosting();
        let window = hosting.times.pause_window;
        let hosted = &mut hosting.runners[c];
        if hosted.generation != generation {
            return;
        }
        hosted.window = window;
        if hosted.locks_held > 0 || hosted.preempted_at < hosted.held_until {
            hosting.counts.preempted_holder += now - hosted.preempted_at;
        }
        self.thaw(c);
    }

    /// Handles the end of a turn.
    pub(super) fn slice_over(&mut self, processor: usize, turn: u32) {
        let now = self.fabric.now;
        let p = &mut self.hosting().scheduler.processors[processor];
        if p.turn != turn || p.slice_ends != Some(now) {
            return;
        }
        p.slice_ends = None;
        p.marked = false;
        let gives_way = self.hosting().scheduler.gives_way(processor, now);
        if !gives_way || self.preempt_if_allowed(processor) {
            self.run_next(processor, None);
        }
    }

    /// Stops the runner that `processor` runs. False if the runner may not be preempted yet; it
    /// stops as soon as it may.
    fn preempt_if_allowed(&mut self, processor: usize) -> bool {
        let now = self.fabric.now;
        let hosting = self.hosting();
        if let Some(c) = hosting.scheduler.running_on(processor) {
            let hosted = &mut hosting.runners[usize::from(c)];
            if hosted.in_kernel {
                hosted.needs_resched = true;
                return false;
            }
            match hosted.extension {
                Extension::None | Extension::Expired => {}
                Extension::Granted => return false,
                Extension::Requested => {
                    hosted.extension = Extension::Granted;
                    let turn = hosting.scheduler.processors[processor].turn;
                    let at = now + hosting.times.slice_extension;
                    let end = Event::ExtensionEnd(processor as u16, turn);
                    self.fabric.queue.push(at, end);
                    return false;
                }
            }
        }
        self.preempt(processor);
        true
    }

    /// Handles the end of an extension. If the runner has released its lock meanwhile, it has given
    /// back its CPU, and another turn has begun.
    pub(super) fn extension_over(&mut self, processor: usize, turn: u32) {
        let hosting = self.hosting();
        if hosting.scheduler.processors[processor].turn != turn {
            return;
        }
        let running = hosting.scheduler.running_on(processor);
        let Some(hosted) = running.map(|c| &mut hosting.runners[usize::from(c)]) else {
            return;
        };
        if hosted.extension == Extension::Granted {
            hosted.extension = Extension::Expired;
            self.preempt(processor);
            self.run_next(processor, None);
        }
    }

    fn plan_balance(&mut self) {
        let now = self.fabric.now;
        let hosting = self.hosting();
        let due = hosting.scheduler.anyone_waits() && !hosting.balance_is_due;
        if due {
            hosting.balance_is_due = true;
            let cpus = hosting.machine_cpus.len() as u64;
            let at = now + hosting.times.balance_period * cpus;
            self.fabric.queue.push(at, Event::Balance);
        }
    }

    /// Lets idle processors take waiting runners from others.
    pub(super) fn balance(&mut self) {
        let now = self.fabric.now;
        self.hosting().balance_is_due = false;
        while let Some((processor, c)) = self.hosting().scheduler.balance() {
            self.run_next(processor, Some(c));
        }
        while let Some(processor) = self.hosting().scheduler.even_out(now) {
            self.run_next(processor, None);
        }
        self.plan_balance();
    }

    /// Interrupts the activity of `c`.
    fn freeze(&mut self, c: usize) {
        let now = self.fabric.now;
        if let Some(recorder) = &mut self.recorder {
            recorder.note(c, now, Activity::LosesCpu);
        }
        let cpu = &mut self.cpus[c];
        cpu.preempted = true;
        match cpu.state {
            State::Starting => cpu.work_left = cpu.start_at - now,
            State::Waiting | State::Missing if cpu.op.kind == Kind::Await => {
                if cpu.op.polls > 0 {
                    let left = cpu.deadline.saturating_sub(now) / cpu.core(&self.fabric).look;
                    cpu.op.polls = (left as u32).max(1);
                }
                let line = line::find(&mut self.lines, cpu.op.address);
                line.waiters.retain(|&w| w != cpu.number());
                cpu.state = State::Starting;
                cpu.work_left = 0;
            }
            _ => return,
        }
        // Events that are scheduled for the runner are outdated from now on.
        cpu.generation = cpu.generation.wrapping_add(1);
    }

    /// Resumes `c` where it was interrupted.
    fn thaw(&mut self, c: usize) {
        if let Some(recorder) = &mut self.recorder {
            recorder.note(c, self.fabric.now, Activity::GetsCpu);
        }
        let cpu = &mut self.cpus[c];
        cpu.preempted = false;
        match cpu.state {
            State::Held => {
                cpu.state = State::Running;
                self.runnable = Some(c);
            }
            State::Starting => {
                let at = self.fabric.now + cpu.work_left;
                cpu.start_at(&mut self.fabric, at);
            }
            State::Parked => self.halt(c),
            _ => {}
        }
    }

    /// Whether `c` can never continue unless another runner does something.
    pub(super) fn is_blocked(&self, c: usize) -> bool {
        let cpu = &self.cpus[c];
        match cpu.state {
            State::Finished | State::Waiting | State::Parked => true,
            State::Starting => {
                cpu.preempted && cpu.op.kind == Kind::Await && !cpu.op.satisfied(self.peek(&cpu.op))
            }
            _ => false,
        }
    }

    /// Handles the return of the current runner's code.
    pub(super) fn leave(&mut self, c: usize) {
        if self.hosting.is_some() {
            let now = self.fabric.now;
            let processor = self.hosting().processor(c);
            let scheduler = &mut self.hosting().scheduler;
            scheduler.stop(processor, now);
            scheduler.sleep(c as u16, now);
            self.run_next(processor, None);
        }
    }
}

impl Hosting {
    /// Adapts the polling time: longer after a halt that a longer poll would have covered, 0 after
    /// a long halt.
    fn adapt_polling(&mut self, c: usize, now: u64) {
        let hosted = &mut self.runners[c];
        let slept = now - hosted.halted_at;
        hosted.poll = if slept > self.times.poll_most {
            0
        } else {
            (hosted.poll * 2)
                .max(self.times.poll_first)
                .min(self.times.poll_most)
        };
    }
}
