//! The times that the engine needs, computed from a machine, a placement of threads and parameters.

use lockworks_machine::{Directory, Machine, MemoryOrder};

use crate::parameters::Parameters;

fn picoseconds(ns: f64) -> u64 {
    (ns * 1000.0).round() as u64
}

/// The times of the host's scheduler, in picoseconds.
#[derive(Clone, Copy)]
pub(crate) struct SchedulerTimes {
    /// Whether the scheduler is EEVDF, not CFS.
    pub(crate) eevdf: bool,
    /// EEVDF: the time that a runner asks for.
    pub(crate) slice: u64,
    /// CFS: the period in which each runner of a processor has a turn.
    pub(crate) latency: u64,
    /// CFS: the shortest turn.
    pub(crate) granularity: u64,
    /// CFS: a runner that wakes preempts one that has run longer by this time.
    pub(crate) wakeup_granularity: u64,
    /// An idle CPU does not take a runner that has run less long ago than this.
    pub(crate) hot: u64,
    /// Turns end at multiples of this time.
    pub(crate) tick: u64,
}

/// The times of runners that sleep, wake and share CPUs, in picoseconds. Runners are threads or
/// virtual CPUs.
#[derive(Clone, Copy)]
pub(crate) struct HostTimes {
    pub(crate) scheduler: SchedulerTimes,
    /// Whether a runner that another CPU wakes only marks the one that it preempts.
    pub(crate) lazy: bool,
    /// The time of an extension of a slice.
    pub(crate) slice_extension: u64,
    /// The first part of a switch: the time in which a runner leaves its CPU. A thread that is woken
    /// in this time does not sleep yet.
    pub(crate) leave: u64,
    /// The second part of a switch: the time until another runner runs.
    pub(crate) enter: u64,
    /// The time that a wake-up takes of the waker, if it interrupts the sleeper's CPU.
    pub(crate) wake_cost: u64,
    /// The time from such a wake-up until the sleeper enters its CPU, which was idle.
    pub(crate) wake_latency: u64,
    /// The time that a wake-up takes of the waker, if it interrupts no CPU.
    pub(crate) wake_busy_cost: u64,
    /// The period in which idle processors search the whole machine for waiting runners, for each of
    /// the processors.
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

/// The times that are cycles of a core, in picoseconds. The cores of a type have the same ones.
#[derive(Clone, Copy)]
pub(crate) struct CoreTimes {
    pub(crate) l1: u64,
    pub(crate) store: u64,
    pub(crate) rmw: u64,
    /// The time of one poll of a spin loop.
    pub(crate) look: u64,
    pub(crate) spin_exit: u64,
    pub(crate) reorder_window: u64,
    llc: u64,
    /// The time for which a read of a shared line keeps other reads of it waiting: that of the answer
    /// from the last-level cache. The home of the line answers one read after the other.
    pub(crate) read_occupancy: u64,
}

impl CoreTimes {
    fn new(machine: &Machine, machine_cpu: usize, parameters: &Parameters) -> Self {
        let cycle = 1.0 / machine.clock_ghz(machine_cpu);
        let of_cycles = |key| picoseconds(parameters.get(key) * cycle);
        Self {
            l1: picoseconds(machine.l1_ns(machine_cpu)),
            store: picoseconds(cycle),
            rmw: picoseconds(machine.rmw_ns(machine_cpu)),
            look: of_cycles("spin_round_cycles"),
            spin_exit: of_cycles("spin_exit_cycles"),
            reorder_window: of_cycles("reorder_window_cycles"),
            llc: picoseconds(machine.llc_ns(machine_cpu)),
            read_occupancy: picoseconds(
                (1.0 - parameters.get("request_share")) * machine.llc_ns(machine_cpu),
            ),
        }
    }
}

/// The machine as the engine needs it; times are in picoseconds. A "CPU" here is a simulated thread
/// on the machine's CPU where it is placed.
pub(crate) struct Model {
    pub(crate) order: MemoryOrder,
    /// The times of each core type. Those of cores without a type come first.
    core_times: Vec<CoreTimes>,
    /// The core type of each CPU, as an index into `core_times`.
    core_types: Vec<u8>,
    pub(crate) thread_times: HostTimes,
    pub(crate) guest_times: HostTimes,
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
    machine_cpus: Vec<usize>,
    nodes: Vec<u16>,
    llcs: Vec<u16>,
    /// The core of each CPU.
    cores: Vec<u16>,
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
    pub(crate) fn new(
        machine: &Machine,
        machine_cpus: Vec<usize>,
        parameters: &Parameters,
    ) -> Self {
        let n = machine_cpus.len();
        // A measured cache-to-cache figure contains one transfer and one compare-and-swap.
        let mut transfers: Vec<u64> = machine
            .relations()
            .iter()
            .zip(compare_and_swaps(machine))
            .map(|(r, rmw)| picoseconds((r.cache_to_cache.value - rmw).max(machine.l1_ns(0))))
            .collect();
        let itself = transfers.len() as u8;
        transfers.push(0);

        let llcs: Vec<u16> = machine_cpus
            .iter()
            .map(|&p| machine.llc_of(p) as u16)
            .collect();
        let node_count = machine.nodes();
        let mut relations = vec![itself; n * n];
        let mut node_relations = vec![itself; n * node_count];
        for a in 0..n {
            for b in (0..n).filter(|&b| machine_cpus[b] != machine_cpus[a]) {
                relations[a * n + b] = machine.relation(machine_cpus[a], machine_cpus[b]) as u8;
            }
            for node in 0..node_count {
                if let Some(relation) = machine.relation_to_node(machine_cpus[a], node) {
                    node_relations[a * node_count + node] = relation as u8;
                }
            }
        }

        let llc_count = Some(machine.units(machine.llc_level()))
            .filter(|&count| count <= u64::BITS as usize)
            .unwrap_or(0);
        let llc_cpus = |llc: usize| machine.cpus_of(machine.llc_level(), llc);
        let first_cpu = |llc: usize| llc_cpus(llc).start;
        let llc_transfers = (0..llc_count * llc_count)
            .map(|i| {
                let (a, b) = (i / llc_count, i % llc_count);
                // The time within a cache is that from its first CPU to its last.
                let to = if a == b {
                    llc_cpus(b).end - 1
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
        // Hosts count cycles of a clock that all cores share, which is taken as that of the first one.
        let cycle = 1.0 / machine.clock_ghz(0);
        let of_cycles = |key| picoseconds(parameters.get(key) * cycle);
        let switch = of("switch_ns");
        let leave = switch / 2;
        let enter = switch - leave;
        let thread_times = HostTimes {
            scheduler: SchedulerTimes {
                eevdf: parameters.get("eevdf") != 0.0,
                slice: slice_for(machine.cpus(), of_us("base_slice_us")),
                latency: of_us("scheduler_latency_us"),
                granularity: of_us("scheduler_granularity_us"),
                wakeup_granularity: of_us("wakeup_granularity_us"),
                hot: of_us("migration_cost_us"),
                tick: of_us("tick_period_us"),
            },
            lazy: parameters.get("lazy_preemption") != 0.0,
            slice_extension: of_us("slice_extension_us"),
            leave,
            enter,
            wake_cost: of("wake_cost_ns"),
            // The figure contains the time in which the sleeper enters its CPU.
            wake_latency: of("wake_latency_ns").saturating_sub(enter),
            wake_busy_cost: of("wake_busy_cost_ns"),
            balance_period: of_us("balance_us_a_cpu"),
            poll_first: 0,
            poll_most: 0,
            poll_latency: 0,
            pause_window: 0,
            pause_gap: 0,
        };
        let guest_times = HostTimes {
            // A virtual CPU halts in the guest before it leaves its CPU.
            leave: 0,
            enter: switch,
            wake_cost: of("kick_cost_ns"),
            wake_latency: of("kick_latency_ns").saturating_sub(switch),
            poll_first: of_us("halt_poll_first_us"),
            poll_most: of_us("halt_poll_most_us"),
            poll_latency: of_cycles("poll_wake_cycles"),
            pause_window: of_cycles("pause_window_cycles"),
            pause_gap: of_cycles("pause_gap_cycles"),
            ..thread_times
        };

        Self {
            order: machine.memory_order,
            core_times: first_of_each_core_type(machine)
                .map(|machine_cpu| CoreTimes::new(machine, machine_cpu, parameters))
                .collect(),
            core_types: machine_cpus
                .iter()
                .map(|&p| core_type(machine, p))
                .collect(),
            thread_times,
            guest_times,
            dram_local: picoseconds(machine.dram_local_ns()),
            dram_remote: picoseconds(machine.dram_remote_ns()),
            request_share: (parameters.get("request_share") * 1024.0) as u64,
            tick_period: picoseconds(parameters.get("tick_period_us") * 1000.0),
            tick_ns: parameters.get("tick_ns") as u32,
            home_node: parameters.get("home_node") as u16,
            transfer_spread: (parameters.get("transfer_spread") * 1024.0) as u64,
            ordered_at_home: machine.directory == Directory::Home,
            nodes: machine_cpus
                .iter()
                .map(|&p| machine.node_of(p) as u16)
                .collect(),
            llcs,
            cores: machine_cpus
                .iter()
                .map(|&p| machine.core_of(p) as u16)
                .collect(),
            relations,
            node_relations,
            node_count,
            transfers,
            llc_transfers,
            llc_count,
            machine: machine.clone(),
            machine_cpus,
        }
    }

    /// Returns the number of the machine's CPU on which `c` is.
    pub(crate) fn machine_cpu(&self, c: usize) -> usize {
        self.machine_cpus[c]
    }

    /// Moves `c` to another of the machine's CPUs.
    pub(crate) fn set_machine_cpu(&mut self, c: usize, machine_cpu: usize) {
        let n = self.machine_cpus.len();
        self.machine_cpus[c] = machine_cpu;
        self.nodes[c] = self.machine.node_of(machine_cpu) as u16;
        self.llcs[c] = self.llc_of_machine_cpu(machine_cpu);
        self.cores[c] = self.machine.core_of(machine_cpu) as u16;
        self.core_types[c] = core_type(&self.machine, machine_cpu);
        for other in (0..n).filter(|&other| other != c) {
            self.relations[c * n + other] = self.relation(machine_cpu, self.machine_cpus[other]);
            self.relations[other * n + c] = self.relation(self.machine_cpus[other], machine_cpu);
        }
        for node in 0..self.node_count {
            self.node_relations[c * self.node_count + node] =
                self.relation_to_node(machine_cpu, node);
        }
    }

    /// The core type of `c`, for [`Model::core`].
    pub(crate) fn core_type(&self, c: u16) -> u8 {
        self.core_types[usize::from(c)]
    }

    /// The times of the cores of a type.
    #[inline]
    pub(crate) fn core(&self, core_type: u8) -> &CoreTimes {
        &self.core_times[usize::from(core_type)]
    }

    /// The times of the core of `c`.
    #[inline]
    pub(crate) fn core_of(&self, c: u16) -> &CoreTimes {
        self.core(self.core_types[usize::from(c)])
    }

    pub(crate) fn llc_of_machine_cpu(&self, machine_cpu: usize) -> u16 {
        self.machine.llc_of(machine_cpu) as u16
    }

    pub(crate) fn share_core(&self, a: usize, b: usize) -> bool {
        self.machine.core_of(a) == self.machine.core_of(b)
    }

    /// The CPUs on the core of `c`, without it.
    pub(crate) fn others_on_core(&self, c: usize) -> impl Iterator<Item = u16> {
        let on_core = move |&other: &usize| other != c && self.cores[other] == self.cores[c];
        (0..self.cpus()).filter(on_core).map(|other| other as u16)
    }

    /// The core of `c`. All CPUs of a core use the same caches.
    #[inline]
    pub(crate) fn core_number(&self, c: u16) -> usize {
        usize::from(self.cores[usize::from(c)])
    }

    /// The number of cores of the machine.
    pub(crate) fn core_count(&self) -> usize {
        self.machine.core_of(self.machine.cpus() - 1) + 1
    }

    /// Returns the relation of two of the machine's CPUs.
    fn relation(&self, a: usize, b: usize) -> u8 {
        if a == b {
            self.itself()
        } else {
            self.machine.relation(a, b) as u8
        }
    }

    fn relation_to_node(&self, machine_cpu: usize, node: usize) -> u8 {
        let relation = self.machine.relation_to_node(machine_cpu, node);
        relation.map_or(self.itself(), |r| r as u8)
    }

    fn itself(&self) -> u8 {
        self.transfers.len() as u8 - 1
    }

    pub(crate) fn cpus(&self) -> usize {
        self.machine_cpus.len()
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
        let direct =
            self.transfers[usize::from(self.relations[c * self.machine_cpus.len() + owner])];
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

    /// The last-level cache of `c` as a set of bits. Empty: the machine has too many of them.
    pub(crate) fn llc_set(&self, c: u16) -> u64 {
        match self.llc_count {
            0 => 0,
            _ => 1 << self.llc(c),
        }
    }

    /// Returns the time in which `c` reads a line that `holders` have. It reads from the nearest of them.
    pub(crate) fn fetch_shared(&self, c: u16, holders: &impl Holders, home: u16) -> u64 {
        let llc = self.llc(c);
        if self.each_llc(c, holders).any(|(other, _)| other == llc) {
            return self.core_of(c).llc;
        }
        let nearest = self.each_llc(c, holders).map(|(_, time)| time).min();
        let nearest = nearest.expect("a shared line is under some cache");
        let c = usize::from(c);
        if self.ordered_at_home {
            nearest.max(self.to_home(c, home))
        } else {
            nearest
        }
    }

    /// Returns the time in which `c` becomes the owner of a line that `holders` have: that of a round trip
    /// to the farthest of them. `others`: whether a CPU other than `c` shares the line.
    pub(crate) fn invalidate(
        &self,
        c: u16,
        holders: &impl Holders,
        others: bool,
        home: u16,
    ) -> u64 {
        if !others {
            return self.core_of(c).l1;
        }
        let farthest = self.each_llc(c, holders).map(|(_, time)| time).max();
        let farthest = farthest.expect("a shared line is under some cache");
        let (llc, c) = (self.llc(c), usize::from(c));
        if self.ordered_at_home
            && self
                .each_llc(c as u16, holders)
                .any(|(other, _)| other != llc)
        {
            farthest.max(self.to_home(c, home))
        } else {
            farthest
        }
    }

    /// The last-level caches of the holders, with the time of a transfer from there to `c`.
    #[inline]
    fn each_llc(&self, c: u16, holders: &impl Holders) -> impl Iterator<Item = (u16, u64)> {
        let llcs = holders.llcs();
        let row = &self.llc_transfers[usize::from(self.llc(c)) * self.llc_count..];
        let named = std::iter::successors(Some(llcs), |rest| Some(rest & rest.wrapping_sub(1)))
            .take_while(|&rest| rest != 0)
            .map(|rest| rest.trailing_zeros() as u16)
            .map(|llc| (llc, row[usize::from(llc)]));
        let others = (llcs == 0).then(|| holders.cpus()).into_iter().flatten();
        named.chain(others.map(move |cpu| {
            let n = self.machine_cpus.len();
            let relation = self.relations[usize::from(c) * n + usize::from(cpu)];
            (self.llc(cpu), self.transfers[usize::from(relation)])
        }))
    }

    pub(crate) fn describe_cpu(&self, c: usize) -> String {
        format!(
            "machine CPU {}, node {}",
            self.machine_cpus[c], self.nodes[c]
        )
    }
}

/// The slice of EEVDF on a machine with so many CPUs.
fn slice_for(cpus: usize, base: u64) -> u64 {
    base * (1 + u64::from(cpus.clamp(1, 8).ilog2()))
}

/// The CPUs that have a line.
pub(crate) trait Holders {
    /// Their last-level caches, as a set of bits. Empty: the machine has too many of them.
    fn llcs(&self) -> u64;

    /// The CPUs.
    fn cpus(&self) -> impl Iterator<Item = u16>;
}

/// The index of a CPU's core type among those of the model, where cores without a type are the first.
fn core_type(machine: &Machine, machine_cpu: usize) -> u8 {
    machine
        .core_type_of(machine_cpu)
        .map_or(0, |at| at as u8 + 1)
}

/// A CPU of each core type of the model. A type that no CPU has is represented by the first CPU.
fn first_of_each_core_type(machine: &Machine) -> impl Iterator<Item = usize> {
    let first = |of| (0..machine.cpus()).find(|&cpu| machine.core_type_of(cpu) == of);
    std::iter::once(None)
        .chain((0..machine.core_types().len()).map(Some))
        .map(move |of| first(of).unwrap_or(0))
}

/// The time of a compare-and-swap in each relation of the machine, in nanoseconds. In a relation of
/// cores that differ, it is the mean of the shortest and the longest.
fn compare_and_swaps(machine: &Machine) -> Vec<f64> {
    if machine.core_types().is_empty() {
        return vec![machine.rmw_ns(0); machine.relations().len()];
    }
    let mut ranges = vec![(f64::INFINITY, 0.0); machine.relations().len()];
    for a in 0..machine.cpus() {
        let rmw = machine.rmw_ns(a);
        for b in (0..machine.cpus()).filter(|&b| b != a) {
            let (low, high): &mut (f64, f64) = &mut ranges[machine.relation(a, b)];
            *low = low.min(rmw);
            *high = high.max(rmw);
        }
    }
    let means = ranges
        .into_iter()
        .map(|(low, high)| f64::midpoint(low, high));
    means.collect()
}
