//! A guest: what it is made of, what it is to do, and how it fared.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::build::Built;
use super::busybox;
use super::cache::Cache;
use super::console::{self, Complaint, Kind, complaints};
use super::emulation::Emulation;
use super::error::{Attempt, Result};
use super::initramfs::{self, Entry};
use super::machine::{Input, Machine};
use super::qemu::{End, Patience};
use super::topology::Topology;
use super::variant::Variant;

/// A slow path that the kernel's spinlocks can have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lock {
    /// The kernel's own.
    Stock,
    /// Lockworks' queued spinlock.
    Qspinlock,
    /// Lockworks' CNA.
    Cna,
    /// Lockworks' HQ where spinlocks opted in to it, the kernel's own elsewhere.
    Hq,
    /// The kernel's own, as if it were no guest.
    Native,
    /// The kernel's byte lock.
    Byte,
    /// The kernel's own paravirt lock.
    StockPv,
    /// Lockworks' queued unfair lock.
    Unfair,
    /// Lockworks' paravirt lock as Linux 4.2 had it.
    Pv42,
    /// Lockworks' paravirt lock.
    Pv,
}

impl Lock {
    /// All of them.
    pub const ALL: [Self; 10] = [
        Self::Stock,
        Self::Qspinlock,
        Self::Cna,
        Self::Hq,
        Self::Native,
        Self::Pv42,
        Self::StockPv,
        Self::Pv,
        Self::Byte,
        Self::Unfair,
    ];

    /// Those that a guest can be told to have when it is booted.
    pub const OF_GUESTS: [Self; 6] = [
        Self::Native,
        Self::Pv42,
        Self::StockPv,
        Self::Pv,
        Self::Byte,
        Self::Unfair,
    ];

    /// As it is called.
    pub fn name(self) -> &'static str {
        match self {
            Self::Stock => "stock",
            Self::Qspinlock => "qspinlock",
            Self::Cna => "cna",
            Self::Hq => "hq",
            Self::Native => "native",
            Self::Byte => "byte",
            Self::StockPv => "stock-pv",
            Self::Unfair => "unfair",
            Self::Pv42 => "pv42",
            Self::Pv => "pv",
        }
    }

    /// Does it let CPUs halt? It then takes a kernel whose spinlocks are called through `pv_ops`.
    pub fn is_paravirt(self) -> bool {
        matches!(self, Self::StockPv | Self::Pv42 | Self::Pv)
    }

    /// Is it one that guests can be told to have?
    pub fn is_of_guests(self) -> bool {
        Self::OF_GUESTS.contains(&self)
    }

    /// Can others take its place in a running guest?
    pub fn takes_turns(self) -> bool {
        !self.is_of_guests() || self == Self::Unfair
    }

    fn parameters(self) -> String {
        match self {
            Self::Stock => "numa_spinlock=off qspinlock=stock".to_owned(),
            Self::Qspinlock => "numa_spinlock=off qspinlock=lockworks".to_owned(),
            Self::Cna => "numa_spinlock=cna".to_owned(),
            Self::Hq => "numa_spinlock=hq qspinlock=stock".to_owned(),
            _ => format!("lockworks_guest={} numa_spinlock=off", self.name()),
        }
    }
}

/// CNA's settings.
#[derive(Clone, Copy, Debug, Default)]
pub struct Tuning {
    /// How long it may pass over other nodes, in milliseconds; the kernel's default if none.
    pub threshold: Option<u32>,
    /// Look for waiters to pass over at every hand-off.
    pub no_shuffle_reduction: bool,
}

/// What the guest is to do.
#[derive(Clone, Debug)]
pub struct Task {
    /// The guest's script for it.
    pub(crate) script: &'static str,
    /// What the script is told.
    pub(crate) plan: Vec<(&'static str, String)>,
    /// A script of the user's.
    pub(crate) command: Option<String>,
    /// An image of a disk that the script takes.
    pub(crate) disk: Option<PathBuf>,
}

impl Task {
    /// A shell on the console.
    pub fn shell() -> Self {
        Self {
            script: "shell",
            plan: Vec::new(),
            command: None,
            disk: None,
        }
    }

    /// Commands for the guest's shell.
    pub fn command(script: &str) -> Self {
        Self {
            script: "command",
            plan: Vec::new(),
            command: Some(script.to_owned()),
            disk: None,
        }
    }

    /// A workload of ours, for so many seconds.
    pub fn workload(name: &str, seconds: u32) -> Self {
        Self {
            plan: vec![("LENGTH", seconds.to_string())],
            ..Self::command(&format!("exec sh /lockworks/{name}.sh\n"))
        }
    }

