//! Judges the litmus tests of crates/litmus/files by all models.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use super::execution::{Event, Kind, Mark};
use super::*;

/// The name and the text of each file.
fn files() -> Vec<(String, String)> {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("files");
    let entries = fs::read_dir(directory).unwrap();
    let paths = entries.map(|entry| entry.unwrap().path());
    let litmus = paths.filter(|path| path.extension().is_some_and(|of| of == "litmus"));
    let read = |path: &Path| {
        let name = path.file_stem().unwrap().to_str().unwrap().to_owned();
        (name, fs::read_to_string(path).unwrap())
    };
    litmus.map(|path| read(&path)).collect()
}

pub(super) fn texts() -> Vec<String> {
    files().into_iter().map(|(_, text)| text).collect()
}

fn file(name: &str) -> LitmusFile {
    let found = files().into_iter().find(|(of, _)| of == name);
    let (name, text) = found.unwrap_or_else(|| panic!("no file {name}"));
    LitmusFile::parse(&text, &name).unwrap()
}

#[test]
fn all_files_are_as_documented() {
    let mut judged = 0;
    for (name, text) in files() {
        let test = LitmusFile::parse(&text, &name).unwrap();
        assert_eq!(test.name(), name);
        for model in Memory::ALL {
            let documented = test.documented(model);
            let allowed = match test.judge(model) {
                Ok(allowed) => allowed,
                // Only the kernel's model has grace periods, and only C11 its functions.
                Err(error) => {
                    let is_c11 = test.usual_model() == Memory::C11;
                    assert_eq!(documented, None, "{error}");
                    let has_grace = name.contains("rcu") || name.contains("grace");
                    let is_of_c11 = is_c11 && !model.has_c11_functions();
                    assert!(is_of_c11 || !model.is_kernel() && has_grace, "{error}");
                    continue;
                }
            };
            let verdict = Some(allowed.verdict());
            assert_eq!(verdict, documented, "{name} in {model}: {allowed:?}");
            judged += 1;
        }
    }
    assert!(judged > 650, "{judged}");
}

/// herd7's outcomes of the files that it reads, the last time that it was run.
const HERD7: &str = include_str!("../herd7.csv");

/// herd7 differs here, and is not followed.
const NOT_AS_HERD7: [(&str, Memory); 1] = [
    // The branch has no effect, so compilers make none. The file that herd7 judged had a branch of Arm, which
    // orders all later stores.
    ("lb+after-if+data", Memory::Arm),
];

#[test]
fn outcomes_are_those_of_herd7() {
    let mut judged = 0;
    for row in HERD7.lines().skip(1) {
        let [name, model, verdict, states] = row.split(',').collect::<Vec<_>>()[..] else {
            panic!("{row}");
        };
        let model = Memory::ALL.into_iter().find(|of| of.name() == model);
        let model = model.unwrap_or_else(|| panic!("{row}"));
        let allowed = file(name).judge(model);
        // It does not refuse what a model cannot order: grace periods in c11.
        let Ok(allowed) = allowed else {
            assert!(
                model == Memory::C11 && !name.contains("plain-race"),
                "{row}"
            );
            continue;
        };
        let found = (
            allowed.verdict().to_string(),
            allowed.states.len().to_string(),
        );
        let same = found == (verdict.to_owned(), states.to_owned());
        let is_known = NOT_AS_HERD7.contains(&(name, model));
        assert_eq!(same, !is_known, "{row}: {found:?}");
        judged += 1;
    }
    assert_eq!(judged, 427);
}

/// A model that allows less has no execution that one does not have which allows more.
#[test]
fn all_models_allow_what_is_sequentially_consistent() {
    for (name, text) in files() {
        let test = LitmusFile::parse(&text, &name).unwrap();
        let Ok(sc) = test.judge(Memory::Sc) else {
            continue;
        };
        for model in Memory::ALL {
            let Ok(allowed) = test.judge(model) else {
                assert_eq!(test.usual_model(), Memory::C11);
                continue;
            };
            assert!(allowed.satisfying >= sc.satisfying, "{name} in {model}");
            assert!(allowed.others >= sc.others, "{name} in {model}");
        }
    }
}

