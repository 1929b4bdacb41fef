//! How long CPUs have worked and been idle, in clock ticks, usually of 10 ms, since the machine started.

use std::fs;

use nix::sys::resource::{UsageWho, getrusage};
use nix::sys::time::TimeValLike;

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

/// The work of all CPUs until now, and the part of it that is one's own.
#[derive(Clone, Copy, Debug)]
pub struct Load {
    all: Ticks,
    own: u64,
}

impl Load {
    /// The own part is that of this process. None: the system does not report it.
    pub fn beside_this_process() -> Option<Self> {
        Self::beside(UsageWho::RUSAGE_SELF)
    }

    /// The own part is that of this process' children that have ended. None: the system does not report it.
    pub fn beside_children() -> Option<Self> {
        Self::beside(UsageWho::RUSAGE_CHILDREN)
    }

    fn beside(who: UsageWho) -> Option<Self> {
        let usage = getrusage(who).ok()?;
        let [user, system] = [usage.user_time(), usage.system_time()];
        let milliseconds = user.num_milliseconds() + system.num_milliseconds();
        Some(Self {
            all: of_all()?,
            // There are 100 ticks a second.
            own: (milliseconds / 10).try_into().ok()?,
        })
    }

    /// The share of the CPUs' time that others have had since an earlier load.
    pub fn others_since(&self, begin: &Self) -> f64 {
        let all = self.all.all - begin.all.all;
        let own = self.own.saturating_sub(begin.own);
        let others = (all - (self.all.idle - begin.all.idle)).saturating_sub(own);
        others as f64 / all.max(1) as f64
    }
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
    use super::{Load, Ticks};

    #[test]
    fn others_have_what_is_neither_idle_nor_own() {
        let load = |all, idle, own| Load {
            all: Ticks {
                all,
                idle,
                steal: 0,
            },
            own,
        };
        let begin = load(1000, 400, 50);
        assert_eq!(load(1200, 500, 90).others_since(&begin), 0.3);
        // The clocks differ: what is own can be more than what was not idle.
        assert_eq!(load(1200, 590, 90).others_since(&begin), 0.0);
        assert_eq!(begin.others_since(&begin), 0.0);
    }

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