    /// A workload of ours that takes the programs on a disk.
    pub fn workload_on(disk: PathBuf, name: &str, seconds: u32) -> Self {
        Self {
            plan: vec![
                ("LENGTH", seconds.to_string()),
                ("WORKLOAD", name.to_owned()),
            ],
            disk: Some(disk),
            ..Self::command("exec sh /lockworks/disk.sh\n")
        }
    }
}

/// What a guest says to us, beside its console.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Said {
    /// A word of our scripts, and what belongs to it.
    Word(String, String),
    /// A line of the user's command.
    Output(String),
}

impl Said {
    fn read(line: &str) -> Vec<Self> {
        let Some((before, word)) = line.split_once("@lockworks ") else {
            return vec![Self::Output(line.to_owned())];
        };
        let (word, rest) = word.split_once(' ').unwrap_or((word, ""));
        let word = Self::Word(word.to_owned(), rest.to_owned());
        match before {
            // The command's last line may lack an end.
            "" => vec![word],
            before => vec![Self::Output(before.to_owned()), word],
        }
    }
}

/// A guest to be.
#[derive(Debug)]
pub struct Guest<'a> {
    /// The kernel.
    pub built: &'a Built,
    /// CPUs, nodes and memory.
    pub topology: Topology,
    /// How CPUs are emulated.
    pub emulation: Emulation,
    /// Let the guest see that it is one, which makes its kernel use an unfair lock.
    pub hypervisor: bool,
    /// The slow path; the kernel's default if none.
    pub lock: Option<Lock>,
    /// CNA's settings.
    pub tuning: Tuning,
    /// More kernel parameters.
    pub boot: &'a str,
    /// Where to keep the console; in the cache if nowhere else.
    pub console: Option<&'a Path>,
    /// What the console reads.
    pub input: Input,
    /// How long to wait for the guest's next word.
    pub patience: Patience,
}

/// How a guest fared.
#[derive(Clone, Debug)]
pub struct Judged {
    /// All that is wrong.
    pub complaints: Vec<Complaint>,
    /// The guest could not do what was asked, for this reason.
    pub refused: Option<String>,
    /// How often a CPU was switched off.
    pub offlined: u64,
    /// Where the console is kept.
    pub console: PathBuf,
}

impl Guest<'_> {
    /// What the kernel is told.
    pub fn command_line(&self) -> String {
        // Whatever else is asked for: all that the kernel says is heard.
        let mut words = vec![
            self.built.arch.parameters().to_owned(),
            "ignore_loglevel panic=-1 oops=panic mitigations=off".to_owned(),
        ];
        words.extend(self.lock.map(Lock::parameters));
        let threshold = self.tuning.threshold;
        words.extend(threshold.map(|ms| format!("numa_spinlock_threshold={ms}")));
        if self.tuning.no_shuffle_reduction {
            words.push("numa_spinlock_shuffle_reduction=off".to_owned());
        }
        words.extend((!self.boot.is_empty()).then(|| self.boot.to_owned()));
        // The judge tells the kernel's lines from others by their stamps.
        words.push("printk.time=1".to_owned());
        words.join(" ")
    }

    /// Boots it, lets it do its task, judges it.
    pub fn run(&self, task: &Task, cache: &Cache, hear: &mut dyn FnMut(&Said)) -> Result<Judged> {
        let (directory, _used) = cache.new_run()?;
        let console = match self.console {
            Some(path) => std::path::absolute(path).attempt_on("write", path)?,
            None => directory.join("console"),
        };
        // Copies: the build may be brought up to date while the guest runs.
        let (image, kernel) = (self.built.image(), directory.join("kernel"));
        fs::copy(&image, &kernel).attempt_on("copy", &image)?;
        let initramfs = directory.join("initramfs");
        let busybox = busybox::read(self.built.arch, cache)?;
        let archive = initramfs::archive(&busybox, &self.files(task)?)?;
        fs::write(&initramfs, archive).attempt_on("write", &initramfs)?;
        self.built.release_lock()?;

        let machine = Machine {
            topology: self.topology,
            emulation: self.emulation,
            arch: self.built.arch,
            hypervisor: self.hypervisor,
            kernel: &kernel,
            initramfs: &initramfs,
            command_line: &self.command_line(),
            disk: task.disk.as_deref(),
            input: self.input,
            console: &console,
            channel: &directory.join("channel"),
            errors: &directory.join("qemu.log"),
        };
        let mut course = Course::default();
        let end = machine.run(self.patience, &mut |line| {
            for said in Said::read(line) {
                course.note(&said);
                hear(&said);
            }
        });
        for file in [&kernel, &initramfs] {
            fs::remove_file(file).attempt_on("remove", file)?;
        }
        let end = end?;
        let bytes = fs::read(&console).attempt_on("read", &console)?;
        let text = String::from_utf8_lossy(&bytes).replace('\r', "");
        // Who has a shell may switch the guest off by it.
        let may_switch_off = self.input == Input::Ours && text.contains("reboot: Power down");
        Ok(Judged {
            complaints: course.judge(&text, end, self.built.variant, may_switch_off),
            refused: course.refused,
            offlined: console::offlined(&text),
            console,
        })
    }

    fn files(&self, task: &Task) -> Result<Vec<Entry>> {
        let mut files = Vec::new();
        for module in self.built.modules()? {
            let name = module.file_name().unwrap_or_default().to_string_lossy();
            files.push(Entry {
                path: format!("lockworks/modules/{name}"),
                contents: fs::read(&module).attempt_on("read", &module)?,
            });
        }
        let lock = match self.lock {
            Some(lock) => lock.name(),
            None => "",
        };
        let own = [
            ("CHANNEL", self.built.arch.channel()),
            ("TASK", task.script),
            ("LOCK", lock),
        ];
        let plan: String = own
            .map(|(name, value)| (name, value.to_owned()))
            .iter()
            .chain(&task.plan)
            .map(|(name, value)| format!("{name}={}\n", quoted(value)))
            .collect();
        let mut file = |path: &str, contents: &str| {
            files.push(Entry {
                path: path.to_owned(),
                contents: contents.into(),
            });
        };
        file("lockworks/plan", &plan);
        if let Some(command) = &task.command {
            file("lockworks/command", command);
        }
        Ok(files)
    }
}

