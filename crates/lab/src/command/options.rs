//! Options and steps that the commands with a kernel or a guest share.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context, Result, ensure};
use clap::builder::{PossibleValuesParser, TypedValueParser};
use clap::value_parser;
use indicatif::ProgressBar;
use lockworks_names::command_line::by_name;
use lockworks_ui::progress;

use crate::arch::Arch;
use crate::build::{self, Built, Target};
use crate::cache::Cache;
use crate::compiler::Compiler;
use crate::complaint::Complaint;
use crate::emulation::Emulation;
use crate::guest::{Guest, GuestVerdict, Tuning};
use crate::lock::Lock;
use crate::machine::Input;
use crate::qemu::WaitLimits;
use crate::requirements;
use crate::source::Tree;
use crate::topology::Topology;
use crate::variant::Variant;
use crate::version::Version;

/// The sources of a kernel.
#[derive(clap::Args)]
pub struct Sources {
    /// Version of the kernel, from Debian's package linux-source-VERSION
    #[arg(long, value_name = "VERSION", default_value = "7.3", value_parser = version())]
    version: Version,

    /// Source tree of your own, with Lockworks applied; the tree does not change [default: that of
    /// --version]
    #[arg(
        long,
        value_name = "DIR",
        conflicts_with = "version",
        hide_short_help = true
    )]
    tree: Option<PathBuf>,
}

/// The kernel to build.
#[derive(clap::Args)]
pub struct Source {
    #[command(flatten)]
    sources: Sources,

    /// Architecture of the kernel; arm64 is cross-compiled, and both are emulated
    #[arg(long, value_name = "ARCH", default_value = "x86-64", value_parser = arch(), hide_short_help = true)]
    arch: Arch,

    /// Compiler of the kernel
    #[arg(long, value_name = "COMPILER", default_value = "gcc", value_parser = compiler(), hide_short_help = true)]
    compiler: Compiler,

    /// Configuration: spinlocks are called directly (native), through pv_ops (paravirt), or
    /// directly with lockdep and KCSAN enabled (debug)
    #[arg(long, value_name = "CONFIG", default_value = "native", value_parser = variant())]
    config: Variant,

    /// Whether the kernel counts the events of locks [default: off with --emulation counted, because
    /// distributions do not count them, else on]
    #[arg(long, value_name = "HOW", value_parser = statistics(), hide_short_help = true)]
    statistics: Option<bool>,
}

/// Kernel parameters.
#[derive(clap::Args)]
pub struct Boot {
    /// Additional kernel parameters, such as "sysctl.kernel.pv_kick_ahead=1"
    #[arg(
        long = "boot",
        value_name = "WORDS",
        default_value = "",
        allow_hyphen_values = true
    )]
    pub words: String,
}

/// The guest that a kernel runs in.
#[derive(clap::Args)]
pub struct Machine {
    /// Number of NUMA nodes of the guest
    #[arg(long, value_name = "N", default_value_t = 4)]
    pub nodes: u32,

    /// Number of CPUs of the guest, distributed over the nodes
    #[arg(long, value_name = "N", default_value_t = 8)]
    pub cpus: u32,

    /// Memory of the guest in MiB, distributed over the nodes
    #[arg(
        long,
        value_name = "MIB",
        default_value_t = 2048,
        hide_short_help = true
    )]
    memory: u32,

    /// Emulation of the CPUs: a thread for each (multi), one thread for all in turns (single), or
    /// one thread and a clock that counts instructions, so that runs repeat exactly (counted)
    /// [default: multi if this machine has at least as many CPUs, else single]
    #[arg(long, value_name = "HOW", value_parser = emulation(), hide_short_help = true)]
    emulation: Option<Emulation>,

    /// Let the kernel detect that it runs in a guest; on x86-64 its default lock is then an unfair
    /// one
    #[arg(long, hide_short_help = true)]
    hypervisor: bool,

    #[command(flatten)]
    boot: Boot,

    /// Time for which CNA may pass over waiters of other nodes, 1 to 100 milliseconds [default: 10]
    #[arg(long, value_name = "MS", value_parser = value_parser!(u32).range(1..=100), hide_short_help = true)]
    pub threshold: Option<u32>,

    /// Let CNA search for waiters to pass over at every hand-off [default: at 1 in 128]
    #[arg(long, hide_short_help = true)]
    pub no_shuffle_reduction: bool,

    /// Write the guest's console to FILE [default: a file in the cache]
    #[arg(long, value_name = "FILE", hide_short_help = true)]
    console: Option<PathBuf>,
}

