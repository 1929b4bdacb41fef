//! What the commands with a kernel or a guest have in common.

use std::fs::File;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use clap::builder::{PossibleValuesParser, TypedValueParser};
use clap::value_parser;
use indicatif::{ProgressBar, ProgressStyle};
use lockworks_kernel::lab::{
    self, Arch, Built, Cache, Emulation, Guest, GuestVerdict, Input, Lock, Topology, Tree, Tuning,
    Variant, Version, WaitLimits,
};

use crate::names::by_name;

/// Of which sources.
#[derive(clap::Args)]
pub struct Sources {
    /// Kernel, from Debian's package linux-source-VERSION
    #[arg(long, value_name = "VERSION", default_value = "6.12", value_parser = version())]
    version: Version,

    /// The user's own tree, which Lockworks is in; it is left as it is
    #[arg(long, value_name = "DIR", conflicts_with = "version")]
    tree: Option<PathBuf>,
}

/// Which kernel.
#[derive(clap::Args)]
pub struct Source {
    #[command(flatten)]
    sources: Sources,

    /// The machine it is for; arm64 is cross-compiled, and emulated like the other
    #[arg(long, value_name = "ARCH", default_value = "x86-64", value_parser = arch())]
    arch: Arch,

    /// Its spinlocks called directly, through pv_ops, or with lockdep and KCSAN watching
    #[arg(long, value_name = "CONFIG", default_value = "native", value_parser = variant())]
    config: Variant,
}

/// What it is told when it boots.
#[derive(clap::Args)]
pub struct Boot {
    /// More kernel parameters, as "sysctl.kernel.pv_kick_ahead=1"
    #[arg(
        long = "boot",
        value_name = "WORDS",
        default_value = "",
        allow_hyphen_values = true
    )]
    pub words: String,
}

/// Where it runs.
#[derive(clap::Args)]
pub struct Machine {
    /// NUMA nodes
    #[arg(long, value_name = "N", default_value_t = 4)]
    pub nodes: u32,

    /// CPUs, dealt out to the nodes
    #[arg(long, value_name = "N", default_value_t = 8)]
    pub cpus: u32,

    /// Memory, dealt out to the nodes
    #[arg(long, value_name = "MIB", default_value_t = 2048)]
    memory: u32,

    /// CPUs emulated by a thread each; all in turns by a single one; or so and with a clock that
    /// counts instructions, which gives the same figures again [default: multi if there are as many
    /// CPUs here, else single]
    #[arg(long, value_name = "HOW", value_parser = emulation())]
    emulation: Option<Emulation>,

    /// Let the kernel see that it is a guest; on x86-64 its default then is an unfair lock
    #[arg(long)]
    hypervisor: bool,

    #[command(flatten)]
    boot: Boot,

    /// How long CNA may pass over waiters of other nodes, 1 to 100 milliseconds
    #[arg(long, value_name = "MS", value_parser = value_parser!(u32).range(1..=100))]
    pub threshold: Option<u32>,

    /// Let CNA look for waiters to pass over at every hand-off
    #[arg(long)]
    pub no_shuffle_reduction: bool,

    /// Keep the guest's console in FILE rather than in the cache
    #[arg(long, value_name = "FILE")]
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

fn variant() -> impl TypedValueParser<Value = Variant> {
    named(&Variant::ALL, Variant::name)
}

fn emulation() -> impl TypedValueParser<Value = Emulation> {
    named(&Emulation::ALL, Emulation::name)
}

/// A lock by its name.
pub fn lock(name: &str) -> Result<Lock> {
    by_name("lock", name, Lock::ALL, Lock::name)
}

/// A line about the current step, on a terminal.
pub struct Steps(ProgressBar);

impl Steps {
    pub fn new() -> Self {
        let style = ProgressStyle::with_template("{spinner} {elapsed} {wide_msg}")
            .expect("it is well formed");
        let bar = ProgressBar::new_spinner().with_style(style);
        bar.enable_steady_tick(Duration::from_millis(200));
        Self(bar)
    }

    pub fn begin(&self, step: &str) {
        self.0.set_message(step.to_owned());
    }

