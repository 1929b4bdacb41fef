//! Reads litmus tests in C, with the operations of the Linux kernel or the functions of C11.

use super::error::Refusal;
use super::execution::Mark;
use super::lexer::{Lexed, Placed, Token, lex};
use super::primitives::{self, AtomicFunction, Order, Outcome, Primitive};
use super::syntax::{
    Action, Binary, CompareExchange, Condition, Expression, Location, Observed, Statement, Test,
    Thread, Unary, Update, address,
};

/// Deeper nesting is refused.
const DEPTH: usize = 100;

/// Words that begin a declaration.
const TYPES: [&str; 34] = [
    "int",
    "unsigned",
    "signed",
    "long",
    "short",
    "char",
    "bool",
    "_Bool",
    "void",
    "volatile",
    "const",
    "struct",
    "size_t",
    "intptr_t",
    "uintptr_t",
    "atomic_t",
    "atomic_int",
    "_Atomic",
    "atomic_bool",
    "atomic_uint",
    "atomic_long",
    "atomic_long_t",
    "atomic64_t",
    "spinlock_t",
    "u8",
    "u16",
    "u32",
    "u64",
    "s8",
    "s16",
    "s32",
    "s64",
    "int32_t",
    "uint32_t",
];

/// Statements of C that tests cannot have.
const REFUSED: [&str; 9] = [
    "while", "do", "for", "goto", "switch", "return", "break", "continue", "typeof",
];

struct Parser {
    tokens: Vec<Placed>,
    next: usize,
    depth: usize,
    locations: Vec<Location>,
    /// Initial values of variables of threads: thread, name, value, line.
    initial: Vec<(usize, String, i64, usize)>,
    threads: Vec<Thread>,
    /// Variables of the thread that is being read.
    variables: Vec<Location>,
    /// The line of the first function of C11.
    c11: Option<usize>,
}

/// Reads a test.
pub(super) fn parse(text: &str) -> Result<Test, Refusal> {
    let Lexed {
        name,
        comments,
        tokens,
    } = lex(text)?;
    let mut parser = Parser {
        tokens,
        next: 0,
        depth: 0,
        locations: Vec::new(),
        initial: Vec::new(),
        threads: Vec::new(),
        variables: Vec::new(),
        c11: None,
    };
    parser.initial_values()?;
    while parser.word().is_some_and(|word| thread_of(word).is_some()) {
        parser.thread()?;
    }
    if parser.threads.is_empty() {
        return parser.refuse_token("where P0 begins");
    }
    if let Some((thread, name, _, line)) = parser.initial.first() {
        return Err(Refusal::new(
            *line,
            format!("an initial value of {thread}:{name}, which the test does not have"),
        ));
    }
    let (filter, condition) = parser.final_state()?;
    let result = comments.lines().find_map(|line| line.split_once("Result:"));
    Ok(Test {
        name,
        c11: parser.c11,
        results: result.map_or_else(String::new, |(_, result)| result.trim().to_owned()),
        locations: parser.locations,
        threads: parser.threads,
        filter,
        condition,
    })
}

/// The number of a thread, by its name.
fn thread_of(word: &str) -> Option<usize> {
    word.strip_prefix('P')?.parse().ok()
}

impl Parser {
    fn token(&self) -> &Token {
        &self.tokens[self.next].token
    }

    fn token_after(&self) -> &Token {
        &self.tokens[(self.next + 1).min(self.tokens.len() - 1)].token
    }

    fn line(&self) -> usize {
        self.tokens[self.next].line
    }

    fn advance(&mut self) {
        self.next = (self.next + 1).min(self.tokens.len() - 1);
    }

    fn word(&self) -> Option<&str> {
        match self.token() {
            Token::Word(word) => Some(word),
            _ => None,
        }
    }

    fn take_word(&mut self, what: &str) -> Result<String, Refusal> {
        let Some(word) = self.word().map(str::to_owned) else {
            return self.refuse_token(&format!("where {what} is expected"));
        };
        self.advance();
        Ok(word)
    }

