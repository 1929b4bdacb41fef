//! `lockworks share`: man pages and completions for shells, made from the definitions of the options.
//! `make install` runs it.

use std::fs;
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Context, Result};
use clap::Command;
use clap_complete::Shell;

/// Write man pages and completions for shells.
#[derive(clap::Args)]
#[command(after_help = "Example:\n  lockworks share /usr/local/share")]
pub struct ShareArgs {
    /// The directory that has man/, bash-completion/, zsh/ and fish/, such as /usr/local/share
    directory: PathBuf,
}

/// Where each shell looks for completions.
const COMPLETIONS: [(Shell, &str); 3] = [
    (Shell::Bash, "bash-completion/completions/lockworks"),
    (Shell::Zsh, "zsh/site-functions/_lockworks"),
    (Shell::Fish, "fish/vendor_completions.d/lockworks.fish"),
];

/// Options that the short help leaves out would have no text in a man page.
fn with_rare_options(command: Command) -> Command {
    command
        .mut_args(|arg| arg.hide_short_help(false))
        .mut_subcommands(with_rare_options)
}

/// Runs the command: the man pages of `manual`, and completions for `command`.
pub fn command(args: &ShareArgs, manual: Command, mut command: Command) -> Result<ExitCode> {
    let write = || {
        let pages = args.directory.join("man/man1");
        fs::create_dir_all(&pages)?;
        clap_mangen::generate_to(with_rare_options(manual), &pages)?;
        for (shell, file) in COMPLETIONS {
            let path = args.directory.join(file);
            fs::create_dir_all(path.parent().expect("it is in a directory"))?;
            let mut script = Vec::new();
            clap_complete::generate(shell, &mut command, "lockworks", &mut script);
            fs::write(path, script)?;
        }
        std::io::Result::Ok(())
    };
    write().with_context(|| format!("cannot write below '{}'", args.directory.display()))?;
    Ok(ExitCode::SUCCESS)
}