fn named<T: Copy + Send + Sync + 'static>(
    all: &'static [T],
    name: fn(T) -> &'static str,
) -> impl TypedValueParser<Value = T> {
    let names = all.iter().map(|value| name(*value));
    PossibleValuesParser::new(names).map(move |given| {
        let mut all = all.iter().copied();
        all.find(|value| name(*value) == given)
            .expect("it is one of them")
    })
}

fn version() -> impl TypedValueParser<Value = Version> {
    named(&Version::ALL, Version::name)
}

fn arch() -> impl TypedValueParser<Value = Arch> {
    named(&Arch::ALL, Arch::name)
}

fn compiler() -> impl TypedValueParser<Value = Compiler> {
    named(&Compiler::ALL, Compiler::name)
}

fn variant() -> impl TypedValueParser<Value = Variant> {
    named(&Variant::ALL, Variant::name)
}

fn statistics() -> impl TypedValueParser<Value = bool> {
    named(&[true, false], |on| if on { "on" } else { "off" })
}

fn emulation() -> impl TypedValueParser<Value = Emulation> {
    named(&Emulation::ALL, Emulation::name)
}

/// Finds a lock by its name.
pub fn lock(name: &str) -> Result<Lock> {
    by_name("lock", name, Lock::ALL, Lock::name)
}

/// A line on the terminal that shows the current step.
pub struct Steps(ProgressBar);

impl Steps {
    pub fn new() -> Self {
        Self(progress::line("{spinner} {elapsed} {wide_msg}"))
    }

    pub fn begin(&self, step: &str) {
        // A step may say after a colon how far it is.
        let name = |text: &str| text.split(':').next().map(str::to_owned);
        if name(step) != name(&self.0.message()) {
            tracing::info!(step, "begins");
        }
        self.0.set_message(step.to_owned());
    }

    /// Calls `print` without the line, which would be amid what it prints.
    pub fn suspend<T>(&self, print: impl FnOnce() -> T) -> T {
        self.0.suspend(print)
    }

    pub fn end(&self) {
        self.0.finish_and_clear();
    }
}

impl Drop for Steps {
    fn drop(&mut self) {
        self.end();
    }
}

impl Source {
    /// The architecture of the kernel.
    pub fn arch(&self) -> Arch {
        self.arch
    }

    /// The configuration of the kernel.
    pub fn config(&self) -> Variant {
        self.config
    }

    /// Refuses a combination that cannot be built, before anything is fetched.
    pub fn check(&self) -> Result<()> {
        let (arch, variants) = (self.arch, self.arch.variants());
        ensure!(
            variants.contains(&self.config),
            "there are no {} kernels for {arch}; use --config {}",
            self.config,
            variants
                .iter()
                .map(|v| v.name())
                .collect::<Vec<_>>()
                .join(" or ")
        );
        Ok(())
    }

    /// Builds the kernel, and provides what booting on a machine needs.
    pub fn build_to_boot(&self, machine: &Machine, cache: &Cache, steps: &Steps) -> Result<Built> {
        let progress = |step: &str| steps.begin(step);
        requirements::provide_to_boot(self.arch, self.compiler, cache, &progress)?;
        let counts = machine.emulation() != Emulation::Counted;
        self.sources.build(self.target(counts), cache, steps)
    }

    /// Builds the kernel, or updates an earlier build.
    pub fn build(&self, cache: &Cache, steps: &Steps) -> Result<Built> {
        self.sources.build(self.target(true), cache, steps)
    }

    /// What to build. `counts`: it counts the events of locks, if the user has not said.
    fn target(&self, counts: bool) -> Target {
        Target {
            arch: self.arch,
            compiler: self.compiler,
            variant: self.config,
            statistics: self.statistics.unwrap_or(counts),
        }
    }
}

