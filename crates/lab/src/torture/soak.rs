//! A soak: rounds of locktorture on several locks for a long time, with disturbances.

use std::path::PathBuf;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use serde::Serialize;

use super::module::{holds, module};
use super::plan::type_of;
use super::{LocktorturePlan, TortureSubject};
use crate::arch::Arch;
use crate::cache::{Cache, Progress};
use crate::complaint::{Complaint, ComplaintKind};
use crate::console;
use crate::error::{Error, Result};
use crate::guest::{Guest, GuestVerdict};
use crate::lock::Lock;
use crate::locktorture::TortureFigures;
use crate::message::GuestMessage;
use crate::monitor::{Monitor, MonitorSocket};
use crate::task::Task;
use crate::topology::ADDED_MEMORY;

/// A plan of a soak.
#[derive(Clone, Debug)]
pub struct SoakPlan {
    /// The locks, and the length and the parameters of each round. The number of rounds does not count.
    pub torture: LocktorturePlan,
    /// The module's types of spinlocks that did not opt in to HQ. Locks are tortured on those that the
    /// module has.
    pub kinds: Vec<String>,
    /// The length of the soak in seconds of the guest's time.
    pub seconds: u32,
    /// The seed of all random choices.
    pub seed: u32,
}

/// The part of a soak that is done so far.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Soaked {
    /// The release of the guest's kernel.
    pub release: String,
    /// The time that was covered, in seconds of the guest's time.
    pub seconds: f64,
    /// The locks and types in the order of the plan.
    pub rows: Vec<SoakRow>,
    /// The disturbances.
    pub disturbances: Disturbances,
    /// Everything that is wrong.
    pub complaints: Vec<Complaint>,
    /// The file with the guest's console.
    pub console: PathBuf,
    #[serde(skip)]
    round: RoundSoFar,
}

/// The rounds of a lock of one type.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct SoakRow {
    /// The name of the lock.
    pub lock: &'static str,
    /// The module's `torture_type`.
    #[serde(rename = "type")]
    pub kind: String,
    /// The number of complete rounds.
    pub rounds: u32,
    /// Acquisitions in all rounds.
    pub operations: u64,
    /// The number of times that a writer was not alone.
    pub fail: u64,
}

/// How often each kind of disturbance was completed.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Disturbances {
    /// CPUs that were switched off.
    pub cpus_switched_off: u64,
    /// CPUs that were suspended while the guest's time went on.
    pub cpus_suspended: u64,
    /// Stops of the whole machine, with its clock.
    pub machine_stops: u64,
    /// Loads and removals of the locktorture module.
    pub locktorture_loads: u64,
    /// Loads and removals of the conformance module, which tests a lock each time.
    pub conformance_loads: u64,
    /// Blocks of memory that were added to a node.
    pub memory_added: u64,
    /// Blocks of memory that were removed.
    pub memory_removed: u64,
}

/// The messages about the current round.
#[derive(Clone, Debug, Default)]
struct RoundSoFar {
    lock: String,
    kind: String,
    log: Vec<String>,
    begin: Option<f64>,
}

impl SoakPlan {
    /// The locks and types that the module of a kernel has, without rounds.
    fn rows(&self, module: &[u8], release: &str) -> Result<Vec<SoakRow>> {
        let mut rows = Vec::new();
        for kind in &self.kinds {
            for subject in &self.torture.subjects {
                let row = SoakRow {
                    lock: subject.name(),
                    kind: type_of(*subject, kind),
                    rounds: 0,
                    operations: 0,
                    fail: 0,
                };
                if !rows.contains(&row) && holds(module, &format!("\0{}\0", row.kind)) {
                    rows.push(row);
                }
            }
        }
        for subject in &self.torture.subjects {
            let name = subject.name();
            if !rows.iter().any(|row| row.lock == name) {
                return Err(Error::Refused(format!(
                    "locktorture of Linux {release} has no type of {name}; choose another --type"
                )));
            }
        }
        Ok(rows)
    }

