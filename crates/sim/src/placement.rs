//! The choice of a CPU for each simulated thread.

use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;

use lockworks_machine::Machine;
use lockworks_names::{nearest, unknown};
use rand::seq::SliceRandom;
use rand_pcg::Pcg32;

/// The kinds of placements.
const KINDS: [&str; 5] = ["compact", "packed", "spread", "scatter", "gather"];

/// How threads are placed on a machine's CPUs. Each thread has a CPU of its own.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Placement {
    /// Cores in their order, socket after socket. Second hardware threads follow when all cores are
    /// taken.
    Compact,
    /// CPUs in their order: both hardware threads of a core, then those of the next core.
    Packed,
    /// Round robin over the NUMA nodes. Second hardware threads follow when all cores are taken.
    Spread,
    /// Random cores, as for threads that the scheduler places. Second hardware threads follow when
    /// all cores are taken. The number is the seed of the random choices.
    Scatter(u64),
    /// As scatter, but in groups of threads: a whole group is placed on a NUMA node before the next
    /// NUMA node gets threads. Schedulers keep threads near those that they wake, and so place
    /// them. Each round visits the NUMA nodes in random order.
    Gather {
        /// The number of threads in a group.
        size: usize,
        /// The seed of the random choices.
        seed: u64,
    },
}

impl Placement {
    /// The placement with other random choices: its seed is greater by `by`. A placement that is not
    /// random stays.
    pub fn with_seed_moved(&self, by: u64) -> Self {
        match *self {
            Self::Scatter(seed) => Self::Scatter(seed.wrapping_add(by)),
            Self::Gather { size, seed } => Self::Gather {
                size,
                seed: seed.wrapping_add(by),
            },
            ref fixed => fixed.clone(),
        }
    }

    /// Returns the CPU of each of `threads` threads, or `None` if the machine has fewer CPUs.
    pub fn place(&self, machine: &Machine, threads: usize) -> Option<Vec<usize>> {
        if threads > machine.cpus() {
            return None;
        }
        // The number of CPUs of the same core that come before this one.
        let sibling = |cpu: usize| {
            (0..cpu)
                .rev()
                .take_while(|&c| machine.core_of(c) == machine.core_of(cpu))
                .count()
        };
        let mut cpus: Vec<usize> = (0..machine.cpus()).collect();
        match *self {
            Self::Compact | Self::Packed => {}
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
                cpus.shuffle(&mut Pcg32::new(seed, 0));
            }
            Self::Gather { size, seed } => {
                let mut random = Pcg32::new(seed, 0);
                cpus.shuffle(&mut random);
                let mut order: Vec<usize> = (0..machine.nodes()).collect();
                order.shuffle(&mut random);
                let mut taken = BTreeMap::new();
                let turn = |&cpu: &usize| {
                    let (sibling, node) = (sibling(cpu), machine.node_of(cpu));
                    let before = taken.entry((sibling, node)).or_insert(0);
                    *before += 1;
                    (sibling, (*before - 1) / size.max(1), order[node])
                };
                let mut turns: Vec<_> = cpus.iter().map(turn).zip(cpus.clone()).collect();
                turns.sort_by_key(|(turn, _)| *turn);
                cpus = turns.into_iter().map(|(_, cpu)| cpu).collect();
            }
        }
        if *self != Self::Packed {
            cpus.sort_by_cached_key(|&c| sibling(c));
        }
        cpus.truncate(threads);
        Some(cpus)
    }
}

impl fmt::Display for Placement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Compact => f.write_str("compact"),
            Self::Packed => f.write_str("packed"),
            Self::Spread => f.write_str("spread"),
            Self::Scatter(seed) => write!(f, "scatter:{seed}"),
            Self::Gather { size, seed } => write!(f, "gather:{size}:{seed}"),
        }
    }
}

