//! Compiles what the series changes in many configurations of a kernel: those that distributions and
//! developers have, with both compilers. `make test-kernel-configurations` runs it, and `make test` two of them.

use std::collections::BTreeMap;
use std::fs;
use std::process::{Command, Stdio};
use std::thread;
use std::time::Instant;

use crate::arch::Arch;
use crate::build::MISLEADING;
use crate::cache::{Cache, Progress};
use crate::compiler::{Compiler, LLVM};
use crate::config::{self, GUEST};
use crate::requirements;
use crate::source::Tree;
use crate::tools::{self, Tool};
use crate::version::Version;

/// A configuration.
struct Configuration {
    name: &'static str,
    /// Arguments of make that choose compiler and architecture.
    make: &'static [&'static str],
    /// Files of options.
    files: &'static [&'static str],
    /// Further options, which replace those of the files.
    options: &'static str,
}

const GCC: &[&str] = &[];
const CLANG: &[&str] = &[LLVM];
const ARM64: &[&str] = &["ARCH=arm64", "CROSS_COMPILE=aarch64-linux-gnu-"];
const ARM64_CLANG: &[&str] = &["ARCH=arm64", LLVM];
const RISCV: &[&str] = &["ARCH=riscv", "CROSS_COMPILE=riscv64-linux-gnu-"];

const DIRECT: &[&str] = &["x86-64", "x86-64-7", "native"];
const PARAVIRT: &[&str] = &["x86-64", "x86-64-7", "paravirt"];
const DEBUG: &[&str] = &["x86-64", "x86-64-7", "debug"];
const ON_ARM64: &[&str] = &["arm64", "arm64-7", "native"];

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
    of("arm64", ARM64, ON_ARM64, ""),
    of("arm64-clang", ARM64_CLANG, ON_ARM64, ""),
    of("riscv", RISCV, &[], "64BIT=y MMU=y ARCH_RV64I=y RISCV_COMBO_SPINLOCKS=y NUMA_AWARE_SPINLOCKS=y"),
];

const fn of(
    name: &'static str,
    make: &'static [&'static str],
    files: &'static [&'static str],
    options: &'static str,
) -> Configuration {
    Configuration {
        name,
        make,
        files,
        options,
    }
}

const FOR_RISCV: [Tool; 1] = [tools::program(
    "riscv64-linux-gnu-gcc",
    "gcc-riscv64-linux-gnu",
)];

impl Configuration {
    fn provide_tools(&self, cache: &Cache, progress: Progress) {
        let has = |argument| self.make.contains(&argument);
        let compiler = if has(LLVM) {
            Compiler::Clang
        } else {
            Compiler::Gcc
        };
        let arch = if has("ARCH=arm64") {
            Arch::Arm64
        } else {
            Arch::X86_64
        };
        requirements::provide_to_build(arch, compiler, cache, progress).unwrap();
        if has("ARCH=riscv") {
            tools::provide(&FOR_RISCV, cache, progress).unwrap();
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
        let common = ["base", version.major(), version.name(), "statistics"];
        let names = common.iter().chain(self.files);
        let files = names.filter_map(|name| {
            GUEST
                .get_file(format!("{name}.config"))?
                .contents_utf8()
                .map(str::to_owned)
        });
        let text: String = files.chain([self.own()]).collect();
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
            let mut make = Command::new("make");
            make.arg("-s")
                .arg("-C")
                .arg(&tree.path)
                .arg(format!("O={}", directory.display()))
                .args(self.make)
                .args(arguments)
                .stdin(Stdio::null());
            for variable in MISLEADING {
                make.env_remove(variable);
            }
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
