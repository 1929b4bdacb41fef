//! How QEMU emulates the CPUs of a guest.

use std::thread;

/// How the guest's CPUs are emulated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Emulation {
    /// Each by a thread of its own: with fewer CPUs below, the guest is overcommitted.
    Multi,
    /// All by one thread, in turns; who pauses gives its turn away.
    Single,
    /// As `Single`, and the guest's clock counts their instructions: what a run does, it does
    /// again, however busy the machine is.
    Counted,
}

impl Emulation {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Multi, Self::Single, Self::Counted];

    /// As it is called.
    pub fn name(self) -> &'static str {
        match self {
            Self::Multi => "multi",
            Self::Single => "single",
            Self::Counted => "counted",
        }
    }

    /// A thread for each CPU where there are as many CPUs, else a single one.
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
            // 2 ns an instruction; time in which all CPUs sleep is skipped.
            arguments.extend(["-icount", "shift=1,sleep=off"].map(str::to_owned));
        }
        arguments
    }
}
