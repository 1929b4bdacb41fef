//! The host's scheduler: it decides which runner has which CPU when runners outnumber CPUs.
//!
//! A runner is what the engine otherwise calls a CPU: a thread, or a virtual CPU of a guest. It
//! takes turns with others on the machine's real CPUs, here called processors. The rules are those
//! of Linux' fair scheduler, simplified:
//!
//! * Every processor has a queue. A policy decides who is next, for how long, and who preempts the
//!   running one: `cfs` up to Linux 6.5, `eevdf` since then.
//! * A runner wakes where it ran last, or on an idle processor under the same last-level cache.
//! * A processor that becomes idle takes a waiting runner from another one under its last-level
//!   cache at once, but none that has just run there. Every balance period an idle processor takes one
//!   from anywhere.
//!
//! This module only decides; `hosting` has the effects on simulated code.

mod cfs;
mod eevdf;

use crate::model::SchedulerTimes;
use cfs::Cfs;
use eevdf::Eevdf;

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

/// What a runner has had of its processor. It can be compared only with those of other runners of the
/// same processor.
#[derive(Clone, Copy)]
struct Share {
    /// The time that the runner has run, as the policy counts it.
    virtual_time: i64,
    /// EEVDF: the virtual time at which the runner's slice ends.
    deadline: i64,
    /// EEVDF: what the runner lacked when it went to sleep.
    lag: i64,
}

/// The order in which the runners of a processor run. Each processor has a clock, in virtual time.
trait Policy {
    /// A time in which each runner of a processor runs about once.
    fn period(&self) -> u64;

    /// What the clock shows, if the running and the waiting runners have these shares.
    fn clock(&self, before: i64, shares: &mut dyn Iterator<Item = Share>) -> i64;

    /// Counts the time that a runner has run.
    fn ran(&self, share: &mut Share, time: i64);

    /// Notes that a runner goes to sleep.
    fn sleeps(&self, share: &mut Share, clock: i64);

    /// Decides on the share with which a runner joins so many others when it wakes.
    fn wakes(&self, share: &mut Share, clock: i64, others: usize);

    /// The place of a waiting runner: the least is next.
    fn rank(&self, share: &Share, clock: i64) -> (bool, i64);

    /// Whether a runner that wakes preempts the running one, beside others that wait.
    fn preempts(&self, woken: &Share, running: &Share, others: &[Share]) -> bool;

    /// The rest of a turn that has taken the time `ran`, while so many other runners wait.
    fn turn_left(&self, running: &Share, ran: u64, waiting: usize) -> u64;

    /// Whether a runner whose turn is over makes way for the next one.
    fn gives_way(&self, running: &Share, next: &Share, clock: i64) -> bool;

    /// Whether a waiting runner may get the processor out of turn. `least` is the least virtual time
    /// of the processor's other runners.
    fn may_go_first(&self, share: &Share, least: i64, clock: i64) -> bool;
}

pub(super) struct Runner {
    pub(super) status: Status,
    /// The processor on which the runner runs, waits or ran last.
    pub(super) processor: usize,
    share: Share,
    /// The time up to which the runner ran last, if it has run.
    ran_at: Option<u64>,
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
    /// The time of the event for the end of this turn, if one is scheduled. One for another time is
    /// outdated.
    pub(super) slice_ends: Option<u64>,
    /// Whether the running runner gives way at its next tick, or where a system call returns before.
    pub(super) marked: bool,
    turn_began: u64,
    /// The time up to which the running runner's virtual time is counted.
    counted: u64,
    clock: i64,
    llc: u16,
}

