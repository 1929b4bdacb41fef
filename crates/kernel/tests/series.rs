//! A small series in small trees: all that can be asked of it, and all that is refused.

mod common;

use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::path::Path;

use common::{commit_all, contents, git, snapshot, tree, write};
use lockworks_kernel::{
    Author, Error, Series, SeriesError, State, Status, Tree, patches, refresh_to, write_patches,
};
use tempfile::TempDir;

const SERIES: &str = r#"
versions = ["6.1", "6.12"]
directory = "core/own"
include = ["locks", "locks/parts"]

[rivals]
files = ["core/slow_other.h"]
symbols = ["OTHER_WORDS"]
kconfig = ["core/Kconfig", "arch/Kconfig"]

[cover]
title = "core/own: Words"
text = """
There are words.

They are new.
"""
tested = "They were read."
changes = """
Changes since the last version:

 - more words
"""

[[patch]]
subject = "core/own: Add words"
body = """
Words come first.

They are needed by everything else.
"""
files = ["locks/words.c"]
[patch.elsewhere]
"notes/own/words.txt" = "worlds/words.txt"
[patch.append]
"Makefile" = "words.o\n"
[[patch.insert]]
file = "core/Makefile"
after = "first.o\n"
text = "own-1.o\n"
[[patch.insert]]
file = "core/slow.c"
before = "\tleave();\n"
text = "\tenter();\n"

[[patch]]
subject = "core/own: Say more"
body = "Ünd more."
files = ["locks/parts/more.c"]
[patch.append]
"Makefile" = "more.o\n"
[[patch.insert]]
file = "core/Makefile"
after = "first.o\n"
text = "own-2.o\n"
[[patch.insert]]
file = "core/Makefile"
after = "own-1.o\n"
text = "own-1a.o\n"
"#;

fn file(path: &str) -> Option<String> {
    let text = match path {
        "locks/words.c" => {
            "#include <linux/words.h>\n#include \"words.h\"\n#ifdef MORE\n#include \"more.c\"\n\
             #endif\n#include \"../core.h\"\n"
        }
        "locks/parts/words.h" => "#include \"letters.h\"\n",
        "locks/letters.h" => "#include \"words.h\"\n/* a to z */\n",
        "locks/parts/more.c" => "#include \"words.h\"\n\t#include \"even_more.h\"\n",
        "locks/parts/even_more.h" => "#include \"letters.h\"\nint more;\n",
        "worlds/words.txt" => "What words do.\n",
        _ => return None,
    };
    Some(text.to_owned())
}

fn series() -> Series {
    Series::new(SERIES, file).unwrap()
}

fn kernel() -> TempDir {
    let directory = tree(&[
        ("core/Makefile", "zeroth.o\nfirst.o\nlast.o\n"),
        ("core/slow.c", "void slow(void)\n{\n\tleave();\n}\n"),
        ("core/other.c", "int other;\n"),
    ]);
    set_mode(directory.path(), "core/slow.c", 0o755);
    set_mode(directory.path(), "core/Makefile", 0o640);
    directory
}

fn set_mode(top: &Path, file: &str, mode: u32) {
    fs::set_permissions(top.join(file), PermissionsExt::from_mode(mode)).unwrap();
}

fn open(directory: &Path) -> Tree {
    Tree::open(directory, &series()).unwrap()
}

fn apply(directory: &Path) -> Result<bool, Error> {
    lockworks_kernel::apply(&series(), &open(directory))
}

fn revert(directory: &Path) -> Result<bool, Error> {
    lockworks_kernel::revert(&series(), &open(directory))
}

fn status(directory: &Path) -> Status {
    lockworks_kernel::status(&series(), &open(directory)).unwrap()
}

fn read(directory: &Path, file: &str) -> String {
    fs::read_to_string(directory.join(file)).unwrap()
}