#[test]
fn races_are_reported_by_models_that_have_them() {
    let with_race = |model| {
        let all = files().into_iter();
        let test = |(name, text): (String, String)| LitmusFile::parse(&text, &name).unwrap();
        let races = all.map(test).filter(|test| {
            let allowed = test.judge(model);
            allowed.is_ok_and(|allowed| allowed.has_race)
        });
        races
            .map(|test| test.name().to_owned())
            .collect::<BTreeSet<_>>()
    };
    for model in [Memory::Lkmm, Memory::Lkmm62, Memory::C11] {
        let mut expected = BTreeSet::from([
            "mixed-accesses",
            "mixed-accesses+barrier",
            "mp+plain+race",
            "mp+plain-flag",
            "mp+plain-flag-read",
            "plain-read-and-write-race",
            "plain-write-and-read-race",
            "plain-writes-race",
            "rcu-plain-race",
            "wrc+plain+rel+acq",
        ]);
        if model.is_kernel() {
            expected.insert("lb+plain-around-cycle");
        }
        let expected: BTreeSet<_> = expected.iter().map(|name| (*name).to_owned()).collect();
        assert_eq!(with_race(model), expected, "{model}");
    }
    for model in [Memory::Sc, Memory::Tso, Memory::Arm, Memory::Riscv] {
        assert_eq!(with_race(model), BTreeSet::new(), "{model}");
    }
}

#[test]
fn a_witness_shows_what_each_read_sees() {
    let allowed = file("sb").judge(Memory::Lkmm).unwrap();
    let rows: Vec<_> = allowed
        .witness
        .iter()
        .map(|row| (row.thread, &*row.event))
        .collect();
    let expected = [
        (0, "write x = 1 (once)"),
        (0, "read y = 0 (once)"),
        (1, "write y = 1 (once)"),
        (1, "read x = 0 (once)"),
    ];
    assert_eq!(rows, expected);
    let from = |row: &WitnessRow| row.reads_from.clone();
    assert_eq!(from(&allowed.witness[0]), None);
    assert_eq!(from(&allowed.witness[1]).as_deref(), Some("initial value"));
    assert_eq!(file("sb").judge(Memory::Sc).unwrap().witness, []);
}

#[test]
fn plain_and_marked_accesses_without_a_barrier_are_reported() {
    for (name, text) in files() {
        let test = LitmusFile::parse(&text, &name).unwrap();
        let allowed = test.judge(test.usual_model()).unwrap();
        assert_eq!(
            allowed.has_mixed_accesses,
            name == "mixed-accesses",
            "{name}"
        );
    }
}

/// An event of a thread, or of the initial values.
fn event(thread: Option<usize>, kind: Kind, location: usize, value: i64) -> Event {
    Event {
        thread,
        kind,
        location: Some(location),
        value,
        of_rmw: false,
        line: 0,
    }
}

