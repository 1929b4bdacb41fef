//! The machine: CPUs, their store buffers, and cache lines that travel between them.
//!
//! Time is in picoseconds. A CPU runs real code in a coroutine; each access of that code to
//! simulated memory is an [`Op`]. The model:
//!
//! * A line is owned by one CPU, shared by several, or in no cache. One exclusive transaction at a
//!   time; requests queue at the line in the order of their arrival. A request has a way to go
//!   before it is served and another for the data to come back, so that a spinner's next request
//!   overlaps with the writer that invalidated its copy. An owner keeps a line for as long as the
//!   access it came for takes.
//! * Loads whose value decides what comes next stall the CPU. Loads of plain data do not: they wait
//!   in the same in-order buffer as stores, and execution goes on for as long as the reorder buffer
//!   reaches.
//! * Stores retire in order behind such loads, then ask for their line at once, and become visible
//!   in order (total store order) or as their lines come, unless they release (weak order).
//! * Atomic read-modify-writes wait until the buffer is empty (total store order), or if they
//!   release (weak order).

use lockworks_machine::MemoryOrder;

use crate::event_queue::{Event, EventQueue};
use crate::model::Model;

const NOBODY: u16 = u16::MAX;
/// Loads and stores in flight of one CPU.
const BUFFER: usize = 8;
const LINE: usize = 64;

/// Kinds of operation that simulated code asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// Load, stalling until the value is there.
    Load,
    /// Load of plain data, not waited for.
    Touch,
    /// Store through the buffer.
    Store,
    /// Exchange.
    Exchange,
    /// Compare `a`, and if equal store `b`.
    CompareExchange,
    /// Or.
    Or,
    /// And.
    And,
    /// Add.
    Add,
    /// Wait until `(value & a) == b`, or `!=` if not `equal`; for so many `looks` if not 0.
    Await,
    /// Ask for ownership, do not wait.
    Prefetch,
    /// Wait until the buffer is empty.
    Fence,
    /// Sleep if the value is `a`.
    Park,
    /// Wake up to `a` sleepers.
    Unpark,
}

impl Kind {
    fn writes(self) -> bool {
        matches!(
            self,
            Self::Store
                | Self::Exchange
                | Self::CompareExchange
                | Self::Or
                | Self::And
                | Self::Add
                | Self::Prefetch
        )
    }
}

/// One operation of simulated code.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Op {
    pub(crate) address: usize,
    pub(crate) a: u64,
    pub(crate) b: u64,
    pub(crate) looks: u32,
    pub(crate) kind: Kind,
    pub(crate) size: u8,
    pub(crate) release: bool,
    pub(crate) equal: bool,
}

impl Op {
    pub(crate) fn new(kind: Kind, address: usize, size: u32) -> Self {
        Self {
            kind,
            address,
            size: size as u8,
            release: false,
            equal: true,
            a: 0,
            b: 0,
            looks: 0,
        }
    }

    fn overlaps(&self, entry: &Entry) -> bool {
        entry.address < self.address + self.size as usize
            && self.address < entry.address + entry.size as usize
    }

    fn satisfied(&self, value: u64) -> bool {
        ((value & self.a) == self.b) == self.equal
    }
}

/// What a CPU is doing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// Running code, or about to.
    Running,
    /// Its operation starts at a later event.
    Starting,
    /// The reorder buffer is full behind a load; so much work is left before the operation.
    Stalled(u64),
    /// Waits for its buffer to drain before the operation.
    Draining,
    /// Waits for a place in the buffer.
    BufferFull,
    /// Waits for the operation's line.
    Missing,
    /// Has the line, and waits for its value to change.
    Waiting,
    /// Sleeps until unparked.
    Parked,
    /// Has returned.
    Finished,
}

/// A buffered store, or a load that nobody waits for.
#[derive(Clone, Copy, Default)]
struct Entry {
    address: usize,
    value: u64,
    line: u32,
    size: u8,
    is_store: bool,
    release: bool,
    done: bool,
}

