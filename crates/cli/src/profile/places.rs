//! Addresses in code, as people call them.

use std::collections::HashMap;
use std::fs::File;
use std::path::{Path, PathBuf};

use addr2line::Loader;
use object::{Object, ObjectSegment, ReadCache};
use serde::Serialize;

/// A place in the code.
#[derive(Clone, Debug, Default, Serialize, PartialEq, Eq, PartialOrd, Ord)]
pub struct Place {
    /// The function, if there are symbols.
    pub function: Option<String>,
    /// File and line, if there is debug information.
    pub line: Option<String>,
    /// The file of code; none if it is in none.
    pub module: Option<PathBuf>,
    /// Where in that file, or else in memory.
    pub offset: u64,
}

impl Place {
    /// For people, on one line.
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

/// The files of code that were asked of.
#[derive(Default)]
pub struct Places {
    modules: HashMap<PathBuf, Option<Symbols>>,
}

struct Symbols {
    loader: Loader,
    /// Where in the file, how long, and at what address.
    segments: Vec<(u64, u64, u64)>,
}

impl Places {
    /// The place at that offset of a file.
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
    /// None: the file is no more, or there is nothing of use in it.
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

    /// The innermost of the functions inlined there that is not of the C++ library, which wraps mutexes.
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

/// Of the C++ library.
fn is_wrapper(function: &str) -> bool {
    ["std::", "__gthread_", "__gnu_cxx::"]
        .iter()
        .any(|prefix| function.starts_with(prefix))
}
