//! `lockworks check --optimize`: weaker memory orders with which a lock still passes.

use std::process::ExitCode;
use std::time::Instant;

use anyhow::{Result, ensure};
use itertools::Itertools;
use lockworks_check::mutants::{configurations, shows};
use lockworks_check::{Config, Limits, Memory, Optimized, WINDOW, loaded_source, optimize};
use serde::Serialize;

use lockworks_ui::output;
use lockworks_ui::progress;

use super::options::Options;
use super::report;

#[derive(Serialize)]
struct Report {
    #[serde(flatten)]
    config: Config,
    /// The configurations that the orders pass.
    passed: Vec<String>,
    #[serde(flatten)]
    found: Optimized,
    seconds: f64,
}

impl Report {
    fn text(&self) -> String {
        let config = &self.config;
        let lines = self.passed.iter().map(|passed| format!("  {passed}\n"));
        let passed: String = lines.collect();
        let Optimized {
            weaker,
            tried,
            undecided,
            searches,
            delays_cut,
        } = &self.found;
        let open = match undecided {
            0 => String::new(),
            n => format!(", {n} undecided, since a limit was reached"),
        };
        let summary = format!(
            "{}: {} of {tried} orders can be weaker{open}; {searches} searches, {:.1} s\n",
            config.lock,
            weaker.len(),
            self.seconds
        );
        let within = match delays_cut {
            true => format!(" within {WINDOW} delayed operations"),
            false => String::new(),
        };
        let size = match (loaded_source(), shows(config)) {
            (None, Some(size)) => report::seen(&size),
            (Some(path), _) => {
                let path = path.display();
                format!("finds mistakes that this names: lockworks check mutants --source {path}")
            }
            (None, None) => "finds less than more threads and acquisitions do".to_owned(),
        };
        if weaker.is_empty() {
            let needed = match undecided {
                0 => "Each is needed".to_owned(),
                n => format!("Of the {} that were decided, each is needed", tried - n),
            };
            return format!(
                "{summary}{needed} in one of these checks, in {}{within}:\n{passed}",
                config.memory
            );
        }
        let mut table = output::table(&["place", "function: operation", "order", "can be"]);
        for row in weaker {
            let (place, operation) = (
                format!("{}:{}", row.file, row.line),
                format!("{}: {}", row.function, row.operation),
            );
            table.add_row([&place, &operation, row.order, &row.weaker]);
        }
        format!(
            "{summary}{table}\n\
             All together pass, complete{within} and in {}:\n{passed}\
             Other models, sizes and options may need them. {config} {size}.\n",
            config.memory
        )
    }
}

/// Runs the command.
pub fn command(options: &Options, limits: &Limits) -> Result<ExitCode> {
    let output = &options.output;
    output.destination.check()?;
    let mut reports = Vec::new();
    for subject in options.subjects()? {
        let config = options.config(subject);
        ensure!(
            config.memory.is_weak(),
            "{} does not check that the lock orders the protected data, which orders are for; ask for \
             another --memory",
            config.memory
        );
        let mut configs = vec![config.clone()];
        // Trylocks and interruptions too, and whatever else the lock has small checks of.
        let others = configurations(subject.0)?.into_iter();
        configs.extend(
            others
                .filter(|other| other.memory != Memory::Sc)
                .map(|other| Config {
                    memory: config.memory,
                    ..other
                }),
        );
        configs.retain(|config| config.validate().is_ok());
        let configs: Vec<Config> = configs.into_iter().unique_by(Config::to_string).collect();
        let bar = progress::bar(1, "{bar:30} {pos}/{len} operations, {elapsed}");
        let begin = Instant::now();
        let found = optimize(&configs, limits, &mut |done, all| {
            bar.set_length(all as u64);
            bar.set_position(done as u64);
        })?;
        bar.finish_and_clear();
        reports.push(Report {
            config,
            passed: configs.iter().map(Config::to_string).collect(),
            found,
            seconds: begin.elapsed().as_secs_f64(),
        });
    }
    let text = match output.json {
        true => output::one_or_more(&reports)?,
        false => reports.iter().map(Report::text).collect(),
    };
    output.destination.write(&text)?;
    Ok(ExitCode::SUCCESS)
}
