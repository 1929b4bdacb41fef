//! Plans: which mutexes of a program get which lock. `docs/reference/plans.md` describes the file, which
//! `interpose/preload/plan.c` reads as well.

use std::fmt;
use std::fs::{self, File};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail, ensure};
use itertools::Itertools;
use lockworks_names::command_line as names;
use object::elf::DT_SONAME;
use object::read::elf::ElfFile64;
use object::{Endianness, Object, ReadCache};
use serde::{Deserialize, Serialize};

use crate::{Program, preloadable, preloadables};

/// The environment variable that names the plan for the library.
pub const PLAN: &str = "LOCKWORKS_PLAN";

/// What serves the mutexes that have no line.
pub const GLIBC: &str = "glibc";

/// The lock for rwlocks.
pub const RWLOCK: &str = "rwlock";

/// The first line of a plan, without the version.
const HEAD: &str = "lockworks plan ";

/// The version of the format. Another version is another format.
const VERSION: &str = "1";

/// The most lines and bytes that the library reads, and the most bytes of a build-id.
const LINES: usize = 256;
const BYTES: usize = 65535;
const ID_BYTES: usize = 32;

/// An executable or a library, as plans name it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Module {
    /// Its soname if it has one, else the name of its file.
    pub name: String,
    /// Its build-id, in hexadecimal digits.
    pub build_id: String,
}

impl Module {
    /// The module of this file.
    ///
    /// # Errors
    ///
    /// If the file cannot be read, or a plan cannot name it.
    pub fn of(path: &Path) -> Result<Self> {
        let read = || -> Result<Self> {
            let data = ReadCache::new(File::open(path)?);
            let file = ElfFile64::<Endianness, _>::parse(&data)?;
            let build_id = file.build_id()?;
            let build_id = build_id.context("it has no build-id; link it with --build-id")?;
            let file_name = path.file_name().context("it is no file")?;
            let name = match soname(&file, &data)? {
                Some(name) => name,
                None => file_name.to_string_lossy().into_owned(),
            };
            ensure!(
                is_word(&name),
                "its name has a space or a #, so a plan cannot name it"
            );
            let build_id = build_id.iter().map(|byte| format!("{byte:02x}")).collect();
            Ok(Self { name, build_id })
        };
        read().with_context(|| format!("{} cannot be in a plan", path.display()))
    }
}

/// The name by which the loader knows a library.
fn soname<'a>(
    file: &ElfFile64<'a, Endianness, &'a ReadCache<File>>,
    data: &'a ReadCache<File>,
) -> object::Result<Option<String>> {
    let endian = file.endian();
    let sections = file.elf_section_table();
    let Some((entries, strings)) = sections.dynamic(endian, data)? else {
        return Ok(None);
    };
    let strings = sections.strings(endian, data, strings)?;
    let entry = entries
        .iter()
        .find(|entry| entry.d_tag.get(endian) == DT_SONAME);
    let name = entry.and_then(|entry| strings.get(entry.d_val.get(endian) as u32).ok());
    Ok(name.map(|name| String::from_utf8_lossy(name).into_owned()))
}

/// Whether the text can be a word of a line.
fn is_word(text: &str) -> bool {
    !text.is_empty() && !text.contains(|sign: char| sign == '#' || sign == ' ' || sign.is_control())
}

/// What serves a mutex, or mutexes that have their call in common.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Line {
    /// The lock: one of [`preloadables`], [`RWLOCK`] or [`GLIBC`].
    pub lock: String,
    /// The executable or library.
    pub module: Module,
    /// The address in its file: that of the mutex, or the one to which the call returns that initialises it or
    /// locks it first.
    pub address: u64,
    /// What is there, for people.
    pub comment: String,
}

