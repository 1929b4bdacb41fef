//! Litmus tests in C, with the operations that locks have, so that the search can run them.
//!
//! Each model has a translation of its own, because the operations of the kernel become other
//! operations in each: the table in docs/reference/checker-internals.md says which. What a model of the
//! search has no operation for is refused.
//!
//! A thread may have to guess, where an operation does one thing or another by the value that it reads.
//! If the guess proves wrong, the thread gives its run up, and the run counts for nothing.

use std::collections::BTreeSet;
use std::fmt::Write;

use crate::Memory;

use super::candidates;
use super::execution::{Fence, Kind, Mark};
use super::syntax::{
    Action, Binary, CompareExchange, Expression, Observed, Statement, Test, Unary, Update,
};
use super::syntax::{address, location_of};

/// Why the search cannot run a test, in a word or two.
pub(super) type Word = &'static str;

/// The limits of the search, and the addresses that it gives to the variables of a test.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Room {
    /// The most threads.
    pub threads: usize,
    /// The most variables.
    pub variables: usize,
    /// The address of the first of them. Each has eight bytes.
    pub address: usize,
}

impl Room {
    /// The address of a variable in the search, if it has room for it.
    fn variable(self, location: usize) -> Option<i64> {
        (location < self.variables).then(|| (self.address + 8 * location) as i64)
    }

    /// A value as memory has it in the search: addresses are those of the search.
    fn in_memory(self, value: i64) -> i64 {
        let location = location_of(value);
        location
            .and_then(|location| self.variable(location))
            .unwrap_or(value)
    }

    /// The value that a value in the memory of the search stands for.
    fn value_of(self, value: u64) -> i64 {
        let mut variables = 0..self.variables;
        let location = variables.find(|location| self.variable(*location) == Some(value as i64));
        location.map_or(value as i64, address)
    }

    /// A number of a test; numbers are addresses where they are those of variables.
    fn number_in_c(self, number: i64) -> String {
        match location_of(number) {
            Some(location) if location < self.variables => {
                format!("(int64_t)(uintptr_t)&m->v[{location}]")
            }
            _ if number == i64::MIN => "INT64_MIN".to_owned(),
            _ => format!("INT64_C({number})"),
        }
    }
}

/// A test in C.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct InC {
    /// The bodies of its threads.
    pub threads: Vec<String>,
    /// The initial values of its variables, as the search has them.
    pub initial: Vec<i64>,
    room: Room,
    /// The variables that each thread reports.
    reported: Vec<Vec<usize>>,
}

/// The bits of a value in a thread's report.
const BITS: u32 = 10;
/// The most values that a thread can report.
const MOST_REPORTED: usize = 6;
/// Numbers from `-SMALL` to `SMALL - 1` are reported, and the addresses of variables, which follow.
const SMALL: i64 = 256;
/// A value that is neither.
const OTHER: u64 = (1 << BITS) - 1;
/// The report of a thread that gives its run up.
const GIVEN_UP: u64 = 1 << 62;

impl InC {
    /// The text before all tests: types, and how threads report.
    pub fn prelude(room: Room) -> String {
        format!(
            "#pragma GCC diagnostic ignored \"-Wunused-variable\"\n\
         #pragma GCC diagnostic ignored \"-Wunused-but-set-variable\"\n\
         #include \"litmus.h\"\n#include \"surroundings.h\"\n\
         typedef lw_atomic(uint64_t) variable;\n\
         struct lw_litmus_memory {{\n\tvariable v[{}];\n}};\n\
         #define AT(address) ((variable *)(uintptr_t)(address))\n\
         #define PLAIN(address) ((uint64_t *)(uintptr_t)(address))\n\
         #define GIVE_UP do {{ lw_check_result({GIVEN_UP}u); return; }} while (0)\n\
         #define CMPXCHG(address, expected, value, order) ({{ \\\n\
         \tuint64_t lw_old = (uint64_t)(expected); \\\n\
         \t(void)lw_try_cmpxchg(AT(address), &lw_old, (uint64_t)(value), order); \\\n\
         \t(int64_t)lw_old; }})\n\
         static inline uint64_t code(const struct lw_litmus_memory *m, int64_t value)\n{{\n\
         \tuint64_t offset = (uint64_t)value - (uintptr_t)m;\n\n\
         \tif (value >= -{SMALL} && value < {SMALL})\n\t\treturn (uint64_t)(value + {SMALL});\n\
         \treturn offset < sizeof(*m) && offset % 8 == 0 ? {} + offset / 8 : {OTHER};\n}}\n",
            room.variables,
            2 * SMALL,
        )
    }