    fn is(&self, symbol: &str) -> bool {
        matches!(self.token(), Token::Symbol(token) if *token == symbol)
    }

    fn accept(&mut self, symbol: &str) -> bool {
        let is = self.is(symbol);
        if is {
            self.advance();
        }
        is
    }

    fn expect(&mut self, symbol: &str) -> Result<(), Refusal> {
        if self.accept(symbol) {
            return Ok(());
        }
        self.refuse_token(&format!("where '{symbol}' is expected"))
    }

    fn accept_word(&mut self, word: &str) -> bool {
        let is = self.word() == Some(word);
        if is {
            self.advance();
        }
        is
    }

    fn refuse<T>(&self, what: impl Into<String>) -> Result<T, Refusal> {
        Err(Refusal::new(self.line(), what))
    }

    fn refuse_token<T>(&self, place: &str) -> Result<T, Refusal> {
        self.refuse(format!("{} {place}", self.token().text()))
    }

    /// Reads something that may contain itself.
    fn nested<T>(
        &mut self,
        read: impl FnOnce(&mut Self) -> Result<T, Refusal>,
    ) -> Result<T, Refusal> {
        if self.depth == DEPTH {
            return self.refuse(format!("more than {DEPTH} levels of nesting"));
        }
        self.depth += 1;
        let result = read(self);
        self.depth -= 1;
        result
    }

    /// The location of a name, which is new or known.
    fn location(&mut self, name: &str) -> usize {
        if let Some(known) = self.locations.iter().position(|l| l.name == name) {
            return known;
        }
        self.locations.push(Location {
            name: name.to_owned(),
            initial: 0,
        });
        self.locations.len() - 1
    }

    /// Takes the words of a type, if one begins here.
    fn type_words(&mut self) -> bool {
        let mut found = false;
        while let Some(word) = self.word().filter(|word| TYPES.contains(word)) {
            let is_struct = word == "struct";
            self.advance();
            if is_struct && self.word().is_some() {
                self.advance();
            }
            found = true;
        }
        found
    }

    fn stars(&mut self) {
        while self.accept("*") {}
    }

    // Initial values.

    fn initial_values(&mut self) -> Result<(), Refusal> {
        self.expect("{")?;
        while !self.accept("}") {
            if self.accept(";") {
                continue;
            }
            self.initial_value()?;
            if !self.is("}") {
                self.expect(";")?;
            }
        }
        Ok(())
    }

    fn initial_value(&mut self) -> Result<(), Refusal> {
        let line = self.line();
        let has_type = self.type_words();
        self.stars();
        if let Token::Number(thread) = *self.token() {
            self.advance();
            self.expect(":")?;
            let name = self.take_word("a variable")?;
            self.expect("=")?;
            let value = self.initial_number()?;
            match usize::try_from(thread) {
                Ok(thread) => self.initial.push((thread, name, value, line)),
                Err(_) => return self.refuse(format!("thread {thread}")),
            }
            return Ok(());
        }
        let in_brackets = self.accept("[");
        let name = self.take_word("a variable")?;
        if in_brackets {
            self.expect("]")?;
        } else if self.is("[") {
            return self.refuse(format!("'{name}' as an array"));
        }
        let location = self.location(&name);
        if self.accept("=") {
            let value = self.initial_number()?;
            self.locations[location].initial = value;
        } else if !has_type {
            return self.refuse_token(&format!("where '=' and a value of '{name}' are expected"));
        }
        Ok(())
    }

    /// A number, or the address of a variable.
    fn initial_number(&mut self) -> Result<i64, Refusal> {
        if self.accept_word("ATOMIC_INIT") {
            self.expect("(")?;
            let value = self.signed()?;
            self.expect(")")?;
            return Ok(value);
        }
        let in_parentheses = self.accept("(");
        let value = self.value()?;
        if in_parentheses {
            self.expect(")")?;
        }
        Ok(value)
    }

    fn signed(&mut self) -> Result<i64, Refusal> {
        let is_negative = self.accept("-");
        let Token::Number(number) = *self.token() else {
            return self.refuse_token("where a number is expected");
        };
        self.advance();
        Ok(if is_negative { -number } else { number })
    }

