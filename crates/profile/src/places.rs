//! Places in code: the function and line of an address.

use std::borrow::Cow;
use std::collections::HashMap;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use addr2line::Loader;
use itertools::Itertools;
use object::{Object, ObjectSegment, ObjectSymbol, ReadCache, SymbolKind};
use serde::{Deserialize, Serialize};

use crate::record::{Module, Record, open_regular};

/// A place in the code.
#[derive(Clone, Debug, Default, Deserialize, Serialize, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Place {
    /// The function. None: there are no symbols.
    pub function: Option<String>,
    /// The file and line. None: there is no debug information.
    pub line: Option<String>,
    /// The executable or library. None: the code is in no file.
    pub module: Option<PathBuf>,
    /// The offset in that file, or the address in memory.
    pub offset: u64,
    /// The functions that the function is inlined into, from inside to outside.
    pub inlined_into: Vec<Frame>,
    /// The callers of these functions, from inside to outside, as many as were asked for.
    pub callers: Vec<Frame>,
}

/// A function, and the file and line of a call in it.
#[derive(Clone, Debug, Default, Deserialize, Serialize, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Frame {
    /// The function. None: there are no symbols.
    pub function: Option<String>,
    /// The file and line. None: there is no debug information.
    pub line: Option<String>,
}

impl Place {
    /// The place and the functions that it is inlined into.
    pub fn full_name(&self) -> String {
        self.name_with(self.inlined_into.len())
    }

    /// The place and at most so many of its callers, in which it may be inlined.
    pub fn name_with(&self, depth: usize) -> String {
        let callers = self.all_callers().take(depth).map(Frame::name);
        std::iter::once(self.name()).chain(callers).join(" in ")
    }

    /// The functions that it is inlined into, and their callers.
    pub fn all_callers(&self) -> impl Iterator<Item = &Frame> {
        self.inlined_into.iter().chain(&self.callers)
    }

    /// The function itself, without its callers.
    pub fn frame(&self) -> Frame {
        let place = self.function.is_none().then(|| self.name());
        Frame {
            function: self.function.clone().or(place),
            line: self.line.clone(),
        }
    }

    /// The place of the frame with this number, from inside to outside, in its callers that are inlined.
    pub fn outer(mut self, nth: usize) -> Self {
        if let Some(at) = nth.checked_sub(1) {
            let outer = self.inlined_into.split_off(at + 1);
            let Frame { function, line } = self.inlined_into.swap_remove(at);
            self = Self {
                function,
                line,
                inlined_into: outer,
                ..self
            };
        }
        self
    }

    /// The place as tables name it.
    pub fn name(&self) -> String {
        let module = self.module.as_deref().and_then(Path::file_name);
        let module = module.map_or("?".into(), |name| name.to_string_lossy());
        let function = self.function.as_deref().map(shortened);
        match (&function, &self.line) {
            (Some(function), Some(line)) => format!("{function} {line}"),
            (Some(function), None) => format!("{function} ({module}+{:#x})", self.offset),
            (None, _) => format!("{module}+{:#x}", self.offset),
        }
    }
}

/// The longest name of a function in tables. Templates of C++ have names of many thousand characters.
const LONGEST: usize = 160;

/// A name of a function, without its middle if it is long.
pub fn shortened(name: &str) -> Cow<'_, str> {
    let length = name.chars().count();
    if length <= LONGEST {
        return name.into();
    }
    let part = (LONGEST - 1) / 2;
    let begin: String = name.chars().take(part).collect();
    let end: String = name.chars().skip(length - part).collect();
    format!("{begin}…{end}").into()
}

impl Frame {
    /// The function and the line.
    pub fn name(&self) -> String {
        let function = self.function.as_deref().map(shortened);
        [function, self.line.as_deref().map(Into::into)]
            .into_iter()
            .flatten()
            .join(" ")
    }
}

/// The symbols of all executables and libraries that were looked up so far.
#[derive(Default)]
pub struct Places {
    modules: HashMap<PathBuf, Option<Symbols>>,
    /// The places of locks' calls in processes. None: there are several.
    agreed: HashMap<(u64, u64), Option<Place>>,
}

struct Symbols {
    loader: Loader,
    /// The address, the size and the name of each variable, in the order of addresses.
    variables: Vec<(u64, u64, String)>,
    /// The offset in the file, the length and the address of each segment.
    segments: Vec<(u64, u64, u64)>,
}

impl Places {
    /// The place at an address in a process.
    pub fn of(&mut self, record: &Record, address: u64) -> Place {
        match record.module(address) {
            Some((module, offset)) => self.find(module, offset),
            None => Place {
                offset: address,
                ..Place::default()
            },
        }
    }

    /// The place of a lock's call: that of the function which locks and unlocks it, if all stacks that are
    /// known agree.
    pub fn of_lock(&mut self, record: &Record, call: u64) -> Place {
        match self.agreed.get(&(record.pid, call)) {
            Some(Some(place)) => place.clone(),
            _ => self.of(record, call),
        }
    }

