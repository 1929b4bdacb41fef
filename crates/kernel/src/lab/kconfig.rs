//! Why a symbol of a kernel's configuration does not have the value that was requested. The kernel's
//! Kconfig files say what each symbol needs, and which symbols select it.

use std::collections::HashMap;
use std::fmt;
use std::fs;
use std::path::Path;

use super::arch::Arch;

/// The symbols of a kernel's tree.
#[derive(Debug, Default)]
pub(crate) struct Kconfig {
    definitions: Vec<Definition>,
    choices: usize,
}

/// A definition of a symbol; a symbol may have several.
#[derive(Debug)]
struct Definition {
    symbol: String,
    /// All of these must hold, or the symbol cannot be set.
    needs: Vec<Expression>,
    /// Symbols that it enables, and the condition for that.
    selects: Vec<(String, Option<String>)>,
    /// The lowest and the highest value, and the condition for that.
    ranges: Vec<([String; 2], Option<String>)>,
    /// The choice in which at most one symbol is enabled.
    choice: Option<usize>,
}

/// What surrounds the lines that are read: `if`, `menu` or `choice`.
#[derive(Debug, Default)]
struct Block {
    needs: Vec<Expression>,
    choice: Option<usize>,
}

/// To what the next `depends on` belongs.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Subject {
    Definition,
    Block,
    Other,
}

/// The values of a configuration, without the symbols that are not set.
pub(crate) type Values<'a> = HashMap<&'a str, &'a str>;

impl Kconfig {
    /// Reads the files of a tree, as far as they can be read.
    pub fn read(tree: &Path, arch: Arch) -> Self {
        let mut all = Self::default();
        let directory = match arch {
            Arch::X86_64 => "x86",
            Arch::Arm64 => "arm64",
        };
        let open = |file: &str| {
            let file = file.replace("$(SRCARCH)", directory);
            fs::read_to_string(tree.join(file)).ok()
        };
        all.parse(&open, "Kconfig", &mut Vec::new());
        all
    }

    fn parse(
        &mut self,
        open: &dyn Fn(&str) -> Option<String>,
        file: &str,
        blocks: &mut Vec<Block>,
    ) {
        let text = open(file).unwrap_or_default().replace("\\\n", " ");
        let mut subject = Subject::Other;
        // The indentation of a help text, once its first line is known.
        let mut help: Option<Option<usize>> = None;
        for line in text.lines() {
            let indentation = column(line);
            let line = line.trim();
            if let Some(least) = &mut help {
                if line.is_empty() || indentation >= *least.get_or_insert(indentation.max(1)) {
                    continue;
                }
                help = None;
            }
            let (word, rest) = line.split_once([' ', '\t']).unwrap_or((line, ""));
            let rest = rest.trim();
            match word {
                "help" | "---help---" => help = Some(None),
                "config" | "menuconfig" => {
                    self.definitions.push(Definition {
                        symbol: rest.to_owned(),
                        needs: blocks.iter().flat_map(|b| b.needs.clone()).collect(),
                        selects: Vec::new(),
                        ranges: Vec::new(),
                        choice: blocks.iter().rev().find_map(|block| block.choice),
                    });
                    subject = Subject::Definition;
                }
                "if" => {
                    let needs = Expression::parse(rest).into_iter().collect();
                    blocks.push(Block {
                        needs,
                        choice: None,
                    });
                    subject = Subject::Other;
                }
                "menu" => {
                    blocks.push(Block::default());
                    subject = Subject::Block;
                }
                "choice" => {
                    self.choices += 1;
                    let choice = Some(self.choices);
                    blocks.push(Block {
                        needs: Vec::new(),
                        choice,
                    });
                    subject = Subject::Block;
                }
                "endif" | "endmenu" | "endchoice" => {
                    blocks.pop();
                    subject = Subject::Other;
                }
                "comment" => subject = Subject::Other,
                "source" => self.parse(open, rest.trim_matches('"'), blocks),
                "depends" => {
                    let (needed, condition) =
                        with_condition(rest.strip_prefix("on").unwrap_or(rest).trim());
                    let text = match condition {
                        Some(condition) => format!("!({condition}) || ({needed})"),
                        None => needed.to_owned(),
                    };
                    let needed = Expression::parse(&text);
                    match subject {
                        Subject::Definition => self.note(|found| found.needs.extend(needed)),
                        Subject::Block => {
                            if let Some(block) = blocks.last_mut() {
                                block.needs.extend(needed);
                            }
                        }
                        Subject::Other => {}
                    }
                }
                // A prompt with a condition: without it nobody but other symbols can set this one.
                "bool" | "tristate" | "int" | "hex" | "string" | "prompt"
                    if subject == Subject::Definition =>
                {
                    if let Some(condition) = with_condition(rest).1 {
                        self.note(|found| found.needs.extend(Expression::parse(condition)));
                    }
                }
                "select" if subject == Subject::Definition => {
                    let (symbol, condition) = with_condition(rest);
                    let selected = (symbol.to_owned(), condition.map(str::to_owned));
                    self.note(|found| found.selects.push(selected));
                }
                "range" if subject == Subject::Definition => {
                    let (bounds, condition) = with_condition(rest);
                    if let Some((least, most)) = bounds.split_once([' ', '\t']) {
                        let range = [least.to_owned(), most.trim().to_owned()];
                        self.note(|found| found.ranges.push((range, condition.map(str::to_owned))));
                    }
                }
                _ => {}
            }
        }
    }