    /// The disturbances of a guest.
    fn kinds_of_disturbances(&self, arch: Arch) -> Vec<&'static str> {
        let mut kinds = vec!["cpus", "machine"];
        kinds.extend((!self.tested().is_empty()).then_some("modules"));
        kinds.extend(arch.adds_memory().then_some("memory"));
        kinds
    }

    /// The locks that the conformance module knows. It has no copy of the kernel's own.
    fn tested(&self) -> Vec<&'static str> {
        let known = |subject: &TortureSubject| match subject {
            TortureSubject::Lock(Lock::PvMutex) => Some("mutex"),
            TortureSubject::Lock(
                lock @ (Lock::Qspinlock
                | Lock::Cna
                | Lock::Hq
                | Lock::Mutex
                | Lock::Unfair
                | Lock::Pv),
            ) => Some(lock.name()),
            _ => None,
        };
        self.torture.subjects.iter().filter_map(known).collect()
    }

    fn task(
        &self,
        rows: &[SoakRow],
        module: &[u8],
        guest: &Guest,
        monitor: MonitorSocket,
    ) -> Result<Task> {
        let runs: Vec<String> = rows
            .iter()
            .map(|row| format!("{}:{}", row.lock, row.kind))
            .collect();
        let switching = if self.torture.subjects.len() > 1 {
            "yes"
        } else {
            ""
        };
        let switching_cpus = if guest.topology.cpus() > 1 {
            "onoff_interval=1"
        } else {
            ""
        };
        let built = guest.built;
        Ok(Task {
            script: "soak",
            plan: vec![
                ("RUNS", runs.join(" ")),
                ("SWITCHING", switching.to_owned()),
                ("SOAK", self.seconds.to_string()),
                ("LENGTH", self.torture.seconds.to_string()),
                (
                    "STEADY",
                    self.torture.parameters_for(module, &built.release)?,
                ),
                ("ONOFF", switching_cpus.to_owned()),
                ("KINDS", self.kinds_of_disturbances(built.arch).join(" ")),
                ("TESTED", self.tested().join(" ")),
                ("SEED", self.seed.to_string()),
            ],
            monitor: Some(monitor),
            ..Task::default()
        })
    }
}

/// Boots a guest and soaks its locks. `soaked` has what was covered, at any time.
pub fn soak(
    plan: &SoakPlan,
    guest: &Guest,
    cache: &Cache,
    progress: Progress,
    soaked: &Mutex<Soaked>,
) -> Result<()> {
    let locked = || -> MutexGuard<Soaked> { soaked.lock().unwrap_or_else(PoisonError::into_inner) };
    let module = module(guest.built)?;
    let rows = plan.rows(&module, &guest.built.release)?;
    let (mut monitor, socket) = Monitor::new()?;
    let task = plan.task(&rows, &module, guest, socket)?;
    let (directory, _used) = cache.new_run()?;
    let console = match guest.console {
        Some(path) => path.to_owned(),
        None => directory.join("console"),
    };
    *locked() = Soaked {
        rows,
        console: console.clone(),
        ..Soaked::default()
    };
    let guest = Guest {
        console: Some(&console),
        ..*guest
    };
    progress("booting");
    let judged = guest.run(&task, cache, &mut |said| {
        let GuestMessage::Word(word, rest) = said else {
            return;
        };
        if word == "ask" {
            // The lock is not held, so an interruption finds what was covered.
            let done = disturb(&mut monitor, rest);
            // A guest may switch itself off before the last of its requests is met.
            if !monitor.has_ended() {
                locked().disturbed(done);
            }
        } else {
            locked().note(word, rest);
        }
        if word == "round" {
            progress(&locked().progress(plan.seconds));
        }
    })?;
    judged.refusal()?;
    locked().judge(&judged);
    Ok(())
}

/// A disturbance that the host did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Disturbance {
    Suspended,
    Stopped,
    /// The guest reports itself what became of it.
    Memory,
}

/// Does what the guest asks for: `suspend CPU MS`, `stop MS`, `plug NUMBER NODE`, `unplug NUMBER` or
/// `unplugged NUMBER`.
fn disturb(monitor: &mut Monitor, asked: &str) -> Result<Disturbance> {
    let mut words = asked.split(' ');
    let what = words.next().unwrap_or_default();
    let numbers: Vec<u32> = words.filter_map(|word| word.parse().ok()).collect();
    let time = |ms: u32| Duration::from_millis(ms.into());
    match (what, &numbers[..]) {
        ("suspend", [cpu, ms]) => {
            monitor.suspend(*cpu as usize, time(*ms))?;
            return Ok(Disturbance::Suspended);
        }
        ("stop", [ms]) => {
            monitor.stop(time(*ms))?;
            return Ok(Disturbance::Stopped);
        }
        ("plug", [number, node]) => monitor.add_memory(*number, *node, ADDED_MEMORY)?,
        ("unplug", [number]) => monitor.remove_memory(*number)?,
        ("unplugged", [number]) => monitor.free_memory(*number)?,
        _ => return Err(Error::Refused(format!("the guest asks for {asked:?}"))),
    }
    Ok(Disturbance::Memory)
}

