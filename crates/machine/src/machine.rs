use std::collections::BTreeMap;
use std::fmt::Write;
use std::ops::Range;

use serde::{Deserialize, Serialize};

use crate::units::Units;
use crate::{Kernel, Level, Value};

/// Which reorderings of its memory accesses other CPUs can see.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum MemoryOrder {
    /// Total store order (x86): only a store followed by a load may be reordered.
    Tso,
    /// Weak order (Arm): any two accesses may be reordered unless something orders them.
    Weak,
}

/// Where the requests for a line are ordered.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Directory {
    /// In the last-level cache of the requester, so CPUs that share it need not leave it (Intel).
    Llc,
    /// At the node of the line's memory, even when owner and requester are both elsewhere (AMD).
    Home,
}

/// The relation of two CPUs, with the cost of moving a cache line between them.
#[derive(Debug, Clone, PartialEq)]
pub struct Relation {
    /// `core`, `socket`, `machine`, with hops `machine.2`: the shared unit and the distance in it.
    pub name: String,
    /// The level of the innermost unit that both CPUs share; `None` when it is the machine.
    pub share: Option<usize>,
    /// The distance class, where the topology has one for this level.
    pub hops: Option<u32>,
    /// Nanoseconds: half a round trip of a compare-and-swap ping-pong of two threads on one line.
    pub cache_to_cache: Value,
}

/// Distance classes between the units of a level.
#[derive(Debug, Clone, PartialEq)]
pub struct Hops {
    /// The level of the units.
    pub level: usize,
    /// The level of the unit that encloses them; `None` for the machine.
    pub within: Option<usize>,
    /// The class of each two units, by their numbers in the enclosing one.
    pub matrix: Vec<Vec<u32>>,
}

/// The costs that do not depend on a pair of CPUs.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Costs {
    pub l1_cycles: Value,
    pub l2_cycles: Value,
    pub llc_cycles: Value,
    pub rmw_cycles: Value,
    /// Where mitigations keep returns in the kernel from being predicted.
    pub return_cycles: Option<Value>,
    /// A pause instruction of a spinning thread.
    pub pause_cycles: Option<Value>,
    /// A call of futex to wait that returns at once, as the value has changed.
    pub futex_wait_ns: Option<Value>,
    /// A call of futex to wake, while nobody sleeps.
    pub futex_wake_ns: Option<Value>,
    /// To wake a thread whose CPU is idle: the time of the call.
    pub wake_cost_ns: Option<Value>,
    /// To wake a thread whose CPU is idle: from the call until it runs.
    pub wake_latency_ns: Option<Value>,
    /// To wake a thread without an interrupt, since its CPU runs another: the time of the call.
    pub wake_busy_cost_ns: Option<Value>,
    /// From one thread to another on the same CPU.
    pub switch_ns: Option<Value>,
    /// Between two timer interrupts, at which turns end.
    pub tick_us: Option<Value>,
    pub dram_local_ns: Value,
    pub dram_remote_ns: Value,
}

const NOT_OPTIONAL: &str = "every machine has this value";

impl Costs {
    fn get(&self, key: &str) -> Option<&Value> {
        let mut list = self.list();
        list.find(|(name, _)| *name == key).map(|(_, value)| value)
    }

    fn list(&self) -> impl Iterator<Item = (&'static str, &Value)> {
        let optional = [
            ("return_cycles", &self.return_cycles),
            ("pause_cycles", &self.pause_cycles),
            ("futex_wait_ns", &self.futex_wait_ns),
            ("futex_wake_ns", &self.futex_wake_ns),
            ("wake_cost_ns", &self.wake_cost_ns),
            ("wake_latency_ns", &self.wake_latency_ns),
            ("wake_busy_cost_ns", &self.wake_busy_cost_ns),
            ("switch_ns", &self.switch_ns),
            ("tick_us", &self.tick_us),
        ];
        let optional = optional.map(|(key, value)| Some((key, value.as_ref()?)));
        [
            ("l1_cycles", &self.l1_cycles),
            ("l2_cycles", &self.l2_cycles),
            ("llc_cycles", &self.llc_cycles),
            ("rmw_cycles", &self.rmw_cycles),
            ("dram_local_ns", &self.dram_local_ns),
            ("dram_remote_ns", &self.dram_remote_ns),
        ]
        .into_iter()
        .chain(optional.into_iter().flatten())
    }