    /// Changes the last definition.
    fn note(&mut self, change: impl FnOnce(&mut Definition)) {
        if let Some(last) = self.definitions.last_mut() {
            change(last);
        }
    }

    /// Why a symbol, named without `CONFIG_`, does not have the value that was requested.
    pub fn reason(&self, symbol: &str, wanted: &str, values: &Values) -> Option<String> {
        let of_symbol = |found: &&Definition| found.symbol == symbol;
        let definitions: Vec<&Definition> = self.definitions.iter().filter(of_symbol).collect();
        if definitions.is_empty() {
            return Some("this tree has no such symbol".to_owned());
        }
        if wanted == "n" {
            return self.selecting(symbol, values);
        }
        let lacks = self.lacking(symbol, least(wanted), values, &mut Vec::new());
        if !lacks.is_empty() {
            return Some(lacks.join(", "));
        }
        let choices = definitions.iter().filter_map(|found| found.choice);
        for choice in choices {
            let other = self.definitions.iter().find(|other| {
                other.choice == Some(choice)
                    && other.symbol != symbol
                    && value(&other.symbol, values) == Y
            });
            if let Some(other) = other {
                return Some(format!("CONFIG_{}=y excludes it", other.symbol));
            }
        }
        let mut ranges = definitions.iter().flat_map(|found| &found.ranges);
        let (bounds, _) = ranges.find(|(_, condition)| holds(condition.as_deref(), values))?;
        let [least, most] = bounds.each_ref().map(|bound| text_of(bound, values));
        Some(format!("its range is {least} to {most}"))
    }

    /// Whether a symbol was refused only because it needs one of others, which were refused, too.
    pub fn follows(&self, symbol: &str, wanted: &str, values: &Values, others: &[&str]) -> bool {
        let needed = |need: &&Expression| match need {
            Expression::Symbol(name) => others.contains(&name.as_str()),
            _ => false,
        };
        let unmet = self.unmet(symbol, least(wanted), values);
        wanted != "n" && !unmet.is_empty() && unmet.iter().all(needed)
    }

    /// What a symbol needs and lacks, by the definition that lacks least.
    fn unmet(&self, symbol: &str, least: Tristate, values: &Values) -> Vec<&Expression> {
        let definitions = self.definitions.iter().filter(|d| d.symbol == symbol);
        let unmet = definitions.map(|definition| -> Vec<&Expression> {
            let needs = definition.needs.iter();
            needs.flat_map(|need| need.unmet(least, values)).collect()
        });
        unmet.min_by_key(Vec::len).unwrap_or_default()
    }

