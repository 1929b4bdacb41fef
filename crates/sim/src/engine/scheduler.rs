//! The host's scheduler: it decides which runner has which CPU when runners outnumber CPUs.
//!
//! A runner is what the engine otherwise calls a CPU: a thread, or a virtual CPU of a guest. It
//! takes turns with others on the machine's real CPUs, here called processors. The rules are those
//! of Linux' fair scheduler, simplified:
//!
//! * Every processor has a queue. The runner that has run least is next, and a slice is a share of
//!   the scheduling latency.
//! * A runner that has slept is put a little ahead. If it has run much less than the running one,
//!   it preempts that one.
//! * A runner wakes where it ran last, or on an idle processor under the same last-level cache.
//! * A processor that becomes idle takes a waiting runner from another one under its last-level
//!   cache at once, and from the rest of the machine every balance period.
//!
//! This module only decides; `hosting` has the effects on simulated code.

use crate::model::SchedulerTimes;

/// The activity of a runner.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Status {
    /// The runner has a processor.
    On,
    /// The runner has nothing to do, but has its processor for a while: KVM polls for a halted virtual
    /// CPU, or a thread is about to leave.
    Polling,
    /// The runner could run, and waits for a processor.
    Queued,
    /// The runner waits for something other than a processor.
    Asleep,
}

pub(super) struct Runner {
    pub(super) status: Status,
    /// The processor on which the runner runs, waits or ran last.
    pub(super) processor: usize,
    /// The time that the runner has run, as the scheduler counts it. It can be compared only with
    /// that of other runners of the same processor.
    virtual_time: i64,
    /// The time at which the runner got its status.
    pub(super) since: u64,
    /// Whether the last directed yield passed over this runner. The next one then may choose it.
    passed_over: bool,
    /// Whether the runner yielded its processor because it was spinning.
    pub(super) yielded: bool,
    /// Whether the runner waits because it lost its processor, not because it has just woken.
    preempted: bool,
}

pub(super) struct Processor {
    pub(super) running: Option<u16>,
    waiting: Vec<u16>,
    /// The number of the current turn. An event for the end of a turn with another number is
    /// outdated.
    pub(super) turn: u32,
    /// Whether an event for the end of this turn is scheduled.
    pub(super) slice_ends: bool,
    turn_began: u64,
    /// The time up to which the running runner's virtual time is counted.
    counted: u64,
    least_virtual_time: i64,
    llc: u16,
}

pub(super) struct Scheduler {
    times: SchedulerTimes,
    pinned: bool,
    /// The number of runners of each guest. Those of a guest have consecutive numbers.
    per_guest: usize,
    /// For each guest the runner that its last directed yield chose.
    boosted: Vec<usize>,
    pub(super) runners: Vec<Runner>,
    pub(super) processors: Vec<Processor>,
    pub(super) migrations: u64,
    /// The time that runners waited for a processor, in waits that are over.
    queued: u64,
    /// The time that runners had a processor, in turns that are over.
    ran: u64,
}

impl Scheduler {
    /// Makes a scheduler for `runners` runners on processors under these last-level caches.
    pub(super) fn new(
        times: SchedulerTimes,
        llcs: &[u16],
        runners: usize,
        per_guest: usize,
        pinned: bool,
    ) -> Self {
        let count = llcs.len();
        Self {
            pinned,
            per_guest,
            boosted: (0..runners.div_ceil(per_guest))
                .map(|g| g * per_guest)
                .collect(),
            runners: (0..runners)
                .map(|r| Runner {
                    status: Status::Asleep,
                    processor: r % count,
                    // Different virtual times, so that turns end at different times.
                    virtual_time: scattered(r, times.latency) as i64,
                    since: 0,
                    passed_over: false,
                    yielded: false,
                    preempted: false,
                })
                .collect(),
            processors: llcs
                .iter()
                .map(|&llc| Processor {
                    running: None,
                    waiting: Vec::new(),
                    turn: 0,
                    slice_ends: false,
                    turn_began: 0,
                    counted: 0,
                    least_virtual_time: 0,
                    llc,
                })
                .collect(),
            times,
            migrations: 0,
            queued: 0,
            ran: 0,
        }
    }

    pub(super) fn running_on(&self, processor: usize) -> Option<u16> {
        self.processors[processor].running
    }

    pub(super) fn someone_waits(&self, processor: usize) -> bool {
        !self.processors[processor].waiting.is_empty()
    }

    pub(super) fn anyone_waits(&self) -> bool {
        (0..self.processors.len()).any(|p| self.someone_waits(p))
    }

    /// Returns the time that runners have waited for a processor until `now`.
    pub(super) fn queued(&self, now: u64) -> u64 {
        let waits = |r: &&Runner| r.status == Status::Queued;
        let waiting = self.runners.iter().filter(waits);
        self.queued + waiting.map(|r| now - r.since).sum::<u64>()
    }

    pub(super) fn set_status(&mut self, c: u16, status: Status, now: u64) {
        let runner = &mut self.runners[usize::from(c)];
        runner.status = status;
        runner.since = now;
    }

