//! The progress of a guest, and the verdict on how it ended.

use std::time::Duration;

use crate::complaint::{Complaint, ComplaintKind};
use crate::console::{self, complaints};
use crate::message::GuestMessage;
use crate::qemu::End;
use crate::variant::Variant;

/// The messages of a guest so far.
#[derive(Debug, Default)]
pub(crate) struct GuestState {
    /// Whether its task has begun.
    pub up: bool,
    ended: bool,
    status: Option<String>,
    /// Why the guest refused its task.
    pub refused: Option<String>,
}

impl GuestState {
    pub fn note(&mut self, said: &GuestMessage) {
        let GuestMessage::Word(word, rest) = said else {
            return;
        };
        match word.as_str() {
            "up" => self.up = true,
            "refused" => self.refused = Some(rest.clone()),
            "status" => self.status = Some(rest.clone()),
            "end" => self.ended = true,
            _ => {}
        }
    }

    pub fn judge(
        &self,
        text: &str,
        end: End,
        variant: Variant,
        may_switch_off: bool,
    ) -> Vec<Complaint> {
        let mut all = complaints(text);
        if variant == Variant::Debug && self.up {
            all.extend(console::missing_self_tests(text));
        }
        let known = !all.is_empty();
        let mut complain = |kind, what: String| {
            let mut lines = vec![what];
            lines.extend(console::last_lines(text));
            all.push(Complaint { kind, lines });
        };
        match end {
            End::Silent(Duration { .. }) if self.ended => {
                complain(
                    ComplaintKind::Hang,
                    "the guest did not switch off".to_owned(),
                );
            }
            End::Silent(time) => complain(
                ComplaintKind::Hang,
                format!(
                    "the guest {} for {} s; its console ends with",
                    if self.up {
                        "was silent"
                    } else {
                        "did not come up"
                    },
                    time.as_secs()
                ),
            ),
            End::Off if !self.ended && !may_switch_off && !known => complain(
                ComplaintKind::Ended,
                "the guest ended before its task did; its console ends with".to_owned(),
            ),
            End::Off | End::Left => {}
        }
        match self.status.as_deref() {
            None | Some("0") => {}
            Some(_) if self.refused.is_some() => {}
            Some(status) => all.push(Complaint {
                kind: ComplaintKind::Task,
                lines: vec![format!("the task ended with status {status}")],
            }),
        }
        all
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn state(words: &[&str]) -> GuestState {
        let mut state = GuestState::default();
        for word in words {
            for said in GuestMessage::read(&format!("@lockworks {word}")) {
                state.note(&said);
            }
        }
        state
    }

    fn kinds(words: &[&str], console: &str, end: End, variant: Variant) -> Vec<ComplaintKind> {
        let all = state(words).judge(console, end, variant, false);
        all.iter().map(|complaint| complaint.kind).collect()
    }

    #[test]
    fn a_guest_must_come_to_its_end() {
        let done = ["up 6.12.0", "status 0", "end"];
        let judge = |words: &[&str], end| kinds(words, "", end, Variant::Native);
        assert_eq!(judge(&done, End::Off), []);
        assert_eq!(
            judge(&["up x", "status 3", "end"], End::Off),
            [ComplaintKind::Task]
        );
        assert_eq!(judge(&["up x"], End::Off), [ComplaintKind::Ended]);
        let silent = End::Silent(Duration::from_secs(60));
        assert_eq!(judge(&[], silent), [ComplaintKind::Hang]);
        assert_eq!(judge(&["up x"], silent), [ComplaintKind::Hang]);
        assert_eq!(judge(&done, silent), [ComplaintKind::Hang]);
    }

    #[test]
    fn the_console_counts_too() {
        let done = ["up x", "status 0", "end"];
        assert_eq!(
            kinds(&done, "[    1.0] WARNING: x\n", End::Off, Variant::Native),
            [ComplaintKind::Warning]
        );
        assert_eq!(
            kinds(&done, "all is well\n", End::Off, Variant::Debug),
            [ComplaintKind::SelfTest]
        );
    }

    #[test]
    fn the_user_may_leave() {
        let judge =
            |end, may_switch_off| state(&["up x"]).judge("", end, Variant::Native, may_switch_off);
        assert_eq!(judge(End::Left, false), []);
        assert_eq!(judge(End::Off, true), []);
        assert_eq!(judge(End::Off, false)[0].kind, ComplaintKind::Ended);
    }
}
