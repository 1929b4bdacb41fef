//! Workloads on the locks that guests can have, each lock in a guest of its own, in turns.

use std::collections::BTreeMap;
use std::path::PathBuf;

use serde::Serialize;

use super::build::Built;
use super::cache::{Cache, Progress};
use super::complaint::{Complaint, ComplaintKind};
use super::error::Result;
use super::guest::Guest;
use super::lock::Lock;
use super::locktorture::TortureFigures;
use super::message::GuestMessage;
use super::task::Task;
use super::torture;

/// What the guests' CPUs do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Workload {
    /// The kernel's own module, a thread for each CPU at one spinlock.
    Locktorture,
    /// Threads of a program that open and close files.
    Open,
    /// Threads of a program that make and remove files.
    Create,
    /// A web server and its clients.
    Nginx,
    /// A parallel compile, over and over.
    Compile,
}

impl Workload {
    /// All of them.
    pub const ALL: [Self; 5] = [
        Self::Locktorture,
        Self::Open,
        Self::Create,
        Self::Nginx,
        Self::Compile,
    ];

    /// As it is called.
    pub fn name(self) -> &'static str {
        match self {
            Self::Locktorture => "locktorture",
            Self::Open => "open",
            Self::Create => "create",
            Self::Nginx => "nginx",
            Self::Compile => "compile",
        }
    }

    /// What its rate counts.
    pub fn unit(self) -> &'static str {
        match self {
            Self::Locktorture => "acquisitions/s",
            Self::Open | Self::Create => "files/s",
            Self::Nginx => "requests/s",
            Self::Compile => "compiles/min",
        }
    }

    /// Does it take the disk's programs?
    pub fn is_on_disk(self) -> bool {
        self != Self::Locktorture
    }

    fn find(name: &str) -> Option<Self> {
        Self::ALL
            .into_iter()
            .find(|workload| workload.name() == name)
    }
}

/// What to compare.
#[derive(Clone, Debug)]
pub struct ComparisonPlan {
    /// The locks.
    pub modes: Vec<Lock>,
    /// What is done with each of them.
    pub workloads: Vec<Workload>,
    /// Guests of each lock.
    pub rounds: u32,
    /// Length of each workload.
    pub seconds: u32,
    /// The image of the disk, if a workload takes it.
    pub disk: Option<PathBuf>,
}

/// What a guest came to.
#[derive(Clone, Debug, Serialize)]
pub struct GuestRun {
    /// Which round it was of.
    pub round: u32,
    /// Its lock.
    pub mode: &'static str,
    /// How much of each workload was done in a unit of time. One that did not end is missing.
    pub rates: BTreeMap<&'static str, f64>,
    /// What locktorture counted.
    pub locktorture: Option<TortureFigures>,
    /// What the kernel's locks counted, all workloads together.
    pub counters: BTreeMap<String, u64>,
    /// What is wrong with it.
    pub complaints: Vec<Complaint>,
    /// Where the guest's console is kept.
    pub console: PathBuf,
}

impl GuestRun {
    /// Complaints that are no mere lack of speed.
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
    /// Which locks have their guests in a round: each is first in its turn.
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
            command: None,
            disk: self.disk.clone(),
        })
    }
}

/// Boots a guest for each lock in each round. `guest` makes one ready, `done` is told of each.
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
            let mut course = WorkloadCourse::default();
            let judged = guest.run(&task, cache, &mut |said| {
                if let GuestMessage::Word(word, rest) = said {
                    if word == "workload" {
                        progress(&format!("{begin}: {rest}"));
                    }
                    course.note(word, rest);
                }
            })?;
            let mut complaints = judged.complaints;
            complaints.extend(course.complaints(judged.refused));
            done(GuestRun {
                round: round + 1,
                mode: mode.name(),
                rates: course.rates,
                locktorture: course.locktorture,
                counters: course.counters,
                complaints,
                console: judged.console,
            });
        }
    }
    Ok(())
}

/// What a guest has said so far.
#[derive(Default)]
struct WorkloadCourse {
    workload: Option<Workload>,
    rates: BTreeMap<&'static str, f64>,
    lasted: Option<f64>,
    log: Vec<String>,
    locktorture: Option<TortureFigures>,
    counters: BTreeMap<String, u64>,
    failed: Vec<String>,
}

impl WorkloadCourse {
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

    fn course(said: &[&str]) -> WorkloadCourse {
        let mut course = WorkloadCourse::default();
        for said in said {
            let (word, rest) = said.split_once(' ').unwrap_or((said, ""));
            course.note(word, rest);
        }
        course
    }

    #[test]
    fn rates_are_by_the_time_that_was_taken() {
        let course = course(&[
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
        let rates: Vec<_> = course.rates.iter().map(|(n, r)| (*n, *r)).collect();
        assert_eq!(rates, [("locktorture", 25.0), ("open", 12.5)]);
        assert_eq!(course.counters["halts_at_head"], 7);
        let complaint = course.complaints(None).unwrap();
        assert_eq!(complaint.lines, ["nginx: no such file"]);
    }

    #[test]
    fn broken_exclusion_is_no_mere_slowness() {
        let course = course(&[
            "workload locktorture",
            "lasted 1 2",
            "log [    7.9] Writes:  Total: 9  Max/Min: 6/3   Fail: 2 !!!",
            "measured",
        ]);
        let complaint = course.complaints(None).unwrap();
        assert_eq!(complaint.lines, ["locktorture: fail 2, end none"]);
    }
}
