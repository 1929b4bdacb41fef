//! The functions of a lock in a source that describes nothing: they are found by their names, or named by
//! the user.

use std::collections::BTreeMap;
use std::fmt::{self, Write as _};
use std::str::FromStr;

use super::SourceError;
use crate::layout::{LENT, LENT_STRIDE};

/// An object of a source, which has threads of a check to suit it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    /// A lock, with readers or without.
    Lock,
    /// As many threads pass it as it has tokens.
    Semaphore,
    /// Its readers try again if a writer has been there.
    Seqlock,
    /// A condition variable, with a mutex of the source.
    Cond,
}

impl Kind {
    /// What its functions do.
    fn roles(self) -> &'static [Role] {
        use Role::*;
        match self {
            Self::Lock => &[
                Lock,
                TryLock,
                Unlock,
                ReadLock,
                ReadTryLock,
                ReadUnlock,
                Init,
            ],
            Self::Semaphore => &[Wait, TryWait, Post, Init],
            Self::Seqlock => &[
                Lock, Unlock, WriteBegin, WriteEnd, ReadBegin, ReadRetry, Init,
            ],
            Self::Cond => &[Lock, Unlock, Init, Wait, Signal, Broadcast, CondInit],
        }
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Lock => "lock",
            Self::Semaphore => "semaphore",
            Self::Seqlock => "seqlock",
            Self::Cond => "condition variable",
        })
    }
}

/// What a function of a lock, or of another object, does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Role {
    /// It acquires the lock, alone.
    Lock,
    /// It tries that.
    TryLock,
    /// It releases it.
    Unlock,
    /// It acquires the lock as a reader.
    ReadLock,
    /// It tries that.
    ReadTryLock,
    /// It releases it.
    ReadUnlock,
    /// It makes a lock of memory.
    Init,
    /// It begins a write, which a reader of a seqlock may miss.
    WriteBegin,
    /// It ends that.
    WriteEnd,
    /// It begins a read, and returns what the end needs.
    ReadBegin,
    /// It says whether to read again.
    ReadRetry,
    /// It takes a token of a semaphore. Of a condition variable: it waits without the lock.
    Wait,
    /// It tries to take a token.
    TryWait,
    /// It gives a token.
    Post,
    /// It wakes a waiter of a condition variable.
    Signal,
    /// It wakes all of them.
    Broadcast,
    /// It makes a condition variable of memory.
    CondInit,
}

/// The name of each role on the command line, and the ends of the names of its functions, without
/// underscores. The longest end of a name counts.
const ROLES: [(Role, &str, &[&str]); 17] = [
    (
        Role::Lock,
        "lock",
        &[
            "lock",
            "acquire",
            "writelock",
            "wrlock",
            "writerlock",
            "writeacquire",
            "acquirewrite",
            "lockwrite",
            "lockexclusive",
            "downwrite",
            "wlock",
            "writeseqlock",
            "enter",
        ],
    ),
    (
        Role::TryLock,
        "trylock",
        &[
            "trylock",
            "tryacquire",
            "writetrylock",
            "trywritelock",
            "wrtrylock",
            "trywrlock",
            "writertrylock",
            "writetryacquire",
            "trywriteacquire",
            "tryacquirewrite",
            "trylockexclusive",
            "downwritetrylock",
            "tryenter",
        ],
    ),
    (
        Role::Unlock,
        "unlock",
        &[
            "unlock",
            "release",
            "writeunlock",
            "wrunlock",
            "writerunlock",
            "writerelease",
            "releasewrite",
            "unlockwrite",
            "unlockexclusive",
            "upwrite",
            "wunlock",
            "writesequnlock",
            "leave",
            "exit",
        ],
    ),
    (
        Role::ReadLock,
        "read_lock",
        &[
            "readlock",
            "rdlock",
            "readerlock",
            "readacquire",
            "acquireread",
            "lockread",
            "lockshared",
            "acquireshared",
            "downread",
            "rlock",
        ],
    ),
    (
        Role::ReadTryLock,
        "read_trylock",
        &[
            "readtrylock",
            "tryreadlock",
            "rdtrylock",
            "tryrdlock",
            "readertrylock",
            "readtryacquire",
            "tryreadacquire",
            "tryacquireread",
            "trylockshared",
            "tryacquireshared",
            "downreadtrylock",
        ],
    ),
    (
        Role::ReadUnlock,
        "read_unlock",
        &[
            "readunlock",
            "rdunlock",
            "readerunlock",
            "readrelease",
            "releaseread",
            "unlockread",
            "unlockshared",
            "releaseshared",
            "upread",
            "runlock",
        ],
    ),
    (Role::Init, "init", &["init", "initialize", "initialise"]),
    (
        Role::WriteBegin,
        "write_begin",
        &[
            "writebegin",
            "beginwrite",
            "writeseqcountbegin",
            "writeseqbegin",
        ],
    ),
    (
        Role::WriteEnd,
        "write_end",
        &["writeend", "endwrite", "writeseqcountend", "writeseqend"],
    ),
    (
        Role::ReadBegin,
        "read_begin",
        &[
            "readbegin",
            "beginread",
            "readseqcountbegin",
            "readseqbegin",
        ],
    ),
    (
        Role::ReadRetry,
        "read_retry",
        &[
            "readretry",
            "retryread",
            "readseqcountretry",
            "readseqretry",
        ],
    ),
    (Role::Wait, "wait", &["wait", "down"]),
    (
        Role::TryWait,
        "trywait",
        &["trywait", "trydown", "downtrylock"],
    ),
    (Role::Post, "post", &["post", "up"]),
    (
        Role::Signal,
        "signal",
        &["signal", "notify", "notifyone", "wakeone"],
    ),
    (
        Role::Broadcast,
        "broadcast",
        &["broadcast", "notifyall", "signalall", "wakeall"],
    ),
    (Role::CondInit, "cond_init", &[]),
];

impl fmt::Display for Role {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let row = ROLES.iter().find(|(role, ..)| role == self);
        f.write_str(row.map_or("", |(_, name, _)| name))
    }
}

/// A function that the user names: `lock=my_lock`, or `trylock=!my_trylock` if 0 is success.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Named {
    role: Role,
    name: String,
    /// A result of 0 is success.
    zero_succeeds: bool,
}

