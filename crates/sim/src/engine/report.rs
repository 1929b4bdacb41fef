//! The report of a deadlock: what each CPU does, in words.

use super::Engine;
use super::cpu::State;
use super::op::Kind;

/// A named piece of simulated memory, for reports.
pub(super) struct Label {
    pub(super) name: String,
    pub(super) start: usize,
    pub(super) end: usize,
}

impl Engine {
    fn describe_address(&self, address: usize) -> String {
        self.labels
            .iter()
            .find(|l| (l.start..l.end).contains(&address))
            .map_or_else(
                || format!("{address:#x}"),
                |l| format!("{}+{}", l.name, address - l.start),
            )
    }

    /// A line of text for each CPU about its activity.
    pub(crate) fn describe_cpus(&self) -> Vec<String> {
        self.cpus
            .iter()
            .enumerate()
            .map(|(c, cpu)| {
                let place = self.fabric.model.describe_cpu(c);
                let buffered = cpu.buffer.len();
                match cpu.state {
                    State::Finished => format!("CPU {c} ({place}): finished"),
                    State::Running => format!("CPU {c} ({place}): running"),
                    state => {
                        let value = self.peek(&cpu.op);
                        let what = match cpu.op.kind {
                            Kind::Await => format!(
                                "awaits ({} & {:#x}) {} {:#x}, sees {value:#x}",
                                self.describe_address(cpu.op.address),
                                cpu.op.a,
                                if cpu.op.equal { "==" } else { "!=" },
                                cpu.op.b
                            ),
                            Kind::Fence => "waits for its stores".to_string(),
                            kind => format!(
                                "{kind:?} of {} = {value:#x}",
                                self.describe_address(cpu.op.address)
                            ),
                        };
                        format!("CPU {c} ({place}): {state:?}, {what}, {buffered} buffered")
                    }
                }
            })
            .collect()
    }
}
