//! `lockworks check litmus FILE.litmus...`: judges litmus files by the axioms of memory models, and by
//! the search.

use std::fs;
use std::process::ExitCode;

use anyhow::Result;
use lockworks_check::{
    Allowed, CompiledFiles, LitmusError, LitmusFile, Memory, Searched, Verdict, WINDOW, WitnessRow,
};
use serde::Serialize;

use lockworks_ui::output;

/// How files are judged.
pub(super) struct How<'a> {
    /// None: each file by the model that it is written for.
    pub(super) models: &'a [Memory],
    /// Also by the search.
    pub(super) search: bool,
    /// Show an execution for which the condition holds.
    pub(super) show: bool,
}

impl How<'_> {
    fn models(&self, file: &LitmusFile) -> Vec<Memory> {
        match self.models {
            [] => vec![file.usual_model()],
            some => some.to_vec(),
        }
    }
}

/// The final states that the search finds of a file.
#[derive(Serialize)]
struct SearchRow {
    /// None: there is a data race, or the search cannot run the file.
    verdict: Option<Verdict>,
    data_race: bool,
    /// Why the search cannot run the file.
    refused: Option<&'static str>,
    /// The number of final states that only the search finds, and of those that only the axioms allow.
    more: usize,
    fewer: usize,
    agrees: Option<bool>,
    /// The bound on delayed operations may have left out some.
    delays_cut: bool,
}

impl SearchRow {
    fn of(searched: &Searched, allowed: &Allowed) -> Self {
        let (more, fewer) = searched.differences(allowed);
        Self {
            verdict: searched.verdict(),
            data_race: *searched == Searched::Race,
            refused: match searched {
                Searched::Refused(reason) => Some(reason),
                _ => None,
            },
            more,
            fewer,
            agrees: searched.agrees(allowed),
            delays_cut: matches!(searched, Searched::States { within: true, .. }),
        }
    }

    fn text(&self) -> String {
        if let Some(reason) = self.refused {
            return format!("not run: {reason}");
        }
        let found = self
            .verdict
            .map_or("data race".to_owned(), |v| v.to_string());
        let differs = match (self.agrees, self.more, self.fewer) {
            (Some(false), 0, 0) => ", DIFFERS".to_owned(),
            (Some(false), more, 0) => format!(", DIFFERS: {more} more"),
            (Some(false), 0, fewer) => format!(", DIFFERS: {fewer} fewer"),
            (Some(false), more, fewer) => format!(", DIFFERS: {more} more, {fewer} fewer"),
            _ => String::new(),
        };
        match self.delays_cut {
            true => format!("{found}{differs}, within {WINDOW} delayed operations"),
            false => found + &differs,
        }
    }
}

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
    #[serde(skip_serializing_if = "Option::is_none")]
    search: Option<SearchRow>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    witness: Vec<WitnessRow>,
}

impl FileRow {
    fn of(
        test: &LitmusFile,
        memory: Memory,
        show: bool,
        search: Option<&dyn Fn() -> Searched>,
    ) -> Result<Self, LitmusError> {
        let allowed = test.judge(memory)?;
        let search = search.map(|search| SearchRow::of(&search(), &allowed));
        let Allowed {
            satisfying,
            others,
            has_race,
            has_mixed_accesses,
            witness,
            ..
        } = allowed;
        let verdict = Verdict::of(satisfying, others);
        let documented = test.documented(memory);
        Ok(Self {
            file: test.file().to_owned(),
            name: test.name().to_owned(),
            memory,
            verdict,
            satisfying,
            others,
            documented,
            agrees: documented.map(|documented| documented == verdict),
            data_race: has_race,
            mixed_accesses: has_mixed_accesses,
            search,
            witness: if show { witness } else { Vec::new() },
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
pub(super) fn command(paths: &[String], how: &How, json: bool) -> Result<ExitCode> {
    let mut files = Vec::new();
    let mut refused = 0;
    let mut refuse = |refusal: String| {
        refused += 1;
        eprintln!("lockworks: {refusal}");
    };
    for path in paths {
        match read(path) {
            Ok(file) => files.push(file),
            Err(refusal) => refuse(refusal),
        }
    }
    let compiled = match how.search {
        true => Some(CompiledFiles::compile(&files, |file| how.models(file))?),
        false => None,
    };
    let mut rows = Vec::new();
    for (number, file) in files.iter().enumerate() {
        match judge(file, number, compiled.as_ref(), how) {
            Ok(judged) => rows.extend(judged),
            Err(refusal) => refuse(refusal.to_string()),
        }
    }
    let text = match json {
        true => output::json(&rows)?,
        false if rows.is_empty() => String::new(),
        false => table(&rows) + &witnesses(&rows),
    };
    output::print(&text)?;
    let agrees = |row: &FileRow| {
        let search = row.search.as_ref().and_then(|search| search.agrees);
        row.agrees != Some(false) && search != Some(false)
    };
    Ok(ExitCode::from(match (refused, rows.iter().all(agrees)) {
        (0, true) => 0,
        (0, false) => 1,
        _ => 2,
    }))
}

fn read(path: &str) -> Result<LitmusFile, String> {
    let text = fs::read(path).map_err(|error| format!("{path}: cannot read it: {error}"))?;
    let text = String::from_utf8_lossy(&text);
    LitmusFile::parse(&text, path).map_err(|error| error.to_string())
}

fn judge(
    file: &LitmusFile,
    number: usize,
    compiled: Option<&CompiledFiles>,
    how: &How,
) -> Result<Vec<FileRow>, LitmusError> {
    let row = |model: &Memory| {
        let search = compiled.map(|compiled| || compiled.search(number, *model));
        let search = search
            .as_ref()
            .map(|search| search as &dyn Fn() -> Searched);
        FileRow::of(file, *model, how.show, search)
    };
    how.models(file).iter().map(row).collect()
}

fn table(rows: &[FileRow]) -> String {
    let is_searched = rows.iter().any(|row| row.search.is_some());
    let mut header = vec![
        "test", "memory", "verdict", "holds", "fails", "result", "flags",
    ];
    if is_searched {
        header.push("search");
    }
    let mut table = output::table(&header);
    for row in rows {
        let mut cells = vec![
            row.name.clone(),
            row.memory.to_string(),
            row.verdict.to_string(),
            row.satisfying.to_string(),
            row.others.to_string(),
            row.documented(),
            row.flags(),
        ];
        cells.extend(row.search.as_ref().map(SearchRow::text));
        table.add_row(cells);
    }
    let count = |agrees| rows.iter().filter(|row| row.agrees == agrees).count();
    let mut text = format!(
        "{table}\n\n{} verdicts: {} as documented, {} differ, {} not documented\n",
        rows.len(),
        count(Some(true)),
        count(Some(false)),
        count(None)
    );
    if is_searched {
        let searches = rows.iter().filter_map(|row| row.search.as_ref());
        let agreements: Vec<_> = searches.map(|search| search.agrees).collect();
        let count = |agrees| agreements.iter().filter(|of| **of == agrees).count();
        text += &format!(
            "{} searches: {} agree with the axioms, {} differ, {} not run\n",
            agreements.len(),
            count(Some(true)),
            count(Some(false)),
            count(None)
        );
    }
    text
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