/// No model allows these executions, whatever the marks. The builder of candidates leaves them out, but a
/// run of the search may be one.
#[test]
fn all_models_have_coherence_and_atomicity() {
    let (read, write) = (Kind::Read(Mark::Once), Kind::Write(Mark::Once));
    let named = |x: &Execution, model| is_allowed(model, x).unwrap_err().name;

    // A thread reads the newer value and then the older one.
    let mut corr = Execution::new(vec![
        event(None, write, 0, 0),
        event(Some(0), write, 0, 1),
        event(Some(1), read, 0, 1),
        event(Some(1), read, 0, 0),
    ]);
    corr.co.insert(0, 1);
    corr.rf.insert(1, 2);
    corr.rf.insert(0, 3);
    // A thread reads what it writes later.
    let mut corw = Execution::new(vec![
        event(None, write, 0, 0),
        event(Some(0), read, 0, 1),
        event(Some(0), write, 0, 1),
    ]);
    corw.co.insert(0, 2);
    corw.rf.insert(2, 1);
    // Its two writes come in the wrong order.
    let mut coww = Execution::new(vec![
        event(None, write, 0, 0),
        event(Some(0), write, 0, 1),
        event(Some(0), write, 0, 2),
    ]);
    for (first, second) in [(0, 1), (0, 2), (2, 1)] {
        coww.co.insert(first, second);
    }
    for x in [&corr, &corw, &coww] {
        for model in Memory::ALL {
            let expected = match model {
                Memory::Sc => "sequential-consistency",
                Memory::Tso | Memory::Arm | Memory::Riscv => "internal",
                Memory::C11 | Memory::Lkmm | Memory::Lkmm62 => "coherence",
            };
            assert_eq!(named(x, model), expected, "{model}");
        }
    }

    // Two exchanges of different threads read the same value.
    let mut lost = Execution::new(vec![
        event(None, write, 0, 0),
        event(Some(0), read, 0, 0),
        event(Some(0), write, 0, 1),
        event(Some(1), read, 0, 0),
        event(Some(1), write, 0, 1),
    ]);
    for (first, second) in [(0, 2), (0, 4), (2, 4)] {
        lost.co.insert(first, second);
    }
    for read in [1, 3] {
        lost.rf.insert(0, read);
        lost.rmw.insert(read, read + 1);
    }
    for model in Memory::ALL {
        assert!(named(&lost, model).starts_with("atomic"), "{model}");
    }
}

/// Message passing from a release to an acquire of this mark.
#[test]
fn all_acquires_acquire() {
    for mark in [Mark::Once, Mark::Acquire, Mark::AcquirePc, Mark::SeqCst] {
        let write = Kind::Write(Mark::Once);
        let mut x = Execution::new(vec![
            event(None, write, 0, 0),
            event(None, write, 1, 0),
            event(Some(0), write, 0, 1),
            event(Some(0), Kind::Write(Mark::Release), 1, 1),
            event(Some(1), Kind::Read(mark), 1, 1),
            event(Some(1), Kind::Read(Mark::Once), 0, 0),
        ]);
        for (first, second) in [(0, 2), (1, 3)] {
            x.co.insert(first, second);
        }
        for (write, read) in [(3, 4), (0, 5)] {
            x.rf.insert(write, read);
        }
        for model in Memory::ALL {
            let expected = mark == Mark::Once && !matches!(model, Memory::Sc | Memory::Tso);
            assert_eq!(is_allowed(model, &x).is_ok(), expected, "{mark} in {model}");
        }
    }
}

/// Store buffering of accesses with these marks.
fn store_buffering(write: Mark, read: Mark) -> Execution {
    let initial = Kind::Write(Mark::Once);
    let mut x = Execution::new(vec![
        event(None, initial, 0, 0),
        event(None, initial, 1, 0),
        event(Some(0), Kind::Write(write), 0, 1),
        event(Some(0), Kind::Read(read), 1, 0),
        event(Some(1), Kind::Write(write), 1, 1),
        event(Some(1), Kind::Read(read), 0, 0),
    ]);
    for (first, second) in [(0, 2), (1, 4)] {
        x.co.insert(first, second);
    }
    for (write, read) in [(1, 3), (0, 5)] {
        x.rf.insert(write, read);
    }
    x
}

#[test]
fn a_broken_axiom_has_a_name_and_a_cycle() {
    let broken = is_allowed(Memory::Sc, &store_buffering(Mark::Once, Mark::Once)).unwrap_err();
    assert_eq!(broken.name, "sequential-consistency");
    assert_eq!(broken.cycle, [2, 3, 4, 5]);
}

/// Marks that runs of the search have, and litmus files do not.
#[test]
fn sequentially_consistent_accesses_and_weak_acquires_are_judged() {
    let allowed = |model, write, read| is_allowed(model, &store_buffering(write, read)).is_ok();
    for (write, read, models) in [
        (Mark::SeqCst, Mark::SeqCst, &[Memory::Arm, Memory::C11][..]),
        (Mark::Release, Mark::Acquire, &[Memory::Arm]),
        (Mark::Release, Mark::AcquirePc, &[]),
    ] {
        for model in [Memory::Arm, Memory::C11] {
            let forbidden = models.contains(&model);
            assert_eq!(
                !allowed(model, write, read),
                forbidden,
                "{model}: {write}, {read}"
            );
        }
    }
}

