//! Files of Debian's packages, which are not installed.

use std::path::Path;

use super::cache::{Cache, Progress};
use super::children::{self, Ending};
use super::error::Result;
use super::tools::{self, Tool};

/// The release that the packages are of.
pub(crate) const SUITE: &str = "bookworm";
const MIRROR: &str = "http://deb.debian.org/debian";

const TOOLS: [Tool; 1] = [tools::program("mmdebstrap", "mmdebstrap")];

/// An archive of what mmdebstrap makes of these options.
pub(crate) fn archive(
    options: &[&str],
    archive: &Path,
    cache: &Cache,
    progress: Progress,
) -> Result<()> {
    tools::provide(&TOOLS, cache, progress)?;
    let mut bootstrap = children::command("mmdebstrap", Ending::Asked);
    bootstrap.args(options).arg(SUITE).arg(archive).arg(MIRROR);
    tools::run_logged(bootstrap, "mmdebstrap", &cache.path("mmdebstrap.log"))
}
