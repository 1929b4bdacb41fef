//! Which CPU each simulated thread runs on.

use std::fmt;
use std::str::FromStr;

use lockworks_machine::Machine;
use rand::seq::SliceRandom;
use rand_pcg::Pcg32;

/// How threads are placed on a machine's CPUs. No two share one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Placement {
    /// Cores in their order, socket after socket; second hardware threads when all cores are taken.
    Compact,
    /// Round robin over the NUMA nodes, cores first.
    Spread,
    /// Random cores, second hardware threads when all cores are taken; for threads that the
    /// scheduler places. The number is the seed.
    Scatter(u64),
}

impl Placement {
    /// CPU of each of `threads` threads; `None` if the machine has fewer CPUs.
    pub fn place(&self, machine: &Machine, threads: usize) -> Option<Vec<usize>> {
        if threads > machine.cpus() {
            return None;
        }
        // How many CPUs of the same core come before this one.
        let sibling = |cpu: usize| {
            (0..cpu)
                .rev()
                .take_while(|&c| machine.core_of(c) == machine.core_of(cpu))
                .count()
        };
        let mut cpus: Vec<usize> = (0..machine.cpus()).collect();
        match self {
            Self::Compact => {}
            Self::Spread => {
                let rank = |cpu: usize| {
                    let node = machine.node_of(cpu);
                    (0..cpu)
                        .filter(|&c| machine.node_of(c) == node && sibling(c) == sibling(cpu))
                        .count()
                };
                cpus.sort_by_cached_key(|&c| (rank(c), machine.node_of(c)));
            }
            Self::Scatter(seed) => {
                cpus.shuffle(&mut Pcg32::new(*seed, 0));
            }
        }
        cpus.sort_by_cached_key(|&c| sibling(c));
        cpus.truncate(threads);
        Some(cpus)
    }
}

impl fmt::Display for Placement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Compact => f.write_str("compact"),
            Self::Spread => f.write_str("spread"),
            Self::Scatter(seed) => write!(f, "scatter:{seed}"),
        }
    }
}

impl FromStr for Placement {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "compact" => Ok(Self::Compact),
            "spread" => Ok(Self::Spread),
            "scatter" => Ok(Self::Scatter(1)),
            _ => text
                .strip_prefix("scatter:")
                .and_then(|seed| seed.parse().ok())
                .map(Self::Scatter)
                .ok_or_else(|| {
                    format!(
                        "unknown placement '{text}'; use compact, spread, scatter or scatter:SEED"
                    )
                }),
        }
    }
}