impl Soaked {
    /// Takes a message of the guest.
    fn note(&mut self, word: &str, rest: &str) {
        match word {
            "up" => self.release = rest.to_owned(),
            "round" => {
                let mut words = rest.split(' ').skip(1).map(str::to_owned);
                let mut next = || words.next().unwrap_or_default();
                self.round = RoundSoFar {
                    lock: next(),
                    kind: next(),
                    log: Vec::new(),
                    begin: self.round.begin,
                };
            }
            "lasted" => self.lasted(rest),
            "log" => self.round.log.push(rest.to_owned()),
            "measured" => self.measured(),
            "failed" => self.complain(ComplaintKind::Task, rest.to_owned()),
            "did" => match rest {
                "modules" => self.disturbances.conformance_loads += 1,
                "add-memory" => self.disturbances.memory_added += 1,
                "remove-memory" => self.disturbances.memory_removed += 1,
                _ => {}
            },
            _ => {}
        }
    }

    fn lasted(&mut self, times: &str) {
        let mut times = times.split(' ').map(str::parse);
        if let (Some(Ok(begin)), Some(Ok(end))) = (times.next(), times.next()) {
            let covered: f64 = end - *self.round.begin.get_or_insert(begin);
            // The guest tells its time in hundredths of seconds.
            self.seconds = (100.0 * covered).round() / 100.0;
        }
    }

    fn measured(&mut self) {
        let RoundSoFar { lock, kind, .. } = &self.round;
        let log = self.round.log.iter().map(String::as_str);
        let Some(figures) = TortureFigures::read(log) else {
            let what = format!("no figures of a round of {lock} ({kind})");
            return self.complain(ComplaintKind::Task, what);
        };
        self.disturbances.locktorture_loads += 1;
        let mut rows = self.rows.iter_mut();
        if let Some(row) = rows.find(|row| row.lock == lock && row.kind == *kind) {
            row.rounds += 1;
            row.operations += figures.operations;
            row.fail += figures.fail;
        }
        if !figures.is_good() {
            let end = figures.end.as_deref().unwrap_or("none");
            let what = format!(
                "a round of {lock} ({kind}): fail {}, end {end}",
                figures.fail
            );
            self.complain(ComplaintKind::Violation, what);
        }
    }

    fn disturbed(&mut self, done: Result<Disturbance>) {
        match done {
            Ok(Disturbance::Suspended) => self.disturbances.cpus_suspended += 1,
            Ok(Disturbance::Stopped) => self.disturbances.machine_stops += 1,
            Ok(Disturbance::Memory) => {}
            Err(error) => self.complain(ComplaintKind::Task, error.to_string()),
        }
    }

    fn complain(&mut self, kind: ComplaintKind, line: String) {
        self.complaints.push(Complaint {
            kind,
            lines: vec![line],
        });
    }

    /// A line that says how far the soak is.
    fn progress(&self, planned: u32) -> String {
        let rounds: u32 = self.rows.iter().map(|row| row.rounds).sum();
        format!(
            "soaking: {:.0} of {planned} s, round {} on {}, {}",
            self.seconds,
            rounds + 1,
            self.round.lock,
            self.round.kind,
        )
    }

    fn judge(&mut self, judged: &GuestVerdict) {
        self.disturbances.cpus_switched_off = judged.offlined;
        self.complaints.extend(judged.complaints.iter().cloned());
        if self.rows.iter().all(|row| row.rounds == 0) && self.complaints.is_empty() {
            self.complain(ComplaintKind::Task, "no round was completed".to_owned());
        }
    }

    /// Adds what the console says, for a soak that is interrupted.
    pub fn read_console(&mut self) {
        let bytes = std::fs::read(&self.console).unwrap_or_default();
        let text = String::from_utf8_lossy(&bytes).replace('\r', "");
        self.disturbances.cpus_switched_off = console::offlined(&text);
        self.complaints.extend(console::complaints(&text));
    }
}

#[cfg(test)]
mod tests {
    use super::super::plan::tests::{BOTH, plan};
    use super::*;

    fn soak_plan(subjects: &[TortureSubject]) -> SoakPlan {
        SoakPlan {
            torture: plan(subjects),
            kinds: ["spin_lock", "raw_spin_lock"].map(str::to_owned).into(),
            seconds: 60,
            seed: 1,
        }
    }

    const MODULE: &[u8] = b"\0spin_lock\0raw_spin_lock\0spin_lock_hq\0lock_busted\0";