/// The beginning of a test, of which the given text is what follows the initial values.
fn refusal(rest: &str) -> String {
    let text = format!("C test\n\n{{}}\n{rest}");
    match LitmusFile::parse(&text, "test.litmus") {
        Err(error) => error.to_string(),
        Ok(test) => match test.judge(Memory::Lkmm) {
            Err(error) => error.to_string(),
            Ok(allowed) => panic!("{rest}: {allowed:?}"),
        },
    }
}

#[test]
fn what_is_not_understood_is_refused_with_its_line() {
    let body = |statement: &str| {
        format!("P0(int *x)\n{{\n\tint r0;\n\t{statement}\n}}\nexists (0:r0=1)\n")
    };
    for (statement, what) in [
        (
            "while (1) ;",
            "'while' is not in litmus tests that are read",
        ),
        ("r0 = call_rcu(x);", "call_rcu(), which is no operation"),
        (
            "r0 = READ_ONCE(x);",
            "an argument of READ_ONCE() that does not begin with '*'",
        ),
        (
            "r0 = READ_ONCE(*y);",
            "'y', which is neither a parameter nor declared",
        ),
        ("r0 = xchg(x);", "1 arguments of xchg(), which takes 2"),
        ("r0 = smp_mb();", "smp_mb() as a value"),
        ("r0 = 1 ? 2 : 3;", "'?' is not in litmus tests"),
        (
            "r0 = r0 && READ_ONCE(*x);",
            "a shared access that '&&' or '||' may leave out",
        ),
        ("r0 + 1;", "an expression without effect"),
        ("WRITE_ONCE(*x, 1)", "'}' where ';' is expected"),
        (
            "r0 = READ_ONCE(*r0);",
            "P0 accesses the address 0, where no variable is",
        ),
        ("r0 = 1 / READ_ONCE(*x);", "P0 divides by zero"),
        (
            "atomic_inc_return_sideways(x);",
            "atomic_inc_return_sideways(), which is no",
        ),
        ("x = r0 @ 1;", "the character '@'"),
        (
            "r0 = 99999999999999999999;",
            "the number '99999999999999999999'",
        ),
    ] {
        let error = refusal(&body(statement));
        let (place, message) = error.split_at("test.litmus:7:".len());
        assert!(message.contains(what), "{statement}: {error}");
        // A missing semicolon shows on the next line.
        let line = if what.starts_with("'}'") { 8 } else { 7 };
        assert_eq!(
            place,
            format!("test.litmus:{line}:"),
            "{statement}: {error}"
        );
    }
    let thread = "P0(int *x) { int r0 = READ_ONCE(*x); }\n";
    for (rest, expected) in [
        ("P1(int *x) { }", "4: P1 where P0 is expected"),
        ("P0(int x) { }", "4: the parameter 'x', which is no pointer"),
        ("exists (x=1)", "4: 'exists' where P0 begins"),
        (
            &format!("{thread}exists (0:r1=1)"),
            "5: 0:r1, which the test does not have",
        ),
        (
            &format!("{thread}exists (z=1)"),
            "5: 'z', which the test does not have",
        ),
        (
            &format!("{thread}exists (x=1) x"),
            "5: 'x' after the condition",
        ),
        (
            &format!("{thread}observe (x=1)"),
            "5: 'observe' where 'exists'",
        ),
    ] {
        let error = refusal(rest);
        assert!(
            error.starts_with(&format!("test.litmus:{expected}")),
            "{error}"
        );
    }
    let headings = [
        ("AArch64 MP\n{}", "1: 'AArch64 MP' where 'C NAME' begins"),
        ("C test\nunknown words\n{}", "2: 'unknown words' where '{'"),
        ("C test\n(* no end", "2: a comment that does not end"),
        ("C test\n", "2: no initial values"),
        ("C test\n{\nint a[2];\n}", "3: 'a' as an array"),
        (
            "C test\n{\n0:r0=1;\n}\nP0(int *x) { }\nexists (x=1)",
            "3: an initial value of 0:r0",
        ),
    ];
    for (text, expected) in headings {
        let error = LitmusFile::parse(text, "test.litmus")
            .unwrap_err()
            .to_string();
        assert!(
            error.starts_with(&format!("test.litmus:{expected}")),
            "{error}"
        );
    }
}