impl FromStr for Named {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = || {
            let roles: Vec<&str> = ROLES.iter().map(|(_, name, _)| *name).collect();
            format!(
                "give ROLE=FUNCTION, such as lock=my_lock; a role is {}",
                roles.join(", ")
            )
        };
        let (role, name) = text.split_once('=').ok_or_else(wrong)?;
        let row = ROLES
            .iter()
            .find(|(_, known, _)| *known == role)
            .ok_or_else(wrong)?;
        let (name, zero_succeeds) = match name.strip_prefix('!') {
            Some(name) => (name, true),
            None => (name, false),
        };
        match name.is_empty() {
            true => Err(wrong()),
            false => Ok(Self {
                role: row.0,
                name: name.to_owned(),
                zero_succeeds,
            }),
        }
    }
}

impl fmt::Display for Named {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let not = if self.zero_succeeds { "!" } else { "" };
        write!(f, "{}={not}{}", self.role, self.name)
    }
}

/// The role and the beginning of a function's name.
fn role(name: &str) -> Option<(Role, String)> {
    let plain: String = name.chars().filter(|c| *c != '_').collect();
    let begin = &plain[..plain.len().saturating_sub(1)];
    let words: Vec<&str> = name.rsplit('_').collect();
    // As Dijkstra has them.
    match words.first() {
        Some(&"P") => return Some((Role::Wait, begin.to_lowercase())),
        Some(&"V") => return Some((Role::Post, begin.to_lowercase())),
        _ => {}
    }
    let plain = plain.to_lowercase();
    let ends = ROLES
        .iter()
        .flat_map(|(role, _, ends)| ends.iter().map(move |end| (*role, *end)));
    // In rw_unlock(), the w is a part of the name before it.
    let is_one_word = |end: &str| {
        let is_short = matches!(end, "wlock" | "wunlock" | "rlock" | "runlock");
        let before = words.get(1).filter(|_| words[0].len() < end.len());
        !is_short || before.is_none_or(|before| before.len() == 1)
    };
    let found = ends
        .filter(|(_, end)| plain.ends_with(end) && is_one_word(end))
        .max_by_key(|(_, end)| end.len());
    found.map(|(role, end)| (role, plain[..plain.len() - end.len()].to_owned()))
}

/// A function that a source defines.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Function {
    pub(super) name: String,
    /// The namespaces that it is in, each with `::`.
    scope: String,
    /// The class whose method it is.
    class: Option<String>,
    /// The types of its parameters.
    parameters: Vec<String>,
    /// Their names, where they have any.
    names: Vec<String>,
    /// It stands in the file that the user gave, and not in one that this includes.
    is_own: bool,
    /// The class is a template, and not an instance of one.
    is_template: bool,
}

impl Function {
    /// Its full name.
    fn path(&self) -> String {
        let class = self.class.iter().map(|class| format!("{class}::"));
        format!("{}{}{}", self.scope, class.collect::<String>(), self.name)
    }

    /// The place of the parameter that tells a semaphore its tokens: the only number, or the only one with such
    /// a name.
    fn count(&self, path: &str) -> Result<Option<usize>, SourceError> {
        const NAMES: [&str; 8] = [
            "value", "val", "count", "n", "initial", "tokens", "permits", "init",
        ];
        let numbers = (0..self.parameters.len()).filter(|i| !is_pointer(&self.parameters[*i]));
        let numbers: Vec<usize> = numbers.collect();
        let named = numbers
            .iter()
            .filter(|i| NAMES.contains(&&self.names[**i][..]));
        let named: Vec<usize> = named.copied().collect();
        match (&numbers[..], &named[..]) {
            ([], _) => Ok(None),
            ([one], _) | (_, [one]) => Ok(Some(*one)),
            _ => Err(SourceError::Tokens {
                path: path.to_owned(),
                function: self.path(),
            }),
        }
    }

    /// Functions of one lock have one key.
    fn key(&self) -> Option<(String, Role)> {
        let (role, begin) = role(&self.name)?;
        let class = self.class.as_deref().unwrap_or_default();
        Some((format!("{}{class}:{begin}", self.scope), role))
    }
}

/// A word or sign of C.
#[derive(Clone, Debug)]
struct Token<'a> {
    text: &'a str,
    is_own: bool,
    is_system: bool,
}

fn is_word(c: char) -> bool {
    c.is_ascii_alphanumeric() || c == '_' || c == '$'
}

/// The tokens of a source that was preprocessed, without the contents of strings. `own`: the file that the
/// user gave.
fn tokens<'a>(text: &'a str, own: &str) -> Vec<Token<'a>> {
    let mut found = Vec::new();
    let (mut is_own, mut is_system) = (false, false);
    for line in text.lines() {
        if let Some(marker) = line.strip_prefix("# ") {
            let mut parts = marker.split('"');
            let name = parts.nth(1).unwrap_or_default();
            let flags = parts.next().unwrap_or_default();
            is_own = name == own;
            is_system = flags.split_whitespace().any(|flag| flag == "3") || name.starts_with('<');
            continue;
        }
        let mut rest = line;
        while let Some(first) = rest.chars().next() {
            let length = match first {
                '"' | '\'' => {
                    let mut is_escaped = false;
                    let end = rest.char_indices().skip(1).find(|(_, c)| {
                        let is_end = *c == first && !is_escaped;
                        is_escaped = *c == '\\' && !is_escaped;
                        is_end
                    });
                    end.map_or(rest.len(), |(at, _)| at + 1)
                }
                c if is_word(c) => rest.find(|c| !is_word(c)).unwrap_or(rest.len()),
                ':' if rest.starts_with("::") => 2,
                c => c.len_utf8(),
            };
            let text = &rest[..length];
            if !first.is_whitespace() {
                found.push(Token {
                    text: if first == '"' { "\"" } else { text },
                    is_own,
                    is_system,
                });
            }
            rest = &rest[length..];
        }
    }
    found
}

/// The words that stand before parentheses and name no function.
const NO_FUNCTIONS: [&str; 14] = [
    "__attribute__",
    "__attribute",
    "__asm__",
    "asm",
    "__asm",
    "noexcept",
    "alignas",
    "_Alignas",
    "__typeof__",
    "typeof",
    "decltype",
    "_Atomic",
    "__declspec",
    "_Static_assert",
];