    fn get_mut(&mut self, key: &str) -> Option<&mut Value> {
        Some(match key {
            "l1_cycles" => &mut self.l1_cycles,
            "l2_cycles" => &mut self.l2_cycles,
            "llc_cycles" => &mut self.llc_cycles,
            "rmw_cycles" => &mut self.rmw_cycles,
            "return_cycles" => self.return_cycles.as_mut()?,
            "pause_cycles" => self.pause_cycles.as_mut()?,
            "futex_wait_ns" => self.futex_wait_ns.as_mut()?,
            "futex_wake_ns" => self.futex_wake_ns.as_mut()?,
            "wake_cost_ns" => self.wake_cost_ns.as_mut()?,
            "wake_latency_ns" => self.wake_latency_ns.as_mut()?,
            "wake_busy_cost_ns" => self.wake_busy_cost_ns.as_mut()?,
            "switch_ns" => self.switch_ns.as_mut()?,
            "tick_us" => self.tick_us.as_mut()?,
            "dram_local_ns" => &mut self.dram_local_ns,
            "dram_remote_ns" => &mut self.dram_remote_ns,
            _ => return None,
        })
    }
}

/// Cores that differ from the machine's other cores, as the efficient ones of a hybrid desktop.
#[derive(Debug, Clone, PartialEq)]
pub struct CoreType {
    /// The name of the type.
    pub name: String,
    /// The level whose units have cores of this type only.
    pub level: usize,
    /// These units, counted through the machine.
    pub units: Vec<usize>,
    /// The values in which these cores differ, each with its key.
    pub(crate) values: Vec<(&'static str, Value)>,
}

impl CoreType {
    fn value(&self, key: &str) -> Option<&Value> {
        let own = self.values.iter().find(|(own, _)| *own == key);
        own.map(|(_, value)| value)
    }
}

/// A checked machine description.
///
/// CPUs are numbered in nested order with the SMT thread innermost: on a machine of two sockets of
/// two cores of two threads, CPUs 0 and 1 share a core and CPUs 0 to 3 a socket. Functions that take
/// a CPU panic when it is not below [`cpus`](Machine::cpus).
#[derive(Debug, Clone, PartialEq)]
pub struct Machine {
    /// The name it is found by.
    pub name: String,
    /// A description in one line, for people.
    pub title: String,
    /// The memory order its CPUs promise.
    pub memory_order: MemoryOrder,
    /// Where requests for a line are ordered.
    pub directory: Directory,
    /// The locks about which measurements of others contradict predictions for such machines, each with
    /// what they measured.
    pub contested: BTreeMap<String, String>,
    /// The version of Linux that it runs, if the description has it.
    pub kernel: Option<Kernel>,
    pub(crate) clock_ghz: Value,
    pub(crate) costs: Costs,
    pub(crate) core_types: Vec<CoreType>,
    /// The core type of each CPU, as an index into `core_types`.
    pub(crate) core_type_of: Vec<Option<u8>>,
    pub(crate) levels: Vec<Level>,
    pub(crate) units: Units,
    pub(crate) numa: usize,
    pub(crate) llc: usize,
    pub(crate) core: usize,
    pub(crate) hops: Vec<Hops>,
    pub(crate) relations: Vec<Relation>,
    /// The relation of CPUs a and b at `a * cpus + b`.
    pub(crate) pairs: Vec<u8>,
}

/// A level's name, or `machine` for `None`.
pub(crate) fn scope_name(levels: &[Level], level: Option<usize>) -> &str {
    level.map_or("machine", |l| &levels[l].name)
}

impl Machine {
    /// The number of CPUs, counting SMT threads.
    pub fn cpus(&self) -> usize {
        self.units.cpus()
    }

    /// The number of NUMA nodes.
    pub fn nodes(&self) -> usize {
        self.units(self.numa)
    }

    /// The number of cores.
    pub fn cores(&self) -> usize {
        self.units(self.core)
    }

    /// The number of outermost units.
    pub fn sockets(&self) -> usize {
        self.units(0)
    }

    /// The levels, outermost first.
    pub fn levels(&self) -> &[Level] {
        &self.levels
    }

    /// The index of the level that is a NUMA node.
    pub fn numa_level(&self) -> usize {
        self.numa
    }

    /// The index of the level that shares the last-level cache.
    pub fn llc_level(&self) -> usize {
        self.llc
    }

    /// The number of units of a level in the machine.
    pub fn units(&self, level: usize) -> usize {
        self.units.count(Some(level))
    }

    /// The CPUs of a unit of a level, by its number in the machine.
    pub fn cpus_of(&self, level: usize, unit: usize) -> Range<usize> {
        self.units.cpus_of(Some(level), unit)
    }