    /// What a symbol needs and lacks, in words. What it lacks may lack something itself; `seen` has the symbols
    /// that led here.
    fn lacking<'a>(
        &'a self,
        symbol: &'a str,
        least: Tristate,
        values: &Values,
        seen: &mut Vec<&'a str>,
    ) -> Vec<String> {
        seen.push(symbol);
        let mut lacks = Vec::new();
        for need in self.unmet(symbol, least, values) {
            let mut text = format!("it needs {need}, but {}", need.set(values));
            if let Expression::Symbol(name) = need
                && !seen.contains(&name.as_str())
            {
                let further = self.lacking(name, least, values, seen).join(", ");
                if !further.is_empty() {
                    text += &format!(": {further}");
                }
            }
            lacks.push(text);
        }
        lacks
    }

    fn selecting(&self, symbol: &str, values: &Values) -> Option<String> {
        let selects = |other: &&Definition| {
            value(&other.symbol, values) > N
                && other.selects.iter().any(|(selected, condition)| {
                    selected == symbol && holds(condition.as_deref(), values)
                })
        };
        let other = self.definitions.iter().find(selects)?;
        let name = &other.symbol;
        Some(format!(
            "CONFIG_{name}={} selects it",
            text_of(name, values)
        ))
    }
}

/// The column at which the text of a line begins. A tab goes to the next multiple of 8.
fn column(line: &str) -> usize {
    let blanks = line.chars().take_while(|c| c.is_whitespace());
    blanks.fold(0, |column, c| match c {
        '\t' => column / 8 * 8 + 8,
        _ => column + 1,
    })
}

/// Splits `TEXT if CONDITION`. The text may be quoted and contain the word itself.
fn with_condition(text: &str) -> (&str, Option<&str>) {
    let quoted = match text.chars().next() {
        Some(quote @ ('"' | '\'')) => text[1..].find(quote).map_or(text.len(), |end| end + 2),
        _ => 0,
    };
    match text[quoted..].find("if ") {
        Some(at) if at == 0 || text[quoted..][..at].ends_with([' ', '\t']) => {
            let at = quoted + at;
            (text[..at].trim(), Some(text[at + 3..].trim()))
        }
        _ => (text, None),
    }
}

/// The values of a symbol with three states.
type Tristate = u8;
const N: Tristate = 0;
const M: Tristate = 1;
const Y: Tristate = 2;

/// The least value that a symbol's needs must have for the wanted one.
fn least(wanted: &str) -> Tristate {
    match wanted {
        "m" => M,
        _ => Y,
    }
}

fn text_of<'a>(name: &'a str, values: &Values<'a>) -> &'a str {
    let constant = name.starts_with(['"', '\'']) || matches!(name, "n" | "m" | "y");
    match values.get(name) {
        _ if constant || name.parse::<u64>().is_ok() => name.trim_matches(['"', '\'']),
        Some(value) => value.trim_matches('"'),
        None => "n",
    }
}

fn value(name: &str, values: &Values) -> Tristate {
    // A question to the compiler is not answered here; it is no symbol that excludes another.
    if name.starts_with('$') {
        return Y;
    }
    match text_of(name, values) {
        "y" => Y,
        "m" => M,
        _ => N,
    }
}

fn holds(condition: Option<&str>, values: &Values) -> bool {
    let parsed = condition.and_then(Expression::parse);
    parsed.is_none_or(|condition| condition.value(values) > N)
}

/// An expression of Kconfig.
#[derive(Clone, Debug, PartialEq)]
enum Expression {
    Symbol(String),
    /// Two names and what stands between them.
    Comparison(String, String, String),
    Not(Box<Self>),
    And(Box<Self>, Box<Self>),
    Or(Box<Self>, Box<Self>),
}