    /// Notes the place of the function which locks and unlocks a lock with this call.
    pub fn note(&mut self, record: &Record, call: u64, place: &Place) {
        let known = self.agreed.entry((record.pid, call));
        let known = known.or_insert_with(|| Some(place.clone()));
        if known.as_ref().is_some_and(|known| known != place) {
            *known = None;
        }
    }

    /// The place of a call as tables name it. Without a call it is not known.
    pub fn name(&mut self, record: &Record, call: Option<u64>) -> String {
        call.map_or("?".to_owned(), |call| self.of_lock(record, call).name())
    }

    /// A lock as tables name it: its variable, or its address.
    pub fn lock(&mut self, record: &Record, address: u64) -> String {
        let variable = self.variable(record, address);
        variable.unwrap_or_else(|| format!("{address:#x}"))
    }

    /// The static variable that an address in a process belongs to. None: it is on the heap or a
    /// stack, or has no symbol.
    pub fn variable(&mut self, record: &Record, address: u64) -> Option<String> {
        let (_, _, name) = self.find_variable(record, address)?;
        Some(name)
    }

    /// The file of the static variable that an address in a process belongs to, and the address there.
    pub fn variable_in_file(&mut self, record: &Record, address: u64) -> Option<(PathBuf, u64)> {
        let (module, address, _) = self.find_variable(record, address)?;
        Some((module.path.clone(), address))
    }

    fn find_variable<'r>(
        &mut self,
        record: &'r Record,
        address: u64,
    ) -> Option<(&'r Module, u64, String)> {
        record.modules.iter().find_map(|module| {
            let (start, offset) = module.start();
            let symbols = self.symbols(module)?;
            let begin = start.wrapping_sub(symbols.address(offset)?);
            let address = address.checked_sub(begin)?;
            Some((module, address, symbols.variable(address)?))
        })
    }

    /// The file of the code at an address in a process, and the address there.
    pub fn code_in_file(&mut self, record: &Record, address: u64) -> Option<(PathBuf, u64)> {
        let (module, offset) = record.module(address)?;
        let address = self.symbols(module)?.address(offset)?;
        Some((module.path.clone(), address))
    }

    fn symbols(&mut self, module: &Module) -> Option<&Symbols> {
        let symbols = self.modules.entry(module.path.clone());
        symbols.or_insert_with(|| Symbols::read(module)).as_ref()
    }

    /// The place at an offset in a file.
    fn find(&mut self, module: &Module, offset: u64) -> Place {
        let mut frames = self
            .symbols(module)
            .and_then(|symbols| symbols.find(offset))
            .unwrap_or_default()
            .into_iter();
        let Frame { function, line } = frames.next().unwrap_or_default();
        Place {
            function,
            line,
            module: Some(module.path.clone()),
            offset,
            inlined_into: frames.collect(),
            callers: Vec::new(),
        }
    }
}

/// The directory where packages install the symbols of executables and libraries.
const DEBUG: &str = "/usr/lib/debug";

/// The file with the symbols that `file` at `path` has been stripped of. None: there is none.
fn stripped_symbols<'a>(path: &Path, file: &impl Object<'a>) -> Option<PathBuf> {
    let directory = path.parent()?;
    let by_identity = || {
        let identity = file.build_id().ok()??;
        let digits: String = identity.iter().map(|byte| format!("{byte:02x}")).collect();
        let (first, rest) = digits.split_at_checked(2)?;
        Some(Path::new(DEBUG).join(format!(".build-id/{first}/{rest}.debug")))
    };
    let by_name = || {
        let (name, _) = file.gnu_debuglink().ok()??;
        Some(Path::new(OsStr::from_bytes(name)).file_name()?.to_owned())
    };
    let named = by_name().into_iter().flat_map(|name| {
        let below = directory.strip_prefix("/").unwrap_or(directory);
        let places = [
            directory.into(),
            directory.join(".debug"),
            Path::new(DEBUG).join(below),
        ];
        places.map(|place: PathBuf| place.join(&name))
    });
    let mut candidates = by_identity().into_iter().chain(named);
    candidates.find(|candidate| candidate != path && candidate.is_file())
}

/// The variables that have symbols, in the order of their addresses.
fn variables<'a>(file: &impl Object<'a>) -> Vec<(u64, u64, String)> {
    let symbols = file.symbols().chain(file.dynamic_symbols());
    let variables = symbols.filter(|symbol| symbol.kind() == SymbolKind::Data && symbol.size() > 0);
    let mut variables: Vec<_> = variables
        .filter_map(|symbol| {
            Some((
                symbol.address(),
                symbol.size(),
                demangled(symbol.name().ok()?),
            ))
        })
        .collect();
    variables.sort_unstable();
    variables
}

