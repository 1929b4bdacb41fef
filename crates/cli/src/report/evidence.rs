//! The evidence: what commands find, with its figures.

use std::ffi::OsString;
use std::path::Path;

use anyhow::{Context, Error, Result};
use clap::Args;
use indicatif::ProgressBar;

use crate::options;
use lockworks_ui::plot::figure::{Data, Draw, Figure};
use lockworks_ui::progress;

/// A part of the evidence.
pub struct Part {
    /// The command, as a user would type it.
    pub command: String,
    /// The figures of its results.
    pub figures: Vec<Figure>,
    /// The name of a file, and the results as it has them. None: there are no results.
    pub data: Option<(String, String)>,
    /// Why it failed, in a line.
    pub failure: Option<String>,
}

/// The results of a command, as figures and as a text, and why it counts as failed if it does.
pub type Found<R> = (R, String, Option<String>);

/// What a replay says of the program, or why it says nothing.
pub enum Prediction<R> {
    /// Its results.
    Answer(R),
    /// Why there is none: for example the check of the recording, which is not to be believed.
    Refused(String),
}

impl<R: Draw> Draw for Prediction<R> {
    fn figures(&self, command: &str) -> Vec<Figure> {
        match self {
            Self::Answer(results) => results.figures(command),
            Self::Refused(why) => {
                let id = command.split(' ').nth(1).unwrap_or("replay");
                vec![Figure {
                    id: id.to_owned(),
                    title: format!("No {id}"),
                    text: why.clone(),
                    command: command.to_owned(),
                    chart: None,
                    data: Data::of(&[why], &[("why", &|why| why.as_str().into())]),
                }]
            }
        }
    }
}

/// The parts that are complete, and what those that follow need.
pub struct Evidence<'a> {
    /// The directory for files that later commands read.
    pub directory: &'a Path,
    /// The program that is judged, with its arguments. Empty: none is.
    program: &'a [OsString],
    bar: ProgressBar,
    /// The parts.
    pub parts: Vec<Part>,
}

impl<'a> Evidence<'a> {
    /// No evidence yet, but `parts` parts to come.
    pub fn new(directory: &'a Path, program: &'a [OsString], parts: usize) -> Self {
        let template = "{msg} [{wide_bar}] {pos}/{len} parts, {elapsed}";
        Self {
            directory,
            program,
            bar: progress::bar(parts, template),
            parts: Vec::new(),
        }
    }

    /// The results of a command, which `file` is to have as a text. None: there are none. The program follows
    /// a command that ends with `--`.
    pub fn add<Options: Args, Results: Draw>(
        &mut self,
        file: &str,
        what: &'static str,
        command: &str,
        run: impl FnOnce(Options) -> Result<Found<Results>>,
    ) -> Option<Results> {
        self.bar.set_message(what);
        self.bar.tick();
        tracing::info!(part = what, "begins");
        let (results, data, failure) = match self.parse(command).and_then(run) {
            Ok((results, text, failure)) => (Some(results), Some((file.to_owned(), text)), failure),
            Err(error) => (None, None, Some(first_line(&error))),
        };
        let command = self.shown(command);
        let figures = results.as_ref().map(|results| results.figures(&command));
        self.parts.push(Part {
            command,
            figures: figures.unwrap_or_default(),
            data,
            failure,
        });
        self.bar.inc(1);
        results
    }

    /// Adds a figure of several results, beside the last one.
    pub fn show(&mut self, figure: Option<Figure>) {
        if let Some(part) = self.parts.last_mut() {
            part.figures.extend(figure);
        }
    }

    fn parse<Options: Args>(&self, command: &str) -> Result<Options> {
        let words = shlex::split(command).context("the command ends within quotes")?;
        let has_program = words.last().is_some_and(|word| word == "--");
        let program = self.program.iter().filter(|_| has_program).cloned();
        options::parse(words.into_iter().map(OsString::from).chain(program))
    }

    /// The command as a user would type it: without the directory for files of this run.
    fn shown(&self, command: &str) -> String {
        let directory = format!("{}/", self.directory.display());
        let command = format!("lockworks {}", command.replace(&directory, ""));
        if !command.ends_with(" --") {
            return command;
        }
        let words = self.program.iter().map(|word| word.to_string_lossy());
        let words: Vec<_> = words.collect();
        let quoted = shlex::try_join(words.iter().map(AsRef::as_ref));
        format!("{command} {}", quoted.unwrap_or_else(|_| words.join(" ")))
    }
}

/// The first line of an error's message, without the words that announce what a program has printed.
fn first_line(error: &Error) -> String {
    let text = format!("{error:#}");
    let mut lines = text.lines().filter(|line| !line.trim().is_empty());
    let first = lines.next().unwrap_or_default();
    first
        .split_once("; it printed:")
        .map_or(first, |(why, _)| why)
        .to_owned()
}
