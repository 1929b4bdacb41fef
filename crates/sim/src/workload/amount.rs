//! Amounts in a workload file. An amount is a number, or an expression of the workload's constants.

use std::collections::BTreeSet;
use std::fmt;

use serde::Deserialize;
use serde::de::{self, Visitor};

/// How deeply an expression may be nested.
const MAX_DEPTH: usize = 32;
/// The most numbers, names and brackets of an expression: its value is computed by nested calls.
const MAX_PARTS: usize = 1000;

/// The most characters of an expression that a message shows.
const MAX_SHOWN: usize = 60;

/// The functions of expressions, with the number of their arguments.
const FUNCTIONS: [(&str, Function, usize); 3] = [
    ("min", Function::Min, 2),
    ("max", Function::Max, 2),
    ("floor", Function::Floor, 1),
];

/// A number, or an expression that gives one.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Amount {
    Number(f64),
    Name(String),
    Negative(Box<Amount>),
    Binary(Operator, Box<[Amount; 2]>),
    Call(Function, Vec<Amount>),
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Operator {
    Add,
    Subtract,
    Multiply,
    Divide,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Function {
    Min,
    Max,
    Floor,
}

impl Amount {
    /// Reads an expression.
    fn parse(text: &str) -> Result<Self, String> {
        let mut parser = Parser {
            rest: text.trim_start(),
            depth: 0,
            parts: 0,
        };
        let amount = parser.sum()?;
        if parser.rest.is_empty() {
            Ok(amount)
        } else {
            Err(parser.unexpected())
        }
    }

    /// Computes the value. `look_up` returns the value of each name, and must know all names in the
    /// expression.
    pub(super) fn value(&self, look_up: &impl Fn(&str) -> f64) -> f64 {
        match self {
            Self::Number(number) => *number,
            Self::Name(name) => look_up(name),
            Self::Negative(of) => -of.value(look_up),
            Self::Binary(operator, operands) => {
                let [a, b] = operands.each_ref().map(|operand| operand.value(look_up));
                match operator {
                    Operator::Add => a + b,
                    Operator::Subtract => a - b,
                    Operator::Multiply => a * b,
                    Operator::Divide => a / b,
                }
            }
            Self::Call(function, arguments) => {
                let argument = |i: usize| arguments[i].value(look_up);
                match function {
                    Function::Min => argument(0).min(argument(1)),
                    Function::Max => argument(0).max(argument(1)),
                    Function::Floor => argument(0).floor(),
                }
            }
        }
    }

    /// Returns the names in the expression.
    pub(super) fn names(&self) -> BTreeSet<&str> {
        match self {
            Self::Number(_) => BTreeSet::new(),
            Self::Name(name) => [name.as_str()].into(),
            Self::Negative(of) => of.names(),
            Self::Binary(_, operands) => operands.iter().flat_map(Self::names).collect(),
            Self::Call(_, arguments) => arguments.iter().flat_map(Self::names).collect(),
        }
    }
}

/// The part of an expression that has not been read yet, without leading spaces.
struct Parser<'a> {
    rest: &'a str,
    depth: usize,
    parts: usize,
}

