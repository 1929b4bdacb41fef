//! The long-term kernels that Lockworks supports.

use std::fmt;

/// A long-term kernel that Lockworks supports.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Version {
    /// Linux 6.12.
    V6_12,
    /// Linux 6.1.
    V6_1,
}

impl Version {
    /// All supported kernels, newest first.
    pub const ALL: [Self; 2] = [Self::V6_12, Self::V6_1];

    /// The version without the patch level.
    pub fn name(self) -> &'static str {
        match self {
            Self::V6_12 => "6.12",
            Self::V6_1 => "6.1",
        }
    }
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.write_str(self.name())
    }
}