/// The in-order buffer of a CPU: a ring.
struct Buffer {
    entries: [Entry; BUFFER],
    first: usize,
    len: usize,
}

impl Buffer {
    #[inline]
    fn get(&self, i: usize) -> &Entry {
        &self.entries[(self.first + i) % BUFFER]
    }

    #[inline]
    fn get_mut(&mut self, i: usize) -> &mut Entry {
        &mut self.entries[(self.first + i) % BUFFER]
    }

    #[inline]
    fn push(&mut self, entry: Entry) {
        self.len += 1;
        *self.get_mut(self.len - 1) = entry;
    }

    #[inline]
    fn pop(&mut self) {
        self.first = (self.first + 1) % BUFFER;
        self.len -= 1;
    }

    /// The latest store not yet done that `op` overlaps with.
    fn overlap(&self, op: &Op) -> Option<&Entry> {
        (0..self.len)
            .rev()
            .map(|i| self.get(i))
            .find(|e| e.is_store && !e.done && op.overlaps(e))
    }

    /// Is there a store to, or a load of, this line that is not yet done?
    fn any(&self, up_to: usize, line: u32, is_store: bool) -> bool {
        (0..up_to)
            .map(|i| self.get(i))
            .any(|e| !e.done && e.is_store == is_store && e.line == line)
    }
}

struct Cpu {
    state: State,
    op: Op,
    result: u64,
    /// Work done since `now` that no other CPU can have noticed.
    lag: u64,
    deadline: u64,
    generation: u32,
    buffer: Buffer,
    loads: u32,
    /// How far execution may run ahead of its oldest incomplete load.
    window_end: u64,
    /// Lines asked for and not yet there; the slot is the place in the request number.
    asked: [u32; 16],
    asked_slots: u16,
}

struct Request {
    arrival: u64,
    issued: u64,
    id: u32,
    write: bool,
}

struct Line {
    owner: u16,
    home: u16,
    busy: bool,
    writing: bool,
    cached: bool,
    readers: u16,
    /// How many CPUs share the line, and under which last-level caches.
    sharing: u16,
    sharing_llcs: u64,
    serving: u32,
    /// When the request in service takes the line from those who have it.
    lose_at: u64,
    hold_until: u64,
    read_free: u64,
    requests: Vec<Request>,
    waiters: Vec<u16>,
}

/// A named piece of simulated memory, for reports.
struct Label {
    name: String,
    start: usize,
    end: usize,
}

/// What the engine itself did, for benchmarks and repeatability checks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct EngineCounts {
    /// Events handled.
    pub events: u64,
    /// Operations of simulated code.
    pub operations: u64,
    /// Line transfers.
    pub transfers: u64,
}

pub(crate) struct Engine {
    model: Model,
    pub(crate) now: u64,
    end: u64,
    queue: EventQueue,
    cpus: Vec<Cpu>,
    lines: Vec<Line>,
    sharers: Vec<u64>,
    request_line: Vec<u32>,
    parked: Vec<(usize, u16)>,
    memory: Box<[u64]>,
    base: usize,
    used: usize,
    labels: Vec<Label>,
    pub(crate) current: usize,
    runnable: Option<usize>,
    random: u64,
    /// What the driver is to do now.
    pub(crate) next: Step,
    pub(crate) counts: EngineCounts,
}

/// What the driver is to do next.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Step {
    /// Resume this CPU's coroutine.
    Resume(usize),
    /// Virtual time is over, or every CPU has finished.
    End,
    /// Nothing can ever happen again, though CPUs are blocked.
    Deadlock,
}

