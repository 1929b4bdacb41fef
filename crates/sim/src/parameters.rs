//! The parameters: values of the model that are not in the machine description, each with its
//! source.

use lockworks_machine::{Machine, Mark};

/// A value of the model that is not in the machine description.
#[derive(Clone, Debug)]
pub struct Parameter {
    /// The name of the parameter in fits and reports.
    pub key: &'static str,
    /// The value itself.
    pub value: f64,
    /// The lowest figure that was found, if the machine's description has one.
    pub low: Option<f64>,
    /// The highest figure that was found, if the machine's description has one.
    pub high: Option<f64>,
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

/// Parameters that a machine's description may have, with its key and what is added to its value: a
/// round of a spin loop has a load, a comparison and a branch besides the pause.
const FROM_MACHINE: [(&str, &str, f64); 6] = [
    ("spin_round_cycles", "pause_cycles", 5.0),
    ("wake_cost_ns", "wake_cost_ns", 0.0),
    ("wake_latency_ns", "wake_latency_ns", 0.0),
    ("wake_busy_cost_ns", "wake_busy_cost_ns", 0.0),
    ("switch_ns", "switch_ns", 0.0),
    ("tick_period_us", "tick_us", 0.0),
];

impl Default for Parameters {
    fn default() -> Self {
        let parameter = |key, value, unit, mark, source: &str| Parameter {
            key,
            value,
            low: None,
            high: None,
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
                Mark::I,
                "a call that wakes a thread whose CPU is idle, by an interrupt; taken as a switch",
            ),
            parameter(
                "wake_latency_ns",
                4000.0,
                "ns",
                Mark::E,
                "wake and switch across CPUs",
            ),
            parameter(
                "wake_busy_cost_ns",
                700.0,
                "ns",
                Mark::R,
                "a call that wakes a thread without an interrupt: its CPU runs another thread, or it \
                 does not sleep yet; 0.5-0.9 us",
            ),
            parameter(
                "switch_ns",
                1240.0,
                "ns",
                Mark::E,
                "context switch on one CPU, 1.07-1.4 us",
            ),
            parameter(
                "eevdf",
                1.0,
                "yes or no",
                Mark::R,
                "the scheduler of Linux 6.6 and later, EEVDF; 0: the one before it, CFS",
            ),
            parameter(
                "lazy_preemption",
                0.0,
                "yes or no",
                Mark::R,
                "before Linux 7.0, a thread that is woken preempts the running one at once; 1: lazy \
                 preemption, it waits for a tick or the end of a system call",
            ),
            parameter(
                "base_slice_us",
                700.0,
                "us",
                Mark::R,
                "EEVDF: the slice of one CPU; 2 CPUs have 2 of it, 4 have 3, and 8 or more have 4",
            ),
            parameter(
                "scheduler_latency_us",
                24_000.0,
                "us",
                Mark::R,
                "CFS at 8 CPUs or more: the runners of a CPU share this time",
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
                "slice_extension_us",
                5.0,
                "us",
                Mark::R,
                "Linux 7.2: the time slice extension that a thread with a lock may ask for \
                 (mutex_slice); debugfs allows up to 50",
            ),
            parameter(
                "migration_cost_us",
                500.0,
                "us",
                Mark::R,
                "Linux' fair scheduler: an idle CPU takes no runner that has run less long ago",
            ),
            parameter(
                "balance_us_a_cpu",
                1_000.0,
                "us",
                Mark::R,
                "Linux' fair scheduler: the period of balancing, for each CPU",
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
    /// Takes over what the machine's description has.
    pub(crate) fn measured_on(&mut self, machine: &Machine) {
        for (_, of_machine, _) in FROM_MACHINE {
            self.take_over(machine, of_machine);
        }
    }

    /// Takes over a value of the machine, if it is one that parameters have from it.
    pub(crate) fn take_over(&mut self, machine: &Machine, cost: &str) {
        let taken = FROM_MACHINE.iter().find(|(_, of, _)| *of == cost);
        if let Some((key, _, more)) = taken
            && let (Some(value), Some(parameter)) = (machine.cost(cost), self.parameter_mut(key))
        {
            parameter.value = value.value + more;
            parameter.low = value.low.map(|low| low + more);
            parameter.high = value.high.map(|high| high + more);
            parameter.mark = value.mark;
            parameter.source = format!("{cost} of the machine: {}", value.source);
        }
    }

    /// Returns each parameter that may have a value of the machine, and that value: their keys in a
    /// scenario.
    pub(crate) fn taken_over() -> impl Iterator<Item = (String, String)> {
        FROM_MACHINE
            .iter()
            .map(|(key, of_machine, _)| (format!("model.{key}"), format!("machine.{of_machine}")))
    }

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
