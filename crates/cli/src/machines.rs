//! `lockworks machines`: list, show and measure machine descriptions.

use std::fs;
use std::io::{self, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context, anyhow, bail};
use comfy_table::{ContentArrangement, Table, presets};
use indicatif::ProgressBar;
use lockworks_machine::{Machine, Mark, Value, builtin, measure};
use serde_json::{Value as Json, json};
use tempfile::NamedTempFile;

/// List machine descriptions, show one, or measure this machine.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  lockworks machines                        the machines that can be simulated
  lockworks machines epyc-9654-nps4         its topology and values, with their sources
  lockworks machines this -o here.toml      measure this machine, which takes up to a minute;
                                            nothing else should run meanwhile

A file written by `this` can be edited and given wherever a machine is named. Where requests for a
line are ordered (`directory`) cannot be measured and goes by the CPU's vendor.")]
pub struct Args {
    /// A machine from the list, a TOML file, or `this` to measure the machine it runs on
    #[arg(value_name = "NAME|PATH|this")]
    machine: Option<String>,

    /// Print JSON
    #[arg(long)]
    json: bool,

    /// Write to FILE, all or nothing, instead of standard output
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
}

/// Runs the subcommand.
pub fn run(args: &Args) -> anyhow::Result<ExitCode> {
    // First, so that a measurement is not made for a file that cannot be written.
    let output = Output::open(args.output.as_deref())?;
    let text = match (args.machine.as_deref(), args.json) {
        (None, false) => list()?,
        (None, true) => pretty(&list_json()?),
        (Some("this"), json) => {
            let measure::Measured { machine, warnings } = measure_with_progress()?;
            for warning in &warnings {
                eprintln!("lockworks: warning: {warning}");
            }
            if json {
                let mut described = machine_json(&machine);
                described["warnings"] = json!(warnings);
                pretty(&described)
            } else {
                machine.to_toml()
            }
        }
        (Some(name), false) => show(&Machine::find(name)?),
        (Some(name), true) => pretty(&machine_json(&Machine::find(name)?)),
    };
    output.write(&text)?;
    Ok(ExitCode::SUCCESS)
}

fn measure_with_progress() -> anyhow::Result<measure::Measured> {
    // Draws nothing unless standard error is a terminal.
    let bar = ProgressBar::new(0);
    let measured = measure::this_machine(|done, total| {
        bar.set_length(total as u64);
        bar.set_position(done as u64);
    });
    bar.finish_and_clear();
    Ok(measured?)
}

/// Standard output, or a file that appears under its name only when it is complete.
enum Output {
    Stdout,
    File(NamedTempFile, PathBuf),
}

impl Output {
    fn open(path: Option<&Path>) -> anyhow::Result<Output> {
        let Some(path) = path else {
            return Ok(Output::Stdout);
        };
        // Write through a link instead of replacing it.
        let path = fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
        if path.exists() && !path.is_file() {
            bail!(
                "{}: not a regular file; leave out -o to write to standard output",
                path.display()
            );
        }
        let directory = match path.parent() {
            Some(parent) if parent != Path::new("") => parent,
            _ => Path::new("."),
        };
        let file = tempfile::Builder::new()
            .permissions(fs::Permissions::from_mode(0o666))
            .tempfile_in(directory)
            .map_err(|e| anyhow!("{}: cannot write: {e}", path.display()))?;
        Ok(Output::File(file, path))
    }

    fn write(self, text: &str) -> anyhow::Result<()> {
        match self {
            Output::Stdout => match io::stdout().write_all(text.as_bytes()) {
                // The reader has seen enough, as `head` does.
                Err(e) if e.kind() == io::ErrorKind::BrokenPipe => Ok(()),
                written => written.context("cannot write to standard output"),
            },
            Output::File(mut file, path) => file
                .write_all(text.as_bytes())
                .and_then(|()| file.persist(&path).map_err(io::Error::from))
                .map(|_| ())
                .map_err(|e| anyhow!("{}: cannot write: {e}", path.display())),
        }
    }
}

fn pretty(json: &Json) -> String {
    format!("{json:#}\n")
}

/// The name that a type has in descriptions.
fn word(value: &impl serde::Serialize) -> String {
    let json = json!(value);
    json.as_str().unwrap_or_default().to_owned()
}

fn builtins() -> Result<Vec<Machine>, lockworks_machine::Error> {
    builtin().iter().map(|b| Machine::find(b.name)).collect()
}

/// How many values have each mark.
fn marks(machine: &Machine) -> [(Mark, usize); 4] {
    let values = machine.values();
    Mark::ALL.map(|mark| {
        (
            mark,
            values.iter().filter(|(_, v, _)| v.mark == mark).count(),
        )
    })
}

fn table(header: &[&str]) -> Table {
    let mut table = Table::new();
    table
        .load_style(presets::UTF8_HORIZONTAL_ONLY)
        .set_content_arrangement(ContentArrangement::Dynamic)
        .set_header(header);
    table
}

fn legend() -> String {
    let meanings = Mark::ALL.map(|mark| format!("{mark} {}", mark.meaning()));
    format!("Marks: {}.\n", meanings.join(", "))
}

fn list() -> anyhow::Result<String> {
    let mut table = table(&[
        "machine",
        "what it is",
        "CPUs",
        "nodes",
        "order",
        "E",
        "S",
        "I",
        "R",
    ]);
    for machine in builtins()? {
        let mut row = vec![
            machine.name.clone(),
            machine.title.clone(),
            machine.cpus().to_string(),
            machine.nodes().to_string(),
            word(&machine.memory_order),
        ];
        row.extend(marks(&machine).map(|(_, count)| count.to_string()));
        table.add_row(row);
    }
    Ok(format!("{}\n{}", table.trim_fmt(), legend()))
}

