//! A machine and a placement of threads, turned into the times the engine needs.

use lockworks_machine::{Directory, Machine, Mark, MemoryOrder};

/// One value of the model that no machine description holds.
#[derive(Clone, Debug)]
pub struct Parameter {
    /// Its name, as fits and reports use it.
    pub key: &'static str,
    /// Its value.
    pub value: f64,
    /// The unit of the value.
    pub unit: &'static str,
    /// How well it is known.
    pub mark: Mark,
    /// Where it is from.
    pub source: String,
}

/// The values of the model that no machine description holds.
#[derive(Clone, Debug)]
pub struct Parameters(Vec<Parameter>);

impl Default for Parameters {
    fn default() -> Self {
        let parameter = |key, value, unit, mark, source: &str| Parameter {
            key,
            value,
            unit,
            mark,
            source: source.to_owned(),
        };
        Self(vec![
            parameter(
                "request_share",
                0.5,
                "of a transfer",
                Mark::R,
                "request and response cross the same links",
            ),
            parameter(
                "transfer_spread",
                0.15,
                "of a transfer, either way",
                Mark::I,
                "about the ranges of the cache-to-cache figures, 40-57 around 48 ns and 130-170 \
                 around 155 ns; keeps threads from falling into step",
            ),
            parameter(
                "spin_round_cycles",
                15.0,
                "cycles",
                Mark::R,
                "load, compare, branch and a pause of about 10 cycles",
            ),
            parameter(
                "spin_exit_cycles",
                25.0,
                "cycles",
                Mark::R,
                "branch misprediction of 15-20 cycles, half a round of a pause loop",
            ),
            parameter(
                "reorder_window_cycles",
                96.0,
                "cycles",
                Mark::R,
                "reorder buffer of 192 entries at two instructions a cycle",
            ),
            parameter(
                "read_occupancy_ns",
                2.0,
                "ns",
                Mark::I,
                "a cache slice answers reads of a shared line one after the other",
            ),
            parameter(
                "tick_period_us",
                1000.0,
                "us",
                Mark::I,
                "timer interrupts, 1000 a second",
            ),
            parameter(
                "tick_ns",
                3000.0,
                "ns",
                Mark::I,
                "a timer interrupt, give or take half",
            ),
            parameter(
                "home_node",
                0.0,
                "node",
                Mark::I,
                "where the workload's memory is",
            ),
            parameter(
                "wake_cost_ns",
                1240.0,
                "ns",
                Mark::E,
                "context switch on one CPU, 1.07-1.4 us",
            ),
            parameter(
                "wake_latency_ns",
                4000.0,
                "ns",
                Mark::E,
                "wake and switch across CPUs",
            ),
            parameter(
                "scheduler_latency_us",
                24_000.0,
                "us",
                Mark::R,
                "Linux' fair scheduler (CFS) at 8 CPUs or more: a slice is its share of this; in 6.12 \
                 slices are of 2.8 ms, so 0 here and 2800 for the granularity",
            ),
            parameter(
                "scheduler_granularity_us",
                3_000.0,
                "us",
                Mark::R,
                "CFS at 8 CPUs or more: the shortest slice",
            ),
            parameter(
                "wakeup_granularity_us",
                4_000.0,
                "us",
                Mark::R,
                "CFS at 8 CPUs or more: how far behind a runner that wakes takes the place of another",
            ),
            parameter(
                "balance_period_us",
                32_000.0,
                "us",
                Mark::R,
                "CFS: a millisecond for each CPU, of 32",
            ),
            parameter(
                "kick_cost_ns",
                7_400.0,
                "ns",
                Mark::E,
                "paravirt kick of a halted vCPU on Haswell-EX (Linux commit 45e898b735620f42); \
                 Westmere-EX 9.3 us",
            ),
            parameter(
                "kick_latency_ns",
                63_600.0,
                "ns",
                Mark::E,
                "from the kick until the vCPU runs, likewise; Westmere-EX 67.6 us",
            ),
            parameter(
                "halt_poll_first_us",
                10.0,
                "us",
                Mark::E,
                "KVM source: how long a halted vCPU is polled for at first",
            ),
            parameter(
                "halt_poll_most_us",
                200.0,
                "us",
                Mark::E,
                "KVM source, x86: at most; 0 is no polling",
            ),
            parameter(
                "poll_wake_cycles",
                4338.0,
                "cycles",
                Mark::E,
                "guest interrupt to a vCPU that spins, x2APIC (KVM IPI virtualisation series v7): \
                 taken for one that is polled for",
            ),
            parameter(
                "pause_window_cycles",
                4096.0,
                "cycles",
                Mark::E,
                "KVM source: spinning for so long is a pause-loop exit; 0 is none",
            ),
            parameter(
                "pause_gap_cycles",
                128.0,
                "cycles",
                Mark::E,
                "KVM source: unless two pauses are further apart; those of loops that only look never \
                 are",
            ),
        ])
    }
}

