//! A CPU: its operation, and its loads and stores in flight.

use lockworks_machine::MemoryOrder;

use crate::event_queue::Event;
use crate::model::{CoreTimes, Model};

use super::buffer::{Buffer, Entry};
use super::fabric::Fabric;
use super::line::Line;
use super::op::{Kind, Op};
use super::requests::Requests;

/// The activity of a CPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum State {
    /// The CPU runs code, or is about to.
    Running,
    /// The CPU's operation starts at a later event.
    Starting,
    /// The reorder buffer is full behind a load; `work_left` comes before the operation.
    Stalled,
    /// The CPU waits for its buffer to drain before the operation.
    Draining,
    /// The CPU waits for a place in the buffer.
    BufferFull,
    /// The CPU waits for the operation's line.
    Missing,
    /// The CPU has the line, and waits for its value to change.
    Waiting,
    /// The CPU is parked.
    Parked,
    /// The runner's operation is complete, but the runner has lost its CPU to another.
    Held,
    /// The CPU's code has returned.
    Finished,
}

/// A simulated CPU. The fields that are needed most often come first, so that most events touch one
/// or two of its cache lines.
#[repr(C, align(64))]
pub(super) struct Cpu {
    /// The number of the CPU's current operation. Timeouts with another number are outdated.
    pub(super) generation: u32,
    pub(super) state: State,
    llcs: u64,
    core_type: u8,
    /// Whether another runner has its CPU.
    pub(super) preempted: bool,
    /// Work done since `now` that no other CPU can have noticed.
    pub(super) lag: u64,
    pub(super) result: u64,
    pub(super) op: Op,
    pub(super) requests: Requests,
    pub(super) buffer: Buffer,
    /// The time up to which execution may run ahead of the oldest incomplete load.
    pub(super) window_end: u64,
    pub(super) work_left: u64,
    pub(super) deadline: u64,
    /// The time at which the operation starts.
    pub(super) start_at: u64,
}

impl Cpu {
    pub(super) fn new(number: u16, model: &Model) -> Self {
        Self {
            generation: 0,
            state: State::Running,
            llcs: model.llc_set(number),
            core_type: model.core_type(number),
            preempted: false,
            lag: 0,
            result: 0,
            op: Op::new(Kind::Fence, 0, 0),
            requests: Requests::new(number),
            buffer: Buffer::default(),
            window_end: 0,
            work_left: 0,
            deadline: 0,
            start_at: 0,
        }
    }

    #[inline]
    pub(super) fn number(&self) -> u16 {
        self.requests.cpu
    }

    /// Its last-level cache, as a set. Empty: there are too many to name them so.
    #[inline]
    pub(super) fn llcs(&self) -> u64 {
        self.llcs
    }

    /// Takes over the CPU of the machine that the model has for this CPU now.
    pub(super) fn move_to_machine_cpu(&mut self, model: &Model) {
        self.llcs = model.llc_set(self.number());
        self.core_type = model.core_type(self.number());
    }

