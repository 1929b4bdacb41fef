//! Splits the text of a litmus test into tokens.

use super::error::Refusal;

#[derive(Clone, Debug, PartialEq)]
pub(super) enum Token {
    Word(String),
    Number(i64),
    Symbol(&'static str),
    End,
}

impl Token {
    /// For messages.
    pub(super) fn text(&self) -> String {
        match self {
            Self::Word(word) => format!("'{word}'"),
            Self::Number(number) => format!("'{number}'"),
            Self::Symbol(symbol) => format!("'{symbol}'"),
            Self::End => "the end of the file".to_owned(),
        }
    }
}

#[derive(Clone, Debug, PartialEq)]
pub(super) struct Placed {
    pub(super) token: Token,
    pub(super) line: usize,
}

/// A text as its heading, the text of its comments, and the tokens from the first brace on.
#[derive(Debug)]
pub(super) struct Lexed {
    pub(super) name: String,
    pub(super) comments: String,
    pub(super) tokens: Vec<Placed>,
}

/// The longer ones first.
const SYMBOLS: [&str; 46] = [
    "<<=", ">>=", "/\\", "\\/", "&&", "||", "==", "!=", "<=", ">=", "<<", ">>", "->", "++", "--",
    "+=", "-=", "*=", "/=", "&=", "|=", "^=", "{", "}", "(", ")", "[", "]", ";", ",", ":", "=",
    "<", ">", "+", "-", "*", "/", "%", "&", "|", "^", "~", "!", "?", ".",
];

struct Lexer<'a> {
    rest: &'a str,
    line: usize,
    comments: String,
}

/// Splits a text.
pub(super) fn lex(text: &str) -> Result<Lexed, Refusal> {
    let mut lexer = Lexer {
        rest: text,
        line: 1,
        comments: String::new(),
    };
    let name = lexer.heading()?;
    let tokens = lexer.tokens()?;
    Ok(Lexed {
        name,
        comments: lexer.comments,
        tokens,
    })
}

impl<'a> Lexer<'a> {
    fn refuse<T>(&self, what: impl Into<String>) -> Result<T, Refusal> {
        Err(Refusal::new(self.line, what))
    }

    /// Takes some bytes of the rest.
    fn take(&mut self, length: usize) -> &'a str {
        let (taken, rest) = self.rest.split_at(length);
        self.line += taken.matches('\n').count();
        self.rest = rest;
        taken
    }

    fn take_while(&mut self, kept: impl Fn(char) -> bool) -> &'a str {
        let length = self.rest.find(|c| !kept(c)).unwrap_or(self.rest.len());
        self.take(length)
    }

    /// Takes a comment of one of the two kinds; keeps its text.
    fn comment(&mut self, open: &str, close: &str) -> Result<bool, Refusal> {
        if !self.rest.starts_with(open) {
            return Ok(false);
        }
        let Some(end) = self.rest[open.len()..].find(close) else {
            return self.refuse(format!("a comment that does not end with '{close}'"));
        };
        let text = self.take(open.len() + end + close.len());
        self.comments.push_str(text);
        self.comments.push('\n');
        Ok(true)
    }

    /// The first line, and what follows it up to the first brace.
    fn heading(&mut self) -> Result<String, Refusal> {
        self.take_while(char::is_whitespace);
        let first = self.line;
        let heading = self.take_while(|c| c != '\n').trim();
        let name = match heading.split_once(char::is_whitespace) {
            Some(("C", name)) => name.trim().to_owned(),
            _ => {
                let start: String = heading.chars().take(20).collect();
                return Err(Refusal::new(
                    first,
                    format!(
                        "'{}' where 'C NAME' begins a litmus test in C",
                        plain(&start)
                    ),
                ));
            }
        };
        loop {
            self.take_while(char::is_whitespace);
            if self.comment("(*", "*)")? {
            } else if self.rest.starts_with('"') {
                let Some(end) = self.rest[1..].find('"') else {
                    return self.refuse("a description that does not end with '\"'");
                };
                self.take(end + 2);
            } else if self.rest.starts_with('{') {
                return Ok(plain(&name));
            } else {
                // Lines as of generators: KEY=VALUE.
                let line = self.rest.lines().next().unwrap_or_default();
                let key = line.split('=').next().unwrap_or_default();
                let is_key = line.contains('=') && key.chars().all(|c| c.is_alphanumeric());
                if !is_key || key.is_empty() {
                    let start: String = line.chars().take(20).collect();
                    return self.refuse(match line {
                        "" => "no initial values, '{}'".to_owned(),
                        _ => format!("'{}' where '{{' begins the initial values", plain(&start)),
                    });
                }
                self.take(line.len());
            }
        }
    }

    fn tokens(&mut self) -> Result<Vec<Placed>, Refusal> {
        let mut tokens = Vec::new();
        let (mut depth, mut blocks) = (0_usize, 0);
        loop {
            self.take_while(char::is_whitespace);
            // In a thread's code, `(*` may begin an argument.
            let in_code = depth > 0 && blocks > 1;
            if self.comment("/*", "*/")? || (!in_code && self.comment("(*", "*)")?) {
                continue;
            }
            if self.rest.starts_with("//") {
                self.take_while(|c| c != '\n');
                continue;
            }
            let line = self.line;
            let Some(first) = self.rest.chars().next() else {
                tokens.push(Placed {
                    token: Token::End,
                    line,
                });
                return Ok(tokens);
            };
            let token = if first.is_ascii_digit() {
                self.number()?
            } else if first.is_ascii_alphabetic() || first == '_' {
                let word = self.take_while(|c| c.is_ascii_alphanumeric() || c == '_');
                Token::Word(word.to_owned())
            } else if let Some(symbol) = SYMBOLS.iter().find(|s| self.rest.starts_with(**s)) {
                self.take(symbol.len());
                match *symbol {
                    "{" => {
                        blocks += usize::from(depth == 0);
                        depth += 1;
                    }
                    "}" => depth = depth.saturating_sub(1),
                    _ => {}
                }
                Token::Symbol(symbol)
            } else {
                return self.refuse(format!("the character '{}'", plain(&first.to_string())));
            };
            tokens.push(Placed { token, line });
        }
    }

    fn number(&mut self) -> Result<Token, Refusal> {
        let digits = self.take_while(|c| c.is_ascii_alphanumeric());
        let small = digits.trim_end_matches(['u', 'U', 'l', 'L']);
        let number = match small.strip_prefix("0x").or(small.strip_prefix("0X")) {
            Some(hexadecimal) => i64::from_str_radix(hexadecimal, 16),
            None => small.parse(),
        };
        match number {
            Ok(number) => Ok(Token::Number(number)),
            Err(_) => self.refuse(format!("the number '{digits}'")),
        }
    }
}

/// A text without control characters, so that a message is one line.
pub(super) fn plain(text: &str) -> String {
    text.chars().filter(|c| !c.is_control()).collect()
}