/// The tokens without attributes, and what else has parentheses and is no function.
fn without_attributes<'a, 'b>(tokens: &'b [Token<'a>]) -> Vec<&'b Token<'a>> {
    let mut kept = Vec::new();
    let mut at = 0;
    while at < tokens.len() {
        let text = tokens[at].text;
        let has_parentheses = tokens.get(at + 1).is_some_and(|next| next.text == "(");
        if NO_FUNCTIONS.contains(&text) && has_parentheses && text != "_Atomic" {
            at = closing(tokens, at + 1) + 1;
            continue;
        }
        kept.push(&tokens[at]);
        at += 1;
    }
    kept
}

/// The place of the bracket that closes the one at `open`.
fn closing<'a, T: std::borrow::Borrow<Token<'a>>>(tokens: &[T], open: usize) -> usize {
    let mut depth = 0;
    for (at, token) in tokens.iter().enumerate().skip(open) {
        match token.borrow().text {
            "(" | "{" | "[" => depth += 1,
            ")" | "}" | "]" => depth -= 1,
            _ => {}
        }
        if depth == 0 {
            return at;
        }
    }
    tokens.len() - 1
}

/// The type of a parameter.
fn type_of(parameter: &[&Token]) -> String {
    let mut words: Vec<&str> = parameter.iter().map(|token| token.text).collect();
    let mut is_array = false;
    if let Some(open) = words.iter().position(|word| *word == "[") {
        words.truncate(open);
        is_array = true;
    }
    if words.len() > 1 && words.last().is_some_and(|word| word.starts_with(is_word)) {
        words.pop();
    }
    words.retain(|word| {
        !matches!(
            *word,
            "const" | "restrict" | "__restrict" | "__restrict__" | "register"
        )
    });
    if is_array {
        words.push("*");
    }
    words.join(" ").replace(" :: ", "::")
}

/// The function that tokens before a body or a semicolon declare.
fn declared(tokens: &[Token], scope: &str, class: Option<&str>) -> Option<Function> {
    let tokens = without_attributes(tokens);
    let is_name = |at: usize| {
        let text = tokens[at].text;
        text.starts_with(is_word) && !NO_FUNCTIONS.contains(&text) && tokens[at + 1].text == "("
    };
    let at = (0..tokens.len().saturating_sub(1)).find(|at| is_name(*at))?;
    let is_outside = at > 0 && tokens[at - 1].text == "::";
    let is_value = tokens[..at].iter().any(|token| token.text == "=");
    let is_special = at > 0 && matches!(tokens[at - 1].text, "~" | "operator" | "new" | "return");
    if is_outside || is_value || is_special || at == 0 {
        return None;
    }
    let end = closing(&tokens, at + 1);
    let (mut parameters, mut names) = (Vec::new(), Vec::new());
    let mut depth = 0;
    let mut begin = at + 2;
    for i in at + 2..=end {
        match tokens[i].text {
            "(" | "[" | "<" => depth += 1,
            ")" | "]" | ">" if i < end => depth -= 1,
            "," if depth > 0 => {}
            "," | ")" => {
                let parameter = type_of(&tokens[begin..i]);
                if !parameter.is_empty() && parameter != "void" {
                    parameters.push(parameter);
                    let last = tokens[begin..i].last().map_or("", |token| token.text);
                    names.push(last.to_owned());
                }
                begin = i + 1;
            }
            _ => {}
        }
    }
    Some(Function {
        name: tokens[at].text.to_owned(),
        scope: scope.to_owned(),
        class: class.map(str::to_owned),
        parameters,
        names,
        is_own: tokens[at].is_own,
        is_template: false,
    })
}

/// The instances of class templates that a statement names, as `template class spin<int>;` does, or a
/// `using` or `typedef`: the name of each template, and that of the instance.
fn instances(statement: &[Token]) -> Vec<(String, String)> {
    let words: Vec<&str> = statement.iter().map(|token| token.text).collect();
    let is_one = matches!(
        words[..],
        ["template", "class" | "struct", ..] | ["using" | "typedef", ..]
    );
    let opens = words.iter().enumerate().skip(2);
    let opens =
        opens.filter(|(at, word)| is_one && **word == "<" && words[at - 1].starts_with(is_word));
    let named = opens.filter_map(|(at, _)| {
        let mut depth = 0;
        let end = words[at..].iter().position(|word| {
            depth += i32::from(*word == "<") - i32::from(*word == ">");
            depth == 0
        })?;
        let name = words[at - 1];
        let arguments = words[at + 1..at + end].join(" ");
        Some((name.to_owned(), format!("{name}<{arguments}>")))
    });
    named.collect()
}

/// The same functions, with those of class templates once for each instance.
fn instantiated(functions: Vec<Function>, instances: &[(String, String)]) -> Vec<Function> {
    let of = |function: Function| {
        let name = function.class.clone().filter(|_| function.is_template);
        let mut all: Vec<Function> = instances
            .iter()
            .filter(|(template, _)| name.as_ref() == Some(template))
            .map(|(_, instance)| Function {
                class: Some(instance.clone()),
                is_template: false,
                ..function.clone()
            })
            .collect();
        if all.is_empty() {
            all.push(function);
        }
        all
    };
    functions.into_iter().flat_map(of).collect()
}

/// What stands behind the parameters of a template.
fn behind_parameters<'a, 'b>(head: &'b [Token<'a>]) -> &'b [Token<'a>] {
    let mut depth = 0;
    let end = head.iter().position(|token| {
        depth += i32::from(token.text == "<") - i32::from(token.text == ">");
        token.text == ">" && depth == 0
    });
    &head[end.map_or(0, |end| end + 1)..]
}

/// Whether a body is that of a class.
fn is_class(head: &[Token], is_template: bool) -> bool {
    let has = |word: &str| head.iter().any(|token| token.text == word);
    let begins = |token: &Token| matches!(token.text, "class" | "struct");
    let is_one = match is_template {
        true => head.first().is_some_and(begins),
        false => head.iter().any(begins),
    };
    is_one && !has("=") && !has("enum")
}

/// What stands between braces.
enum Scope {
    Namespace(String),
    Class {
        name: String,
        is_template: bool,
    },
    /// It adds nothing to names.
    Same,
}

