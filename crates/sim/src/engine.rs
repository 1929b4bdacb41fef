//! The machine: CPUs, their store buffers, and cache lines that travel between them.
//!
//! Time is in picoseconds. A CPU runs real code in a coroutine; each access of that code to
//! simulated memory is an [`Op`]. The model:
//!
//! * A line is owned by one CPU, shared by several, or in no cache. It has one exclusive
//!   transaction at a time; requests queue at the line in the order of their arrival. A request
//!   takes time to reach the line, and the data takes time to come back. A spinner's next request
//!   therefore overlaps with the writer that invalidated its copy. An owner keeps a line as long as
//!   its access takes.
//! * Loads whose value decides what comes next stall the CPU. Loads of plain data do not: they wait
//!   in the same in-order buffer as stores, and execution continues until the reorder buffer is
//!   full.
//! * Stores retire in order behind such loads, and then request their line at once. They become
//!   visible in order (total store order), or when their lines arrive, unless they release (weak
//!   order).
//! * Atomic read-modify-writes wait until the buffer is empty (total store order), or if they
//!   release (weak order).
//! * If CPUs are shared, a CPU of the engine is a runner: a thread or a guest's virtual CPU, which
//!   takes turns with others on the machine's CPUs (see `hosting` and `scheduler`).

mod buffer;
mod cpu;
mod fabric;
mod hosting;
mod line;
mod op;
mod recorder;
mod report;
mod requests;
mod scheduler;
#[cfg(test)]
mod tests;

use lockworks_measurements::Activity;

use crate::event_queue::{Event, EventQueue};
use crate::model::Model;

use cpu::{Cpu, Pass, Sleeper, State};
use fabric::Fabric;
use hosting::Hosting;
use line::{Line, line_of};
use report::Label;

pub(crate) use hosting::Extended;
pub use hosting::SharingCounts;
pub(crate) use line::LINE;
pub(crate) use op::{Kind, Op};
pub(crate) use recorder::Recorder;

/// Counts of the engine's own work, for benchmarks and repeatability checks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct EngineCounts {
    /// The number of events that were handled.
    pub events: u64,
    /// The number of operations of simulated code.
    pub operations: u64,
    /// The number of line transfers.
    pub transfers: u64,
}

pub(crate) struct Engine {
    fabric: Fabric,
    cpus: Vec<Cpu>,
    lines: Vec<Line>,
    labels: Vec<Label>,
    parked: Vec<Sleeper>,
    /// The sharing of CPUs. `None` if every CPU has one thread.
    hosting: Option<Hosting>,
    /// The record of what threads do, if one was asked for.
    pub(crate) recorder: Option<Recorder>,
    pub(crate) current: usize,
    runnable: Option<usize>,
    /// The driver's next step.
    pub(crate) next: Step,
    operations: u64,
    events: u64,
}

/// The next step of the driver.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Step {
    /// Resume this CPU's coroutine.
    Resume(usize),
    /// End the run: virtual time is over, or every CPU has finished.
    End,
    /// Report a deadlock: CPUs are blocked, and no event can wake them.
    Deadlock,
}

impl Engine {
    pub(crate) fn new(model: Model, end: u64, seed: u64) -> Self {
        let mut queue = EventQueue::new();
        queue.push(end, Event::End);
        let cpus: Vec<Cpu> = (0..model.cpus() as u16)
            .map(|c| Cpu::new(c, &model))
            .collect();
        for cpu in &cpus {
            queue.push(0, Event::Wake(cpu.number()));
        }
        Self {
            fabric: Fabric::new(model, queue, seed),
            cpus,
            lines: Vec::new(),
            labels: Vec::new(),
            parked: Vec::new(),
            hosting: None,
            recorder: None,
            current: 0,
            runnable: None,
            next: Step::End,
            operations: 0,
            events: 0,
        }
    }

    /// Lets runners share these CPUs of the machine. There is a runner for each CPU of the model.
    /// They are the virtual CPUs of `guests` guests, or threads.
    pub(crate) fn share(&mut self, machine_cpus: Vec<usize>, guests: Option<usize>, pinned: bool) {
        let model = &self.fabric.model;
        let llcs: Vec<u16> = machine_cpus
            .iter()
            .map(|&p| model.llc_of_machine_cpu(p))
            .collect();
        let times = if guests.is_some() {
            model.guest_times
        } else {
            model.thread_times
        };
        let runners = self.cpus.len();
        let sibling = |cpu: usize| {
            let mut others = machine_cpus.iter();
            others.position(|&other| other != cpu && model.share_core(cpu, other))
        };
        let siblings = machine_cpus.iter().map(|&cpu| sibling(cpu)).collect();
        self.hosting = Some(Hosting::new(
            times,
            machine_cpus,
            siblings,
            &llcs,
            runners,
            guests,
            pinned,
        ));
        // No runner has a CPU until the scheduler gives it one.
        for cpu in &mut self.cpus {
            cpu.preempted = true;
        }
    }