    /// A number, or a variable, which stands for its address.
    fn value(&mut self) -> Result<i64, Refusal> {
        if self.accept_word("NULL") {
            return Ok(0);
        }
        let has_ampersand = self.accept("&");
        match self.word().map(str::to_owned) {
            Some(name) => {
                self.advance();
                let location = self.location(&name);
                Ok(address(location))
            }
            None if has_ampersand => self.refuse_token("where a variable is expected"),
            None => self.signed(),
        }
    }

    // Threads.

    fn thread(&mut self) -> Result<(), Refusal> {
        let name = self.take_word("a thread")?;
        let expected = self.threads.len();
        if thread_of(&name) != Some(expected) {
            return self.refuse(format!("{name} where P{expected} is expected"));
        }
        self.variables = Vec::new();
        self.expect("(")?;
        while !self.accept(")") {
            if !self.type_words() {
                return self.refuse_token("where the type of a parameter is expected");
            }
            let is_pointer = self.is("*");
            self.stars();
            if self.word() == Some("const") || self.word() == Some("volatile") {
                self.advance();
            }
            if self.accept(")") {
                break;
            }
            let name = self.take_word("a parameter")?;
            if !is_pointer {
                return self.refuse(format!("the parameter '{name}', which is no pointer"));
            }
            if self.variables.iter().any(|variable| variable.name == name) {
                return self.refuse(format!("a second parameter '{name}'"));
            }
            let location = self.location(&name);
            self.variables.push(Location {
                name,
                initial: address(location),
            });
            if !self.is(")") {
                self.expect(",")?;
            }
        }
        self.expect("{")?;
        let body = self.block()?;
        let thread = self.threads.len();
        let variables = &mut self.variables;
        self.initial.retain(|(of, name, value, _)| {
            let found = variables
                .iter_mut()
                .find(|v| *of == thread && v.name == *name);
            found.is_none_or(|variable| {
                variable.initial = *value;
                false
            })
        });
        self.threads.push(Thread {
            variables: std::mem::take(&mut self.variables),
            body,
        });
        Ok(())
    }

    /// Statements up to a closing brace.
    fn block(&mut self) -> Result<Vec<Statement>, Refusal> {
        let mut statements = Vec::new();
        while !self.accept("}") {
            self.statement(&mut statements)?;
        }
        Ok(statements)
    }

    fn statement(&mut self, into: &mut Vec<Statement>) -> Result<(), Refusal> {
        let line = self.line();
        if self.accept(";") {
            return Ok(());
        }
        if self.accept("{") {
            into.extend(self.nested(Self::block)?);
            return Ok(());
        }
        if self.word().is_some_and(|word| REFUSED.contains(&word)) {
            return self.refuse_token("is not in litmus tests that are read");
        }
        if self.accept_word("if") {
            let action = self.nested(Self::conditional)?;
            into.push(Statement { line, action });
            return Ok(());
        }
        if self.word().is_some_and(|word| TYPES.contains(&word)) {
            return self.declaration(into);
        }
        self.simple(line, into)?;
        self.expect(";")
    }

    fn conditional(&mut self) -> Result<Action, Refusal> {
        self.expect("(")?;
        let condition = self.expression()?;
        self.expect(")")?;
        let mut then = Vec::new();
        self.statement(&mut then)?;
        let mut otherwise = Vec::new();
        if self.accept_word("else") {
            self.statement(&mut otherwise)?;
        }
        Ok(Action::If {
            condition,
            then,
            otherwise,
        })
    }

    fn declaration(&mut self, into: &mut Vec<Statement>) -> Result<(), Refusal> {
        self.type_words();
        loop {
            self.stars();
            let line = self.line();
            let name = self.take_word("a variable")?;
            // Its initial value may name it, as in C. A variable that is not set is 0, as in herd7.
            let variable = self.declare(&name);
            let value = match self.accept("=") {
                true => Some(self.expression()?),
                false => None,
            };
            if let Some(value) = value {
                into.push(Statement {
                    line,
                    action: Action::Assign(variable, value),
                });
            }
            if !self.accept(",") {
                return self.expect(";");
            }
        }
    }

