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

/// What the code of our files needs, by file.
fn needs(series: &Table) -> Vec<(String, Vec<String>)> {
    let strings = |need: &Table, name: &str| -> Vec<String> {
        let array = need[name].as_array().unwrap().iter();
        array
            .map(|text| text.as_str().unwrap().to_owned())
            .collect()
    };
    let needs = tables(series, "patch").flat_map(|patch| tables(patch, "need"));
    needs
        .map(|need| (strings(need, "files").remove(0), strings(need, "texts")))
        .collect()
}

/// Files with all that the series is anchored at and needs.
fn kernel_files(series: &Table) -> Vec<(String, String)> {
    let mut files = edited_files(series);
    for (file, texts) in needs(series) {
        let texts = format!("{}\n", texts.join("\n"));
        match files.iter_mut().find(|(known, _)| *known == file) {
            Some((_, contents)) => *contents += &texts,
            None => files.push((file, texts)),
        }
    }
    files
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
    let edited = kernel_files(&description);
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
fn a_tree_that_lacks_what_the_code_needs_is_refused() {
    let description = description();
    let files = kernel_files(&description);
    let series = Series::embedded().unwrap();
    let lacking = "arch/x86/include/asm/irq_vectors.h";
    let files: Vec<(&str, &str)> = files.iter().map(|(f, t)| (&**f, &**t)).collect();
    let left: Vec<(&str, &str)> = files
        .iter()
        .filter(|(f, _)| *f != lacking)
        .copied()
        .collect();
    let directory = tree(&left);
    let top = directory.path();
    let slab = std::fs::read_to_string(top.join("include/linux/slab.h")).unwrap();
    common::write(
        top,
        "include/linux/slab.h",
        &slab.replace("kvfree", "kvfree_all"),
    );
    let main = std::fs::read_to_string(top.join("init/main.c")).unwrap();
    common::write(top, "init/main.c", &main.replace("kernel_stat", "stat"));
    let before = contents(top);
    let opened = Tree::open(top, &series).unwrap();
    let said = apply(&series, &opened).unwrap_err().to_string();
    assert_eq!(
        said,
        "the series does not fit this tree: \
         init/main.c holds '#include <linux/kernel_stat.h>' 0 times instead of once; \
         include/linux/slab.h lacks 'kvfree', which files of Lockworks use; \
         arch/x86/include/asm/irq_vectors.h lacks 'RESCHEDULE_VECTOR', which files of Lockworks use; \
         restore the files, for example with 'git checkout', or use the tree as it was released"
    );
    assert_eq!(status(&series, &opened).unwrap().obstacle, Some(said));
    assert_eq!(contents(top), before);
}

#[test]
fn releases_differ_in_what_the_code_needs() {
    let files = kernel_files(&description());
    let files: Vec<(&str, &str)> = files.iter().map(|(f, t)| (&**f, &**t)).collect();
    let series = Series::embedded().unwrap();
    let directory = tree(&files);
    let top = directory.path();
    let pv = "arch/x86/include/asm/paravirt-spinlock.h";
    let text = std::fs::read_to_string(top.join(pv)).unwrap();
    let calls = |line: &&str| !line.starts_with("DECLARE_STATIC_CALL");
    let without: Vec<&str> = text.lines().filter(calls).collect();
    common::write(top, pv, &without.join("\n"));
    let opened = |major, minor| {
        let makefile = format!("VERSION = {major}\nPATCHLEVEL = {minor}\nSUBLEVEL = 0\n");
        common::write(top, "Makefile", &makefile);
        status(&series, &Tree::open(top, &series).unwrap())
            .unwrap()
            .obstacle
    };
    assert_eq!(opened(7, 2), None);
    let said = opened(7, 3).unwrap();
    assert!(
        said.contains(&format!(
            "{pv} lacks 'DECLARE_STATIC_CALL(queued_spin_lock_slowpath,', "
        )),
        "{said}"
    );
    assert!(!said.contains("not with this version"), "{said}");
    let said = opened(7, 40).unwrap();
    assert!(said.contains("not with this version"), "{said}");
}

#[test]
fn the_published_series_are_known() {
    let edited = kernel_files(&description());
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