    /// Returns whether threads take turns on CPUs, since there are more threads than CPUs.
    pub fn has_turns(&self) -> bool {
        self.hosting.is_some()
    }

    /// Returns whether the threads are the virtual CPUs of guests.
    pub fn is_guest(&self) -> bool {
        self.hosting.as_ref().is_some_and(Hosting::has_guests)
    }

    /// Counts of the runners' events, where CPUs are shared.
    pub(crate) fn sharing_counts(&self) -> Option<SharingCounts> {
        self.hosting.as_ref().map(|h| h.counts(self.fabric.now))
    }

    pub(crate) fn model(&self) -> &Model {
        &self.fabric.model
    }

    /// The time of the last event.
    pub(crate) fn now(&self) -> u64 {
        self.fabric.now
    }

    pub(crate) fn counts(&self) -> EngineCounts {
        EngineCounts {
            events: self.events,
            operations: self.operations,
            transfers: self.fabric.transfers,
        }
    }

    /// Allocates zeroed memory whose home is `node`. It has its lines to itself.
    pub(crate) fn allocate(&mut self, name: impl Into<String>, bytes: usize, node: u16) -> usize {
        let first = self.lines.len();
        let end = first + bytes.max(1).div_ceil(LINE);
        self.lines
            .extend((first..end).map(|line| Line::new(line, node, self.cpus.len())));
        let (start, end) = (line::start_of(first), line::start_of(end));
        assert!(u32::try_from(end).is_ok(), "simulated memory is full");
        self.labels.push(Label {
            name: name.into(),
            start,
            end,
        });
        start
    }

    /// Sets the contents of memory before the run.
    pub(crate) fn set(&mut self, address: usize, size: u8, value: u64) {
        line::find(&mut self.lines, address).write(address, size, value);
    }

    /// Lets the current CPU work for a time without touching shared memory.
    #[inline]
    pub(crate) fn work(&mut self, picoseconds: u64) {
        self.cpus[self.current].lag += picoseconds;
    }

    /// The virtual time of the current CPU.
    #[inline]
    pub(crate) fn time(&self) -> u64 {
        self.fabric.now + self.cpus[self.current].lag
    }

    /// Records what the current CPU does, if that was asked for.
    #[inline]
    pub(crate) fn note(&mut self, what: Activity) {
        let now = self.time();
        if let Some(recorder) = &mut self.recorder {
            recorder.note(self.current, now, what);
        }
    }

    /// Issues `op` for the current CPU. Returns its result, or `None` if the CPU has to be
    /// suspended until the driver resumes it. Then [`Engine::result`] has the result.
    ///
    /// The path of operations that need not wait is inlined, so that a caller with a constant kind
    /// of operation contains only the code of that kind.
    #[inline(always)]
    pub(crate) fn issue(&mut self, op: Op) -> Option<u64> {
        self.operations += 1;
        let fabric = &mut self.fabric;
        let cpu = &mut self.cpus[self.current];
        let at = fabric.now + std::mem::take(&mut cpu.lag);
        if cpu.buffer.has_loads() && at > cpu.window_end {
            cpu.state = State::Stalled;
            cpu.work_left = at - cpu.window_end.max(fabric.now);
        } else if at >= fabric.queue.next_time() {
            cpu.start_at(fabric, at);
        } else {
            fabric.now = at;
            if let Some(result) = self.start(self.current, &op) {
                return Some(result);
            }
        }
        self.suspend(&op)
    }

    /// Makes the current CPU wait at `op`. Often it is also the next CPU to run.
    #[inline(never)]
    fn suspend(&mut self, op: &Op) -> Option<u64> {
        let c = self.current;
        self.cpus[c].op = *op;
        self.advance();
        (self.next == Step::Resume(c)).then(|| self.result())
    }

    #[inline]
    pub(crate) fn result(&self) -> u64 {
        self.cpus[self.current].result
    }

    /// Handles the return of the current CPU's code.
    pub(crate) fn finish_current(&mut self) {
        self.cpus[self.current].state = State::Finished;
        self.leave(self.current);
        self.advance();
    }

