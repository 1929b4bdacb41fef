//! The plan of rounds on one or several locks, and the task of the guest that runs them.

use super::TortureSubject;
use super::module::{has_parameter, holds, module, steady};
use crate::build::Built;
use crate::error::{Error, Result};
use crate::lock::Lock;
use crate::task::Task;

/// A plan of rounds.
#[derive(Clone, Debug)]
pub struct LocktorturePlan {
    /// The locks; several take turns.
    pub subjects: Vec<TortureSubject>,
    /// The module's `torture_type` of spinlocks that did not opt in to HQ.
    pub kind: String,
    /// The number of threads that take the lock.
    pub writers: u32,
    /// The length of a round.
    pub seconds: f64,
    /// The number of rounds of each lock.
    pub rounds: u32,
    /// Whether CPUs are switched off and on meanwhile.
    pub hotplug: bool,
    /// Additional parameters of the module.
    pub parameters: String,
}

/// Parameters of the module that follow from a plan, and the options to use instead.
const PLANNED: [(&str, &str); 4] = [
    ("nwriters_stress", "use --writers"),
    ("torture_type", "use --type"),
    (
        "stat_interval",
        "a round of --seconds is reported at its end",
    ),
    ("onoff_interval", "use --hotplug"),
];

impl LocktorturePlan {
    /// The module's `torture_type` for a lock.
    pub fn type_of(&self, subject: TortureSubject) -> String {
        type_of(subject, &self.kind)
    }

    fn turns(&self) -> Vec<(u32, TortureSubject)> {
        (0..self.rounds)
            .flat_map(|round| {
                let mut order = self.subjects.clone();
                if round % 2 == 1 {
                    order.reverse();
                }
                order.into_iter().map(move |subject| (round + 1, subject))
            })
            .collect()
    }

    /// The task of the guest.
    pub(super) fn task(&self, built: &Built) -> Result<Task> {
        let module = module(built)?;
        for kind in self.subjects.iter().map(|subject| self.type_of(*subject)) {
            if !holds(&module, &format!("\0{kind}\0")) {
                return Err(Error::Refused(format!(
                    "locktorture of Linux {} does not know {kind}; choose another --type",
                    built.release
                )));
            }
        }
        let runs: Vec<String> = self
            .turns()
            .iter()
            .map(|(round, subject)| {
                let (name, kind) = (subject.name(), self.type_of(*subject));
                format!("{round}:{name}:{kind}")
            })
            .collect();
        let switching = if self.subjects.len() > 1 { "yes" } else { "" };
        Ok(Task {
            script: "torture",
            plan: vec![
                ("RUNS", runs.join(" ")),
                ("SWITCHING", switching.to_owned()),
                ("LENGTH", self.seconds.to_string()),
                ("PARAMETERS", self.parameters_for(&module, &built.release)?),
            ],
            ..Task::default()
        })
    }

    /// The parameters of the module.
    pub(super) fn parameters_for(&self, module: &[u8], release: &str) -> Result<String> {
        for word in self.parameters.split_whitespace() {
            let name = word.split('=').next().unwrap_or(word).replace('-', "_");
            if let Some((_, instead)) = PLANNED.iter().find(|(planned, _)| *planned == name) {
                return Err(Error::Refused(format!(
                    "--torture-args cannot set {name}: {instead}"
                )));
            }
            if !has_parameter(module, &name) {
                return Err(Error::Refused(format!(
                    "locktorture of Linux {release} has no parameter {name}; leave it out of --torture-args"
                )));
            }
        }

        let mut words = steady(module, self.writers);
        if self.hotplug {
            words.push("onoff_interval=1".to_owned());
        }
        // If a parameter is set twice, the kernel takes the last value.
        words.extend(self.parameters.split_whitespace().map(str::to_owned));
        Ok(words.join(" "))
    }
}

/// The module's `torture_type` for a lock, if spinlocks that did not opt in to HQ have the type `kind`.
pub(super) fn type_of(subject: TortureSubject, kind: &str) -> String {
    match subject {
        TortureSubject::Lock(Lock::Hq) => format!("{kind}_hq"),
        TortureSubject::Lock(_) => kind.to_owned(),
        TortureSubject::Busted => "lock_busted".to_owned(),
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    pub(in crate::torture) fn plan(subjects: &[TortureSubject]) -> LocktorturePlan {
        LocktorturePlan {
            subjects: subjects.into(),
            kind: "spin_lock".into(),
            writers: 2,
            seconds: 1.0,
            rounds: 2,
            hotplug: true,
            parameters: "long_hold=5".into(),
        }
    }

    pub(in crate::torture) const BOTH: [TortureSubject; 2] = [
        TortureSubject::Lock(Lock::Stock),
        TortureSubject::Lock(Lock::Cna),
    ];

    #[test]
    fn locks_take_turns() {
        let names: Vec<_> = plan(&BOTH)
            .turns()
            .iter()
            .map(|(round, subject)| format!("{round}:{}", subject.name()))
            .collect();
        assert_eq!(names, ["1:stock", "1:cna", "2:cna", "2:stock"]);
    }

    #[test]
    fn hq_is_for_locks_that_opted_in() {
        let plan = plan(&BOTH);
        assert_eq!(plan.type_of(TortureSubject::Lock(Lock::Cna)), "spin_lock");
        assert_eq!(plan.type_of(TortureSubject::Lock(Lock::Hq)), "spin_lock_hq");
        assert_eq!(plan.type_of(TortureSubject::Busted), "lock_busted");
    }

    #[test]
    fn a_module_gets_parameters_that_it_has() {
        let module = b"\0parmtype=stutter:int\0parmtype=long_hold:int\0";
        let given = |parameters: &str| {
            let plan = LocktorturePlan {
                parameters: parameters.into(),
                ..plan(&BOTH)
            };
            plan.parameters_for(module, "6.1.0")
                .map_err(|error| error.to_string())
        };
        assert_eq!(
            given("long_hold=5").unwrap(),
            "nwriters_stress=2 stat_interval=86400 verbose=0 long_hold=0 stutter=0 \
             onoff_interval=1 long_hold=5"
        );
        let refused = given("stutter=1 nwriters-stress=3").unwrap_err();
        assert_eq!(
            refused,
            "--torture-args cannot set nwriters_stress: use --writers"
        );
        assert!(
            given("nested_locks=2")
                .unwrap_err()
                .contains("6.1.0 has no parameter nested_locks")
        );
    }
}