/// The functions that a preprocessed source defines outside of system headers.
pub(super) fn functions(text: &str, own: &str) -> Vec<Function> {
    let tokens = tokens(text, own);
    let mut found = Vec::new();
    let mut scopes: Vec<Scope> = Vec::new();
    let mut named = Vec::new();
    let mut nested: Vec<(String, String)> = Vec::new();
    let mut begin = 0;
    let mut at = 0;
    while at < tokens.len() {
        let head = &tokens[begin..at];
        let has = |word: &str| head.iter().any(|token| token.text == word);
        let namespaces = scopes.iter().filter_map(|scope| match scope {
            Scope::Namespace(name) => Some(format!("{name}::")),
            _ => None,
        });
        let scope: String = namespaces.collect();
        let class = scopes.iter().rev().find_map(|scope| match scope {
            Scope::Class { name, .. } => Some(name.as_str()),
            _ => None,
        });
        let is_in_template = scopes.iter().any(|scope| {
            matches!(
                scope,
                Scope::Class {
                    is_template: true,
                    ..
                }
            )
        });
        let of_scope = |function| Function {
            is_template: is_in_template,
            ..function
        };
        let is_template = has("template");
        match tokens[at].text {
            ";" => {
                let declared = (class.is_some() && !is_template)
                    .then(|| declared(head, &scope, class))
                    .flatten();
                let is_of_system = is_in_template && tokens[at].is_system;
                found.extend(declared.filter(|_| !is_of_system).map(of_scope));
                named.extend(instances(head));
                begin = at + 1;
            }
            ":" if head.len() == 1
                && matches!(head[0].text, "public" | "private" | "protected") =>
            {
                begin = at + 1;
            }
            "}" => {
                scopes.pop();
                begin = at + 1;
            }
            "(" | "[" => at = closing(&tokens, at),
            "{" => {
                let name_after = |head, words: &[&str]| {
                    let plain = without_attributes(head);
                    let keyword = plain.iter().position(|token| words.contains(&token.text))?;
                    let name = plain[keyword + 1..]
                        .iter()
                        .find(|token| token.text.starts_with(is_word));
                    name.map(|name| name.text.to_owned())
                };
                let rest = if is_template {
                    behind_parameters(head)
                } else {
                    head
                };
                let function = declared(head, &scope, class);
                if has("namespace") {
                    let name = name_after(head, &["namespace"]);
                    scopes.push(name.map_or(Scope::Same, Scope::Namespace));
                } else if has("extern") && has("\"") {
                    scopes.push(Scope::Same);
                } else if let Some(function) = function {
                    if !is_template && !tokens[at].is_system {
                        found.push(of_scope(function));
                    }
                    at = closing(&tokens, at);
                } else if is_class(rest, is_template) {
                    // A structure of C has no methods, so nothing is found in it.
                    let name = name_after(rest, &["class", "struct"]).unwrap_or_default();
                    nested.extend(class.map(|outer| (outer.to_owned(), name.clone())));
                    scopes.push(Scope::Class { name, is_template });
                } else {
                    // An initialiser, an enumeration, or the body of a constructor or of a template.
                    at = closing(&tokens, at) + 1;
                    let goes_on = |next: &Token| matches!(next.text, ";" | "," | "{" | ")");
                    if !tokens.get(at).is_some_and(goes_on) {
                        begin = at;
                    }
                    continue;
                }
                begin = at + 1;
            }
            _ => {}
        }
        at += 1;
    }
    let mut found = instantiated(found, &named);
    found
        .iter_mut()
        .for_each(|function| qualify(function, &nested));
    found
}

/// Gives the types of parameters their full names, where a class is declared in that of the method.
fn qualify(function: &mut Function, nested: &[(String, String)]) {
    let Some(class) = &function.class else {
        return;
    };
    let template = class.split('<').next();
    for parameter in &mut function.parameters {
        let is_it = |(outer, inner): &&(String, String)| {
            Some(&outer[..]) == template && parameter.split(' ').next() == Some(inner)
        };
        if nested.iter().any(|one| is_it(&one)) {
            *parameter = format!("{}{class}::{parameter}", function.scope);
        }
    }
}

/// The parameters of the function that makes an object of memory: the last one is for a semaphore.
const INIT: &str = "void *lock, void *node, unsigned long count";

/// Makes objects of C++: by the constructor with a count if there is one and `0` asks for it, else by that
/// without parameters.
const MAKE_IN_CPP: &str = "template <class T> static T lw_zero() { return T(); }\n\
    template <class T> static auto lw_make(void *to, unsigned long n, int) -> decltype(new T((int)n), void())\n\
    { new (to) T((int)n); }\n\
    template <class T> static void lw_make(void *to, unsigned long, long) { new (to) T(); }\n";

/// The functions of a lock, or of another object.
#[derive(Clone, Debug, Default)]
pub(super) struct Lock {
    functions: BTreeMap<Role, Function>,
    zero_succeeds: Vec<Role>,
    /// An initialiser that is no function.
    initialiser: Option<String>,
    /// The function that makes a node. Such nodes stay those of their threads, which may exchange them.
    node_init: Option<Function>,
}

/// Whether a parameter is the address of something.
fn is_pointer(parameter: &str) -> bool {
    parameter.ends_with(['*', '&'])
}

/// The object that a function is about: its class, or what its first pointer is to.
fn object(function: &Function) -> Option<String> {
    match &function.class {
        Some(class) => Some(format!("{}{class} *", function.scope)),
        None => function.parameters.iter().find(|p| is_pointer(p)).cloned(),
    }
}

impl Lock {
    fn has(&self, role: Role) -> bool {
        self.functions.contains_key(&role)
    }

    fn first(&self, roles: &[Role]) -> Option<Role> {
        roles.iter().copied().find(|role| self.has(*role))
    }

    /// The function that acquires, that tries to, and that releases.
    pub(super) fn acquires(&self) -> Option<Role> {
        match self.kind() {
            Some(Kind::Cond) => self.first(&[Role::Lock]),
            _ => self.first(&[Role::Lock, Role::WriteBegin, Role::Wait]),
        }
    }

    pub(super) fn tries(&self) -> Option<Role> {
        self.first(&[Role::TryLock, Role::TryWait])
    }

    pub(super) fn releases(&self) -> Option<Role> {
        self.first(&[Role::Unlock, Role::WriteEnd, Role::Post])
    }

    /// Whether an option tries the lock.
    pub(super) fn can_be_tried(&self) -> bool {
        self.tries().is_some() || self.has(Role::ReadTryLock)
    }