impl Expression {
    fn parse(text: &str) -> Option<Self> {
        let mut words = words(text);
        words.reverse();
        let parsed = Self::any(&mut words)?;
        words.is_empty().then_some(parsed)
    }

    /// Parses words, of which the last is the next.
    fn any(words: &mut Vec<String>) -> Option<Self> {
        let left = Self::all(words)?;
        if words.pop_if(|word| word == "||").is_none() {
            return Some(left);
        }
        Some(Self::Or(Box::new(left), Box::new(Self::any(words)?)))
    }

    fn all(words: &mut Vec<String>) -> Option<Self> {
        let left = Self::one(words)?;
        if words.pop_if(|word| word == "&&").is_none() {
            return Some(left);
        }
        Some(Self::And(Box::new(left), Box::new(Self::all(words)?)))
    }

    fn one(words: &mut Vec<String>) -> Option<Self> {
        match words.pop()?.as_str() {
            "!" => Some(Self::Not(Box::new(Self::one(words)?))),
            "(" => {
                let inner = Self::any(words)?;
                words.pop_if(|word| word == ")")?;
                Some(inner)
            }
            ")" | "&&" | "||" => None,
            name => {
                let compares = |word: &mut String| COMPARISONS.contains(&word.as_str());
                match words.pop_if(compares) {
                    Some(how) => Some(Self::Comparison(name.to_owned(), how, words.pop()?)),
                    None => Some(Self::Symbol(name.to_owned())),
                }
            }
        }
    }

    fn value(&self, values: &Values) -> Tristate {
        match self {
            Self::Symbol(name) => value(name, values),
            Self::Not(inner) => Y - inner.value(values),
            Self::And(one, other) => one.value(values).min(other.value(values)),
            Self::Or(one, other) => one.value(values).max(other.value(values)),
            Self::Comparison(one, how, other) => {
                let (one, other) = (text_of(one, values), text_of(other, values));
                let order = match (one.parse::<i64>(), other.parse::<i64>()) {
                    (Ok(one), Ok(other)) => one.cmp(&other),
                    _ => one.cmp(other),
                };
                let is_true = match how.as_str() {
                    "=" => order.is_eq(),
                    "!=" => order.is_ne(),
                    "<" => order.is_lt(),
                    "<=" => order.is_le(),
                    ">" => order.is_gt(),
                    _ => order.is_ge(),
                };
                if is_true { Y } else { N }
            }
        }
    }

    /// The parts that must all hold and do not.
    fn unmet(&self, least: Tristate, values: &Values) -> Vec<&Self> {
        match self {
            _ if self.value(values) >= least => Vec::new(),
            Self::And(one, other) => {
                [one.unmet(least, values), other.unmet(least, values)].concat()
            }
            _ => vec![self],
        }
    }

    /// The values of its symbols, in words.
    fn set(&self, values: &Values) -> String {
        let mut symbols = Vec::new();
        self.symbols(&mut symbols);
        let set = symbols
            .iter()
            .map(|name| format!("CONFIG_{name}={}", text_of(name, values)));
        set.collect::<Vec<_>>().join(" and ")
    }

    fn symbols<'a>(&'a self, found: &mut Vec<&'a str>) {
        let mut add = |name: &'a str| {
            let plain = |c: char| c == '_' || c.is_ascii_alphanumeric();
            let is_symbol = name.chars().all(plain) && name.chars().any(|c| c.is_ascii_uppercase());
            if is_symbol && !found.contains(&name) {
                found.push(name);
            }
        };
        match self {
            Self::Symbol(name) => add(name),
            Self::Comparison(one, _, other) => {
                add(one);
                add(other);
            }
            Self::Not(inner) => inner.symbols(found),
            Self::And(one, other) | Self::Or(one, other) => {
                one.symbols(found);
                other.symbols(found);
            }
        }
    }
}

const COMPARISONS: [&str; 6] = ["=", "!=", "<", "<=", ">", ">="];

