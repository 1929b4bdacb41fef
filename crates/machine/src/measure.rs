//! Measures the machine on which this program runs, and describes it.

mod probe;
mod system_files;
mod topology;

use std::collections::BTreeSet;
use std::iter::{repeat_n, zip};
use std::path::Path;

use crate::machine::toml;
use crate::ticks::Load;
use crate::{Error, Machine, Mark, Value, affinity, builtin};
use topology::Topology;

/// The most pairs of CPUs of each relation that are measured.
const PAIRS: usize = 12;
/// The least number of measurements of each relation. Of a virtual machine, the CPUs move on the host from one
/// to the next.
const LEAST_MEASUREMENTS: usize = 5;
/// The share of the CPUs' time that other work may have without a mark on the values.
const BEARABLE: f64 = 0.05;
/// The cache sizes of most CPUs, for machines that do not report theirs.
const USUAL_CACHES: [usize; 3] = [32 << 10, 1 << 20, 32 << 20];
/// The most memory for the latency of DRAM. More would take longer to fill, and would miss the caches
/// no more often.
const MAX_BYTES: usize = 512 << 20;

/// The result of measuring a machine.
#[derive(Debug, Clone)]
pub struct Measured {
    /// The description of the machine; [`Machine::to_toml`] formats it.
    pub machine: Machine,
    /// Notes of one line each about facts that could not be read or do not fit nested levels.
    pub warnings: Vec<String>,
}

/// Describes and measures this machine, which should do nothing else meanwhile.
///
/// It takes less than a minute even on a large machine. `progress` gets the number of steps that are
/// done, and of all steps. The place where requests are ordered cannot be measured, so
/// [`Machine::directory`] follows from the vendor.
pub fn this_machine(progress: impl FnMut(usize, usize)) -> Result<Measured, Error> {
    let allowed: BTreeSet<usize> = affinity::allowed()
        .map_err(|e| Error::Measure(format!("cannot tell which CPUs to use: {e}")))?
        .into_iter()
        .collect();
    let begin = Load::beside_this_process();
    let mut measured = measure(topology::read(Path::new("/"), &allowed), progress)?;
    affinity::check(allowed.len()).map_err(|e| Error::Measure(e.to_string()))?;
    let others = (|| Some(Load::beside_this_process()?.others_since(&begin?)))();
    if let Some(share) = others.filter(|&share| share > BEARABLE) {
        mark_busy(&mut measured, share);
    }
    Ok(measured)
}

/// Marks all measured values: other work had this share of the CPUs' time meanwhile.
fn mark_busy(measured: &mut Measured, share: f64) {
    let percent = 100.0 * share;
    let keys: Vec<String> = measured
        .machine
        .values()
        .into_iter()
        .filter(|(_, value, _)| value.mark == Mark::E && value.source.contains("measured"))
        .map(|(key, ..)| key)
        .collect();
    for key in keys {
        let value = measured.machine.value_mut(&key).expect("it is in the list");
        value.note = Some(format!(
            "other work had {percent:.0} % of the CPUs meanwhile"
        ));
    }
    measured.warnings.push(format!(
        "other work had {percent:.0} % of the CPUs while they were measured; measure again on an idle machine"
    ));
}

