//! The places of calls in a source: file, line, function and operand.

use std::collections::HashMap;
use std::ffi::{CStr, CString};
use std::fs;
use std::path::{Path, PathBuf};

use addr2line::Loader;

/// The place of an operation, as constants.
pub(super) struct Place {
    pub(super) file: &'static CStr,
    pub(super) function: &'static CStr,
    pub(super) operand: &'static CStr,
    pub(super) line: u32,
}

/// The debugging information of a library that a source was compiled to.
pub(super) struct Places<'a> {
    loader: Option<Loader>,
    /// The file that the user gave, and the directory with files of ours, in which nobody looks.
    given: &'a Path,
    ours: &'a Path,
    lines: HashMap<PathBuf, Vec<String>>,
}

fn constant(text: &str) -> &'static CStr {
    let text = CString::new(text.replace('\0', "")).expect("zeros are removed");
    Box::leak(text.into_boxed_c_str())
}

impl<'a> Places<'a> {
    pub(super) fn new(library: &Path, given: &'a Path, ours: &'a Path) -> Self {
        Self {
            given,
            loader: Loader::new(library).ok(),
            ours,
            lines: HashMap::new(),
        }
    }

    /// The place of the call behind which an address is. Of functions that are inlined, the innermost that
    /// is in the file that was given, or else in another one of the user's.
    pub(super) fn of(&mut self, address: u64) -> Place {
        let mut frames = Vec::new();
        if let Some(found) = self
            .loader
            .as_ref()
            .and_then(|l| l.find_frames(address - 1).ok())
        {
            let mut found = found;
            while let Ok(Some(frame)) = found.next() {
                let function = frame
                    .function
                    .and_then(|name| Some(name.demangle().ok()?.into_owned()));
                let location = frame.location;
                let file = location
                    .as_ref()
                    .and_then(|l| l.file)
                    .unwrap_or_default()
                    .to_owned();
                let line = location.as_ref().and_then(|l| l.line).unwrap_or(0);
                let column = location.as_ref().and_then(|l| l.column).unwrap_or(0);
                frames.push((file, line, column, function.unwrap_or_default()));
            }
        }
        let is_own = |file: &str| {
            !file.is_empty()
                && !file.starts_with("/usr/")
                && !Path::new(file).starts_with(self.ours)
        };
        let given = frames
            .iter()
            .find(|(file, ..)| Path::new(file) == self.given);
        let own = given.or_else(|| frames.iter().find(|(file, ..)| is_own(file)));
        let Some((file, line, column, function)) = own.or(frames.first()) else {
            let none = constant("?");
            return Place {
                file: none,
                function: none,
                operand: constant(""),
                line: 0,
            };
        };
        let function = function.split(['(', '<']).next().unwrap_or_default();
        Place {
            file: constant(file),
            function: constant(function),
            operand: constant(&self.operand(Path::new(file), *line, *column)),
            line: *line,
        }
    }

    /// The operand of the call at a line and column, as the source has it: the first argument, the object of a
    /// method, or the left of an assignment. Else nothing.
    fn operand(&mut self, file: &Path, line: u32, column: u32) -> String {
        let lines = self.lines.entry(file.to_owned()).or_insert_with(|| {
            let text = fs::read_to_string(file).unwrap_or_default();
            text.lines().map(str::to_owned).collect()
        });
        let text = (line as usize)
            .checked_sub(1)
            .and_then(|line| lines.get(line));
        operand(text.map_or("", String::as_str), column as usize)
    }
}

fn operand(line: &str, column: usize) -> String {
    let is_name = |c: char| c.is_ascii_alphanumeric() || "_->.*[]:".contains(c);
    let Some(rest) = column.checked_sub(1).and_then(|at| line.get(at..)) else {
        return String::new();
    };
    let before = &line[..line.len() - rest.len()];
    // The column of a method is that of its name, or of the parenthesis; that of a member, of its operator.
    if rest.starts_with(|c: char| "=+-|&^".contains(c)) {
        // The left of an assignment.
        let left = before.trim_end();
        let begin = left.rfind(|c| !is_name(c)).map_or(0, |at| at + 1);
        return left[begin..].to_owned();
    }
    let begin = before.rfind(|c| !is_name(c)).map_or(0, |at| at + 1);
    let object = &before[begin..];
    let end = rest.find(|c| !is_name(c)).unwrap_or(rest.len());
    let (name, tail) = rest.split_at(end);
    let whole = format!("{object}{name}");
    let found = match tail.trim_start().strip_prefix('(') {
        Some(arguments) if !whole.contains("->") && !whole.contains('.') => {
            let number = usize::from(whole == "syscall");
            let argument = arguments.split([',', ')']).nth(number).unwrap_or_default();
            // The argument of a call in it.
            argument.rsplit('(').next().unwrap_or_default().to_owned()
        }
        Some(_) => {
            let end = whole
                .rfind("->")
                .max(whole.rfind('.'))
                .unwrap_or(whole.len());
            whole[..end].to_owned()
        }
        None => whole,
    };
    found.trim().trim_start_matches('&').to_owned()
}

#[cfg(test)]
mod tests {
    use super::operand;

    #[test]
    fn the_operand_is_taken_from_the_source() {
        let at = |line: &str, word: &str| operand(line, line.find(word).unwrap() + 1);
        assert_eq!(
            at("	while (atomic_load(&l->held, 1))", "atomic_load"),
            "l->held"
        );
        assert_eq!(at("	if (fas(cast(&l->held), 1))", "fas"), "l->held");
        assert_eq!(at("	l->owner = me;", "owner"), "l->owner");
        assert_eq!(at("	held.store(false, order);", "store"), "held");
        assert_eq!(at("	lock->held.store(false);", "store"), "lock->held");
        assert_eq!(at("	n->next = NULL;", "= NULL"), "n->next");
        assert_eq!(at("	syscall(SYS_futex, &l->v, 0);", "syscall"), "l->v");
        assert_eq!(operand("", 3), "");
    }
}