/// As one word for a shell.
fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\'', r"'\''"))
}

/// How far a guest has come.
#[derive(Debug, Default)]
struct Course {
    up: bool,
    ended: bool,
    status: Option<String>,
    refused: Option<String>,
}

impl Course {
    fn note(&mut self, said: &Said) {
        let Said::Word(word, rest) = said else {
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

    fn judge(
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
                complain(Kind::Hang, "the guest did not switch off".to_owned());
            }
            End::Silent(time) => complain(
                Kind::Hang,
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
                Kind::Ended,
                "the guest ended before its task did; its console ends with".to_owned(),
            ),
            End::Off | End::Left => {}
        }
        match self.status.as_deref() {
            None | Some("0") => {}
            Some(_) if self.refused.is_some() => {}
            Some(status) => all.push(Complaint {
                kind: Kind::Task,
                lines: vec![format!("the task ended with status {status}")],
            }),
        }
        all
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_told_from_output() {
        let word = |word: &str, rest: &str| Said::Word(word.into(), rest.into());
        let output = |line: &str| Said::Output(line.into());
        assert_eq!(Said::read("@lockworks status 0"), [word("status", "0")]);
        assert_eq!(Said::read("@lockworks end"), [word("end", "")]);
        assert_eq!(Said::read("hello"), [output("hello")]);
        assert_eq!(
            Said::read("no end@lockworks status 1"),
            [output("no end"), word("status", "1")]
        );
    }

    #[test]
    fn shells_get_what_was_meant() {
        assert_eq!(quoted("a 'b' $c"), r"'a '\''b'\'' $c'");
    }

    fn course(words: &[&str]) -> Course {
        let mut course = Course::default();
        for word in words {
            for said in Said::read(&format!("@lockworks {word}")) {
                course.note(&said);
            }
        }
        course
    }

    fn kinds(words: &[&str], console: &str, end: End, variant: Variant) -> Vec<Kind> {
        let all = course(words).judge(console, end, variant, false);
        all.iter().map(|complaint| complaint.kind).collect()
    }

    #[test]
    fn a_guest_must_come_to_its_end() {
        let done = ["up 6.12.0", "status 0", "end"];
        let judge = |words: &[&str], end| kinds(words, "", end, Variant::Native);
        assert_eq!(judge(&done, End::Off), []);
        assert_eq!(judge(&["up x", "status 3", "end"], End::Off), [Kind::Task]);
        assert_eq!(judge(&["up x"], End::Off), [Kind::Ended]);
        let silent = End::Silent(Duration::from_secs(60));
        assert_eq!(judge(&[], silent), [Kind::Hang]);
        assert_eq!(judge(&["up x"], silent), [Kind::Hang]);
        assert_eq!(judge(&done, silent), [Kind::Hang]);
    }

    #[test]
    fn the_console_counts_too() {
        let done = ["up x", "status 0", "end"];
        assert_eq!(
            kinds(&done, "[    1.0] WARNING: x\n", End::Off, Variant::Native),
            [Kind::Warning]
        );
        assert_eq!(
            kinds(&done, "all is well\n", End::Off, Variant::Debug),
            [Kind::SelfTest]
        );
    }

    #[test]
    fn the_user_may_leave() {
        let judge =
            |end, may_switch_off| course(&["up x"]).judge("", end, Variant::Native, may_switch_off);
        assert_eq!(judge(End::Left, false), []);
        assert_eq!(judge(End::Off, true), []);
        assert_eq!(judge(End::Off, false)[0].kind, Kind::Ended);
    }
}
