//! The kernel's locktorture module, and its parameters that make rounds comparable.

use std::fs;

use crate::build::Built;
use crate::error::{Attempt, Result};

/// Parameters that would make rounds differ. They are 0 if the module has them.
const STEADY: [&str; 4] = ["long_hold", "stutter", "shuffle_interval", "rt_boost"];

/// Reads the module of a kernel.
pub(super) fn module(built: &Built) -> Result<Vec<u8>> {
    let module = built.directory.join("kernel/locking/locktorture.ko");
    fs::read(&module).attempt_on("read", &module)
}

/// Parameters that make rounds of the module comparable.
pub(super) fn steady(module: &[u8], writers: u32) -> Vec<String> {
    let mut words = vec![
        format!("nwriters_stress={writers}"),
        "stat_interval=86400".to_owned(),
        "verbose=0".to_owned(),
    ];
    let steady = STEADY.iter().filter(|name| has_parameter(module, name));
    words.extend(steady.map(|name| format!("{name}=0")));
    words
}

/// The parameters that make rounds of a kernel's module comparable.
pub(crate) fn steady_parameters(built: &Built, writers: u32) -> Result<String> {
    Ok(steady(&module(built)?, writers).join(" "))
}

/// Whether a module has a parameter. Modules list their parameters in their description.
pub(super) fn has_parameter(module: &[u8], name: &str) -> bool {
    holds(module, &format!("parmtype={name}:"))
}

/// Whether a module contains a text.
pub(super) fn holds(module: &[u8], text: &str) -> bool {
    module
        .windows(text.len())
        .any(|bytes| bytes == text.as_bytes())
}