/// Refused, with nothing changed; what was said.
fn refused(directory: &Path, act: fn(&Path) -> Result<bool, Error>) -> String {
    let before = snapshot(directory);
    let said = act(directory).unwrap_err().to_string();
    assert_eq!(snapshot(directory), before);
    assert_eq!(said.lines().count(), 1, "{said}");
    said
}

#[test]
fn applies_once_and_reverts_to_the_byte() {
    let directory = kernel();
    let top = directory.path();
    let before = contents(top);
    assert_eq!(status(top).state, State::NotApplied);

    assert!(apply(top).unwrap());
    let after = snapshot(top);
    assert_eq!(
        read(top, "core/Makefile"),
        "zeroth.o\nfirst.o\nown-1.o\nown-1a.o\nown-2.o\nlast.o\n"
    );
    assert_eq!(
        read(top, "core/slow.c"),
        "void slow(void)\n{\n\tenter();\n\tleave();\n}\n"
    );
    for (in_tree, source) in [
        ("core/own/words.c", "locks/words.c"),
        ("core/own/words.h", "locks/parts/words.h"),
        ("core/own/letters.h", "locks/letters.h"),
        ("core/own/more.c", "locks/parts/more.c"),
        ("core/own/even_more.h", "locks/parts/even_more.h"),
        ("notes/own/words.txt", "worlds/words.txt"),
    ] {
        assert_eq!(Some(read(top, in_tree)), file(source));
    }
    assert_eq!(read(top, "core/own/Makefile"), "words.o\nmore.o\n");
    assert_eq!(after["core/slow.c"].0 & 0o777, 0o755);
    assert_eq!(after["core/Makefile"].0 & 0o777, 0o640);
    assert_eq!(status(top).state, State::Applied);

    assert!(!apply(top).unwrap());
    assert_eq!(snapshot(top), after);

    assert!(revert(top).unwrap());
    assert_eq!(contents(top), before);
    let reverted = snapshot(top);
    assert!(!revert(top).unwrap());
    assert_eq!(snapshot(top), reverted);
}

#[test]
fn changes_elsewhere_stay() {
    let directory = kernel();
    let top = directory.path();
    apply(top).unwrap();
    let text = read(top, "core/slow.c") + "int mine;\n";
    write(top, "core/slow.c", &text);
    write(
        top,
        "core/Makefile",
        &read(top, "core/Makefile").replace("zeroth.o\n", ""),
    );
    assert!(!apply(top).unwrap());
    revert(top).unwrap();
    assert_eq!(read(top, "core/slow.c"), text.replace("\tenter();\n", ""));
    assert_eq!(read(top, "core/Makefile"), "first.o\nlast.o\n");
}

#[test]
fn a_missing_or_ambiguous_anchor_is_refused() {
    for (text, found) in [("zeroth.o\n", "0 times"), ("first.o\nfirst.o\n", "2 times")] {
        let directory = kernel();
        write(directory.path(), "core/Makefile", text);
        let said = refused(directory.path(), apply);
        for part in ["core/Makefile", found, "'first.o'"] {
            assert!(said.contains(part), "{said}");
        }
        let status = status(directory.path());
        assert_eq!(
            (status.state, status.obstacle),
            (State::NotApplied, Some(said))
        );
    }
}