impl Parameters {
    /// All of them.
    pub fn iter(&self) -> impl Iterator<Item = &Parameter> {
        self.0.iter()
    }

    /// The value of `key`.
    ///
    /// # Panics
    /// If there is none of that name.
    pub fn get(&self, key: &str) -> f64 {
        self.0
            .iter()
            .find(|p| p.key == key)
            .unwrap_or_else(|| panic!("no model parameter {key}"))
            .value
    }

    /// The parameter `key`, to be changed.
    pub fn parameter_mut(&mut self, key: &str) -> Option<&mut Parameter> {
        self.0.iter_mut().find(|p| p.key == key)
    }
}

fn picoseconds(ns: f64) -> u64 {
    (ns * 1000.0).round() as u64
}

/// Times of the host's scheduler.
#[derive(Clone, Copy)]
pub(crate) struct SchedulerTimes {
    /// The period in which each runner of a processor has a turn.
    pub(crate) latency: u64,
    /// The shortest turn.
    pub(crate) granularity: u64,
    pub(crate) wakeup_granularity: u64,
    /// Turns end at multiples of it.
    pub(crate) tick: u64,
}

/// Times of runners that sleep, wake and share CPUs: threads, or virtual CPUs.
#[derive(Clone, Copy)]
pub(crate) struct HostTimes {
    pub(crate) scheduler: SchedulerTimes,
    /// Another runner on the same CPU.
    pub(crate) switch: u64,
    /// To the waker.
    pub(crate) wake_cost: u64,
    /// Until the sleeper wants a CPU.
    pub(crate) wake_latency: u64,
    pub(crate) balance_period: u64,
    /// Virtual CPUs only: halt polling, and how soon it sees a kick.
    pub(crate) poll_first: u64,
    pub(crate) poll_most: u64,
    pub(crate) poll_latency: u64,
    /// Virtual CPUs only: spinning for so long exits, unless 0.
    pub(crate) pause_window: u64,
    pub(crate) pause_gap: u64,
}

/// The machine as the engine needs it. "CPU" here means a simulated thread at its place.
pub(crate) struct Model {
    pub(crate) order: MemoryOrder,
    pub(crate) l1: u64,
    pub(crate) store: u64,
    pub(crate) rmw: u64,
    /// One round of a spin loop.
    pub(crate) look: u64,
    pub(crate) spin_exit: u64,
    pub(crate) reorder_window: u64,
    pub(crate) read_occupancy: u64,
    pub(crate) thread_wake_cost: u64,
    pub(crate) thread_wake_latency: u64,
    pub(crate) thread_times: HostTimes,
    pub(crate) guest_times: HostTimes,
    llc: u64,
    dram_local: u64,
    dram_remote: u64,
    /// Request leg of a transfer, in 1/1024.
    request_share: u64,
    /// How far a transfer's time may be from its mean, in 1/1024 of it.
    pub(crate) transfer_spread: u64,
    ordered_at_home: bool,
    pub(crate) tick_period: u64,
    pub(crate) tick_ns: u32,
    pub(crate) home_node: u16,
    machine: Machine,
    places: Vec<usize>,
    nodes: Vec<u16>,
    llcs: Vec<u16>,
    /// Relation of each pair of CPUs.
    relations: Vec<u8>,
    /// Relation of each CPU to each node, for lines that live there.
    node_relations: Vec<u8>,
    node_count: usize,
    /// Transfer time of each relation; the last one is a CPU's relation to itself, 0.
    transfers: Vec<u64>,
    /// Transfer time between two last-level caches, and between cores inside one.
    llc_transfers: Vec<u64>,
    llc_count: usize,
}

