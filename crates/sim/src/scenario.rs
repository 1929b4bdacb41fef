//! A scenario is a machine, a workload and the model's parameters: all values that a simulation
//! depends on. Each value has a name.

use lockworks_machine::{Kernel, Machine, Mark};

use crate::{Parameters, Workload};

/// All values that a simulation depends on. Keys start with `machine.`, `workload.` or `model.`.
#[derive(Clone)]
pub struct Scenario {
    /// The machine.
    pub machine: Machine,
    /// The workload of its threads.
    pub workload: Workload,
    /// The parameters of the model that are not in the machine's description.
    pub parameters: Parameters,
    /// The version of Linux that schedules threads that share CPUs.
    kernel: Kernel,
}

/// The reason for which a value cannot be changed.
#[derive(Clone, Copy, Debug, PartialEq, thiserror::Error)]
pub enum SetError {
    /// There is no value of that name.
    #[error("no such value")]
    Unknown,
    /// The new value is out of range.
    #[error("must be from {low} to {high}")]
    OutOfRange {
        /// The least value that is allowed.
        low: f64,
        /// The greatest value that is allowed.
        high: f64,
    },
}

/// One value, for reports.
#[derive(Clone, Debug, serde::Serialize)]
pub struct ScenarioValue {
    /// The name of the value.
    pub key: String,
    /// The value itself.
    pub value: f64,
    /// The lowest figure that was found, if the description has one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub low: Option<f64>,
    /// The highest figure that was found, if the description has one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub high: Option<f64>,
    /// The unit of the value.
    pub unit: String,
    /// How well it is known.
    pub mark: Mark,
    /// The source of the value.
    pub source: String,
}

impl Scenario {
    /// Makes the scenario with every value as the machine and the workload describe it. Parameters
    /// that the machine has values for are taken from it.
    pub fn new(machine: Machine, workload: Workload) -> Self {
        let mut parameters = Parameters::default();
        parameters.measured_on(&machine);
        let mut scenario = Self {
            machine,
            workload,
            parameters,
            kernel: Kernel::default(),
        };
        if let Some(kernel) = scenario.machine.kernel {
            scenario.schedule_as(kernel);
        }
        scenario
    }

    /// Lets threads that share CPUs be scheduled as this version of Linux does.
    pub fn schedule_as(&mut self, kernel: Kernel) {
        self.kernel = kernel;
        for (key, has) in [
            ("eevdf", kernel.has_eevdf()),
            ("lazy_preemption", kernel.preempts_lazily()),
        ] {
            let parameter = self.parameters.parameter_mut(key);
            let parameter = parameter.expect("it is a parameter");
            parameter.value = f64::from(u8::from(has));
            parameter.source = format!("Linux {kernel}");
        }
    }

    /// The version of Linux that schedules threads that share CPUs.
    pub fn kernel(&self) -> Kernel {
        self.kernel
    }

    /// Changes a value and gives it the mark I (inferred). `source` says where the new value is
    /// from.
    ///
    /// # Errors
    /// If there is no value of that name, or the new value is out of range.
    pub fn set(&mut self, key: &str, value: f64, source: &str) -> Result<(), SetError> {
        self.describe(key, value, Mark::I, source)
    }

    /// Changes a value and its mark. `source` says where the new value is from.
    ///
    /// # Errors
    /// As [`Scenario::set`].
    pub fn describe(
        &mut self,
        key: &str,
        value: f64,
        mark: Mark,
        source: &str,
    ) -> Result<(), SetError> {
        let (low, high) = self.bounds(key);
        if !(low..=high).contains(&value) {
            return Err(SetError::OutOfRange { low, high });
        }
        let (of, name) = key.split_once('.').ok_or(SetError::Unknown)?;
        let (place, old_mark, from) = match of {
            "machine" => {
                let v = self.machine.value_mut(name).ok_or(SetError::Unknown)?;
                (&mut v.value, &mut v.mark, &mut v.source)
            }
            "workload" => {
                let v = self.workload.constant_mut(name).ok_or(SetError::Unknown)?;
                (&mut v.value, &mut v.mark, &mut v.source)
            }
            "model" => {
                let p = self
                    .parameters
                    .parameter_mut(name)
                    .ok_or(SetError::Unknown)?;
                (&mut p.value, &mut p.mark, &mut p.source)
            }
            _ => return Err(SetError::Unknown),
        };
        (*place, *old_mark, *from) = (value, mark, source.to_owned());
        if of == "machine" {
            self.parameters.take_over(&self.machine, name);
        }
        Ok(())
    }

    /// Returns the range of values with which a simulation makes sense.
    pub(crate) fn bounds(&self, key: &str) -> (f64, f64) {
        match key {
            "model.request_share" => (0.05, 0.95),
            "model.transfer_spread" => (0.0, 0.9),
            "model.eevdf" => (0.0, 1.0),
            "model.home_node" => (0.0, (self.machine.nodes() - 1) as f64),
            _ if key.starts_with("machine.") => (0.01, 1e5),
            _ => (0.0, 1e7),
        }
    }

    /// Returns all values.
    pub fn values(&self) -> Vec<ScenarioValue> {
        let machine = self
            .machine
            .values()
            .into_iter()
            .map(|(key, v, unit)| (format!("machine.{key}"), v, unit));
        // The name of a constant ends in its unit.
        let unit = |key: &str| match key.rsplit_once('_') {
            Some((_, unit @ ("ns" | "us" | "s" | "cycles"))) => unit.to_owned(),
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
                low: v.low,
                high: v.high,
                unit,
                mark: v.mark,
                source: v.source.clone(),
            });
        let model = self.parameters.iter().map(|p| ScenarioValue {
            key: format!("model.{}", p.key),
            value: p.value,
            low: p.low,
            high: p.high,
            unit: p.unit.to_owned(),
            mark: p.mark,
            source: p.source.clone(),
        });
        described.chain(model).collect()
    }
}
