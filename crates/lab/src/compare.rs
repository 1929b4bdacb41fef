//! Runs workloads with each lock that guests can have, each lock in guests of its own, in turns.

use std::collections::BTreeMap;
use std::path::PathBuf;

use serde::Serialize;

use crate::build::Built;
use crate::cache::{Cache, Progress};
use crate::complaint::{Complaint, ComplaintKind};
use crate::error::Result;
use crate::guest::Guest;
use crate::lock::Lock;
use crate::locktorture::TortureFigures;
use crate::message::GuestMessage;
use crate::task::Task;
use crate::torture;

/// A workload of a guest.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Workload {
    /// The kernel's locktorture module, with a thread for each CPU, which all take one spinlock.
    Locktorture,
    /// A program whose threads open and close files.
    Open,
    /// A program whose threads make and remove files.
    Create,
    /// A program whose threads lock and unlock one file.
    Lock2,
    /// A web server with its clients.
    Nginx,
    /// A memcached server with its clients.
    Memcached,
    /// Groups of processes that send messages to each other.
    Hackbench,
    /// A parallel compile, repeatedly.
    Compile,
}

impl Workload {
    /// All workloads.
    pub const ALL: [Self; 8] = [
        Self::Locktorture,
        Self::Open,
        Self::Create,
        Self::Lock2,
        Self::Nginx,
        Self::Memcached,
        Self::Hackbench,
        Self::Compile,
    ];

    /// The name on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Self::Locktorture => "locktorture",
            Self::Open => "open",
            Self::Create => "create",
            Self::Lock2 => "lock2",
            Self::Nginx => "nginx",
            Self::Memcached => "memcached",
            Self::Hackbench => "hackbench",
            Self::Compile => "compile",
        }
    }

    /// The unit of its rate.
    pub fn unit(self) -> &'static str {
        match self {
            Self::Locktorture => "acquisitions/s",
            Self::Open | Self::Create => "files/s",
            Self::Lock2 => "operations/s",
            Self::Nginx | Self::Memcached => "requests/s",
            Self::Hackbench => "messages/s",
            Self::Compile => "compiles/min",
        }
    }

    /// Whether it needs the programs on the disk.
    pub fn is_on_disk(self) -> bool {
        self != Self::Locktorture
    }

    fn find(name: &str) -> Option<Self> {
        Self::ALL
            .into_iter()
            .find(|workload| workload.name() == name)
    }
}

/// A plan of guests.
#[derive(Clone, Debug)]
pub struct ComparisonPlan {
    /// The locks to compare.
    pub modes: Vec<Lock>,
    /// The workloads of each guest.
    pub workloads: Vec<Workload>,
    /// The number of guests of each lock.
    pub rounds: u32,
    /// The length of each workload in seconds.
    pub seconds: u32,
    /// The image of the disk, if a workload needs it.
    pub disk: Option<PathBuf>,
}

/// The results of a guest.
#[derive(Clone, Debug, Serialize)]
pub struct GuestRun {
    /// The round.
    pub round: u32,
    /// The lock of the guest.
    pub mode: &'static str,
    /// The rate of each workload. A workload that did not end is missing.
    pub rates: BTreeMap<&'static str, f64>,
    /// The figures of locktorture.
    pub locktorture: Option<TortureFigures>,
    /// The kernel's lock events, for all workloads together.
    pub counters: BTreeMap<String, u64>,
    /// Everything that is wrong with the guest.
    pub complaints: Vec<Complaint>,
    /// The file with the guest's console.
    pub console: PathBuf,
}

impl GuestRun {
    /// Complaints about more than a lack of speed.
    pub fn failures(&self) -> impl Iterator<Item = &Complaint> {
        self.complaints.iter().filter(|complaint| {
            !matches!(
                complaint.kind,
                ComplaintKind::Lockup | ComplaintKind::RcuStall | ComplaintKind::HungTask
            )
        })
    }
}

impl ComparisonPlan {
    /// The order of the locks in a round. Each lock is first in one round of several.
    fn order(&self, round: u32) -> Vec<Lock> {
        let mut modes = self.modes.clone();
        let first = round as usize % modes.len();
        modes.rotate_left(first);
        modes
    }

    fn task(&self, built: &Built, cpus: u32) -> Result<Task> {
        let parameters = torture::steady_parameters(built, cpus)?;
        let names: Vec<&str> = self.workloads.iter().map(|w| w.name()).collect();
        let on_disk = self.disk.as_ref().map_or("", |_| "yes");
        Ok(Task {
            script: "compare",
            plan: vec![
                ("WORKLOADS", names.join(" ")),
                ("LENGTH", self.seconds.to_string()),
                ("PARAMETERS", parameters),
                ("ON_DISK", on_disk.to_owned()),
            ],
            disk: self.disk.clone(),
            ..Task::default()
        })
    }
}

