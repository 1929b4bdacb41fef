//! Doubt: other machines that a description could mean. Each value of the machine and the model is drawn
//! from the range that its source leaves. The workload is what was asked for, and stays.

use lockworks_machine::Mark;
use lockworks_measurements::sorted;
use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg32;
use xxhash_rust::xxh3::xxh3_64_with_seed;

use crate::{Parameters, Scenario, ScenarioValue};

/// How far a value may be off that has no range of its own: by this factor, up or down.
pub fn factor(mark: Mark) -> f64 {
    match mark {
        Mark::E => 1.05,
        Mark::S => 1.15,
        Mark::R => 1.25,
        Mark::I => 2.0,
    }
}

/// The rank correlation from which on a value is said to decide. With 40 machines and 50 values that have no
/// effect, one of them has such a correlation in one of 200 answers; with 30 machines in one of 30.
const DECIDES: f64 = 0.6;

/// With fewer machines, chance alone gives such a correlation.
const ENOUGH: usize = 30;

/// A value that decides between two locks.
#[derive(Debug, PartialEq, serde::Serialize)]
pub struct Deciding {
    /// The value's name.
    pub key: String,
    /// The correlation of its rank with that of the ratio of the two locks, from -1 to 1.
    pub correlation: f64,
}

/// Doubt about all values of a scenario but some.
#[derive(Clone, Debug, Default)]
pub struct Doubt {
    /// The keys of the values that are known.
    pub known: Vec<String>,
}

impl Doubt {
    /// A machine that the scenario could mean; another one with each seed.
    pub fn machine(&self, scenario: &Scenario, seed: u64) -> Scenario {
        let mut other = scenario.clone();
        for value in scenario.values().iter().filter(|value| self.varies(value)) {
            // A generator for each value: with one value more, the others are drawn as before.
            let draw = Pcg32::seed_from_u64(xxh3_64_with_seed(value.key.as_bytes(), seed))
                .random_range(-1.0..=1.0);
            let drawn = between(value, draw);
            let (low, high) = scenario.bounds(&value.key);
            let source = "drawn from its range";
            other
                .describe(&value.key, drawn.clamp(low, high), value.mark, source)
                .expect("a value that exists, within its bounds");
        }
        other
    }

    /// Whether a value is drawn: it is a quantity, and not known. A value of the machine that the model takes
    /// over is drawn there.
    fn varies(&self, value: &ScenarioValue) -> bool {
        let is_known = |key: &String| self.known.contains(key);
        let no_quantity = ["node", "yes or no"].contains(&value.unit.as_str());
        let known_or_elsewhere = Parameters::taken_over().any(|(model, machine)| {
            machine == value.key || (model == value.key && is_known(&machine))
        });
        !(value.key.starts_with("workload.")
            || no_quantity
            || is_known(&value.key)
            || known_or_elsewhere)
    }

    /// The value that decides most about a ratio, which has a figure for each seed from `seed` on. None:
    /// no value stands out.
    pub fn deciding(&self, scenario: &Scenario, seed: u64, ratios: &[f64]) -> Option<Deciding> {
        if ratios.len() < ENOUGH {
            return None;
        }
        let machines: Vec<Vec<ScenarioValue>> = (0..ratios.len() as u64)
            .map(|by| self.machine(scenario, seed.wrapping_add(by)).values())
            .collect();
        let values = machines.first()?.iter().enumerate();
        let correlations = values
            .filter(|(_, value)| self.varies(value))
            .map(|(at, value)| {
                let of_seeds: Vec<f64> = machines.iter().map(|values| values[at].value).collect();
                Deciding {
                    key: value.key.clone(),
                    correlation: correlation(&ranks(&of_seeds), &ranks(ratios)),
                }
            });
        correlations
            .max_by(|a, b| a.correlation.abs().total_cmp(&b.correlation.abs()))
            .filter(|most| most.correlation.abs() >= DECIDES)
    }
}

/// The value at a place in its range: the least at -1, the described one at 0, the greatest at 1.
fn between(value: &ScenarioValue, place: f64) -> f64 {
    let factor = factor(value.mark);
    let least = value.low.unwrap_or(value.value / factor);
    let greatest = value.high.unwrap_or(value.value * factor);
    // A range may begin at 0, which no factor reaches.
    let least =
        least.max(value.value / Mark::ALL.map(self::factor).into_iter().fold(1.0, f64::max));
    let end = if place < 0.0 { least } else { greatest };
    match value.value > 0.0 {
        true => value.value * (end / value.value).powf(place.abs()),
        false => value.value,
    }
}

/// The rank of each value; equal values have the mean of their ranks.
fn ranks(values: &[f64]) -> Vec<f64> {
    let order = sorted(values.iter().copied());
    let rank = |value: &f64| {
        let below = order.partition_point(|other| other < value);
        let up_to = order.partition_point(|other| other <= value);
        (below + up_to) as f64 / 2.0
    };
    values.iter().map(rank).collect()
}