    /// The unit of a level that `cpu` belongs to, counted through the machine.
    pub fn unit(&self, level: usize, cpu: usize) -> usize {
        assert!(cpu < self.cpus(), "{} has no CPU {cpu}", self.name);
        self.units.of(Some(level), cpu)
    }

    /// The NUMA node of `cpu`.
    pub fn node_of(&self, cpu: usize) -> usize {
        self.unit(self.numa, cpu)
    }

    /// The core of `cpu`.
    pub fn core_of(&self, cpu: usize) -> usize {
        self.unit(self.core, cpu)
    }

    /// The outermost unit of `cpu`.
    pub fn socket_of(&self, cpu: usize) -> usize {
        self.unit(0, cpu)
    }

    /// The last-level cache of `cpu`.
    pub fn llc_of(&self, cpu: usize) -> usize {
        self.unit(self.llc, cpu)
    }

    /// Where units of a level differ in their distance from each other.
    pub fn hops(&self) -> &[Hops] {
        &self.hops
    }

    /// The name of the level, or `machine` for `None`.
    pub fn scope_name(&self, level: Option<usize>) -> &str {
        scope_name(&self.levels, level)
    }

    /// The relations two CPUs can stand in, the closest first.
    pub fn relations(&self) -> &[Relation] {
        &self.relations
    }

    /// The relation of two different CPUs, as an index into [`relations`](Machine::relations).
    pub fn relation(&self, a: usize, b: usize) -> usize {
        assert_ne!(a, b, "a CPU has no relation to itself");
        assert!(b < self.cpus(), "{} has no CPU {b}", self.name);
        self.pairs[a * self.cpus() + b].into()
    }

    /// The relation between `cpu` and the memory of another NUMA node, taken as that of `cpu` and
    /// the first CPU there; `None` for the node `cpu` is in.
    pub fn relation_to_node(&self, cpu: usize, node: usize) -> Option<usize> {
        let first = self.cpus_of(self.numa, node).start;
        (self.node_of(cpu) != node).then(|| self.relation(cpu, first))
    }

    /// The types of cores that differ from the others.
    pub fn core_types(&self) -> &[CoreType] {
        &self.core_types
    }

    /// The type of the core of `cpu`, as an index into [`core_types`](Machine::core_types). `None` if
    /// the core has the values of the machine.
    pub fn core_type_of(&self, cpu: usize) -> Option<usize> {
        self.core_type_of[cpu].map(usize::from)
    }

    /// A value of the core of `cpu`: that of its type, or else that of the machine.
    fn core_value(&self, cpu: usize, key: &str) -> Option<f64> {
        let core_type = self.core_type_of(cpu).map(|at| &self.core_types[at]);
        let own = core_type.and_then(|core_type| core_type.value(key));
        own.or_else(|| match key {
            "clock_ghz" => Some(&self.clock_ghz),
            _ => self.costs.get(key),
        })
        .map(|value| value.value)
    }

    /// The time of a count of cycles of the core of `cpu`, in nanoseconds.
    fn cycles_ns(&self, cpu: usize, key: &str) -> Option<f64> {
        let cycles = self.core_value(cpu, key);
        cycles.map(|cycles| cycles / self.clock_ghz(cpu))
    }

    /// The clock of the core of `cpu`, in which its counts of cycles are.
    pub fn clock_ghz(&self, cpu: usize) -> f64 {
        self.core_value(cpu, "clock_ghz").expect(NOT_OPTIONAL)
    }

    /// A load of `cpu` that hits in L1.
    pub fn l1_ns(&self, cpu: usize) -> f64 {
        self.cycles_ns(cpu, "l1_cycles").expect(NOT_OPTIONAL)
    }

    /// A load of `cpu` that hits in L2.
    pub fn l2_ns(&self, cpu: usize) -> f64 {
        self.cycles_ns(cpu, "l2_cycles").expect(NOT_OPTIONAL)
    }

    /// A load of `cpu` that hits in the last-level cache.
    pub fn llc_ns(&self, cpu: usize) -> f64 {
        self.cycles_ns(cpu, "llc_cycles").expect(NOT_OPTIONAL)
    }

    /// An atomic read-modify-write of `cpu` on a line owned in L1.
    pub fn rmw_ns(&self, cpu: usize) -> f64 {
        self.cycles_ns(cpu, "rmw_cycles").expect(NOT_OPTIONAL)
    }