impl Model {
    pub(crate) fn new(machine: &Machine, places: Vec<usize>, parameters: &Parameters) -> Self {
        let n = places.len();
        let cycle = 1.0 / machine.clock_ghz();
        let rmw = machine.rmw_ns();
        // A measured cache-to-cache figure is one transfer and one compare-and-swap.
        let mut transfers: Vec<u64> = machine
            .relations()
            .iter()
            .map(|r| picoseconds((r.cache_to_cache.value - rmw).max(machine.l1_ns())))
            .collect();
        let itself = transfers.len() as u8;
        transfers.push(0);

        let llcs: Vec<u16> = places.iter().map(|&p| machine.llc_of(p) as u16).collect();
        let node_count = machine.nodes();
        let mut relations = vec![itself; n * n];
        let mut node_relations = vec![itself; n * node_count];
        for a in 0..n {
            for b in (0..n).filter(|&b| places[b] != places[a]) {
                relations[a * n + b] = machine.relation(places[a], places[b]) as u8;
            }
            for node in 0..node_count {
                if let Some(relation) = machine.relation_to_node(places[a], node) {
                    node_relations[a * node_count + node] = relation as u8;
                }
            }
        }

        let llc_count = machine.units(machine.llc_level());
        let first_cpu = |llc: usize| llc * (machine.cpus() / llc_count);
        let llc_transfers = (0..llc_count * llc_count)
            .map(|i| {
                let (a, b) = (i / llc_count, i % llc_count);
                // Inside one cache: from its first thread to its last.
                let to = if a == b {
                    first_cpu(b + 1) - 1
                } else {
                    first_cpu(b)
                };
                if to == first_cpu(a) {
                    0
                } else {
                    transfers[machine.relation(first_cpu(a), to)]
                }
            })
            .collect();

        let of = |key| picoseconds(parameters.get(key));
        let of_us = |key| picoseconds(parameters.get(key) * 1000.0);
        let of_cycles = |key| picoseconds(parameters.get(key) * cycle);
        let (wake_cost, wake_latency) = (of("wake_cost_ns"), of("wake_latency_ns"));
        let thread_times = HostTimes {
            scheduler: SchedulerTimes {
                latency: of_us("scheduler_latency_us"),
                granularity: of_us("scheduler_granularity_us"),
                wakeup_granularity: of_us("wakeup_granularity_us"),
                tick: of_us("tick_period_us"),
            },
            switch: wake_cost,
            wake_cost,
            // A switch to the sleeper is in the figure.
            wake_latency: wake_latency.saturating_sub(wake_cost),
            balance_period: of_us("balance_period_us"),
            poll_first: 0,
            poll_most: 0,
            poll_latency: 0,
            pause_window: 0,
            pause_gap: 0,
        };
        let guest_times = HostTimes {
            wake_cost: of("kick_cost_ns"),
            wake_latency: of("kick_latency_ns").saturating_sub(wake_cost),
            poll_first: of_us("halt_poll_first_us"),
            poll_most: of_us("halt_poll_most_us"),
            poll_latency: of_cycles("poll_wake_cycles"),
            pause_window: of_cycles("pause_window_cycles"),
            pause_gap: of_cycles("pause_gap_cycles"),
            ..thread_times
        };

        Self {
            order: machine.memory_order,
            l1: picoseconds(machine.l1_ns()),
            store: picoseconds(cycle),
            rmw: picoseconds(rmw),
            look: picoseconds(parameters.get("spin_round_cycles") * cycle),
            spin_exit: picoseconds(parameters.get("spin_exit_cycles") * cycle),
            reorder_window: picoseconds(parameters.get("reorder_window_cycles") * cycle),
            read_occupancy: picoseconds(parameters.get("read_occupancy_ns")),
            thread_wake_cost: wake_cost,
            thread_wake_latency: wake_latency,
            thread_times,
            guest_times,
            llc: picoseconds(machine.llc_ns()),
            dram_local: picoseconds(machine.dram_local_ns()),
            dram_remote: picoseconds(machine.dram_remote_ns()),
            request_share: (parameters.get("request_share") * 1024.0) as u64,
            tick_period: picoseconds(parameters.get("tick_period_us") * 1000.0),
            tick_ns: parameters.get("tick_ns") as u32,
            home_node: parameters.get("home_node") as u16,
            transfer_spread: (parameters.get("transfer_spread") * 1024.0) as u64,
            ordered_at_home: machine.directory == Directory::Home,
            nodes: places.iter().map(|&p| machine.node_of(p) as u16).collect(),
            llcs,
            relations,
            node_relations,
            node_count,
            transfers,
            llc_transfers,
            llc_count,
            machine: machine.clone(),
            places,
        }
    }

    /// Which of the machine's CPUs `c` is on.
    pub(crate) fn place(&self, c: usize) -> usize {
        self.places[c]
    }