    /// Advances virtual time until some CPU's code has to run, and sets `next` accordingly.
    pub(crate) fn advance(&mut self) {
        loop {
            if let Some(c) = self.runnable.take() {
                self.current = c;
                self.next = Step::Resume(c);
                return;
            }
            let (time, event) = self.fabric.queue.pop();
            if event == Event::End {
                let stuck = !self.fabric.queue.pending().any(Event::goes_on)
                    && self.cpus.iter().any(|c| c.state != State::Finished)
                    && (0..self.cpus.len()).all(|c| self.is_blocked(c));
                self.next = if stuck { Step::Deadlock } else { Step::End };
                return;
            }
            self.fabric.now = time;
            self.events += 1;
            match event {
                Event::Start(c, generation) => {
                    if self.cpus[usize::from(c)].generation == generation {
                        self.start_and_resume(c.into());
                    }
                }
                Event::Arrival(c, slot, line) => self.arrive(c.into(), slot, line as usize),
                Event::Timeout(c, generation) => self.time_out(c.into(), generation),
                Event::Wake(c) if self.hosting.is_some() => self.hosted_wake(c.into()),
                Event::Wake(c) => self.complete(c.into(), 0),
                Event::Run(c, generation) => self.run_hosted(c.into(), generation),
                Event::Slice(processor, turn) => self.slice_over(processor.into(), turn),
                Event::ExtensionEnd(processor, turn) => self.extension_over(processor.into(), turn),
                Event::Spin(c, generation) => self.pause_exit(c.into(), generation),
                Event::Poll(c, generation) => self.poll_over(c.into(), generation),
                Event::Balance => self.balance(),
                Event::End => unreachable!("seen above"),
            }
        }
    }

    /// Starts the operation `op` of `c` at `now`. Returns its result if it need not wait.
    #[inline(always)]
    fn start(&mut self, c: usize, op: &Op) -> Option<u64> {
        let fabric = &mut self.fabric;
        let cpu = &mut self.cpus[c];
        match op.kind {
            Kind::Unpark => return Some(self.unpark(c, op)),
            Kind::Sleep => {
                cpu.state = State::Parked;
                let at = fabric.now + op.a;
                fabric.queue.push(at, Event::Wake(cpu.number()));
                if self.hosting.is_some() {
                    self.hosted_wait(c, op.kind);
                }
                return None;
            }
            Kind::Pause => {
                let (now, round) = (fabric.now, cpu.core(fabric).look);
                let hosting = self.hosting.as_mut();
                if !hosting.is_some_and(|h| h.has_paused_long(c, now)) {
                    cpu.lag = round;
                    return Some(0);
                }
                let exit = Event::Spin(cpu.number(), cpu.generation);
                fabric.queue.push(now, exit);
                cpu.start_at(fabric, now + round);
                return None;
            }
            Kind::Fence if cpu.buffer.is_empty() => return Some(0),
            Kind::Fence => {
                cpu.state = State::Draining;
                return None;
            }
            _ => {}
        }
        let line = line::find(&mut self.lines, op.address);
        match op.kind {
            Kind::Store => return cpu.store(fabric, line, op),
            Kind::Touch => return cpu.touch(fabric, line, op),
            Kind::Prefetch => {
                cpu.lag = cpu.core(fabric).store;
                let to_write = op.a != 0;
                if !line.hits(cpu.number(), to_write, fabric.now) && cpu.requests.has_room() {
                    fabric.want(&mut cpu.requests, line, to_write);
                }
                return Some(0);
            }
            _ => {}
        }
        match cpu.pass_buffer(fabric, op) {
            Pass::Go => {}
            Pass::Forward(value) => {
                cpu.lag = cpu.core(fabric).store;
                return Some(value);
            }
            Pass::Drain => {
                cpu.state = State::Draining;
                return None;
            }
        }
        let here = line.hits(cpu.number(), op.kind.writes(), fabric.now);
        if here && let Some(result) = cpu.perform(fabric, line, op, false) {
            return Some(result);
        }
        cpu.wait(fabric, line, &mut self.parked, op, here);
        if self.hosting.is_some() {
            self.hosted_wait(c, op.kind);
        }
        None
    }

    fn start_and_resume(&mut self, c: usize) {
        let cpu = &mut self.cpus[c];
        if cpu.preempted {
            cpu.state = State::Starting;
            cpu.work_left = 0;
            return;
        }
        let op = cpu.op;
        if let Some(result) = self.start(c, &op) {
            self.complete(c, result);
        }
    }

    /// Lets the CPU's code continue with `result`.
    #[inline]
    fn complete(&mut self, c: usize, result: u64) {
        debug_assert!(self.runnable.is_none());
        let cpu = &mut self.cpus[c];
        cpu.complete(result);
        if cpu.preempted {
            cpu.state = State::Held;
        } else {
            self.runnable = Some(c);
        }
    }

    fn unpark(&mut self, c: usize, op: &Op) -> u64 {
        let mut woken = 0;
        while woken < op.a {
            let Some(at) = self.parked.iter().position(|p| p.address == op.address) else {
                break;
            };
            let sleeper = self.parked.remove(at);
            let now = self.fabric.now;
            let (cost, latency) = match &mut self.hosting {
                Some(hosting) => hosting.kick(sleeper.cpu, c, now),
                None => {
                    let times = &self.fabric.model.thread_times;
                    if now < sleeper.since + times.leave {
                        (times.wake_busy_cost, times.wake_busy_cost + times.enter)
                    } else {
                        (times.wake_cost, times.wake_latency + times.enter)
                    }
                }
            };
            self.fabric
                .queue
                .push(now + latency, Event::Wake(sleeper.cpu));
            self.cpus[c].lag += cost.saturating_sub(op.b);
            woken += 1;
        }
        woken
    }