    fn declare(&mut self, name: &str) -> usize {
        if let Some(known) = self.variables.iter().position(|v| v.name == name) {
            return known;
        }
        self.variables.push(Location {
            name: name.to_owned(),
            initial: 0,
        });
        self.variables.len() - 1
    }

    /// An assignment, or a call.
    fn simple(&mut self, line: usize, into: &mut Vec<Statement>) -> Result<(), Refusal> {
        let action = if self.accept("*") {
            let address = self.nested(Self::unary)?;
            self.expect("=")?;
            Action::Store {
                address,
                value: self.expression()?,
                mark: Mark::Plain,
            }
        } else if matches!(self.token_after(), Token::Symbol("=")) {
            let name = self.take_word("a variable")?;
            self.expect("=")?;
            let value = self.expression()?;
            Action::Assign(self.declare(&name), value)
        } else if matches!(self.token_after(), Token::Symbol("(")) && self.word().is_some() {
            return self.call_statement(line, into);
        } else {
            match self.expression()? {
                value @ (Expression::Rmw { .. }
                | Expression::CompareExchange(_)
                | Expression::TryLock(_)) => Action::Evaluate(value),
                value @ (Expression::Load(..) | Expression::IsLocked(_)) => Action::Evaluate(value),
                _ if !self.is(";") => return self.refuse_token("where ';' is expected"),
                _ => return self.refuse("an expression without effect"),
            }
        };
        into.push(Statement { line, action });
        Ok(())
    }

    fn call_statement(&mut self, line: usize, into: &mut Vec<Statement>) -> Result<(), Refusal> {
        let name = self.word().unwrap_or_default().to_owned();
        if let Some((function, is_explicit)) = primitives::atomic_function(&name) {
            return self.atomic_statement(function, is_explicit, line, into);
        }
        let Some(primitive) = primitives::find(&name) else {
            return self.refuse_call(&name);
        };
        let mut push = |action| into.push(Statement { line, action });
        match primitive {
            Primitive::StoreTo(mark, fence) => {
                let [target, value] = self.arguments()?;
                let address = self.dereferenced(target, &name)?;
                push(Action::Store {
                    address,
                    value,
                    mark,
                });
                if let Some(fence) = fence {
                    push(Action::Fence(fence));
                }
            }
            Primitive::StoreAt(mark) => {
                let [address, value] = self.arguments()?;
                push(Action::Store {
                    address,
                    value,
                    mark,
                });
            }
            Primitive::Fence(fence) => {
                let [] = self.arguments()?;
                push(Action::Fence(fence));
            }
            Primitive::Lock => {
                let [address] = self.arguments()?;
                push(Action::Lock(address));
            }
            Primitive::Unlock => {
                let [address] = self.arguments()?;
                push(Action::Store {
                    address,
                    value: Expression::Number(0),
                    mark: Mark::Unlock,
                });
            }
            Primitive::SyncSrcu => {
                let [address] = self.arguments()?;
                push(Action::SyncSrcu(address));
            }
            Primitive::Atomic {
                operation,
                operand,
                result: Outcome::Nothing,
                mark,
            } => {
                let (operand, address) = self.operand_and_address(operand)?;
                push(Action::Evaluate(Expression::Rmw {
                    address: Box::new(address),
                    update: Update::Fetch(operation, Box::new(operand)),
                    marks: (mark, mark),
                }));
            }
            _ => {
                let value = self.call()?;
                push(Action::Evaluate(value));
            }
        }
        Ok(())
    }

    // Expressions.

    fn expression(&mut self) -> Result<Expression, Refusal> {
        self.nested(|parser| parser.binary(0))
    }

