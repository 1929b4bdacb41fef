//! Random litmus tests: what the search finds of them is what the axioms allow.

use std::fmt::Write;

use lockworks_check::{CompiledFiles, LitmusFile, Memory};
use rand::RngExt;
use rand_pcg::Pcg64;

/// The number of tests. Each is run in all models.
const TESTS: u64 = 400;
const VARIABLES: [&str; 3] = ["x", "y", "z"];

/// A thread that is being written.
struct Thread<'a> {
    random: &'a mut Pcg64,
    variables: &'a [&'a str],
    registers: usize,
    text: String,
}

impl Thread<'_> {
    fn one_of<'b>(&mut self, words: &[&'b str]) -> &'b str {
        words[self.random.random_range(0..words.len())]
    }

    fn variable(&mut self) -> &'static str {
        let number = self.random.random_range(0..self.variables.len());
        VARIABLES[number]
    }

    fn register(&mut self) -> String {
        self.registers += 1;
        format!("r{}", self.registers - 1)
    }

    /// A number, or what an earlier operation has read.
    fn value(&mut self) -> String {
        match self.registers {
            0 => self.one_of(&["1", "2"]).to_owned(),
            n if self.random.random_bool(0.3) => format!("r{} + 1", self.random.random_range(0..n)),
            _ => self.one_of(&["1", "2"]).to_owned(),
        }
    }

    fn store(&mut self) -> String {
        let (variable, value) = (self.variable(), self.value());
        match self.random.random_bool(0.6) {
            true => format!("WRITE_ONCE(*{variable}, {value});"),
            false => format!("smp_store_release({variable}, {value});"),
        }
    }

    fn operation(&mut self) {
        let line = match self.random.random_range(0..100) {
            0..30 => {
                let variable = self.variable();
                let load = match self.random.random_bool(0.6) {
                    true => format!("READ_ONCE(*{variable})"),
                    false => format!("smp_load_acquire({variable})"),
                };
                format!("int {} = {load};", self.register())
            }
            30..60 => self.store(),
            60..72 => "smp_mb();".to_owned(),
            72..75 => self.one_of(&["smp_rmb();", "smp_wmb();"]).to_owned(),
            75..82 if self.registers > 0 => {
                let register = self.random.random_range(0..self.registers);
                format!("if (r{register}) {{ {} }}", self.store())
            }
            _ => {
                let (variable, value) = (self.variable(), self.value());
                let order = self.one_of(&["", "_relaxed", "_acquire", "_release"]);
                let rmw = match self.random.random_range(0..3) {
                    0 => format!("xchg{order}({variable}, {value})"),
                    1 => format!("atomic_fetch_add{order}(1, {variable})"),
                    _ => format!("cmpxchg{order}({variable}, 1, {value})"),
                };
                format!("int {} = {rmw};", self.register())
            }
        };
        writeln!(self.text, "\t{line}").unwrap();
    }
}

/// A test whose condition observes everything.
fn text(number: u64) -> String {
    let mut random = Pcg64::new(1, number.into());
    let threads = random.random_range(2..4);
    let variables = &VARIABLES[..random.random_range(2..4)];
    let mut text = format!("C random-{number}\n{{}}\n");
    let mut condition: Vec<String> = variables.iter().map(|v| format!("{v}=1")).collect();
    for thread in 0..threads {
        let mut body = Thread {
            random: &mut random,
            variables,
            registers: 0,
            text: String::new(),
        };
        let most = if threads == 2 { 5 } else { 4 };
        for _ in 0..body.random.random_range(2..most) {
            body.operation();
        }
        let parameters: Vec<String> = variables.iter().map(|v| format!("int *{v}")).collect();
        let parameters = parameters.join(", ");
        let registers = 0..body.registers;
        condition.extend(registers.map(|register| format!("{thread}:r{register}=1")));
        writeln!(text, "P{thread}({parameters})\n{{\n{}}}", body.text).unwrap();
    }
    text + &format!("exists ({})\n", condition.join(" /\\ "))
}

/// The tests in which the search finds other final states than the axioms allow: the number of the test,
/// and how many states are found in addition, and how many are not. docs/reference/checker-internals.md has
/// the reasons.
const DIFFERENCES: [(u64, &[Memory], (usize, usize)); 8] = {
    use Memory::{Arm, Lkmm, Lkmm62, Riscv};
    [
        // The value of a store, and with it the store, depends on a load that does not acquire.
        (27, &[Lkmm, Lkmm62], (1, 0)),
        // A store comes before one that a full barrier has made visible to all.
        (84, &[Lkmm, Lkmm62], (1, 0)),
        // The same; and a store that waits for a delayed load is not delayed itself.
        (229, &[Lkmm, Lkmm62], (1, 1)),
        // FENCE R,RW, behind an atomic that acquires, orders earlier loads too; AMO.AQ does not.
        (206, &[Riscv], (2, 0)),
        // A compare-and-swap that acquires is not delayed, even if it fails.
        (232, &[Riscv], (0, 1)),
        // A compare-and-swap that fails acquires as CASA, and not in the search.
        (237, &[Arm], (3, 0)),
        // LDADDA waits for STLR, and a read-modify-write of the search does not.
        (312, &[Arm], (2, 0)),
        // The value of a store depends on a delayed load, so that the store is not delayed.
        (389, &[Arm, Lkmm, Lkmm62], (0, 1)),
    ]
};

#[test]
fn the_search_finds_what_the_axioms_allow_in_some_tests() {
    let agree = compare((0..TESTS).step_by(4));
    assert!(agree > 610, "{agree}");
}

#[test]
#[ignore = "wide"]
fn the_search_finds_what_the_axioms_allow() {
    let agree = compare(0..TESTS);
    assert!(agree > 2450, "{agree}");
}

/// Compares both ways of judging the tests of these numbers. Returns how often they agree.
fn compare(numbers: impl Iterator<Item = u64>) -> usize {
    let texts: Vec<(u64, String)> = numbers.map(|number| (number, text(number))).collect();
    let files: Vec<LitmusFile> = texts
        .iter()
        .map(|(_, text)| LitmusFile::parse(text, "random").unwrap())
        .collect();
    let compiled = CompiledFiles::compile(&files, |_| Memory::ALL.to_vec()).unwrap();
    let (mut agree, mut refused) = (0, 0);
    let mut wrong = Vec::new();
    for (index, (file, (number, text))) in files.iter().zip(&texts).enumerate() {
        for model in Memory::ALL {
            let allowed = file.judge(model).unwrap();
            let searched = compiled.search(index, model);
            let mut known = DIFFERENCES.iter();
            let known = known.find(|(of, models, _)| of == number && models.contains(&model));
            match (searched.agrees(&allowed), known) {
                // smp_rmb(), smp_wmb()
                (None, None) => refused += 1,
                (Some(true), None) => agree += 1,
                (Some(false), Some((_, _, known))) if searched.differences(&allowed) == *known => {}
                _ => {
                    let found = searched.differences(&allowed);
                    wrong.push(format!("{text} in {model}: {found:?}, listed {known:?}"));
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    println!("{agree} agree, {refused} refused");
    agree
}