    /// The time for which `c` sleeps is over. If it is not in the list, it has been woken already.
    fn end_sleep(&mut self, c: usize) {
        let Some(at) = self.parked.iter().position(|p| usize::from(p.cpu) == c) else {
            return;
        };
        self.parked.remove(at);
        self.fabric
            .queue
            .push(self.fabric.now, Event::Wake(c as u16));
    }

    fn time_out(&mut self, c: usize, generation: u32) {
        let cpu = &mut self.cpus[c];
        if cpu.generation == generation && cpu.state == State::Parked {
            self.end_sleep(c);
            return;
        }
        // While the line is on its way, its arrival ends the wait.
        if cpu.generation != generation || cpu.state != State::Waiting {
            return;
        }
        cpu.lag = cpu.core(&self.fabric).spin_exit;
        let line = line::find(&mut self.lines, cpu.op.address);
        line.waiters.retain(|&w| usize::from(w) != c);
        let value = line.read(cpu.op.address, cpu.op.size);
        self.complete(c, value);
    }

    /// Handles the arrival of a line that `c` has requested.
    fn arrive(&mut self, c: usize, slot: u8, number: usize) {
        let cpu = &mut self.cpus[c];
        cpu.requests.end(slot);
        let line = &mut self.lines[number];
        line.cached = true;
        if !line.is_busy() {
            line.readers -= 1;
            line.share(cpu.number(), cpu.llcs());
        } else if !line.writing {
            line.lose_at = u64::MAX;
            line.share(cpu.number(), cpu.llcs());
        } else {
            let lost_at = std::mem::replace(&mut line.lose_at, u64::MAX);
            line.own(cpu.number(), cpu.llcs());
            if !line.waiters.is_empty() {
                self.invalidate_waiters(c, number, lost_at);
            }
        }

        let fabric = &mut self.fabric;
        let cpu = &mut self.cpus[c];
        let line = &mut self.lines[number];
        if cpu.state == State::Missing && line_of(cpu.op.address) == number {
            let op = cpu.op;
            if !line.hits(cpu.number(), op.kind.writes(), fabric.now) {
                fabric.ask(&mut cpu.requests, line, op.kind.writes());
            } else if let Some(result) = cpu.perform(fabric, line, &op, true) {
                self.complete(c, result);
            } else {
                cpu.wait_for_change(fabric, line, &mut self.parked, &op);
                if self.hosting.is_some() && cpu.state == State::Parked {
                    self.hosted_wait(c, op.kind);
                }
            }
        }
        let fabric = &mut self.fabric;
        let cpu = &self.cpus[c];
        let line = &mut self.lines[number];
        if cpu.buffer.is_empty() {
            fabric.serve(line);
        } else {
            self.advance_buffer(c, number);
            self.fabric.serve(&mut self.lines[number]);
        }
    }

    /// Makes waiters request the line again. They lost their copies when the writer was served, at
    /// `lost_at`, and sent the request at that moment.
    fn invalidate_waiters(&mut self, writer: usize, number: usize, lost_at: u64) {
        let line = &mut self.lines[number];
        for i in 0..line.waiters.len() {
            let waiter = usize::from(line.waiters[i]);
            if waiter != writer {
                let cpu = &mut self.cpus[waiter];
                cpu.state = State::Missing;
                self.fabric.ask_again(&mut cpu.requests, line, lost_at);
            }
        }
        line.waiters.retain(|&w| usize::from(w) == writer);
    }

    /// Continues the buffer of `c` with a line that has arrived, and then its operation if it can.
    fn advance_buffer(&mut self, c: usize, number: usize) {
        let fabric = &mut self.fabric;
        let cpu = &mut self.cpus[c];
        cpu.advance_buffer(fabric, &mut self.lines, number);
        match cpu.state {
            State::Draining | State::BufferFull => self.start_and_resume(c),
            State::Stalled if !cpu.buffer.has_loads() => {
                let at = fabric.now.max(cpu.window_end) + cpu.work_left;
                if cpu.preempted {
                    cpu.state = State::Starting;
                    cpu.work_left = at - fabric.now;
                } else {
                    cpu.start_at(fabric, at);
                }
            }
            _ => {}
        }
    }

    /// The value that an operation would read.
    fn peek(&self, op: &Op) -> u64 {
        self.lines
            .get(line_of(op.address))
            .map_or(0, |l| l.read(op.address, op.size.max(1)))
    }
}
