//! Rounds of the kernel's locktorture on one or several locks, in one guest.

mod module;
mod plan;
mod rounds;
mod soak;

use crate::cache::{Cache, Progress};
use crate::complaint::{Complaint, ComplaintKind};
use crate::error::Result;
use crate::guest::{Guest, GuestVerdict};
use crate::lock::Lock;
use crate::message::GuestMessage;

pub(crate) use module::steady_parameters;
pub use plan::LocktorturePlan;
use rounds::RoundsSoFar;
pub use rounds::TortureRound;
pub(crate) use rounds::counter;
pub use soak::{SoakPlan, Soaked, soak};

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

/// Boots a guest and runs the rounds of a plan.
pub fn torture(
    plan: &LocktorturePlan,
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
    judged.refusal()?;
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
