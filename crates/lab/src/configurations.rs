//! Compiles what the series changes in many configurations of a kernel: those that distributions and
//! developers have, with both compilers. `make test-kernel-configurations` runs it, and `make test` two of them.

use std::collections::BTreeMap;
use std::fs;
use std::process::Stdio;
use std::thread;
use std::time::Instant;

use crate::arch::Arch;
use crate::build;
use crate::cache::{Cache, Progress};
use crate::compiler::Compiler;
use crate::config;
use crate::requirements;
use crate::source::Tree;
use crate::tools::{self, Tool};
use crate::variant::Variant;
use crate::version::Version;

/// A configuration.
struct Configuration {
    name: &'static str,
    compiler: Compiler,
    /// The guests' configuration that it begins with; none for RISC-V, which has no guests.
    guest: Option<(Arch, Variant)>,
    /// Further options, which replace those of the guests.
    options: &'static str,
}

const GCC: Compiler = Compiler::Gcc;
const CLANG: Compiler = Compiler::Clang;
const DIRECT: Option<(Arch, Variant)> = Some((Arch::X86_64, Variant::Native));
const PARAVIRT: Option<(Arch, Variant)> = Some((Arch::X86_64, Variant::Paravirt));
const DEBUG: Option<(Arch, Variant)> = Some((Arch::X86_64, Variant::Debug));
const ARM64: Option<(Arch, Variant)> = Some((Arch::Arm64, Variant::Native));

#[rustfmt::skip]
const CONFIGURATIONS: [Configuration; 18] = [
    of("gcc", GCC, DIRECT, ""),
    of("gcc-paravirt", GCC, PARAVIRT, ""),
    of("clang", CLANG, DIRECT, ""),
    of("clang-paravirt", CLANG, PARAVIRT, ""),
    of("clang-thinlto", CLANG, PARAVIRT, "LTO_CLANG_THIN=y"),
    of("clang-cfi", CLANG, PARAVIRT, "CFI=y"),
    of("preempt-rt", GCC, PARAVIRT, "EXPERT=y PREEMPT_RT=y"),
    of("no-numa", GCC, PARAVIRT, "NUMA=n"),
    of("no-smp", GCC, DIRECT, "SMP=n"),
    of("maxsmp", GCC, PARAVIRT, "MAXSMP=y"),
    of("kasan", GCC, PARAVIRT, "KASAN=y"),
    of("kcsan", GCC, DEBUG, ""),
    of("clang-kcsan", CLANG, DEBUG, ""),
    of("lockdep", GCC, PARAVIRT, "PROVE_LOCKING=y DEBUG_LOCKDEP=y"),
    of("few-options", GCC, PARAVIRT,
       "NUMA_AWARE_SPINLOCKS=y NUMA_AWARE_SPINLOCKS_SWITCH=n NUMA_AWARE_SPINLOCKS_TEST=n \
        NUMA_AWARE_SPINLOCKS_KUNIT_TEST=n HQSPINLOCKS=n LOCKWORKS_GUEST=n LOCK_EVENT_COUNTS=n"),
    of("arm64", GCC, ARM64, ""),
    of("arm64-clang", CLANG, ARM64, ""),
    of("riscv", GCC, None, "64BIT=y MMU=y ARCH_RV64I=y RISCV_COMBO_SPINLOCKS=y NUMA_AWARE_SPINLOCKS=y"),
];

const fn of(
    name: &'static str,
    compiler: Compiler,
    guest: Option<(Arch, Variant)>,
    options: &'static str,
) -> Configuration {
    Configuration {
        name,
        compiler,
        guest,
        options,
    }
}

/// How RISC-V is compiled for, by GCC.
const RISCV: [&str; 2] = ["ARCH=riscv", "CROSS_COMPILE=riscv64-linux-gnu-"];
const FOR_RISCV: [Tool; 1] = [tools::program(
    "riscv64-linux-gnu-gcc",
    "gcc-riscv64-linux-gnu",
)];

impl Configuration {
    fn provide_tools(&self, cache: &Cache, progress: Progress) {
        let arch = self.guest.map_or(Arch::X86_64, |(arch, _)| arch);
        requirements::provide_to_build(arch, self.compiler, cache, progress).unwrap();
        if self.guest.is_none() {
            tools::provide(&FOR_RISCV, cache, progress).unwrap();
        }
    }