#[test]
fn all_that_does_not_fit_is_named() {
    let need = "[[patch.need]]\nfiles = [\"core/new.h\", \"core/old.h\"]\ntexts = [\"enter\", \"stay\"]\n\
                [[patch.need]]\nfiles = [\"core/new.h\"]\ntexts = [\"go\"]\nsince = \"6.13\"\n\
                [[patch.need]]\nfiles = [\"core/new.h\"]\ntexts = [\"went\"]\nbefore = \"6.12\"\n";
    let series = Series::new(&format!("{SERIES}{need}"), file).unwrap();
    let directory = kernel();
    let top = directory.path();
    let said = || {
        let tree = Tree::open(top, &series).unwrap();
        let before = snapshot(top);
        let said = lockworks_kernel::apply(&series, &tree)
            .unwrap_err()
            .to_string();
        assert_eq!(snapshot(top), before);
        said
    };
    write(
        top,
        "core/old.h",
        "void enter(void);\nvoid staying(void);\n",
    );
    assert_eq!(
        said(),
        "the series does not fit this tree: core/new.h or core/old.h lacks 'stay', which files of Lockworks use; \
         restore the files, for example with 'git checkout', or use the tree as it was released"
    );
    write(top, "core/Makefile", "zeroth.o\n");
    fs::remove_file(top.join("core/slow.c")).unwrap();
    let all = said();
    for part in [
        "core/Makefile holds 'first.o' 0 times",
        "core/slow.c is missing",
        "lacks 'stay'",
    ] {
        assert!(all.contains(part), "{all}");
    }
    assert!(!all.contains("own-1"), "{all}");
    write(top, "core/Makefile", "zeroth.o\nfirst.o\n");
    write(top, "core/slow.c", "\tleave();\n");
    write(top, "core/new.h", "int stay;\n");
    let tree = Tree::open(top, &series).unwrap();
    assert!(lockworks_kernel::apply(&series, &tree).unwrap());
}

#[test]
fn a_tree_with_another_slow_path_is_refused() {
    let other = "config OTHER_WORDS\n\tbool \"Words\"\n";
    for (file, text, named) in [
        ("core/slow_other.h", "int other;\n", "core/slow_other.h;"),
        ("arch/Kconfig", other, "CONFIG_OTHER_WORDS in arch/Kconfig;"),
    ] {
        let directory = kernel();
        let top = directory.path();
        write(top, "core/Kconfig", "config OTHER_WORDS_TOO\n");
        assert_eq!(status(top).obstacle, None);
        write(top, file, text);
        // Its hook may have moved an anchor, which is not the reason to name.
        write(top, "core/slow.c", "\tother();\n");
        let said = refused(top, apply);
        assert!(said.contains(&format!("already: {named}")), "{said}");
        assert_eq!(status(top).obstacle, Some(said));
        let author = Author::of(top, Some("A <a@b>")).unwrap();
        assert!(patches(&series(), &open(top), &author, false, None).is_err());
    }
    // A tree in which the series is applied is not asked.
    let directory = kernel();
    let top = directory.path();
    apply(top).unwrap();
    write(top, "arch/Kconfig", other);
    assert!(revert(top).unwrap());
}

#[test]
fn trees_of_unsupported_versions_are_refused() {
    let said = |directory: &Path| Tree::open(directory, &series()).unwrap_err().to_string();
    let directory = kernel();
    let top = directory.path();
    write(
        top,
        "Makefile",
        &common::MAKEFILE.replace("VERSION = 6\n", "VERSION = 5\n"),
    );
    assert!(said(top).starts_with("Linux 5.12.9 is not supported; give a tree of Linux 6 or 7"));
    write(top, "Makefile", "all:\n");
    assert!(said(top).contains("its Makefile names no version"));
    fs::remove_file(top.join("Kbuild")).unwrap();
    assert!(said(top).contains("is not a Linux source tree: it has no Kbuild"));
    assert!(said(&top.join("absent")).contains("is not a Linux source tree"));
}

/// A step whose text goes to one of two files, which differ between kernels.
const CHOICE: &str = r#"
[[patch]]
subject = "core/own: Begin"
body = "Begin."
[[patch.insert]]
choice = "begin"
file = "core/new.h"
before = "begin(new);\n"
text = "own(new);\n"
[[patch.insert]]
choice = "begin"
file = "core/slow.c"
before = "begin(old);\n"
text = "own(old);\n"
"#;