    /// An expression of operators that bind at least so closely.
    fn binary(&mut self, least: usize) -> Result<Expression, Refusal> {
        let mut left = self.unary()?;
        while let Some((operator, level)) = self.operator().filter(|(_, level)| *level >= least) {
            self.advance();
            let right = self.nested(|parser| parser.binary(level + 1))?;
            let is_lazy = matches!(operator, Binary::LogicalAnd | Binary::LogicalOr);
            if is_lazy && accesses_memory(&right) {
                return self.refuse("a shared access that '&&' or '||' may leave out");
            }
            left = Expression::Binary(operator, Box::new(left), Box::new(right));
        }
        if self.is("?") {
            return self.refuse_token("is not in litmus tests that are read");
        }
        Ok(left)
    }

    fn operator(&self) -> Option<(Binary, usize)> {
        let Token::Symbol(symbol) = self.token() else {
            return None;
        };
        Some(match *symbol {
            "||" => (Binary::LogicalOr, 0),
            "&&" => (Binary::LogicalAnd, 1),
            "|" => (Binary::Or, 2),
            "^" => (Binary::Xor, 3),
            "&" => (Binary::And, 4),
            "==" => (Binary::Equal, 5),
            "!=" => (Binary::Different, 5),
            "<" => (Binary::Less, 6),
            "<=" => (Binary::LessOrEqual, 6),
            ">" => (Binary::Greater, 6),
            ">=" => (Binary::GreaterOrEqual, 6),
            "<<" => (Binary::ShiftLeft, 7),
            ">>" => (Binary::ShiftRight, 7),
            "+" => (Binary::Add, 8),
            "-" => (Binary::Subtract, 8),
            "*" => (Binary::Multiply, 9),
            "/" => (Binary::Divide, 9),
            "%" => (Binary::Remainder, 9),
            _ => return None,
        })
    }

    fn unary(&mut self) -> Result<Expression, Refusal> {
        let unary = |operator| move |value| Expression::Unary(operator, Box::new(value));
        if self.accept("!") {
            return self.nested(Self::unary).map(unary(Unary::Not));
        }
        if self.accept("-") {
            return self.nested(Self::unary).map(unary(Unary::Negate));
        }
        if self.accept("~") {
            return self.nested(Self::unary).map(unary(Unary::Complement));
        }
        if self.accept("*") {
            let address = self.nested(Self::unary)?;
            return Ok(Expression::Load(Box::new(address), Mark::Plain));
        }
        if self.accept("(") {
            if self.type_words() {
                self.stars();
                self.expect(")")?;
                return self.nested(Self::unary);
            }
            let value = self.expression()?;
            self.expect(")")?;
            return Ok(value);
        }
        match self.token().clone() {
            Token::Number(number) => {
                self.advance();
                Ok(Expression::Number(number))
            }
            Token::Word(_) if matches!(self.token_after(), Token::Symbol("(")) => self.call(),
            Token::Word(name) if name == "NULL" => {
                self.advance();
                Ok(Expression::Number(0))
            }
            Token::Word(name) => match self.variables.iter().position(|v| v.name == name) {
                Some(variable) => {
                    self.advance();
                    Ok(Expression::Variable(variable))
                }
                None => self.refuse(format!(
                    "'{name}', which is neither a parameter nor declared"
                )),
            },
            _ => self.refuse_token("where an expression is expected"),
        }
    }