impl fmt::Display for Expression {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        let grouped = |inner: &Self| match inner {
            Self::And(..) | Self::Or(..) => format!("({inner})"),
            _ => inner.to_string(),
        };
        match self {
            Self::Symbol(name) => f.write_str(name),
            Self::Comparison(one, how, other) => write!(f, "{one} {how} {other}"),
            Self::Not(inner) => write!(f, "!{}", grouped(inner)),
            Self::And(one, other) => write!(f, "{} && {}", grouped(one), grouped(other)),
            Self::Or(one, other) => write!(f, "{} || {}", grouped(one), grouped(other)),
        }
    }
}

/// The words of an expression. A macro is one word.
fn words(text: &str) -> Vec<String> {
    let mut found = Vec::new();
    let mut rest = text.trim_start();
    while let Some(first) = rest.chars().next() {
        let two = ["&&", "||", "!=", "<=", ">="]
            .iter()
            .find(|two| rest.starts_with(**two));
        let length = match first {
            '#' => break,
            _ if two.is_some() => 2,
            '!' | '(' | ')' | '=' | '<' | '>' => 1,
            '"' | '\'' => rest[1..].find(first).map_or(rest.len(), |end| end + 2),
            '$' => macro_length(rest),
            _ => {
                let end = |c: char| c.is_whitespace() || "!()=<>&|".contains(c);
                rest.find(end).unwrap_or(rest.len()).max(1)
            }
        };
        found.push(rest[..length].to_owned());
        rest = rest[length..].trim_start();
    }
    found
}