#[test]
fn of_a_choice_the_insert_that_fits_is_made() {
    let series = Series::new(&format!("{SERIES}{CHOICE}"), file).unwrap();
    let slow = "void slow(void)\n{\n\tbegin(old);\n\tleave();\n}\n";
    for (new, expected) in [
        (
            Some("begin(new);\n"),
            ["own(new);\nbegin(new);\n", "{\n\tbegin(old);"],
        ),
        (
            Some("start(new);\n"),
            ["start(new);\n", "{\n\town(old);\nbegin(old);"],
        ),
        (None, ["", "{\n\town(old);\nbegin(old);"]),
    ] {
        let directory = kernel();
        let top = directory.path();
        write(top, "core/slow.c", slow);
        if let Some(new) = new {
            write(top, "core/new.h", new);
        }
        let before = contents(top);
        let tree = Tree::open(top, &series).unwrap();
        assert!(lockworks_kernel::apply(&series, &tree).unwrap());
        let header = fs::read_to_string(top.join("core/new.h")).unwrap_or_default();
        assert_eq!(header, expected[0]);
        assert!(read(top, "core/slow.c").contains(expected[1]), "{new:?}");
        let status = lockworks_kernel::status(&series, &tree).unwrap();
        assert_eq!(status.state, State::Applied);
        assert!(lockworks_kernel::revert(&series, &tree).unwrap());
        assert_eq!(contents(top), before);
    }
    let directory = kernel();
    let tree = Tree::open(directory.path(), &series).unwrap();
    let said = lockworks_kernel::apply(&series, &tree)
        .unwrap_err()
        .to_string();
    assert!(said.contains("core/new.h"), "{said}");
}

#[test]
fn a_file_that_cannot_be_written_leaves_the_tree_as_it_was() {
    let directory = kernel();
    let top = directory.path();
    // Even root cannot write an immutable file.
    let before = contents(top);
    let file = top.join("core/slow.c");
    let immutable = std::process::Command::new("chattr")
        .arg("+i")
        .arg(&file)
        .status();
    if !immutable.is_ok_and(|status| status.success()) {
        eprintln!("files cannot be made immutable here: not tested");
        return;
    }
    let said = apply(top).unwrap_err().to_string();
    let ended = contents(top);
    let again = std::process::Command::new("chattr")
        .arg("-i")
        .arg(&file)
        .status();
    assert!(again.unwrap().success());
    assert!(said.contains("slow.c"), "{said}");
    assert_eq!(ended, before);
    assert!(apply(top).unwrap());
}

#[test]
fn versions_that_are_not_tested_are_tried() {
    let directory = kernel();
    let top = directory.path();
    assert!(open(top).is_tested());
    write(top, "Makefile", &common::MAKEFILE.replace("12", "99"));
    assert!(!open(top).is_tested());
    assert!(apply(top).unwrap());
}

#[test]
fn a_missing_or_odd_file_to_edit_is_refused() {
    let directory = kernel();
    let path = directory.path().join("core/slow.c");
    fs::remove_file(&path).unwrap();
    assert!(refused(directory.path(), apply).contains("core/slow.c"));
    write(directory.path(), "core/same.c", "\tleave();\n");
    symlink("same.c", &path).unwrap();
    assert!(refused(directory.path(), apply).starts_with("core/slow.c is not a plain text file"));
    fs::remove_file(&path).unwrap();
    fs::write(&path, b"\tleave();\n\xff").unwrap();
    assert!(refused(directory.path(), apply).contains("core/slow.c"));
}