impl Engine {
    pub(crate) fn new(model: Model, end: u64, capacity: usize, seed: u64) -> Self {
        let cpus = (0..model.cpus())
            .map(|_| Cpu {
                state: State::Running,
                op: Op::new(Kind::Fence, 0, 0),
                result: 0,
                lag: 0,
                deadline: 0,
                generation: 0,
                buffer: Buffer {
                    entries: [Entry::default(); BUFFER],
                    first: 0,
                    len: 0,
                },
                loads: 0,
                window_end: 0,
                asked: [0; 16],
                asked_slots: 0,
            })
            .collect::<Vec<_>>();
        let memory = vec![0u64; capacity / 8 + LINE / 8].into_boxed_slice();
        let base = (memory.as_ptr() as usize).next_multiple_of(LINE);
        let mut queue = EventQueue::new();
        for cpu in 0..cpus.len() {
            queue.push(0, Event::Wake(cpu as u16));
        }
        Self {
            now: 0,
            end,
            queue,
            request_line: vec![0; cpus.len() * 16],
            cpus,
            lines: Vec::new(),
            sharers: Vec::new(),
            parked: Vec::new(),
            memory,
            base,
            used: 0,
            labels: Vec::new(),
            current: 0,
            runnable: None,
            random: 0x9e37_79b9_7f4a_7c15 ^ seed,
            next: Step::End,
            counts: EngineCounts::default(),
            model,
        }
    }

    pub(crate) fn model(&self) -> &Model {
        &self.model
    }

    /// Zeroed memory on lines of its own, whose home is `node`.
    pub(crate) fn allocate(&mut self, name: impl Into<String>, bytes: usize, node: u16) -> usize {
        let start = self.base + self.used;
        let size = bytes.max(1).next_multiple_of(LINE);
        self.used += size;
        assert!(
            self.base + self.used <= self.memory.as_ptr() as usize + self.memory.len() * 8,
            "simulated memory is full"
        );
        for _ in 0..size / LINE {
            self.lines.push(Line {
                owner: NOBODY,
                home: node,
                busy: false,
                writing: false,
                cached: false,
                readers: 0,
                sharing: 0,
                sharing_llcs: 0,
                serving: 0,
                lose_at: 0,
                hold_until: 0,
                read_free: 0,
                requests: Vec::new(),
                waiters: Vec::new(),
            });
            self.sharers
                .extend(std::iter::repeat_n(0, self.model.words()));
        }
        self.labels.push(Label {
            name: name.into(),
            start,
            end: start + size,
        });
        start
    }

    /// The current CPU works for so long without touching shared memory.
    #[inline]
    pub(crate) fn work(&mut self, picoseconds: u64) {
        self.cpus[self.current].lag += picoseconds;
    }

    /// Virtual time as the current CPU sees it.
    #[inline]
    pub(crate) fn time(&self) -> u64 {
        self.now + self.cpus[self.current].lag
    }

    /// The current CPU's code asks for `op`: its result, or `None` if the CPU has to be suspended
    /// until the driver resumes it, with the result in [`Engine::result`].
    #[inline]
    pub(crate) fn issue(&mut self, op: Op) -> Option<u64> {
        self.counts.operations += 1;
        let c = self.current;
        let cpu = &mut self.cpus[c];
        let at = self.now + std::mem::take(&mut cpu.lag);
        cpu.op = op;
        if cpu.loads > 0 && at > cpu.window_end {
            cpu.state = State::Stalled(at - cpu.window_end.max(self.now));
        } else if at >= self.queue.next_time() || at >= self.end {
            cpu.state = State::Starting;
            self.queue.push(at, Event::Start(c as u16));
        } else {
            self.now = at;
            if let Some(result) = self.start(c) {
                return Some(result);
            }
        }
        // Often this CPU is also the next to run.
        self.advance();
        match self.next {
            Step::Resume(next) if next == c => Some(self.result()),
            _ => None,
        }
    }

    #[inline]
    pub(crate) fn result(&self) -> u64 {
        self.cpus[self.current].result
    }

    /// The current CPU's code has returned.
    pub(crate) fn finish_current(&mut self) {
        self.cpus[self.current].state = State::Finished;
        self.advance();
    }

