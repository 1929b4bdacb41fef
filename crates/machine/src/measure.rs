//! Measures the machine on which this program runs, and describes it.

mod probe;
mod system_files;
mod topology;

use std::collections::BTreeSet;
use std::iter::{repeat_n, zip};
use std::path::Path;

use crate::machine::toml;
use crate::{Error, Machine, Mark, Value, affinity};
use topology::Topology;

/// The most pairs of CPUs of each relation that are measured.
const PAIRS: usize = 12;
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
    let begin = system_files::busy_ticks();
    let own = probe::own_ticks();
    let mut measured = measure(topology::read(Path::new("/"), &allowed), progress)?;
    let others = (|| {
        let ([busy, all], [busy_then, all_then]) = (system_files::busy_ticks()?, begin?);
        let own = probe::own_ticks()?.saturating_sub(own?);
        let others = (busy - busy_then).saturating_sub(own);
        Some(others as f64 / (all - all_then).max(1) as f64)
    })();
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
    let mut machine = Machine::parse(&skeleton(&topology), "this machine")?;
    let mut warnings = topology.warnings;
    let [l1, l2, llc] = topology.caches.unwrap_or_else(|| {
        warnings.push("sysfs does not tell the cache sizes: usual ones assumed".into());
        USUAL_CACHES
    });
    let clock = match topology.clock {
        Some((ghz, from)) => measured(ghz, from),
        None => {
            warnings.push("the clock is unknown: cycles are those of 1 GHz".into());
            Value {
                mark: Mark::I,
                ..measured(1.0, "assumed")
            }
        }
    };
    let ghz = clock.value;
    set(&mut machine, "clock_ghz", clock);

    let pairs = pairs(&machine);
    let total = pairs.iter().map(Vec::len).sum::<usize>() + 9;
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
        let mut ns = Vec::with_capacity(pairs.len());
        for &(a, b) in pairs {
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

/// The description without measured values.
fn skeleton(topology: &Topology) -> String {
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
    let x86 = cfg!(any(target_arch = "x86_64", target_arch = "x86"));
    let unknown = "{ value = 1, mark = \"I\", source = \"not measured\" }";
    let (matrix, hops) = hops(topology);
    // The innermost unit around two CPUs has more than one unit inside, or is the machine.
    let scopes = std::iter::once("machine").chain(topology.levels.iter().map(|(name, _)| *name));
    let relations: String = scopes
        .zip(&topology.levels)
        .filter(|(_, (_, counts))| counts.iter().any(|count| *count > 1))
        .flat_map(|(scope, _)| {
            let hops = if scope == "machine" {
                hops.as_slice()
            } else {
                &[]
            };
            let relation = move |hops: String| {
                format!("[[relation]]\nshare = \"{scope}\"\n{hops}cache_to_cache_ns = {unknown}\n")
            };
            if hops.is_empty() {
                vec![relation(String::new())]
            } else {
                hops.iter()
                    .map(|h| relation(format!("hops = {h}\n")))
                    .collect()
            }
        })
        .collect();
    format!(
        "name = \"this-machine\"\ntitle = {}\nmemory_order = \"{}\"\ndirectory = \"{}\"\n\
         clock_ghz = {unknown}\n\
         [topology]\nlevels = [{}]\nnuma = \"{}\"\nllc = \"{}\"\n{matrix}\
         [costs]\nl1_cycles = {unknown}\nl2_cycles = {unknown}\nllc_cycles = {unknown}\n\
         rmw_cycles = {unknown}\npause_cycles = {unknown}\nfutex_wait_ns = {unknown}\n\
         futex_wake_ns = {unknown}\nwake_cost_ns = {unknown}\n\
         wake_latency_ns = {unknown}\ndram_local_ns = {unknown}\ndram_remote_ns = {unknown}\n{relations}",
        toml(topology.model.as_deref().unwrap_or("This machine")),
        if x86 { "tso" } else { "weak" },
        if amd || !x86 { "home" } else { "llc" },
        levels.join(", "),
        topology.numa,
        topology.llc,
    )
}

/// The classes of distances between nodes of different outermost units, if Linux distinguishes some.
/// Returns the matrix as TOML, and the classes.
fn hops(topology: &Topology) -> (String, Vec<usize>) {
    let nothing = (String::new(), Vec::new());
    let Some(distances) = &topology.distances else {
        return nothing;
    };
    // The outermost unit of each node.
    let (outermost, counts) = &topology.levels[0];
    let mut outer: Vec<usize> = (0..counts[0]).collect();
    if *outermost != topology.numa {
        for (name, counts) in &topology.levels[1..] {
            let units = zip(outer, counts);
            outer = units
                .flat_map(|(unit, count)| repeat_n(unit, *count))
                .collect();
            if *name == topology.numa {
                break;
            }
        }
    }
    let nodes = outer.len();
    if distances.len() != nodes {
        return nothing;
    }
    let apart = |a: usize, b: usize| outer[a] != outer[b];
    let mut classes = BTreeSet::new();
    for (a, row) in distances.iter().enumerate() {
        classes.extend((0..nodes).filter(|b| apart(a, *b)).map(|b| row[b]));
    }
    if classes.len() < 2 {
        return nothing;
    }
    let class = |a: usize, b: usize| {
        let position = classes.iter().position(|c| *c == distances[a][b]);
        position.filter(|_| apart(a, b)).map_or(0, |p| p + 1)
    };
    let matrix: Vec<Vec<usize>> = (0..nodes)
        .map(|a| (0..nodes).map(|b| class(a, b)).collect())
        .collect();
    let text = format!(
        "[[topology.hops]]\nlevel = \"{}\"\nwithin = \"machine\"\nmatrix = {}\n",
        topology.numa,
        toml(&matrix)
    );
    (text, (1..=classes.len()).collect())
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
            model: Some("a \"quoted\" model".into()),
            vendor: None,
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
        let machine = Machine::parse(&skeleton(&topology(&levels, "socket")), "x").unwrap();
        assert_eq!(names(&machine), ["core", "socket"]);
        assert_eq!(machine.title, "a \"quoted\" model");
    }

    #[test]
    fn units_need_not_be_alike() {
        let mut t = topology(&[("socket", 2), ("core", 2), ("thread", 1)], "socket");
        t.levels[1].1 = vec![1, 2];
        t.levels[2].1 = vec![2, 1, 1];
        let machine = Machine::parse(&skeleton(&t), "x").unwrap();
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
        let machine = Machine::parse(&skeleton(&t), "x").unwrap();
        assert_eq!(
            names(&machine),
            ["node", "socket", "machine.1", "machine.2", "machine.3"]
        );
        assert_eq!(machine.relation(0, 4), 2);
        assert_eq!(machine.relation(2, 6), 4);
    }

    #[test]
    fn equal_distances_are_no_hops() {
        let mut t = topology(&[("socket", 2), ("core", 2)], "socket");
        t.distances = Some(vec![vec![10, 21], vec![21, 10]]);
        let machine = Machine::parse(&skeleton(&t), "x").unwrap();
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