    /// Translates a test for a model.
    pub(super) fn of(test: &Test, model: Memory, room: Room) -> Result<Self, Word> {
        if test.c11.is_some() && !model.has_c11_functions() {
            return Err("functions of C11");
        }
        if test.threads.len() > room.threads {
            return Err("too many threads");
        }
        if test.locations.len() > room.variables {
            return Err("too many variables");
        }
        let values = written_values(test, model)?;
        let mut observed = Vec::new();
        test.condition.observed(&mut observed);
        if let Some(filter) = &test.filter {
            filter.observed(&mut observed);
        }
        observed.sort_unstable();
        observed.dedup();
        let mut threads = Vec::new();
        let mut reported = Vec::new();
        for (number, thread) in test.threads.iter().enumerate() {
            let of_thread = |part: &Observed| match part {
                Observed::Variable(thread, variable) if *thread == number => Some(*variable),
                _ => None,
            };
            let report: Vec<usize> = observed.iter().filter_map(of_thread).collect();
            if report.len() > MOST_REPORTED {
                return Err("too many results");
            }
            let mut body = Body {
                model,
                room,
                values: &values,
                text: String::new(),
                temporaries: 0,
                rmws_left: rmws(&thread.body),
                rmws_done: 0,
                has_noreturn: false,
            };
            for (i, variable) in thread.variables.iter().enumerate() {
                let initial = room.number_in_c(variable.initial);
                body.line(&format!("int64_t r{i} = {initial};"));
            }
            body.statements(&thread.body)?;
            let parts = report.iter().enumerate().map(|(place, variable)| {
                format!("code(m, r{variable}) << {}", place * BITS as usize)
            });
            let parts: Vec<String> = parts.collect();
            if !parts.is_empty() {
                body.line(&format!("lw_check_result({});", parts.join(" | ")));
            }
            threads.push(body.text);
            reported.push(report);
        }
        let initial = test.locations.iter().map(|location| location.initial);
        Ok(Self {
            threads,
            initial: initial.map(|value| room.in_memory(value)).collect(),
            room,
            reported,
        })
    }

    /// The final state of a run: the values that threads report, by thread and variable, and those of
    /// memory. None: the run was given up.
    pub(super) fn state(&self, results: &[u64]) -> Result<Option<FinalState>, Word> {
        let (of_threads, memory) = results.split_at(self.threads.len());
        if of_threads.contains(&(GIVEN_UP + 1)) {
            return Ok(None);
        }
        let mut variables = Vec::new();
        for (thread, (result, report)) in of_threads.iter().zip(&self.reported).enumerate() {
            for (place, variable) in report.iter().enumerate() {
                let code = (result - 1) >> (place * BITS as usize) & OTHER;
                let value = match code {
                    OTHER => return Err("a large value"),
                    _ if code < 2 * SMALL as u64 => code as i64 - SMALL,
                    _ => address((code - 2 * SMALL as u64) as usize),
                };
                variables.push((Observed::Variable(thread, *variable), value));
            }
        }
        Ok(Some(FinalState {
            variables,
            memory: memory
                .iter()
                .map(|value| self.room.value_of(*value))
                .collect(),
        }))
    }
}