    /// Advances virtual time to where some CPU's code has to run; what that is, is in `next`.
    pub(crate) fn advance(&mut self) {
        loop {
            if let Some(c) = self.runnable.take() {
                self.current = c;
                self.next = Step::Resume(c);
                return;
            }
            let Some((time, event)) = self.queue.pop() else {
                let stuck = self.cpus.iter().any(|c| c.state != State::Finished);
                self.next = if stuck { Step::Deadlock } else { Step::End };
                return;
            };
            if time >= self.end {
                self.next = Step::End;
                return;
            }
            self.now = time;
            self.counts.events += 1;
            match event {
                Event::Start(c) => self.start_and_resume(c as usize),
                Event::Arrival(id) => self.arrive(id),
                Event::Timeout(c, generation) => self.time_out(c as usize, generation),
                Event::Wake(c) => self.complete(c as usize, 0, 0),
            }
        }
    }

    #[inline]
    fn line_of(&self, address: usize) -> usize {
        (address - self.base) / LINE
    }

    #[inline]
    fn shares(&self, line: usize, c: usize) -> bool {
        self.sharers[line * self.model.words() + c / 64] >> (c % 64) & 1 != 0
    }

    /// May `c` access the line right now without a transaction?
    #[inline]
    fn hits(&self, c: usize, line: usize, write: bool) -> bool {
        let l = &self.lines[line];
        let being_taken = l.busy && self.now >= l.lose_at;
        if l.owner as usize == c {
            return !(being_taken && (l.writing || write));
        }
        !write && self.shares(line, c) && !(being_taken && l.writing)
    }

    /// Starts the CPU's operation at `now`; its result if it needs no waiting.
    fn start(&mut self, c: usize) -> Option<u64> {
        let op = self.cpus[c].op;
        match op.kind {
            Kind::Store | Kind::Touch => return self.start_buffered(c, op),
            Kind::Fence => {
                if self.cpus[c].buffer.len == 0 {
                    return Some(0);
                }
                self.cpus[c].state = State::Draining;
                return None;
            }
            Kind::Prefetch => {
                let line = self.line_of(op.address);
                if !self.hits(c, line, true) && !self.has_asked(c, line) {
                    self.ask(c, line, true, self.now);
                }
                self.cpus[c].lag += self.model.store;
                return Some(0);
            }
            Kind::Unpark => return Some(self.unpark(c, op)),
            _ => {}
        }

        let buffer = &self.cpus[c].buffer;
        if buffer.len > 0 {
            let overlap = buffer.overlap(&op);
            if let (Kind::Load, Some(e)) = (op.kind, overlap)
                && e.address <= op.address
                && op.address + op.size as usize <= e.address + e.size as usize
            {
                let shifted = e.value >> ((op.address - e.address) * 8);
                self.cpus[c].lag += self.model.l1;
                return Some(shifted & (u64::MAX >> (64 - op.size as u32 * 8)));
            }
            let ordered = op.kind.writes() && (self.model.order == MemoryOrder::Tso || op.release);
            if ordered || overlap.is_some() {
                self.cpus[c].state = State::Draining;
                return None;
            }
        }

        if op.looks > 0 {
            let cpu = &mut self.cpus[c];
            cpu.deadline = self.now + u64::from(op.looks) * self.model.look;
            self.queue
                .push(cpu.deadline, Event::Timeout(c as u16, cpu.generation));
        }
        let line = self.line_of(op.address);
        if self.hits(c, line, op.kind.writes()) {
            let (result, cost) = self.perform(c, line)?;
            self.cpus[c].lag += cost;
            return Some(result);
        }
        self.cpus[c].state = State::Missing;
        if !self.has_asked(c, line) {
            self.ask(c, line, op.kind.writes(), self.now);
        }
        None
    }

    fn start_and_resume(&mut self, c: usize) {
        if let Some(result) = self.start(c) {
            let cpu = &mut self.cpus[c];
            let cost = std::mem::take(&mut cpu.lag);
            self.complete(c, result, cost);
        }
    }

