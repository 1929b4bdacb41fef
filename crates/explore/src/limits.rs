//! The limits of a search.

use std::io;
use std::num::ParseIntError;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use clap::Args;

/// The limits at which a search ends before it has explored all states. They are also options of
/// `lockworks check`.
#[derive(Clone, Copy, Debug, Args)]
pub struct Limits {
    /// Stop the check of each lock after this time in seconds [default: no limit]
    ///
    /// With --quick, all configurations of a lock share it.
    #[arg(id = "seconds", long, value_name = "SECONDS", value_parser = seconds)]
    pub time: Option<Duration>,

    // In bytes, approximately, as is the disk.
    /// Keep to this much memory, in MiB; what does not fit goes to disk, into TMPDIR [default: half of
    /// the available memory]
    #[arg(
        id = "memory_limit",
        long = "memory-limit",
        value_name = "MIB",
        value_parser = mib,
        hide_short_help = true
    )]
    pub memory: Option<usize>,

    /// Stop when a check has this much on disk, in MiB; 0: when memory is full [default: half of the
    /// free space in TMPDIR]
    #[arg(
        id = "disk_limit",
        long = "disk-limit",
        value_name = "MIB",
        value_parser = disk_mib,
        hide_short_help = true
    )]
    pub disk: Option<u64>,

    /// The most states.
    #[arg(skip)]
    pub states: Option<usize>,

    /// The most OS threads that search.
    #[arg(skip = 1_usize)]
    pub threads: usize,

    /// The search ends soon after this is true.
    #[arg(skip)]
    pub stop: Option<&'static AtomicBool>,
}

fn seconds(text: &str) -> Result<Duration, &'static str> {
    match text.parse() {
        Ok(seconds) if 0.0 < seconds && seconds <= 1e9 => Ok(Duration::from_secs_f64(seconds)),
        _ => Err("give a number above 0, up to 1000000000"),
    }
}

/// Bytes, of which the text has the number in MiB.
fn mib(text: &str) -> Result<usize, ParseIntError> {
    Ok(text.parse::<usize>()?.saturating_mul(1 << 20))
}

fn disk_mib(text: &str) -> Result<u64, ParseIntError> {
    Ok(mib(text)? as u64)
}

/// The reason of [`End::Unfinished`] at the limit of states.
pub const LIMIT_OF_STATES: &str = "the limit of states is reached";

impl Limits {
    /// No limits, and one OS thread.
    pub const NONE: Self = Self {
        time: None,
        memory: None,
        disk: None,
        states: None,
        threads: 1,
        stop: None,
    };
}

/// The reason for which a search ends when the disk fails.
pub(crate) fn reason(error: &io::Error) -> &'static str {
    match error.kind() {
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => {
            "memory and disk are full; TMPDIR chooses another disk"
        }
        _ => "the directory for temporary files cannot be used; TMPDIR chooses another",
    }
}
