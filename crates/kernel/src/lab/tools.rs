//! The programs that building and booting take, as Debian packages.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};

use super::arch::Arch;
use super::busybox;
use super::cache::{Cache, Progress};
use super::children::{self, Ending, Running};
use super::error::{Attempt, Error, Result};

/// Something that must be there, and the package that brings it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Tool {
    file: &'static str,
    package: &'static str,
}

pub(crate) const fn tool(file: &'static str, package: &'static str) -> Tool {
    Tool { file, package }
}

/// To build a kernel.
const BUILDING: [Tool; 11] = [
    tool("make", "make"),
    tool("gcc", "gcc"),
    tool("flex", "flex"),
    tool("bison", "bison"),
    tool("bc", "bc"),
    tool("perl", "perl"),
    tool("tar", "tar"),
    tool("xz", "xz-utils"),
    tool("depmod", "kmod"),
    tool("setpriv", "util-linux"),
    tool("/usr/include/gelf.h", "libelf-dev"),
];

/// To boot one.
const BOOTING: [Tool; 1] = [tool("setpriv", "util-linux")];

/// Sees that all is there that building a kernel takes.
pub fn provide_to_build(arch: Arch, cache: &Cache, progress: Progress) -> Result<()> {
    provide(&[&BUILDING, arch.building()].concat(), cache, progress)
}

/// Sees that all is there that building a kernel and booting it takes.
pub fn provide_to_boot(arch: Arch, cache: &Cache, progress: Progress) -> Result<()> {
    let all = [&BOOTING, arch.booting(), &BUILDING, arch.building()].concat();
    provide(&all, cache, progress)?;
    busybox::provide(arch, cache, progress)
}

/// Sees that all are there. Root gets those that are missing installed.
pub(crate) fn provide(tools: &[Tool], cache: &Cache, progress: Progress) -> Result<()> {
    let missing = missing(tools);
    if missing.is_empty() {
        return Ok(());
    }
    let list = missing.join(" ");
    if nix::unistd::geteuid().is_root() {
        progress(&format!("installing {list}"));
        install(&missing, cache)?;
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
        .filter(|tool| !is_there(tool))
        .map(|tool| tool.package)
        .collect();
    packages.sort_unstable();
    packages.dedup();
    packages
}

fn is_there(tool: &Tool) -> bool {
    match tool.file {
        "busybox" => busybox::installed().is_ok(),
        path if path.starts_with('/') => Path::new(path).exists(),
        program => find(program).is_some(),
    }
}

/// Installs Debian packages. Takes root.
pub(crate) fn install(packages: &[&str], cache: &Cache) -> Result<()> {
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
}

/// Runs a command; all it says goes into `log`.
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
    let text = fs::read_to_string(log).unwrap_or_default();
    let from = text.lines().count().saturating_sub(5);
    Err(Error::Failed {
        what: what.to_owned(),
        lines: text.lines().skip(from).map(str::to_owned).collect(),
        log: log.to_owned(),
    })
}

/// A program on the path, or where only root's path leads.
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
    fn names_the_package() {
        let tools = [
            tool("sh", "dash"),
            tool("no-such-program", "no-such-package"),
        ];
        assert_eq!(missing(&tools), ["no-such-package"]);
    }
}
