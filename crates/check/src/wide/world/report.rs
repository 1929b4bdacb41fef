//! The last steps of a random run, in words.

use crate::layout;
use crate::model::EARLY;
use crate::site::{OperationKind, Site};
use crate::trace;

use super::World;
use crate::wide::WideStep;

/// A step, for the report.
pub(super) struct Logged {
    pub(super) thread: usize,
    pub(super) site: &'static Site,
    pub(super) address: usize,
    /// None: an interruption began.
    pub(super) value: Option<u64>,
}

impl World {
    pub(in crate::wide) fn steps(&self) -> Vec<WideStep> {
        let threads = self.config.threads;
        let describe = |logged: &Logged| {
            let site = logged.site;
            let (operation, effect) = match logged.value {
                None => ("interruption".to_owned(), String::new()),
                Some(value) => (
                    format!("{}: {site}", site.function()),
                    effect(threads, logged, value),
                ),
            };
            WideStep {
                thread: logged.thread,
                place: format!("{}:{}", site.file(), site.line),
                operation,
                effect,
            }
        };
        self.run().log.iter().map(describe).collect()
    }
}

fn effect(threads: usize, logged: &Logged, value: u64) -> String {
    let site = logged.site;
    let name = || trace::name_of(threads, logged.address);
    let shown = match layout::resolve(value as usize, threads) {
        Some((_, 0)) if site.size == 8 => trace::name_of(threads, value as usize),
        _ if value < 10 => value.to_string(),
        _ => format!("{value:#x}"),
    };
    match site.kind {
        OperationKind::Fence | OperationKind::Unpark => String::new(),
        OperationKind::Clock if value == EARLY => "no threshold reached".to_owned(),
        OperationKind::Clock => "every threshold reached".to_owned(),
        OperationKind::Choose => shown,
        OperationKind::Store | OperationKind::PlainWrite => format!("{} := {shown}", name()),
        kind if kind.is_read_modify_write() => format!("{} was {shown}", name()),
        _ => format!("{} is {shown}", name()),
    }
}