/// The end of a run.
pub(super) struct FinalState {
    variables: Vec<(Observed, i64)>,
    memory: Vec<i64>,
}

impl FinalState {
    pub(super) fn value(&self, of: Observed) -> i64 {
        match of {
            Observed::Location(location) => self.memory[location],
            Observed::Variable(..) => {
                let mut found = self.variables.iter().filter(|(part, _)| *part == of);
                found.next().expect("it is reported").1
            }
        }
    }
}

/// All values that the variables of a test may have, if the search has all that is done to them.
fn written_values(test: &Test, model: Memory) -> Result<BTreeSet<i64>, Word> {
    let traces = candidates::traces(test).map_err(|_| "too large")?;
    let initial = test.locations.iter().map(|location| location.initial);
    let mut values: BTreeSet<i64> = initial.collect();
    let (mut plain, mut marked) = (BTreeSet::new(), BTreeSet::new());
    for event in traces.iter().flatten().flat_map(|trace| &trace.events) {
        let mark = match event.kind {
            Kind::Read(mark) | Kind::Write(mark) => mark,
            Kind::Fence(_) => continue,
        };
        if matches!(event.kind, Kind::Write(_)) {
            values.insert(event.value);
        }
        let of_kind = match mark {
            Mark::Plain => &mut plain,
            _ => &mut marked,
        };
        of_kind.extend(event.location);
    }
    // The search has atomic variables, and others that are not atomic.
    if has_plain_data(model) && !plain.is_disjoint(&marked) {
        return Err("mixed accesses");
    }
    Ok(values)
}

/// Whether plain accesses are something else than atomic ones.
fn has_plain_data(model: Memory) -> bool {
    model == Memory::C11 || model.is_kernel()
}

/// The number of read-modify-writes in the source.
fn rmws(statements: &[Statement]) -> usize {
    let of_statement = |statement: &Statement| match &statement.action {
        Action::Assign(_, value) | Action::Evaluate(value) => rmws_in(value),
        Action::Store { address, value, .. } => rmws_in(address) + rmws_in(value),
        Action::Lock(address) | Action::SyncSrcu(address) => rmws_in(address),
        Action::Fence(_) => 0,
        Action::If {
            condition,
            then,
            otherwise,
        } => rmws_in(condition) + rmws(then) + rmws(otherwise),
    };
    statements.iter().map(of_statement).sum()
}

fn rmws_in(expression: &Expression) -> usize {
    match expression {
        Expression::Number(_) | Expression::Variable(_) => 0,
        Expression::Load(value, _)
        | Expression::Unary(_, value)
        | Expression::TryLock(value)
        | Expression::IsLocked(value) => rmws_in(value),
        Expression::Binary(_, a, b) => rmws_in(a) + rmws_in(b),
        Expression::Rmw { address, .. } => 1 + rmws_in(address),
        // The order of kernel's operations beside fences is asked for, not that of C11's.
        Expression::CompareExchange(_) => 0,
    }
}

/// Whether a statement is a read-modify-write, and accesses nothing else.
fn is_lone_rmw(statement: Option<&Statement>) -> bool {
    let expression = match statement.map(|statement| &statement.action) {
        Some(Action::Assign(_, value) | Action::Evaluate(value)) => value,
        _ => return false,
    };
    let Expression::Rmw {
        address, update, ..
    } = expression
    else {
        return false;
    };
    is_pure(address)
        && match update {
            Update::Exchange(value) | Update::Fetch(_, value) | Update::Apply(_, value) => {
                is_pure(value)
            }
            Update::CompareExchange(a, b) | Update::AddUnless(a, b) => is_pure(a) && is_pure(b),
        }
}

fn is_pure(expression: &Expression) -> bool {
    match expression {
        Expression::Number(_) | Expression::Variable(_) => true,
        Expression::Unary(_, value) => is_pure(value),
        Expression::Binary(_, a, b) => is_pure(a) && is_pure(b),
        Expression::Load(..)
        | Expression::Rmw { .. }
        | Expression::CompareExchange(_)
        | Expression::TryLock(_)
        | Expression::IsLocked(_) => false,
    }
}