#[test]
fn a_tree_changed_under_the_series_is_refused() {
    type Change = fn(&Path);
    let cases: [(Change, &str); 7] = [
        (
            |top| write(top, "core/own/words.h", "mine\n"),
            "core/own/words.h differs",
        ),
        (
            |top| fs::remove_file(top.join("core/own/words.h")).unwrap(),
            "core/own/words.h is missing",
        ),
        (
            |top| write(top, "core/slow.c", "\tleave();\n"),
            "core/slow.c lacks what",
        ),
        (
            |top| write(top, "core/slow.c", "\tenter(1);\n\tleave();\n"),
            "core/slow.c lacks what",
        ),
        (
            |top| write(top, "core/Makefile", "first.o\nown-1.o\nown-1a.o\nlast.o\n"),
            "core/Makefile lacks part of",
        ),
        (
            |top| {
                write(
                    top,
                    "core/Makefile",
                    &(read(top, "core/Makefile") + "first.o\n"),
                )
            },
            "core/Makefile lacks part of",
        ),
        (
            |top| {
                let file = top.join("core/own/words.h");
                fs::rename(&file, top.join("core/words.h")).unwrap();
                symlink("../words.h", file).unwrap();
            },
            "core/own/words.h differs",
        ),
    ];
    for (change, expected) in cases {
        let directory = kernel();
        let top = directory.path();
        apply(top).unwrap();
        change(top);
        for act in [apply, revert] {
            let said = refused(top, act);
            assert!(said.starts_with(expected), "{said}");
            assert!(said.contains("git checkout"), "{said}");
        }
        assert_eq!(status(top).state, State::Changed);
        let author = Author::of(top, Some("A <a@b>")).unwrap();
        assert!(patches(&series(), &open(top), &author, false, None).is_err());
    }
}

#[test]
fn an_own_file_in_an_unapplied_tree_is_not_overwritten() {
    let directory = kernel();
    write(directory.path(), "core/own/words.h", "mine\n");
    assert!(refused(directory.path(), apply).starts_with("core/own/words.h differs"));
}

#[test]
fn only_build_products_go_with_our_directory() {
    let directory = kernel();
    let top = directory.path();
    let before = contents(top);
    apply(top).unwrap();
    for product in ["words.o", ".words.o.cmd", "built-in.a", "deep/more.o"] {
        write(top, &format!("core/own/{product}"), "made\n");
    }
    write(top, "core/own/deep/mine.txt", "mine\n");
    assert_eq!(status(top).state, State::Applied);
    assert!(!apply(top).unwrap());
    let said = refused(top, revert);
    assert!(
        said.starts_with("core/own/deep/mine.txt does not belong to Lockworks"),
        "{said}"
    );

    fs::remove_file(top.join("core/own/deep/mine.txt")).unwrap();
    revert(top).unwrap();
    assert_eq!(contents(top), before);

    write(top, "core/own/mine.txt", "mine\n");
    assert!(refused(top, apply).starts_with("core/own/mine.txt does not belong to Lockworks"));
}

#[test]
fn nothing_is_written_through_a_link() {
    let directory = kernel();
    let elsewhere = tempfile::tempdir().unwrap();
    symlink(elsewhere.path(), directory.path().join("core/own")).unwrap();
    assert!(refused(directory.path(), apply).starts_with("core/own does not belong to Lockworks"));
    assert_eq!(fs::read_dir(elsewhere.path()).unwrap().count(), 0);
}

#[test]
fn a_file_behind_a_link_is_not_removed() {
    let directory = kernel();
    let top = directory.path();
    apply(top).unwrap();
    fs::rename(top.join("notes"), top.join("else")).unwrap();
    symlink("else", top.join("notes")).unwrap();
    let said = refused(top, revert);
    assert!(
        said.contains("'notes/own/words.txt' beyond a symbolic link"),
        "{said}"
    );
    assert!(said.ends_with("nothing was changed"), "{said}");
}

#[test]
fn nothing_is_left_half_applied() {
    let directory = kernel();
    let top = directory.path();
    // The last file's directory cannot be made.
    symlink("nowhere", top.join("notes")).unwrap();
    let said = refused(top, apply);
    assert!(said.contains("nothing was changed"), "{said}");
}