    /// A call with a result.
    fn call(&mut self) -> Result<Expression, Refusal> {
        let name = self.word().unwrap_or_default().to_owned();
        if let Some((function, is_explicit)) = primitives::atomic_function(&name) {
            return self.atomic_call(function, is_explicit);
        }
        let rmw = |address, update, mark| Expression::Rmw {
            address: Box::new(address),
            update,
            marks: (mark, mark),
        };
        match primitives::find(&name) {
            Some(Primitive::LoadOf(mark)) => {
                let [target] = self.arguments()?;
                let address = self.dereferenced(target, &name)?;
                Ok(Expression::Load(Box::new(address), mark))
            }
            Some(Primitive::LoadAt(mark)) => {
                let [address] = self.arguments()?;
                Ok(Expression::Load(Box::new(address), mark))
            }
            Some(Primitive::Exchange(mark)) => {
                let [address, value] = self.arguments()?;
                Ok(rmw(address, Update::Exchange(Box::new(value)), mark))
            }
            Some(Primitive::CompareExchange(mark)) => {
                let [address, old, new] = self.arguments()?;
                let update = Update::CompareExchange(Box::new(old), Box::new(new));
                Ok(rmw(address, update, mark))
            }
            Some(Primitive::AddUnless) => {
                let [address, added, unless] = self.arguments()?;
                let update = Update::AddUnless(Box::new(added), Box::new(unless));
                Ok(rmw(address, update, Mark::Mb))
            }
            Some(Primitive::TryLock) => {
                let [address] = self.arguments()?;
                Ok(Expression::TryLock(Box::new(address)))
            }
            Some(Primitive::IsLocked) => {
                let [address] = self.arguments()?;
                Ok(Expression::IsLocked(Box::new(address)))
            }
            Some(Primitive::Atomic {
                operation,
                operand,
                result,
                mark,
            }) if result != Outcome::Nothing => {
                let (operand, address) = self.operand_and_address(operand)?;
                let operand = Box::new(operand);
                let zero = Box::new(Expression::Number(0));
                let update = match result {
                    Outcome::Old => Update::Fetch(operation, operand),
                    _ => Update::Apply(operation, operand),
                };
                let new = rmw(address, update, mark);
                Ok(match result {
                    Outcome::IsZero => Expression::Binary(Binary::Equal, Box::new(new), zero),
                    Outcome::IsNegative => Expression::Binary(Binary::Less, Box::new(new), zero),
                    _ => new,
                })
            }
            Some(_) => self.refuse(format!("{name}() as a value")),
            None => self.refuse_call(&name),
        }
    }

    fn refuse_call<T>(&self, name: &str) -> Result<T, Refusal> {
        self.refuse(format!(
            "{name}(), which is no operation of the kernel's model or of C11"
        ))
    }

    /// A function of C11 whose result is not used.
    fn atomic_statement(
        &mut self,
        function: AtomicFunction,
        is_explicit: bool,
        line: usize,
        into: &mut Vec<Statement>,
    ) -> Result<(), Refusal> {
        let mut push = |action| into.push(Statement { line, action });
        match function {
            AtomicFunction::Store => {
                let ([address, value], [order]) = self.with_orders(is_explicit)?;
                let mark = self.allowed(order.of_store(), "store")?;
                push(Action::Store {
                    address,
                    value,
                    mark,
                });
            }
            AtomicFunction::Init => {
                let ([address, value], []) = self.with_orders(is_explicit)?;
                push(Action::Store {
                    address,
                    value,
                    mark: Mark::Plain,
                });
            }
            AtomicFunction::Fence => {
                let ([], [order]) = self.with_orders(is_explicit)?;
                for fence in order.fences() {
                    push(Action::Fence(*fence));
                }
            }
            _ => {
                let value = self.atomic_call(function, is_explicit)?;
                push(Action::Evaluate(value));
            }
        }
        Ok(())
    }

    /// A function of C11 with a result.
    fn atomic_call(
        &mut self,
        function: AtomicFunction,
        is_explicit: bool,
    ) -> Result<Expression, Refusal> {
        let rmw = |address, update, order: Order| Expression::Rmw {
            address: Box::new(address),
            update,
            marks: order.marks(),
        };
        Ok(match function {
            AtomicFunction::Load => {
                let ([address], [order]) = self.with_orders(is_explicit)?;
                let mark = self.allowed(order.of_load(), "load")?;
                Expression::Load(Box::new(address), mark)
            }
            AtomicFunction::Exchange => {
                let ([address, value], [order]) = self.with_orders(is_explicit)?;
                rmw(address, Update::Exchange(Box::new(value)), order)
            }
            AtomicFunction::Fetch(operation) => {
                let ([address, operand], [order]) = self.with_orders(is_explicit)?;
                rmw(address, Update::Fetch(operation, Box::new(operand)), order)
            }
            AtomicFunction::CompareExchange { is_weak } => {
                let ([address, expected, new], [order, failure]) = self.with_orders(is_explicit)?;
                Expression::CompareExchange(Box::new(CompareExchange {
                    address,
                    expected,
                    new,
                    marks: order.marks(),
                    failure: self.allowed(failure.of_load(), "load")?,
                    is_weak,
                }))
            }
            AtomicFunction::Store | AtomicFunction::Init | AtomicFunction::Fence => {
                return self.refuse_token("as a value");
            }
        })
    }