    /// Nanoseconds of a return of `cpu` in the kernel if mitigations keep it from being predicted; else
    /// 0.
    pub fn return_ns(&self, cpu: usize) -> f64 {
        self.cycles_ns(cpu, "return_cycles").unwrap_or(0.0)
    }

    /// A load from the memory of the CPU's own node.
    pub fn dram_local_ns(&self) -> f64 {
        self.costs.dram_local_ns.value
    }

    /// A load from the memory of another node.
    pub fn dram_remote_ns(&self) -> f64 {
        self.costs.dram_remote_ns.value
    }

    /// The value of a key of `[costs]`, if the description has it.
    pub fn cost(&self, key: &str) -> Option<&Value> {
        self.costs.get(key)
    }

    /// Every value with its key and unit, for listing.
    pub fn values(&self) -> Vec<(String, &Value, &'static str)> {
        let clock = ("clock_ghz".to_owned(), &self.clock_ghz, "GHz");
        let costs = self
            .costs
            .list()
            .map(|(key, value)| (key.to_owned(), value, unit_of_key(key)));
        let core_types = self.core_types.iter().flat_map(|core_type| {
            core_type.values.iter().map(|(key, value)| {
                let name = format!("core_type.{}.{key}", core_type.name);
                (name, value, unit_of_key(key))
            })
        });
        let relations = self.relations.iter().map(|r| {
            (
                format!("cache_to_cache.{}", r.name),
                &r.cache_to_cache,
                "ns",
            )
        });
        std::iter::once(clock)
            .chain(costs)
            .chain(core_types)
            .chain(relations)
            .collect()
    }

    /// The value of a key that [`values`](Machine::values) lists, for a fit to overwrite.
    pub fn value_mut(&mut self, key: &str) -> Option<&mut Value> {
        if key == "clock_ghz" {
            return Some(&mut self.clock_ghz);
        }
        if let Some((name, key)) = key
            .strip_prefix("core_type.")
            .and_then(|rest| rest.rsplit_once('.'))
        {
            let core_type = self.core_types.iter_mut().find(|t| t.name == name)?;
            let own = core_type.values.iter_mut().find(|(own, _)| *own == key);
            return own.map(|(_, value)| value);
        }
        match key.strip_prefix("cache_to_cache.") {
            Some(name) => self
                .relations
                .iter_mut()
                .find(|r| r.name == name)
                .map(|r| &mut r.cache_to_cache),
            None => self.costs.get_mut(key),
        }
    }

    /// A sentence for each of the locks whose predictions on this machine are contested.
    pub fn contested<'a>(&'a self, locks: &'a [&str]) -> impl Iterator<Item = String> + 'a {
        let contested = self.contested.iter();
        contested
            .filter(|(lock, _)| locks.contains(&lock.as_str()))
            .map(|(lock, why)| format!("Contested: {lock} on {}: {why}.", self.name))
    }

    /// The description as TOML that [`Machine::parse`] reads back.
    pub fn to_toml(&self) -> String {
        let scope = |level| toml(self.scope_name(level));
        let mut out = format!(
            "name = {}\ntitle = {}\nmemory_order = {}\ndirectory = {}\n{}{}clock_ghz = {}\n\n\
             [topology]\nlevels = {}\nnuma = {}\nllc = {}\n",
            toml(&self.name),
            toml(&self.title),
            toml(&self.memory_order),
            toml(&self.directory),
            self.kernel
                .map(|kernel| format!("kernel = {}\n", toml(&kernel)))
                .unwrap_or_default(),
            match self.contested.is_empty() {
                true => String::new(),
                false => format!("contested = {}\n", toml(&self.contested)),
            },
            toml(&self.clock_ghz),
            toml(&self.levels),
            scope(Some(self.numa)),
            scope(Some(self.llc)),
        );
        // Writing to a String cannot fail.
        for hops in &self.hops {
            let _ = write!(
                out,
                "\n[[topology.hops]]\nlevel = {}\nwithin = {}\nmatrix = {}\n",
                scope(Some(hops.level)),
                scope(hops.within),
                toml(&hops.matrix),
            );
        }
        out.push_str("\n[costs]\n");
        for (key, value) in self.costs.list() {
            let _ = writeln!(out, "{key} = {}", toml(value));
        }
        for core_type in &self.core_types {
            let _ = write!(
                out,
                "\n[[core_type]]\nname = {}\nlevel = {}\nunits = {}\n",
                toml(&core_type.name),
                scope(Some(core_type.level)),
                toml(&core_type.units),
            );
            for (key, value) in &core_type.values {
                let _ = writeln!(out, "{key} = {}", toml(value));
            }
        }
        for relation in &self.relations {
            let _ = write!(out, "\n[[relation]]\nshare = {}\n", scope(relation.share));
            if let Some(hops) = relation.hops {
                let _ = writeln!(out, "hops = {hops}");
            }
            let _ = writeln!(
                out,
                "cache_to_cache_ns = {}",
                toml(&relation.cache_to_cache)
            );
        }
        out
    }
}

/// The unit of a value, which is the end of its key.
fn unit_of_key(key: &str) -> &'static str {
    match key.rsplit_once('_') {
        Some((_, "cycles")) => "cycles",
        Some((_, "ghz")) => "GHz",
        Some((_, "us")) => "us",
        _ => "ns",
    }
}

