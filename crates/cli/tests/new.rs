//! `lockworks locks new`: the files that it writes into a checkout, and the names that it refuses.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use tempfile::TempDir;

/// The C code of this checkout, copied to where a test may write.
fn checkout() -> TempDir {
    let copy = tempfile::tempdir().expect("a directory");
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    for part in ["locks", "worlds", "lib"] {
        for file in files(&root.join(part)) {
            let to = copy
                .path()
                .join(file.strip_prefix(&root).expect("below the root"));
            fs::create_dir_all(to.parent().expect("a directory")).expect("a directory");
            fs::copy(&file, to).expect("a copy");
        }
    }
    fs::copy(
        root.join(".clang-format"),
        copy.path().join(".clang-format"),
    )
    .expect("a copy");
    copy
}

fn files(directory: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(directory).expect("a directory") {
        let path = entry.expect("an entry").path();
        if path.is_dir() {
            found.extend(files(&path));
        } else {
            found.push(path);
        }
    }
    found
}

fn contents(directory: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let read = |path: PathBuf| (path.clone(), fs::read(path).expect("a file"));
    files(directory).into_iter().map(read).collect()
}

fn new_lock(directory: &Path, name: &str) -> Output {
    Command::new(env!("CARGO_BIN_EXE_lockworks"))
        .args(["locks", "new", "--", name])
        .current_dir(directory)
        .output()
        .expect("the command")
}

fn text(bytes: &[u8]) -> &str {
    std::str::from_utf8(bytes).expect("UTF-8")
}

/// Asserts that the lock compiles without a warning in every world that compiles on its own.
fn compiles(root: &Path, name: &str) {
    for world in ["worlds/user", "worlds/sim", "worlds/check"] {
        let done = Command::new("cc")
            .args(["-std=gnu17", "-Wall", "-Wextra", "-Werror", "-fsyntax-only"])
            .args(
                [
                    "locks",
                    "locks/contract",
                    "locks/parts",
                    "locks/registry",
                    world,
                    "lib/include",
                ]
                .map(|d| format!("-I{d}")),
            )
            .arg(format!("locks/{name}.c"))
            .current_dir(root)
            .output()
            .expect("a C compiler");
        assert!(done.status.success(), "{world}: {}", text(&done.stderr));
    }
}

#[test]
fn a_new_lock_compiles_in_every_world_and_is_listed() {
    let checkout = checkout();
    for (directory, name) in [
        ("", "mylock"),
        ("worlds/user", "a_lock_with_a_name_of_some_length"),
    ] {
        let before = contents(checkout.path());
        let done = new_lock(&checkout.path().join(directory), name);
        assert!(done.status.success(), "{}", text(&done.stderr));
        assert!(text(&done.stdout).contains(&format!("make quick LOCK={name}\n")));
        compiles(checkout.path(), name);
        let list = fs::read_to_string(checkout.path().join("locks/registry/locks_list.h"));
        let line = format!("LW_LOCK({name})\nLW_LOCK(busted)\n");
        assert!(list.expect("the list").contains(&line));
        let after = contents(checkout.path());
        let changed = after
            .iter()
            .filter(|(path, text)| before.get(*path) != Some(text));
        let names: Vec<_> = changed.map(|(path, _)| path.file_name().unwrap()).collect();
        let own = [format!("{name}.c"), format!("{name}.h")];
        assert_eq!(names, [own[0].as_str(), own[1].as_str(), "locks_list.h"]);
    }
}

#[test]
fn bad_names_are_refused_in_one_line_and_nothing_is_written() {
    let checkout = checkout();
    let before = contents(checkout.path());
    for (name, why) in [
        ("cna", "taken by locks/"),
        ("lockref", "taken by locks/"),
        ("parking", "taken by locks/parts/parking.h"),
        ("mcs_node", "taken by locks/"),
        ("pv42", "taken by locks/"),
        ("pthread_mutex", "a lock that Lockworks is compared with"),
        ("lw_mine", "not with lw_"),
        ("9lives", "begins with a letter"),
        ("Mine", "lower-case letters"),
        ("my-lock", "lower-case letters"),
        ("../mine", "lower-case letters"),
        ("schloß", "lower-case letters"),
        ("a_lock_with_a_name_that_is_longer_than_40", "at most 40"),
        ("", "lower-case letters"),
    ] {
        let done = new_lock(checkout.path(), name);
        let said = text(&done.stderr);
        assert_eq!(done.status.code(), Some(2), "{name}: {said}");
        assert!(
            said.contains(why) && said.lines().count() == 1,
            "{name}: {said}"
        );
        assert!(
            said.starts_with("lockworks: ") && said.contains(&format!("'{name}'")),
            "{said}"
        );
        assert!(done.stdout.is_empty());
    }
    assert!(contents(checkout.path()) == before, "something was written");
}

#[test]
fn a_list_without_locks_is_left_alone() {
    let checkout = checkout();
    let list = checkout.path().join("locks/registry/locks_list.h");
    fs::write(&list, "#undef LW_LOCK\n").expect("a file");
    let before = contents(checkout.path());
    let done = new_lock(checkout.path(), "mylock");
    assert_eq!(done.status.code(), Some(2));
    assert!(
        text(&done.stderr).contains("has no line LW_LOCK(busted)"),
        "{}",
        text(&done.stderr)
    );
    assert!(contents(checkout.path()) == before, "something was written");
}

#[test]
fn outside_of_a_checkout_nothing_is_written() {
    let elsewhere = tempfile::tempdir().expect("a directory");
    let done = new_lock(elsewhere.path(), "mylock");
    assert_eq!(done.status.code(), Some(2));
    assert!(text(&done.stderr).contains("is not in a checkout of Lockworks"));
    assert!(files(elsewhere.path()).is_empty());
}