#[test]
fn grace_periods_are_refused_by_models_without_them() {
    let error = file("rcu-grace-period").judge(Memory::Arm).unwrap_err();
    assert!(
        error
            .to_string()
            .contains("which only lkmm has; the model is arm"),
        "{error}"
    );
}

/// All forms of initial values, declarations and conditions.
#[test]
fn all_forms_of_a_test_are_read() {
    let text = r"C forms
Cycle=Fre PodWR
(* Result: Always (sc: Always) *)
{
	x=1; int y; int z = -2; atomic_t v = ATOMIC_INIT(3); spinlock_t l;
	int *p = &x; [w]=4; q=y; 0:r5=7; /* a comment */ int *n = NULL;
}

P0(int *x, int *y, atomic_t *v, struct some_type *s, volatile int **p)
{
	int r0, r1 = 0x10, *r2;
	unsigned long r3 = (unsigned long)2;
	int r5;
	// a comment (* with a star
	r0 = READ_ONCE(*x) + !r1;
	r2 = rcu_dereference(*p);
	(void)atomic_add_unless(v, 1, 0);
	if (r0 == 1 && r1 != 3) {
		*y = 5;
	} else if (r0) {
		*y = 6;
	} else
		;
	r4 = -r3 * 2 + (r1 >> 3) - 1 % 2;
}

P1(int *w) { }

locations [x; 0:r0; 0:r7]
filter (0:r0=1 \/ x=9)
forall (0:r0=1 /\ 0:r1=16 /\ 0:r2=x /\ p=&x /\ z=-2 /\ v=4 /\ w=4 /\ q=y /\ [y]=5 /\ n=0 /\
        0:r3=2 /\ 0:r4=-3 /\ 0:r5=7 /\ ~(x=2 \/ false) /\ true /\ 0:r0=x /\ x != 5 /\ 0:r0 = 0:r0)
";
    let test = LitmusFile::parse(&text.replace(r" /\ 0:r0=x", ""), "forms").unwrap();
    for model in Memory::ALL {
        let allowed = test.judge(model).unwrap();
        assert_eq!(allowed.verdict(), Verdict::Always, "{model}: {allowed:?}");
    }
    // A name on the right is an address, as in the kernel's tests.
    let test = LitmusFile::parse(text, "forms").unwrap();
    assert_eq!(test.judge(Memory::Sc).unwrap().verdict(), Verdict::Never);
    assert_eq!(test.documented(Memory::Sc), Some(Verdict::Always));
    assert_eq!(test.documented(Memory::Arm), None);
}

mod properties {
    use lockworks_properties::{names_a_line, nearly};
    use proptest::prelude::*;

    use super::*;

    /// A text is refused in one line that names the place, or it can be judged, or there is a line
    /// that says why not.
    fn refused_or_judged(text: &str) -> Result<(), TestCaseError> {
        let judged = LitmusFile::parse(text, "x.litmus").and_then(|test| test.judge(Memory::Lkmm));
        match judged {
            Ok(_) => Ok(()),
            Err(error) => names_a_line(&error.to_string()),
        }
    }

    proptest! {
        #[test]
        fn any_text_is_refused(text in "\\PC*|.*|C .*\\{.*\\}.*") {
            prop_assert!(LitmusFile::parse(&text, "x.litmus").is_err());
            refused_or_judged(&text)?;
        }

        #[test]
        fn a_changed_test_is_refused_or_judged(text in nearly(texts(), 3)) {
            refused_or_judged(&text)?;
        }
    }
}