#[test]
fn git_am_gives_what_apply_gives() {
    let directory = kernel();
    let top = directory.path();
    // As all of a kernel's sources are.
    set_mode(top, "core/Makefile", 0o644);
    set_mode(top, "core/slow.c", 0o644);
    commit_all(top);
    let out = tempfile::tempdir().unwrap();
    let out = out.path().join("new/patches");
    let author = Author::of(top, Some("Ä. Tester <a@tester.example>")).unwrap();
    let written = patches(&series(), &open(top), &author, true, None).unwrap();
    write_patches(&written, &out).unwrap();
    let names: Vec<&str> = written.iter().map(|file| file.name.as_str()).collect();
    assert_eq!(
        names,
        [
            "0001-core-own-Add-words.patch",
            "0002-core-own-Say-more.patch"
        ]
    );
    for name in &names {
        git(top, &["am", "-q", out.join(name).to_str().unwrap()]);
    }
    assert_eq!(status(top).state, State::Applied);
    let by_git = contents(top);
    let message = git(top, &["log", "-1", "--format=%an %ae%n%B"]);
    let signed = "Signed-off-by: Ä. Tester <a@tester.example>";
    assert_eq!(
        message.trim(),
        format!("Ä. Tester a@tester.example\ncore/own: Say more\n\nÜnd more.\n\n{signed}")
    );
    let stat = git(top, &["log", "-1", "--format=", "--stat=72", "--summary"]);
    assert!(
        written[1].text.contains(&stat),
        "{stat}\n{}",
        written[1].text
    );

    let diffs = git(top, &["log", "-2", "-p", "--full-index", "--format="]);
    let indices: Vec<&str> = diffs.lines().filter(|l| l.starts_with("index ")).collect();
    assert_eq!(indices.len(), 11);
    for index in indices {
        assert!(
            written.iter().any(|file| file.text.contains(index)),
            "{index}"
        );
    }

    // Of an applied tree it is the same series.
    let again = patches(&series(), &open(top), &author, true, None).unwrap();
    for (one, other) in written.iter().zip(&again) {
        assert_eq!(one.text, other.text);
    }

    revert(top).unwrap();
    git(top, &["reset", "-q", "--hard", "HEAD~2"]);
    apply(top).unwrap();
    assert_eq!(contents(top), by_git);
    revert(top).unwrap();
    assert_eq!(git(top, &["status", "--porcelain"]), "");
}

#[test]
fn a_cover_letter_comes_first_and_changes_nothing() {
    let directory = kernel();
    let top = directory.path();
    set_mode(top, "core/Makefile", 0o644);
    set_mode(top, "core/slow.c", 0o644);
    commit_all(top);
    let out = tempfile::tempdir().unwrap();
    let author = Author::of(top, Some("A <a@b.example>")).unwrap();
    let written = patches(
        &series(),
        &open(top),
        &author,
        true,
        Some("Few words a second.\n"),
    )
    .unwrap();
    write_patches(&written, out.path()).unwrap();
    assert_eq!(written[0].name, "0000-cover-letter.patch");
    let letter = &written[0].text;
    assert!(
        letter.contains("\nSubject: [PATCH 0/2] core/own: Words\n"),
        "{letter}"
    );
    let body = "\n\nThere are words.\n\nThey are new.\n\nThey were read.\n\nFew words a second.\n\n\
                Changes since the last version:\n\n - more words\n\n\
                A (2):\n  core/own: Add words\n  core/own: Say more\n\n";
    assert!(letter.contains(body), "{letter}");
    assert!(letter.contains(" core/slow.c "), "{letter}");
    assert!(letter.contains(" files changed, "), "{letter}");

    let all: Vec<String> = written
        .iter()
        .map(|file| out.path().join(&file.name).to_str().unwrap().to_owned())
        .collect();
    let mut am = vec!["am", "-q", "--empty=drop"];
    am.extend(all.iter().map(String::as_str));
    git(top, &am);
    assert_eq!(status(top).state, State::Applied);
    assert_eq!(git(top, &["rev-list", "--count", "HEAD"]).trim(), "3");

    // A run without a letter removes the letter of an earlier one.
    let without = patches(&series(), &open(top), &author, true, None).unwrap();
    write_patches(&without, out.path()).unwrap();
    assert!(!out.path().join("0000-cover-letter.patch").exists());
}

