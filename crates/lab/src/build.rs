//! Builds a kernel and its modules from a source tree.

use std::fs::{self, File, Metadata};
use std::io::{BufRead, BufReader, ErrorKind, Write};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread;

use lockworks_programs::children::{self, Ending, Running};
use walkdir::{DirEntry, WalkDir};

use crate::arch::Arch;
use crate::cache::{Cache, Progress};
use crate::compiler::Compiler;
use crate::config;
use crate::error::{Attempt, Error, Result, is_about_space};
use crate::file_lock::FileLock;
use crate::source::Tree;
use crate::variant::Variant;
use crate::version::Version;

/// A kernel that has been built. No other command rebuilds it until its lock is released or dropped.
#[derive(Debug)]
pub struct Built {
    /// The build directory.
    pub directory: PathBuf,
    /// The kernel's release, as `uname -r` prints it.
    pub release: String,
    /// The version of its sources.
    pub version: Version,
    /// The architecture that it is for.
    pub arch: Arch,
    /// The compiler that made it.
    pub compiler: Compiler,
    /// Its configuration.
    pub variant: Variant,
    /// Keeps other commands from rebuilding it; none for a copy.
    unchanged: Option<FileLock>,
}

impl Built {
    /// The path of the kernel image.
    pub fn image(&self) -> PathBuf {
        self.directory.join(self.arch.image())
    }

    /// Copies everything that booting needs into a directory, which the caller keeps as long as the
    /// copy is used. Other commands may rebuild the original from then on.
    pub fn copy_to(&self, directory: PathBuf) -> Result<Self> {
        let mut files = self.modules()?;
        files.extend([self.image(), self.directory.join("modules.order")]);
        for file in files {
            let path = file.strip_prefix(&self.directory).unwrap_or(&file);
            let copy = directory.join(path);
            let above = copy.parent().unwrap_or(&directory);
            fs::create_dir_all(above).attempt_on("make the directory", above)?;
            fs::copy(&file, &copy).attempt_on("copy", &file)?;
        }
        self.release_lock()?;
        Ok(Self {
            unchanged: None,
            directory,
            release: self.release.clone(),
            ..*self
        })
    }

    /// Releases the lock, so that other commands may rebuild the kernel.
    pub(crate) fn release_lock(&self) -> Result<()> {
        let release = self.unchanged.as_ref().map_or(Ok(()), FileLock::release);
        release.attempt_on("unlock", &self.directory)
    }

    /// The paths of the modules.
    pub fn modules(&self) -> Result<Vec<PathBuf>> {
        modules(&self.directory)
    }
}

/// The paths of the modules in a build directory.
fn modules(directory: &Path) -> Result<Vec<PathBuf>> {
    let order = directory.join("modules.order");
    let text = fs::read_to_string(&order).attempt_on("read", &order)?;
    let module = |line| directory.join(Path::new(line).with_extension("ko"));
    Ok(text.lines().map(module).collect())
}

/// Environment variables of the caller that would change the build.
const MISLEADING: [&str; 15] = [
    "MAKEFLAGS",
    "MFLAGS",
    "MAKELEVEL",
    "GNUMAKEFLAGS",
    "ARCH",
    "CROSS_COMPILE",
    "LLVM",
    "CC",
    "KBUILD_OUTPUT",
    "O",
    "KCFLAGS",
    "KAFLAGS",
    "KCPPFLAGS",
    "LOCALVERSION",
    "LLVM_IAS",
];

/// The file in a build directory that has the kernel's release.
const RELEASE: &str = "include/config/kernel.release";

/// The number of log lines that an error shows.
const LINES: usize = 12;

/// What is built from a tree.
#[derive(Clone, Copy, Debug)]
pub struct Target {
    /// The architecture that the kernel is for.
    pub arch: Arch,
    /// The compiler.
    pub compiler: Compiler,
    /// The configuration.
    pub variant: Variant,
    /// Whether the kernel counts the events of locks.
    pub statistics: bool,
}

