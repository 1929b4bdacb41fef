//! Reads a machine description in TOML, checks it, and makes a [`Machine`] of it. `sources` puts the
//! description over those that it inherits; `relations` finds the relation of each pair of CPUs.

mod relations;
mod sources;

use std::collections::BTreeMap;
use std::ops::Range;
use std::path::Path;

use serde::Deserialize;
use toml::Spanned;

use crate::description::{Fault, table};
use crate::machine::{CoreType, Costs, Hops};
use crate::units::Units;
use crate::{Directory, Error, Kernel, Level, MACHINES, Machine, MemoryOrder, Value};
use lockworks_names::{nearest, unknown};

use relations::relations;
use sources::Sources;

/// The most core types of a machine, since the type of a CPU, or that it has none, is a byte.
const MAX_CORE_TYPES: usize = 255;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    name: String,
    title: String,
    memory_order: MemoryOrder,
    directory: Directory,
    kernel: Option<Kernel>,
    clock_ghz: Value,
    #[serde(default)]
    contested: BTreeMap<String, String>,
    #[serde(deserialize_with = "table")]
    topology: Topology,
    #[serde(deserialize_with = "table")]
    costs: Costs,
    #[serde(default)]
    core_type: Vec<FileCoreType>,
    relation: Spanned<Vec<Spanned<FileRelation>>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Topology {
    levels: Spanned<Vec<Level>>,
    numa: Spanned<String>,
    llc: Spanned<String>,
    #[serde(default)]
    hops: Vec<FileHops>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct FileHops {
    level: Spanned<String>,
    within: Spanned<String>,
    matrix: Spanned<Vec<Vec<u32>>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct FileCoreType {
    name: Spanned<String>,
    level: Spanned<String>,
    units: Spanned<Vec<usize>>,
    clock_ghz: Option<Value>,
    l1_cycles: Option<Value>,
    l2_cycles: Option<Value>,
    llc_cycles: Option<Value>,
    rmw_cycles: Option<Value>,
    return_cycles: Option<Value>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct FileRelation {
    share: Spanned<String>,
    hops: Option<u32>,
    cache_to_cache_ns: Value,
}

impl Machine {
    /// Reads the built-in machine of this name, or the description in this file. A path contains a `/`
    /// or ends in `.toml`.
    pub fn find(name_or_path: &str) -> Result<Machine, Error> {
        let (text, origin) = MACHINES.open(name_or_path, Path::new(""))?;
        Machine::parse(&text, &origin)
    }

    /// Checks a description. `origin` is the file that errors name; a path after `inherits` is taken
    /// from its directory.
    pub fn parse(text: &str, origin: &str) -> Result<Machine, Error> {
        let sources = Sources::load(text, origin)?;
        let machine = || {
            let file = File::deserialize(toml::Deserializer::from(sources.merged()?))?;
            build(file, &|span| sources.file_of(span))
        };
        machine().map_err(|fault| sources.error(fault))
    }
}

fn fault<T>(at: &Spanned<T>, message: impl Into<String>) -> Fault {
    Fault::at(at, message)
}

/// Checks a merged description. `file_of` returns the number of the file that bytes are in, 0 for the
/// one that inherits from all others.
fn build(file: File, file_of: &dyn Fn(&Range<usize>) -> usize) -> Result<Machine, Fault> {
    let Topology {
        levels,
        numa,
        llc,
        hops,
    } = file.topology;
    let core = core_level(&levels)?;
    let file_of_levels = file_of(&levels.span());
    let units = units(&levels)?;
    let levels = levels.into_inner();
    let numa = level(&levels, &numa)?;
    let llc = level(&levels, &llc)?;
    let hops = matrices(&levels, &units, hops)?;
    let (core_types, core_type_of) = core_types(&levels, &units, core, file.core_type)?;
    // A description may have other levels than the one that it inherits from.
    let mut relation = file.relation;
    relation.get_mut().retain(|relation| {
        file_of(&relation.span()) <= file_of_levels
            || scope(&levels, &relation.get_ref().share).is_ok()
    });
    let is_inherited = |span: &Range<usize>| file_of(span) > 0;
    let (relations, pairs) = relations(&levels, &units, &hops, relation, &is_inherited)?;
    Ok(Machine {
        name: file.name,
        title: file.title,
        memory_order: file.memory_order,
        directory: file.directory,
        kernel: file.kernel,
        clock_ghz: file.clock_ghz,
        contested: file.contested,
        costs: file.costs,
        core_types,
        core_type_of,
        levels,
        units,
        numa,
        llc,
        core,
        hops,
        relations,
        pairs,
    })
}

/// Checks the levels and returns the level of the cores.
fn core_level(levels: &Spanned<Vec<Level>>) -> Result<usize, Fault> {
    let names: Vec<&str> = levels.get_ref().iter().map(|l| l.name.as_str()).collect();
    for (i, name) in names.iter().enumerate() {
        if names[..i].contains(name) {
            return Err(fault(
                levels,
                format!("two levels are called `{name}`; rename one"),
            ));
        }
    }
    if names.contains(&"machine") {
        return Err(fault(
            levels,
            "`machine` is what holds all levels; call the level something else",
        ));
    }
    match names.as_slice() {
        [.., "core"] => Ok(names.len() - 1),
        [.., "core", "thread"] => Ok(names.len() - 2),
        _ => Err(fault(
            levels,
            "the innermost level must be `core`, or `core` and in it `thread`",
        )),
    }
}

fn units(levels: &Spanned<Vec<Level>>) -> Result<Units, Fault> {
    let units = Units::new(levels.get_ref()).map_err(|message| fault(levels, message))?;
    if units.cpus() == 1 {
        return Err(fault(levels, "one CPU has nobody to share a lock with"));
    }
    Ok(units)
}

/// Checks the core types and returns them, with the type of each CPU.
fn core_types(
    levels: &[Level],
    units: &Units,
    core: usize,
    types: Vec<FileCoreType>,
) -> Result<(Vec<CoreType>, Vec<Option<u8>>), Fault> {
    let mut out: Vec<CoreType> = Vec::new();
    let mut type_of = vec![None; units.cpus()];
    for given in types {
        let name = given.name.get_ref();
        if out.iter().any(|other| other.name == *name) {
            let message = format!("core type `{name}` is given twice; keep one");
            return Err(fault(&given.name, message));
        }
        if out.len() == MAX_CORE_TYPES {
            let message = format!("more than {MAX_CORE_TYPES} core types; merge some");
            return Err(fault(&given.name, message));
        }
        let of = level(levels, &given.level)?;
        if of > core {
            let message = "a core is of one type; name the level `core`, or one around it";
            return Err(fault(&given.level, message));
        }
        let level_name = &levels[of].name;
        for &unit in given.units.get_ref() {
            let count = units.count(Some(of));
            if unit >= count {
                let message = format!("there is no {level_name} {unit}; use 0 to {}", count - 1);
                return Err(fault(&given.units, message));
            }
            for cpu in units.cpus_of(Some(of), unit) {
                if type_of[cpu].replace(out.len() as u8).is_some() {
                    let message =
                        format!("{level_name} {unit} has a type already; name each unit once");
                    return Err(fault(&given.units, message));
                }
            }
        }
        let values = [
            ("clock_ghz", given.clock_ghz),
            ("l1_cycles", given.l1_cycles),
            ("l2_cycles", given.l2_cycles),
            ("llc_cycles", given.llc_cycles),
            ("rmw_cycles", given.rmw_cycles),
            ("return_cycles", given.return_cycles),
        ];
        out.push(CoreType {
            level: of,
            units: given.units.into_inner(),
            values: values
                .into_iter()
                .filter_map(|(key, value)| Some((key, value?)))
                .collect(),
            name: given.name.into_inner(),
        });
    }
    Ok((out, type_of))
}

fn level(levels: &[Level], name: &Spanned<String>) -> Result<usize, Fault> {
    levels
        .iter()
        .position(|l| l.name == *name.get_ref())
        .ok_or_else(|| {
            let names: Vec<&str> = levels.iter().map(|l| l.name.as_str()).collect();
            let name_given = name.get_ref();
            let meant = nearest(name_given, names.iter().copied());
            let allowed = || format!("the levels are {}", names.join(", "));
            fault(name, unknown("level", name_given, '`', meant, allowed))
        })
}

/// A level, or `None` for the machine.
fn scope(levels: &[Level], name: &Spanned<String>) -> Result<Option<usize>, Fault> {
    (name.get_ref() != "machine")
        .then(|| level(levels, name))
        .transpose()
}

/// The depth of a level in the machine.
fn depth(scope: Option<usize>) -> usize {
    scope.map_or(0, |l| l + 1)
}

fn matrices(levels: &[Level], units: &Units, hops: Vec<FileHops>) -> Result<Vec<Hops>, Fault> {
    let mut out: Vec<Hops> = Vec::new();
    for h in hops {
        let unit = level(levels, &h.level)?;
        let within = scope(levels, &h.within)?;
        if depth(within) > unit {
            let message = format!(
                "a {} has no {} inside; name a level outside of it",
                h.within.get_ref(),
                h.level.get_ref()
            );
            return Err(fault(&h.within, message));
        }
        if out.iter().any(|o| o.within == within) {
            let message = format!("a second matrix within `{}`; keep one", h.within.get_ref());
            return Err(fault(&h.within, message));
        }
        let mut sizes =
            (0..units.count(within)).map(|outer| units.inside(within, outer, unit).len());
        let size = sizes.next().unwrap_or_default();
        if sizes.any(|other| other != size) {
            let message = format!(
                "not every {} has {size} {}s, so one matrix does not fit all",
                h.within.get_ref(),
                h.level.get_ref()
            );
            return Err(fault(&h.within, message));
        }
        let matrix = h.matrix.get_ref();
        if matrix.len() != size || matrix.iter().any(|row| row.len() != size) {
            let message = format!(
                "the matrix must be {size} by {size}, one row for each {} in a {}",
                h.level.get_ref(),
                h.within.get_ref()
            );
            return Err(fault(&h.matrix, message));
        }
        for (i, row) in matrix.iter().enumerate() {
            if row[i] != 0 {
                let message = format!("entry {i},{i} of the matrix must be 0");
                return Err(fault(&h.matrix, message));
            }
            if let Some(j) = (0..size).find(|&j| row[j] != matrix[j][i]) {
                let message =
                    format!("the matrix must be symmetric; entries {i},{j} and {j},{i} differ");
                return Err(fault(&h.matrix, message));
            }
        }
        out.push(Hops {
            level: unit,
            within,
            matrix: h.matrix.into_inner(),
        });
    }
    Ok(out)
}

#[cfg(test)]
mod tests {
    use lockworks_properties::mistakes;
    use tempfile::TempDir;

    use super::*;
    use crate::builtin;

    pub(super) const SMALL: &str = r#"name = "small"
title = "Two sockets of two cores"
memory_order = "tso"
directory = "llc"
clock_ghz = { value = 2, mark = "E", source = "test" }
[topology]
levels = [{ name = "socket", count = 2 }, { name = "core", count = 2 }]
numa = "socket"
llc = "socket"
[[topology.hops]]
level = "socket"
within = "machine"
matrix = [[0, 1], [1, 0]]
[costs]
l1_cycles = { value = 4, mark = "E", source = "test" }
l2_cycles = { value = 4, mark = "E", source = "test" }
llc_cycles = { value = 4, mark = "E", source = "test" }
rmw_cycles = { value = 20, mark = "E", source = "test" }
dram_local_ns = { value = 4, mark = "E", source = "test" }
dram_remote_ns = { value = 4, mark = "E", source = "test" }
[[relation]]
share = "socket"
cache_to_cache_ns = { value = 40, low = 30, high = 50, mark = "E", source = "test" }
[[relation]]
share = "machine"
cache_to_cache_ns = { value = 100, mark = "E", source = "test" }
"#;

    /// The error after replacing `from` by `to`. The description must contain `from`.
    fn broken(from: &str, to: &str) -> String {
        assert!(SMALL.contains(from), "{from}");
        let error = Machine::parse(&SMALL.replacen(from, to, 1), "x.toml").unwrap_err();
        let error = error.to_string();
        assert!(!error.contains('\n'), "{error}");
        error
    }

    /// Writes a file and returns its path.
    fn write(directory: &TempDir, name: &str, text: &str) -> String {
        let path = directory.path().join(name);
        std::fs::write(&path, text).unwrap();
        path.to_str().unwrap().to_owned()
    }

    #[test]
    fn builtins_are_the_files() {
        let directory = concat!(env!("CARGO_MANIFEST_DIR"), "/../../machines");
        let mut files: Vec<_> = std::fs::read_dir(directory)
            .unwrap()
            .map(|f| f.unwrap().file_name().into_string().unwrap())
            .collect();
        let mut names: Vec<_> = builtin()
            .unwrap()
            .iter()
            .map(|b| format!("{}.toml", b.name))
            .collect();
        files.sort();
        names.sort();
        assert_eq!(files, names);
    }

    #[test]
    fn builtins_parse_and_survive_writing() {
        for b in builtin().unwrap() {
            let machine = Machine::find(b.name).unwrap();
            assert_eq!(machine.name, b.name);
            let again = Machine::parse(&machine.to_toml(), "again").unwrap();
            assert_eq!(again, machine);
        }
    }

    #[test]
    fn errors_say_where_and_what() {
        let wrong = r#"
-mark = "E"
+mark = "Q"
5: unknown variant `Q`, expected one of `E`, `S`
-memory_order = "tso"
+kernel = "new"
3: 'new' is no version of Linux; give one as 6.12
-memory_order = "tso"
+memory_order =
3: string values must be quoted
-llc = "socket"
+llc = "die"
9: unknown level `die`; the levels are socket, core
+llc = "soket"
9: unknown level `soket`; did you mean `socket`?
-numa = "socket"
+numa = "machine"
8: unknown level `machine`; the levels are socket, core
-share = "socket"
+share = "die"
22: unknown level `die`; the levels are socket, core
+share = "a\nb\t"
22: unknown level `a\nb\t`; the levels are socket, core
+share = "core"
21: no two CPUs stand in relation `core`
+share = "machine"
24: relation `machine` is given twice; keep one
-within = "machine"
+within = "core"
12: a core has no socket inside; name a level outside of it
-"core", count = 2
+"core", count = 0
7: invalid value: integer `0`, expected a whole number above 0
+"core", count = []
7: invalid value: an empty list, expected
+"core", count = [2, 2, 2]
7: `count` of `core` has 3 numbers for 2 units around it
+"core", count = 9999
7: more than 8192 CPUs; lower a count
-"core", count
+"cpu", count
7: the innermost level must be `core`, or `core` and in it `thread`
-[[0, 1], [1, 0]]
+[[0, 1]]
13: the matrix must be 2 by 2, one row for each socket in a machine
+[[0, 1], [2, 0]]
13: the matrix must be symmetric; entries 0,1 and 1,0 differ
+[[1, 1], [1, 0]]
13: entry 0,0 of the matrix must be 0
-low = 30
+low = 41
23: value 40 must lie between low 41 and high 50
+low = 60
23: low 60 is above high 50; exchange them
-[costs]
+[[costs]]
14: invalid type: sequence, expected a
-name = "socket", count
+name = "core", count
7: two levels are called `core`; rename one
-title = "Two sockets of two cores"
+name = "y"
2: duplicate key
-value = 100
+value = -1
26: value -1 must be a number above 0
+value = nan
26: value NaN must be a number above 0
-value = 2, mark = "E", source = "test"
+value = 2, mark = "E"
5: missing field `source`
-value = 2, mark = "E"
+value = "fast", mark = "E"
5: invalid type: string "fast", expected f64
-clock_ghz = { value = 2, mark = "E", source = "test" }
+clock_ghz = 2
5: invalid type: integer `2`, expected a value with mark and source, as {
-source = "test"
+source = ""
5: `source` is empty: say where the value comes from
-share = "machine"
+share = "machine"
+hops = 2
21: no relation covers CPUs 0 and 2; add a [[relation]] with share = "machine" and hops = 1
-title
+titel
2: unknown field `titel`, expected
"#;
        for (from, to, error) in mistakes(wrong.trim()) {
            let got = broken(&from, &to);
            assert!(
                got.starts_with(&format!("x.toml:{error}")),
                "\n got {got}\nwant {error}"
            );
        }
        assert!(
            broken("title = \"Two sockets of two cores\"\n", "").contains("missing field `title`")
        );
    }

    #[test]
    fn errors_of_core_types_say_where_and_what() {
        const SLOW: &str = r#"[[core_type]]
name = "slow"
level = "core"
units = [1, 3]
clock_ghz = { value = 1, mark = "E", source = "test" }
"#;
        let text = format!("{SMALL}{SLOW}");
        let machine = Machine::parse(&text, "x.toml").unwrap();
        assert_eq!((machine.clock_ghz(0), machine.clock_ghz(1)), (2.0, 1.0));
        assert_eq!((machine.rmw_ns(0), machine.rmw_ns(3)), (10.0, 20.0));
        let wrong = r#"
-units = [1, 3]
+units = [1, 4]
30: there is no core 4; use 0 to 3
+units = [1, 1]
30: core 1 has a type already; name each unit once
-level = "core"
-units
+level = "cor"
+units
29: unknown level `cor`; did you mean `core`?
-clock_ghz = { value = 1,
+dram_local_ns = { value = 1,
31: unknown field `dram_local_ns`
"#;
        for (from, to, error) in mistakes(wrong.trim()) {
            assert!(SLOW.contains(&from), "{from}");
            let text = format!("{SMALL}{}", SLOW.replace(&from, &to));
            let got = Machine::parse(&text, "x.toml").unwrap_err().to_string();
            assert!(
                got.starts_with(&format!("x.toml:{error}")),
                "\n got {got}\nwant {error}"
            );
        }
        let twice = format!("{SMALL}{SLOW}{}", SLOW.replace("[1, 3]", "[0]"));
        let error = Machine::parse(&twice, "x.toml").unwrap_err().to_string();
        assert_eq!(
            error,
            "x.toml:33: core type `slow` is given twice; keep one"
        );
        let threads = SMALL.replace(
            "{ name = \"core\", count = 2 }",
            "{ name = \"core\", count = 2 }, { name = \"thread\", count = 2 }",
        );
        let text = threads + &SLOW.replace("\"core\"", "\"thread\"");
        let error = Machine::parse(&text, "x.toml").unwrap_err().to_string();
        assert!(
            error.starts_with("x.toml:29: a core is of one type"),
            "{error}"
        );
    }

    #[test]
    fn a_matrix_needs_the_same_number_of_units_everywhere() {
        let text = SMALL.replace(
            "levels = [{ name = \"socket\", count = 2 }, { name = \"core\", count = 2 }]",
            "levels = [{ name = \"socket\", count = 2 }, { name = \"core\", count = [2, 3] }]",
        );
        assert_eq!(Machine::parse(&text, "x.toml").unwrap().cpus(), 5);
        let text = text.replace(
            "level = \"socket\"\nwithin = \"machine\"",
            "level = \"core\"\nwithin = \"socket\"",
        );
        assert_eq!(
            Machine::parse(&text, "x.toml").unwrap_err().to_string(),
            "x.toml:12: not every socket has 2 cores, so one matrix does not fit all"
        );
    }

    #[test]
    fn inherited_values_are_no_longer_measured_on_the_exact_part() {
        let directory = tempfile::tempdir().unwrap();
        let write = |name: &str, text: &str| write(&directory, name, text);
        let sibling = "dram_local_ns = { value = 4, mark = \"E\"";
        let base = SMALL.replace(sibling, &sibling.replace('E', "S"));
        let base = write("base.toml", &base);
        let middle = write(
            "middle.toml",
            "inherits = \"base.toml\"\nname = \"middle\"\n[costs]\n\
             l1_cycles = { value = 5, mark = \"E\", source = \"test\" }\n",
        );
        let heir = write(
            "heir.toml",
            "inherits = \"middle.toml\"\nname = \"heir\"\n[costs]\n\
             rmw_cycles = { value = 20, mark = \"E\", source = \"test\" }\n\
             [[relation]]\nshare = \"machine\"\n\
             cache_to_cache_ns = { value = 90, mark = \"E\", source = \"test\" }\n",
        );
        let marked = |path: &str, mark| -> Vec<String> {
            let machine = Machine::find(path).unwrap();
            let values = machine.values().into_iter();
            let values = values.filter(|(_, value, _)| value.mark == mark);
            values.map(|(key, ..)| key).collect()
        };
        assert_eq!(marked(&base, crate::Mark::I), [""; 0]);
        assert_eq!(marked(&middle, crate::Mark::E), ["l1_cycles"]);
        assert_eq!(
            marked(&heir, crate::Mark::E),
            ["rmw_cycles", "cache_to_cache.machine"]
        );
        assert_eq!(marked(&heir, crate::Mark::S), ["dram_local_ns"]);
        let machine = Machine::find(&heir).unwrap();
        let inherited = machine.values().into_iter();
        let inherited = inherited.filter(|(_, v, _)| v.mark == crate::Mark::I);
        // The source says from what a value is inferred.
        assert!(inherited.map(|(_, v, _)| &v.source).all(|s| s == "test"));
    }

    #[test]
    fn the_range_is_not_inherited() {
        let text = "inherits = \"oracle-x5-4\"\nname = \"x\"\n[costs]\n\
                    rmw_cycles = { value = 21, mark = \"R\", source = \"test\" }\n\
                    dram_remote_ns = { value = 300, mark = \"R\", source = \"test\" }\n";
        let mut machine = Machine::parse(text, "x.toml").unwrap();
        let remote = machine.value_mut("dram_remote_ns").unwrap();
        assert_eq!((remote.value, remote.high), (300.0, None));
        assert_eq!(machine.value_mut("rmw_cycles").unwrap().value, 21.0);
        assert_eq!(machine.value_mut("l1_cycles").unwrap().value, 4.0);
        assert_eq!((machine.name.as_str(), machine.cpus()), ("x", 144));
    }

    #[test]
    fn relations_are_inherited_one_by_one() {
        let parse = |relations: &str| {
            let text = format!("inherits = \"kunpeng-920\"\nname = \"far\"\n{relations}");
            Machine::parse(&text, "far.toml")
        };
        let relation = |share: &str, ns: u32| {
            format!(
                "[[relation]]\nshare = {share}\n\
                 cache_to_cache_ns = {{ value = {ns}, mark = \"I\", source = \"test\" }}\n"
            )
        };
        let base = Machine::find("kunpeng-920").unwrap();
        let mut slower = base.clone();
        for (key, ns) in [("machine.2", 400.0), ("socket", 90.0)] {
            let value = slower.value_mut(&format!("cache_to_cache.{key}")).unwrap();
            (value.value, value.mark, value.source) = (ns, crate::Mark::I, "test".into());
            (value.low, value.high) = (None, None);
        }
        slower.name = "far".into();
        slower.value_mut("clock_ghz").unwrap().mark = crate::Mark::I;
        let far = "\"machine\"\nhops = 2";
        let given = relation(far, 400) + &relation("\"socket\"", 90);
        assert_eq!(parse(&given).unwrap(), slower);

        // Inherited relations cover all pairs, so this one has no effect.
        let error = parse(&relation("\"machine\"", 400)).unwrap_err();
        assert_eq!(
            error.to_string(),
            "far.toml:3: no two CPUs stand in relation `machine`; check it against levels and \
             hops, or remove it"
        );
        let twice = relation(far, 400) + &relation(far, 300);
        let error = parse(&twice).unwrap_err().to_string();
        assert!(
            error.starts_with("far.toml:7: relation `machine.2` is given twice"),
            "{error}"
        );

        // Inherited relations of other levels than these are left out.
        let levels = "[topology]\nlevels = [{ name = \"socket\", count = 2 }, \
                      { name = \"core\", count = 4 }]\nnuma = \"socket\"\nllc = \"socket\"\n\
                      hops = []\n";
        let machine = parse(&(levels.to_owned() + &relation("\"machine\"", 400))).unwrap();
        let values = machine.relations().iter();
        let values: Vec<_> = values
            .map(|r| (r.name.as_str(), r.cache_to_cache.value))
            .collect();
        assert_eq!(values, [("socket", 80.0), ("machine", 400.0)]);
        let last = machine.cpus() - 1;
        assert_eq!((machine.relation(0, 1), machine.relation(0, last)), (0, 1));
        let error = parse(levels).unwrap_err().to_string();
        assert!(
            error.contains("no relation covers CPUs 0 and 4; add a [[relation]]"),
            "{error}"
        );
    }

    #[test]
    fn errors_tell_the_file_that_is_inherited() {
        let directory = tempfile::tempdir().unwrap();
        let write = |name: &str, text: &str| write(&directory, name, text);
        let base = write(
            "base.toml",
            &SMALL.replace("llc = \"socket\"", "llc = \"die\""),
        );
        let child = write("child.toml", "inherits = \"base.toml\"\nname = \"child\"\n");
        let error = Machine::find(&child).unwrap_err().to_string();
        assert!(
            error.starts_with(&format!("{base}:9: unknown level `die`")),
            "{error}"
        );

        write("base.toml", SMALL);
        assert_eq!(Machine::find(&child).unwrap().name, "child");
        write("child.toml", "\ninherits = \"base.toml\"\nllc = 1\n");
        let error = Machine::find(&child).unwrap_err().to_string();
        assert!(
            error.starts_with(&format!("{child}:3: unknown field `llc`")),
            "{error}"
        );

        write("child.toml", "inherits = \"child.toml\"\n");
        let error = Machine::find(&child).unwrap_err().to_string();
        assert!(error.contains("child.toml:1: "), "{error}");
        assert!(error.contains("inherits from itself"), "{error}");
    }

    #[test]
    fn unknown_machines() {
        assert_eq!(
            Machine::find("epyc-9654-nps3").unwrap_err().to_string(),
            "unknown machine 'epyc-9654-nps3'; did you mean 'epyc-9654-nps4'? \
             `lockworks machines` lists them"
        );
        assert_eq!(
            Machine::find("zzz").unwrap_err().to_string(),
            "unknown machine 'zzz'; `lockworks machines` lists them"
        );
        let error = Machine::find("no/such.toml").unwrap_err().to_string();
        assert!(error.starts_with("no/such.toml: cannot read"), "{error}");
    }
}

#[cfg(test)]
mod properties {
    use lockworks_properties::{names_a_line, nearly};
    use proptest::prelude::*;

    use super::tests::SMALL;
    use super::*;
    use crate::builtin;

    /// A text is refused in one line that names the place, or what it describes can be written and
    /// read again.
    fn refused_or_kept(text: &str) -> Result<(), TestCaseError> {
        match Machine::parse(text, "x.toml") {
            Ok(machine) => {
                let again = Machine::parse(&machine.to_toml(), "again.toml");
                prop_assert_eq!(again.map_err(|e| e.to_string()), Ok(machine));
                Ok(())
            }
            Err(error) => names_a_line(&error.to_string()),
        }
    }

    fn builtin_texts() -> Vec<&'static str> {
        builtin().unwrap().iter().map(|b| b.text).collect()
    }

    proptest! {
        #[test]
        fn any_text_is_refused_or_kept(text in "\\PC*|.*") {
            refused_or_kept(&text)?;
        }

        #[test]
        fn a_changed_description_is_refused_or_kept(text in nearly(vec![SMALL], 3)) {
            refused_or_kept(&text)?;
        }

        #[test]
        fn a_changed_builtin_is_refused_or_kept(text in nearly(builtin_texts(), 1)) {
            refused_or_kept(&text)?;
        }

        /// A fit puts any number into a description.
        #[test]
        fn numbers_are_read_as_they_were_written(number in prop::num::f64::POSITIVE) {
            let mut machine = Machine::parse(SMALL, "x.toml").unwrap();
            let value = machine.value_mut("rmw_cycles").unwrap();
            value.value = number;
            refused_or_kept(&machine.to_toml())?;
            let again = Machine::parse(&machine.to_toml(), "again.toml").unwrap();
            prop_assert_eq!(again, machine);
        }
    }
}
