//! Rounds of the kernel's locktorture on one or several locks, in one guest.

use std::collections::BTreeMap;
use std::fs;

use serde::Serialize;

use super::build::Built;
use super::cache::{Cache, Progress};
use super::complaint::{Complaint, ComplaintKind};
use super::error::{Attempt, Error, Result};
use super::guest::{Guest, GuestVerdict};
use super::lock::Lock;
use super::locktorture::{TortureFigures, fairness_bound};
use super::message::GuestMessage;
use super::task::Task;

/// A lock to torture.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TortureSubject {
    /// Spinlocks with a slow path.
    Lock(Lock),
    /// The broken lock of the module, which shows that broken locks are found.
    Busted,
}

impl TortureSubject {
    /// The name on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Self::Lock(lock) => lock.name(),
            Self::Busted => "busted",
        }
    }
}

/// A plan of rounds.
#[derive(Clone, Debug)]
pub struct TorturePlan {
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

/// A round of one lock.
#[derive(Clone, Debug, Serialize)]
pub struct TortureRound {
    /// The figures of the module.
    #[serde(flatten)]
    pub figures: TortureFigures,
    /// The upper bound of the fairness factor.
    pub fairness: Option<f64>,
    /// The kernel's lock events in this round.
    pub counters: BTreeMap<String, u64>,
}

/// The outcome of a plan.
#[derive(Clone, Debug)]
pub struct TortureOutcome {
    /// The locks in the order of the plan, with their rounds.
    pub subjects: Vec<(TortureSubject, Vec<TortureRound>)>,
    /// The verdict on the guest.
    pub judged: GuestVerdict,
    /// The release of the guest's kernel.
    pub release: String,
}

/// Whether a counter is reported even if it is 0: the locks count it in every world.
fn is_ours(name: &str) -> bool {
    lockworks::statistics().get(name).is_some()
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

/// Parameters that would make rounds differ. They are 0 if the module has them.
const STEADY: [&str; 4] = ["long_hold", "stutter", "shuffle_interval", "rt_boost"];

impl TorturePlan {
    /// The module's `torture_type` for a lock.
    pub fn type_of(&self, subject: TortureSubject) -> String {
        match subject {
            TortureSubject::Lock(Lock::Hq) => format!("{}_hq", self.kind),
            TortureSubject::Lock(_) => self.kind.clone(),
            TortureSubject::Busted => "lock_busted".to_owned(),
        }
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

    fn task(&self, built: &Built) -> Result<Task> {
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
            command: None,
            disk: None,
        })
    }

    fn parameters_for(&self, module: &[u8], release: &str) -> Result<String> {
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

/// Reads the module of a kernel.
fn module(built: &Built) -> Result<Vec<u8>> {
    let module = built.directory.join("kernel/locking/locktorture.ko");
    fs::read(&module).attempt_on("read", &module)
}

/// Parameters that make rounds of the module comparable.
fn steady(module: &[u8], writers: u32) -> Vec<String> {
    let mut words = vec![
        format!("nwriters_stress={writers}"),
        "stat_interval=86400".to_owned(),
        "verbose=0".to_owned(),
    ];
    let steady = STEADY.iter().filter(|name| has_parameter(module, name));
    words.extend(steady.map(|name| format!("{name}=0")));
    words
}

/// The parameters that make rounds of a kernel's module comparable.
pub(super) fn steady_parameters(built: &Built, writers: u32) -> Result<String> {
    Ok(steady(&module(built)?, writers).join(" "))
}

/// A lock event and its count, if it is to be reported.
pub(super) fn counter(told: &str) -> Option<(String, u64)> {
    let (name, count) = told.split_once(' ')?;
    let count = count.parse().ok()?;
    (count > 0 || is_ours(name)).then(|| (name.to_owned(), count))
}

/// Whether a module has a parameter. Modules list their parameters in their description.
fn has_parameter(module: &[u8], name: &str) -> bool {
    holds(module, &format!("parmtype={name}:"))
}

fn holds(module: &[u8], text: &str) -> bool {
    module
        .windows(text.len())
        .any(|bytes| bytes == text.as_bytes())
}

/// Boots a guest and runs the rounds of a plan.
pub fn torture(
    plan: &TorturePlan,
    guest: &Guest,
    cache: &Cache,
    progress: Progress,
) -> Result<TortureOutcome> {
    let task = plan.task(guest.built)?;
    progress("booting");
    let mut rounds = RoundsSoFar::new(plan);
    let mut judged = guest.run(&task, cache, &mut |said| {
        if let GuestMessage::Word(word, rest) = said {
            if word == "round" {
                let (round, lock) = rest.split_once(' ').unwrap_or((rest, ""));
                progress(&format!("round {round} of {}, {lock}", plan.rounds));
            }
            rounds.note(word, rest);
        }
    })?;
    if let Some(why) = &judged.refused
        && judged.complaints.is_empty()
    {
        let console = judged.console.display();
        return Err(Error::Refused(format!(
            "{why}; the console is in {console}"
        )));
    }
    judged.complaints.extend(rounds.missing(plan.rounds));
    judged.complaints.extend(rounds.bad());
    if plan.hotplug && judged.offlined == 0 {
        judged.complaints.push(Complaint {
            kind: ComplaintKind::Task,
            lines: vec!["no CPU was switched off; use longer rounds".to_owned()],
        });
    }
    Ok(TortureOutcome {
        subjects: rounds.subjects,
        judged,
        release: rounds.release,
    })
}

/// The rounds that a guest has reported so far.
struct RoundsSoFar {
    writers: u32,
    release: String,
    subjects: Vec<(TortureSubject, Vec<TortureRound>)>,
    current: String,
    log: Vec<String>,
    counters: BTreeMap<String, u64>,
}

impl RoundsSoFar {
    fn new(plan: &TorturePlan) -> Self {
        Self {
            writers: plan.writers,
            release: String::new(),
            subjects: plan.subjects.iter().map(|s| (*s, Vec::new())).collect(),
            current: String::new(),
            log: Vec::new(),
            counters: BTreeMap::new(),
        }
    }

    fn note(&mut self, word: &str, rest: &str) {
        match word {
            "up" => self.release = rest.to_owned(),
            "round" => {
                self.log.clear();
                self.counters.clear();
                self.current = rest.split(' ').nth(1).unwrap_or_default().to_owned();
            }
            "log" => self.log.push(rest.to_owned()),
            "counter" => self.counters.extend(counter(rest)),
            "measured" => self.measured(),
            _ => {}
        }
    }

    /// A complaint about rounds without figures.
    fn missing(&self, planned: u32) -> Option<Complaint> {
        let lines: Vec<String> = self
            .subjects
            .iter()
            .filter(|(_, rounds)| rounds.len() != planned as usize)
            .map(|(subject, rounds)| {
                let (name, told) = (subject.name(), rounds.len());
                format!("figures of {told} rounds on {name}, not of {planned}")
            })
            .collect();
        (!lines.is_empty()).then_some(Complaint {
            kind: ComplaintKind::Task,
            lines,
        })
    }

    /// A complaint about rounds with broken mutual exclusion or an unsuccessful end.
    fn bad(&self) -> Option<Complaint> {
        let mut lines = Vec::new();
        for (subject, rounds) in &self.subjects {
            for (round, TortureRound { figures, .. }) in (1..).zip(rounds) {
                if !figures.is_good() {
                    let (name, fail) = (subject.name(), figures.fail);
                    let end = figures.end.as_deref().unwrap_or("none");
                    lines.push(format!("round {round} of {name}: fail {fail}, end {end}"));
                }
            }
        }
        (!lines.is_empty()).then_some(Complaint {
            kind: ComplaintKind::Violation,
            lines,
        })
    }

    fn measured(&mut self) {
        let Some(figures) = TortureFigures::read(self.log.iter().map(String::as_str)) else {
            return;
        };
        let round = TortureRound {
            fairness: fairness_bound(&figures, self.writers),
            figures,
            counters: std::mem::take(&mut self.counters),
        };
        let current = self.subjects.iter_mut();
        for (_, rounds) in current.filter(|(subject, _)| subject.name() == self.current) {
            rounds.push(round.clone());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plan(subjects: &[TortureSubject]) -> TorturePlan {
        TorturePlan {
            subjects: subjects.into(),
            kind: "spin_lock".into(),
            writers: 2,
            seconds: 1.0,
            rounds: 2,
            hotplug: true,
            parameters: "long_hold=5".into(),
        }
    }

    const BOTH: [TortureSubject; 2] = [
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
            let plan = TorturePlan {
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

    #[test]
    fn rounds_are_put_together() {
        let mut rounds = RoundsSoFar::new(&plan(&BOTH));
        for said in [
            "up 6.12.0",
            "round 1 cna",
            "counter local_handoffs 0",
            "counter lock_slowpath 7",
            "counter rwsem_sleep_reader 0",
            "log [    7.9] Writes:  Total: 10  Max/Min: 6/4   Fail: 0 ",
            "log spin_lock-torture:--- End of test: SUCCESS: a=1",
            "measured",
            "round 1 stock",
            "measured",
            "round 2 cna",
            "log [   17.9] Writes:  Total: 10  Max/Min: 6/4   Fail: 0 ",
            "measured",
        ] {
            let (word, rest) = said.split_once(' ').unwrap_or((said, ""));
            rounds.note(word, rest);
        }
        let (stock, cna) = (&rounds.subjects[0].1, &rounds.subjects[1].1);
        assert!(stock.is_empty(), "the module reported nothing");
        let missing = rounds.missing(2).unwrap();
        assert_eq!(missing.lines, ["figures of 0 rounds on stock, not of 2"]);
        let bad = rounds.bad().unwrap();
        assert_eq!(bad.lines, ["round 2 of cna: fail 0, end none"]);
        assert_eq!(cna[0].figures.operations, 10);
        assert_eq!(cna[0].fairness, Some(0.6));
        let counters: Vec<_> = cna[0]
            .counters
            .iter()
            .map(|(n, c)| (n.as_str(), *c))
            .collect();
        assert_eq!(counters, [("local_handoffs", 0), ("lock_slowpath", 7)]);
    }
}
