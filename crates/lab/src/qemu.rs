//! Runs an emulated machine from power on to power off.

use std::fs::File;
use std::io;
use std::process::Stdio;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use lockworks_programs::children::{self, Ending, Running};

use crate::complaint::{Complaint, ComplaintKind};
use crate::emulation::Emulation;
use crate::error::{Attempt, Error, Result};
use crate::machine::{Input, Machine, emulator};
use crate::serial::{copy_console, copy_keys, hear_new};
use crate::terminal::Raw;
use crate::variant::Variant;

/// The time limits for the next message of a guest.
#[derive(Clone, Copy, Debug)]
pub struct WaitLimits {
    /// The limit for the first message.
    pub boot: Duration,
    /// The limit for every other message.
    pub step: Duration,
}

impl WaitLimits {
    /// The limits for a kernel on a number of CPUs. Scripts that take longer report that they are
    /// alive.
    pub fn new(variant: Variant, emulation: Emulation, cpus: u32) -> Self {
        let debug = if variant == Variant::Debug { 3 } else { 1 };
        let counted = if emulation == Emulation::Counted {
            3
        } else {
            1
        };
        let time = Duration::from_secs(240 + 4 * u64::from(cpus)) * debug * counted;
        Self {
            boot: time,
            step: time,
        }
    }
}

/// The end of a machine's run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum End {
    /// The machine switched itself off or reset itself.
    Off,
    /// The user ended it.
    Left,
    /// The guest was silent for this time.
    Silent(Duration),
}

/// What a complaint says that may be a fault of QEMU.
pub(crate) const OWN_FAULT: &str = "with --emulation multi QEMU itself may end a kernel by int3, whatever its locks; \
                                    --emulation single does not";

/// Whether a fault in the guest may be one of QEMU, which says nothing of the lock.
///
/// While Linux patches an instruction, its first byte is a breakpoint (`int3`). QEMU may keep the translation of
/// that byte, if one thread translates it while another one writes it.
pub(crate) fn may_be_own_fault(emulation: Emulation, complaint: &Complaint) -> bool {
    emulation == Emulation::Multi
        && complaint.kind == ComplaintKind::Oops
        && complaint
            .lines
            .first()
            .is_some_and(|line| line.contains("int3: "))
}

/// The time between two checks for messages and the end.
const INTERVAL: Duration = Duration::from_millis(50);

impl Machine<'_> {
    /// Runs the machine. Calls `hear` with each line of the second serial line.
    pub fn run(&self, limits: WaitLimits, hear: &mut dyn FnMut(&str)) -> Result<End> {
        let mut channel = File::create_new(self.channel)
            .and_then(|_| File::open(self.channel))
            .attempt_on("make", self.channel)?;
        let console = File::create(self.console).attempt_on("write", self.console)?;
        let errors = File::create(self.errors).attempt_on("write", self.errors)?;
        let emulator = emulator(self.arch);
        let mut command = children::command(emulator, Ending::Killed);
        command
            .args(self.arguments())
            .stdin(match self.input {
                Input::Nothing => Stdio::null(),
                Input::Ours => Stdio::piped(),
            })
            .stdout(Stdio::piped())
            .stderr(errors);
        let mut running =
            Running::start(&mut command, Ending::Killed).attempt(|| format!("start {emulator}"))?;
        if let Some(monitor) = self.monitor {
            monitor.close();
        }

        let output = running.streams().stdout.take().expect("it is a pipe");
        let echo = self.input == Input::Ours;
        let copier = thread::spawn(move || copy_console(output, console, echo));
        let leave = Arc::new(AtomicBool::new(false));
        let raw = (self.input == Input::Ours).then(Raw::begin).flatten();
        let mut input = running.streams().stdin.take();
        let mut read_keys = || {
            if let Some(input) = input.take() {
                let leave = Arc::clone(&leave);
                thread::spawn(move || copy_keys(io::stdin(), input, &leave));
            }
        };
        if raw.is_some() {
            read_keys();
        }

        let mut last = Instant::now();
        let mut allowed = limits.boot;
        let mut line = Vec::new();
        let end = loop {
            let status = running.try_wait().attempt(|| "wait for QEMU".to_owned())?;
            // The status is read first, so that no last message is missed.
            if hear_new(&mut channel, &mut line, hear).attempt_on("read", self.channel)? {
                last = Instant::now();
                allowed = limits.step;
                // A guest that is not up would lose input that does not come from a terminal.
                read_keys();
            }
            match status {
                Some(status) if !status.success() => return Err(self.failed()),
                Some(_) => break End::Off,
                None if leave.load(Ordering::Relaxed) => break End::Left,
                None if last.elapsed() > allowed => break End::Silent(allowed),
                None => thread::sleep(INTERVAL),
            }
        };
        drop(running);
        copier
            .join()
            .expect("it does not panic")
            .attempt_on("write", self.console)?;
        if !line.is_empty() {
            hear(&String::from_utf8_lossy(&line));
        }
        Ok(end)
    }

    fn failed(&self) -> Error {
        let text = std::fs::read_to_string(self.errors).unwrap_or_default();
        let lines: Vec<&str> = text.lines().collect();
        Error::Failed {
            what: "QEMU".to_owned(),
            lines: lines[lines.len().saturating_sub(5)..]
                .iter()
                .map(|line| (*line).to_owned())
                .collect(),
            log: self.errors.to_owned(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_int3_with_emulation_multi_is_a_fault_of_qemu() {
        let complaint = |kind, lines: &[&str]| Complaint {
            kind,
            lines: lines.iter().map(|line| (*line).to_owned()).collect(),
        };
        let int3 = complaint(ComplaintKind::Oops, &["[ 1.7] Oops: int3: 0000 [#1] SMP"]);
        assert!(may_be_own_fault(Emulation::Multi, &int3));
        assert!(!may_be_own_fault(Emulation::Single, &int3));
        for other in [
            complaint(
                ComplaintKind::Oops,
                &["[ 1.7] Oops: 0000 [#1] SMP", "[ 1.7]  exc_int3+0x1"],
            ),
            complaint(ComplaintKind::Warning, &["[ 1.7] WARNING: int3: "]),
        ] {
            assert!(!may_be_own_fault(Emulation::Multi, &other));
        }
    }
}
