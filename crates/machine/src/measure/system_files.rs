//! Facts about CPUs, caches and NUMA nodes in the files of `/sys` and `/proc`.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use crate::Kernel;

/// A Linux list such as `0-3,8`, from a file. None: there is no file, or no list in it.
pub(super) fn list(path: &Path) -> Option<BTreeSet<usize>> {
    parse_list(&fs::read_to_string(path).ok()?)
}

/// Linux has no greater number of a CPU.
const MOST: usize = 1 << 16;

fn parse_list(text: &str) -> Option<BTreeSet<usize>> {
    let mut out = BTreeSet::new();
    for range in text.trim().split(',').filter(|r| !r.is_empty()) {
        let (from, to) = range.split_once('-').unwrap_or((range, range));
        let (from, to): (usize, usize) = (from.parse().ok()?, to.parse().ok()?);
        if to > MOST {
            return None;
        }
        out.extend(from..=to);
    }
    Some(out)
}

/// A set of numbers as Linux writes it.
pub(super) fn to_list(numbers: impl IntoIterator<Item = usize>) -> String {
    let mut ranges: Vec<[usize; 2]> = Vec::new();
    for number in numbers {
        match ranges.last_mut() {
            Some([_, last]) if *last + 1 == number => *last = number,
            _ => ranges.push([number; 2]),
        }
    }
    let words = ranges.iter().map(|[first, last]| match first == last {
        true => first.to_string(),
        false => format!("{first}-{last}"),
    });
    words.collect::<Vec<_>>().join(",")
}

pub(super) fn first(path: &Path) -> Option<usize> {
    list(path)?.first().copied()
}

pub(super) fn number(path: &Path) -> Option<i64> {
    fs::read_to_string(path).ok()?.trim().parse().ok()
}

/// The version of Linux whose files are below `root`.
pub(super) fn kernel(root: &Path) -> Option<Kernel> {
    let release = fs::read_to_string(root.join("proc/sys/kernel/osrelease")).ok()?;
    release.trim().parse().ok()
}

/// The NUMA nodes that have CPUs or memory, in order of their numbers, with their row of distances. A
/// list of CPUs that cannot be read is empty, with a warning.
pub(super) fn nodes(folder: &Path, warnings: &mut Vec<String>) -> Vec<(Vec<u32>, BTreeSet<usize>)> {
    let mut numbers: Vec<usize> = fs::read_dir(folder)
        .into_iter()
        .flatten()
        .filter_map(|entry| {
            entry
                .ok()?
                .file_name()
                .to_str()?
                .strip_prefix("node")?
                .parse()
                .ok()
        })
        .collect();
    numbers.sort_unstable();
    numbers
        .iter()
        .map(|n| {
            let node = folder.join(format!("node{n}"));
            let row = fs::read_to_string(node.join("distance")).unwrap_or_default();
            let row = row.split_whitespace().filter_map(|d| d.parse().ok());
            let text = fs::read_to_string(node.join("cpulist")).unwrap_or_default();
            let cpus = parse_list(&text).unwrap_or_else(|| {
                let text = text.trim();
                warnings.push(format!("node{n}/cpulist is no list of CPUs: {text:?}"));
                BTreeSet::new()
            });
            (row.collect(), cpus)
        })
        .collect()
}

/// A data cache: its level, its size and the first CPU that shares it.
pub(super) struct Cache {
    level: i64,
    bytes: Option<usize>,
    pub(super) first: Option<usize>,
}

impl Cache {
    pub(super) fn bytes(&self) -> Option<usize> {
        self.bytes
    }
}

/// The data caches of a CPU, with the nearest first.
pub(super) fn caches(cpu: &Path) -> Vec<Cache> {
    let mut out: Vec<Cache> = fs::read_dir(cpu.join("cache"))
        .into_iter()
        .flatten()
        .filter_map(|entry| {
            let index = entry.ok()?.path();
            let kind = fs::read_to_string(index.join("type")).ok()?;
            let size = fs::read_to_string(index.join("size")).ok();
            let level = number(&index.join("level"))?;
            (kind.trim() != "Instruction").then(|| Cache {
                level,
                bytes: size.and_then(|size| bytes(size.trim())),
                first: first(&index.join("shared_cpu_list")),
            })
        })
        .collect();
    out.sort_by_key(|c| c.level);
    out
}

/// A size such as `32K`.
fn bytes(size: &str) -> Option<usize> {
    let (number, unit) = size.split_at_checked(size.len().checked_sub(1)?)?;
    let shift = 10 * (1 + ["K", "M", "G"].iter().position(|u| *u == unit)?);
    Some(number.parse::<usize>().ok()? << shift)
}

pub(super) fn cache_sizes(caches: &[Cache]) -> Option<[usize; 3]> {
    let [l1, l2, ..] = caches else {
        return None;
    };
    Some([l1.bytes?, l2.bytes?, caches.last()?.bytes?])
}

/// The clock in GHz and its source. The base clock is preferred, since a busy machine keeps it. The one
/// in `/proc/cpuinfo` is often that of the moment.
pub(super) fn clock(cpu: &Path, info: &str) -> Option<(f64, &'static str)> {
    let khz = |file| number(&cpu.join("cpufreq").join(file)).map(|k| k as f64 / 1e6);
    let mhz = || {
        let text = field(info, "cpu MHz").or(field(info, "clock"))?;
        Some(text.trim_end_matches("MHz").parse::<f64>().ok()? / 1e3)
    };
    [
        (khz("base_frequency"), "cpufreq/base_frequency"),
        (khz("cpuinfo_max_freq"), "cpufreq/cpuinfo_max_freq"),
        (mhz(), CPUINFO),
    ]
    .into_iter()
    .find_map(|(ghz, from)| Some((ghz.filter(|g| *g > 0.0)?, from)))
}

/// The file with the clock of the moment.
pub(super) const CPUINFO: &str = "/proc/cpuinfo";

/// The first value of a key of `/proc/cpuinfo`. Processors differ in the case of its letters.
pub(super) fn field<'a>(info: &'a str, key: &str) -> Option<&'a str> {
    info.lines()
        .filter_map(|line| line.split_once(':'))
        .find(|(k, _)| k.trim().eq_ignore_ascii_case(key))
        .map(|(_, value)| value.trim())
}