    /// What the functions make, if nothing is missing.
    pub(super) fn kind(&self) -> Option<Kind> {
        let has = |role| self.has(role);
        let writes =
            has(Role::Lock) && has(Role::Unlock) || has(Role::WriteBegin) && has(Role::WriteEnd);
        let waits_for_cond = self.functions.get(&Role::Wait).is_some_and(|wait| {
            let pointers = wait.parameters.iter().filter(|p| is_pointer(p)).count();
            pointers + usize::from(wait.class.is_some()) > 1
        });
        let wakes = has(Role::Signal) || has(Role::Broadcast);
        if writes && has(Role::ReadBegin) && has(Role::ReadRetry) {
            Some(Kind::Seqlock)
        } else if waits_for_cond && wakes {
            Some(Kind::Cond)
        } else if has(Role::Lock) && has(Role::Unlock) {
            Some(Kind::Lock)
        } else if has(Role::Wait) && has(Role::Post) {
            Some(Kind::Semaphore)
        } else {
            None
        }
    }

    /// Gives the functions of a semaphore with the names of a lock or condition variable their own roles.
    /// `key`: that of the functions.
    fn name_semaphore(&mut self, key: &str) {
        let key = key.to_lowercase();
        let is_semaphore =
            key.contains("sem") && !key.contains("rwsem") && !self.has(Role::ReadLock);
        let mut becomes = |from, to| {
            if let Some(function) = self.functions.remove(&from) {
                self.functions.entry(to).or_insert(function);
            }
        };
        if is_semaphore {
            becomes(Role::Lock, Role::Wait);
            becomes(Role::Unlock, Role::Post);
            becomes(Role::TryLock, Role::TryWait);
        }
        let has = |role| self.functions.contains_key(&role);
        let from = match self.kind() {
            Some(_) => None,
            None if has(Role::Wait) && has(Role::Signal) => Some(Role::Signal),
            None if has(Role::Wait) && has(Role::Unlock) => Some(Role::Unlock),
            None => None,
        };
        if let Some(function) = from.and_then(|role| self.functions.remove(&role)) {
            self.functions.insert(Role::Post, function);
        }
    }

    /// Whether it has a lock between its writers, or else only one writer.
    pub(super) fn has_one_writer(&self) -> bool {
        self.kind() == Some(Kind::Seqlock) && !self.has(Role::Lock)
    }

    fn names(&self) -> String {
        let names = self.functions.iter().map(|(role, function)| {
            let not = if self.zero_succeeds.contains(role) {
                "!"
            } else {
                ""
            };
            format!("{role}={not}{}", function.path())
        });
        names.collect::<Vec<_>>().join(",")
    }

    /// The lock of a source: that of the functions that are named, and of others with the same beginning.
    pub(super) fn find(
        path: &str,
        text: &str,
        functions: &[Function],
        named: &[Named],
    ) -> Result<Self, SourceError> {
        let mut locks: BTreeMap<String, Self> = BTreeMap::new();
        let known = functions.iter().filter(|function| !function.is_template);
        for function in known.clone() {
            let Some((key, role)) = function.key() else {
                continue;
            };
            let lock = locks.entry(key).or_insert_with(|| Self {
                functions: BTreeMap::new(),
                ..Self::default()
            });
            lock.functions
                .entry(role)
                .or_insert_with(|| function.clone());
        }
        for (key, lock) in &mut locks {
            lock.name_semaphore(key);
        }
        let mutexes: Vec<Self> = locks
            .values()
            .filter(|lock| lock.has(Role::Lock) && lock.has(Role::Unlock))
            .cloned()
            .collect();
        let mut given = BTreeMap::new();
        let mut initialiser = None;
        for name in named {
            let is_it =
                |function: &&Function| function.path() == name.name || function.name == name.name;
            match known.clone().find(is_it) {
                Some(function) => {
                    given.insert(name.role, function.clone());
                }
                None if name.role == Role::Init && text.contains(&name.name) => {
                    initialiser = Some(name.name.clone());
                }
                None => {
                    let known: Vec<String> = functions
                        .iter()
                        .filter(|function| function.is_own)
                        .map(Function::path)
                        .collect();
                    return Err(SourceError::NoFunction {
                        path: path.to_owned(),
                        name: name.name.clone(),
                        known: known.join(", "),
                    });
                }
            }
        }
        let of_given = given
            .values()
            .find_map(|function| function.key().map(|(key, _)| key));
        let mut found: Vec<Self> = match of_given {
            Some(key) => locks.remove(&key).into_iter().collect(),
            None => {
                // A lock beside another object is a part of it. A file may wait for something, and wake it,
                // without a condition variable.
                let of = |(key, lock): &(String, Self)| {
                    let wait = lock.functions.get(&Role::Wait);
                    let kind = lock.kind();
                    let of_wait = wait.and_then(object).unwrap_or_default().to_lowercase() + key;
                    let is_named = ["cond", "cv"].iter().any(|word| of_wait.contains(word));
                    kind.filter(|kind| *kind != Kind::Cond || is_named)
                };
                let kind = locks.clone().into_iter().filter_map(|lock| of(&lock)).max();
                let complete = locks
                    .into_iter()
                    .filter(|lock| kind.is_some() && of(lock) == kind);
                let is_own = |(_, lock): &(String, Self)| lock.functions.values().any(|f| f.is_own);
                let (own, others): (Vec<_>, Vec<_>) = complete.partition(is_own);
                let all = if own.is_empty() { others } else { own };
                // Functions around those of a lock have longer names.
                let begin = |key: &str| key.rsplit(':').next().unwrap_or_default().to_owned();
                let ends: Vec<String> = all.iter().map(|(key, _)| begin(key)).collect();
                let is_within = |key: &str| ends.iter().all(|end| end.ends_with(&begin(key)));
                match all
                    .iter()
                    .position(|(key, _)| !begin(key).is_empty() && is_within(key))
                {
                    Some(inner) => all
                        .into_iter()
                        .nth(inner)
                        .map(|(_, lock)| lock)
                        .into_iter()
                        .collect(),
                    None => all.into_iter().map(|(_, lock)| lock).collect(),
                }
            }
        };
        if found.len() > 1 {
            let locks: Vec<String> = found
                .iter()
                .filter_map(|lock| {
                    let role = match lock.kind() {
                        Some(Kind::Cond) => Some(Role::Wait),
                        _ => lock.acquires(),
                    }?;
                    Some(format!(
                        "--functions {role}={}",
                        lock.functions[&role].path()
                    ))
                })
                .collect();
            return Err(SourceError::TwoLocks {
                path: path.to_owned(),
                locks: locks.join(" or "),
            });
        }
        let mut lock = found.pop().unwrap_or_default();
        lock.functions.extend(given);
        lock.release_readers(path)?;
        lock.add_mutex(path, &mutexes)?;
        let is_part = |role: Role| lock.kind().is_none_or(|kind| kind.roles().contains(&role));
        if let (Some(kind), Some(other)) =
            (lock.kind(), named.iter().find(|name| !is_part(name.role)))
        {
            return Err(SourceError::OtherRole {
                path: path.to_owned(),
                named: other.to_string(),
                kind,
            });
        }
        let kept = lock
            .functions
            .clone()
            .into_iter()
            .filter(|(role, _)| is_part(*role));
        lock.functions = kept.collect();
        if lock.has(Role::Lock) && lock.has(Role::Unlock) {
            lock.functions
                .retain(|role, _| !matches!(role, Role::WriteBegin | Role::WriteEnd));
        }
        let zero_succeeds = named.iter().filter(|name| name.zero_succeeds);
        lock.zero_succeeds = zero_succeeds.map(|name| name.role).collect();
        lock.initialiser = initialiser;
        let is_in_template = |function: &Function| {
            let acquires = matches!(
                function.key(),
                Some((_, Role::Lock | Role::Wait | Role::WriteBegin))
            );
            function.is_template && acquires
        };
        match lock.kind().is_some() {
            true => {
                let (_, node) = lock.types();
                let makes_node = |function: &&Function| {
                    function.class.is_none()
                        && function.name.contains("init")
                        && function.parameters.len() == 1
                        && function.parameters.first() == node.as_ref()
                };
                lock.node_init = functions.iter().find(makes_node).cloned();
                Ok(lock)
            }
            false if lock.functions.is_empty() && functions.iter().any(is_in_template) => {
                let template = functions.iter().find(|function| is_in_template(function));
                Err(SourceError::Template {
                    path: path.to_owned(),
                    class: template.and_then(|f| f.class.clone()).unwrap_or_default(),
                })
            }
            false => Err(SourceError::NoLock {
                path: path.to_owned(),
                has: match lock.functions.is_empty() {
                    true => String::new(),
                    false => format!(" (found: {})", lock.names()),
                },
            }),
        }
    }