    /// The name of a function of C11, so many arguments, and so many memory orders: all `seq_cst` if they are
    /// no arguments.
    fn with_orders<const N: usize, const ORDERS: usize>(
        &mut self,
        is_explicit: bool,
    ) -> Result<([Expression; N], [Order; ORDERS]), Refusal> {
        self.c11.get_or_insert(self.line());
        let name = self.take_word("a function")?;
        self.expect("(")?;
        let separator = |parser: &mut Self, is_first: bool| match is_first {
            true => Ok(()),
            false => parser.expect(","),
        };
        let mut arguments = Vec::new();
        for i in 0..N {
            separator(self, i == 0)?;
            arguments.push(self.expression()?);
        }
        let mut orders = [Order::SeqCst; ORDERS];
        if is_explicit {
            for (i, order) in orders.iter_mut().enumerate() {
                separator(self, N + i == 0)?;
                let word = self.take_word("a memory order")?;
                *order = match Order::named(&word) {
                    Some(order) => order,
                    None => return self.refuse(format!("'{word}' as a memory order of {name}()")),
                };
            }
        }
        self.expect(")")?;
        Ok((arguments.try_into().expect("so many were read"), orders))
    }

    fn allowed(&self, mark: Option<Mark>, operation: &str) -> Result<Mark, Refusal> {
        match mark {
            Some(mark) => Ok(mark),
            None => self.refuse(format!("a {operation} with an order that C11 forbids it")),
        }
    }

    fn operand_and_address(
        &mut self,
        operand: Option<i64>,
    ) -> Result<(Expression, Expression), Refusal> {
        if let Some(operand) = operand {
            let [address] = self.arguments()?;
            return Ok((Expression::Number(operand), address));
        }
        let [operand, address] = self.arguments()?;
        Ok((operand, address))
    }

    /// The name of an operation and so many arguments.
    fn arguments<const N: usize>(&mut self) -> Result<[Expression; N], Refusal> {
        let line = self.line();
        let name = self.take_word("an operation")?;
        self.expect("(")?;
        let mut arguments = Vec::new();
        while !self.accept(")") {
            arguments.push(self.expression()?);
            if !self.is(")") {
                self.expect(",")?;
            }
        }
        let given = arguments.len();
        arguments.try_into().map_err(|_| {
            Refusal::new(
                line,
                format!("{given} arguments of {name}(), which takes {N}"),
            )
        })
    }

    /// The address of an argument that must have the form `*ADDRESS`.
    fn dereferenced(&self, argument: Expression, of: &str) -> Result<Expression, Refusal> {
        match argument {
            Expression::Load(address, Mark::Plain) => Ok(*address),
            _ => self.refuse(format!(
                "an argument of {of}() that does not begin with '*'"
            )),
        }
    }

    // The condition on the final state.

    fn final_state(&mut self) -> Result<(Option<Condition>, Condition), Refusal> {
        let mut filter = None;
        loop {
            if self.accept_word("locations") {
                self.observed_list()?;
            } else if filter.is_none() && self.accept_word("filter") {
                filter = Some(self.disjunction()?);
            } else {
                break;
            }
        }
        // As in herd7, a test need not have a condition.
        if matches!(self.token(), Token::End) {
            return Ok((filter, Condition::True));
        }
        let is_negated = self.accept("~");
        let quantifier = match self.word() {
            Some(word @ ("exists" | "forall")) => word.to_owned(),
            _ => return self.refuse_token("where 'exists', '~exists' or 'forall' is expected"),
        };
        if is_negated && quantifier == "forall" {
            return self.refuse("'~forall'");
        }
        self.advance();
        let condition = self.disjunction()?;
        while self.accept(";") {}
        match self.token() {
            Token::End => Ok((filter, condition)),
            _ => self.refuse_token("after the condition"),
        }
    }