pub(super) struct Scheduler {
    policy: Box<dyn Policy>,
    /// Turns end at multiples of this time.
    tick: u64,
    /// An idle processor does not take a runner that has run less long ago than this.
    hot: u64,
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
        let policy: Box<dyn Policy> = if times.eevdf {
            Box::new(Eevdf {
                slice: times.slice,
                greatest_lag: (2 * times.slice).max(times.tick),
            })
        } else {
            Box::new(Cfs {
                latency: times.latency,
                granularity: times.granularity,
                wakeup_granularity: times.wakeup_granularity,
            })
        };
        let share = |runner| {
            // Different virtual times, so that turns end at different times.
            let virtual_time = scattered(runner, policy.period()) as i64;
            Share {
                virtual_time,
                deadline: virtual_time + policy.period() as i64,
                lag: 0,
            }
        };
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
                    share: share(r),
                    ran_at: None,
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
                    slice_ends: None,
                    marked: false,
                    turn_began: 0,
                    counted: 0,
                    clock: 0,
                    llc,
                })
                .collect(),
            tick: times.tick.max(1),
            hot: times.hot,
            policy,
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

    /// Brings the clock of `processor` and the share of its running runner up to date.
    fn count(&mut self, processor: usize, now: u64) {
        let p = &mut self.processors[processor];
        if let Some(c) = p.running {
            let time = now.saturating_sub(p.counted) as i64;
            let share = &mut self.runners[usize::from(c)].share;
            self.policy.ran(share, time);
        }
        p.counted = now.max(p.counted);
        let all = p.waiting.iter().chain(&p.running);
        let mut shares = all.map(|&c| self.runners[usize::from(c)].share);
        p.clock = self.policy.clock(p.clock, &mut shares);
    }

    /// Stops the runner that `processor` runs, and returns its number.
    pub(super) fn stop(&mut self, processor: usize, now: u64) -> Option<u16> {
        self.count(processor, now);
        let p = &mut self.processors[processor];
        if let Some(c) = p.running {
            self.ran += now - p.turn_began;
            self.runners[usize::from(c)].ran_at = Some(now);
        }
        p.running.take()
    }

    /// Notes that `c`, which has just been stopped, sleeps.
    pub(super) fn sleep(&mut self, c: u16, now: u64) {
        self.set_status(c, Status::Asleep, now);
        let runner = &mut self.runners[usize::from(c)];
        let clock = self.processors[runner.processor].clock;
        self.policy.sleeps(&mut runner.share, clock);
    }

    /// Returns the time that runners have had a processor until `now`.
    pub(super) fn ran(&self, now: u64) -> u64 {
        let on = self.processors.iter().filter(|p| p.running.is_some());
        self.ran + on.map(|p| now - p.turn_began).sum::<u64>()
    }

    /// Makes `c` wait for a processor. Returns the processor, and whether `c` preempts the runner
    /// there.
    pub(super) fn wake(&mut self, c: u16, now: u64) -> (usize, bool) {
        let processor = self.place(c);
        let share = self.share_on(c, processor, now);
        let ahead = self.is_ahead(&share, processor);
        self.move_to(c, processor);
        self.runners[usize::from(c)].share = share;
        self.enqueue(c, now, false);
        let polls = |r| self.runners[usize::from(r)].status == Status::Polling;
        let running = self.running_on(processor);
        (processor, ahead || running.is_some_and(polls))
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
        let share = self.share_on(c, processor, now);
        self.is_ahead(&share, processor)
    }

    /// The share with which `c` wakes on `processor`.
    fn share_on(&mut self, c: u16, processor: usize, now: u64) -> Share {
        let before = self.runners[usize::from(c)].processor;
        self.count(before, now);
        self.count(processor, now);
        let mut share = self.moved(self.runners[usize::from(c)].share, before, processor);
        let p = &self.processors[processor];
        let others = p.waiting.len() + usize::from(p.running.is_some());
        self.policy.wakes(&mut share, p.clock, others);
        share
    }

    /// Whether a runner that wakes with this share on `processor` preempts the one that runs there.
    fn is_ahead(&self, woken: &Share, processor: usize) -> bool {
        let share = |c: u16| self.runners[usize::from(c)].share;
        let p = &self.processors[processor];
        p.running.is_some_and(|running| {
            let others: Vec<Share> = p.waiting.iter().map(|&c| share(c)).collect();
            self.policy.preempts(woken, &share(running), &others)
        })
    }

    /// A share, in the time of another processor.
    fn moved(&self, share: Share, from: usize, to: usize) -> Share {
        let later = self.processors[to].clock - self.processors[from].clock;
        Share {
            virtual_time: share.virtual_time + later,
            deadline: share.deadline + later,
            ..share
        }
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
        let runner = &self.runners[usize::from(c)];
        let share = self.moved(runner.share, runner.processor, processor);
        let runner = &mut self.runners[usize::from(c)];
        if std::mem::replace(&mut runner.processor, processor) != processor {
            runner.share = share;
            self.migrations += 1;
        }
    }

    /// Chooses a runner for an idle processor, from its own queue or from another's.
    pub(super) fn next(&mut self, processor: usize, now: u64) -> Option<u16> {
        self.count(processor, now);
        let c = match self.first(processor) {
            Some(c) => c,
            None => self.steal_nearby(processor, now)?,
        };
        self.start(processor, c, now);
        Some(c)
    }

    /// The runner that is next on `processor`.
    pub(super) fn first(&self, processor: usize) -> Option<u16> {
        self.first_of(processor, |_| true)
    }

    /// The first of some runners that wait for `processor`.
    fn first_of(&self, processor: usize, which: impl Fn(&Runner) -> bool) -> Option<u16> {
        let p = &self.processors[processor];
        let runner = |c: u16| &self.runners[usize::from(c)];
        let some = p.waiting.iter().copied().filter(|&c| which(runner(c)));
        some.min_by_key(|&c| (self.policy.rank(&runner(c).share, p.clock), c))
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
        p.slice_ends = None;
        p.marked = false;
        p.turn_began = now;
        p.counted = now;
        self.set_status(c, Status::On, now);
    }

    /// Returns a runner for an idle processor: from the longest queue under its last-level cache, and
    /// one that has not run a moment ago.
    fn steal_nearby(&self, processor: usize, now: u64) -> Option<u16> {
        let llc = self.processors[processor].llc;
        let fullest = self.fullest(|p| self.processors[p].llc == llc)?;
        self.first_of(fullest, |runner| {
            runner.ran_at.is_none_or(|at| now - at >= self.hot)
        })
    }

    /// Returns the processor with the longest queue among some, unless runners are pinned.
    fn fullest(&self, among: impl Fn(usize) -> bool) -> Option<usize> {
        let length = |&p: &usize| (self.processors[p].waiting.len(), std::cmp::Reverse(p));
        let all = (0..self.processors.len()).filter(|&p| !self.pinned && among(p));
        all.max_by_key(length)
    }

    /// Returns an idle processor, and a runner for it from anywhere in the machine.
    pub(super) fn balance(&self) -> Option<(usize, u16)> {
        let idle = self.processors.iter().position(|p| p.running.is_none())?;
        Some((idle, self.first(self.fullest(|_| true)?)?))
    }

    /// Returns the time at which the turn of the runner on `processor` ends. `None` if no other
    /// runner waits, or if this function has already returned that time or an earlier one.
    pub(super) fn slice_end(&mut self, processor: usize, now: u64) -> Option<u64> {
        let p = &self.processors[processor];
        if (p.slice_ends.is_some() && !p.marked) || p.waiting.is_empty() {
            return None;
        }
        let running = p.running?;
        self.count(processor, now);
        let p = &self.processors[processor];
        let share = &self.runners[usize::from(running)].share;
        let left = match p.marked {
            true => 0,
            false => self
                .policy
                .turn_left(share, now - p.turn_began, p.waiting.len()),
        };
        let end = self.next_tick(processor, now + left);
        let ends = &mut self.processors[processor].slice_ends;
        if ends.is_some_and(|before| before <= end) {
            return None;
        }
        *ends = Some(end);
        Some(end)
    }

    /// Marks the runner of `processor`: it gives way at its next tick, or where a system call returns
    /// before. Returns whether that is possible: nobody may run there, or one that leaves anyway.
    pub(super) fn mark(&mut self, processor: usize) -> bool {
        let p = &mut self.processors[processor];
        let runs = |c: u16| self.runners[usize::from(c)].status == Status::On;
        p.marked |= p.running.is_some_and(runs);
        p.marked
    }

    /// Whether `c` runs, and is to give way where a system call returns.
    pub(super) fn is_marked(&self, c: u16) -> bool {
        let p = &self.processors[self.runners[usize::from(c)].processor];
        p.marked && p.running == Some(c)
    }

    /// Returns the time of the first tick of `processor` at `time` or later.
    fn next_tick(&self, processor: usize, time: u64) -> u64 {
        let tick = self.tick;
        let phase = scattered(processor, tick);
        (time + tick - phase).div_ceil(tick) * tick + phase - tick
    }

    /// Whether the runner of `processor`, whose turn is over, makes way for one that waits.
    pub(super) fn gives_way(&mut self, processor: usize, now: u64) -> bool {
        self.count(processor, now);
        let share = |c: u16| &self.runners[usize::from(c)].share;
        let p = &self.processors[processor];
        self.first(processor)
            .zip(p.running)
            .is_some_and(|(next, running)| {
                self.policy.gives_way(share(running), share(next), p.clock)
            })
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
        self.count(from, now);
        self.count(to, now);
        let c = self.first(from)?;
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
        let share = |c: u16| &self.runners[usize::from(c)].share;
        let p = &self.processors[processor];
        let all = p.waiting.iter().chain(&p.running);
        let least = all.map(|&r| share(r).virtual_time).min();
        least.is_none_or(|least| self.policy.may_go_first(share(c), least, p.clock))
    }
}

/// Returns a number below `range` for each `i`. Consecutive `i` have numbers that differ much.
fn scattered(i: usize, range: u64) -> u64 {
    let golden = 0x9e37_79b9_7f4a_7c15_u64;
    let fraction = (i as u64 + 1).wrapping_mul(golden) >> 32;
    ((u128::from(fraction) * u128::from(range)) >> 32) as u64
}