fn list_json() -> anyhow::Result<Json> {
    let machines = builtins()?;
    let rows = machines.iter().map(|machine| {
        json!({
            "name": machine.name,
            "title": machine.title,
            "cpus": machine.cpus(),
            "nodes": machine.nodes(),
            "memory_order": machine.memory_order,
            "marks": marks_json(machine),
        })
    });
    Ok(rows.collect())
}

fn marks_json(machine: &Machine) -> Json {
    marks(machine)
        .into_iter()
        .map(|(mark, count)| (mark.to_string(), json!(count)))
        .collect()
}

fn show(machine: &Machine) -> String {
    let levels: Vec<String> = machine
        .levels()
        .iter()
        .map(|level| format!("{} {}", level.count, level.name))
        .collect();
    let mut out = format!(
        "{}: {}\n{} CPUs: {}\nNUMA node: {} ({}); last-level cache: {} ({})\n\
         memory order: {}; requests ordered at: {}\n",
        machine.name,
        machine.title,
        machine.cpus(),
        levels.join(" x "),
        machine.scope_name(Some(machine.numa_level())),
        machine.nodes(),
        machine.scope_name(Some(machine.llc_level())),
        machine.units(machine.llc_level()),
        word(&machine.memory_order),
        word(&machine.directory),
    );
    for hops in machine.hops() {
        let level = machine.scope_name(Some(hops.level));
        let within = machine.scope_name(hops.within);
        out += &format!("hops from {level} to {level} within a {within}:\n");
        for row in &hops.matrix {
            let row: Vec<String> = row.iter().map(u32::to_string).collect();
            out += &format!("  {}\n", row.join(" "));
        }
    }
    let mut table = table(&["key", "value", "range", "unit", "mark", "source"]);
    for (key, value, unit) in machine.values() {
        table.add_row([
            key,
            value.value.to_string(),
            range(value),
            unit.to_owned(),
            value.mark.to_string(),
            match &value.note {
                Some(note) => format!("{} ({note})", value.source),
                None => value.source.clone(),
            },
        ]);
    }
    out + &format!("{}\n{}", table.trim_fmt(), legend())
}

fn range(value: &Value) -> String {
    match (value.low, value.high) {
        (None, None) => String::new(),
        (low, high) => format!(
            "{}-{}",
            low.unwrap_or(value.value),
            high.unwrap_or(value.value)
        ),
    }
}

fn machine_json(machine: &Machine) -> Json {
    let values = machine.values().into_iter().map(|(key, value, unit)| {
        let mut row = json!({ "key": key, "unit": unit });
        if let (Json::Object(row), Json::Object(value)) = (&mut row, json!(value)) {
            row.extend(value);
        }
        row
    });
    let hops = machine.hops().iter().map(|hops| {
        json!({
            "level": machine.scope_name(Some(hops.level)),
            "within": machine.scope_name(hops.within),
            "matrix": hops.matrix,
        })
    });
    json!({
        "name": machine.name,
        "title": machine.title,
        "memory_order": machine.memory_order,
        "directory": machine.directory,
        "cpus": machine.cpus(),
        "cores": machine.cores(),
        "nodes": machine.nodes(),
        "topology": {
            "levels": machine.levels(),
            "numa": machine.scope_name(Some(machine.numa_level())),
            "llc": machine.scope_name(Some(machine.llc_level())),
            "hops": hops.collect::<Json>(),
        },
        "values": values.collect::<Json>(),
        "marks": marks_json(machine),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn args(machine: Option<&str>, json: bool, output: &Path) -> Args {
        Args {
            machine: machine.map(str::to_owned),
            json,
            output: Some(output.to_owned()),
        }
    }

    /// What the subcommand writes.
    fn written(machine: Option<&str>, json: bool) -> String {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("out");
        run(&args(machine, json, &file)).unwrap();
        assert_eq!(fs::read_dir(&directory).unwrap().count(), 1);
        fs::read_to_string(file).unwrap()
    }

    #[test]
    fn the_list_has_every_machine() {
        let (text, json) = (written(None, false), written(None, true));
        let json: Json = serde_json::from_str(&json).unwrap();
        assert_eq!(json.as_array().unwrap().len(), builtin().len());
        for machine in builtin() {
            assert!(text.contains(machine.name));
        }
    }

    #[test]
    fn a_machine_is_shown_with_all_its_values() {
        let machine = Machine::find("epyc-9654-nps4").unwrap();
        let text = written(Some("epyc-9654-nps4"), false);
        let json = written(Some("epyc-9654-nps4"), true);
        let json: Json = serde_json::from_str(&json).unwrap();
        assert_eq!(json["cpus"], 384);
        assert_eq!(json["topology"]["hops"][0]["matrix"][0][3], 2);
        assert_eq!(
            json["values"].as_array().unwrap().len(),
            machine.values().len()
        );
        for (key, ..) in machine.values() {
            assert!(text.contains(&key), "{key}");
        }
    }

    #[test]
    fn bad_input_is_one_line_and_leaves_no_file() {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("out");
        let error = run(&args(Some("oracle"), false, &file)).unwrap_err();
        assert!(error.to_string().contains("did you mean `oracle-x5-4`?"));
        assert_eq!(fs::read_dir(&directory).unwrap().count(), 0);
        let error = run(&args(None, false, directory.path())).unwrap_err();
        assert!(error.to_string().contains("not a regular file"));
        let error = run(&args(None, false, &file.join("no"))).unwrap_err();
        assert!(!error.to_string().contains('\n'));
    }
}