#[test]
fn a_script_can_be_executed() {
    let text = format!("{SERIES}[patch.elsewhere]\n\"notes/run.sh\" = \"worlds/run.sh\"\n");
    let script = |path: &str| match path {
        "worlds/run.sh" => Some("#!/bin/sh\n".to_owned()),
        path => file(path),
    };
    let series = Series::new(&text, script).unwrap();
    let mode = |top: &Path| fs::metadata(top.join("notes/run.sh")).unwrap().mode() & 0o777;
    let directory = kernel();
    let top = directory.path();
    set_mode(top, "core/Makefile", 0o644);
    set_mode(top, "core/slow.c", 0o644);
    commit_all(top);
    let tree = Tree::open(top, &series).unwrap();
    lockworks_kernel::apply(&series, &tree).unwrap();
    assert_eq!(mode(top), 0o755);
    assert_eq!(
        fs::metadata(top.join("notes/own/words.txt"))
            .unwrap()
            .mode()
            & 0o111,
        0
    );
    lockworks_kernel::revert(&series, &tree).unwrap();

    let author = Author::of(top, Some("A <a@b>")).unwrap();
    let out = tempfile::tempdir().unwrap();
    let written = patches(&series, &tree, &author, false, None).unwrap();
    write_patches(&written, out.path()).unwrap();
    for patch in &written {
        git(
            top,
            &["am", "-q", out.path().join(&patch.name).to_str().unwrap()],
        );
    }
    assert_eq!(mode(top), 0o755);
}

#[test]
fn patches_replace_those_of_an_earlier_run_only() {
    let directory = kernel();
    let author = Author::of(directory.path(), Some("A <a@b>")).unwrap();
    let mut written = patches(&series(), &open(directory.path()), &author, false, None).unwrap();
    let out = tempfile::tempdir().unwrap();
    write(out.path(), "notes.patch", "mine\n");
    write_patches(&written, out.path()).unwrap();
    written.pop();
    write_patches(&written, out.path()).unwrap();
    let found = contents(out.path());
    let names: Vec<&String> = found.keys().collect();
    assert_eq!(names, ["0001-core-own-Add-words.patch", "notes.patch"]);

    write(out.path(), &written[0].name, "mine\n");
    let before = snapshot(out.path());
    let said = write_patches(&written, out.path()).unwrap_err().to_string();
    assert!(
        said.contains("0001-core-own-Add-words.patch exists"),
        "{said}"
    );
    assert_eq!(snapshot(out.path()), before);
}