fn measure(topology: Topology, mut progress: impl FnMut(usize, usize)) -> Result<Measured, Error> {
    if topology.cpus.len() < 2 {
        return Err(Error::Measure("it takes two CPUs".into()));
    }
    let mut machine = Machine::parse(&skeleton(&topology, &COSTS), "this machine")?;
    machine.kernel = system_files::kernel(Path::new("/"));
    let mut warnings = topology.warnings;
    let [l1, l2, llc] = topology.caches.unwrap_or_else(|| {
        warnings.push("sysfs does not tell the cache sizes: usual ones assumed".into());
        USUAL_CACHES
    });
    let ghz = set_clock(&mut machine, topology.clock, &mut warnings);

    let pairs = pairs(&machine);
    let total = pairs.iter().map(|pairs| measurements(pairs)).sum::<usize>() + 11;
    let mut done = 0;
    let mut step = || {
        progress(done, total);
        done += 1;
    };

    let cpu = topology.cpus[0];
    step();
    let source = "measured on this machine, atomic additions by one thread";
    set(
        &mut machine,
        "rmw_cycles",
        measured(probe::atomic(cpu)? * ghz, source),
    );
    step();
    let source = "measured on this machine, pauses of one thread";
    set(
        &mut machine,
        "pause_cycles",
        measured(probe::pause(cpu)? * ghz, source),
    );
    step();
    let [wait, wake] = probe::futex(cpu)?;
    let source = "measured on this machine, calls that do nothing";
    set(&mut machine, "futex_wait_ns", measured(wait, source));
    set(&mut machine, "futex_wake_ns", measured(wake, source));
    step();
    let [cost, latency] = probe::wake_up(cpu, topology.cpus[1])?;
    let source = "measured on this machine, futex, from the first CPU to the second";
    set(&mut machine, "wake_cost_ns", measured(cost, source));
    set(&mut machine, "wake_latency_ns", measured(latency, source));
    step();
    let source = "measured on this machine, futex, a sleeper of the same CPU";
    let cost = probe::wake_up_without_interrupt(cpu)?;
    set(&mut machine, "wake_busy_cost_ns", measured(cost, source));
    step();
    let source = "measured on this machine, two threads of a CPU that yield";
    set(
        &mut machine,
        "switch_ns",
        measured(probe::switch(cpu)?, source),
    );
    let source = "measured on this machine, resolution of the coarse clock";
    set(&mut machine, "tick_us", measured(probe::tick_us()?, source));
    let memory = llc.saturating_mul(4).clamp(64 << 20, MAX_BYTES);
    for (key, bytes) in [
        ("l1_cycles", l1 / 2),
        ("l2_cycles", l2 / 2),
        ("llc_cycles", (4 * l2).min(llc / 2)),
        ("dram_local_ns", memory),
    ] {
        step();
        let ns = probe::load(cpu, cpu, bytes)?;
        let value = if key.ends_with("_cycles") {
            ns * ghz
        } else {
            ns
        };
        set(&mut machine, key, measured(value, &load_source(bytes)));
    }
    step();
    let far = machine.cpus() - 1;
    let remote = if machine.node_of(far) == machine.node_of(0) {
        Value {
            mark: Mark::I,
            ..measured(machine.dram_local_ns(), "one node: the local figure")
        }
    } else {
        let ns = probe::load(cpu, topology.cpus[far], memory)?;
        measured(ns, &load_source(memory))
    };
    set(&mut machine, "dram_remote_ns", remote);

    for (relation, pairs) in pairs.iter().enumerate() {
        let mut ns = Vec::new();
        for &(a, b) in pairs.iter().cycle().take(measurements(pairs)) {
            step();
            ns.push(probe::ping_pong(topology.cpus[a], topology.cpus[b])?);
        }
        let s = if pairs.len() == 1 { "" } else { "s" };
        let source = format!("measured on this machine, {} pair{s}", pairs.len());
        let value = median(&mut ns);
        machine.relations[relation].cache_to_cache = Value {
            low: ns.first().map(|n| round(*n)),
            high: ns.last().map(|n| round(*n)),
            ..measured(value, &source)
        };
    }
    progress(total, total);
    Ok(Measured { machine, warnings })
}