    /// Readers are released by the function that releases a writer if none has the name of one of theirs, as in
    /// POSIX.
    fn release_readers(&mut self, path: &str) -> Result<(), SourceError> {
        if !self.has(Role::ReadLock) || self.has(Role::ReadUnlock) {
            return Ok(());
        }
        let unlock = self.functions.get(&Role::Unlock);
        let is_of_both = |unlock: &&Function| !unlock.name.to_lowercase().contains("wr");
        let Some(unlock) = unlock.filter(is_of_both).cloned() else {
            return Err(SourceError::NoReadUnlock {
                path: path.to_owned(),
                function: self.functions[&Role::ReadLock].path(),
            });
        };
        self.functions.insert(Role::ReadUnlock, unlock);
        Ok(())
    }

    /// The names of the functions that make it.
    pub(super) fn makers(&self) -> Vec<String> {
        let made = [Role::Init, Role::CondInit];
        let made = made.iter().filter_map(|role| self.functions.get(role));
        made.map(|function| function.name.clone()).collect()
    }

    /// Whether its function, or its constructor, is told the number of tokens.
    pub(super) fn is_told_tokens(&self) -> bool {
        match self.functions.get(&Role::Init) {
            Some(init) => init
                .parameters
                .iter()
                .any(|parameter| !is_pointer(parameter)),
            None => self.initialiser.is_none(),
        }
    }

    /// Whether nothing gives a semaphore its tokens.
    pub(super) fn lacks_tokens(&self) -> bool {
        self.kind() == Some(Kind::Semaphore) && self.begins_with_zeros()
    }

    /// Adds the mutex of a condition variable: that of the type with which its wait function is called.
    fn add_mutex(&mut self, path: &str, mutexes: &[Self]) -> Result<(), SourceError> {
        if self.kind() != Some(Kind::Cond) {
            return Ok(());
        }
        if let Some(init) = self.functions.remove(&Role::Init) {
            self.functions.entry(Role::CondInit).or_insert(init);
        }
        if self.has(Role::Lock) && self.has(Role::Unlock) {
            return Ok(());
        }
        let wait = &self.functions[&Role::Wait];
        let mut pointers = wait.parameters.iter().filter(|p| is_pointer(p));
        let of_wait = pointers.nth(usize::from(wait.class.is_none())).cloned();
        let as_pointer = |text: &str| text.replace('&', "*");
        let known = of_wait.as_deref().map(as_pointer);
        let is_it = |mutex: &&Self| {
            let of = object(&mutex.functions[&Role::Lock]);
            of.as_deref().map(as_pointer) == known
        };
        let Some(mutex) = mutexes.iter().find(is_it) else {
            return Err(SourceError::NoMutex {
                path: path.to_owned(),
                function: wait.path(),
                parameter: of_wait.unwrap_or_default(),
            });
        };
        for role in [Role::Lock, Role::Unlock, Role::Init] {
            if let Some(function) = mutex.functions.get(&role) {
                self.functions.entry(role).or_insert(function.clone());
            }
        }
        Ok(())
    }

    /// The functions in words.
    pub(super) fn summary(&self) -> String {
        let begins = match self.begins_with_zeros() {
            true => "; it begins as zeros",
            false => "",
        };
        let what = match self.kind() {
            None | Some(Kind::Lock) => String::new(),
            Some(kind) => format!("of a {kind}, "),
        };
        format!("{what}{}{begins}", self.names().replace(',', ", "))
    }

    fn begins_with_zeros(&self) -> bool {
        let is_object = |function: &Function| function.class.is_some();
        self.initialiser.is_none()
            && !self.has(Role::Init)
            && !self.has(Role::CondInit)
            && !self.functions.values().any(is_object)
    }

    /// The type of the lock and of the node that a function gets, with `*` or `&`; for a method, of the
    /// object.
    fn types(&self) -> (Option<String>, Option<String>) {
        let lock = &self.functions[&self.acquires().expect("it is complete")];
        let mut pointers = lock.parameters.iter().filter(|p| is_pointer(p)).cloned();
        match &lock.class {
            Some(class) => (Some(format!("{}{class} *", lock.scope)), pointers.next()),
            None => (pointers.next(), pointers.next()),
        }
    }