/// Builds a kernel, or updates an earlier build of it.
pub fn build(tree: &Tree, target: Target, cache: &Cache, progress: Progress) -> Result<Built> {
    let Target {
        arch,
        compiler,
        variant,
        statistics,
    } = target;
    let mut name = match arch {
        Arch::X86_64 => format!("build-{}-{variant}", tree.name),
        Arch::Arm64 => format!("build-{}-{arch}-{variant}", tree.name),
    };
    if compiler != Compiler::Gcc {
        name.push_str(&format!("-{compiler}"));
    }
    if !statistics {
        name.push_str("-uncounted");
    }
    let built = |directory: PathBuf, lock| {
        let release = directory.join(RELEASE);
        let release = fs::read_to_string(&release).attempt_on("read", &release)?;
        Ok(Built {
            directory,
            release: release.trim().to_owned(),
            version: tree.version,
            arch,
            compiler,
            variant,
            unchanged: Some(lock),
        })
    };
    let lock = cache.lock(&name, progress)?;
    let directory = cache.path(&name);
    fs::create_dir_all(&directory).attempt_on("make the directory", &directory)?;
    let requested = config::requested(arch, tree.version, variant, statistics);
    let how = compiler.make(arch).join(" ");
    let made_of = format!("{requested}{how}\n{}", compiler.versions(arch));
    let record = Record::new(&directory, made_of);
    let named = [arch.image(), ".config", RELEASE, "modules.order"];
    let mut products: Vec<PathBuf> = named.map(|name| directory.join(name)).into();
    products.extend(modules(&directory).unwrap_or_default());
    if record.holds(&tree.path, &products) {
        return built(directory, lock);
    }
    record.begin()?;
    let log = cache.path(&format!("{name}.log"));
    let mut log_file = File::create(&log).attempt_on("write", &log)?;
    let mut make = |arguments: &[&str]| {
        let mut command = self::make(tree, &directory, compiler.make(arch));
        command.args(arguments);
        run(command, &log, &mut log_file, progress)
    };

    progress("configuring");
    let request = directory.join("requested.config");
    fs::write(&request, &requested).attempt_on("write", &request)?;
    let allconfig = format!("KCONFIG_ALLCONFIG={}", request.display());
    make(&[&allconfig, "allnoconfig"])?;
    let config = directory.join(".config");
    let got = fs::read_to_string(&config).attempt_on("read", &config)?;
    config::check(&requested, &got, &tree.path)?;

    let jobs = thread::available_parallelism().map_or(1, usize::from);
    let image = arch.image().rsplit('/').next().unwrap_or_default();
    make(&[&format!("-j{jobs}"), image, "modules"])?;
    record.end()?;
    built(directory, lock)
}

/// The record of a complete build: what it is made of beside its tree. The file is written when the build
/// begins, and renamed when it ends, so its time of modification is the beginning, and its time of change
/// the end. It spares make's look at every rule, which takes longer than many guests run.
struct Record {
    made_of: String,
    path: PathBuf,
    /// What becomes the record.
    next: PathBuf,
}

impl Record {
    fn new(directory: &Path, made_of: String) -> Self {
        Self {
            made_of,
            path: directory.join("made-of"),
            next: directory.join("made-of.part"),
        }
    }

    /// Whether these products were made from the tree in its present state, by the times of change of both.
    /// Removing a file changes its directory. What is behind a link to another tree is not known.
    fn holds(&self, tree: &Path, products: &[PathBuf]) -> bool {
        let changed = |found: &Metadata| (found.ctime(), found.ctime_nsec());
        let (Ok(record), Ok(tree)) = (fs::metadata(&self.path), tree.canonicalize()) else {
            return false;
        };
        let (begin, end) = ((record.mtime(), record.mtime_nsec()), changed(&record));
        let leads_out = |file: &DirEntry| {
            let target = file.path_is_symlink().then(|| file.path().canonicalize());
            matches!(target, Some(Ok(target)) if !target.starts_with(&tree))
        };
        let mut files = WalkDir::new(&tree)
            .into_iter()
            .filter_entry(|entry| entry.file_name() != ".git");
        fs::read_to_string(&self.path).is_ok_and(|made_of| made_of == self.made_of)
            && products
                .iter()
                .all(|product| fs::metadata(product).is_ok_and(|found| changed(&found) <= end))
            && files.all(|file| {
                file.is_ok_and(|file| {
                    let found = file.metadata();
                    found.is_ok_and(|found| changed(&found) < begin) && !leads_out(&file)
                })
            })
    }

