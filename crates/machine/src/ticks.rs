//! How long CPUs have worked and been idle, in clock ticks, usually of 10 ms, since the machine started.

use std::fs;

/// The ticks of a CPU, or of all CPUs together.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Ticks {
    /// All of them.
    pub all: u64,
    /// Those in which it was idle.
    pub idle: u64,
    /// Those in which the hypervisor kept it from running.
    pub steal: u64,
}

/// The ticks of all CPUs together. None: the system does not report them.
pub fn of_all() -> Option<Ticks> {
    let stat = fs::read_to_string("/proc/stat").ok()?;
    stat.lines().find_map(|line| Ticks::of(line, "cpu"))
}

/// The idle ticks of these CPUs together, whose numbers ascend. None: the system does not report those of each.
pub fn idle_of(cpus: &[usize]) -> Option<u64> {
    let stat = fs::read_to_string("/proc/stat").ok()?;
    let of_cpu = |line: &str| {
        let (name, _) = line.split_once(' ')?;
        let cpu = name.strip_prefix("cpu")?.parse().ok()?;
        cpus.binary_search(&cpu).ok()?;
        Some(Ticks::of(line, name)?.idle)
    };
    let idle: Vec<u64> = stat.lines().filter_map(of_cpu).collect();
    (idle.len() == cpus.len()).then(|| idle.iter().sum())
}

impl Ticks {
    fn of(line: &str, name: &str) -> Option<Self> {
        let mut words = line.split_whitespace();
        (words.next()? == name).then_some(())?;
        // user, nice, system, idle, iowait, irq, softirq, steal
        let ticks: Vec<u64> = words
            .take(8)
            .map(|word| word.parse().ok())
            .collect::<Option<_>>()?;
        Some(Self {
            all: ticks.iter().sum(),
            idle: ticks.get(3)? + ticks.get(4)?,
            steal: *ticks.get(7)?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::Ticks;

    #[test]
    fn a_line_of_the_system() {
        let ticks = Ticks {
            all: 36,
            idle: 9,
            steal: 8,
        };
        assert_eq!(Ticks::of("cpu  1 2 3 4 5 6 7 8 9 10", "cpu"), Some(ticks));
        assert_eq!(Ticks::of("cpu1 1 2 3 4 5 6 7 8 9 10", "cpu"), None);
        assert_eq!(Ticks::of("cpu 1 2 3", "cpu"), None);
    }
}