/// Sets the clock, and returns it in GHz.
fn set_clock(
    machine: &mut Machine,
    clock: Option<(f64, &'static str)>,
    warnings: &mut Vec<String>,
) -> f64 {
    let value = match clock {
        Some((ghz, system_files::CPUINFO)) => {
            inferred(ghz, "/proc/cpuinfo, perhaps only the clock of a moment")
        }
        Some((ghz, from)) => measured(ghz, from),
        None => {
            warnings.push("the clock is unknown: cycles are those of 1 GHz".into());
            inferred(1.0, "assumed")
        }
    };
    let ghz = value.value;
    set(machine, "clock_ghz", value);
    ghz
}

/// Describes the machine whose system files are below `root`: `sys/devices/system` and `proc/cpuinfo`.
/// What a measurement would tell is taken from the built-in machines.
pub fn of_files(root: &Path) -> Result<Measured, Error> {
    let online = root.join("sys/devices/system/cpu/online");
    let cpus = system_files::list(&online).filter(|cpus| !cpus.is_empty());
    let cpus =
        cpus.ok_or_else(|| Error::Files(format!("{} has no list of CPUs", online.display())))?;
    let topology = topology::read(root, &cpus);
    let machines = builtin()?
        .into_iter()
        .map(|known| Machine::find(known.name));
    let machines: Vec<Machine> = machines.collect::<Result<_, _>>()?;
    let usual = |key: &str| {
        let values = machines.iter().filter_map(|known| known.cost(key));
        usual(values.map(|value| value.value))
    };
    // A cost that no built-in machine has is not described.
    let costs: Vec<&str> = COSTS
        .into_iter()
        .filter(|key| usual(key).is_some())
        .collect();
    let mut machine = Machine::parse(&skeleton(&topology, &costs), "these files")?;
    machine.kernel = system_files::kernel(root);
    let folder = root.file_name().and_then(|name| name.to_str());
    if let Some(name) = folder.filter(|name| name.chars().all(|c| c.is_alphanumeric() || c == '-'))
    {
        machine.name = name.to_owned();
    }
    let mut warnings = topology.warnings.clone();
    if !root.join("proc/cpuinfo").exists() {
        warnings
            .push("proc/cpuinfo is missing: the vendor and the memory order are guessed".into());
    }
    warnings.push("nothing was measured: costs are usual ones of the built-in machines".into());
    set_clock(&mut machine, topology.clock, &mut warnings);
    for key in costs {
        let value = usual(key).expect("the others were left out");
        set(&mut machine, key, value);
    }

    let transfers: Vec<[Option<f64>; NEAREST + 1]> = machines.iter().map(transfers).collect();
    for (relation, pairs) in pairs(&machine).iter().enumerate() {
        let &(a, b) = pairs.first().expect("every relation has a pair");
        let near = nearness(&machine, a, b);
        let of = |near: usize| self::usual(transfers.iter().filter_map(|times| times[near]));
        let value = (0..=near).rev().find_map(of);
        machine.relations[relation].cache_to_cache =
            value.expect("a built-in machine has two CPUs");
    }
    scale_by_distance(&mut machine, &topology);
    Ok(Measured { machine, warnings })
}

/// The median of what built-in machines have. None: none of them has it.
fn usual(values: impl Iterator<Item = f64>) -> Option<Value> {
    let mut values: Vec<f64> = values.collect();
    let source = format!("median of {} built-in machines, not measured", values.len());
    (!values.is_empty()).then(|| inferred(median(&mut values), &source))
}

/// The shortest transfer between CPUs of a machine for each [`nearness`] that they have.
fn transfers(machine: &Machine) -> [Option<f64>; NEAREST + 1] {
    let mut shortest = [None; NEAREST + 1];
    for (relation, pairs) in zip(machine.relations(), pairs(machine)) {
        for (a, b) in pairs {
            let time: &mut Option<f64> = &mut shortest[nearness(machine, a, b)];
            let own = relation.cache_to_cache.value;
            *time = Some(time.map_or(own, |time| time.min(own)));
        }
    }
    shortest
}

/// The nearness of two threads of a core.
const NEAREST: usize = 4;

/// What two CPUs share: 0 nothing, 1 the socket, 2 the NUMA node, 3 the last-level cache, 4 the core.
fn nearness(machine: &Machine, a: usize, b: usize) -> usize {
    if machine.core_of(a) == machine.core_of(b) {
        NEAREST
    } else if machine.llc_of(a) == machine.llc_of(b) {
        3
    } else if machine.node_of(a) == machine.node_of(b) {
        2
    } else {
        usize::from(machine.socket_of(a) == machine.socket_of(b))
    }
}

/// Makes transfers between NUMA nodes that are further apart take longer, as Linux's distances grow.
fn scale_by_distance(machine: &mut Machine, topology: &Topology) {
    for (level, (scope, _)) in topology.scopes().enumerate() {
        let Some(Distances { classes, .. }) = distances(topology, level) else {
            continue;
        };
        for (class, distance) in classes.iter().enumerate() {
            let name = format!("{scope}.{}", class + 1);
            let relation = machine
                .relations
                .iter_mut()
                .find(|relation| relation.name == name);
            if let Some(relation) = relation {
                let value = &mut relation.cache_to_cache;
                value.value = round(value.value * f64::from(*distance) / f64::from(classes[0]));
                value.source += ", in proportion to Linux's distances";
            }
        }
    }
}

/// The costs that are measured.
const COSTS: [&str; 14] = [
    "l1_cycles",
    "l2_cycles",
    "llc_cycles",
    "rmw_cycles",
    "pause_cycles",
    "futex_wait_ns",
    "futex_wake_ns",
    "wake_cost_ns",
    "wake_latency_ns",
    "wake_busy_cost_ns",
    "switch_ns",
    "tick_us",
    "dram_local_ns",
    "dram_remote_ns",
];

/// The description with these costs, without measured values.
fn skeleton(topology: &Topology, costs: &[&str]) -> String {
    let levels: Vec<String> = topology
        .levels
        .iter()
        .map(|(name, counts)| {
            let count = match counts.iter().all(|count| *count == counts[0]) {
                true => counts[0].to_string(),
                false => toml(counts),
            };
            format!("{{ name = \"{name}\", count = {count} }}")
        })
        .collect();
    let vendor = topology.vendor.as_deref();
    let amd = matches!(vendor, Some("AuthenticAMD" | "HygonGenuine"));
    let x86 = topology.is_x86;
    let unknown = "{ value = 1, mark = \"I\", source = \"not measured\" }";
    // The innermost unit around two CPUs has more than one unit inside, or is the machine.
    let (mut matrices, mut relations) = (String::new(), String::new());
    for (level, (scope, counts)) in topology.scopes().enumerate() {
        if counts.iter().all(|count| *count == 1) {
            continue;
        }
        let mut relation = |hops: &str| {
            relations += &format!(
                "[[relation]]\nshare = \"{scope}\"\n{hops}cache_to_cache_ns = {unknown}\n"
            );
        };
        match distances(topology, level) {
            None => relation(""),
            Some(Distances { matrix, classes }) => {
                matrices += &format!(
                    "[[topology.hops]]\nlevel = \"{}\"\nwithin = \"{scope}\"\nmatrix = {}\n",
                    topology.numa,
                    toml(&matrix)
                );
                for class in 1..=classes.len() {
                    relation(&format!("hops = {class}\n"));
                }
            }
        }
    }
    let core_types: String = (1..)
        .zip(&topology.core_types)
        .filter_map(|(number, of)| Some((number, of, of.clock?)))
        .map(|(number, of, (ghz, from))| {
            format!(
                "[[core_type]]\nname = \"type {number}\"\nlevel = \"core\"\nunits = {}\n\
                 clock_ghz = {{ value = {}, mark = \"E\", source = \"{from}\" }}\n",
                toml(&of.cores),
                round(ghz)
            )
        })
        .collect();
    let costs: String = costs
        .iter()
        .map(|key| format!("{key} = {unknown}\n"))
        .collect();
    format!(
        "name = \"this-machine\"\ntitle = {}\nmemory_order = \"{}\"\ndirectory = \"{}\"\n\
         clock_ghz = {unknown}\n\
         [topology]\nlevels = [{}]\nnuma = \"{}\"\nllc = \"{}\"\n{matrices}\
         [costs]\n{costs}{core_types}{relations}",
        toml(topology.model.as_deref().unwrap_or("This machine")),
        if x86 { "tso" } else { "weak" },
        if amd || !x86 { "home" } else { "llc" },
        levels.join(", "),
        topology.numa,
        topology.llc,
    )
}

/// Distances between the NUMA nodes of each unit of a scope, where Linux distinguishes some.
struct Distances {
    /// A row and a column for each node of a unit: 0, or the class of the distance, from 1.
    matrix: Vec<Vec<usize>>,
    /// Linux's distance of each class.
    classes: Vec<u32>,
}

/// The distances between nodes whose innermost common unit is one around the level of this number; around
/// the first level is the machine. If its units differ, each distance is the greatest.
fn distances(topology: &Topology, level: usize) -> Option<Distances> {
    let distances = topology.distances.as_ref()?;
    let numa = topology
        .levels
        .iter()
        .position(|(name, _)| *name == topology.numa)?;
    // For each node the units around it: the machine, that of the first level, and so on.
    let mut units: Vec<Vec<usize>> = vec![vec![0]];
    for (_, counts) in topology.levels.get(..=numa)? {
        let inside = zip(units, counts).flat_map(|(unit, count)| repeat_n(unit, *count));
        units = inside
            .enumerate()
            .map(|(n, unit)| [unit, vec![n]].concat())
            .collect();
    }
    if level > numa || distances.len() != units.len() {
        return None;
    }
    let around: Vec<&[Vec<usize>]> = units.chunk_by(|a, b| a[level] == b[level]).collect();
    let nodes = around[0].len();
    if around.iter().any(|unit| unit.len() != nodes) {
        return None;
    }
    let apart = |a: usize, b: usize| {
        let of_unit = |unit: &&[Vec<usize>]| {
            let (a, b) = (&unit[a], &unit[b]);
            let (from, to) = (a[numa + 1], b[numa + 1]);
            if a[level + 1] == b[level + 1] {
                0
            } else {
                distances[from][to]
            }
        };
        around.iter().map(of_unit).max().unwrap_or(0)
    };
    let rows = (0..nodes).map(|a| (0..nodes).map(|b| apart(a, b)).collect());
    let rows: Vec<Vec<u32>> = rows.collect();
    let classes: BTreeSet<u32> = rows.iter().flatten().copied().filter(|&d| d > 0).collect();
    let classes: Vec<u32> = classes.into_iter().collect();
    if classes.len() < 2 {
        return None;
    }
    let class = |distance: &u32| {
        classes
            .iter()
            .position(|c| c == distance)
            .map_or(0, |at| at + 1)
    };
    let matrix = rows
        .iter()
        .map(|row| row.iter().map(class).collect())
        .collect();
    Some(Distances { matrix, classes })
}

/// The number of measurements of a relation, in which these pairs are.
fn measurements(pairs: &[(usize, usize)]) -> usize {
    pairs.len().max(LEAST_MEASUREMENTS)
}

/// At most [`PAIRS`] pairs of CPUs of each relation, spread over the machine.
fn pairs(machine: &Machine) -> Vec<Vec<(usize, usize)>> {
    let all = || {
        let cpus = machine.cpus();
        (0..cpus).flat_map(move |a| (a + 1..cpus).map(move |b| (a, b)))
    };
    let mut counts = vec![0usize; machine.relations().len()];
    for (a, b) in all() {
        counts[machine.relation(a, b)] += 1;
    }
    let mut seen = vec![0usize; counts.len()];
    let mut chosen = vec![Vec::new(); counts.len()];
    for (a, b) in all() {
        let r = machine.relation(a, b);
        let take = PAIRS.min(counts[r]);
        if seen[r] * take / counts[r] == chosen[r].len() {
            chosen[r].push((a, b));
        }
        seen[r] += 1;
    }
    chosen
}

fn set(machine: &mut Machine, key: &str, value: Value) {
    *machine.value_mut(key).expect("every machine has this key") = value;
}

fn measured(value: f64, source: &str) -> Value {
    Value {
        value: round(value),
        low: None,
        high: None,
        mark: Mark::E,
        source: source.into(),
        note: None,
    }
}

fn inferred(value: f64, source: &str) -> Value {
    Value {
        mark: Mark::I,
        ..measured(value, source)
    }
}

fn load_source(bytes: usize) -> String {
    format!(
        "measured on this machine, dependent loads from {} KiB",
        bytes >> 10
    )
}

/// Rounds to two decimals, since further ones would be noise.
fn round(value: f64) -> f64 {
    (value * 100.0).round() / 100.0
}

/// The median of the values, which it sorts.
fn median(values: &mut [f64]) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn topology(levels: &[(&'static str, usize)], numa: &'static str) -> Topology {
        let mut around = 1;
        let mut list = |count: usize| {
            let counts = vec![count; around];
            around *= count;
            counts
        };
        Topology {
            levels: levels
                .iter()
                .map(|(name, count)| (*name, list(*count)))
                .collect(),
            numa,
            llc: numa,
            cpus: (0..levels.iter().map(|l| l.1).product()).collect(),
            distances: None,
            caches: None,
            clock: None,
            core_types: Vec::new(),
            model: Some("a \"quoted\" model".into()),
            vendor: None,
            is_x86: true,
            warnings: Vec::new(),
        }
    }

    fn names(machine: &Machine) -> Vec<&str> {
        machine
            .relations()
            .iter()
            .map(|r| r.name.as_str())
            .collect()
    }

    #[test]
    fn the_skeleton_has_a_relation_for_every_pair() {
        let levels = [("socket", 1), ("cache", 2), ("core", 1), ("thread", 2)];
        let machine = Machine::parse(&skeleton(&topology(&levels, "socket"), &COSTS), "x").unwrap();
        assert_eq!(names(&machine), ["core", "socket"]);
        assert_eq!(machine.title, "a \"quoted\" model");
    }

    #[test]
    fn units_need_not_be_alike() {
        let mut t = topology(&[("socket", 2), ("core", 2), ("thread", 1)], "socket");
        t.levels[1].1 = vec![1, 2];
        t.levels[2].1 = vec![2, 1, 1];
        let machine = Machine::parse(&skeleton(&t, &COSTS), "x").unwrap();
        assert_eq!(names(&machine), ["core", "socket", "machine"]);
        assert_eq!(machine.cpus(), 4);
        let nodes: Vec<_> = (0..4).map(|cpu| machine.node_of(cpu)).collect();
        assert_eq!(nodes, [0, 0, 1, 1]);
    }

    #[test]
    fn distances_between_sockets_become_hops() {
        let mut t = topology(&[("socket", 2), ("node", 2), ("core", 2)], "node");
        t.distances = Some(vec![
            vec![10, 12, 20, 22],
            vec![12, 10, 22, 24],
            vec![20, 22, 10, 12],
            vec![22, 24, 12, 10],
        ]);
        let machine = Machine::parse(&skeleton(&t, &COSTS), "x").unwrap();
        assert_eq!(
            names(&machine),
            ["node", "socket", "machine.1", "machine.2", "machine.3"]
        );
        assert_eq!(machine.relation(0, 4), 2);
        assert_eq!(machine.relation(2, 6), 4);
    }

    #[test]
    fn distances_within_sockets_become_hops() {
        let mut t = topology(&[("socket", 2), ("node", 3), ("core", 1)], "node");
        let row = |within: [u32; 3], across: [u32; 3]| [within, across].concat();
        let mut rows = vec![
            row([10, 15, 17], [28; 3]),
            row([15, 10, 15], [28; 3]),
            row([17, 15, 10], [28; 3]),
        ];
        rows.extend([
            row([28; 3], [10, 15, 17]),
            row([28; 3], [15, 10, 15]),
            row([28; 3], [17, 15, 10]),
        ]);
        t.distances = Some(rows);
        let mut machine = Machine::parse(&skeleton(&t, &COSTS), "x").unwrap();
        assert_eq!(names(&machine), ["socket.1", "socket.2", "machine"]);
        let [near, far] = [machine.relation(0, 1), machine.relation(3, 5)];
        assert_eq!([near, far], [0, 1]);
        for relation in &mut machine.relations {
            relation.cache_to_cache = inferred(30.0, "");
        }
        scale_by_distance(&mut machine, &t);
        let time = |relation: usize| machine.relations[relation].cache_to_cache.value;
        assert_eq!([time(near), time(far), time(2)], [30.0, 34.0, 30.0]);
    }

    #[test]
    fn equal_distances_are_no_hops() {
        let mut t = topology(&[("socket", 2), ("core", 2)], "socket");
        t.distances = Some(vec![vec![10, 21], vec![21, 10]]);
        let machine = Machine::parse(&skeleton(&t, &COSTS), "x").unwrap();
        assert_eq!(names(&machine), ["socket", "machine"]);
    }

    #[test]
    fn few_pairs_of_many_relations() {
        let machine = Machine::find("epyc-9654-nps4").unwrap();
        let pairs = pairs(&machine);
        for (relation, pairs) in pairs.iter().enumerate() {
            assert_eq!(pairs.len(), PAIRS);
            assert!(
                pairs
                    .iter()
                    .all(|&(a, b)| machine.relation(a, b) == relation)
            );
        }
        // The pairs are spread: not all are from the first core.
        assert!(pairs[0].iter().any(|&(a, _)| machine.socket_of(a) == 1));
    }

    #[test]
    fn files_of_another_machine_are_enough() {
        let root = tempfile::tempdir().unwrap();
        let file = |path: &str, text: &str| {
            let path = root.path().join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        };
        let error = of_files(root.path()).unwrap_err().to_string();
        assert!(
            error.contains("no list of CPUs; give the folder"),
            "{error}"
        );
        file("sys/devices/system/cpu/online", "0-95\n");
        for cpu in 0..96 {
            let folder = format!("sys/devices/system/cpu/cpu{cpu}");
            file(
                &format!("{folder}/topology/physical_package_id"),
                &(cpu / 48).to_string(),
            );
            file(
                &format!("{folder}/topology/thread_siblings_list"),
                &cpu.to_string(),
            );
        }
        let guessed = of_files(root.path()).unwrap().warnings.join("\n");
        assert!(guessed.contains("proc/cpuinfo is missing"), "{guessed}");
        file("sys/devices/system/node/node0/cpulist", "0-47\n");
        file("sys/devices/system/node/node1/cpulist", "48-/95\n");
        file(
            "proc/cpuinfo",
            "cpu\t\t: POWER10 (architected)\nclock\t\t: 3550.000000MHz\n",
        );
        let Measured { machine, warnings } = of_files(root.path()).unwrap();
        assert_eq!((machine.cpus(), machine.nodes()), (96, 2));
        assert_eq!(machine.title, "POWER10 (architected)");
        assert_eq!(machine.memory_order, crate::MemoryOrder::Weak);
        assert_eq!(machine.clock_ghz.value, 3.55);
        let values = machine.values();
        assert!(values.iter().all(|(_, value, _)| value.mark == Mark::I));
        assert!(
            !values
                .iter()
                .any(|(_, value, _)| value.source == "not measured")
        );
        let text = warnings.join("\n");
        for part in ["\"48-/95\"", "the CPUs 48-95", "nothing was measured"] {
            assert!(text.contains(part), "{text}");
        }
        assert_eq!(Machine::parse(&machine.to_toml(), "x").unwrap(), machine);
    }

    #[test]
    fn one_cpu_is_not_enough() {
        let error = measure(topology(&[("core", 1)], "core"), |_, _| {}).unwrap_err();
        assert!(error.to_string().contains("two CPUs"));
    }

    #[test]
    fn a_measured_machine_parses() {
        let Ok(measured) = this_machine(|done, total| assert!(done <= total)) else {
            assert_eq!(std::thread::available_parallelism().unwrap().get(), 1);
            return;
        };
        let text = measured.machine.to_toml();
        let again = Machine::parse(&text, "this.toml").unwrap();
        assert_eq!(again, measured.machine);
        assert!(text.contains("source = \"measured on this machine, "));
        assert!(!text.contains("not measured"));
    }
}