/// Anything as an inline TOML value, its keys in the order of the type.
pub(crate) fn toml<T: Serialize + ?Sized>(value: &T) -> String {
    let mut out = String::new();
    value
        .serialize(toml::ser::ValueSerializer::new(&mut out))
        .expect("descriptions hold only what TOML can say");
    out
}

#[cfg(test)]
mod tests {
    use crate::Machine;

    fn name(machine: &Machine, a: usize, b: usize) -> &str {
        assert_eq!(machine.relation(a, b), machine.relation(b, a));
        &machine.relations()[machine.relation(a, b)].name
    }

    #[test]
    fn cpus_are_in_nested_order() {
        let m = Machine::find("oracle-x5-4").unwrap();
        assert_eq!(
            (m.cpus(), m.cores(), m.nodes(), m.sockets()),
            (144, 72, 4, 4)
        );
        assert_eq!((m.core_of(1), m.core_of(2)), (0, 1));
        assert_eq!((m.socket_of(35), m.node_of(36), m.llc_of(143)), (0, 1, 3));
        assert_eq!(name(&m, 0, 1), "core");
        assert_eq!(name(&m, 1, 2), "socket");
        assert_eq!(name(&m, 35, 36), "machine");
        assert_eq!(m.rmw_ns(0), 20.0 / 2.6);
    }

    #[test]
    fn epyc_distances() {
        let m = Machine::find("epyc-9654-nps4").unwrap();
        assert_eq!(
            (m.cpus(), m.cores(), m.nodes(), m.sockets()),
            (384, 192, 8, 2)
        );
        // 16 CPUs a CCX, 48 a quadrant, 192 a socket.
        for (b, relation, ns) in [
            (1, "core", 10.0),
            (15, "ccx", 27.0),
            (16, "quadrant", 90.0),
            (48, "socket.1", 97.0),
            (96, "socket.1", 97.0),
            (144, "socket.2", 101.0),
            (192, "machine", 192.0),
            (383, "machine", 192.0),
        ] {
            assert_eq!(name(&m, 0, b), relation);
            assert_eq!(m.relations()[m.relation(0, b)].cache_to_cache.value, ns);
        }
        assert_eq!(name(&m, 192 + 48, 192 + 96), "socket.2");
    }

    #[test]
    fn epyc_nodes() {
        for (n, nodes, cpus) in [(1, 2, 192), (2, 4, 96), (4, 8, 48), (12, 24, 16)] {
            let m = Machine::find(&format!("epyc-9654-nps{n}")).unwrap();
            assert_eq!((m.cpus(), m.nodes()), (384, nodes));
            assert_eq!((m.node_of(cpus - 1), m.node_of(cpus)), (0, 1));
            assert_eq!(m.relation_to_node(0, 0), None);
            let other = m.relation_to_node(0, nodes - 1).unwrap();
            assert_eq!(m.relations()[other].name, "machine");
        }
    }

    #[test]
    fn westmere_hops() {
        let m = Machine::find("westmere-ex-8").unwrap();
        assert_eq!((m.cpus(), m.cores(), m.nodes()), (160, 80, 8));
        let to = |socket: usize| name(&m, 0, socket * 20);
        assert_eq!(
            (1..8).map(to).collect::<Vec<_>>(),
            [
                "machine.1",
                "machine.2",
                "machine.2",
                "machine.3",
                "machine.3",
                "machine.3",
                "machine.3"
            ]
        );
        assert_eq!(name(&m, 6 * 20, 7 * 20), "machine.1");
    }