    #[test]
    fn locks_have_the_types_of_the_module() {
        let rows = |subjects: &[TortureSubject], module| {
            let rows = soak_plan(subjects).rows(module, "6.1.0")?;
            Ok(rows
                .iter()
                .map(|row| format!("{}:{}", row.lock, row.kind))
                .collect())
        };
        let rows =
            |subjects: &[TortureSubject], module| -> Result<Vec<String>> { rows(subjects, module) };
        let hq = TortureSubject::Lock(Lock::Hq);
        assert_eq!(
            rows(&[BOTH[0], hq], MODULE).unwrap(),
            ["stock:spin_lock", "hq:spin_lock_hq", "stock:raw_spin_lock"]
        );
        assert_eq!(
            rows(&[TortureSubject::Busted], MODULE).unwrap(),
            ["busted:lock_busted"]
        );
        let refused = rows(&[BOTH[0], hq], b"\0spin_lock\0").unwrap_err();
        assert_eq!(
            refused.to_string(),
            "locktorture of Linux 6.1.0 has no type of hq; choose another --type"
        );
    }

    #[test]
    fn only_what_can_be_done_is_asked_for() {
        let kinds = |subject, arch| soak_plan(&[subject]).kinds_of_disturbances(arch);
        let [stock, cna] = BOTH;
        assert_eq!(
            kinds(cna, Arch::X86_64),
            ["cpus", "machine", "modules", "memory"]
        );
        assert_eq!(kinds(cna, Arch::Arm64), ["cpus", "machine", "modules"]);
        assert_eq!(kinds(stock, Arch::X86_64), ["cpus", "machine", "memory"]);
        assert_eq!(
            kinds(TortureSubject::Busted, Arch::Arm64),
            ["cpus", "machine"]
        );
    }

    fn soaked(said: &[&str]) -> Soaked {
        let mut soaked = Soaked {
            rows: soak_plan(&BOTH).rows(MODULE, "").unwrap(),
            ..Soaked::default()
        };
        for said in said {
            let (word, rest) = said.split_once(' ').unwrap_or((said, ""));
            soaked.note(word, rest);
        }
        soaked
    }

    #[test]
    fn rounds_and_disturbances_are_counted() {
        let soaked = soaked(&[
            "up 7.2.0",
            "round 1 stock spin_lock",
            "lasted 2.5 7.5",
            "log [    7.9] Writes:  Total: 10  Max/Min: 6/4   Fail: 0 ",
            "log spin_lock-torture:--- End of test: SUCCESS: a=1",
            "did modules",
            "measured",
            "round 2 cna spin_lock",
            "did add-memory",
            "lasted 8.0 13.0",
            "log [   17.9] Writes:  Total: 10  Max/Min: 6/4   Fail: 2 !!!",
            "log spin_lock-torture:--- End of test: FAILURE: a=1",
            "measured",
            "round 3 stock raw_spin_lock",
            "measured",
            "failed the kernel did not give up memory",
        ]);
        assert_eq!((&soaked.release[..], soaked.seconds), ("7.2.0", 10.5));
        let rows: Vec<_> = soaked
            .rows
            .iter()
            .map(|r| (r.rounds, r.operations, r.fail))
            .collect();
        assert_eq!(rows, [(1, 10, 0), (1, 10, 2), (0, 0, 0), (0, 0, 0)]);
        let lines: Vec<_> = soaked.complaints.iter().map(|c| &c.lines[0][..]).collect();
        assert_eq!(
            lines,
            [
                "a round of cna (spin_lock): fail 2, end FAILURE",
                "no figures of a round of stock (raw_spin_lock)",
                "the kernel did not give up memory",
            ]
        );
        let Disturbances {
            locktorture_loads,
            conformance_loads,
            memory_added,
            memory_removed,
            ..
        } = soaked.disturbances;
        let counts = [
            locktorture_loads,
            conformance_loads,
            memory_added,
            memory_removed,
        ];
        assert_eq!(counts, [2, 1, 1, 0]);
    }

    #[test]
    fn a_soak_without_a_round_fails() {
        let judged = GuestVerdict {
            complaints: Vec::new(),
            is_fault_before_task: false,
            refused: None,
            offlined: 3,
            console: PathBuf::new(),
        };
        let mut without = soaked(&["up 7.2.0"]);
        without.judge(&judged);
        assert_eq!(without.complaints[0].lines, ["no round was completed"]);
        assert_eq!(without.disturbances.cpus_switched_off, 3);
    }

    #[test]
    fn requests_that_make_no_sense_are_refused() {
        let (mut monitor, _socket) = Monitor::new().unwrap();
        for asked in ["", "stop", "stop soon", "suspend 1", "plug 1", "explode 1"] {
            assert!(disturb(&mut monitor, asked).is_err(), "{asked}");
        }
    }
}