    /// Notes that a build begins. A file that changes while make runs may or may not be in the build, so
    /// it counts as changed.
    fn begin(&self) -> Result<()> {
        match fs::remove_file(&self.path) {
            Err(error) if error.kind() != ErrorKind::NotFound => {
                return Err(error).attempt_on("remove", &self.path);
            }
            _ => {}
        }
        fs::write(&self.next, &self.made_of).attempt_on("write", &self.next)
    }

    /// Notes that the build is complete.
    fn end(&self) -> Result<()> {
        fs::rename(&self.next, &self.path).attempt_on("rename", &self.next)
    }
}

/// The command that makes something of a tree in a build directory. `arguments` choose compiler and
/// architecture.
pub(crate) fn make(tree: &Tree, directory: &Path, arguments: &[&str]) -> Command {
    let mut command = children::command("make", Ending::Asked);
    command
        .arg("-C")
        .arg(&tree.path)
        .arg(format!("O={}", directory.display()))
        .args(arguments)
        .env("LC_ALL", "C");
    for variable in MISLEADING {
        command.env_remove(variable);
    }
    command
}

/// Runs make; reports each object as its progress.
fn run(mut command: Command, log: &Path, log_file: &mut File, progress: Progress) -> Result<()> {
    let (output, input) = std::io::pipe().attempt(|| "make a pipe".to_owned())?;
    let errors = input.try_clone().attempt(|| "make a pipe".to_owned())?;
    command.stdin(Stdio::null()).stdout(input).stderr(errors);
    let mut running =
        Running::start(&mut command, Ending::Asked).attempt(|| "start make".to_owned())?;
    // The command holds the writing ends of the pipe: reading would not end before they close.
    drop(command);
    let mut made = 0;
    let mut said = Vec::new();
    for line in BufReader::new(output).split(b'\n') {
        let line = line.attempt(|| "read from make".to_owned())?;
        let line = String::from_utf8_lossy(&line).into_owned();
        writeln!(log_file, "{line}").attempt_on("write", log)?;
        if let Some(object) = object(&line) {
            made += 1;
            progress(&format!("compiling: {made} done, {object}"));
        }
        said.push(line);
    }
    let status = running.wait().attempt(|| "wait for make".to_owned())?;
    if status.success() {
        return Ok(());
    }
    let what = "building the kernel".to_owned();
    if said.iter().any(|line| is_about_space(line)) {
        return Err(Error::no_space(format!("complete {what}"), log));
    }
    Err(Error::Failed {
        what,
        lines: telling(&said),
        log: log.to_owned(),
    })
}

/// The object that make begins to build, in a line such as `  CC      mm/slub.o`.
fn object(line: &str) -> Option<&str> {
    let (step, object) = line.strip_prefix("  ")?.split_once(' ')?;
    STEPS.contains(&step).then(|| object.trim_start())
}

/// make's names of the steps that take time.
const STEPS: [&str; 6] = ["CC", "AS", "AR", "LD", "HOSTCC", "HOSTLD"];

/// The lines that describe an error, or else the last lines.
fn telling(said: &[String]) -> Vec<String> {
    let telling = said
        .iter()
        .filter(|line| ERRORS.iter().any(|mark| line.contains(mark)))
        .filter(|line| !line.contains("Waiting for unfinished jobs"));
    let telling: Vec<String> = telling.take(LINES).cloned().collect();
    match telling.is_empty() {
        true => said[said.len().saturating_sub(LINES)..].to_vec(),
        false => telling,
    }
}

/// Texts that mark the lines that describe an error.
const ERRORS: [&str; 4] = ["error:", "Error ", "undefined reference", "*** "];

#[cfg(test)]
mod tests {
    use std::time::{Duration, SystemTime};

    use super::*;
    use crate::cache::RUNS;

