//! `lockworks kernel series`.

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Result;
use lockworks_ui::{interruption, output, terminal};

use super::figures;
use crate::{Author, Series, Tree, patches, write_patches};

/// Write Lockworks as a patch series to a kernel's source tree.
#[derive(clap::Args)]
#[command(after_help = HELP)]
pub struct SeriesArgs {
    /// Top directory of a Linux source tree, which does not change
    tree: PathBuf,

    /// Directory for the patches, made if it is missing
    #[arg(short, long, value_name = "DIR")]
    output: PathBuf,

    /// Author of the patches [default: the author that git knows in the tree]
    #[arg(long, value_name = "NAME <MAIL>")]
    from: Option<String>,

    /// Add the author's Signed-off-by
    #[arg(short, long)]
    signoff: bool,

    /// Write a cover letter too, 0000-cover-letter.patch
    #[arg(long)]
    cover: bool,

    /// Put the figures of FILE, the output of `kernel torture --json`, into the cover letter; may be
    /// given several times
    #[arg(long, value_name = "FILE", requires = "cover")]
    results: Vec<PathBuf>,
}

const HELP: &str = "\
Writes a patch for each step, by `git format-patch`. Patches of an earlier run are replaced. `git \
am` applies them, with the same result as `lockworks kernel apply`. A cover letter changes no file: \
`git am` needs --empty=drop to pass over it (git 2.35 or later).

Examples:
  lockworks kernel series linux-6.12 -o patches --signoff
  git -C linux-6.12 am \"$PWD\"/patches/*.patch
  lockworks kernel torture --lock stock,cna,hq --json -o figures.json
  lockworks kernel series linux-6.12 -o patches --cover --results figures.json
  git -C linux-6.12 am --empty=drop \"$PWD\"/patches/*.patch";

/// Runs the command.
pub fn command(args: &SeriesArgs) -> Result<ExitCode> {
    let series = Series::embedded()?;
    let tree = Tree::open(&args.tree, &series)?;
    let author = Author::of(tree.root(), args.from.as_deref())?;
    let figures = match args.cover {
        true => Some(figures::text(&args.results)?),
        false => None,
    };
    let files = patches(&series, &tree, &author, args.signoff, figures.as_deref())?;
    {
        let _whole = interruption::put_off();
        write_patches(&files, &args.output)?;
    }
    if !tree.is_tested() {
        terminal::warn(&format!(
            "the series is not tested with Linux {}; build and torture it before you use it",
            tree.version()
        ));
    }
    let names = files.iter();
    let names = names.map(|file| format!("{}\n", args.output.join(&file.name).display()));
    output::print(&names.collect::<String>())?;
    Ok(ExitCode::SUCCESS)
}