impl Symbols {
    /// Reads the symbols of a file. None: the file is gone, or has no symbols.
    fn read(module: &Module) -> Option<Self> {
        let path = &module.path;
        let data = ReadCache::new(module.open()?);
        let file = object::File::parse(&data).ok()?;
        let symbols = stripped_symbols(path, &file);
        let variables = match &symbols {
            Some(path) => {
                let data = ReadCache::new(open_regular(path)?);
                variables(&object::File::parse(&data).ok()?)
            }
            None => variables(&file),
        };
        let segments = file.segments().map(|segment| {
            let (offset, size) = segment.file_range();
            (offset, size, segment.address())
        });
        Some(Self {
            segments: segments.collect(),
            loader: Loader::new(symbols.as_deref().unwrap_or(path)).ok()?,
            variables,
        })
    }

    /// The address that the file gives to a byte at an offset in it.
    fn address(&self, offset: u64) -> Option<u64> {
        let mut segments = self.segments.iter();
        let (begin, _, address) =
            segments.find(|(begin, size, _)| (*begin..begin + size).contains(&offset))?;
        Some(offset - begin + address)
    }

    /// The variable that the byte at an address in the file belongs to, and its offset there.
    fn variable(&self, address: u64) -> Option<String> {
        let after = self.variables.partition_point(|one| one.0 <= address);
        let (begin, size, name) = self.variables.get(after.checked_sub(1)?)?;
        match address - begin {
            0 => Some(name.clone()),
            offset if offset < *size => Some(format!("{name}+{offset:#x}")),
            _ => None,
        }
    }

    /// The functions inlined at a byte of the file, from inside to outside, at least one.
    fn find(&self, offset: u64) -> Option<Vec<Frame>> {
        let address = self.address(offset)?;
        let symbol = || {
            let name = self.loader.find_symbol(address)?;
            Some(demangled(name))
        };
        let mut frames = self.frames(address).unwrap_or_default();
        if frames.is_empty() {
            frames.push(Frame::default());
        }
        frames[0].function = frames[0].function.take().or_else(symbol);
        Some(frames)
    }

    /// The functions inlined at this address, as the debug information has them. Functions of the C++
    /// library that wrap mutexes do not count.
    fn frames(&self, address: u64) -> Option<Vec<Frame>> {
        let mut frames = self.loader.find_frames(address).ok()?;
        let mut found: Vec<Frame> = Vec::new();
        let mut only_wrappers = true;
        while let Ok(Some(frame)) = frames.next() {
            let name = frame
                .function
                .as_ref()
                .and_then(|name| name.demangle().ok());
            let function = name.map(|name| name.into_owned());
            let line = frame.location.as_ref().and_then(|location| {
                let file = Path::new(location.file?).file_name()?.to_string_lossy();
                Some(format!("{file}:{}", location.line?))
            });
            if only_wrappers {
                found.clear();
            }
            only_wrappers &= function.as_deref().is_some_and(is_wrapper);
            found.push(Frame { function, line });
        }
        Some(found)
    }
}

/// The name in the source. A name in C stays as it is, even if it encodes a type of C++.
fn demangled(symbol: &str) -> String {
    match symbol.starts_with('_') {
        true => addr2line::demangle_auto(symbol.into(), None).into_owned(),
        false => symbol.to_owned(),
    }
}

/// Whether the function belongs to the C++ library.
pub fn is_wrapper(function: &str) -> bool {
    let name = without_type(function);
    ["std::", "__gthread_", "__gnu_cxx::", "__glibcxx_"]
        .iter()
        .any(|prefix| name.starts_with(prefix))
}

/// The name of a function without the type of its result, which precedes the names of templates.
fn without_type(function: &str) -> &str {
    let mut depth = 0;
    let mut begin = 0;
    for (at, letter) in function.char_indices() {
        match letter {
            '<' => depth += 1,
            '>' => depth -= 1,
            '(' if depth == 0 => break,
            ' ' if depth == 0 => begin = at + 1,
            _ => {}
        }
    }
    &function[begin..]
}

#[cfg(test)]
mod tests {
    use super::{LONGEST, is_wrapper, shortened};

    #[test]
    fn functions_of_the_cpp_library_are_wrappers() {
        for name in [
            "std::mutex::lock()",
            "__gthread_mutex_lock(pthread_mutex_t*)",
            "void std::lock<std::mutex, std::mutex>(std::mutex&, std::mutex&)",
        ] {
            assert!(is_wrapper(name), "{name}");
        }
        for name in [
            "main",
            "std::vector<int> parse<std::string>(std::string)",
            "(anonymous namespace)::f(std::mutex&)",
        ] {
            assert!(!is_wrapper(name), "{name}");
        }
    }

    #[test]
    fn only_long_names_lose_their_middle() {
        assert_eq!(shortened("f"), "f");
        let name = format!("begin<{}>::end", "ä".repeat(70_000));
        let short = shortened(&name);
        assert!(short.chars().count() <= LONGEST);
        assert!(short.starts_with("begin<ä") && short.ends_with("ä>::end"));
    }
}
