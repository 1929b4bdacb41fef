//! How QEMU emulates the CPUs of a guest.

use std::thread;

/// How the guest's CPUs are emulated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Emulation {
    /// A thread for each CPU. If this machine has fewer CPUs, the guest is overcommitted.
    Multi,
    /// One thread for all CPUs, in turns. A CPU that pauses ends its turn.
    Single,
    /// As `Single`, and the guest's clock counts instructions, so that a run has the same results
    /// again, however busy this machine is.
    Counted,
}

impl Emulation {
    /// All kinds of emulation.
    pub const ALL: [Self; 3] = [Self::Multi, Self::Single, Self::Counted];

    /// The name on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Self::Multi => "multi",
            Self::Single => "single",
            Self::Counted => "counted",
        }
    }

    /// A thread for each CPU if this machine has as many CPUs, or else one thread.
    pub fn fitting(cpus: u32) -> Self {
        let ours = thread::available_parallelism().map_or(1, usize::from);
        match ours >= cpus as usize {
            true => Self::Multi,
            false => Self::Single,
        }
    }

    pub(crate) fn arguments(self) -> Vec<String> {
        let threads = match self {
            Self::Multi => "multi",
            Self::Single | Self::Counted => "single",
        };
        let mut arguments = vec!["-accel".to_owned()];
        arguments.push(format!("tcg,thread={threads},tb-size=256"));
        if self == Self::Counted {
            // 2 ns per instruction. Time in which all CPUs halt is skipped.
            arguments.extend(["-icount", "shift=1,sleep=off"].map(str::to_owned));
        }
        arguments
    }
}