impl Line {
    fn parse(text: &str) -> Result<Option<Self>> {
        ensure!(
            !text.contains(|sign: char| sign.is_control() && sign != '\t'),
            "a control character"
        );
        let (text, comment) = text.split_once('#').unwrap_or((text, ""));
        let words: Vec<&str> = text
            .split([' ', '\t'])
            .filter(|word| !word.is_empty())
            .collect();
        let [lock, module, build_id, address] = words[..] else {
            ensure!(words.is_empty(), "it is not LOCK MODULE BUILD-ID ADDRESS");
            return Ok(None);
        };
        check_lock(lock)?;
        let is_id = build_id.len() % 2 == 0 && build_id.len() <= 2 * ID_BYTES;
        ensure!(
            is_id && build_id.bytes().all(|digit| digit.is_ascii_hexdigit()),
            "'{build_id}' is no build-id; `readelf -n` prints that of a file"
        );
        let digits = address.strip_prefix("0x").unwrap_or_default();
        let is_number = !digits.is_empty() && digits.bytes().all(|digit| digit.is_ascii_hexdigit());
        let address = is_number.then(|| u64::from_str_radix(digits, 16).ok());
        let address = address
            .flatten()
            .with_context(|| format!("'{}' is no address, such as 0x4060", words[3]))?;
        Ok(Some(Self {
            lock: lock.to_owned(),
            module: Module {
                name: module.to_owned(),
                build_id: build_id.to_ascii_lowercase(),
            },
            address,
            comment: comment.trim().to_owned(),
        }))
    }
}

/// Fails unless a plan may name the lock.
pub fn check_lock(name: &str) -> Result<()> {
    if [GLIBC, RWLOCK].contains(&name) {
        return Ok(());
    }
    if lockworks::find(name).is_none() {
        let all = preloadables().map(|lock| lock.name());
        return Err(names::unknown("lock", name, all.chain([RWLOCK, GLIBC])));
    }
    preloadable(name).map(|_| ())
}

/// A plan.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Plan {
    /// Its lines, in their order.
    pub lines: Vec<Line>,
}

impl Plan {
    /// Reads the file at a path.
    ///
    /// # Errors
    ///
    /// If the library would not obey it, whatever the program is.
    pub fn open(path: &Path) -> Result<Self> {
        let shown = path.display().to_string();
        let bytes = fs::read(path).with_context(|| format!("cannot read the plan {shown}"))?;
        ensure!(
            bytes.len() <= BYTES,
            "{shown} is longer than a plan may be, 64 KiB"
        );
        Self::parse(&String::from_utf8_lossy(&bytes), &shown)
    }

    /// Reads a text. Errors name the file and the line.
    ///
    /// # Errors
    ///
    /// As [`Plan::open`].
    pub fn parse(text: &str, file: &str) -> Result<Self> {
        let mut plan = Self::default();
        let mut texts = text
            .split('\n')
            .map(|text| text.strip_suffix('\r').unwrap_or(text));
        match texts.next().and_then(|text| text.strip_prefix(HEAD)) {
            None => bail!("{file}:1: it is no plan; the first line of a plan is '{HEAD}{VERSION}'"),
            Some(VERSION) => {}
            Some(_) => bail!(
                "{file}:1: it is a plan of another version, and this command reads version {VERSION}"
            ),
        }
        for (text, number) in texts.zip(2..) {
            let line = Line::parse(text);
            plan.lines
                .extend(line.map_err(|error| anyhow::anyhow!("{file}:{number}: {error:#}"))?);
            ensure!(
                plan.lines.len() <= LINES,
                "{file}:{number}: more than {LINES} lines"
            );
        }
        ensure!(
            !plan.lines.is_empty(),
            "{file}:1: the plan names no mutex; a line is LOCK MODULE BUILD-ID ADDRESS"
        );
        Ok(plan)
    }

    /// Reads the plan in this file for a program. Returns its whole path as well.
    ///
    /// # Errors
    ///
    /// As [`Plan::open`], or if a line is for another build of the executable. The library checks other modules
    /// when they are loaded.
    pub fn open_for(path: &Path, program: &Program) -> Result<(Self, PathBuf)> {
        let plan = Self::open(path)?;
        plan.check(program, path)?;
        Ok((plan, path.canonicalize()?))
    }

    /// The locks that it names, without glibc.
    pub fn locks(&self) -> impl Iterator<Item = &str> {
        let locks = self.lines.iter().map(|line| &*line.lock);
        locks.unique().filter(|lock| *lock != GLIBC)
    }

    fn check(&self, program: &Program, file: &Path) -> Result<()> {
        let Ok(module) = Module::of(program.executable()) else {
            return Ok(());
        };
        let other = self.lines.iter().find(|line| {
            line.module.name == module.name && line.module.build_id != module.build_id
        });
        if let Some(line) = other {
            bail!(
                "the plan {} is for another build of {}: its build-id is {}, and that of the plan {}; make the \
                 plan again",
                file.display(),
                module.name,
                module.build_id,
                line.module.build_id
            );
        }
        Ok(())
    }
}