impl Parser<'_> {
    fn skip(&mut self, bytes: usize) {
        self.rest = self.rest[bytes..].trim_start();
    }

    /// Reads `symbol` if it comes next.
    fn take(&mut self, symbol: char) -> bool {
        let found = self.rest.starts_with(symbol);
        if found {
            self.skip(symbol.len_utf8());
        }
        found
    }

    fn unexpected(&self) -> String {
        match self.rest.chars().next() {
            Some(symbol) => format!("`{symbol}` does not belong there in an expression"),
            None => "the expression ends too early".to_owned(),
        }
    }

    fn sum(&mut self) -> Result<Amount, String> {
        let mut left = self.product()?;
        loop {
            let operator = if self.take('+') {
                Operator::Add
            } else if self.take('-') {
                Operator::Subtract
            } else {
                return Ok(left);
            };
            left = Amount::Binary(operator, Box::new([left, self.product()?]));
        }
    }

    fn product(&mut self) -> Result<Amount, String> {
        let mut left = self.factor()?;
        loop {
            let operator = if self.take('*') {
                Operator::Multiply
            } else if self.take('/') {
                Operator::Divide
            } else {
                return Ok(left);
            };
            left = Amount::Binary(operator, Box::new([left, self.factor()?]));
        }
    }

    fn factor(&mut self) -> Result<Amount, String> {
        self.depth += 1;
        if self.depth > MAX_DEPTH {
            return Err(format!(
                "more than {MAX_DEPTH} levels of an expression; use fewer"
            ));
        }
        self.parts += 1;
        if self.parts > MAX_PARTS {
            return Err(format!(
                "more than {MAX_PARTS} parts of an expression; use fewer"
            ));
        }
        let factor = if self.take('-') {
            Amount::Negative(Box::new(self.factor()?))
        } else if self.take('(') {
            let inner = self.sum()?;
            self.close()?;
            inner
        } else if self.rest.starts_with(|c: char| c.is_ascii_alphabetic()) {
            self.name()?
        } else {
            self.number()?
        };
        self.depth -= 1;
        Ok(factor)
    }

    fn close(&mut self) -> Result<(), String> {
        if self.take(')') {
            Ok(())
        } else {
            Err(self.unexpected())
        }
    }

    fn number(&mut self) -> Result<Amount, String> {
        let is_part = |c: char| c.is_ascii_digit() || c == '.';
        let end = self.rest.find(|c| !is_part(c)).unwrap_or(self.rest.len());
        let number = self.rest[..end].parse().map_err(|_| self.unexpected())?;
        self.skip(end);
        Ok(Amount::Number(number))
    }

    fn name(&mut self) -> Result<Amount, String> {
        let is_part = |c: char| c.is_ascii_alphanumeric() || c == '_';
        let end = self.rest.find(|c| !is_part(c)).unwrap_or(self.rest.len());
        let name = self.rest[..end].to_owned();
        self.skip(end);
        if !self.take('(') {
            return Ok(Amount::Name(name));
        }
        let Some((_, function, count)) = FUNCTIONS.iter().find(|(known, ..)| *known == name) else {
            let known = FUNCTIONS.map(|(known, ..)| known).join(", ");
            return Err(format!("unknown function `{name}`; there are {known}"));
        };
        let mut arguments = vec![self.sum()?];
        while self.take(',') {
            arguments.push(self.sum()?);
        }
        self.close()?;
        if arguments.len() != *count {
            return Err(format!("`{name}` takes {count} arguments"));
        }
        Ok(Amount::Call(*function, arguments))
    }
}

/// The text, or its beginning if it is longer than a message should be.
fn beginning(text: &str) -> String {
    match text.char_indices().nth(MAX_SHOWN) {
        Some((end, _)) => format!("{}...", &text[..end]),
        None => text.to_owned(),
    }
}

impl<'de> Deserialize<'de> for Amount {
    fn deserialize<D: de::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct AmountVisitor;

        impl Visitor<'_> for AmountVisitor {
            type Value = Amount;

            fn expecting(&self, f: &mut fmt::Formatter) -> fmt::Result {
                f.write_str("a number, or an expression of constants like \"alone_ns / 2\"")
            }

            fn visit_i64<E: de::Error>(self, number: i64) -> Result<Amount, E> {
                Ok(Amount::Number(number as f64))
            }

            fn visit_f64<E: de::Error>(self, number: f64) -> Result<Amount, E> {
                if number.is_finite() {
                    Ok(Amount::Number(number))
                } else {
                    Err(E::custom(format!("{number} is not a finite number")))
                }
            }