    /// Brings the virtual time of the runner on `processor` up to date.
    fn count(&mut self, processor: usize, now: u64) {
        let p = &mut self.processors[processor];
        let first_waiting = p
            .waiting
            .iter()
            .map(|&c| self.runners[usize::from(c)].virtual_time)
            .min();
        let running = p.running.map(|c| {
            let runner = &mut self.runners[usize::from(c)];
            runner.virtual_time += now.saturating_sub(p.counted) as i64;
            runner.virtual_time
        });
        p.counted = now.max(p.counted);
        if let Some(least) = first_waiting.into_iter().chain(running).min() {
            p.least_virtual_time = p.least_virtual_time.max(least);
        }
    }

    /// Stops the runner that `processor` runs, and returns its number.
    pub(super) fn stop(&mut self, processor: usize, now: u64) -> Option<u16> {
        self.count(processor, now);
        let p = &mut self.processors[processor];
        if p.running.is_some() {
            self.ran += now - p.turn_began;
        }
        p.running.take()
    }

    /// Returns the time that runners have had a processor until `now`.
    pub(super) fn ran(&self, now: u64) -> u64 {
        let on = self.processors.iter().filter(|p| p.running.is_some());
        self.ran + on.map(|p| now - p.turn_began).sum::<u64>()
    }

    /// Makes `c` wait for a processor. Returns the processor, and whether `c` preempts the runner
    /// there.
    pub(super) fn wake(&mut self, c: u16, now: u64) -> (usize, bool) {
        let before = self.runners[usize::from(c)].processor;
        let processor = self.place(c);
        self.count(before, now);
        self.count(processor, now);
        self.move_to(c, processor);
        let own = self.after_sleep(self.runners[usize::from(c)].virtual_time, processor);
        self.runners[usize::from(c)].virtual_time = own;
        self.enqueue(c, now, false);
        let polls = |r| self.runners[usize::from(r)].status == Status::Polling;
        let running = self.running_on(processor);
        let ahead = running.is_some_and(polls) || self.runs_longer(processor, own);
        (processor, ahead)
    }

    /// The processor on which `c` wakes: where it ran last, or an idle one near it.
    pub(super) fn place(&self, c: u16) -> usize {
        let before = self.runners[usize::from(c)].processor;
        if self.pinned {
            before
        } else {
            self.idle_near(before)
        }
    }

    /// Whether `c` would preempt the runner of `processor`, if it woke there.
    pub(super) fn would_preempt(&mut self, c: u16, processor: usize, now: u64) -> bool {
        let runner = &self.runners[usize::from(c)];
        let (before, own) = (runner.processor, runner.virtual_time);
        self.count(before, now);
        self.count(processor, now);
        let least = |p: usize| self.processors[p].least_virtual_time;
        let own = self.after_sleep(own + least(processor) - least(before), processor);
        self.runs_longer(processor, own)
    }

    /// The virtual time of a runner that has slept, put a little ahead.
    fn after_sleep(&self, own: i64, processor: usize) -> i64 {
        let least = self.processors[processor].least_virtual_time;
        own.max(least - self.times.latency as i64 / 2)
    }

    /// Whether `processor` has a runner that has run much longer than one of virtual time `own`.
    fn runs_longer(&self, processor: usize, own: i64) -> bool {
        let running = self.running_on(processor);
        running.is_some_and(|r| {
            let runner = &self.runners[usize::from(r)];
            runner.virtual_time - own > self.times.wakeup_granularity as i64
        })
    }

    /// Puts `c` into the queue of its processor.
    pub(super) fn enqueue(&mut self, c: u16, now: u64, preempted: bool) {
        self.set_status(c, Status::Queued, now);
        let runner = &mut self.runners[usize::from(c)];
        runner.preempted = preempted;
        self.processors[runner.processor].waiting.push(c);
    }

    /// Returns an idle processor near this one, or this one if there is none.
    fn idle_near(&self, processor: usize) -> usize {
        let idle = |p: &Processor| p.running.is_none() && p.waiting.is_empty();
        if idle(&self.processors[processor]) {
            return processor;
        }
        let llc = self.processors[processor].llc;
        let near = |p: &Processor| p.llc == llc && idle(p);
        self.processors.iter().position(near).unwrap_or(processor)
    }

    fn move_to(&mut self, c: u16, processor: usize) {
        let runner = &mut self.runners[usize::from(c)];
        let before = std::mem::replace(&mut runner.processor, processor);
        if before != processor {
            runner.virtual_time += self.processors[processor].least_virtual_time
                - self.processors[before].least_virtual_time;
            self.migrations += 1;
        }
    }

    /// Chooses a runner for an idle processor, from its own queue or from another's.
    pub(super) fn next(&mut self, processor: usize, now: u64) -> Option<u16> {
        self.count(processor, now);
        let c = match self.least(processor) {
            Some(c) => c,
            None => self.steal_for(processor, true)?,
        };
        self.start(processor, c, now);
        Some(c)
    }