    /// The times of its core.
    #[inline]
    pub(super) fn core<'a>(&self, fabric: &'a Fabric) -> &'a CoreTimes {
        fabric.model.core(self.core_type)
    }

    // Operations.

    /// Makes the CPU start its operation at the time `at`.
    #[inline]
    pub(super) fn start_at(&mut self, fabric: &mut Fabric, at: u64) {
        self.state = State::Starting;
        self.start_at = at;
        fabric
            .queue
            .push(at, Event::Start(self.number(), self.generation));
    }

    /// Decides whether an operation that the CPU waits for must wait for the buffer first.
    #[inline]
    pub(super) fn pass_buffer(&self, fabric: &Fabric, op: &Op) -> Pass {
        if self.buffer.is_empty() {
            return Pass::Go;
        }
        let overlap = self.buffer.overlap(op.address, op.size);
        if op.kind == Kind::Load
            && let Some(value) = overlap.and_then(|e| e.forward(op.address, op.size))
        {
            return Pass::Forward(value);
        }
        let ordered = op.kind.writes() && (fabric.model.order == MemoryOrder::Tso || op.release);
        if ordered || overlap.is_some() {
            Pass::Drain
        } else {
            Pass::Go
        }
    }

    /// Performs an operation on its line, which is here. Returns the result, or `None` if the
    /// operation waits for the value to change.
    #[inline(always)]
    pub(super) fn perform(
        &mut self,
        fabric: &Fabric,
        line: &mut Line,
        op: &Op,
        waited: bool,
    ) -> Option<u64> {
        let core = self.core(fabric);
        let old = line.read(op.address, op.size);
        let (cost, new) = match op.kind {
            Kind::Load => (if waited { core.l1 } else { core.store }, None),
            Kind::Exchange => (core.rmw, Some(op.a)),
            Kind::CompareExchange => (core.rmw, (old == op.a).then_some(op.b)),
            Kind::Or => (core.rmw, Some(old | op.a)),
            Kind::And => (core.rmw, Some(old & op.a)),
            Kind::Add => (core.rmw, Some(old.wrapping_add(op.a))),
            Kind::Await => {
                let late = waited && op.polls > 0 && fabric.now >= self.deadline;
                if !op.satisfied(old) && !late {
                    return None;
                }
                (core.l1 + if waited { core.spin_exit } else { 0 }, None)
            }
            Kind::Park => {
                if old == op.a {
                    return None;
                }
                self.lag = core.l1;
                line.hold(fabric.now + core.l1);
                return Some(1);
            }
            Kind::Store
            | Kind::Touch
            | Kind::Prefetch
            | Kind::Fence
            | Kind::Pause
            | Kind::Unpark
            | Kind::Sleep => {
                unreachable!("handled when started")
            }
        };
        if let Some(new) = new {
            line.write(op.address, op.size, new);
        }
        self.lag = cost;
        line.hold(fabric.now + cost.min(core.rmw));
        Some(old)
    }

    #[inline(always)]
    pub(super) fn store(&mut self, fabric: &mut Fabric, line: &mut Line, op: &Op) -> Option<u64> {
        let hits = line.hits(self.number(), true, fabric.now);
        if self.buffer.is_empty() && hits {
            line.write(op.address, op.size, op.a);
            self.lag = self.core(fabric).store;
            return Some(0);
        }
        self.buffer(fabric, line, op)?;
        // A store asks for its line once it has retired, behind every earlier load.
        if !hits && !self.buffer.has_loads() {
            fabric.want(&mut self.requests, line, true);
        }
        Some(0)
    }

    #[inline(always)]
    pub(super) fn touch(&mut self, fabric: &mut Fabric, line: &mut Line, op: &Op) -> Option<u64> {
        let own = self.buffer.overlap(op.address, op.size);
        let value = own
            .and_then(|e| e.forward(op.address, op.size))
            .unwrap_or_else(|| line.read(op.address, op.size));
        if line.hits(self.number(), false, fabric.now)
            || self.buffer.is_loading(line.number as usize)
        {
            self.lag = self.core(fabric).store;
            return Some(value);
        }
        let oldest = !self.buffer.has_loads();
        self.buffer(fabric, line, op)?;
        if oldest {
            self.window_end = fabric.now + self.core(fabric).reorder_window;
        }
        fabric.want(&mut self.requests, line, false);
        Some(value)
    }

    /// Puts a store or a load into the buffer, if there is room.
    #[inline]
    fn buffer(&mut self, fabric: &Fabric, line: &Line, op: &Op) -> Option<()> {
        if self.buffer.is_full() {
            self.state = State::BufferFull;
            return None;
        }
        self.lag = self.core(fabric).store;
        let entry = Entry {
            value: op.a,
            address: op.address as u32,
            size: op.size,
            release: op.release,
        };
        self.buffer.push(entry, line.number, op.kind == Kind::Store);
        Some(())
    }

    /// Waits for the operation's line. If the line is here, waits for its value to change.
    #[inline]
    pub(super) fn wait(
        &mut self,
        fabric: &mut Fabric,
        line: &mut Line,
        parked: &mut Vec<Sleeper>,
        op: &Op,
        here: bool,
    ) {
        if op.polls > 0 {
            self.deadline = fabric.now + u64::from(op.polls) * self.core(fabric).look;
            fabric.queue.push(
                self.deadline,
                Event::Timeout(self.number(), self.generation),
            );
        }
        if here {
            self.wait_for_change(fabric, line, parked, op);
        } else {
            self.state = State::Missing;
            fabric.want(&mut self.requests, line, op.kind.writes());
        }
    }

    #[inline]
    pub(super) fn wait_for_change(
        &mut self,
        fabric: &mut Fabric,
        line: &mut Line,
        parked: &mut Vec<Sleeper>,
        op: &Op,
    ) {
        if op.kind == Kind::Park {
            self.state = State::Parked;
            parked.push(Sleeper {
                address: op.address,
                cpu: self.number(),
                since: fabric.now,
            });
            if op.b > 0 {
                let timeout = Event::Timeout(self.number(), self.generation);
                fabric.queue.push(fabric.now + op.b, timeout);
            }
        } else {
            self.state = State::Waiting;
            line.waiters.push(self.number());
        }
    }

    /// Completes the operation, so that the code that issued it can continue.
    #[inline]
    pub(super) fn complete(&mut self, result: u64) {
        self.state = State::Running;
        self.result = result;
        self.generation = self.generation.wrapping_add(1);
    }

    // The buffer.

    /// Handles the arrival of a line: completes loads of it, retires and commits stores.
    #[inline]
    pub(super) fn advance_buffer(&mut self, fabric: &mut Fabric, lines: &mut [Line], line: usize) {
        if self.buffer.complete_loads(line) {
            // Stores that have retired ask for their lines.
            for index in self.buffer.retired() {
                let line = &mut lines[self.buffer.line(index)];
                if !line.hits(self.number(), true, fabric.now) {
                    fabric.want(&mut self.requests, line, true);
                }
            }
        }
        while let Some(index) = self.buffer.first_store() {
            let line = &mut lines[self.buffer.line(index)];
            if !line.hits(self.number(), true, fabric.now) {
                fabric.want(&mut self.requests, line, true);
                break;
            }
            self.commit(line, index);
            line.hold_until = fabric.now + self.core(fabric).store;
        }
        if fabric.model.order == MemoryOrder::Weak {
            self.commit_out_of_order(fabric, lines);
        }
    }

    #[inline]
    fn commit(&mut self, line: &mut Line, index: usize) {
        let e = self.buffer.entry(index);
        line.write(e.address(), e.size, e.value);
        self.buffer.complete_store(index);
    }

    fn commit_out_of_order(&mut self, fabric: &Fabric, lines: &mut [Line]) {
        for i in 0..self.buffer.len() {
            if self.buffer.is_load(i) {
                break; // what follows has not retired
            }
            if let Some(index) = self.buffer.independent_store(i) {
                let line = &mut lines[self.buffer.line(index)];
                if line.hits(self.number(), true, fabric.now) {
                    self.commit(line, index);
                }
            }
        }
    }
}

/// A CPU that is parked.
pub(super) struct Sleeper {
    /// The address on which it is parked.
    pub(super) address: usize,
    pub(super) cpu: u16,
    pub(super) since: u64,
}

/// The result of [`Cpu::pass_buffer`].
pub(super) enum Pass {
    /// The operation can go on.
    Go,
    /// The value is in the buffer.
    Forward(u64),
    /// The buffer has to become empty first.
    Drain,
}
