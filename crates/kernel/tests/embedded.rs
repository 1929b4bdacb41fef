//! The series of this version, in a tree made of the series' own anchors.

mod common;

use common::{commit_all, contents, git, tree};
use lockworks_kernel::{
    Author, Series, State, Tree, apply, patches, revert, status, write_patches,
};
use toml::{Table, Value};

fn description() -> Table {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/series.toml");
    std::fs::read_to_string(path).unwrap().parse().unwrap()
}

fn tables<'a>(of: &'a Table, name: &str) -> impl Iterator<Item = &'a Table> {
    let array = of.get(name).and_then(Value::as_array);
    array.into_iter().flatten().map(|v| v.as_table().unwrap())
}

fn text<'a>(of: &'a Table, name: &str) -> Option<&'a str> {
    of.get(name)?.as_str()
}

/// Files that the series edits, as lists of the anchors that stand in them from the start.
fn edited_files(series: &Table) -> Vec<(String, String)> {
    let mut files: Vec<(&str, Vec<&str>, String)> = Vec::new();
    for insert in tables(series, "patch").flat_map(|patch| tables(patch, "insert")) {
        let file = text(insert, "file").unwrap();
        if files.iter().all(|(known, ..)| *known != file) {
            files.push((file, Vec::new(), String::new()));
        }
        let (_, anchors, inserted) = files.iter_mut().find(|(known, ..)| *known == file).unwrap();
        let anchor = text(insert, "after").or(text(insert, "before")).unwrap();
        if !inserted.contains(anchor) && !anchors.iter().any(|other| other.contains(anchor)) {
            anchors.retain(|other| !anchor.contains(other));
            anchors.push(anchor);
        }
        *inserted += text(insert, "text").unwrap();
    }
    let fill = |anchors: Vec<&str>| anchors.join("\n/* between */\n\n");
    let files = files.into_iter();
    files
        .map(|(file, anchors, _)| {
            (
                file.to_owned(),
                format!("/* top */\n\n{}\n/* bottom */\n", fill(anchors)),
            )
        })
        .collect()
}

#[test]
fn every_step_is_a_patch_and_all_are_the_whole() {
    let description = description();
    let edited = edited_files(&description);
    let edited: Vec<(&str, &str)> = edited.iter().map(|(f, t)| (&**f, &**t)).collect();
    let directory = tree(&edited);
    let top = directory.path();
    commit_all(top);
    let before = contents(top);
    let series = Series::embedded().unwrap();
    let opened = Tree::open(top, &series).unwrap();

    apply(&series, &opened).unwrap();
    let applied = contents(top);
    revert(&series, &opened).unwrap();
    assert_eq!(contents(top), before);

    let author = Author::of(top, Some("A Tester <a@tester.example>")).unwrap();
    let written = patches(&series, &opened, &author, false, None).unwrap();
    let out = tempfile::tempdir().unwrap();
    write_patches(&written, out.path()).unwrap();
    for (file, patch) in written.iter().zip(tables(&description, "patch")) {
        let path = out.path().join(&file.name);
        git(
            top,
            &["am", "-q", "--whitespace=error", path.to_str().unwrap()],
        );
        let message = git(top, &["log", "-1", "--format=%B"]);
        let (subject, body) = (
            text(patch, "subject").unwrap(),
            text(patch, "body").unwrap(),
        );
        assert_eq!(
            message.trim(),
            format!("{subject}\n\n{}", body.trim()).trim()
        );
    }
    assert_eq!(contents(top), applied);

    // Mail programs wrap longer lines. Git shortens the paths of its list.
    let with_letter = patches(&series, &opened, &author, false, Some("Figures.\n")).unwrap();
    assert_eq!(with_letter.len(), written.len() + 1);
    let letter = &with_letter[0].text;
    assert!(letter.contains("\nA Tester (10):\n"), "{letter}");
    let long = letter.lines().find(|line| line.len() > 75);
    assert_eq!(long, None);
    assert_eq!(status(&series, &opened).unwrap().state, State::Applied);
}

#[test]
fn the_published_series_are_known() {
    let edited = edited_files(&description());
    let edited: Vec<(&str, &str)> = edited.iter().map(|(f, t)| (&**f, &**t)).collect();
    let series = Series::embedded().unwrap();
    for (file, text, named) in [
        (
            "kernel/locking/qspinlock_cna.h",
            "#error\n",
            "already: kernel/locking/qspinlock_cna.h; ",
        ),
        (
            "arch/x86/Kconfig",
            "config NUMA_AWARE_SPINLOCKS\n",
            "already: CONFIG_NUMA_AWARE_SPINLOCKS in arch/x86/Kconfig; ",
        ),
        (
            "kernel/Kconfig.locks",
            "config HQSPINLOCKS\n\nconfig BPF_ARCH_SPINLOCK\n",
            "already: CONFIG_HQSPINLOCKS in kernel/Kconfig.locks; ",
        ),
    ] {
        let directory = tree(&edited);
        let top = directory.path();
        common::write(top, file, text);
        let before = contents(top);
        let opened = Tree::open(top, &series).unwrap();
        let said = apply(&series, &opened).unwrap_err().to_string();
        assert!(said.contains(named), "{said}");
        assert_eq!(contents(top), before);
    }
}
