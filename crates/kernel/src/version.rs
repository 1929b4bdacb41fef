//! The version of a kernel's source tree.

use std::fmt;

/// A kernel's version.
#[derive(Clone, Debug, PartialEq)]
pub struct KernelVersion {
    release: String,
    full: String,
}

impl KernelVersion {
    /// Reads the version from the top of a kernel's Makefile.
    pub(crate) fn read(makefile: &str) -> Option<Self> {
        let value = |name: &str| {
            let mut lines = makefile.lines().take(20);
            let value = |line: &str| {
                Some(
                    line.strip_prefix(name)?
                        .trim_start()
                        .strip_prefix('=')?
                        .trim()
                        .to_owned(),
                )
            };
            lines.find_map(value)
        };
        let number = |name| value(name).filter(|text| text.parse::<u32>().is_ok());
        let release = format!("{}.{}", number("VERSION")?, number("PATCHLEVEL")?);
        Some(Self {
            full: format!(
                "{release}.{}{}",
                number("SUBLEVEL")?,
                value("EXTRAVERSION").unwrap_or_default()
            ),
            release,
        })
    }

    /// The release, such as 6.12, of 6.12.3-rc1.
    pub(crate) fn release(&self) -> &str {
        &self.release
    }

    /// Its two numbers, which can be compared.
    pub(crate) fn numbers(&self) -> (u32, u32) {
        numbers(&self.release).unwrap_or_default()
    }

    /// The first number of it.
    pub(crate) fn major(&self) -> &str {
        self.release.split('.').next().unwrap_or_default()
    }
}

/// The two numbers of a release such as 6.12.
pub(crate) fn numbers(release: &str) -> Option<(u32, u32)> {
    let (major, minor) = release.split_once('.')?;
    Some((major.parse().ok()?, minor.parse().ok()?))
}

impl fmt::Display for KernelVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.full)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_versions() {
        let read = |text| KernelVersion::read(text).map(|version| version.to_string());
        let makefile = "# x\nVERSION = 6\nPATCHLEVEL = 12\nSUBLEVEL = 3\nEXTRAVERSION = -rc1\n";
        assert_eq!(read(makefile).as_deref(), Some("6.12.3-rc1"));
        assert_eq!(
            read("VERSION = 6\nPATCHLEVEL = twelve\nSUBLEVEL = 3\n"),
            None
        );
        assert_eq!(read("all:\n"), None);
    }
}
