//! Archives of Debian packages that are not installed on this machine.

use std::path::Path;

use lockworks_programs::children::{self, Ending};

use super::cache::{Cache, Progress};
use super::error::Result;
use super::tools::{self, Tool};

/// The Debian release of the packages.
pub(crate) const SUITE: &str = "bookworm";
const MIRROR: &str = "http://deb.debian.org/debian";

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
    tools::run_logged(bootstrap, "mmdebstrap", &cache.path("mmdebstrap.log"))
}
