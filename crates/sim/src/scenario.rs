//! A machine, a workload and the model: all values that a simulation depends on, by name.

use lockworks_machine::{Machine, Mark};

use crate::{Parameters, Workload};

/// All values that a simulation depends on. Keys start with `machine.`, `workload.` or `model.`.
#[derive(Clone)]
pub struct Scenario {
    /// The machine.
    pub machine: Machine,
    /// What its threads do.
    pub workload: Workload,
    /// The rest of the model.
    pub parameters: Parameters,
}

/// One value, for reports.
#[derive(Clone, Debug, serde::Serialize)]
pub struct ScenarioValue {
    /// Its name.
    pub key: String,
    /// Its value.
    pub value: f64,
    /// The unit.
    pub unit: String,
    /// How well it is known.
    pub mark: Mark,
    /// Where it is from.
    pub source: String,
}

impl Scenario {
    /// The scenario with every value as described.
    pub fn new(machine: Machine, workload: Workload) -> Self {
        Self {
            machine,
            workload,
            parameters: Parameters::default(),
        }
    }

    /// Changes a value; false if there is none of that name.
    #[must_use]
    pub fn set(&mut self, key: &str, value: f64) -> bool {
        let Some(place) = self.value_mut(key) else {
            return false;
        };
        *place = value;
        true
    }

    fn value_mut(&mut self, key: &str) -> Option<&mut f64> {
        let (of, key) = key.split_once('.')?;
        match of {
            "machine" => self.machine.value_mut(key).map(|v| &mut v.value),
            "workload" => self.workload.constant_mut(key).map(|v| &mut v.value),
            "model" => self.parameters.value_mut(key),
            _ => None,
        }
    }

    /// Every value.
    pub fn values(&self) -> Vec<ScenarioValue> {
        let machine = self
            .machine
            .values()
            .into_iter()
            .map(|(key, v, unit)| (format!("machine.{key}"), v, unit));
        // A constant's name ends in its unit.
        let unit = |key: &str| match key.rsplit_once('_') {
            Some((_, unit @ ("ns" | "cycles"))) => unit.to_owned(),
            _ => String::new(),
        };
        let workload = self
            .workload
            .constants()
            .map(|(key, v)| (format!("workload.{key}"), v, unit(key)));
        let described = machine
            .map(|(key, v, unit)| (key, v, unit.to_owned()))
            .chain(workload)
            .map(|(key, v, unit)| ScenarioValue {
                key,
                value: v.value,
                unit,
                mark: v.mark,
                source: v.source.clone(),
            });
        let model = self.parameters.iter().map(|p| ScenarioValue {
            key: format!("model.{}", p.key),
            value: p.value,
            unit: p.unit.to_owned(),
            mark: p.mark,
            source: p.source.to_owned(),
        });
        described.chain(model).collect()
    }
}