    /// Prints while the line is out of the way.
    pub fn print(&self, text: &str) -> Result<()> {
        self.0.suspend(|| crate::output::print(text))
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
    /// The machine it is for.
    pub fn arch(&self) -> Arch {
        self.arch
    }

    /// How it is configured.
    pub fn config(&self) -> Variant {
        self.config
    }

    /// Refuses before much is fetched what cannot be built.
    pub fn check(&self) -> Result<()> {
        let (arch, variants) = (self.arch, self.arch.variants());
        ensure!(
            variants.contains(&self.config),
            "no {} kernels for {arch}; choose --config {}",
            self.config,
            variants
                .iter()
                .map(|v| v.name())
                .collect::<Vec<_>>()
                .join(" or ")
        );
        Ok(())
    }

    /// Builds it to be booted.
    pub fn build_to_boot(&self, cache: &Cache, steps: &Steps) -> Result<Built> {
        self.sources
            .build_to_boot(self.arch, self.config, cache, steps)
    }

    /// Builds it, as far as it is not up to date.
    pub fn build(&self, cache: &Cache, steps: &Steps) -> Result<Built> {
        self.sources.build(self.arch, self.config, cache, steps)
    }
}

impl Sources {
    /// Builds a kernel to be booted.
    pub fn build_to_boot(
        &self,
        arch: Arch,
        config: Variant,
        cache: &Cache,
        steps: &Steps,
    ) -> Result<Built> {
        lab::provide_to_boot(arch, cache, &|step| steps.begin(step))?;
        self.build(arch, config, cache, steps)
    }

    fn build(&self, arch: Arch, config: Variant, cache: &Cache, steps: &Steps) -> Result<Built> {
        let progress = |step: &str| steps.begin(step);
        lab::provide_to_build(arch, cache, &progress)?;
        let tree = match &self.tree {
            Some(path) => Tree::given(path)?,
            None => Tree::cached(self.version, cache, &progress)?,
        };
        Ok(lab::build(&tree, arch, config, cache, &progress)?)
    }
}

impl Machine {
    /// How the guest's CPUs are emulated.
    pub fn emulation(&self) -> Emulation {
        self.emulation
            .unwrap_or_else(|| Emulation::fitting(self.cpus))
    }

    /// Refuses before a long build what cannot be.
    pub fn check(&self, source: &Source, locks: impl IntoIterator<Item = Lock>) -> Result<()> {
        source.check()?;
        self.topology()?;
        for lock in locks.into_iter().filter(|lock| lock.is_of_guests()) {
            let name = lock.name();
            ensure!(
                source.arch.tells_guests(),
                "{name} is a lock of x86-64's guests, not of {}'s",
                source.arch
            );
            ensure!(
                !lock.is_paravirt() || source.config == Variant::Paravirt,
                "{name} takes spinlocks called through pv_ops; add --config paravirt"
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

    /// How long to wait for the next word of a guest.
    pub fn limits(&self, config: Variant) -> WaitLimits {
        WaitLimits::new(config, self.emulation(), self.cpus)
    }

    /// The guest's CPUs, nodes and memory.
    pub fn topology(&self) -> Result<Topology> {
        Ok(Topology::new(self.nodes, self.cpus, self.memory)?)
    }

    /// The guest to boot.
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

/// Something is wrong with the kernel.
pub const FAILED: u8 = 1;

/// Tells of all complaints; the exit status is 1 if there is one.
pub fn verdict(judged: &GuestVerdict) -> Result<ExitCode> {
    for complaint in &judged.complaints {
        eprintln!("lockworks: FAIL: {}", complaint.kind);
        for line in &complaint.lines {
            eprintln!("  {line}");
        }
    }
    if !judged.complaints.is_empty() {
        eprintln!("lockworks: the console is in {}", judged.console.display());
        return Ok(ExitCode::from(FAILED));
    }
    match &judged.refused {
        Some(why) => anyhow::bail!("{why}; the console is in {}", judged.console.display()),
        None => Ok(ExitCode::SUCCESS),
    }
}