            fn visit_str<E: de::Error>(self, text: &str) -> Result<Amount, E> {
                Amount::parse(text)
                    .map_err(|error| E::custom(format!("\"{}\": {error}", beginning(text))))
            }
        }

        deserializer.deserialize_any(AmountVisitor)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    #[test]
    fn expressions_are_computed_from_left_to_right() {
        let value = |text: &str| {
            let look_up = |name: &str| match name {
                "a" => 7.5,
                "b_2" => 2.0,
                other => panic!("{other} is not in the expression"),
            };
            Amount::parse(text).unwrap().value(&look_up)
        };
        for (text, expected) in [
            ("3", 3.0),
            (" 1.5 ", 1.5),
            ("10 - 2 - 3", 5.0),
            ("12 / 2 / 3 * 2", 4.0),
            ("1 + 2 * 3", 7.0),
            ("(1 + 2) * 3", 9.0),
            ("-a + b_2", -5.5),
            ("--a", 7.5),
            ("max(a / b_2 - 4, 0)", 0.0),
            ("min(a, 8) * floor(a)", 52.5),
        ] {
            assert_eq!(value(text), expected, "{text}");
        }
        assert_eq!(
            Amount::parse("a + max(b, a) * 2").unwrap().names(),
            ["a", "b"].into()
        );
    }

    #[test]
    fn messages_show_the_beginning_of_a_long_expression() {
        let refused = |text: &str| {
            let file = format!("amount = \"{text}\"");
            let read = toml::from_str::<BTreeMap<String, Amount>>(&file);
            read.unwrap_err().message().to_owned()
        };
        assert!(refused("1 ü").starts_with("\"1 ü\": "));
        let long = refused(&"ü + ".repeat(1000));
        assert!(
            long.starts_with(&format!("\"{}...\": ", "ü + ".repeat(15))),
            "{long}"
        );
    }

    #[test]
    fn text_that_is_no_expression_is_refused() {
        let deep = "(".repeat(100_000);
        let long = "1 + ".repeat(100_000);
        for (text, error) in [
            ("", "ends too early"),
            ("1 +", "ends too early"),
            ("max(1, 2", "ends too early"),
            ("2 a", "`a` does not belong there"),
            ("a $ b", "`$` does not belong there"),
            ("1..2", "`1` does not belong there"),
            ("a)", "`)` does not belong there"),
            (
                "sin(a)",
                "unknown function `sin`; there are min, max, floor",
            ),
            ("max(1)", "`max` takes 2 arguments"),
            (deep.as_str(), "more than 32 levels"),
            (long.as_str(), "more than 1000 parts"),
        ] {
            let refused = Amount::parse(text).unwrap_err();
            assert!(refused.contains(error), "{refused}");
        }
    }
}

#[cfg(test)]
mod properties {
    use lockworks_properties::nearly;
    use proptest::prelude::*;

    use super::*;

    /// An expression that is the amount: with brackets around each operation.
    fn text(amount: &Amount) -> String {
        match amount {
            Amount::Number(number) => number.to_string(),
            Amount::Name(name) => name.clone(),
            Amount::Negative(of) => format!("-{}", text(of)),
            Amount::Binary(operator, operands) => {
                let [a, b] = operands.each_ref().map(text);
                let symbol = match operator {
                    Operator::Add => '+',
                    Operator::Subtract => '-',
                    Operator::Multiply => '*',
                    Operator::Divide => '/',
                };
                format!("({a} {symbol} {b})")
            }
            Amount::Call(function, arguments) => {
                let known = FUNCTIONS.iter().find(|(_, known, _)| known == function);
                let arguments: Vec<String> = arguments.iter().map(text).collect();
                format!("{}({})", known.unwrap().0, arguments.join(","))
            }
        }
    }

    fn amounts() -> impl Strategy<Value = Amount> {
        let leaf = prop_oneof![
            (0..1_000_000_u32).prop_map(|n| Amount::Number(f64::from(n) / 64.0)),
            "[a-z][a-z0-9_]{0,8}".prop_map(Amount::Name),
        ];
        leaf.prop_recursive(6, 40, 2, |inner| {
            let operators = prop::sample::select(vec![
                Operator::Add,
                Operator::Subtract,
                Operator::Multiply,
                Operator::Divide,
            ]);
            let functions = prop::sample::select(FUNCTIONS.to_vec());
            let pair = [inner.clone(), inner.clone()];
            prop_oneof![
                inner.prop_map(|of| Amount::Negative(Box::new(of))),
                (operators, pair.clone()).prop_map(|(o, pair)| Amount::Binary(o, Box::new(pair))),
                (functions, pair).prop_map(|((_, function, count), pair)| {
                    Amount::Call(function, pair.into_iter().take(count).collect())
                }),
            ]
        })
    }

    proptest! {
        #[test]
        fn an_expression_is_read_as_it_was_written(amount in amounts()) {
            prop_assert_eq!(Amount::parse(&text(&amount)), Ok(amount));
        }

        /// Long expressions too, which are trees as deep as they are long.
        #[test]
        fn any_text_is_refused_or_has_a_value(
            piece in nearly(vec!["max(a / b_2 - 4, 0) * ", "1 + ", "-", "(", "2 * a - "], 2),
            times in prop_oneof![9 => 1..4_usize, 1 => 1..200_000_usize],
        ) {
            if let Ok(amount) = Amount::parse(&format!("{}1", piece.repeat(times))) {
                amount.value(&|_| 2.0);
                amount.names();
            }
        }
    }
}
