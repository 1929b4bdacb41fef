//! The kernels that Lockworks builds.

use std::fmt;

/// A kernel that Lockworks builds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Version {
    /// Linux 7.3.
    V7_3,
    /// Linux 7.2.
    V7_2,
    /// Linux 6.12.
    V6_12,
    /// Linux 6.1.
    V6_1,
}

impl Version {
    /// All of them, newest first.
    pub const ALL: [Self; 4] = [Self::V7_3, Self::V7_2, Self::V6_12, Self::V6_1];

    /// The version without the patch level.
    pub fn name(self) -> &'static str {
        match self {
            Self::V7_3 => "7.3",
            Self::V7_2 => "7.2",
            Self::V6_12 => "6.12",
            Self::V6_1 => "6.1",
        }
    }

    /// The first number of the version.
    pub(crate) fn major(self) -> &'static str {
        self.name().split_once('.').map_or("", |(major, _)| major)
    }
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.write_str(self.name())
    }
}
