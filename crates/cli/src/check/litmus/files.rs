//! `lockworks check litmus FILE.litmus...`: judges litmus files by the axioms of memory models.

use std::fs;
use std::process::ExitCode;

use anyhow::Result;
use lockworks_check::{Allowed, LitmusError, LitmusFile, Memory, Verdict, WitnessRow};
use serde::Serialize;

use crate::output;

#[derive(Serialize)]
struct FileRow {
    file: String,
    name: String,
    memory: Memory,
    verdict: Verdict,
    /// The number of final states in which the condition holds, and of others.
    satisfying: usize,
    others: usize,
    /// What the file documents for this model.
    documented: Option<Verdict>,
    agrees: Option<bool>,
    data_race: bool,
    mixed_accesses: bool,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    witness: Vec<WitnessRow>,
}

impl FileRow {
    fn of(file: &str, test: &LitmusFile, memory: Memory, show: bool) -> Result<Self, LitmusError> {
        let Allowed {
            satisfying,
            others,
            has_race,
            has_mixed_accesses,
            ref witness,
        } = test.judge(memory)?;
        let verdict = Verdict::of(satisfying, others);
        let documented = test.documented(memory);
        Ok(Self {
            file: file.to_owned(),
            name: test.name().to_owned(),
            memory,
            verdict,
            satisfying,
            others,
            documented,
            agrees: documented.map(|documented| documented == verdict),
            data_race: has_race,
            mixed_accesses: has_mixed_accesses,
            witness: if show { witness.clone() } else { Vec::new() },
        })
    }

    fn documented(&self) -> String {
        match (self.agrees, self.documented) {
            (Some(true), _) => "as documented".to_owned(),
            (_, Some(documented)) => format!("DIFFERS: {documented}"),
            (_, None) => "not documented".to_owned(),
        }
    }

    fn flags(&self) -> String {
        let flags = [
            (self.data_race, "data race"),
            (self.mixed_accesses, "mixed accesses"),
        ];
        let set: Vec<_> = flags
            .iter()
            .filter(|(is, _)| *is)
            .map(|(_, f)| *f)
            .collect();
        set.join(", ")
    }
}

/// Judges files by models.
pub(super) fn command(
    files: &[String],
    models: &[Memory],
    show: bool,
    json: bool,
) -> Result<ExitCode> {
    let mut rows = Vec::new();
    let mut refused = 0;
    for file in files {
        match judge(file, models, show) {
            Ok(judged) => rows.extend(judged),
            Err(refusal) => {
                refused += 1;
                eprintln!("lockworks: {refusal}");
            }
        }
    }
    let text = match json {
        true => output::json(&rows)?,
        false if rows.is_empty() => String::new(),
        false => table(&rows) + &witnesses(&rows),
    };
    output::print(&text)?;
    let agree = rows.iter().all(|row| row.agrees != Some(false));
    Ok(ExitCode::from(match (refused, agree) {
        (0, true) => 0,
        (0, false) => 1,
        _ => 2,
    }))
}

fn judge(file: &str, models: &[Memory], show: bool) -> Result<Vec<FileRow>, String> {
    let text = fs::read(file).map_err(|error| format!("{file}: cannot read it: {error}"))?;
    let text = String::from_utf8_lossy(&text);
    let test = LitmusFile::parse(&text, file).map_err(|error| error.to_string())?;
    models
        .iter()
        .map(|model| FileRow::of(file, &test, *model, show))
        .collect::<Result<_, _>>()
        .map_err(|error| error.to_string())
}

fn table(rows: &[FileRow]) -> String {
    let header = [
        "test", "memory", "verdict", "holds", "fails", "result", "flags",
    ];
    let mut table = output::table(&header);
    for row in rows {
        table.add_row([
            row.name.clone(),
            row.memory.to_string(),
            row.verdict.to_string(),
            row.satisfying.to_string(),
            row.others.to_string(),
            row.documented(),
            row.flags(),
        ]);
    }
    let count = |agrees| rows.iter().filter(|row| row.agrees == agrees).count();
    format!(
        "{table}\n\n{} verdicts: {} as documented, {} differ, {} not documented\n",
        rows.len(),
        count(Some(true)),
        count(Some(false)),
        count(None)
    )
}

/// The events of an execution for which the condition of a test holds.
fn witnesses(rows: &[FileRow]) -> String {
    let mut text = String::new();
    for row in rows.iter().filter(|row| !row.witness.is_empty()) {
        let mut table = output::table(&["thread", "line", "event", "reads from"]);
        for event in &row.witness {
            table.add_row([
                format!("P{}", event.thread),
                event.line.to_string(),
                event.event.clone(),
                event.reads_from.clone().unwrap_or_default(),
            ]);
        }
        text += &format!(
            "\n{} in {}: the condition holds\n{table}\n",
            row.name, row.memory
        );
    }
    text
}