    /// `c` is on another of the machine's CPUs from now on.
    pub(crate) fn set_place(&mut self, c: usize, place: usize) {
        let n = self.places.len();
        self.places[c] = place;
        self.nodes[c] = self.machine.node_of(place) as u16;
        self.llcs[c] = self.llc_of_place(place);
        for other in (0..n).filter(|&other| other != c) {
            self.relations[c * n + other] = self.relation(place, self.places[other]);
            self.relations[other * n + c] = self.relation(self.places[other], place);
        }
        for node in 0..self.node_count {
            self.node_relations[c * self.node_count + node] = self.relation_to_node(place, node);
        }
    }

    pub(crate) fn llc_of_place(&self, place: usize) -> u16 {
        self.machine.llc_of(place) as u16
    }

    pub(crate) fn share_core(&self, a: usize, b: usize) -> bool {
        self.machine.core_of(a) == self.machine.core_of(b)
    }

    /// Relation of two of the machine's CPUs.
    fn relation(&self, a: usize, b: usize) -> u8 {
        if a == b {
            self.itself()
        } else {
            self.machine.relation(a, b) as u8
        }
    }

    fn relation_to_node(&self, place: usize, node: usize) -> u8 {
        let relation = self.machine.relation_to_node(place, node);
        relation.map_or(self.itself(), |r| r as u8)
    }

    fn itself(&self) -> u8 {
        self.transfers.len() as u8 - 1
    }

    pub(crate) fn cpus(&self) -> usize {
        self.places.len()
    }

    pub(crate) fn node(&self, c: usize) -> u16 {
        self.nodes[c]
    }

    #[inline]
    pub(crate) fn request_leg(&self, latency: u64) -> u64 {
        latency * self.request_share / 1024
    }

    /// A line that `owner` holds, to `c`.
    #[inline(always)]
    pub(crate) fn transfer(&self, c: u16, owner: u16, home: u16) -> u64 {
        let (c, owner) = (usize::from(c), usize::from(owner));
        let direct = self.transfers[usize::from(self.relations[c * self.places.len() + owner])];
        if self.ordered_at_home && self.llcs[c] != self.llcs[owner] {
            direct.max(self.to_home(c, home))
        } else {
            direct
        }
    }

    #[inline]
    fn to_home(&self, c: usize, home: u16) -> u64 {
        self.transfers[self.node_relations[c * self.node_count + home as usize] as usize]
    }

    pub(crate) fn memory(&self, c: u16, home: u16) -> u64 {
        if self.nodes[usize::from(c)] == home {
            self.dram_local
        } else {
            self.dram_remote
        }
    }

    #[inline]
    pub(crate) fn llc(&self, c: u16) -> u16 {
        self.llcs[usize::from(c)]
    }

    /// Read a line that CPUs under these last-level caches share: from the nearest.
    pub(crate) fn fetch_shared(&self, c: u16, sharing_llcs: u64, home: u16) -> u64 {
        let c = usize::from(c);
        if sharing_llcs >> self.llcs[c] & 1 != 0 {
            return self.llc;
        }
        let nearest = self
            .each_llc(c, sharing_llcs)
            .min()
            .expect("a shared line is under some cache");
        if self.ordered_at_home {
            nearest.max(self.to_home(c, home))
        } else {
            nearest
        }
    }

    /// Become the only one to have a line that CPUs under these last-level caches share: a round
    /// to the farthest.
    pub(crate) fn invalidate(&self, c: u16, sharing_llcs: u64, others: bool, home: u16) -> u64 {
        let c = usize::from(c);
        if !others {
            return self.l1;
        }
        let farthest = self
            .each_llc(c, sharing_llcs)
            .max()
            .expect("a shared line is under some cache");
        if self.ordered_at_home && sharing_llcs & !(1 << self.llcs[c]) != 0 {
            farthest.max(self.to_home(c, home))
        } else {
            farthest
        }
    }

    fn each_llc(&self, c: usize, llcs: u64) -> impl Iterator<Item = u64> {
        let row = &self.llc_transfers[self.llcs[c] as usize * self.llc_count..];
        std::iter::successors(Some(llcs), |rest| Some(rest & rest.wrapping_sub(1)))
            .take_while(|&rest| rest != 0)
            .map(|rest| row[rest.trailing_zeros() as usize])
    }

    pub(crate) fn describe_cpu(&self, c: usize) -> String {
        format!("machine CPU {}, node {}", self.places[c], self.nodes[c])
    }
}
