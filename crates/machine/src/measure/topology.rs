//! The CPUs as Linux reports them, as nested levels of units.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use super::system_files::{
    Cache, cache_sizes, caches, clock, field, first, list, nodes, number, to_list,
};

/// The CPUs as nested levels, and further facts from the system files.
#[derive(Debug)]
pub(super) struct Topology {
    /// The names of the levels, outermost first, and for each unit around how many are in it.
    pub levels: Vec<(&'static str, Vec<usize>)>,
    pub numa: &'static str,
    pub llc: &'static str,
    /// Linux's number of each CPU of the description.
    pub cpus: Vec<usize>,
    /// Linux's distances between the NUMA nodes of the description.
    pub distances: Option<Vec<Vec<u32>>>,
    /// The sizes of the first, second and last level of the data caches, in bytes.
    pub caches: Option<[usize; 3]>,
    pub clock: Option<(f64, &'static str)>,
    /// Cores that differ from that of the first CPU.
    pub core_types: Vec<CoreType>,
    pub model: Option<String>,
    pub vendor: Option<String>,
    pub is_x86: bool,
    /// Facts that Linux does not report, or that do not fit nested levels.
    pub warnings: Vec<String>,
}

impl Topology {
    /// The units around those of each level, with the number of these in each of them: the innermost unit around
    /// two CPUs has more than one unit inside.
    pub(super) fn scopes(&self) -> impl Iterator<Item = (&'static str, &[usize])> {
        let around = self.levels.iter().map(|(name, _)| *name);
        let around = std::iter::once("machine").chain(around);
        around.zip(self.levels.iter().map(|(_, counts)| &counts[..]))
    }
}

/// Cores of one type.
#[derive(Debug, PartialEq)]
pub(super) struct CoreType {
    /// Their numbers in the description.
    pub cores: Vec<usize>,
    pub clock: Option<(f64, &'static str)>,
}

/// What tells types of cores apart.
struct Kind {
    capacity: Option<i64>,
    caches: Vec<Cache>,
    clock: Option<(f64, &'static str)>,
}

impl Kind {
    fn of(cpu: &Path) -> Self {
        let mut caches = caches(cpu);
        caches.truncate(2);
        Self {
            capacity: number(&cpu.join("cpu_capacity")),
            caches,
            clock: clock(cpu, ""),
        }
    }

    /// Whether cores are of one type. The cores of a type that may run fastest have a clock that is
    /// somewhat higher.
    fn is_like(&self, other: &Self) -> bool {
        const FAVOURED: f64 = 1.15;
        let sizes = |kind: &Self| -> Vec<_> { kind.caches.iter().map(Cache::bytes).collect() };
        let alike = |(a, b): (f64, f64)| a.max(b) <= FAVOURED * a.min(b);
        let clocks = self.clock.zip(other.clock).map(|((a, _), (b, _))| (a, b));
        let capacities = self.capacity.zip(other.capacity);
        let capacities = capacities.map(|(a, b)| (a as f64, b as f64));
        sizes(self) == sizes(other) && clocks.is_none_or(alike) && capacities.is_none_or(alike)
    }
}

/// The types of cores other than that of the first one. `cpus` has a CPU of each core.
fn core_types(cpus: &[usize], folder: impl Fn(usize) -> PathBuf) -> Vec<CoreType> {
    let mut types: Vec<(Kind, CoreType)> = Vec::new();
    for (core, &cpu) in cpus.iter().enumerate() {
        let kind = Kind::of(&folder(cpu));
        match types.iter_mut().find(|(other, _)| other.is_like(&kind)) {
            Some((_, same)) => same.cores.push(core),
            None => {
                let (cores, clock) = (vec![core], kind.clock);
                types.push((kind, CoreType { cores, clock }));
            }
        }
    }
    types.into_iter().skip(1).map(|(_, of)| of).collect()
}

/// Reads `sys` and `proc` below `root`. The description covers the online CPUs among `allowed`.
pub(super) fn read(root: &Path, allowed: &BTreeSet<usize>) -> Topology {
    let mut warnings = Vec::new();
    let system = root.join("sys/devices/system");
    let online = list(&system.join("cpu/online"));
    let cpus: Vec<usize> = match &online {
        Some(online) => online.intersection(allowed).copied().collect(),
        None => allowed.iter().copied().collect(),
    };
    match online {
        None => warnings.push("sysfs is unreadable: described as one node of equal cores".into()),
        Some(online) if online.len() > cpus.len() => warnings.push(format!(
            "this process may use {} of {} CPUs: only these are described",
            cpus.len(),
            online.len()
        )),
        Some(_) => {}
    }

    let nodes = nodes(&system.join("node"), &mut warnings);
    let node_of = |cpu: usize| nodes.iter().position(|(_, cpus)| cpus.contains(&cpu));
    let homeless = to_list(cpus.iter().copied().filter(|&cpu| node_of(cpu).is_none()));
    if nodes.is_empty() {
        warnings.push("no NUMA nodes in sysfs: described as one node".into());
    } else if !homeless.is_empty() {
        warnings.push(format!(
            "no NUMA node has the CPUs {homeless}: described as a node of their own"
        ));
    }
    let folder = |cpu: usize| system.join(format!("cpu/cpu{cpu}"));
    let socket = |cpu| number(&folder(cpu).join("topology/physical_package_id"));
    let core = |cpu| first(&folder(cpu).join("topology/thread_siblings_list"));
    let cache = |cpu| caches(&folder(cpu)).pop().and_then(|c| c.first);

    // Outermost first. If two levels have the same units, the first one here stays.
    let mut found = [
        ("socket", partition(&cpus, socket)),
        ("node", partition(&cpus, node_of)),
        ("cache", partition(&cpus, cache)),
    ];
    let [(_, sockets), _, (_, shared)] = &found;
    if !nests(shared, sockets) {
        warnings.push("a cache is shared by CPUs of several sockets, as on no real machine".into());
    }
    found.sort_by_key(|(_, units)| units.iter().max().copied());
    let cores = partition(&cpus, |cpu| Some(core(cpu).unwrap_or(cpu)));
    let mut levels: Vec<(&'static str, Vec<usize>)> = Vec::new();
    for (name, units) in found {
        if units == cores || levels.iter().any(|(_, other)| *other == units) {
            continue;
        }
        if let Some((outer, other)) = levels.last()
            && !nests(&units, other)
        {
            warnings.push(format!(
                "a {name} reaches across {outer}s: split at their borders"
            ));
        }
        levels.push((name, units));
    }
    levels.push(("core", cores));
    // A level that was left out above has the units of a level that stayed.
    let level_of = |units: Vec<usize>| {
        let same = levels.iter().find(|(_, other)| *other == units);
        same.map_or("core", |(name, _)| name)
    };
    let numa = level_of(partition(&cpus, node_of));
    let llc = level_of(partition(&cpus, cache));

    // For each CPU its unit at each level, and itself. Sorted, the CPUs of a unit follow each other.
    let mut paths: Vec<Vec<usize>> = cpus
        .iter()
        .enumerate()
        .map(|(i, &cpu)| {
            let units = levels.iter().map(|(_, units)| units[i]);
            units.chain([cpu]).collect()
        })
        .collect();
    paths.sort();
    let names = levels.iter().map(|(name, _)| *name).chain(["thread"]);
    let mut levels: Vec<(&'static str, Vec<usize>)> = names
        .enumerate()
        .map(|(depth, name)| (name, counts(&paths, depth)))
        .collect();
    levels.pop_if(|(_, threads)| threads.iter().all(|n| *n == 1));
    let cpus: Vec<usize> = paths
        .iter()
        .filter_map(|path| path.last().copied())
        .collect();

    let mut nodes_met: Vec<usize> = cpus.iter().filter_map(|&cpu| node_of(cpu)).collect();
    nodes_met.dedup();
    let first_cpu = cpus.first().copied().unwrap_or_default();
    let mut cores = cpus.clone();
    cores.dedup_by_key(|cpu| core(*cpu).unwrap_or(*cpu));
    let core_types = core_types(&cores, folder);
    if !core_types.is_empty() {
        warnings.push(format!(
            "there are {} types of cores: caches and costs are those of CPU {first_cpu}",
            core_types.len() + 1
        ));
    }
    if llc == "core"
        && levels
            .iter()
            .any(|(name, n)| *name == "core" && n.iter().any(|n| *n > 1))
    {
        warnings
            .push("each core has its last cache to itself; if cores share one, the system files do not tell".into());
    }
    let info = fs::read_to_string(root.join("proc/cpuinfo")).unwrap_or_default();
    let vendor = field(&info, "vendor_id");
    Topology {
        levels,
        numa,
        llc,
        distances: distances(&nodes, &nodes_met),
        caches: cache_sizes(&caches(&folder(first_cpu))),
        clock: clock(&folder(first_cpu), &info),
        core_types,
        model: field(&info, "model name")
            .or(field(&info, "cpu"))
            .map(str::to_owned),
        // An s390 has a vendor too.
        is_x86: match info.is_empty() {
            true => cfg!(any(target_arch = "x86_64", target_arch = "x86")),
            false => vendor.is_some_and(|vendor| !vendor.starts_with("IBM")),
        },
        vendor: vendor.map(str::to_owned),
        cpus,
        warnings,
    }
}

/// The number of units of a level in each unit around them, from sorted paths.
fn counts(paths: &[Vec<usize>], depth: usize) -> Vec<usize> {
    let around = paths.chunk_by(|a, b| a[..depth] == b[..depth]);
    let inside = |unit: &[Vec<usize>]| unit.chunk_by(|a, b| a[depth] == b[depth]).count();
    around.map(inside).collect()
}

/// The units of a level, as a number for each CPU: 0 for the first unit met, and so on.
fn partition<T: PartialEq>(cpus: &[usize], unit: impl Fn(usize) -> T) -> Vec<usize> {
    let mut met: Vec<T> = Vec::new();
    cpus.iter()
        .map(|&cpu| {
            let unit = unit(cpu);
            met.iter().position(|m| *m == unit).unwrap_or_else(|| {
                met.push(unit);
                met.len() - 1
            })
        })
        .collect()
}

/// Whether no inner unit reaches across two outer ones.
fn nests(inner: &[usize], outer: &[usize]) -> bool {
    let pairs: BTreeSet<_> = inner.iter().zip(outer).collect();
    let units: BTreeSet<_> = inner.iter().collect();
    pairs.len() == units.len()
}

fn distances(nodes: &[(Vec<u32>, BTreeSet<usize>)], met: &[usize]) -> Option<Vec<Vec<u32>>> {
    let between = |&a: &usize, &b: &usize| {
        let there = *nodes[a].0.get(b)?;
        let back = *nodes[b].0.get(a)?;
        Some(there.max(back))
    };
    met.iter()
        .map(|a| met.iter().map(|b| between(a, b)).collect())
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Makes a tree of system files.
    struct Fake(tempfile::TempDir);

    impl Fake {
        fn new() -> Fake {
            Fake(tempfile::tempdir().unwrap())
        }

        fn file(&self, path: &str, text: &str) {
            let path = self.0.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, format!("{text}\n")).unwrap();
        }

        fn cpu(&self, cpu: usize, socket: i64, siblings: &str, cache: &str) {
            let folder = format!("sys/devices/system/cpu/cpu{cpu}");
            let socket = socket.to_string();
            self.file(&format!("{folder}/topology/physical_package_id"), &socket);
            self.file(&format!("{folder}/topology/thread_siblings_list"), siblings);
            for (index, level, kind, size, shared) in [
                (0, "1", "Data", "32K", siblings),
                (1, "1", "Instruction", "64K", siblings),
                (2, "2", "Unified", "1024K", siblings),
                (3, "3", "Unified", "32768K", cache),
            ] {
                let index = format!("{folder}/cache/index{index}");
                self.file(&format!("{index}/level"), level);
                self.file(&format!("{index}/type"), kind);
                self.file(&format!("{index}/size"), size);
                self.file(&format!("{index}/shared_cpu_list"), shared);
            }
        }

        fn node(&self, node: usize, cpus: &str, distance: &str) {
            let folder = format!("sys/devices/system/node/node{node}");
            self.file(&format!("{folder}/cpulist"), cpus);
            self.file(&format!("{folder}/distance"), distance);
        }

        fn online(&self, cpus: &str) {
            self.file("sys/devices/system/cpu/online", cpus);
        }

        fn read(&self) -> Topology {
            read(self.0.path(), &(0..64).collect())
        }
    }

    /// Two sockets of two cores of two threads, the second threads numbered last as on Intel.
    fn two_sockets() -> Fake {
        let fake = Fake::new();
        for cpu in 0..8 {
            let core = cpu % 4;
            let cache = if core < 2 { "0-1,4-5" } else { "2-3,6-7" };
            let siblings = format!("{core},{}", core + 4);
            fake.cpu(cpu, (core / 2) as i64, &siblings, cache);
        }
        fake.online("0-7");
        fake
    }

    #[test]
    fn threads_and_sparse_nodes() {
        let fake = two_sockets();
        fake.node(0, "0-1,4-5", "10 21");
        fake.node(2, "2-3,6-7", "20 10");
        fake.file(
            "proc/cpuinfo",
            "vendor_id\t: AuthenticAMD\nmodel name\t: Some CPU\ncpu MHz\t\t: 2500.000",
        );
        let t = fake.read();
        let levels = [
            ("socket", vec![2]),
            ("core", vec![2; 2]),
            ("thread", vec![2; 4]),
        ];
        assert_eq!(t.levels, levels);
        assert_eq!((t.numa, t.llc), ("socket", "socket"));
        assert_eq!(t.cpus, [0, 4, 1, 5, 2, 6, 3, 7]);
        assert_eq!(t.distances.unwrap(), [[10, 21], [21, 10]]);
        assert_eq!(t.caches.unwrap(), [32 << 10, 1 << 20, 32 << 20]);
        assert_eq!(t.clock, Some((2.5, "/proc/cpuinfo")));
        assert_eq!(t.model.as_deref(), Some("Some CPU"));
        assert_eq!(t.vendor.as_deref(), Some("AuthenticAMD"));
        assert!(t.warnings.is_empty(), "{:?}", t.warnings);
    }

    #[test]
    fn caches_inside_nodes_inside_sockets() {
        let fake = Fake::new();
        for cpu in 0..16 {
            let cache = cpu / 2 * 2;
            let shared = format!("{cache}-{}", cache + 1);
            fake.cpu(cpu, (cpu / 8) as i64, &cpu.to_string(), &shared);
        }
        for node in 0..4 {
            let cpus = format!("{}-{}", node * 4, node * 4 + 3);
            fake.node(node, &cpus, "10 12 32 32");
        }
        fake.online("0-15");
        let t = fake.read();
        let levels = [
            ("socket", vec![2]),
            ("node", vec![2; 2]),
            ("cache", vec![2; 4]),
            ("core", vec![2; 8]),
        ];
        assert_eq!(t.levels, levels);
        assert_eq!((t.numa, t.llc), ("node", "cache"));
        assert!(t.warnings.is_empty(), "{:?}", t.warnings);
    }

    #[test]
    fn units_need_not_be_alike() {
        let fake = two_sockets();
        fake.node(0, "0-1,4-5", "10 21");
        fake.node(2, "2-3,6-7", "21 10");
        fake.online("0,2-4,6-7"); // One core of the first socket is off.
        let t = fake.read();
        let levels = [
            ("socket", vec![2]),
            ("core", vec![1, 2]),
            ("thread", vec![2; 3]),
        ];
        assert_eq!(t.levels, levels);
        assert_eq!(t.cpus, [0, 4, 2, 6, 3, 7]);
        assert!(t.warnings.is_empty(), "{:?}", t.warnings);
    }

    #[test]
    fn cores_of_two_kinds() {
        let fake = Fake::new();
        for cpu in 0..4 {
            let core = cpu / 2 * 2;
            fake.cpu(cpu, 0, &format!("{core}-{}", core + 1), "0-9");
        }
        for cpu in 4..10 {
            fake.cpu(cpu, 0, &cpu.to_string(), "0-9");
        }
        fake.node(0, "0-9", "10");
        fake.online("0-9");
        let t = fake.read();
        let threads = vec![2, 2, 1, 1, 1, 1, 1, 1];
        let levels = [("socket", vec![1]), ("core", vec![8]), ("thread", threads)];
        assert_eq!(t.levels, levels);
        assert_eq!(t.cpus, [0, 1, 2, 3, 4, 5, 6, 7, 8, 9]);
        assert_eq!(t.core_types, []);
        assert!(t.warnings.is_empty(), "{:?}", t.warnings);

        // The first core may run a little faster than the second; the others are slower.
        for cpu in 0..10 {
            let khz = [5_100_000, 4_800_000, 3_800_000][(cpu / 2).min(2)];
            fake.file(
                &format!("sys/devices/system/cpu/cpu{cpu}/cpufreq/cpuinfo_max_freq"),
                &khz.to_string(),
            );
        }
        let t = fake.read();
        let slow = CoreType {
            cores: (2..8).collect(),
            clock: Some((3.8, "cpufreq/cpuinfo_max_freq")),
        };
        assert_eq!(t.core_types, [slow]);
        assert_eq!(
            t.warnings,
            ["there are 2 types of cores: caches and costs are those of CPU 0"]
        );
    }

    #[test]
    fn nodes_that_reach_across_caches() {
        let fake = Fake::new();
        for cpu in 0..4 {
            fake.cpu(cpu, 0, &cpu.to_string(), if cpu == 0 { "0" } else { "1-3" });
        }
        fake.node(0, "0-1", "10 20");
        fake.node(1, "2-3", "20 10");
        fake.online("0-3");
        let warnings = fake.read().warnings;
        assert!(
            warnings.contains(&"a cache reaches across nodes: split at their borders".to_owned()),
            "{warnings:?}"
        );
    }

    #[test]
    fn without_files_one_node_of_the_allowed_cpus() {
        let fake = Fake::new();
        let t = read(fake.0.path(), &[3, 5].into());
        assert_eq!(t.levels, [("socket", vec![1]), ("core", vec![2])]);
        assert_eq!((t.numa, t.llc), ("socket", "socket"));
        assert_eq!(t.cpus, [3, 5]);
        assert!(t.caches.is_none() && t.clock.is_none() && t.model.is_none());
        assert_eq!(t.warnings.len(), 2);
    }

    #[test]
    fn garbage_is_as_good_as_missing() {
        let fake = two_sockets();
        fake.online("0-1");
        fake.cpu(0, -1, "x", "9-");
        fake.cpu(1, -1, "", "");
        fake.node(0, "?", "a b");
        let t = fake.read();
        assert_eq!(t.levels, [("socket", vec![1]), ("core", vec![2])]);
        assert_eq!(t.distances, Some(vec![]));
    }

    #[test]
    fn cpus_the_process_may_not_use_are_left_out() {
        let fake = two_sockets();
        let t = read(fake.0.path(), &[0, 4].into());
        assert_eq!(t.levels, [("core", vec![1]), ("thread", vec![2])]);
        assert_eq!(
            t.warnings[0],
            "this process may use 2 of 8 CPUs: only these are described"
        );
    }
}
