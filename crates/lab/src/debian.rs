//! Archives of Debian packages that are not installed on this machine.

use std::fs;
use std::path::Path;

use lockworks_programs::children::{self, Ending};

use crate::cache::{Cache, Progress};
use crate::error::{Attempt, Result};
use crate::tools::{self, Tool};

/// The Debian release of the packages.
pub(crate) const SUITE: &str = "bookworm";
const MIRROR: &str = "http://deb.debian.org/debian";

/// Releases with newer kernels than the one of this machine may have.
const NEWER: [&str; 3] = ["trixie-backports", "forky", "sid"];
const KEYS: &str = "/usr/share/keyrings/debian-archive-keyring.gpg";

const TOOLS: [Tool; 1] = [tools::program("mmdebstrap", "mmdebstrap")];

/// Makes an archive with mmdebstrap and these options.
pub(crate) fn archive(
    options: &[&str],
    archive: &Path,
    cache: &Cache,
    progress: Progress,
) -> Result<()> {
    tools::provide(&TOOLS, cache, progress)?;
    let mut bootstrap = children::command("mmdebstrap", Ending::Asked);
    bootstrap.args(options).arg(SUITE).arg(archive).arg(MIRROR);
    let made = tools::run_logged(bootstrap, "mmdebstrap", &cache.path("mmdebstrap.log"));
    let packages = options
        .iter()
        .find_map(|option| option.strip_prefix("--include="));
    made.map_err(|error| {
        tools::not_had(
            &[packages.unwrap_or_default()],
            &format!("{SUITE} of {MIRROR}"),
            error,
        )
    })
}

/// The releases of [`NEWER`] and their mirror, in words.
pub(crate) fn newer() -> String {
    format!("{} of {MIRROR}", NEWER.join(", "))
}

/// Downloads a package of a newer release into a directory. The package lists are in the cache, so
/// those of this machine do not change.
pub(crate) fn download_newer(package: &str, directory: &Path, cache: &Cache) -> Result<()> {
    let own = cache.path("apt");
    for part in ["lists/partial", "archives/partial"] {
        let part = own.join(part);
        fs::create_dir_all(&part).attempt_on("make the directory", &part)?;
    }
    let sources = own.join("sources.list");
    let lines = NEWER.map(|suite| format!("deb [signed-by={KEYS}] {MIRROR} {suite} main\n"));
    fs::write(&sources, lines.concat()).attempt_on("write", &sources)?;
    let apt = |arguments: &[&str]| {
        let mut command = children::command("apt-get", Ending::Asked);
        let options = [
            format!("Dir::Etc::SourceList={}", sources.display()),
            "Dir::Etc::SourceParts=/dev/null".to_owned(),
            format!("Dir::State::Lists={}", own.join("lists").display()),
            format!("Dir::Cache={}", own.display()),
            "Dir::Cache::Archives=archives".to_owned(),
            "Acquire::Languages=none".to_owned(),
            "Acquire::IndexTargets::deb::DEP-11::DefaultEnabled=false".to_owned(),
            "APT::Sandbox::User=root".to_owned(),
        ];
        for option in options {
            command.args(["-o", &option]);
        }
        command.args(arguments).current_dir(directory);
        let what = format!("apt-get {} ({})", arguments.join(" "), NEWER.join(", "));
        tools::run_logged(command, &what, &cache.path("apt.log"))
    };
    apt(&["update", "-q"])?;
    apt(&["download", "-q", package])
}