/// The text of the file.
impl fmt::Display for Plan {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        writeln!(f, "{HEAD}{VERSION}")?;
        let width = |word: fn(&Line) -> usize| self.lines.iter().map(word).max().unwrap_or(0);
        let lock = width(|line| line.lock.len());
        let module = width(|line| line.module.name.chars().count());
        let build_id = width(|line| line.module.build_id.len());
        for line in &self.lines {
            let Module { name, build_id: id } = &line.module;
            let text = format!(
                "{:lock$}  {name:module$}  {id:build_id$}  {:#x}",
                line.lock, line.address
            );
            match line.comment.as_str() {
                "" => writeln!(f, "{text}")?,
                comment => {
                    let comment = comment.replace(|sign: char| sign.is_control(), " ");
                    writeln!(f, "{text}  # {comment}")?;
                }
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use lockworks_properties::{names_a_line, nearly};
    use proptest::prelude::*;

    use super::*;

    const TEXT: &str = "lockworks plan 1
# LOCK MODULE BUILD-ID ADDRESS
mutex  program    00ff  0x4060  # cache_lock

pv\tlibx.so.1 A0 0x12ab
glibc program 00ff 0x1 # the # rest
rwlock program 00ff 0x2
";

    fn error(text: &str) -> String {
        Plan::parse(text, "p").expect_err("refused").to_string()
    }

    #[test]
    fn lines_are_read() {
        let plan = Plan::parse(TEXT, "p").expect("a plan");
        assert_eq!(plan.lines.len(), 4);
        assert_eq!(plan.lines[0].comment, "cache_lock");
        let line = &plan.lines[1];
        assert_eq!((&*line.lock, &*line.module.name), ("pv", "libx.so.1"));
        assert_eq!((&*line.module.build_id, line.address), ("a0", 0x12ab));
    }

    #[test]
    fn what_is_wrong_is_said_with_its_line() {
        for (text, words) in [
            ("", "p:1: it is no plan"),
            ("lockworks plan 2\n", "p:1: it is a plan of another version"),
            ("lockworks plan 1\n# none\n", "p:1: the plan names no mutex"),
            (
                "lockworks plan 1\n\nmutx p 00 0x1\n",
                "p:3: unknown lock 'mutx'; did you mean 'mutex'?",
            ),
            (
                "lockworks plan 1\nmcs p 00 0x1\n",
                "p:2: lock 'mcs' cannot be in a mutex",
            ),
            (
                "lockworks plan 1\nmutex p 00\n",
                "p:2: it is not LOCK MODULE",
            ),
            (
                "lockworks plan 1\nmutex p 0g 0x1\n",
                "p:2: '0g' is no build-id",
            ),
            (
                "lockworks plan 1\nmutex p 00 12\n",
                "p:2: '12' is no address",
            ),
        ] {
            assert!(error(text).starts_with(words), "{}", error(text));
        }
    }

    #[test]
    fn this_executable_can_be_in_a_plan() {
        let path = std::env::current_exe().expect("its path");
        // Linkers differ in whether they add a build-id.
        match Module::of(&path) {
            Ok(module) => {
                assert_eq!(
                    Some(&*module.name),
                    path.file_name().and_then(|name| name.to_str())
                );
            }
            Err(error) => assert!(format!("{error:#}").contains("no build-id"), "{error:#}"),
        }
        let loader = fs::read_dir("/lib64").into_iter().flatten().flatten();
        for library in loader.filter(|file| file.file_name() == "ld-linux-x86-64.so.2") {
            let module = Module::of(&library.path()).expect("Debian's have a build-id");
            assert_eq!(module.name, "ld-linux-x86-64.so.2");
        }
    }

    proptest! {
        /// A text is refused in one line that names the place, or can be written and read again.
        #[test]
        fn a_changed_plan_is_refused_or_read_again(text in nearly(vec![TEXT], 3)) {
            match Plan::parse(&text, "p") {
                Ok(plan) => {
                    let again = Plan::parse(&plan.to_string(), "p");
                    prop_assert_eq!(again.map_err(|error| error.to_string()), Ok(plan));
                }
                Err(error) => names_a_line(&error.to_string())?,
            }
        }
    }
}
