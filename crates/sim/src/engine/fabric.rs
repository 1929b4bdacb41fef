//! The clock, and the transfers of lines between CPUs.
//!
//! A line has at most one exclusive transaction at a time. Requests wait at the line and are served
//! in the order of their arrival.

use crate::event_queue::{Event, EventQueue};
use crate::model::Model;

use super::line::{Line, NOBODY};
use super::requests::{Request, Requests};

/// The number of lines of each core that are remembered. The others of its CPUs fetch again what the core
/// has no longer.
const RECENT: usize = 16;

pub(super) struct Fabric {
    pub(super) model: Model,
    pub(super) now: u64,
    pub(super) queue: EventQueue,
    /// The number of line transfers so far.
    pub(super) transfers: u64,
    /// What the cores have requested last: the line, and the time at which it arrives. Each core has
    /// [`RECENT`] places, and a line has one of them.
    recent: Vec<(u32, u64)>,
    random: u64,
}

impl Fabric {
    pub(super) fn new(model: Model, queue: EventQueue, seed: u64) -> Self {
        Self {
            recent: vec![(u32::MAX, 0); model.core_count() * RECENT],
            model,
            now: 0,
            queue,
            transfers: 0,
            random: 0x9e37_79b9_7f4a_7c15 ^ seed,
        }
    }

    /// Adds the line to a CPU's requests, unless the CPU has already requested it.
    #[inline]
    pub(super) fn want(&mut self, requests: &mut Requests, line: &mut Line, write: bool) {
        if !requests.contains(line.number) {
            self.ask(requests, line, write);
        }
    }

    /// Adds the line to a CPU's requests.
    #[inline(always)]
    pub(super) fn ask(&mut self, requests: &mut Requests, line: &mut Line, write: bool) {
        self.transfers += 1;
        let request = requests.add(line.number, write, self.now);
        if line.requests.is_empty() && !line.is_closed(write) {
            self.grant(line, request);
        } else {
            self.queue_up(line, request);
        }
    }

    #[inline(never)]
    fn queue_up(&mut self, line: &mut Line, request: Request) {
        self.enqueue(line, request);
        self.serve(line);
    }

    /// Adds the line again to the requests of a CPU, which lost its copy at `lost_at` to a writer
    /// whose transaction is still in progress.
    pub(super) fn ask_again(&mut self, requests: &mut Requests, line: &mut Line, lost_at: u64) {
        self.transfers += 1;
        let request = requests.add(line.number, false, lost_at);
        self.enqueue(line, request);
    }

    fn enqueue(&self, line: &mut Line, request: Request) {
        let way = if line.owner == NOBODY {
            0
        } else {
            let transfer = self.model.transfer(request.cpu, line.owner, line.home);
            self.model.request_leg(transfer)
        };
        line.requests.push((request.issued + way, request));
    }

    /// Serves all requests that can be served now, in the order of their arrival.
    #[inline]
    pub(super) fn serve(&mut self, line: &mut Line) {
        while let Some(request) = line.next_request() {
            self.grant(line, request);
        }
    }

    #[inline(never)]
    fn grant(&mut self, line: &mut Line, request: Request) {
        let latency = self.latency(line, request);
        let latency = self.spread(latency);
        let way = self.model.request_leg(latency);
        let mut served = self.now.max(request.issued + way);
        let place = self.model.core_number(request.cpu) * RECENT + line.number as usize % RECENT;
        let mut arrival = None;
        if request.write || line.owner != NOBODY {
            if line.owner != NOBODY {
                served = served.max(line.hold_until);
            }
            if request.write {
                line.written_at = served;
            }
            line.writing = request.write;
            line.lose_at = served;
        } else {
            let core = self.model.core_of(request.cpu);
            let (number, on_core) = self.recent[place];
            if number == line.number && on_core > line.written_at {
                // Another CPU of the core has the line, or waits for it.
                arrival = Some(on_core.max(self.now) + core.l1);
            } else {
                served = served.max(line.read_free);
                line.read_free = served + core.read_occupancy;
            }
            line.readers += 1;
        }
        let arrival = arrival.unwrap_or(served + latency - way);
        self.recent[place] = (line.number, arrival);
        let event = Event::Arrival(request.cpu, request.slot, line.number);
        self.queue.push(arrival, event);
    }

    /// Returns the time that an uncontended request takes, from the CPU to the line and back.
    #[inline]
    fn latency(&self, line: &Line, request: Request) -> u64 {
        let c = request.cpu;
        if line.owner == c {
            self.model.core_of(c).l1
        } else if line.owner != NOBODY {
            self.model.transfer(c, line.owner, line.home)
        } else if !line.cached {
            self.model.memory(c, line.home)
        } else if request.write {
            self.model
                .invalidate(c, line, line.has_other_sharers(c), line.home)
        } else {
            self.model.fetch_shared(c, line, line.home)
        }
    }

    /// Varies a latency at random. On a real machine no two transfers take equally long, because
    /// ring positions, hops and collisions differ. With constant latencies, threads would fall into
    /// step with each other, as they never do on a real machine.
    #[inline]
    fn spread(&mut self, latency: u64) -> u64 {
        self.random ^= self.random << 13;
        self.random ^= self.random >> 7;
        self.random ^= self.random << 17;
        let share = (self.model.transfer_spread * (self.random >> 32)) >> 31;
        latency * (1024 - self.model.transfer_spread + share) / 1024
    }
}