    pub(super) fn least(&self, processor: usize) -> Option<u16> {
        let queue = &self.processors[processor].waiting;
        let key = |&c: &u16| (self.runners[usize::from(c)].virtual_time, c);
        queue.iter().copied().min_by_key(key)
    }

    /// Gives `processor` to `c`, which waits.
    pub(super) fn start(&mut self, processor: usize, c: u16, now: u64) {
        let at = self.runners[usize::from(c)].processor;
        self.processors[at].waiting.retain(|&w| w != c);
        if at != processor {
            self.count(at, now);
            self.move_to(c, processor);
        }
        let runner = &mut self.runners[usize::from(c)];
        runner.yielded = false;
        self.queued += now - runner.since;
        let p = &mut self.processors[processor];
        p.running = Some(c);
        p.turn = p.turn.wrapping_add(1);
        p.slice_ends = false;
        p.turn_began = now;
        p.counted = now;
        self.set_status(c, Status::On, now);
    }

    /// Returns a runner of the longest queue, either under the last-level cache of `processor`
    /// (`near`) or in the whole machine.
    fn steal_for(&self, processor: usize, near: bool) -> Option<u16> {
        if self.pinned {
            return None;
        }
        let llc = self.processors[processor].llc;
        let fullest = (0..self.processors.len())
            .filter(|&p| !near || self.processors[p].llc == llc)
            .max_by_key(|&p| (self.processors[p].waiting.len(), std::cmp::Reverse(p)))?;
        self.least(fullest)
    }

    /// Returns an idle processor, and a runner for it from anywhere in the machine.
    pub(super) fn balance(&self) -> Option<(usize, u16)> {
        let idle = self.processors.iter().position(|p| p.running.is_none())?;
        Some((idle, self.steal_for(idle, false)?))
    }

    /// Returns the time at which the turn of the runner on `processor` ends. `None` if no other
    /// runner waits, or if this function has already returned the end of this turn.
    pub(super) fn slice_end(&mut self, processor: usize, now: u64) -> Option<u64> {
        let tick = self.times.tick.max(1);
        let phase = scattered(processor, tick);
        let p = &mut self.processors[processor];
        if p.slice_ends || p.waiting.is_empty() || p.running.is_none() {
            return None;
        }
        p.slice_ends = true;
        let share = self.times.latency / (1 + p.waiting.len() as u64);
        let slice = share.max(self.times.granularity);
        let end = (p.turn_began + slice).max(now);
        // Slices end at a tick.
        Some((end + tick - phase).div_ceil(tick) * tick + phase - tick)
    }

    /// Moves a runner from the longest queue to the shortest, if they differ by two runners or
    /// more. Returns the processor to which the runner moved.
    pub(super) fn even_out(&mut self, now: u64) -> Option<usize> {
        let length = |&p: &usize| {
            let p = &self.processors[p];
            p.waiting.len() + usize::from(p.running.is_some())
        };
        let all = 0..self.processors.len();
        let from = all.clone().max_by_key(length)?;
        let to = all.min_by_key(length)?;
        if self.pinned || length(&from) < length(&to) + 2 {
            return None;
        }
        let c = self.least(from)?;
        self.count(from, now);
        self.count(to, now);
        self.processors[from].waiting.retain(|&w| w != c);
        self.move_to(c, to);
        self.processors[to].waiting.push(c);
        Some(to)
    }

    /// Returns the runner that a directed yield of `c` chooses: the next preempted runner of its
    /// guest.
    pub(super) fn yield_target(&mut self, c: u16) -> Option<u16> {
        let guest = usize::from(c) / self.per_guest;
        let first = guest * self.per_guest;
        let boosted = self.boosted[guest];
        for i in 1..=self.per_guest {
            let candidate = first + (boosted - first + i) % self.per_guest;
            let runner = &mut self.runners[candidate];
            if candidate == usize::from(c) || runner.status != Status::Queued || !runner.preempted {
                continue;
            }
            // A runner that was spinning itself is chosen only every second time.
            if runner.yielded {
                runner.passed_over = !runner.passed_over;
                if runner.passed_over {
                    continue;
                }
            }
            self.boosted[guest] = candidate;
            return Some(candidate as u16);
        }
        None
    }

    /// Whether `c`, which waits, may get its processor out of turn.
    pub(super) fn may_go_first(&mut self, c: u16, now: u64) -> bool {
        let processor = self.runners[usize::from(c)].processor;
        self.count(processor, now);
        let own = self.runners[usize::from(c)].virtual_time;
        let running = self.processors[processor].running;
        let others = self.least(processor).into_iter().chain(running);
        let least = others
            .map(|r| self.runners[usize::from(r)].virtual_time)
            .min();
        least.is_none_or(|least| own - least <= self.times.wakeup_granularity as i64)
    }
}

/// Returns a number below `range` for each `i`. Consecutive `i` have numbers that differ much.
fn scattered(i: usize, range: u64) -> u64 {
    let golden = 0x9e37_79b9_7f4a_7c15_u64;
    let fraction = (i as u64 + 1).wrapping_mul(golden) >> 32;
    ((u128::from(fraction) * u128::from(range)) >> 32) as u64
}
