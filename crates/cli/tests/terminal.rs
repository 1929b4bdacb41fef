//! The output of commands on terminals of 80 and of 100 columns.

use std::collections::BTreeSet;

use crate::support::{assert_fits_terminals, output, text};

/// Commands that print a table, each with words that must be whole. `profile`, `sweep` and `regret`
/// are run in tests of their own, which have a program, a plan and a store for them.
const TABLES: [(&str, &[&str]); 20] = [
    (
        "locks",
        &["qspinlock", "NUMA-aware", "throughput collapses"],
    ),
    ("locks hq", &["0 to 10000", "LOCKWORKS_NAME=VALUE"]),
    ("machines", &["epyc-9654-nps4", "I inferred or fitted"]),
    ("machines epyc-9654-nps4", &["NUMA node:", "rmw_cycles"]),
    ("sim --workloads", &["locktorture"]),
    (
        "sim --machine kunpeng-920 --lock qspinlock,cna --threads 2,8 --ms 1",
        &["qspinlock"],
    ),
    (
        "sim --vcpus 4 --cpus 2 --guests 2 --lock pv,unfair --ms 1",
        &["unfair"],
    ),
    ("reproduce", &["cna_locktorture"]),
    (
        "reproduce cna_locktorture --ms 0.1",
        &["published", "Inferred, fitted or set by hand (I):"],
    ),
    ("check --lock tas,ticket", &["complete, no violation;"]),
    ("check --lock mcs --quick", &["complete, no violation;"]),
    (
        "check --lock busted",
        &["VIOLATION:", "function: operation"],
    ),
    (
        "check --lock tas --threads 3 --bypass 0",
        &["VIOLATION:", "while thread"],
    ),
    ("check litmus sb iriw", &["outcomes"]),
    ("check mutants --lock tas", &["mistake", "equivalent"]),
    (
        "check --lock ticket --threads 12 --random 20",
        &["20 random runs, no violation"],
    ),
    (
        "check --lock busted --threads 12 --random 20",
        &["VIOLATION:", "function: operation"],
    ),
    (
        "torture --seconds 0.02 --rounds 1 --threads 1,8 --lock qspinlock,pthread_mutex",
        &["p99.9", "waiting", "Mutual exclusion held in all runs."],
    ),
    (
        "compare --lock mutex --rounds 1 -- true",
        &["min..max", "switches", "--rounds 6"],
    ),
    (
        "compare --lock mutex,pv,unfair --rounds 1 -- true",
        &["min..max"],
    ),
];

/// Commands that the list leaves to the help of `sim`.
const UNLISTED: [&str; 1] = ["reproduce"];

/// Commands of which no table is printed here.
const OTHERS: [(&str, &str); 7] = [
    ("profile", "in tests/profile.rs"),
    ("record", "prints no table"),
    ("replay", "prints that of sim"),
    ("plan", "needs a program"),
    ("kernel", "needs a kernel's source and guests"),
    ("report", "prints no table"),
    ("run", "prints no table"),
];

#[test]
fn every_table_fits_the_terminal() {
    for (command, words) in TABLES {
        let args: Vec<&str> = command.split(' ').collect();
        assert_fits_terminals(&args, words);
    }
}

#[test]
fn every_command_is_in_one_of_the_lists() {
    let help = output(&["--help"]);
    let help = text(&help.stdout);
    let (_, commands) = help.split_once("Commands:\n").expect("a list of commands");
    let (commands, _) = commands.split_once("\n\n").expect("the end of the list");
    let names = commands.lines().filter_map(|line| {
        let name = line.strip_prefix("  ")?;
        name.split(' ').next().filter(|name| !name.is_empty())
    });
    let listed = TABLES.map(|(command, _)| command.split(' ').next().unwrap_or(command));
    let listed = listed.into_iter().chain(OTHERS.map(|(command, _)| command));
    let listed = listed.filter(|command| !UNLISTED.contains(command));
    assert_eq!(
        names.collect::<BTreeSet<_>>(),
        listed.collect::<BTreeSet<_>>()
    );
}