    #[test]
    fn kunpeng_distances() {
        let m = Machine::find("kunpeng-920").unwrap();
        assert_eq!(
            (m.cpus(), m.cores(), m.nodes(), m.sockets()),
            (96, 96, 4, 2)
        );
        let to = |cpu| name(&m, 0, cpu);
        assert_eq!(
            [1, 4, 24, 48, 72].map(to),
            ["cluster", "die", "socket", "machine.1", "machine.2"]
        );
        assert_eq!(name(&m, 24, 72), "machine.2");
    }

    #[test]
    fn sizes_of_the_rest() {
        for (machine, cpus, nodes) in [
            ("haswell-ex-4", 64, 4),
            ("sapphire-rapids-2", 224, 2),
            ("ice-lake-8375c-2", 128, 2),
            ("graviton4-2", 192, 2),
            ("epyc-9684x-nps1", 384, 2),
            ("epyc-9684x-nps4", 384, 8),
            ("epyc-9755-nps1", 512, 2),
            ("epyc-9755-nps4", 512, 8),
            ("epyc-9965-nps1", 768, 2),
            ("granite-rapids-2", 512, 2),
            ("granite-rapids-2-snc3", 512, 6),
            ("sapphire-rapids-4", 480, 4),
            ("ampereone", 192, 1),
            ("core-i9-14900k", 32, 1),
            ("power10-4", 480, 4),
            ("cascade-lake-8275cl-2", 96, 2),
            ("broadwell-2", 88, 2),
            ("broadwell-10-2", 40, 2),
            ("epyc-7351-2", 64, 8),
            ("core-i5-2500k", 4, 1),
            ("core-i7-7820hq", 8, 1),
            ("threadripper-1950x", 32, 1),
        ] {
            let m = Machine::find(machine).unwrap();
            assert_eq!((m.cpus(), m.nodes()), (cpus, nodes), "{machine}");
        }
    }

    #[test]
    fn dies_of_different_sizes() {
        let m = Machine::find("granite-rapids-2-snc3").unwrap();
        // Dies of 43, 43 and 42 cores of two threads.
        let ends = [85, 86, 171, 172, 255, 256, 511];
        assert_eq!(ends.map(|cpu| m.node_of(cpu)), [0, 1, 1, 2, 2, 3, 5]);
        assert_eq!(m.cpus_of(m.numa_level(), 2), 172..256);
        assert_eq!(
            [1, 85, 86, 172, 256].map(|cpu| name(&m, 0, cpu)),
            ["core", "die", "socket.1", "socket.2", "machine"]
        );
        let other = m.relation_to_node(300, 2).unwrap();
        assert_eq!(m.relations()[other].name, "machine");
    }

    #[test]
    fn cores_of_two_types() {
        let m = Machine::find("core-i9-14900k").unwrap();
        assert_eq!((m.cpus(), m.cores()), (32, 24));
        assert_eq!([0, 15, 16, 31].map(|cpu| m.core_of(cpu)), [0, 7, 8, 23]);
        let types = [0, 15, 16, 31].map(|cpu| m.core_type_of(cpu));
        assert_eq!(types, [None, None, Some(0), Some(0)]);
        assert_eq!(m.core_types()[0].name, "efficient");
        assert_eq!((m.clock_ghz(15), m.clock_ghz(16)), (5.6, 4.4));
        assert_eq!((m.l1_ns(0), m.l1_ns(31)), (5.0 / 5.6, 3.0 / 4.4));
        assert_eq!(
            [1, 2, 16].map(|cpu| name(&m, 0, cpu)),
            ["core", "socket.1", "socket.2"]
        );
        assert_eq!(
            [19, 20].map(|cpu| name(&m, 16, cpu)),
            ["cluster", "socket.3"]
        );
    }

    #[test]
    fn every_listed_value_can_be_overwritten() {
        for (machine, key, unknown) in [
            (
                "epyc-9654-nps4",
                "cache_to_cache.socket.2",
                "cache_to_cache.socket",
            ),
            (
                "core-i9-14900k",
                "core_type.efficient.clock_ghz",
                "core_type.efficient.return_cycles",
            ),
        ] {
            let mut m = Machine::find(machine).unwrap();
            let keys: Vec<String> = m.values().into_iter().map(|(key, ..)| key).collect();
            assert!(keys.contains(&key.to_owned()));
            for key in &keys {
                m.value_mut(key).unwrap().value = 7.0;
            }
            assert!(m.values().iter().all(|(_, v, _)| v.value == 7.0));
            assert!(m.value_mut(unknown).is_none());
            assert!(m.value_mut("l4_cycles").is_none());
        }
    }
}
