//! Litmus files: what the search finds of them is what the axioms allow.

use std::fs;
use std::path::Path;

use lockworks_check::{CompiledFiles, LitmusFile, Memory, Searched};

/// The files of crates/litmus/files.
fn files() -> Vec<LitmusFile> {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("../litmus/files");
    let entries = fs::read_dir(directory).unwrap();
    let mut paths: Vec<_> = entries.map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    let read = |path: &Path| {
        let text = fs::read_to_string(path).unwrap();
        LitmusFile::parse(&text, &path.display().to_string()).unwrap()
    };
    paths.iter().map(|path| read(path)).collect()
}

/// Why the search finds other final states than the axioms allow, in most cases more.
/// docs/reference/checker-internals.md explains each.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Reason {
    /// A dependency that makes no difference to what is done.
    FalseDependency,
    /// The address of a variable is read without acquire.
    AddressOfVariable,
    /// A compare-and-swap that fails is relaxed, where CASA acquires.
    FailedCompareAndSwap,
    /// A store depends on a load that does not acquire.
    DependentStore,
    /// A release comes after a load that does not acquire.
    RelaxedBeforeRelease,
    /// An acquire reads its thread's own read-modify-write, whose value depends on what that has read.
    OwnDependentWrite,
    /// Sequentially consistent accesses are ordered as they are executed. The search finds fewer final states.
    OrderOfExecution,
    /// A value is written only if it is read. The search finds fewer final states.
    AroundCycle,
}

/// The model and the file of each difference.
const DIFFERENCES: [(&str, &[Memory], Reason); 11] = {
    use Memory::{Arm, C11, Lkmm, Lkmm62, Riscv};
    [
        ("c11-z6.u", &[C11], Reason::OrderOfExecution),
        ("lb+address-po+mb", &[Arm, Riscv], Reason::FalseDependency),
        (
            "lb+carried-data+mb",
            &[Arm, Riscv, Lkmm, Lkmm62],
            Reason::FalseDependency,
        ),
        (
            "lb+false-data+mb",
            &[Arm, Riscv, Lkmm, Lkmm62],
            Reason::FalseDependency,
        ),
        (
            "isa2+rel+po-rel+acq",
            &[Lkmm, Lkmm62],
            Reason::RelaxedBeforeRelease,
        ),
        (
            "lb+ctrl-rfi-ctrl+ctrl",
            &[Arm, Riscv, Lkmm, Lkmm62],
            Reason::AroundCycle,
        ),
        (
            "lb+value-around-cycle",
            &[Arm, Riscv, Lkmm, Lkmm62],
            Reason::AroundCycle,
        ),
        (
            "mp+assign+dereference",
            &[Arm, Riscv, Lkmm, Lkmm62],
            Reason::AddressOfVariable,
        ),
        ("mp+rel+add-rfi-acq", &[Lkmm62], Reason::OwnDependentWrite),
        (
            "mp+rel+failed-cmpxchg-acq",
            &[Arm],
            Reason::FailedCompareAndSwap,
        ),
        ("s+rel+data", &[Lkmm, Lkmm62], Reason::DependentStore),
    ]
};

#[test]
fn the_search_finds_what_the_axioms_allow() {
    let files = files();
    let compiled = CompiledFiles::compile(&files, |_| Memory::ALL.to_vec()).unwrap();
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
                    let expected = match reason {
                        Reason::AroundCycle | Reason::OrderOfExecution => (0, 1),
                        _ => (1, 0),
                    };
                    let differences = searched.differences(&allowed);
                    assert_eq!(differences, expected, "{name} in {model}");
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
    assert!(agree >= 590, "{agree}");
}
