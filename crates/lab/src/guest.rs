//! A guest: a kernel on an emulated machine, with a task.

use std::fs;
use std::io::{self, IsTerminal};
use std::path::{Path, PathBuf};

use crate::build::Built;
use crate::busybox;
use crate::cache::Cache;
use crate::complaint::Complaint;
use crate::console;
use crate::emulation::Emulation;
use crate::error::{Attempt, Error, Result};
use crate::guest_state::GuestState;
use crate::initramfs::{self, Entry};
use crate::lock::Lock;
use crate::machine::{Input, Machine};
use crate::message::GuestMessage;
use crate::qemu::{self, WaitLimits};
use crate::task::{Task, quoted};
use crate::topology::Topology;

/// The settings of CNA.
#[derive(Clone, Copy, Debug, Default)]
pub struct Tuning {
    /// The time after which waiters that were passed over come first, in milliseconds; none for the
    /// kernel's default.
    pub threshold: Option<u32>,
    /// Whether CNA searches for waiters to pass over at every hand-off.
    pub no_shuffle_reduction: bool,
}

/// A guest to boot.
#[derive(Debug)]
pub struct Guest<'a> {
    /// The kernel.
    pub built: &'a Built,
    /// Its CPUs, NUMA nodes and memory.
    pub topology: Topology,
    /// How its CPUs are emulated.
    pub emulation: Emulation,
    /// Whether the kernel can detect that it runs in a guest; on x86-64 it then uses an unfair lock.
    pub hypervisor: bool,
    /// The slow path of its spinlocks; none for the kernel's default.
    pub lock: Option<Lock>,
    /// The settings of CNA.
    pub tuning: Tuning,
    /// Additional kernel parameters.
    pub boot: &'a str,
    /// The file for the console; none for a file in the cache.
    pub console: Option<&'a Path>,
    /// The input of the console.
    pub input: Input,
    /// How long to wait for the next message of the guest.
    pub limits: WaitLimits,
}

/// The verdict on a guest.
#[derive(Clone, Debug)]
pub struct GuestVerdict {
    /// Everything that is wrong.
    pub complaints: Vec<Complaint>,
    /// Why the guest refused its task.
    pub refused: Option<String>,
    /// Whether a fault of QEMU ended the guest before its task began.
    pub(crate) is_fault_before_task: bool,
    /// How often a CPU was switched off.
    pub offlined: u64,
    /// The file with the console.
    pub console: PathBuf,
}

/// How many times at most a guest is booted, if a fault of QEMU ends it before its task begins.
const BOOTS: u32 = 4;

impl GuestVerdict {
    /// The error if the guest refused its task, and nothing else is wrong.
    pub fn refusal(&self) -> Result<()> {
        match &self.refused {
            Some(why) if self.complaints.is_empty() => Err(Error::Refused(format!(
                "{why}; the console is in {}",
                self.console.display()
            ))),
            _ => Ok(()),
        }
    }
}

impl Guest<'_> {
    /// The command line of the kernel.
    pub fn command_line(&self) -> String {
        // The console shows every message, whatever parameters follow.
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
        // The time stamps tell the kernel's lines from the output of programs.
        words.push("printk.time=1".to_owned());
        words.join(" ")
    }

    /// Boots the guest, runs its task, and judges it. Calls `hear` with each message.
    pub fn run(
        &self,
        task: &Task,
        cache: &Cache,
        hear: &mut dyn FnMut(&GuestMessage),
    ) -> Result<GuestVerdict> {
        let (directory, _used) = cache.new_run()?;
        let console = match self.console {
            Some(path) => std::path::absolute(path).attempt_on("write", path)?,
            None => directory.join("console"),
        };
        // Copies, since another command may update the build while the guest runs.
        let (image, kernel) = (self.built.image(), directory.join("kernel"));
        fs::copy(&image, &kernel).attempt_on("copy", &image)?;
        let initramfs = directory.join("initramfs");
        let busybox = busybox::read(self.built.arch, cache)?;
        let archive = initramfs::archive(&busybox, &self.files(task)?)?;
        fs::write(&initramfs, archive).attempt_on("write", &initramfs)?;
        self.built.release_lock()?;

        let command_line = self.command_line();
        let machine = Machine {
            topology: self.topology,
            emulation: self.emulation,
            arch: self.built.arch,
            hypervisor: self.hypervisor,
            kernel: &kernel,
            initramfs: &initramfs,
            command_line: &command_line,
            disk: task.disk.as_deref(),
            monitor: task.monitor.as_ref(),
            input: self.input,
            console: &console,
            channel: &directory.join("channel"),
            errors: &directory.join("qemu.log"),
        };
        let verdict = self.boot_until_up(&machine, hear);
        for file in [&kernel, &initramfs] {
            fs::remove_file(file).attempt_on("remove", file)?;
        }
        verdict
    }

    /// Boots the machine, and again if a fault of QEMU has ended it before the task began. A monitor is for
    /// one machine only, and so is the thread that reads the keys of a terminal.
    fn boot_until_up(
        &self,
        machine: &Machine,
        hear: &mut dyn FnMut(&GuestMessage),
    ) -> Result<GuestVerdict> {
        let has_user = self.input == Input::Ours && io::stdin().is_terminal();
        let boots = if machine.monitor.is_some() || has_user {
            1
        } else {
            BOOTS
        };
        for boot in 1..boots {
            let verdict = self.boot(machine, hear)?;
            if !verdict.is_fault_before_task {
                return Ok(verdict);
            }
            let kept = PathBuf::from(format!("{}.{boot}", machine.console.display()));
            fs::rename(machine.console, &kept).attempt_on("rename", machine.console)?;
            fs::remove_file(machine.channel).attempt_on("remove", machine.channel)?;
            eprintln!(
                "lockworks: the guest ended by int3 before its task began, which QEMU may cause with \
                 --emulation multi; its console is in {}; boot {} of at most {boots} begins",
                kept.display(),
                boot + 1
            );
        }
        self.boot(machine, hear)
    }

    /// Boots the machine once, and judges what it did.
    fn boot(&self, machine: &Machine, hear: &mut dyn FnMut(&GuestMessage)) -> Result<GuestVerdict> {
        let mut state = GuestState::default();
        let end = machine.run(self.limits, &mut |line| {
            for said in GuestMessage::read(line) {
                state.note(&said);
                hear(&said);
            }
        })?;
        let console = machine.console;
        let bytes = fs::read(console).attempt_on("read", console)?;
        let text = String::from_utf8_lossy(&bytes).replace('\r', "");
        // A user can switch the guest off in its shell.
        let may_switch_off = self.input == Input::Ours && text.contains("reboot: Power down");
        let mut complaints = state.judge(&text, end, self.built.variant, may_switch_off);
        let is_fault = |complaint: &Complaint| qemu::may_be_own_fault(self.emulation, complaint);
        let is_fault_before_task = !state.up && complaints.first().is_some_and(is_fault);
        for complaint in complaints
            .iter_mut()
            .filter(|complaint| is_fault(complaint))
        {
            complaint.lines.push(qemu::OWN_FAULT.to_owned());
        }
        Ok(GuestVerdict {
            complaints,
            is_fault_before_task,
            refused: state.refused,
            offlined: console::offlined(&text),
            console: console.to_owned(),
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
        files.extend(task.files.iter().map(|(name, contents)| Entry {
            path: format!("root/{name}"),
            contents: contents.clone(),
        }));
        Ok(files)
    }
}