/// Pearson's correlation. 0 if one of them is constant.
fn correlation(a: &[f64], b: &[f64]) -> f64 {
    let mean = |values: &[f64]| values.iter().sum::<f64>() / values.len() as f64;
    let (mean_a, mean_b) = (mean(a), mean(b));
    let sum = |f: &dyn Fn(f64, f64) -> f64| -> f64 {
        a.iter()
            .zip(b)
            .map(|(a, b)| f(a - mean_a, b - mean_b))
            .sum()
    };
    let spread = (sum(&|a, _| a * a) * sum(&|_, b| b * b)).sqrt();
    if spread > 0.0 {
        sum(&|a, b| a * b) / spread
    } else {
        0.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Workload;
    use lockworks_machine::Machine;

    fn scenario() -> Scenario {
        let machine = Machine::find("oracle-x5-4").expect("a machine");
        Scenario::new(
            machine,
            Workload::find("locktorture-old").expect("a workload"),
        )
    }

    fn value(scenario: &Scenario, key: &str) -> f64 {
        let values = scenario.values();
        let found = values.iter().find(|value| value.key == key);
        found.expect("the value exists").value
    }

    #[test]
    fn each_value_stays_in_its_range_and_the_seed_decides() {
        let scenario = scenario();
        let known = vec!["machine.rmw_cycles".to_owned()];
        let doubt = Doubt { known };
        let described = scenario.values();
        let mut moved = 0;
        for seed in 0..20 {
            let values = doubt.machine(&scenario, seed).values();
            for (old, new) in described.iter().zip(&values) {
                assert!(new.value >= between(old, -1.0) * 0.999, "{}", old.key);
                assert!(new.value <= between(old, 1.0) * 1.001, "{}", old.key);
                moved += usize::from(old.value != new.value);
                if old.key.starts_with("workload.") || doubt.known.contains(&old.key) {
                    assert_eq!(old.value, new.value, "{}", old.key);
                }
            }
        }
        assert!(moved > 20 * 20);
        let key = "machine.cache_to_cache.machine";
        let of = |seed| value(&doubt.machine(&scenario, seed), key);
        assert_eq!(of(3), of(3));
        assert_ne!(of(3), of(4));
    }

    #[test]
    fn quantities_are_drawn_once_each() {
        let description = include_str!("../../../machines/oracle-x5-4.toml");
        let cost =
            "pause_cycles = { value = 40, low = 39, high = 41, mark = \"I\", source = \"test\" }";
        let text = description.replacen("[costs]", &format!("[costs]\n{cost}"), 1);
        let machine = Machine::parse(&text, "x.toml").expect("a machine");
        let workload = Workload::find("locktorture-old").expect("a workload");
        let mut scenario = Scenario::new(machine, workload);
        for seed in 0..20 {
            let other = Doubt::default().machine(&scenario, seed);
            assert_eq!(value(&other, "model.eevdf"), 1.0);
            assert_eq!(value(&other, "machine.pause_cycles"), 40.0);
            let round = value(&other, "model.spin_round_cycles");
            assert!((44.0..=46.0).contains(&round) && round != 45.0, "{round}");
        }
        // What is set holds in the model too, and is known.
        let key = "machine.pause_cycles";
        scenario.set(key, 50.0, "test").expect("a value");
        let known = vec![key.to_owned()];
        let other = Doubt { known }.machine(&scenario, 1);
        assert_eq!(value(&other, "model.spin_round_cycles"), 55.0);
    }

    #[test]
    fn half_of_the_machines_have_more_than_the_description_says() {
        let scenario = scenario();
        let key = "model.tick_ns";
        let described = value(&scenario, key);
        let more = (0..400)
            .filter(|&seed| value(&Doubt::default().machine(&scenario, seed), key) > described);
        let more = more.count();
        assert!((150..250).contains(&more), "{more}");
    }

    #[test]
    fn the_value_that_decides_is_found_and_chance_is_not() {
        let scenario = scenario();
        let key = "model.transfer_spread";
        let of = |seed| value(&Doubt::default().machine(&scenario, seed), key);
        let by_value: Vec<f64> = (7..47).map(|seed| 1.0 / of(seed)).collect();
        let found = Doubt::default()
            .deciding(&scenario, 7, &by_value)
            .expect("it decides");
        assert_eq!(found.key, key);
        assert!((found.correlation + 1.0).abs() < 1e-9);
        let mut random = Pcg32::new(1, 1);
        let chance: Vec<f64> = (0..40).map(|_| random.random()).collect();
        assert_eq!(Doubt::default().deciding(&scenario, 7, &chance), None);
        // Of five, each is in some order.
        let few = &by_value[..5];
        assert_eq!(Doubt::default().deciding(&scenario, 7, few), None);
    }
}