impl FromStr for Placement {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let mut words = text.split(':');
        let kind = words.next().unwrap_or_default();
        let numbers: Option<Vec<u64>> = words.map(|word| word.parse().ok()).collect();
        match (kind, numbers.as_deref()) {
            ("compact", Some([])) => Some(Self::Compact),
            ("packed", Some([])) => Some(Self::Packed),
            ("spread", Some([])) => Some(Self::Spread),
            ("scatter", Some([])) => Some(Self::Scatter(1)),
            ("scatter", Some([seed])) => Some(Self::Scatter(*seed)),
            ("gather", Some([size, rest @ ..])) if *size > 0 && rest.len() < 2 => {
                Some(Self::Gather {
                    size: *size as usize,
                    seed: rest.first().copied().unwrap_or(1),
                })
            }
            _ => None,
        }
        .ok_or_else(|| match kind {
            "gather" => format!(
                "placement '{text}' needs the number of threads in a group, at least 1, and may \
                 have a seed; write gather:SIZE or gather:SIZE:SEED"
            ),
            "scatter" => format!("placement '{text}' has a wrong seed; write scatter:SEED"),
            _ if KINDS.contains(&kind) => {
                format!("placement '{text}' takes no number; write {kind}")
            }
            _ => unknown("placement", text, '\'', nearest(kind, KINDS), || {
                "use compact, packed, spread, scatter, scatter:SEED, gather:SIZE or \
                 gather:SIZE:SEED"
                    .to_owned()
            }),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn nodes(placement: &str, machine: &str, threads: usize) -> Vec<u32> {
        let placement: Placement = placement.parse().unwrap();
        let machine = Machine::find(machine).unwrap();
        let cpus = placement.place(&machine, threads).unwrap();
        let mut unique = cpus.clone();
        unique.sort_unstable();
        unique.dedup();
        assert_eq!(unique.len(), threads, "{placement}: one thread a CPU");
        let mut taken = vec![0; machine.nodes()];
        for cpu in cpus {
            taken[machine.node_of(cpu)] += 1;
        }
        taken.sort_unstable();
        taken
    }

    #[test]
    fn gathered_threads_fill_node_after_node() {
        assert_eq!(nodes("gather:4", "kunpeng-920", 4), [0, 0, 0, 4]);
        assert_eq!(nodes("gather:4", "kunpeng-920", 10), [0, 2, 4, 4]);
        assert_eq!(nodes("gather:4:7", "kunpeng-920", 18), [4, 4, 4, 6]);
        assert_eq!(nodes("gather:1", "kunpeng-920", 4), [1, 1, 1, 1]);
        assert_eq!(nodes("gather:100", "epyc-9654-nps1", 250), [96, 154]);
        // Further threads of cores come in groups too: eight threads share a core.
        assert_eq!(nodes("gather:4", "power10-4", 64), [15, 15, 15, 19]);
        assert_eq!(nodes("gather:4", "power10-4", 240 + 4), [60, 60, 60, 64]);
    }

    #[test]
    fn packed_threads_share_cores() {
        assert_eq!(nodes("compact", "oracle-x5-4", 20), [0, 0, 2, 18]);
        assert_eq!(nodes("packed", "oracle-x5-4", 38), [0, 0, 2, 36]);
    }

    #[test]
    fn placements_are_read_as_they_are_written() {
        for text in ["compact", "packed", "spread", "scatter:3", "gather:4:9"] {
            assert_eq!(text.parse::<Placement>().unwrap().to_string(), text);
        }
        assert_eq!(
            "gather:4".parse(),
            Ok(Placement::Gather { size: 4, seed: 1 })
        );
        for bad in [
            "gather",
            "gather:0",
            "gather:4:1:1",
            "scatter:x",
            "compact:1",
            "",
        ] {
            assert!(bad.parse::<Placement>().is_err(), "{bad}");
        }
    }

    #[test]
    fn a_wrong_placement_is_refused_with_the_right_one() {
        let refused = |text: &str| text.parse::<Placement>().unwrap_err();
        assert_eq!(
            refused("scater"),
            "unknown placement 'scater'; did you mean 'scatter'?"
        );
        assert_eq!(
            refused("x"),
            "unknown placement 'x'; use compact, packed, spread, scatter, scatter:SEED, \
             gather:SIZE or gather:SIZE:SEED"
        );
        for wrong in ["gather", "gather:0", "gather:x", "gather:4:1:1"] {
            assert_eq!(
                refused(wrong),
                format!(
                    "placement '{wrong}' needs the number of threads in a group, at least 1, and \
                     may have a seed; write gather:SIZE or gather:SIZE:SEED"
                )
            );
        }
        assert_eq!(
            refused("scatter:x"),
            "placement 'scatter:x' has a wrong seed; write scatter:SEED"
        );
        assert_eq!(
            refused("compact:1"),
            "placement 'compact:1' takes no number; write compact"
        );
    }
}

#[cfg(test)]
mod properties {
    use lockworks_properties::nearly;
    use proptest::prelude::*;

    use super::*;

    fn placements() -> impl Strategy<Value = Placement> {
        prop_oneof![
            Just(Placement::Compact),
            Just(Placement::Packed),
            Just(Placement::Spread),
            any::<u64>().prop_map(Placement::Scatter),
            (1..usize::MAX, any::<u64>()).prop_map(|(size, seed)| Placement::Gather { size, seed }),
        ]
    }

    proptest! {
        #[test]
        fn every_placement_is_read_as_it_was_written(placement in placements()) {
            prop_assert_eq!(placement.to_string().parse(), Ok(placement));
        }

        #[test]
        fn any_text_is_refused_or_a_placement(
            text in nearly(vec!["compact", "packed", "spread", "scatter:3", "gather:4:9"], 2),
        ) {
            match text.parse::<Placement>() {
                Ok(placement) => prop_assert_eq!(placement.to_string().parse(), Ok(placement)),
                Err(error) => prop_assert!(error.contains(&text), "{error}"),
            }
        }

        /// Each thread has a CPU of its own, and there are as many as the machine has.
        #[test]
        fn threads_share_no_cpu(placement in placements(), threads in 0..160_usize) {
            let machine = Machine::find("oracle-x5-4").unwrap();
            let placed = placement.place(&machine, threads);
            prop_assert_eq!(placed.is_some(), threads <= machine.cpus());
            let mut cpus = placed.unwrap_or_default();
            cpus.sort_unstable();
            prop_assert!(cpus.windows(2).all(|pair| pair[0] < pair[1]), "{cpus:?}");
            prop_assert!(cpus.last().is_none_or(|last| *last < machine.cpus()));
        }
    }
}