    fn observed_list(&mut self) -> Result<(), Refusal> {
        self.expect("[")?;
        while !self.accept("]") {
            // They are only shown, so there is nothing that a test must have.
            match self.token() {
                Token::End => return self.refuse_token("where ']' is expected"),
                _ => self.advance(),
            }
        }
        Ok(())
    }

    fn disjunction(&mut self) -> Result<Condition, Refusal> {
        self.nested(|parser| {
            let mut left = parser.conjunction()?;
            while parser.accept("\\/") {
                left = Condition::Or(Box::new(left), Box::new(parser.conjunction()?));
            }
            Ok(left)
        })
    }

    fn conjunction(&mut self) -> Result<Condition, Refusal> {
        let mut left = self.atom()?;
        while self.accept("/\\") {
            left = Condition::And(Box::new(left), Box::new(self.atom()?));
        }
        Ok(left)
    }

    fn atom(&mut self) -> Result<Condition, Refusal> {
        if self.accept("~") || self.accept_word("not") {
            let condition = self.nested(Self::atom)?;
            return Ok(Condition::Not(Box::new(condition)));
        }
        if self.accept("(") {
            let condition = self.disjunction()?;
            self.expect(")")?;
            return Ok(condition);
        }
        if self.accept_word("true") {
            return Ok(Condition::True);
        }
        if self.accept_word("false") {
            return Ok(Condition::Not(Box::new(Condition::True)));
        }
        let observed = self.observed()?;
        let is_negated = self.accept("!=");
        if !is_negated && !self.accept("==") {
            self.expect("=")?;
        }
        let compared = self.compared(observed)?;
        Ok(match is_negated {
            true => Condition::Not(Box::new(compared)),
            false => compared,
        })
    }

    /// The right side of a comparison with something observed: `1`, `x` for an address, or `1:r1`.
    fn compared(&mut self, observed: Observed) -> Result<Condition, Refusal> {
        if matches!(self.token_after(), Token::Symbol(":")) {
            return Ok(Condition::Same(observed, self.observed()?));
        }
        let line = self.line();
        let known = self.locations.len();
        let value = self.value()?;
        if self.locations.len() > known {
            let name = &self.locations[known].name;
            return Err(Refusal::new(
                line,
                format!("'{name}', which the test does not have"),
            ));
        }
        Ok(Condition::Equal(observed, value))
    }

    /// `0:r1`, `x` or `[x]`.
    fn observed(&mut self) -> Result<Observed, Refusal> {
        if let Token::Number(number) = *self.token() {
            self.advance();
            self.expect(":")?;
            let line = self.line();
            let name = self.take_word("a variable")?;
            let thread = usize::try_from(number).unwrap_or(usize::MAX);
            let variables = self.threads.get(thread).map(|thread| &thread.variables);
            let variable = variables.and_then(|all| all.iter().position(|v| v.name == name));
            return match variable {
                Some(variable) => Ok(Observed::Variable(thread, variable)),
                None => Err(Refusal::new(
                    line,
                    format!("{number}:{name}, which the test does not have"),
                )),
            };
        }
        let in_brackets = self.accept("[");
        let line = self.line();
        let name = self.take_word("a variable")?;
        if in_brackets {
            self.expect("]")?;
        }
        match self.locations.iter().position(|l| l.name == name) {
            Some(location) => Ok(Observed::Location(location)),
            None => Err(Refusal::new(
                line,
                format!("'{name}', which the test does not have"),
            )),
        }
    }
}

fn accesses_memory(expression: &Expression) -> bool {
    match expression {
        Expression::Number(_) | Expression::Variable(_) => false,
        Expression::Unary(_, value) => accesses_memory(value),
        Expression::Binary(_, a, b) => accesses_memory(a) || accesses_memory(b),
        Expression::Load(..)
        | Expression::Rmw { .. }
        | Expression::CompareExchange(_)
        | Expression::TryLock(_)
        | Expression::IsLocked(_) => true,
    }
}
