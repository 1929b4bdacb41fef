//! The configurations in which kernels are built.

use std::fmt;

/// A way to configure a kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Variant {
    /// The kernel calls spinlocks directly.
    Native,
    /// The kernel calls spinlocks through `pv_ops`.
    Paravirt,
    /// The kernel has lockdep, its self-tests and a detector of data races.
    Debug,
}

impl Variant {
    /// All configurations.
    pub const ALL: [Self; 3] = [Self::Native, Self::Paravirt, Self::Debug];

    /// The name on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Self::Native => "native",
            Self::Paravirt => "paravirt",
            Self::Debug => "debug",
        }
    }
}

impl fmt::Display for Variant {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.write_str(self.name())
    }
}