    /// The CPU's code goes on with `result`, having worked for `cost` more.
    fn complete(&mut self, c: usize, result: u64, cost: u64) {
        let cpu = &mut self.cpus[c];
        cpu.state = State::Running;
        cpu.result = result;
        cpu.lag = cost;
        cpu.generation = cpu.generation.wrapping_add(1);
        debug_assert!(self.runnable.is_none());
        self.runnable = Some(c);
    }

    /// The operation's line is here: result and cost, or `None` if it goes on waiting.
    fn perform(&mut self, c: usize, line: usize) -> Option<(u64, u64)> {
        let op = self.cpus[c].op;
        let old = self.read(op.address, op.size);
        let mut cost = self.model.rmw;
        match op.kind {
            Kind::Load => cost = self.model.l1,
            Kind::Exchange => self.write(op.address, op.size, op.a),
            Kind::CompareExchange => {
                if old == op.a {
                    self.write(op.address, op.size, op.b);
                }
            }
            Kind::Or => self.write(op.address, op.size, old | op.a),
            Kind::And => self.write(op.address, op.size, old & op.a),
            Kind::Add => self.write(op.address, op.size, old.wrapping_add(op.a)),
            Kind::Await => {
                let late = op.looks > 0 && self.now >= self.cpus[c].deadline;
                let waited = self.cpus[c].state == State::Missing;
                if op.satisfied(old) || late {
                    cost = self.model.l1 + if waited { self.model.spin_exit } else { 0 };
                } else {
                    self.cpus[c].state = State::Waiting;
                    self.lines[line].waiters.push(c as u16);
                    return None;
                }
            }
            Kind::Park => {
                if old == op.a {
                    self.cpus[c].state = State::Parked;
                    self.parked.push((op.address, c as u16));
                    return None;
                }
                cost = self.model.l1;
            }
            Kind::Store | Kind::Touch | Kind::Prefetch | Kind::Fence | Kind::Unpark => {
                unreachable!("handled when started")
            }
        }
        let l = &mut self.lines[line];
        l.hold_until = l.hold_until.max(self.now + cost.min(self.model.rmw));
        Some((old, cost))
    }

    fn unpark(&mut self, c: usize, op: Op) -> u64 {
        let mut woken = 0;
        while woken < op.a {
            let Some(at) = self.parked.iter().position(|p| p.0 == op.address) else {
                break;
            };
            let (_, sleeper) = self.parked.remove(at);
            self.queue
                .push(self.now + self.model.wake_latency, Event::Wake(sleeper));
            self.cpus[c].lag += self.model.wake_cost;
            woken += 1;
        }
        woken
    }

    fn time_out(&mut self, c: usize, generation: u32) {
        let cpu = &self.cpus[c];
        // While the line is on its way, its arrival ends the wait.
        if cpu.generation != generation || cpu.state != State::Waiting {
            return;
        }
        let op = cpu.op;
        let line = self.line_of(op.address);
        self.lines[line].waiters.retain(|&w| w as usize != c);
        let value = self.read(op.address, op.size);
        self.complete(c, value, self.model.spin_exit);
    }

    // The buffer.

    fn start_buffered(&mut self, c: usize, op: Op) -> Option<u64> {
        let line = self.line_of(op.address);
        let is_store = op.kind == Kind::Store;
        let value = if is_store {
            0
        } else {
            self.read(op.address, op.size)
        };
        if is_store {
            if self.cpus[c].buffer.len == 0 && self.hits(c, line, true) {
                self.write(op.address, op.size, op.a);
                self.cpus[c].lag += self.model.store;
                return Some(0);
            }
        } else {
            let buffer = &self.cpus[c].buffer;
            if self.hits(c, line, false) || buffer.any(buffer.len, line as u32, false) {
                self.cpus[c].lag += self.model.store;
                return Some(value);
            }
        }
        if self.cpus[c].buffer.len == BUFFER {
            self.cpus[c].state = State::BufferFull;
            return None;
        }
        let cpu = &mut self.cpus[c];
        cpu.buffer.push(Entry {
            address: op.address,
            value: op.a,
            line: line as u32,
            size: op.size,
            is_store,
            release: op.release,
            done: false,
        });
        cpu.lag += self.model.store;
        if is_store {
            // A store asks for its line once it has retired, behind every earlier load.
            if cpu.loads == 0 && !self.hits(c, line, true) && !self.has_asked(c, line) {
                self.ask(c, line, true, self.now);
            }
        } else {
            if cpu.loads == 0 {
                cpu.window_end = self.now + self.model.reorder_window;
            }
            cpu.loads += 1;
            if !self.has_asked(c, line) {
                self.ask(c, line, false, self.now);
            }
        }
        Some(value)
    }