    /// The arguments of make that choose compiler and architecture.
    fn make(&self) -> &'static [&'static str] {
        match self.guest {
            Some((arch, _)) => self.compiler.make(arch),
            None => &RISCV,
        }
    }

    /// The options that must come out as they are here.
    fn own(&self) -> String {
        let options = self.options.split_whitespace();
        options.map(|option| format!("CONFIG_{option}\n")).collect()
    }

    /// The options that must come out as requested. Further options rule out some of the others.
    fn promised(&self, version: Version) -> String {
        match self.options {
            "" => self.requested(version),
            _ => self.own(),
        }
    }

    /// All options. Of two values of an option, the later one is taken.
    fn requested(&self, version: Version) -> String {
        let text = match self.guest {
            Some((arch, variant)) => config::requested(arch, version, variant, true),
            None => config::common(version, true),
        } + &self.own();
        let options: BTreeMap<&str, &str> = config::settings(&text).collect();
        let lines = options.iter();
        lines
            .map(|(name, value)| format!("{name}={value}\n"))
            .collect()
    }

    /// Compiles; what went wrong, if anything did.
    fn compile(&self, tree: &Tree, cache: &Cache) -> Result<(), String> {
        let name = format!("configurations-{}", tree.version);
        let _alone = cache
            .lock(&name, &|_| ())
            .map_err(|error| error.to_string())?;
        let directory = cache.path(&name).join(self.name);
        fs::create_dir_all(&directory).map_err(|error| error.to_string())?;
        let request = directory.join("requested.config");
        fs::write(&request, self.requested(tree.version)).map_err(|error| error.to_string())?;
        let make = |arguments: &[&str]| {
            let mut make = build::make(tree, &directory, self.make());
            make.arg("-s").args(arguments).stdin(Stdio::null());
            let ended = make.output().map_err(|error| error.to_string())?;
            match ended.status.success() {
                true => Ok(()),
                false => Err(String::from_utf8_lossy(&ended.stderr).into_owned()),
            }
        };
        let all = format!("KCONFIG_ALLCONFIG={}", request.display());
        make(&[&all, "allnoconfig"])?;
        let got = fs::read_to_string(directory.join(".config")).map_err(|e| e.to_string())?;
        config::check(&self.promised(tree.version), &got, &tree.path)
            .map_err(|error| error.to_string())?;
        let jobs = thread::available_parallelism().map_or(1, usize::from);
        make(&[
            &format!("-j{jobs}"),
            "KCFLAGS=-Werror",
            "kernel/locking/",
            "kernel/futex/",
            "lib/lockref.o",
        ])
    }
}

/// Compiles some configurations, and prints a table. What has been compiled stays in the cache, so a run
/// goes on where an earlier one was.
fn compile(configurations: &[&Configuration]) {
    let cache = Cache::open().unwrap();
    let say = |text: &str| eprintln!("{text}");
    for configuration in configurations {
        configuration.provide_tools(&cache, &say);
    }
    let tree = Tree::cached(Version::ALL[0], &cache, &say).unwrap();
    let mut table = lockworks_ui::output::table(&["configuration", "seconds", "compiles"]);
    let mut failures = Vec::new();
    for configuration in configurations {
        let begin = Instant::now();
        let compiled = configuration.compile(&tree, &cache);
        let seconds = begin.elapsed().as_secs();
        eprintln!("{}: {seconds} s", configuration.name);
        table.add_row([
            configuration.name.to_owned(),
            seconds.to_string(),
            if compiled.is_ok() { "yes" } else { "no" }.to_owned(),
        ]);
        if let Err(said) = compiled {
            failures.push(format!("{}:\n{said}", configuration.name));
        }
    }
    println!("Linux {}\n{table}", tree.version);
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}

/// Those of this machine's processor, with either compiler.
#[test]
#[ignore = "fetches the sources of a kernel; make test-kernel-compiles"]
fn two_configurations_compile() {
    let names = match cfg!(target_arch = "aarch64") {
        true => ["arm64", "arm64-clang"],
        false => ["gcc-paravirt", "clang-paravirt"],
    };
    compile(&names.map(find));
}

#[test]
#[ignore = "compiles for ten minutes; make test-kernel-configurations"]
fn every_configuration_compiles() {
    compile(&CONFIGURATIONS.each_ref());
}

fn find(name: &str) -> &'static Configuration {
    let mut all = CONFIGURATIONS.iter();
    all.find(|known| known.name == name)
        .expect("it is one of them")
}

#[test]
fn of_two_values_of_an_option_the_later_one_is_taken() {
    let requested = find("no-numa").requested(Version::ALL[0]);
    let of_numa: Vec<&str> = requested
        .lines()
        .filter(|line| line.starts_with("CONFIG_NUMA="))
        .collect();
    assert_eq!(of_numa, ["CONFIG_NUMA=n"]);
    assert!(
        requested.contains("CONFIG_PARAVIRT_SPINLOCKS=y\n"),
        "{requested}"
    );
}
