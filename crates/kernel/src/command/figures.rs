//! Figures for the cover letter of the series, from the output of `lockworks kernel torture --json`.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, ensure};
use serde::Deserialize;
use serde::de::IgnoredAny;

/// The longest line of a letter.
const WIDTH: usize = 75;

/// The results of one lock, as far as the letter has them.
#[derive(Deserialize)]
struct Figures {
    verdict: String,
    lock: String,
    operations: Option<u64>,
    fairness: Option<f64>,
    counters: BTreeMap<String, u64>,
    release: String,
    arch: String,
    config: String,
    #[serde(rename = "type")]
    kind: String,
    nodes: u32,
    cpus: u32,
    emulation: String,
    writers: u32,
    seconds: f64,
    rounds: Vec<IgnoredAny>,
    command: Vec<String>,
}

/// The figures of all files as a text, or the command that takes figures.
pub fn text(files: &[PathBuf]) -> Result<String> {
    if files.is_empty() {
        return Ok("\
No figures were taken. This command takes them, and the option --results of
lockworks kernel series puts them here:

  lockworks kernel torture --lock stock,qspinlock,cna,hq --json -o FILE
"
        .to_owned());
    }
    let mut text = "\
Figures of locktorture in emulated guests. Emulation has no NUMA cost.
Operations can therefore be compared only with those of the stock slow path
in the same guest. They are the median of the rounds. Remote is the share
of hand-offs to another node. Fairness is at most the given value: 0.5 is
fair, 1 unfair.
"
    .to_owned();
    for file in files {
        text += &guest(&read(file)?);
    }
    Ok(text)
}

/// Reads the results of a guest, one for each lock.
fn read(file: &Path) -> Result<Vec<Figures>> {
    let name = file.display();
    let text = fs::read_to_string(file).with_context(|| format!("cannot read {name}"))?;
    let locks = parse(&text).with_context(|| {
        format!("{name} is not what `lockworks kernel torture --json` prints; run it again")
    })?;
    ensure!(!locks.is_empty(), "{name} has no results; run it again");
    if let Some(bad) = locks.iter().find(|lock| lock.verdict != "pass") {
        anyhow::bail!(
            "{name} has a run of {} that failed; figures of a failed run say nothing",
            bad.lock
        );
    }
    Ok(locks)
}

/// An array has several locks, an object has one.
fn parse(text: &str) -> serde_json::Result<Vec<Figures>> {
    match serde_json::from_str(text)? {
        value @ serde_json::Value::Array(_) => serde_json::from_value(value),
        value => Ok(vec![serde_json::from_value(value)?]),
    }
}

/// The results of a guest, as a table under what they were measured with.
fn guest(locks: &[Figures]) -> String {
    let first = &locks[0];
    let mut text = format!(
        "\nLinux {} ({}, {}), {} CPUs on {} nodes,\nemulation {}, {} writers, rounds of {} s: {}\n\n",
        first.release,
        first.arch,
        first.config,
        first.cpus,
        first.nodes,
        first.emulation,
        first.writers,
        first.seconds,
        first.rounds.len(),
    );
    let stock = locks.iter().find(|lock| lock.lock == "stock");
    let stock = stock.and_then(|lock| lock.operations);
    text += &row([
        "lock",
        "type",
        "operations",
        "of stock",
        "remote",
        "fairness",
    ]
    .map(str::to_owned));
    for lock in locks {
        let shown = |value: Option<String>| value.unwrap_or_else(|| "-".to_owned());
        let share = lock.operations.zip(stock.filter(|stock| *stock > 0));
        text += &row([
            lock.lock.clone(),
            lock.kind.clone(),
            shown(lock.operations.map(|operations| operations.to_string())),
            shown(share.map(|(own, stock)| format!("{:.2}", own as f64 / stock as f64))),
            shown(remote_share(&lock.counters).map(|share| format!("{:.1} %", 100.0 * share))),
            shown(lock.fairness.map(|fairness| format!("{fairness:.3}"))),
        ]);
    }
    format!("{text}\nMeasured with\n\n{}", command(&first.command))
}

/// The share of hand-offs to another node among all that the kernel counted.
pub fn remote_share(counters: &BTreeMap<String, u64>) -> Option<f64> {
    let remote = *counters.get("remote_handoffs")?;
    let all = remote + counters.get("local_handoffs")?;
    (all > 0).then(|| remote as f64 / all as f64)
}