    /// A line has come for `c`: complete loads of it, retire and commit stores.
    fn advance_buffer(&mut self, c: usize, line: usize) {
        let cpu = &mut self.cpus[c];
        if cpu.buffer.len == 0 {
            return;
        }
        if cpu.loads > 0 {
            let mut completed = 0;
            for i in 0..cpu.buffer.len {
                let e = cpu.buffer.get_mut(i);
                if !e.is_store && !e.done && e.line as usize == line {
                    e.done = true;
                    completed += 1;
                }
            }
            if completed > 0 {
                cpu.loads -= completed;
                self.retire(c);
            }
        }
        self.commit(c);
    }

    /// Stores up to the first incomplete load have retired: they ask for their lines.
    fn retire(&mut self, c: usize) {
        for i in 0..self.cpus[c].buffer.len {
            let e = *self.cpus[c].buffer.get(i);
            if !e.is_store {
                if !e.done {
                    break;
                }
                continue;
            }
            let line = e.line as usize;
            if !e.done && !self.hits(c, line, true) && !self.has_asked(c, line) {
                self.ask(c, line, true, self.now);
            }
        }
    }

    fn commit(&mut self, c: usize) {
        while self.cpus[c].buffer.len > 0 {
            let e = *self.cpus[c].buffer.get(0);
            let line = e.line as usize;
            if !e.done {
                if !e.is_store {
                    break;
                }
                if !self.hits(c, line, true) {
                    if !self.has_asked(c, line) {
                        self.ask(c, line, true, self.now);
                    }
                    break;
                }
                self.write(e.address, e.size, e.value);
                self.lines[line].hold_until = self.now + self.model.store;
            }
            self.cpus[c].buffer.pop();
        }
        if self.model.order == MemoryOrder::Weak {
            self.commit_out_of_order(c);
        }
        match self.cpus[c].state {
            State::Draining | State::BufferFull => self.start_and_resume(c),
            State::Stalled(left) if self.cpus[c].loads == 0 => {
                self.cpus[c].state = State::Starting;
                let at = self.now.max(self.cpus[c].window_end) + left;
                self.queue.push(at, Event::Start(c as u16));
            }
            _ => {}
        }
    }

    /// Weak order: relaxed stores need not wait for others, except for those to the same line.
    fn commit_out_of_order(&mut self, c: usize) {
        for i in 1..self.cpus[c].buffer.len {
            let e = *self.cpus[c].buffer.get(i);
            let line = e.line as usize;
            if !e.is_store && !e.done {
                break; // not retired yet
            }
            if e.done
                || e.release
                || !self.hits(c, line, true)
                || self.cpus[c].buffer.any(i, e.line, true)
            {
                continue;
            }
            self.write(e.address, e.size, e.value);
            self.cpus[c].buffer.get_mut(i).done = true;
        }
    }

    // Lines.

    #[inline]
    fn has_asked(&self, c: usize, line: usize) -> bool {
        let cpu = &self.cpus[c];
        let mut slots = cpu.asked_slots;
        while slots != 0 {
            if cpu.asked[slots.trailing_zeros() as usize] as usize == line {
                return true;
            }
            slots &= slots - 1;
        }
        false
    }