#[test]
fn refresh_writes_what_differs() {
    let directory = kernel();
    let top = directory.path();
    let out = tempfile::tempdir().unwrap();
    let pristine = out.path().join("pristine");
    let plain = contents(top);
    let refresh = |series: &Series| {
        let mut changed: Vec<String> = refresh_to(series, top, &pristine)
            .unwrap()
            .iter()
            .map(|path| path.strip_prefix(top).unwrap().to_str().unwrap().to_owned())
            .collect();
        changed.sort();
        changed
    };
    assert_eq!(refresh(&series()).len(), 9);
    assert_eq!(status(top).state, State::Applied);
    let before = snapshot(top);
    assert_eq!(refresh(&series()), [""; 0]);
    assert_eq!(snapshot(top), before);

    // Copies made anew, of a tree that is applied, are of the kernel's files.
    fs::remove_dir_all(&pristine).unwrap();
    assert_eq!(refresh(&series()), [""; 0]);

    // Another version: one file changed, one gone, one edit other, one gone.
    let start = SERIES.find("[[patch]]").unwrap();
    let text = SERIES[..start].to_owned()
        + r#"
[[patch]]
subject = "Other"
body = ""
files = ["locks/words.c", "locks/parts/more.c"]
[patch.elsewhere]
"notes/own/words.txt" = "worlds/words.txt"
[[patch.insert]]
file = "core/Makefile"
after = "last.o\n"
text = "other.o\n"
"#;
    let other = Series::new(&text, |path| match path {
        "locks/parts/more.c" => Some("#include \"words.h\"\n".to_owned()),
        path => file(path),
    });
    let other = other.unwrap();
    assert_eq!(
        refresh(&other),
        [
            "core/Makefile",
            "core/own/Makefile",
            "core/own/even_more.h",
            "core/own/more.c",
            "core/slow.c"
        ]
    );
    assert_eq!(
        read(top, "core/Makefile"),
        "zeroth.o\nfirst.o\nlast.o\nother.o\n"
    );
    let seen = lockworks_kernel::status(&other, &open(top)).unwrap();
    assert_eq!(seen.state, State::Applied);
    let unchanged = |name: &str| assert_eq!(snapshot(top)[name], before[name]);
    unchanged("notes/own/words.txt");
    unchanged("core/own/words.h");
    unchanged("core/other.c");

    assert_eq!(refresh(&series()).len(), 5);
    assert_eq!(status(top).state, State::Applied);
    revert(top).unwrap();
    assert_eq!(contents(top), plain);
}

#[test]
fn wrong_series_are_refused() {
    let wrong = |from: &str, to: &str| {
        assert!(SERIES.contains(from));
        Series::new(&SERIES.replace(from, to), file).unwrap_err()
    };
    let says = |error: SeriesError, part: &str| {
        assert!(error.to_string().contains(part), "{error}");
    };
    says(
        wrong("locks/parts/more.c", "locks/none.c"),
        "no file locks/none.c",
    );
    says(
        wrong("\"locks\", \"locks/parts\"", "\"locks\""),
        "locks/words.c includes words.h, which is in none",
    );
    says(
        wrong(
            "[patch.append]\n\"Makefile\"",
            "[patch.append]\n\"../Makefile\"",
        ),
        "'../Makefile'",
    );
    says(
        wrong("\"notes/own/words.txt\"", "\"../words.txt\""),
        "'../words.txt' is not a path",
    );
    says(
        wrong("after = \"first.o\\n\"", ""),
        "one of `after` and `before`",
    );
    says(wrong("core/own: Add words", "Wörter"), "one line of ASCII");
    says(wrong("core/own: Words", "Wörter"), "one line of ASCII");
    says(wrong("They were read.", "Ünd"), "cover letter is not ASCII");
    says(
        wrong("file = \"core/slow.c\"", "file = \"core/own/words.h\""),
        "one adds it and one edits it",
    );
    says(
        wrong("[\"locks/parts/more.c\"]", "[\"locks/words.c\"]"),
        "two patches add words.c",
    );
    says(
        wrong("\"notes/own/words.txt\"", "\"core/own/words.c\""),
        "two patches add core/own/words.c",
    );
    says(
        wrong(
            "\"Makefile\" = \"more.o\\n\"",
            "\"words.c\" = \"more.o\\n\"",
        ),
        "two patches add core/own/words.c",
    );
    for need in [
        "files = []\ntexts = [\"a\"]",
        "files = [\"a\"]\ntexts = []",
        "files = [\"a\"]\ntexts = [\"a\"]\nsince = \"7\"",
    ] {
        let text = format!("{SERIES}[[patch.need]]\n{need}\n");
        says(Series::new(&text, file).unwrap_err(), "a need in ");
    }
    says(wrong("[patch.elsewhere]", "[patch.files]"), "duplicate key");
    says(wrong("[patch.elsewhere]", "[patch.there]"), "unknown field");
}
