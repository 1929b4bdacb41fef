//! Places in code: the function and line of an address.

use std::collections::HashMap;
use std::fs::File;
use std::path::{Path, PathBuf};

use addr2line::Loader;
use object::{Object, ObjectSegment, ReadCache};
use serde::Serialize;

/// A place in the code.
#[derive(Clone, Debug, Default, Serialize, PartialEq, Eq, PartialOrd, Ord)]
pub struct Place {
    /// The function. None: there are no symbols.
    pub function: Option<String>,
    /// The file and line. None: there is no debug information.
    pub line: Option<String>,
    /// The executable or library. None: the code is in no file.
    pub module: Option<PathBuf>,
    /// The offset in that file, or the address in memory.
    pub offset: u64,
}

impl Place {
    /// The place as tables name it.
    pub fn name(&self) -> String {
        let module = self.module.as_deref().and_then(Path::file_name);
        let module = module.map_or("?".into(), |name| name.to_string_lossy());
        match (&self.function, &self.line) {
            (Some(function), Some(line)) => format!("{function} {line}"),
            (Some(function), None) => format!("{function} ({module}+{:#x})", self.offset),
            (None, _) => format!("{module}+{:#x}", self.offset),
        }
    }
}

/// The symbols of all executables and libraries that were looked up so far.
#[derive(Default)]
pub struct Places {
    modules: HashMap<PathBuf, Option<Symbols>>,
}

struct Symbols {
    loader: Loader,
    /// The offset in the file, the length and the address of each segment.
    segments: Vec<(u64, u64, u64)>,
}

impl Places {
    /// The place at an offset in a file.
    pub fn find(&mut self, module: &Path, offset: u64) -> Place {
        let symbols = self.modules.entry(module.to_owned());
        let symbols = symbols.or_insert_with(|| Symbols::read(module));
        let (function, line) = symbols
            .as_ref()
            .and_then(|symbols| symbols.find(offset))
            .unwrap_or_default();
        Place {
            function,
            line,
            module: Some(module.to_owned()),
            offset,
        }
    }
}

impl Symbols {
    /// Reads the symbols of a file. None: the file is gone, or has no symbols.
    fn read(path: &Path) -> Option<Self> {
        let data = ReadCache::new(File::open(path).ok()?);
        let file = object::File::parse(&data).ok()?;
        let segments = file.segments().map(|segment| {
            let (offset, size) = segment.file_range();
            (offset, size, segment.address())
        });
        Some(Self {
            segments: segments.collect(),
            loader: Loader::new(path).ok()?,
        })
    }

    fn find(&self, offset: u64) -> Option<(Option<String>, Option<String>)> {
        let mut segments = self.segments.iter();
        let (begin, _, address) =
            segments.find(|(begin, size, _)| (*begin..begin + size).contains(&offset))?;
        let address = offset - begin + address;
        let symbol = || {
            let name = self.loader.find_symbol(address)?;
            Some(addr2line::demangle_auto(name.into(), None).into_owned())
        };
        let (function, line) = self.frame(address).unwrap_or_default();
        Some((function.or_else(symbol), line))
    }

    /// The innermost function inlined at this address. Functions of the C++ library that wrap
    /// mutexes do not count.
    fn frame(&self, address: u64) -> Option<(Option<String>, Option<String>)> {
        let mut frames = self.loader.find_frames(address).ok()?;
        let mut found = None;
        while let Ok(Some(frame)) = frames.next() {
            let name = frame
                .function
                .as_ref()
                .and_then(|name| name.demangle().ok());
            let name = name.map(|name| name.into_owned());
            let line = frame.location.as_ref().and_then(|location| {
                let file = Path::new(location.file?).file_name()?.to_string_lossy();
                Some(format!("{file}:{}", location.line?))
            });
            let wraps = name.as_deref().is_some_and(is_wrapper);
            found = Some((name, line));
            if !wraps {
                break;
            }
        }
        found
    }
}

/// Whether the function belongs to the C++ library.
fn is_wrapper(function: &str) -> bool {
    ["std::", "__gthread_", "__gnu_cxx::"]
        .iter()
        .any(|prefix| function.starts_with(prefix))
}