impl Sources {
    /// Builds a kernel, or updates an earlier build.
    pub fn build(&self, target: Target, cache: &Cache, steps: &Steps) -> Result<Built> {
        let progress = |step: &str| steps.begin(step);
        requirements::provide_to_build(target.arch, target.compiler, cache, &progress)?;
        let tree = match &self.tree {
            Some(path) => Tree::given(path)?,
            None => Tree::cached(self.version, cache, &progress)?,
        };
        Ok(build::build(&tree, target, cache, &progress)?)
    }
}

impl Machine {
    /// How the guest's CPUs are emulated.
    pub fn emulation(&self) -> Emulation {
        self.emulation
            .unwrap_or_else(|| Emulation::fitting(self.cpus))
    }

    /// How the guest's CPUs are emulated, if the user has said so.
    pub fn chosen_emulation(&self) -> Option<Emulation> {
        self.emulation
    }

    /// Refuses impossible combinations before a long build.
    pub fn check(&self, source: &Source, locks: impl IntoIterator<Item = Lock>) -> Result<()> {
        source.check()?;
        self.topology()?;
        for lock in locks.into_iter().filter(|lock| lock.is_of_guests()) {
            let name = lock.name();
            ensure!(
                source.arch.tells_guests(),
                "{name} is a lock for guests on x86-64, not on {}",
                source.arch
            );
            ensure!(
                !lock.is_paravirt() || source.config == Variant::Paravirt,
                "{name} needs spinlocks called through pv_ops; add --config paravirt"
            );
        }
        ensure!(
            !self.hypervisor || source.arch.tells_guests(),
            "--hypervisor is for x86-64; kernels for {} have no other lock in guests",
            source.arch
        );
        if let Some(console) = &self.console {
            let mut options = File::options();
            let opened = options.append(true).create(true).open(console);
            opened.with_context(|| format!("cannot write {}", console.display()))?;
        }
        Ok(())
    }

    /// How long to wait for the next message of a guest.
    pub fn limits(&self, config: Variant) -> WaitLimits {
        WaitLimits::new(config, self.emulation(), self.cpus)
    }

    /// The guest's CPUs, nodes and memory.
    pub fn topology(&self) -> Result<Topology> {
        Ok(Topology::new(self.nodes, self.cpus, self.memory)?)
    }

    /// Makes the guest to boot.
    pub fn guest<'a>(
        &'a self,
        built: &'a Built,
        lock: Option<Lock>,
        input: Input,
        limits: WaitLimits,
    ) -> Result<Guest<'a>> {
        ensure!(
            built.arch != Arch::X86_64
                || built.version != Version::V6_1
                || self.cpus == 1
                || self.emulation() != Emulation::Counted,
            "Linux 6.1 for x86-64 does not bring its CPUs up with --emulation counted; use single"
        );
        Ok(Guest {
            built,
            topology: self.topology()?,
            emulation: self.emulation(),
            hypervisor: self.hypervisor,
            lock,
            tuning: Tuning {
                threshold: self.threshold,
                no_shuffle_reduction: self.no_shuffle_reduction,
            },
            boot: &self.boot.words,
            console: self.console.as_deref(),
            input,
            limits,
        })
    }
}

/// The exit status if something is wrong with the kernel.
pub const FAILED: u8 = 1;

/// Prints all complaints. The exit status is 1 if there are any.
pub fn verdict(judged: &GuestVerdict) -> Result<ExitCode> {
    judged.refusal()?;
    Ok(complain(&judged.complaints, &judged.console))
}

/// Prints complaints about a guest, and where its console is. The exit status is 1 if there are any.
pub fn complain(complaints: &[Complaint], console: &Path) -> ExitCode {
    for complaint in complaints {
        eprintln!("lockworks: FAIL: {}", complaint.kind);
        for line in &complaint.lines {
            eprintln!("  {line}");
        }
    }
    if complaints.is_empty() {
        return ExitCode::SUCCESS;
    }
    eprintln!("lockworks: the console is in {}", console.display());
    ExitCode::from(FAILED)
}
