//! Programs that must be installed, and the Debian packages that bring them.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};

use lockworks_programs::children::{self, Ending, Running};

use crate::cache::{Cache, Progress};
use crate::error::{Attempt, Error, Result, is_about_space, is_full};

/// A program or file that must be installed, and the Debian package that brings it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Tool {
    presence: Presence,
    package: &'static str,
}

/// How the presence of a tool is found out.
#[derive(Clone, Copy, Debug)]
enum Presence {
    Program(&'static str),
    File(&'static str),
    Check(fn() -> bool),
}

/// A program, by its name, that a package brings.
pub(crate) const fn program(name: &'static str, package: &'static str) -> Tool {
    let presence = Presence::Program(name);
    Tool { presence, package }
}

/// A file, by its path, that a package brings.
pub(crate) const fn file(path: &'static str, package: &'static str) -> Tool {
    let presence = Presence::File(path);
    Tool { presence, package }
}

/// A tool that is present if a function says so.
pub(crate) const fn checked(is_present: fn() -> bool, package: &'static str) -> Tool {
    let presence = Presence::Check(is_present);
    Tool { presence, package }
}

impl Tool {
    fn is_present(&self) -> bool {
        match self.presence {
            Presence::Program(name) => find(name).is_some(),
            Presence::File(path) => Path::new(path).exists(),
            Presence::Check(is_present) => is_present(),
        }
    }
}

/// Checks that all tools are installed. Root installs the missing ones.
pub(crate) fn provide(tools: &[Tool], cache: &Cache, progress: Progress) -> Result<()> {
    let missing = missing(tools);
    if missing.is_empty() {
        return Ok(());
    }
    let list = missing.join(" ");
    if nix::unistd::geteuid().is_root() {
        progress(&format!("installing {list}"));
        install(&missing, cache, progress)?;
    }
    match self::missing(tools).is_empty() {
        true => Ok(()),
        false => Err(Error::Refused(format!(
            "programs are missing; install the Debian packages {list}"
        ))),
    }
}

fn missing(tools: &[Tool]) -> Vec<&'static str> {
    let mut packages: Vec<&str> = tools
        .iter()
        .filter(|tool| !tool.is_present())
        .map(|tool| tool.package)
        .collect();
    packages.sort_unstable();
    packages.dedup();
    packages
}

/// Installs Debian packages, which needs root. Only one process at a time does, since others would not
/// get apt's lock.
pub(crate) fn install(packages: &[&str], cache: &Cache, progress: Progress) -> Result<()> {
    let _lock = cache.lock("packages", progress)?;
    let log = cache.path("apt.log");
    let apt = |arguments: &[&str]| -> Result<()> {
        let mut command = children::command("apt-get", Ending::Asked);
        command
            .env("DEBIAN_FRONTEND", "noninteractive")
            .args(arguments);
        run_logged(command, &format!("apt-get {}", arguments.join(" ")), &log)
    };
    let arguments: Vec<&str> = ["install", "-y", "-q", "--no-install-recommends"]
        .into_iter()
        .chain(packages.iter().copied())
        .collect();
    apt(&arguments)
        .or_else(|_| apt(&["update", "-q"]))
        .and_then(|()| apt(&arguments))
        .map_err(|error| not_had(packages, &mirrors(), error))
}

/// The error for packages that cannot be had from a place, with apt's own reason.
pub(crate) fn not_had(packages: &[&str], from: &str, error: Error) -> Error {
    let (lines, log) = match error {
        Error::Failed { lines, log, .. } => (lines, log),
        other => return other,
    };
    // apt's lines of errors begin with E, and the last one sums up.
    let is_error = |line: &&String| line.starts_with("E: ");
    let said = lines.iter().find(is_error).or_else(|| lines.last());
    let said = said.map_or("", |line| line.trim_start_matches("E: "));
    Error::Refused(format!(
        "cannot get the Debian package {} from {from}: {said}; install it by hand, or correct the sources of \
         packages or the network and try again (log: {})",
        packages.join(" "),
        log.display()
    ))
}

/// The mirrors and suites from which this machine's apt gets packages, in words.
pub(crate) fn mirrors() -> String {
    let mut targets = std::process::Command::new("apt-get");
    targets.args(["indextargets", "--format", "$(RELEASE) of $(REPO_URI)"]);
    let output = targets.output().map(|output| output.stdout);
    let output = output.unwrap_or_default();
    let text = String::from_utf8_lossy(&output);
    let mut found: Vec<&str> = text.lines().collect();
    found.sort_unstable();
    found.dedup();
    match found.is_empty() {
        true => "apt, which has no sources of packages".to_owned(),
        false => found.join(", "),
    }
}

/// Runs a command, with its output in the file `log`.
pub(crate) fn run_logged(mut command: std::process::Command, what: &str, log: &Path) -> Result<()> {
    let file = fs::File::create(log).attempt_on("write", log)?;
    let errors = file.try_clone().attempt_on("write", log)?;
    command
        .env("LC_ALL", "C")
        .stdin(std::process::Stdio::null())
        .stdout(file)
        .stderr(errors);
    let status = Running::start(&mut command, Ending::Asked)
        .and_then(|mut running| running.wait())
        .attempt(|| format!("start {what}"))?;
    if status.success() {
        return Ok(());
    }
    let bytes = fs::read(log).unwrap_or_default();
    let text = String::from_utf8_lossy(&bytes);
    if is_about_space(&text) || is_full(log) {
        return Err(Error::no_space(format!("complete {what}"), log));
    }
    let from = text.lines().count().saturating_sub(5);
    Err(Error::Failed {
        what: what.to_owned(),
        lines: text.lines().skip(from).map(str::to_owned).collect(),
        log: log.to_owned(),
    })
}

/// Finds a program on the path or in the directories of root's path.
pub(crate) fn find(program: &str) -> Option<PathBuf> {
    let path = env::var_os("PATH").unwrap_or_default();
    env::split_paths(&path)
        .chain(["/usr/sbin".into(), "/sbin".into()])
        .map(|directory| directory.join(program))
        .find(|candidate| candidate.is_file())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_full_device_is_told_from_other_failures() {
        let scratch = tempfile::tempdir().unwrap();
        let fail = |said: &str| {
            let mut shell = std::process::Command::new("sh");
            shell.args(["-c", &format!("echo 'tar: a/b: {said}'; exit 2")]);
            let log = scratch.path().join("log");
            run_logged(shell, "unpacking x.tar", &log).unwrap_err()
        };
        let full = fail("Cannot write: No space left on device").to_string();
        let directory = scratch.path().display();
        let begin = format!("cannot complete unpacking x.tar: no space left in {directory}, ");
        assert!(full.starts_with(&begin), "{full}");
        assert_eq!(full.lines().count(), 1, "{full}");
        let other = fail("Cannot open: Permission denied");
        assert!(matches!(other, Error::Failed { .. }), "{other}");
    }

    #[test]
    fn a_package_that_cannot_be_had_is_named_with_its_source() {
        let failed = Error::Failed {
            what: "apt-get install".to_owned(),
            lines: ["Reading package lists...", "E: Unable to locate package x"]
                .map(str::to_owned)
                .into(),
            log: "/c/apt.log".into(),
        };
        let said = not_had(&["x"], "bookworm of http://m/debian/", failed).to_string();
        assert_eq!(
            said,
            "cannot get the Debian package x from bookworm of http://m/debian/: Unable to locate package x; \
             install it by hand, or correct the sources of packages or the network and try again \
             (log: /c/apt.log)"
        );
        assert!(!mirrors().is_empty());
    }

    #[test]
    fn names_the_package() {
        let tools = [
            program("sh", "dash"),
            file("/etc/passwd", "base-passwd"),
            checked(|| true, "anything"),
            program("no-such-program", "no-such-package"),
            file("/no/such/file", "no-such-library"),
            checked(|| false, "no-such-tool"),
        ];
        assert_eq!(
            missing(&tools),
            ["no-such-library", "no-such-package", "no-such-tool"]
        );
    }
}