    fn ask(&mut self, c: usize, line: usize, write: bool, issued: u64) {
        self.counts.transfers += 1;
        let cpu = &mut self.cpus[c];
        let slot = cpu.asked_slots.trailing_ones() as usize;
        cpu.asked_slots |= 1 << slot;
        cpu.asked[slot] = line as u32;
        let id = (c * 16 + slot) as u32;
        self.request_line[id as usize] = line as u32;
        let l = &self.lines[line];
        let way = if l.owner == NOBODY {
            0
        } else {
            self.model
                .request_leg(self.model.transfer(c, l.owner as usize, l.home))
        };
        self.lines[line].requests.push(Request {
            arrival: issued + way,
            issued,
            id,
            write,
        });
        self.serve(line);
    }

    /// Serves the requests that can be served, in the order of their arrival.
    fn serve(&mut self, line: usize) {
        loop {
            let l = &self.lines[line];
            if l.busy || l.requests.is_empty() {
                return;
            }
            let (mut at, mut first) = (0, u64::MAX);
            for (i, r) in l.requests.iter().enumerate() {
                if r.arrival < first {
                    (at, first) = (i, r.arrival);
                }
            }
            let write = l.requests[at].write;
            if write && l.readers > 0 {
                return;
            }
            let request = self.lines[line].requests.swap_remove(at);
            let c = (request.id / 16) as usize;
            let latency = self.latency(c, line, write);
            let latency = self.spread(latency);
            let way = self.model.request_leg(latency);
            let l = &mut self.lines[line];
            let mut served = self.now.max(request.issued + way);
            if l.owner != NOBODY {
                served = served.max(l.hold_until);
            }
            if write || l.owner != NOBODY {
                l.busy = true;
                l.writing = write;
                l.serving = request.id;
                l.lose_at = served;
            } else {
                served = served.max(l.read_free);
                l.read_free = served + self.model.read_occupancy;
                l.readers += 1;
            }
            self.queue
                .push(served + latency - way, Event::Arrival(request.id));
        }
    }

    /// No two transfers take equally long: ring positions, hops and collisions differ. Without
    /// this, threads fall into step with each other as they never do on a real machine.
    #[inline]
    fn spread(&mut self, latency: u64) -> u64 {
        self.random ^= self.random << 13;
        self.random ^= self.random >> 7;
        self.random ^= self.random << 17;
        let share = self.model.transfer_spread * ((self.random >> 32) as u32 as u64) >> 31;
        latency * (1024 - self.model.transfer_spread + share) / 1024
    }

    /// How long an uncontended request of `c` takes, there and back.
    fn latency(&self, c: usize, line: usize, write: bool) -> u64 {
        let l = &self.lines[line];
        if l.owner != NOBODY {
            return if l.owner as usize == c {
                self.model.l1
            } else {
                self.model.transfer(c, l.owner as usize, l.home)
            };
        }
        if !l.cached {
            return self.model.memory(c, l.home);
        }
        if write {
            let others = l.sharing > u16::from(self.shares(line, c));
            self.model.invalidate(c, l.sharing_llcs, others, l.home)
        } else {
            self.model.fetch_shared(c, l.sharing_llcs, l.home)
        }
    }

    /// Adds `c` to those who share the line.
    #[inline]
    fn share(&mut self, line: usize, c: usize) {
        let word = &mut self.sharers[line * self.model.words() + c / 64];
        let bit = 1 << (c % 64);
        if *word & bit == 0 {
            *word |= bit;
            self.lines[line].sharing += 1;
            self.lines[line].sharing_llcs |= 1 << self.model.llc(c);
        }
    }