    #[test]
    fn a_copy_outlives_many_runs() {
        let scratch = tempfile::tempdir().unwrap();
        let cache = Cache::at(scratch.path().to_owned()).unwrap();
        let directory = cache.path("build");
        let image = directory.join(Arch::X86_64.image());
        fs::create_dir_all(image.parent().unwrap()).unwrap();
        for file in [&image, &directory.join("modules.order")] {
            fs::write(file, "").unwrap();
        }
        let built = Built {
            unchanged: None,
            directory,
            release: "6.12".into(),
            version: Version::V6_12,
            arch: Arch::X86_64,
            compiler: Compiler::Gcc,
            variant: Variant::Paravirt,
        };
        let (run, _used) = cache.new_run().unwrap();
        let copy = built.copy_to(run).unwrap();
        for _ in 0..=RUNS {
            copy.release_lock().unwrap();
            cache.new_run().unwrap();
        }
        assert!(copy.image().exists());
    }

    /// The times of changes have the grain of the kernel's clock, so each change waits for its next tick.
    #[test]
    fn a_record_holds_until_something_changes() {
        let tick = || thread::sleep(Duration::from_millis(20));
        let [tree, directory] = [(); 2].map(|()| tempfile::tempdir().unwrap());
        let (tree, directory) = (tree.path(), directory.path());
        let source = tree.join("kernel/lock.c");
        let image = directory.join("image");
        let products = [image.clone()];
        fs::create_dir_all(tree.join("kernel")).unwrap();
        fs::create_dir_all(tree.join(".git")).unwrap();
        fs::write(&source, "1").unwrap();
        let record = Record::new(directory, "gcc 12".to_owned());
        let make = || {
            tick();
            record.begin().unwrap();
            assert!(!record.holds(tree, &products));
            fs::write(&image, "an image").unwrap();
            tick();
            record.end().unwrap();
            assert!(record.holds(tree, &products));
            tick();
        };
        assert!(!record.holds(tree, &products));
        make();
        assert!(!Record::new(directory, "gcc 13".to_owned()).holds(tree, &products));
        fs::write(tree.join(".git/index"), "a commit changes no file").unwrap();
        assert!(record.holds(tree, &products));
        let changes: [&dyn Fn(); 6] = [
            // An older file in place of another, as `cp -a` and `mv` leave it.
            &|| {
                fs::write(&source, "2").unwrap();
                let old = File::options().write(true).open(&source).unwrap();
                old.set_modified(SystemTime::UNIX_EPOCH).unwrap();
            },
            &|| fs::write(tree.join("kernel/new.c"), "").unwrap(),
            &|| fs::remove_file(tree.join("kernel/new.c")).unwrap(),
            &|| fs::write(&image, "another image").unwrap(),
            &|| fs::remove_file(&image).unwrap(),
            &|| std::os::unix::fs::symlink("lock.c", tree.join("kernel/other.c")).unwrap(),
        ];
        for change in changes {
            change();
            assert!(!record.holds(tree, &products));
            make();
        }
        std::os::unix::fs::symlink("/etc", tree.join("elsewhere")).unwrap();
        tick();
        record.begin().unwrap();
        record.end().unwrap();
        assert!(!record.holds(tree, &products));
    }

    #[test]
    fn tells_objects_from_other_lines() {
        assert_eq!(object("  CC      mm/slub.o"), Some("mm/slub.o"));
        assert_eq!(
            object("  LD [M]  kernel/torture.ko"),
            Some("[M]  kernel/torture.ko")
        );
        assert_eq!(object("  CALL    scripts/checksyscalls.sh"), None);
        assert_eq!(object("  GEN     Makefile"), None);
        assert_eq!(object("make[1]: Entering directory 'x'"), None);
        assert_eq!(object("mm/slub.c:1:2: error: no"), None);
    }

    #[test]
    fn shows_errors_rather_than_the_end() {
        let said: Vec<String> = [
            "  CC      a.o",
            "a.c:2:1: warning: unused variable 'y'",
            "a.c:3:1: error: unknown type name 'x'",
            "make[2]: *** [Makefile:1: a.o] Error 1",
            "make[2]: *** Waiting for unfinished jobs....",
            "  CC      b.o",
        ]
        .map(str::to_owned)
        .into();
        assert_eq!(telling(&said), said[2..4]);
        assert_eq!(telling(&said[..1]), said[..1]);
    }
}
