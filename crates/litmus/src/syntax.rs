//! The parts of a litmus test.

use super::execution::{Fence, Mark};

/// A litmus test in C, with the operations of the Linux kernel or the functions of C11.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Test {
    pub(super) name: String,
    /// The line of the first function of C11, if it has any.
    pub(super) c11: Option<usize>,
    /// The text after `Result:` in a comment.
    pub(super) results: String,
    /// The shared variables.
    pub(super) locations: Vec<Location>,
    pub(super) threads: Vec<Thread>,
    /// Executions for which this is false are left out.
    pub(super) filter: Option<Condition>,
    pub(super) condition: Condition,
}

impl Test {
    /// The places that the condition observes, in order.
    pub(super) fn observed(&self) -> Vec<Observed> {
        let mut observed = Vec::new();
        self.condition.observed(&mut observed);
        observed.sort_unstable();
        observed.dedup();
        observed
    }
}

#[derive(Clone, Debug, PartialEq)]
pub(super) struct Location {
    pub(super) name: String,
    pub(super) initial: i64,
}

#[derive(Clone, Debug, PartialEq)]
pub(super) struct Thread {
    /// The variables of the thread, with their initial values.
    pub(super) variables: Vec<Location>,
    pub(super) body: Vec<Statement>,
}

#[derive(Clone, Debug, PartialEq)]
pub(super) struct Statement {
    pub(super) line: usize,
    pub(super) action: Action,
}

#[derive(Clone, Debug, PartialEq)]
pub(super) enum Action {
    /// An assignment to a variable of the thread.
    Assign(usize, Expression),
    Store {
        address: Expression,
        value: Expression,
        mark: Mark,
    },
    Evaluate(Expression),
    Fence(Fence),
    Lock(Expression),
    SyncSrcu(Expression),
    If {
        condition: Expression,
        then: Vec<Statement>,
        otherwise: Vec<Statement>,
    },
}

#[derive(Clone, Debug, PartialEq)]
pub(super) enum Expression {
    Number(i64),
    Variable(usize),
    Load(Box<Expression>, Mark),
    Unary(Unary, Box<Expression>),
    Binary(Binary, Box<Expression>, Box<Expression>),
    Rmw {
        address: Box<Expression>,
        update: Update,
        /// Of its read, and of its write.
        marks: (Mark, Mark),
    },
    CompareExchange(Box<CompareExchange>),
    TryLock(Box<Expression>),
    IsLocked(Box<Expression>),
}

/// The compare-and-swap of C11. Its result is whether it has written.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct CompareExchange {
    pub(super) address: Expression,
    /// Where the expected value is; the old value replaces it if another is found.
    pub(super) expected: Expression,
    pub(super) new: Expression,
    /// Of the read and the write.
    pub(super) marks: (Mark, Mark),
    /// Of the read, if nothing is written.
    pub(super) failure: Mark,
    /// It may fail though the expected value is found.
    pub(super) is_weak: bool,
}

/// The effect and the result of a read-modify-write operation.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Update {
    Exchange(Box<Expression>),
    CompareExchange(Box<Expression>, Box<Expression>),
    /// The result is the old value.
    Fetch(Binary, Box<Expression>),
    /// The result is the new value.
    Apply(Binary, Box<Expression>),
    /// The first is added unless the old value is the second; the result is whether it was added.
    AddUnless(Box<Expression>, Box<Expression>),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Unary {
    Not,
    Negate,
    Complement,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Binary {
    Add,
    Subtract,
    Multiply,
    Divide,
    Remainder,
    And,
    AndNot,
    Or,
    Xor,
    ShiftLeft,
    ShiftRight,
    Equal,
    Different,
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
    LogicalAnd,
    LogicalOr,
}

impl Binary {
    /// The result, or nothing for a division by zero.
    pub(super) fn of(self, a: i64, b: i64) -> Option<i64> {
        Some(match self {
            Self::Add => a.wrapping_add(b),
            Self::Subtract => a.wrapping_sub(b),
            Self::Multiply => a.wrapping_mul(b),
            Self::Divide => return a.checked_div(b),
            Self::Remainder => return a.checked_rem(b),
            Self::And => a & b,
            Self::AndNot => a & !b,
            Self::Or => a | b,
            Self::Xor => a ^ b,
            Self::ShiftLeft => a.wrapping_shl(b as u32),
            Self::ShiftRight => a.wrapping_shr(b as u32),
            Self::Equal => i64::from(a == b),
            Self::Different => i64::from(a != b),
            Self::Less => i64::from(a < b),
            Self::LessOrEqual => i64::from(a <= b),
            Self::Greater => i64::from(a > b),
            Self::GreaterOrEqual => i64::from(a >= b),
            Self::LogicalAnd => i64::from(a != 0 && b != 0),
            Self::LogicalOr => i64::from(a != 0 || b != 0),
        })
    }
}

/// A condition of final states.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Condition {
    True,
    Equal(Observed, i64),
    /// Two parts are equal.
    Same(Observed, Observed),
    Not(Box<Condition>),
    And(Box<Condition>, Box<Condition>),
    Or(Box<Condition>, Box<Condition>),
}

/// A part of a final state.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Observed {
    /// A thread, and its variable.
    Variable(usize, usize),
    Location(usize),
}

impl Condition {
    pub(super) fn holds(&self, value: &impl Fn(Observed) -> i64) -> bool {
        match self {
            Self::True => true,
            Self::Equal(observed, expected) => value(*observed) == *expected,
            Self::Same(a, b) => value(*a) == value(*b),
            Self::Not(condition) => !condition.holds(value),
            Self::And(a, b) => a.holds(value) && b.holds(value),
            Self::Or(a, b) => a.holds(value) || b.holds(value),
        }
    }

    /// Adds all that it observes.
    pub(super) fn observed(&self, into: &mut Vec<Observed>) {
        match self {
            Self::True => {}
            Self::Equal(observed, _) => into.push(*observed),
            Self::Same(a, b) => into.extend([*a, *b]),
            Self::Not(condition) => condition.observed(into),
            Self::And(a, b) | Self::Or(a, b) => {
                a.observed(into);
                b.observed(into);
            }
        }
    }
}

/// The address of a location, which no number in a test is likely to be.
pub(super) fn address(location: usize) -> i64 {
    FIRST_ADDRESS + location as i64 * ADDRESS_STEP
}

/// The location of an address.
pub(super) fn location_of(address: i64) -> Option<usize> {
    let distance = address.checked_sub(FIRST_ADDRESS)?;
    (distance >= 0 && distance % ADDRESS_STEP == 0)
        .then(|| usize::try_from(distance / ADDRESS_STEP).ok())?
}

const FIRST_ADDRESS: i64 = 1 << 40;
const ADDRESS_STEP: i64 = 1 << 12;