    /// The type of a condition variable, likewise.
    fn cond(&self) -> Option<String> {
        let is_cond = self.kind() == Some(Kind::Cond);
        is_cond
            .then(|| object(&self.functions[&Role::Wait]))
            .flatten()
    }

    /// Whether a function is about the condition variable, and not about its mutex.
    fn is_of_cond(&self, role: Role) -> bool {
        use Role::{Broadcast, CondInit, Signal, Wait};
        self.kind() == Some(Kind::Cond) && matches!(role, Wait | Signal | Broadcast | CondInit)
    }

    /// The C text that calls a function. `zero`: what gives a value without bits of a type.
    fn call(
        &self,
        path: &str,
        role: Role,
        zero: impl Fn(&str) -> String,
    ) -> Result<String, SourceError> {
        let function = &self.functions[&role];
        let ((lock, node), cond) = (self.types(), self.cond());
        let is_of_cond = self.is_of_cond(role);
        let mut lock_is_given = function.class.is_some() && !is_of_cond;
        let mut cond_is_given = function.class.is_some() || !is_of_cond;
        let initialises = matches!(role, Role::Init | Role::CondInit);
        let count = match initialises && self.kind() == Some(Kind::Semaphore) {
            true => function.count(path)?,
            false => None,
        };
        let mut arguments = Vec::new();
        for (i, parameter) in function.parameters.iter().enumerate() {
            let is = |known: &Option<String>| known.as_ref() == Some(parameter);
            let what = if is(&cond) && !cond_is_given {
                cond_is_given = true;
                "cond"
            } else if is(&lock) && !lock_is_given {
                lock_is_given = true;
                "lock"
            } else if initialises {
                if parameter.ends_with(['&', ')']) {
                    return Err(SourceError::Argument {
                        path: path.to_owned(),
                        function: function.path(),
                        parameter: parameter.clone(),
                    });
                }
                arguments.push(match self.kind() {
                    Some(Kind::Semaphore) if count == Some(i) => format!("({parameter})count"),
                    _ => zero(parameter),
                });
                continue;
            } else if is(&node) || (is(&lock) && node.is_none()) {
                "node"
            } else if is_pointer(parameter) {
                return Err(SourceError::Parameter {
                    path: path.to_owned(),
                    function: function.path(),
                    parameter: parameter.clone(),
                    known: [lock, node]
                        .into_iter()
                        .flatten()
                        .collect::<Vec<_>>()
                        .join(", "),
                });
            } else {
                match role {
                    Role::ReadRetry => "sequence",
                    Role::Wait | Role::TryWait | Role::Post => "1",
                    _ => "lw_check_thread_number()",
                }
            };
            arguments.push(match (what, parameter.strip_suffix('&')) {
                ("lock" | "node" | "cond", Some(object)) => format!("*({object} *){what}"),
                ("lock" | "node" | "cond", None) => format!("({parameter}){what}"),
                _ => what.to_owned(),
            });
        }
        let arguments = arguments.join(", ");
        let on = if is_of_cond { "cond" } else { "lock" };
        Ok(match &function.class {
            Some(class) => format!(
                "(({}{class} *){on})->{}({arguments})",
                function.scope, function.name
            ),
            None => format!("{}({arguments})", function.path()),
        })
    }

