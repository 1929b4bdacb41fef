//! The times that the engine needs, computed from a machine, a placement of threads and parameters.

use lockworks_machine::{Directory, Machine, Mark, MemoryOrder};

/// A value of the model that is not in the machine description.
#[derive(Clone, Debug)]
pub struct Parameter {
    /// The name of the parameter in fits and reports.
    pub key: &'static str,
    /// The value itself.
    pub value: f64,
    /// The unit of the value.
    pub unit: &'static str,
    /// How well it is known.
    pub mark: Mark,
    /// The source of the value.
    pub source: String,
}

/// All values of the model that are not in the machine description.
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
                "request and response use the same links, so the request takes half of the time",
            ),
            parameter(
                "transfer_spread",
                0.15,
                "of a transfer, either way",
                Mark::I,
                "as the ranges of cache-to-cache figures, about 40-57 ns around 48 ns and \
                 130-170 ns around 155 ns; keeps threads from falling into step",
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
                "mean time of a timer interrupt; each takes between half and one and a half of it",
            ),
            parameter(
                "home_node",
                0.0,
                "node",
                Mark::I,
                "the NUMA node of the workload's memory",
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
                "Linux' fair scheduler (CFS) at 8 CPUs or more: the runners of a CPU share this \
                 time; Linux 6.12 has slices of 2.8 ms: set this to 0 and the granularity to 2800",
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
                "CFS at 8 CPUs or more: a woken runner preempts one that has run longer by this",
            ),
            parameter(
                "balance_period_us",
                32_000.0,
                "us",
                Mark::R,
                "CFS: a millisecond for each CPU, here for 32 CPUs",
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
                "KVM source: the first time for which the host polls after a halt",
            ),
            parameter(
                "halt_poll_most_us",
                200.0,
                "us",
                Mark::E,
                "KVM source, x86: the longest time of polling; 0 disables polling",
            ),
            parameter(
                "poll_wake_cycles",
                4338.0,
                "cycles",
                Mark::E,
                "guest interrupt to a vCPU that spins, x2APIC (KVM IPI virtualisation series v7); \
                 used for a halted vCPU while the host polls",
            ),
            parameter(
                "pause_window_cycles",
                4096.0,
                "cycles",
                Mark::E,
                "KVM source: spinning for so long causes a pause-loop exit; 0 disables these exits",
            ),
            parameter(
                "pause_gap_cycles",
                128.0,
                "cycles",
                Mark::E,
                "KVM source: pauses that are further apart than this end the spinning; those of \
                 loops that only poll never are",
            ),
        ])
    }
}

impl Parameters {
    /// Returns all parameters.
    pub fn iter(&self) -> impl Iterator<Item = &Parameter> {
        self.0.iter()
    }

    /// Returns the value of `key`.
    ///
    /// # Panics
    /// If there is no parameter of that name.
    pub fn get(&self, key: &str) -> f64 {
        self.0
            .iter()
            .find(|p| p.key == key)
            .unwrap_or_else(|| panic!("no model parameter {key}"))
            .value
    }

    /// Returns the parameter `key` for a change, or `None` if there is no such parameter.
    pub fn parameter_mut(&mut self, key: &str) -> Option<&mut Parameter> {
        self.0.iter_mut().find(|p| p.key == key)
    }
}

fn picoseconds(ns: f64) -> u64 {
    (ns * 1000.0).round() as u64
}

/// The times of the host's scheduler, in picoseconds.
#[derive(Clone, Copy)]
pub(crate) struct SchedulerTimes {
    /// The period in which each runner of a processor has a turn.
    pub(crate) latency: u64,
    /// The shortest turn.
    pub(crate) granularity: u64,
    /// A runner that wakes preempts one that has run longer by this time.
    pub(crate) wakeup_granularity: u64,
    /// Turns end at multiples of this time.
    pub(crate) tick: u64,
}