/// The body of a thread that is being written.
struct Body<'a> {
    model: Memory,
    room: Room,
    /// The values that the variables of the test may have.
    values: &'a BTreeSet<i64>,
    text: String,
    temporaries: usize,
    /// The read-modify-writes of the thread that are not written yet, and those that are.
    rmws_left: usize,
    rmws_done: usize,
    /// There has been one without a result.
    has_noreturn: bool,
}

impl Body<'_> {
    fn line(&mut self, line: &str) {
        writeln!(self.text, "\t{line}").expect("a string takes all text");
    }

    /// Keeps a value in a variable of its own, so that accesses come in their order.
    fn keep(&mut self, value: &str) -> String {
        let name = format!("t{}", self.temporaries);
        self.temporaries += 1;
        self.line(&format!("int64_t {name} = (int64_t)({value});"));
        name
    }

    fn statements(&mut self, statements: &[Statement]) -> Result<(), Word> {
        for (i, statement) in statements.iter().enumerate() {
            match &statement.action {
                Action::Assign(variable, value) => {
                    let value = self.value(value)?;
                    self.line(&format!("r{variable} = {value};"));
                }
                Action::Evaluate(value) => {
                    self.value(value)?;
                }
                Action::Store {
                    address,
                    value,
                    mark,
                } => {
                    let address = self.value(address)?;
                    let value = self.value(value)?;
                    self.store(&address, &value, *mark)?;
                }
                Action::Fence(fence) => {
                    let before = i.checked_sub(1).and_then(|before| statements.get(before));
                    self.fence(*fence, before, statements.get(i + 1))?;
                }
                Action::Lock(address) => {
                    self.has_locks()?;
                    let address = self.value(address)?;
                    self.line(&format!(
                        "if (CMPXCHG({address}, 0, 1, acquire) != 0) GIVE_UP;"
                    ));
                }
                Action::SyncSrcu(_) => return Err("SRCU"),
                Action::If {
                    condition,
                    then,
                    otherwise,
                } => {
                    let condition = self.value(condition)?;
                    self.line(&format!("if ({condition}) {{"));
                    self.statements(then)?;
                    self.line("} else {");
                    self.statements(otherwise)?;
                    self.line("}");
                }
            }
        }
        Ok(())
    }

    /// In the kernel's model a spinlock orders more than an exchange and a store do.
    fn has_locks(&self) -> Result<(), Word> {
        match self.model.is_kernel() {
            true => Err("spin locks"),
            false => Ok(()),
        }
    }

    fn store(&mut self, address: &str, value: &str, mark: Mark) -> Result<(), Word> {
        let order = match mark {
            Mark::Plain if has_plain_data(self.model) => {
                self.line(&format!(
                    "lw_plain_write(PLAIN({address}), (uint64_t)({value}));"
                ));
                return Ok(());
            }
            Mark::Plain | Mark::Once => "relaxed",
            Mark::Release => "release",
            Mark::SeqCst => "seq_cst",
            Mark::Unlock => {
                self.has_locks()?;
                "release"
            }
            Mark::SrcuLock | Mark::SrcuUnlock => return Err("SRCU"),
            _ => return Err("a store"),
        };
        self.line(&format!(
            "lw_store(AT({address}), (uint64_t)({value}), {order});"
        ));
        Ok(())
    }

    fn fence(
        &mut self,
        fence: Fence,
        before: Option<&Statement>,
        after: Option<&Statement>,
    ) -> Result<(), Word> {
        let model = self.model;
        let full = "lw_fence(seq_cst);";
        match fence {
            Fence::SyncRcu => return Err("RCU"),
            Fence::SyncSrcu | Fence::AfterSrcuReadUnlock => return Err("SRCU"),
            Fence::RcuLock | Fence::RcuUnlock if model.is_kernel() => return Err("RCU"),
            Fence::RcuLock | Fence::RcuUnlock | Fence::Barrier => {}
            _ if model == Memory::Sc => {}
            Fence::Mb => self.line(full),
            // Locked operations are full barriers, and nothing else is out of order.
            _ if model == Memory::Tso => {}
            // FENCE R,R. The search has FENCE R,RW.
            Fence::Rmb if model == Memory::Riscv => return Err("smp_rmb"),
            Fence::Rmb | Fence::Wmb if model.is_kernel() => return Err("smp_rmb, smp_wmb"),
            // STADD is no read for DMB ISHLD. The search has LDADD only.
            Fence::Rmb if model == Memory::Arm && self.has_noreturn => return Err("STADD"),
            Fence::Rmb => self.line("lw_fence(acquire);"),
            Fence::Wmb if model.is_multi_copy_atomic() => return Err("smp_wmb"),
            Fence::Wmb => self.line("lw_fence(release);"),
            // They order the read-modify-write beside them, which is a full fence at that place.
            Fence::BeforeAtomic if model.is_kernel() && !is_lone_rmw(after) => {
                if self.rmws_left > 0 {
                    return Err("smp_mb__before_atomic");
                }
            }
            Fence::AfterAtomic if model.is_kernel() && !is_lone_rmw(before) => {
                if self.rmws_done > 0 {
                    return Err("smp_mb__after_atomic");
                }
            }
            Fence::AfterSpinlock | Fence::AfterUnlockLock if model.is_kernel() => {
                return Err("spin locks");
            }
            Fence::AfterUnlockLock if model.is_multi_copy_atomic() => {}
            Fence::BeforeAtomic
            | Fence::AfterAtomic
            | Fence::AfterSpinlock
            | Fence::AfterUnlockLock => self.line(full),
        }
        Ok(())
    }

    /// Evaluates an expression, and returns a text that has its value and accesses nothing.
    fn value(&mut self, expression: &Expression) -> Result<String, Word> {
        Ok(match expression {
            Expression::Number(number) => self.room.number_in_c(*number),
            Expression::Variable(variable) => format!("r{variable}"),
            Expression::Load(address, mark) => {
                let address = self.value(address)?;
                self.load(&address, *mark)?
            }
            Expression::Unary(operator, value) => {
                let value = self.value(value)?;
                match operator {
                    Unary::Not => format!("(int64_t)!({value})"),
                    Unary::Negate => format!("(int64_t)(0 - (uint64_t)({value}))"),
                    Unary::Complement => format!("~({value})"),
                }
            }
            Expression::Binary(operator, a, b) => {
                let (a, b) = (self.value(a)?, self.value(b)?);
                binary(*operator, &a, &b)?
            }
            Expression::Rmw {
                address,
                update,
                marks,
            } => self.rmw(address, update, *marks)?,
            Expression::CompareExchange(operation) => self.compare_exchange(operation)?,
            Expression::TryLock(address) => {
                self.has_locks()?;
                let address = self.value(address)?;
                self.keep(&format!("CMPXCHG({address}, 0, 1, acquire) == 0"))
            }
            Expression::IsLocked(address) => {
                self.has_locks()?;
                let address = self.value(address)?;
                self.keep(&format!("lw_load(AT({address}), relaxed) != 0"))
            }
        })
    }

    fn load(&mut self, address: &str, mark: Mark) -> Result<String, Word> {
        let order = match mark {
            Mark::Plain if has_plain_data(self.model) => {
                return Ok(self.keep(&format!("lw_plain_read(PLAIN({address}))")));
            }
            Mark::Plain | Mark::Once => "relaxed",
            // LDAR, which waits for an earlier STLR. The search has LDAPR for `acquire`.
            Mark::Acquire if self.model == Memory::Arm => "seq_cst",
            Mark::Acquire => "acquire",
            Mark::SeqCst => "seq_cst",
            Mark::SrcuLock | Mark::SrcuUnlock => return Err("SRCU"),
            _ => return Err("a load"),
        };
        Ok(self.keep(&format!("lw_load(AT({address}), {order})")))
    }

    /// C11's, in C11 or where orders mean nothing.
    fn compare_exchange(&mut self, operation: &CompareExchange) -> Result<String, Word> {
        let address = self.value(&operation.address)?;
        let expected_at = self.value(&operation.expected)?;
        let new = self.value(&operation.new)?;
        let expected = self.load(&expected_at, Mark::Plain)?;
        let (old, done) = (self.keep(&expected), self.keep("1"));
        let (order, failure) = (
            order(operation.marks)?,
            order((operation.failure, Mark::Once))?,
        );
        self.line("if (lw_choose(2)) {");
        self.line(&format!(
            "if (CMPXCHG({address}, {expected}, {new}, {order}) != {expected}) GIVE_UP;"
        ));
        self.line("} else {");
        self.line(&format!(
            "{old} = (int64_t)lw_load(AT({address}), {failure});"
        ));
        if !operation.is_weak {
            self.line(&format!("if ({old} == {expected}) GIVE_UP;"));
        }
        self.store(&expected_at, &old, Mark::Plain)?;
        self.line(&format!("{done} = 0;"));
        self.line("}");
        Ok(done)
    }

    fn rmw(
        &mut self,
        address: &Expression,
        update: &Update,
        marks: (Mark, Mark),
    ) -> Result<String, Word> {
        let address = self.value(address)?;
        let operands: Vec<String> = match update {
            Update::Exchange(a) | Update::Fetch(_, a) | Update::Apply(_, a) => vec![self.value(a)?],
            Update::CompareExchange(a, b) | Update::AddUnless(a, b) => {
                vec![self.value(a)?, self.value(b)?]
            }
        };
        self.rmws_left -= 1;
        self.rmws_done += 1;
        let mark = marks.0;
        self.has_noreturn |= mark == Mark::Noreturn;
        // In C11, an operation that is a full barrier has two fences, if it writes.
        let fences = mark == Mark::Mb && self.model == Memory::C11;
        let order = match mark {
            Mark::Mb if fences || self.model == Memory::Sc => "relaxed",
            Mark::Mb => "acq_rel",
            _ => order(marks)?,
        };
        let first = &operands[0];
        if fences && !matches!(update, Update::CompareExchange(..) | Update::AddUnless(..)) {
            self.line("lw_fence(seq_cst);");
        }
        let result = match update {
            Update::Exchange(_) => self.keep(&format!(
                "lw_xchg(AT({address}), (uint64_t)({first}), {order})"
            )),
            Update::CompareExchange(..) => {
                let new = &operands[1];
                if !fences {
                    return Ok(self.keep(&format!("CMPXCHG({address}, {first}, {new}, {order})")));
                }
                let old = self.keep(first);
                self.line("if (lw_choose(2)) {");
                self.line("lw_fence(seq_cst);");
                self.line(&format!(
                    "if (CMPXCHG({address}, {first}, {new}, relaxed) != ({first})) GIVE_UP;"
                ));
                self.line("lw_fence(seq_cst);");
                self.line("} else {");
                self.line(&format!(
                    "{old} = (int64_t)lw_load(AT({address}), relaxed);"
                ));
                self.line(&format!("if ({old} == ({first})) GIVE_UP;"));
                self.line("}");
                return Ok(old);
            }
            Update::AddUnless(..) => {
                return Ok(self.add_unless(&address, first, &operands[1], order, fences));
            }
            Update::Fetch(operator, _) | Update::Apply(operator, _) => {
                let old = match operator {
                    Binary::Add => {
                        format!("lw_fetch_add(AT({address}), (uint64_t)({first}), {order})")
                    }
                    Binary::Subtract => {
                        format!("lw_fetch_add(AT({address}), 0 - (uint64_t)({first}), {order})")
                    }
                    Binary::And => {
                        format!("lw_fetch_and(AT({address}), (uint64_t)({first}), {order})")
                    }
                    Binary::AndNot => {
                        format!("lw_fetch_and(AT({address}), ~(uint64_t)({first}), {order})")
                    }
                    Binary::Or => {
                        format!("lw_fetch_or(AT({address}), (uint64_t)({first}), {order})")
                    }
                    Binary::Xor => return Err("atomic_xor"),
                    _ => return Err("an atomic operation"),
                };
                let old = self.keep(&old);
                match update {
                    Update::Apply(..) => binary(*operator, &old, first)?,
                    _ => old,
                }
            }
        };
        if fences {
            self.line("lw_fence(seq_cst);");
        }
        Ok(result)
    }

    /// The thread guesses the value that it will read.
    fn add_unless(
        &mut self,
        address: &str,
        added: &str,
        unless: &str,
        order: &str,
        fences: bool,
    ) -> String {
        let values: Vec<String> = self
            .values
            .iter()
            .map(|value| self.room.number_in_c(*value))
            .collect();
        let old = self.keep(&values[0]);
        let guess = self.keep(&format!("lw_choose({})", values.len()));
        for (i, value) in values.iter().enumerate().skip(1) {
            self.line(&format!("if ({guess} == {i}) {old} = {value};"));
        }
        self.line(&format!("if ({old} != ({unless})) {{"));
        if fences {
            self.line("lw_fence(seq_cst);");
        }
        let new = binary(Binary::Add, &old, added).expect("numbers can be added");
        self.line(&format!(
            "if (CMPXCHG({address}, {old}, {new}, {order}) != {old}) GIVE_UP;"
        ));
        if fences {
            self.line("lw_fence(seq_cst);");
        }
        self.line(&format!(
            "}} else if ((int64_t)lw_load(AT({address}), relaxed) != {old}) GIVE_UP;"
        ));
        format!("(int64_t)({old} != ({unless}))")
    }
}