/// The length of a macro, such as `$(cc-option,-mno-x)`, whose brackets may contain others.
fn macro_length(text: &str) -> usize {
    let mut open = 0_usize;
    for (at, c) in text.char_indices() {
        match c {
            '(' => open += 1,
            ')' if open == 1 => return at + 1,
            ')' => open = open.saturating_sub(1),
            _ => {}
        }
    }
    text.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    const TOP: &str = r#"
mainmenu "Linux"
source "arch/Kconfig"

menu "Locks"
	depends on SMP

config NUMA_LOCKS
	bool "NUMA-aware locks, if wanted"
	depends on NUMA && 64BIT && NR_CPUS < 100
	depends on !(DEBUG_A || DEBUG_B)
	select QUEUES if SMP
	help
	  Needs nothing.

	  config FAKE
	    depends on NOTHING

config EXPERT_LOCKS
	bool "Locks for experts" if EXPERT
	depends on $(cc-option,-mlocks (all))

config NR_CPUS
	int "CPUs"
	range 2 8 if SMALL
	range 2 LARGEST

if MODULES
config TEST
	tristate "Test"
	depends on TOOL
endif

config DEEP
	bool "Deep"
	depends on DEEPER

config DEEPER
	def_bool DEEPEST
	depends on DEEPEST

config DEEPEST
	def_bool y
	depends on !SMALL

config CIRCLE
	bool "In a circle"
	depends on CIRCLE

config CONDITIONAL
	bool "With a condition"
	depends on QUEUES if DEBUG_A

endmenu

choice
	prompt "Preemption"
config NONE
	bool "None"
config FULL
	bool "Full"
endchoice
"#;

    fn kconfig() -> Kconfig {
        let open = |file: &str| match file {
            "Kconfig" => Some(TOP.to_owned()),
            "arch/Kconfig" => Some("config ARCH\n\tdef_bool y\n".to_owned()),
            _ => None,
        };
        let mut all = Kconfig::default();
        all.parse(&open, "Kconfig", &mut Vec::new());
        all
    }

    #[test]
    fn the_symbol_that_excludes_another_is_named() {
        let all = kconfig();
        let good = [
            ("SMP", "y"),
            ("NUMA", "y"),
            ("64BIT", "y"),
            ("NR_CPUS", "64"),
            ("MODULES", "y"),
            ("TOOL", "y"),
            ("EXPERT", "y"),
            ("LARGEST", "512"),
        ];
        for (symbol, wanted, changed, reason) in [
            ("NUMA_LOCKS", "y", &[][..], None),
            (
                "NUMA_LOCKS",
                "y",
                &[("NUMA", "n")],
                Some("it needs NUMA, but CONFIG_NUMA=n"),
            ),
            (
                "NUMA_LOCKS",
                "y",
                &[("NR_CPUS", "200")],
                Some("it needs NR_CPUS < 100, but CONFIG_NR_CPUS=200"),
            ),
            (
                "NUMA_LOCKS",
                "y",
                &[("DEBUG_B", "y"), ("64BIT", "n")],
                Some(
                    "it needs 64BIT, but CONFIG_64BIT=n, \
                     it needs !(DEBUG_A || DEBUG_B), but CONFIG_DEBUG_A=n and CONFIG_DEBUG_B=y",
                ),
            ),
            (
                "NUMA_LOCKS",
                "y",
                &[("SMP", "n")],
                Some("it needs SMP, but CONFIG_SMP=n"),
            ),
            ("EXPERT_LOCKS", "y", &[], None),
            (
                "EXPERT_LOCKS",
                "y",
                &[("EXPERT", "n")],
                Some("it needs EXPERT, but CONFIG_EXPERT=n"),
            ),
            ("NR_CPUS", "1000", &[], Some("its range is 2 to 512")),
            (
                "NR_CPUS",
                "1000",
                &[("SMALL", "y")],
                Some("its range is 2 to 8"),
            ),
            ("TEST", "m", &[("TOOL", "m")], None),
            (
                "TEST",
                "y",
                &[("TOOL", "m")],
                Some("it needs TOOL, but CONFIG_TOOL=m"),
            ),
            (
                "TEST",
                "m",
                &[("MODULES", "n")],
                Some("it needs MODULES, but CONFIG_MODULES=n"),
            ),
            (
                "DEEP",
                "y",
                &[("SMALL", "y")],
                Some(
                    "it needs DEEPER, but CONFIG_DEEPER=n: it needs DEEPEST, but CONFIG_DEEPEST=n: \
                     it needs !SMALL, but CONFIG_SMALL=y",
                ),
            ),
            (
                "CIRCLE",
                "y",
                &[],
                Some("it needs CIRCLE, but CONFIG_CIRCLE=n"),
            ),
            ("CONDITIONAL", "y", &[], None),
            (
                "CONDITIONAL",
                "y",
                &[("DEBUG_A", "y")],
                Some("it needs !DEBUG_A || QUEUES, but CONFIG_DEBUG_A=y and CONFIG_QUEUES=n"),
            ),
            (
                "FULL",
                "y",
                &[("NONE", "y")],
                Some("CONFIG_NONE=y excludes it"),
            ),
            (
                "QUEUES",
                "n",
                &[("NUMA_LOCKS", "y")],
                Some("this tree has no such symbol"),
            ),
            ("FAKE", "y", &[], Some("this tree has no such symbol")),
        ] {
            let values: Values = good.iter().chain(changed).copied().collect();
            assert_eq!(
                all.reason(symbol, wanted, &values).as_deref(),
                reason,
                "{symbol} {changed:?}"
            );
        }
    }

    #[test]
    fn the_symbol_that_selects_another_is_named() {
        let text = "config A\n\tbool\n\tselect B if C\nconfig B\n\tbool\nconfig C\n\tbool\n";
        let mut all = Kconfig::default();
        all.parse(&|_| Some(text.to_owned()), "Kconfig", &mut Vec::new());
        let values: Values = [("A", "y"), ("B", "y"), ("C", "y")].into();
        let reason = all.reason("B", "n", &values);
        assert_eq!(reason.as_deref(), Some("CONFIG_A=y selects it"));
        let values: Values = [("A", "y"), ("B", "y")].into();
        assert_eq!(all.reason("B", "n", &values), None);
    }
}
