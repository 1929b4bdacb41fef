//! `lockworks machines`: list, show and measure machine descriptions.

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::bail;
use lockworks_machine::{Machine, Mark, Value, builtin, measure};
use serde_json::{Value as Json, json};

use crate::validate::{self, ValidateArgs};
use lockworks_ui::output::{Destination, table};
use lockworks_ui::progress::measure_with_progress;
use lockworks_ui::terminal;

/// List machine descriptions, show one, or measure this machine.
#[derive(clap::Args)]
#[command(
    args_conflicts_with_subcommands = true,
    after_help = "\
Examples:
  lockworks machines                     the machines that can be simulated
  lockworks machines epyc-9654-nps4      its topology and values, with sources
  lockworks machines this -o here.toml   measure this machine
  lockworks machines this --root server -o server.toml
                                         describe a colleague's machine from its files,
                                         server/proc/cpuinfo and server/sys/devices/system

`this` takes up to a minute; nothing else should run meanwhile. You can edit the file that it \
writes, and give its path to every option that takes a machine. Lockworks cannot measure at which \
place requests for a cache line are ordered (`directory`), so it chooses the usual place of the \
CPU's vendor."
)]
pub struct MachinesArgs {
    #[command(subcommand)]
    pub command: Option<MachinesCommand>,

    /// A machine from the list, the path of a TOML file, or `this` to measure this machine
    /// [default: list the machines]
    #[arg(value_name = "NAME|PATH|this")]
    machine: Option<String>,

    /// With `this`: do not measure, but describe the machine whose system files are below this folder,
    /// with costs that are usual
    #[arg(long, value_name = "FOLDER", requires = "machine")]
    root: Option<PathBuf>,

    /// Print JSON instead of text
    #[arg(long)]
    json: bool,

    #[command(flatten)]
    pub destination: Destination,
}

/// Further commands about a machine.
#[derive(clap::Subcommand)]
pub enum MachinesCommand {
    Validate(ValidateArgs),
}

/// Runs the subcommand.
pub fn run(args: &MachinesArgs) -> anyhow::Result<ExitCode> {
    if let Some(MachinesCommand::Validate(args)) = &args.command {
        return validate::command(args);
    }
    args.destination.check()?;
    if args.root.is_some() && args.machine.as_deref() != Some("this") {
        bail!("--root describes the machine of its files; type `machines this --root FOLDER`");
    }
    let text = match (args.machine.as_deref(), args.json) {
        (None, false) => list()?,
        (None, true) => pretty(&list_json()?),
        (Some("this"), json) => {
            let measure::Measured { machine, warnings } = match &args.root {
                Some(root) => measure::of_files(root)?,
                None => measure_with_progress()?,
            };
            for warning in &warnings {
                terminal::warn(warning);
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
    args.destination.write(&text)?;
    Ok(ExitCode::SUCCESS)
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
    builtin()?.iter().map(|b| Machine::find(b.name)).collect()
}

/// The number of values that have each mark.
fn marks(machine: &Machine) -> [(Mark, usize); 4] {
    let values = machine.values();
    Mark::ALL.map(|mark| {
        (
            mark,
            values.iter().filter(|(_, v, _)| v.mark == mark).count(),
        )
    })
}

fn legend() -> String {
    let meanings = Mark::ALL.map(|mark| format!("{mark} {}", mark.meaning()));
    terminal::prose(&format!("Marks: {}.", meanings.join(", "))) + "\n"
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
    let out = format!(
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
    let mut out = terminal::fitted(&out);
    for hops in machine.hops() {
        let level = machine.scope_name(Some(hops.level));
        let within = machine.scope_name(hops.within);
        out += &format!("hops from {level} to {level} within a {within}:\n");
        for row in &hops.matrix {
            let row: Vec<String> = row.iter().map(u32::to_string).collect();
            out += &format!("  {}\n", row.join(" "));
        }
    }
    for core_type in machine.core_types() {
        let units: Vec<String> = core_type.units.iter().map(usize::to_string).collect();
        let line = format!(
            "core type {}: {} {}\n",
            core_type.name,
            machine.scope_name(Some(core_type.level)),
            units.join(", ")
        );
        out += &terminal::fitted(&line);
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
    let core_types = machine.core_types().iter().map(|core_type| {
        json!({
            "name": core_type.name,
            "level": machine.scope_name(Some(core_type.level)),
            "units": core_type.units,
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
            "core_types": core_types.collect::<Json>(),
        },
        "values": values.collect::<Json>(),
        "marks": marks_json(machine),
    })
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    fn args(machine: Option<&str>, json: bool, output: &Path) -> MachinesArgs {
        MachinesArgs {
            command: None,
            machine: machine.map(str::to_owned),
            root: None,
            json,
            destination: Destination {
                output: Some(output.to_owned()),
            },
        }
    }

    /// The text that the subcommand writes.
    fn written(machine: Option<&str>, json: bool) -> String {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("out");
        run(&args(machine, json, &file)).unwrap();
        std::fs::read_to_string(file).unwrap()
    }

    #[test]
    fn the_list_has_every_machine() {
        let (text, json) = (written(None, false), written(None, true));
        let json: Json = serde_json::from_str(&json).unwrap();
        assert_eq!(json.as_array().unwrap().len(), builtin().unwrap().len());
        for machine in builtin().unwrap() {
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
    fn a_machine_is_shown_with_its_core_types() {
        let text = written(Some("core-i9-14900k"), false);
        let levels = "1 socket x 12 cluster x (8 x 1, 4 x 4) core x (8 x 2, 16 x 1) thread";
        assert!(text.contains(levels), "{text}");
        assert!(
            text.contains("core type efficient: cluster 8, 9, 10, 11\n"),
            "{text}"
        );
        assert!(text.contains("core_type.efficient.clock_ghz"), "{text}");
        let json = written(Some("core-i9-14900k"), true);
        let json: Json = serde_json::from_str(&json).unwrap();
        assert_eq!(json["topology"]["levels"][2]["count"][8], 4);
        assert_eq!(json["topology"]["core_types"][0]["units"][0], 8);
    }

    #[test]
    fn an_unknown_machine_leaves_no_file() {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("out");
        let error = run(&args(Some("oracle"), false, &file)).unwrap_err();
        assert!(error.to_string().contains("did you mean 'oracle-x5-4'?"));
        assert_eq!(std::fs::read_dir(&directory).unwrap().count(), 0);
    }

    #[test]
    fn a_measured_machine_can_be_simulated() {
        let machine = Machine::parse(&written(Some("this"), false), "this.toml").unwrap();
        assert!(machine.cpus() > 1);
    }
}
