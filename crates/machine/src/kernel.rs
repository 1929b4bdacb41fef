//! The version of Linux that a machine runs, as far as its scheduler depends on it.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// A version of Linux, as `6.12`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Deserialize, Serialize)]
#[serde(try_from = "String", into = "String")]
pub struct Kernel {
    major: u32,
    minor: u32,
}

/// That of machines and tables that name none.
impl Default for Kernel {
    fn default() -> Kernel {
        Kernel {
            major: 6,
            minor: 12,
        }
    }
}

impl Kernel {
    /// Whether its fair scheduler is EEVDF, which came with 6.6, and not CFS.
    pub fn has_eevdf(self) -> bool {
        self >= Kernel { major: 6, minor: 6 }
    }

    /// Whether a thread that is woken only marks the one that it preempts. That is lazy preemption,
    /// which x86 and arm64 have by default since 7.0.
    pub fn preempts_lazily(self) -> bool {
        self >= Kernel { major: 7, minor: 0 }
    }
}

impl FromStr for Kernel {
    type Err = String;

    /// What follows the two numbers of a release, as in `6.12.5-1-amd64`, is ignored.
    fn from_str(text: &str) -> Result<Kernel, String> {
        let numbers = text.split_once('.').and_then(|(major, rest)| {
            let minor = rest.split(|c: char| !c.is_ascii_digit()).next()?;
            Some((major.parse().ok()?, minor.parse().ok()?))
        });
        match numbers {
            Some((major, minor)) => Ok(Kernel { major, minor }),
            None => Err(format!("'{text}' is no version of Linux; give one as 6.12")),
        }
    }
}

impl TryFrom<String> for Kernel {
    type Error = String;

    fn try_from(text: String) -> Result<Kernel, String> {
        text.parse()
    }
}

impl From<Kernel> for String {
    fn from(kernel: Kernel) -> String {
        kernel.to_string()
    }
}

impl fmt::Display for Kernel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.major, self.minor)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_numbers_and_say_which_scheduler() {
        let of = |text: &str| {
            let kernel: Kernel = text.parse().unwrap();
            (kernel.has_eevdf(), kernel.preempts_lazily())
        };
        assert_eq!([of("3.7.10"), of("6.5")], [(false, false); 2]);
        assert_eq!([of("6.6"), of("6.12.5-1-amd64")], [(true, false); 2]);
        assert_eq!([of("7.0-rc1"), of("7.1")], [(true, true); 2]);
        for wrong in ["", "6", "six.12", "v6.12", "6-12", "6.", "6..12"] {
            let error = wrong.parse::<Kernel>().unwrap_err();
            assert!(error.contains("no version of Linux"), "{error}");
        }
    }
}