/// The times of runners that sleep, wake and share CPUs, in picoseconds. Runners are threads or
/// virtual CPUs.
#[derive(Clone, Copy)]
pub(crate) struct HostTimes {
    pub(crate) scheduler: SchedulerTimes,
    /// The time of a switch to another runner on the same CPU.
    pub(crate) switch: u64,
    /// The time that a wake-up takes of the waker.
    pub(crate) wake_cost: u64,
    /// The time from a wake-up until the sleeper wants a CPU.
    pub(crate) wake_latency: u64,
    /// The period in which idle processors search the whole machine for waiting runners.
    pub(crate) balance_period: u64,
    /// Virtual CPUs only: the first time for which the host polls after a halt.
    pub(crate) poll_first: u64,
    /// Virtual CPUs only: the longest time for which the host polls after a halt.
    pub(crate) poll_most: u64,
    /// Virtual CPUs only: the time from a kick until the host's polling sees it.
    pub(crate) poll_latency: u64,
    /// Virtual CPUs only: the time of spinning after which a pause-loop exit follows; 0 for never.
    pub(crate) pause_window: u64,
    /// Virtual CPUs only: pauses that are further apart do not belong to the same spinning.
    pub(crate) pause_gap: u64,
}

/// The machine as the engine needs it; times are in picoseconds. A "CPU" here is a simulated thread
/// on the machine's CPU where it is placed.
pub(crate) struct Model {
    pub(crate) order: MemoryOrder,
    pub(crate) l1: u64,
    pub(crate) store: u64,
    pub(crate) rmw: u64,
    /// The time of one poll of a spin loop.
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
    /// The share of a transfer's time that the request takes, in 1/1024.
    request_share: u64,
    /// The largest difference between a transfer's time and its mean, in 1/1024 of the mean.
    pub(crate) transfer_spread: u64,
    ordered_at_home: bool,
    pub(crate) tick_period: u64,
    pub(crate) tick_ns: u32,
    pub(crate) home_node: u16,
    machine: Machine,
    places: Vec<usize>,
    nodes: Vec<u16>,
    llcs: Vec<u16>,
    /// The relation of each pair of CPUs.
    relations: Vec<u8>,
    /// The relation of each CPU to each NUMA node, for lines in that node's memory.
    node_relations: Vec<u8>,
    node_count: usize,
    /// The transfer time of each relation. The last relation is that of a CPU to itself, with time
    /// 0.
    transfers: Vec<u64>,
    /// The transfer time between each two last-level caches, and between the cores of each one.
    llc_transfers: Vec<u64>,
    llc_count: usize,
}

impl Model {
    pub(crate) fn new(machine: &Machine, places: Vec<usize>, parameters: &Parameters) -> Self {
        let n = places.len();
        let cycle = 1.0 / machine.clock_ghz();
        let rmw = machine.rmw_ns();
        // A measured cache-to-cache figure contains one transfer and one compare-and-swap.
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
                // The time within a cache is that from its first CPU to its last.
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
            // The figure contains a switch to the sleeper.
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

    /// Returns the number of the machine's CPU on which `c` is.
    pub(crate) fn place(&self, c: usize) -> usize {
        self.places[c]
    }

    /// Moves `c` to another of the machine's CPUs.
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

    /// Returns the relation of two of the machine's CPUs.
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

    /// Returns the part of a latency until the request reaches the line.
    #[inline]
    pub(crate) fn request_leg(&self, latency: u64) -> u64 {
        latency * self.request_share / 1024
    }

    /// Returns the time to transfer a line from its owner to `c`.
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

    /// Returns the time in which `c` reads a line that CPUs under these last-level caches share. It
    /// reads from the nearest of them.
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

    /// Returns the time in which `c` becomes the owner of a line that CPUs under these last-level
    /// caches share: that of a round trip to the farthest of them. `others`: whether a CPU other
    /// than `c` shares the line.
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