    fn arrive(&mut self, id: u32) {
        let c = (id / 16) as usize;
        let line = self.request_line[id as usize] as usize;
        self.cpus[c].asked_slots &= !(1 << (id % 16));

        let l = &mut self.lines[line];
        l.cached = true;
        if l.busy && l.serving == id {
            l.busy = false;
            if l.writing {
                l.owner = c as u16;
                l.hold_until = 0;
                l.sharing = 0;
                l.sharing_llcs = 0;
                let words = self.model.words();
                self.sharers[line * words..(line + 1) * words].fill(0);
                self.invalidate_waiters(c, line);
            } else {
                let owner = l.owner as usize;
                l.owner = NOBODY;
                self.share(line, owner);
                self.share(line, c);
            }
        } else {
            l.readers -= 1;
            self.share(line, c);
        }

        if self.cpus[c].state == State::Missing && self.line_of(self.cpus[c].op.address) == line {
            let write = self.cpus[c].op.kind.writes();
            if self.hits(c, line, write) {
                if let Some((result, cost)) = self.perform(c, line) {
                    self.complete(c, result, cost);
                }
            } else {
                self.ask(c, line, write, self.now);
            }
        }
        self.advance_buffer(c, line);
        self.serve(line);
    }

    /// Their copies were lost when the writer was served; they asked again at that moment.
    fn invalidate_waiters(&mut self, writer: usize, line: usize) {
        if self.lines[line].waiters.is_empty() {
            return;
        }
        let lost = self.lines[line].lose_at;
        let mut waiters = std::mem::take(&mut self.lines[line].waiters);
        // Nobody is served while they ask.
        self.lines[line].busy = true;
        for &w in waiters.iter().filter(|&&w| w as usize != writer) {
            self.cpus[w as usize].state = State::Missing;
            self.ask(w as usize, line, false, lost);
        }
        self.lines[line].busy = false;
        waiters.retain(|&w| w as usize == writer);
        self.lines[line].waiters = waiters;
    }

    // Memory.

    #[inline]
    fn check(&self, address: usize, size: u8) {
        assert!(
            address >= self.base && address + size as usize <= self.base + self.used,
            "access outside simulated memory"
        );
    }

    #[inline]
    pub(crate) fn read(&self, address: usize, size: u8) -> u64 {
        self.check(address, size);
        // SAFETY: inside `memory`, and `size` is that of a naturally aligned integer.
        unsafe {
            match size {
                1 => *(address as *const u8) as u64,
                2 => *(address as *const u16) as u64,
                4 => *(address as *const u32) as u64,
                _ => *(address as *const u64),
            }
        }
    }

    #[inline]
    pub(crate) fn write(&mut self, address: usize, size: u8, value: u64) {
        self.check(address, size);
        // SAFETY: as in `read`.
        unsafe {
            match size {
                1 => *(address as *mut u8) = value as u8,
                2 => *(address as *mut u16) = value as u16,
                4 => *(address as *mut u32) = value as u32,
                _ => *(address as *mut u64) = value,
            }
        }
    }

    // Reports.

    fn describe_address(&self, address: usize) -> String {
        self.labels
            .iter()
            .find(|l| (l.start..l.end).contains(&address))
            .map_or_else(
                || format!("{address:#x}"),
                |l| format!("{}+{}", l.name, address - l.start),
            )
    }

    /// One line a CPU: what it is doing.
    pub(crate) fn describe_cpus(&self) -> Vec<String> {
        self.cpus
            .iter()
            .enumerate()
            .map(|(c, cpu)| {
                let place = self.model.describe_cpu(c);
                let buffered = cpu.buffer.len;
                match cpu.state {
                    State::Finished => format!("CPU {c} ({place}): finished"),
                    State::Running => format!("CPU {c} ({place}): running"),
                    state => {
                        let value = self.read(cpu.op.address, cpu.op.size.max(1));
                        let what = match cpu.op.kind {
                            Kind::Await => format!(
                                "awaits ({} & {:#x}) {} {:#x}, sees {value:#x}",
                                self.describe_address(cpu.op.address),
                                cpu.op.a,
                                if cpu.op.equal { "==" } else { "!=" },
                                cpu.op.b
                            ),
                            Kind::Fence => "waits for its stores".to_string(),
                            kind => format!(
                                "{kind:?} of {} = {value:#x}",
                                self.describe_address(cpu.op.address)
                            ),
                        };
                        format!("CPU {c} ({place}): {state:?}, {what}, {buffered} buffered")
                    }
                }
            })
            .collect()
    }
}
