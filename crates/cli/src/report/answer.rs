//! The answer: which lock to take, and how sure that is.

use std::ffi::OsString;
use std::path::Path;

use super::GLIBC;
use super::loads::Loads;
use crate::validate::TrustReport;
use lockworks_preload::compare::ComparisonReport;
use lockworks_sweep::regret::RegretReport;
use lockworks_torture::Host;
use lockworks_ui::plot::page::Heading;

fn heading(title: String, what: String, how_sure: String, lock: &str) -> Heading {
    Heading {
        title,
        what,
        how_sure,
        lock: lock.to_owned(),
        ..Heading::default()
    }
}

/// For another machine: what `lockworks regret` recommends.
pub fn for_machine(machine: &str, predicted: Option<&RegretReport>) -> Heading {
    let contested = predicted.map_or_else(String::new, |report| report.contested.join(" "));
    let how_sure = format!(
        "This is predicted: nothing was measured on {machine}. `lockworks reproduce all` shows how far \
         predictions of published tables are off, and `lockworks machines validate` those for the machine it \
         runs on. {contested}"
    );
    let answer = predicted.map_or_else(String::new, |report| report.answer.clone());
    let taken = predicted.and_then(RegretReport::taken).unwrap_or("mutex");
    heading(format!("Which lock on {machine}?"), answer, how_sure, taken)
}

/// For a program: what `lockworks compare` found.
pub fn for_program(program: &[OsString], compared: Option<&ComparisonReport>) -> Heading {
    let name = Path::new(&program[0]).file_name().unwrap_or(&program[0]);
    let title = format!("Which lock for {}?", name.to_string_lossy());
    let Some(report) = compared else {
        let failed = "The comparison failed, so no lock can be named.".to_owned();
        return heading(title, failed, String::new(), "");
    };
    let verdict = match (report.best, report.not_served()) {
        (_, Some(why)) => format!("No lock can be recommended. {why}"),
        (Some(_), _) => report.verdict.clone(),
        (None, _) => format!("Keep glibc's mutex. {}", report.verdict),
    };
    let how_sure = format!(
        "Each lock ran {} times, in turns; a difference counts if its 95 % interval excludes 1.",
        report.rounds_made
    );
    heading(title, verdict, how_sure, report.best.unwrap_or("glibc"))
}

/// For this machine: the lock that is nearest to the best one over all loads and numbers of threads.
pub fn for_this_machine(host: &Host, loads: &Loads, validated: Option<&TrustReport>) -> Heading {
    let title = format!(
        "Which lock on {} CPUs ({})?",
        host.cpus,
        host.model.as_deref().unwrap_or("this machine")
    );
    let Some(taken) = loads.taken() else {
        let none = "Nothing could be measured.".to_owned();
        return heading(title, none, "Not at all.".to_owned(), "mutex");
    };
    let (share, place) = &taken.worst;
    let judged = loads.judged();
    let glibc = judged.iter().find(|judged| judged.lock == GLIBC);
    let glibc = glibc
        .filter(|_| taken.lock != GLIBC)
        .map_or_else(String::new, |glibc| {
            format!(
                " That of pthread_mutex is {:.0} %, and {:.0} % at worst.",
                percent(glibc.mean),
                percent(glibc.worst.0)
            )
        });
    let disturbed = match loads.were_disturbed() {
        true => {
            " Other work ran meanwhile, so no figure here speaks against the mutex: measure again on an idle machine."
        }
        false => "",
    };
    let what = format!(
        "If you take one lock, take {}.{disturbed} Its throughput is {:.0} % of the best lock's for programs, in \
         geometric mean over all loads and numbers of threads, and {:.0} % at worst ({place}).{glibc}",
        taken.lock,
        percent(taken.mean),
        percent(*share),
    );
    let [low, high] = [f64::min, f64::max].map(|of| taken.by_round.iter().copied().reduce(of));
    let how_sure = format!(
        "Measured under {} loads of two counters under one lock; in single rounds it was {:.0} to {:.0} %. Another \
         lock is named instead of the mutex only if it is better by more than 5 % in every round. What your program \
         does with its locks is more than these: `lockworks report -- PROGRAM`. {}",
        loads.measured.len(),
        percent(low.unwrap_or(taken.mean)),
        percent(high.unwrap_or(taken.mean)),
        validated.map_or("", |report| &report.here),
    );
    heading(title, what, how_sure, taken.lock)
}

fn percent(share: f64) -> f64 {
    100.0 * share
}