fn row([lock, kind, numbers @ ..]: [String; 6]) -> String {
    let [operations, of_stock, remote, fairness] = numbers;
    format!("  {lock:<9} {kind:<17} {operations:>10} {of_stock:>9} {remote:>8} {fairness:>9}\n")
}

/// A command line for a shell, in lines of the letter. The program has no directory, which means
/// nothing on another machine.
fn command(words: &[String]) -> String {
    let mut words = words.iter();
    let program = words.next().map_or("lockworks", |program| {
        program.rsplit('/').next().unwrap_or(program)
    });
    let mut text = String::new();
    let mut line = format!("  {program}");
    for word in words.map(|word| quoted(word)) {
        // Room for the space before the word, and for the end of the line.
        if line.len() + 1 + word.len() + 2 > WIDTH {
            text += &format!("{line} \\\n");
            line = "     ".to_owned();
        }
        line += &format!(" {word}");
    }
    text + &format!("{line}\n")
}

/// A word as a shell reads it. Letters beyond ASCII are replaced, because the letter has none.
fn quoted(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_=+,./:%@".contains(c);
    match !word.is_empty() && word.chars().all(plain) {
        true => word.to_owned(),
        false => {
            let ascii = word.replace(|c: char| !c.is_ascii() || c.is_control(), "?");
            format!("'{}'", ascii.replace('\'', r"'\''"))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn json(lock: &str, operations: u64, verdict: &str) -> String {
        format!(
            r#"{{"verdict": "{verdict}", "lock": "{lock}", "operations": {operations}, "fairness": 0.5123,
            "counters": {{"local_handoffs": 3, "remote_handoffs": 1}}, "release": "7.2.1",
            "arch": "x86-64", "config": "native", "type": "spin_lock", "nodes": 4, "cpus": 8,
            "emulation": "multi", "writers": 8, "seconds": 0.5, "rounds": [{{}}, {{}}], "other": 1,
            "command": ["/a/b/lockworks", "kernel", "torture", "--boot", "a=1 b=2", "--lock",
            "stock,cna", "--emulation", "multi", "--seconds", "0.5", "--json"]}}"#
        )
    }

    fn written(text: &str) -> tempfile::NamedTempFile {
        let file = tempfile::NamedTempFile::new().unwrap();
        fs::write(file.path(), text).unwrap();
        file
    }

    #[test]
    fn locks_stand_beside_stock() {
        let both = [json("stock", 200, "pass"), json("cna", 230, "pass")].join(",");
        let (two, one) = (
            written(&format!("[{both}]")),
            written(&json("hq", 7, "pass")),
        );
        let said = text(&[two.path().to_owned(), one.path().to_owned()]).unwrap();
        for part in [
            "Linux 7.2.1 (x86-64, native), 8 CPUs on 4 nodes,\n",
            "emulation multi, 8 writers, rounds of 0.5 s: 2\n",
            "  stock     spin_lock                200      1.00   25.0 %     0.512\n",
            "  cna       spin_lock                230      1.15   25.0 %     0.512\n",
            "  hq        spin_lock                  7         -   25.0 %     0.512\n",
            "\n  lockworks kernel torture --boot 'a=1 b=2' --lock stock,cna --emulation \\\n      multi ",
        ] {
            assert!(said.contains(part), "{part}\n{said}");
        }
        let longest = said.lines().map(str::len).max();
        assert!(longest <= Some(WIDTH), "{said}");
    }

    #[test]
    fn without_results_the_command_is_named() {
        let said = text(&[]).unwrap();
        assert!(said.starts_with("No figures were taken."));
        assert!(said.contains("\n  lockworks kernel torture "));
        assert!(said.lines().all(|line| line.len() <= WIDTH));
    }

    #[test]
    fn other_files_are_refused() {
        let refused = |text: &str| {
            let file = written(text);
            format!("{:#}", read(file.path()).err().unwrap())
        };
        for (text, why) in [
            ("{", "is not what `lockworks kernel torture --json` prints"),
            (r#"{"lock": "cna"}"#, "missing field"),
            ("[]", "has no results"),
            (&json("cna", 1, "fail"), "a run of cna that failed"),
        ] {
            let said = refused(text);
            assert!(said.contains(why), "{said}");
            assert_eq!(said.lines().count(), 1, "{said}");
        }
    }
}