/// The order of an atomic operation whose read and write have these marks.
fn order(marks: (Mark, Mark)) -> Result<&'static str, Word> {
    Ok(match marks {
        (Mark::SeqCst, _) => "seq_cst",
        (Mark::Acquire, Mark::Release) => "acq_rel",
        (Mark::Acquire, _) => "acquire",
        (_, Mark::Release) => "release",
        (Mark::Once | Mark::Noreturn, _) => "relaxed",
        _ => return Err("an atomic operation"),
    })
}

/// The text of an operation on two texts, with the results of [`Binary::of`].
fn binary(operator: Binary, a: &str, b: &str) -> Result<String, Word> {
    let wrapping = |sign: &str| Ok(format!("(int64_t)((uint64_t)({a}) {sign} (uint64_t)({b}))"));
    let sign = match operator {
        Binary::Add => return wrapping("+"),
        Binary::Subtract => return wrapping("-"),
        Binary::Multiply => return wrapping("*"),
        Binary::And => return wrapping("&"),
        Binary::Or => return wrapping("|"),
        Binary::Xor => return wrapping("^"),
        Binary::AndNot => return Ok(format!("(({a}) & ~({b}))")),
        Binary::ShiftLeft => {
            return Ok(format!("(int64_t)((uint64_t)({a}) << (({b}) & 63))"));
        }
        Binary::ShiftRight => return Ok(format!("(({a}) >> (({b}) & 63))")),
        Binary::Divide | Binary::Remainder => return Err("divisions"),
        Binary::Equal => "==",
        Binary::Different => "!=",
        Binary::Less => "<",
        Binary::LessOrEqual => "<=",
        Binary::Greater => ">",
        Binary::GreaterOrEqual => ">=",
        Binary::LogicalAnd => "&&",
        Binary::LogicalOr => "||",
    };
    Ok(format!("(int64_t)(({a}) {sign} ({b}))"))
}
