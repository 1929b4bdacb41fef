//! Litmus files: what the search finds of them is what the axioms allow.

use std::fs;
use std::path::Path;

use lockworks_check::{CompiledFiles, LitmusFile, Memory, Searched};

/// The files of crates/check/litmus.
fn files() -> Vec<LitmusFile> {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("litmus");
    let entries = fs::read_dir(directory).unwrap();
    let mut paths: Vec<_> = entries.map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    let read = |path: &Path| {
        let text = fs::read_to_string(path).unwrap();
        LitmusFile::parse(&text, &path.display().to_string()).unwrap()
    };
    paths.iter().map(|path| read(path)).collect()
}

/// Why the search finds other final states than the axioms allow. docs/reference/checker.md explains
/// each.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Reason {
    /// The search finds more: a dependency that makes no difference to what is done.
    FalseDependency,
    /// The search finds more: the address of a variable is read without acquire.
    AddressOfVariable,
    /// The search finds more: a compare-and-swap that fails is relaxed, where CASA acquires.
    FailedCompareAndSwap,
    /// The search finds more: a store depends on a load that does not acquire.
    DependentStore,
    /// The search finds fewer: an acquire reads its thread's own read-modify-write.
    OwnReadModifyWrite,
}

/// The model and the file of each difference.
const DIFFERENCES: [(&str, &[Memory], Reason); 7] = {
    use Memory::{Arm, Lkmm, Lkmm62};
    [
        ("lb+address-po+mb", &[Arm], Reason::FalseDependency),
        (
            "lb+carried-data+mb",
            &[Arm, Lkmm, Lkmm62],
            Reason::FalseDependency,
        ),
        (
            "lb+false-data+mb",
            &[Arm, Lkmm, Lkmm62],
            Reason::FalseDependency,
        ),
        (
            "mp+assign+dereference",
            &[Arm, Lkmm, Lkmm62],
            Reason::AddressOfVariable,
        ),
        (
            "mp+rel+failed-cmpxchg-acq",
            &[Arm],
            Reason::FailedCompareAndSwap,
        ),
        ("mp+rel+xchg-rfi-acq", &[Lkmm], Reason::OwnReadModifyWrite),
        ("s+rel+data", &[Lkmm, Lkmm62], Reason::DependentStore),
    ]
};

#[test]
fn the_search_finds_what_the_axioms_allow() {
    let files = files();
    let compiled = CompiledFiles::compile(&files, &Memory::ALL).unwrap();
    let (mut agree, mut refused) = (0, Vec::new());
    for (number, file) in files.iter().enumerate() {
        for model in Memory::ALL {
            let Ok(allowed) = file.judge(model) else {
                continue;
            };
            let searched = compiled.search(number, model);
            let name = file.name();
            let mut differences = DIFFERENCES.iter();
            let known = differences.find(|(of, models, _)| *of == name && models.contains(&model));
            match (searched.agrees(&allowed), known) {
                (Some(true), None) => agree += 1,
                (None, None) => refused.push((model, searched)),
                (Some(false), Some((_, _, reason))) => {
                    let (more, fewer) = searched.differences(&allowed);
                    let expected = match reason {
                        Reason::OwnReadModifyWrite => (0, 1),
                        _ => (1, 0),
                    };
                    assert_eq!((more, fewer), expected, "{name} in {model}");
                }
                (_, known) => {
                    panic!("{name} in {model}: {searched:?}, {known:?}; {allowed:?}")
                }
            }
        }
    }
    println!("{agree} agree, {} refused", refused.len());
    // Sequential consistency has a translation of everything.
    let is_sc = |(model, _): &(Memory, Searched)| *model == Memory::Sc;
    assert!(!refused.iter().any(is_sc), "{refused:?}");
    assert!(agree >= 385, "{agree}");
}