/// Boots a guest for each lock in each round. `guest` makes a guest, `done` receives its results.
pub fn compare<'a>(
    plan: &ComparisonPlan,
    built: &'a Built,
    guest: &dyn Fn(&'a Built, Lock) -> Guest<'a>,
    cache: &Cache,
    progress: Progress,
    done: &mut dyn FnMut(GuestRun),
) -> Result<()> {
    let all = plan.rounds as usize * plan.modes.len();
    let mut number = 0;
    for round in 0..plan.rounds {
        for mode in plan.order(round) {
            number += 1;
            let guest = guest(built, mode);
            let task = plan.task(built, guest.topology.cpus())?;
            let begin = format!("guest {number} of {all}, {}", mode.name());
            progress(&format!("{begin}: booting"));
            let mut state = WorkloadState::default();
            let judged = guest.run(&task, cache, &mut |said| {
                if let GuestMessage::Word(word, rest) = said {
                    if word == "workload" {
                        progress(&format!("{begin}: {rest}"));
                    }
                    state.note(word, rest);
                }
            })?;
            let mut complaints = judged.complaints;
            complaints.extend(state.complaints(judged.refused));
            done(GuestRun {
                round: round + 1,
                mode: mode.name(),
                rates: state.rates,
                locktorture: state.locktorture,
                counters: state.counters,
                complaints,
                console: judged.console,
            });
        }
    }
    Ok(())
}

/// The messages of a guest so far.
#[derive(Default)]
struct WorkloadState {
    workload: Option<Workload>,
    rates: BTreeMap<&'static str, f64>,
    lasted: Option<f64>,
    log: Vec<String>,
    locktorture: Option<TortureFigures>,
    counters: BTreeMap<String, u64>,
    failed: Vec<String>,
}

impl WorkloadState {
    fn note(&mut self, word: &str, rest: &str) {
        match word {
            "workload" => self.workload = Workload::find(rest),
            "rate" => self.rate(rest.trim().parse().ok()),
            "failed" => self.failed.push(rest.to_owned()),
            "lasted" => {
                let times = rest.split_once(' ');
                let times = times.and_then(|(begin, end)| {
                    Some((begin.parse::<f64>().ok()?, end.parse::<f64>().ok()?))
                });
                self.lasted = times.map(|(begin, end)| end - begin);
            }
            "log" => self.log.push(rest.to_owned()),
            "counter" => self.counters.extend(torture::counter(rest)),
            "measured" => {
                self.locktorture = TortureFigures::read(self.log.iter().map(String::as_str));
                let figures = self.locktorture.as_ref().zip(self.lasted);
                self.rate(figures.map(|(figures, lasted)| figures.operations as f64 / lasted));
            }
            _ => {}
        }
    }

    fn rate(&mut self, rate: Option<f64>) {
        let Some(workload) = self.workload else {
            return;
        };
        match rate {
            Some(rate) => {
                self.rates.insert(workload.name(), rate);
            }
            None => self.failed.push(format!("{}: no figures", workload.name())),
        }
    }

    fn complaints(&self, refused: Option<String>) -> Option<Complaint> {
        let mut lines = self.failed.clone();
        lines.extend(refused);
        if let Some(figures) = &self.locktorture
            && !figures.is_good()
        {
            let end = figures.end.as_deref().unwrap_or("none");
            lines.push(format!("locktorture: fail {}, end {end}", figures.fail));
        }
        (!lines.is_empty()).then_some(Complaint {
            kind: ComplaintKind::Task,
            lines,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_lock_is_first_in_its_turn() {
        let plan = ComparisonPlan {
            modes: vec![Lock::Native, Lock::Byte, Lock::StockPv],
            workloads: vec![Workload::Locktorture],
            rounds: 4,
            seconds: 1,
            disk: None,
        };
        let names = |round| {
            plan.order(round)
                .iter()
                .map(|l| l.name())
                .collect::<Vec<_>>()
        };
        assert_eq!(names(0), ["native", "byte", "stock-pv"]);
        assert_eq!(names(1), ["byte", "stock-pv", "native"]);
        assert_eq!(names(2), ["stock-pv", "native", "byte"]);
        assert_eq!(names(3), names(0));
    }

    fn state(said: &[&str]) -> WorkloadState {
        let mut state = WorkloadState::default();
        for said in said {
            let (word, rest) = said.split_once(' ').unwrap_or((said, ""));
            state.note(word, rest);
        }
        state
    }

    #[test]
    fn rates_are_by_the_time_that_was_taken() {
        let state = state(&[
            "workload locktorture",
            "lasted 10.50 14.50",
            "log [    7.9] Writes:  Total: 100  Max/Min: 60/40   Fail: 0 ",
            "log spin_lock-torture:--- End of test: SUCCESS: a=1",
            "measured",
            "workload open",
            "rate 12.5",
            "workload nginx",
            "failed nginx: no such file",
            "counter halts_at_head 7",
        ]);
        let rates: Vec<_> = state.rates.iter().map(|(n, r)| (*n, *r)).collect();
        assert_eq!(rates, [("locktorture", 25.0), ("open", 12.5)]);
        assert_eq!(state.counters["halts_at_head"], 7);
        let complaint = state.complaints(None).unwrap();
        assert_eq!(complaint.lines, ["nginx: no such file"]);
    }

    #[test]
    fn broken_exclusion_is_no_mere_slowness() {
        let state = state(&[
            "workload locktorture",
            "lasted 1 2",
            "log [    7.9] Writes:  Total: 9  Max/Min: 6/3   Fail: 2 !!!",
            "measured",
        ]);
        let complaint = state.complaints(None).unwrap();
        assert_eq!(complaint.lines, ["locktorture: fail 2, end none"]);
    }
}