    /// The text behind the source, by which the lock is used.
    pub(super) fn glue(&self, path: &str, is_cpp: bool) -> Result<String, SourceError> {
        let mut text = String::new();
        let (boolean, linkage) = match is_cpp {
            true => ("bool", "extern \"C\" "),
            false => ("_Bool", ""),
        };
        let _ = writeln!(
            text,
            "{linkage}void lw_check_flush(void);\n{linkage}unsigned int lw_check_thread_number(void);\n\
             {linkage}void *lw_check_lent_node(unsigned int i);"
        );
        let object = |of: &Option<String>| {
            let of = of.as_deref()?.strip_suffix(['*', '&'])?;
            Some(of.trim_end().to_owned())
        };
        let (lock, node) = self.types();
        let (lock, node, cond) = (object(&lock), object(&node), object(&self.cond()));
        let zero = |parameter: &str| match is_cpp {
            true => format!("lw_zero<{parameter}>()"),
            false => format!("({parameter}){{0}}"),
        };
        if is_cpp {
            text.push_str(MAKE_IN_CPP);
        }
        let mut own_node = "";
        if let (Some(init), Some(node)) = (&self.node_init, &node) {
            let local = if is_cpp {
                "thread_local"
            } else {
                "_Thread_local"
            };
            let _ = writeln!(
                text,
                "static {local} {node} lw_nodes[{LENT}];\nstatic {local} {boolean} lw_made[{LENT}];\n\
                 static void *lw_own(void *node)\n\
                 {{ unsigned long i = (unsigned long)node / {LENT_STRIDE} % {LENT};\n\
                 if (!lw_made[i]) {{ lw_made[i] = 1; (void)({}(&lw_nodes[i])); }}\n\
                 return &lw_nodes[i]; }}",
                init.path()
            );
            own_node = "node = lw_own(node); ";
        }
        for (role, function) in &self.functions {
            let call = self.call(path, *role, zero);
            let (result, body) = match role {
                Role::TryLock | Role::TryWait | Role::ReadTryLock | Role::ReadRetry => {
                    let not = if self.zero_succeeds.contains(role) {
                        "!"
                    } else {
                        "!!"
                    };
                    let call = call?;
                    (
                        boolean,
                        format!(
                            "{boolean} lw_done = {not}({call}); lw_check_flush(); return lw_done;"
                        ),
                    )
                }
                Role::Init | Role::CondInit => {
                    // That of something else.
                    let of = match role {
                        Role::Init => self.types().0,
                        _ => self.cond(),
                    };
                    let first = function.parameters.iter().find(|p| is_pointer(p));
                    if function.class.is_some() || first != of.as_ref() {
                        continue;
                    }
                    ("void", format!("(void)({});", call?))
                }
                Role::ReadBegin => (
                    "unsigned long",
                    format!(
                        "unsigned long lw_done = (unsigned long)({}); lw_check_flush(); return lw_done;",
                        call?
                    ),
                ),
                _ => ("void", format!("(void)({}); lw_check_flush();", call?)),
            };
            let (parameters, own) = match role {
                Role::ReadLock | Role::ReadTryLock | Role::ReadUnlock | Role::ReadBegin => {
                    ("void *lock", "void *node = lw_check_lent_node(0); ")
                }
                Role::ReadRetry => (
                    "void *lock, unsigned long sequence",
                    "void *node = lw_check_lent_node(0); (void)sequence; ",
                ),
                Role::Init => (INIT, "(void)count; "),
                Role::CondInit => ("void *cond", "void *lock = 0, *node = 0; "),
                role if self.is_of_cond(*role) => ("void *lock, void *node, void *cond", own_node),
                _ => ("void *lock, void *node", own_node),
            };
            let _ = writeln!(
                text,
                "{linkage}{result} lw_source_{role}({parameters});\n\
                 {linkage}{result} lw_source_{role}({parameters})\n\
                 {{ {own}(void)lock; (void)node; {body} }}"
            );
        }
        let own_init = match (&self.initialiser, &lock) {
            (Some(initialiser), Some(lock)) => Some(format!(
                "static {lock} lw_new = {initialiser}; *({lock} *)lock = lw_new;"
            )),
            (None, Some(lock)) if is_cpp && !self.has(Role::Init) => {
                let counts = self.kind() == Some(Kind::Semaphore);
                let nothing = if counts { "0" } else { "0l" };
                Some(format!("lw_make<{lock}>(lock, count, {nothing});"))
            }
            _ => None,
        };
        if let Some(body) = own_init {
            let _ = writeln!(
                text,
                "{linkage}void lw_source_init({INIT});\n\
                 {linkage}void lw_source_init({INIT}) {{ (void)node; (void)count; {body} }}"
            );
        }
        if let Some(cond) = cond
            .as_ref()
            .filter(|_| is_cpp && !self.has(Role::CondInit))
        {
            let _ = writeln!(
                text,
                "extern \"C\" void lw_source_cond_init(void *cond) {{ lw_make<{cond}>(cond, 0, 0l); }}"
            );
        }
        let size = |of: Option<String>, none: u32| match of {
            Some(of) => format!("sizeof({of})"),
            None => none.to_string(),
        };
        let _ = writeln!(
            text,
            "{linkage}const unsigned long lw_source_sizes[3];\n\
             {linkage}const unsigned long lw_source_sizes[3] = {{ {}, {}, {} }};",
            size(lock, 4),
            size(node, 0),
            size(cond, 0)
        );
        Ok(text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn paths(text: &str) -> Vec<String> {
        let functions = functions(&format!("# 1 \"own.c\"\n{text}"), "own.c");
        functions
            .iter()
            .map(|function| format!("{}({})", function.path(), function.parameters.join(", ")))
            .collect()
    }

    #[test]
    fn functions_are_found_in_c_and_in_cpp() {
        let c = "struct lock { int a; } __attribute__((aligned(8)));\n\
                 static inline __attribute__((always_inline)) void lock_it(struct lock *const l, int n) { if (n) { } }\n\
                 int prototype(void);\nint x[] = { 1, 2 };\n_Bool t(unsigned v[2]) { return f(v); }\n";
        assert_eq!(paths(c), ["lock_it(struct lock *, int)", "t(unsigned *)"]);
        let cpp = "namespace a { template <class T> class no { void lock() {} };\n\
                   class spin final { std::atomic<bool> held{false}; public: spin() : held{false} {}\n\
                   void lock() noexcept { while (held.exchange(true)) ; } void unlock(); }; \n\
                   void spin::unlock() { } } extern \"C\" { void f(a::spin &s) { s.lock(); } }";
        // Those of a template are no functions before there is an instance.
        let paths_of = |text: &str| {
            let all = functions(&format!("# 1 \"own.c\"\n{text}"), "own.c");
            let all = all.into_iter().filter(|function| !function.is_template);
            all.map(|function| function.path()).collect::<Vec<_>>()
        };
        assert_eq!(paths_of(cpp), ["a::spin::lock", "a::spin::unlock", "f"]);
        let template = "template <class T, int n = 2> class spin : public base<T> { template <class U> void no() {}
                        bool operator==(T t) { return true; } public: spin() {} void lock() {} void unlock(); };";
        assert_eq!(paths_of(template), [""; 0]);
        for instance in ["template class spin<int, 3>;", "using own = spin<int, 3>;"] {
            let found = paths_of(&format!("{template} {instance}"));
            assert_eq!(found, ["spin<int , 3>::lock", "spin<int , 3>::unlock"]);
        }
    }

    fn found(text: &str, named: &[&str]) -> Result<String, String> {
        let functions = functions(&format!("# 1 \"own.c\"\n{text}"), "own.c");
        let named: Vec<Named> = named.iter().map(|name| name.parse().unwrap()).collect();
        let lock = Lock::find("own.c", text, &functions, &named);
        lock.map(|lock| lock.names())
            .map_err(|error| error.to_string())
    }

    #[test]
    fn the_lock_is_that_of_a_pair_of_functions() {
        let one = "void my_lock(int *l) {} void my_unlock(int *l) {} int my_trylock(int *l) { return 1; }";
        assert_eq!(
            found(one, &[]).unwrap(),
            "lock=my_lock,trylock=my_trylock,unlock=my_unlock"
        );
        let two = format!("{one} void o_acquire(int *l) {{}} void o_release(int *l) {{}}");
        let error = found(&two, &[]).unwrap_err();
        assert!(
            error.contains("--functions lock=my_lock or --functions lock=o_acquire"),
            "{error}"
        );
        assert_eq!(
            found(&two, &["lock=o_acquire"]).unwrap(),
            "lock=o_acquire,unlock=o_release"
        );
        let error = found(one, &["lock=none"]).unwrap_err();
        assert!(
            error.contains("no function 'none'") && error.contains("my_trylock"),
            "{error}"
        );
        let error = found("void deadlock(void) {}", &[]).unwrap_err();
        assert!(error.contains("no lock"), "{error}");
        let both = "void rw_read_lock(int *l) {} void rw_read_unlock(int *l) {} void rw_write_lock(int *l) {} void rw_write_unlock(int *l) {}";
        let roles = "lock=rw_write_lock,unlock=rw_write_unlock,read_lock=rw_read_lock,read_unlock=rw_read_unlock";
        assert_eq!(found(both, &[]).unwrap(), roles);
    }
}
