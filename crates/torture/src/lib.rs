//! Real threads on this machine take locks over and over.

mod contender;
mod host;
pub mod peers;
mod plan;
mod quota;
mod results;
mod round;
mod workload;

pub use contender::{Contender, ELSEWHERE};
pub use host::{Host, Pin, allowed_cpus, involuntary_switches};
pub use plan::{TorturePlan, run, usual_reference, usual_threads};
pub use quota::Throttling;
pub use results::{RoundFigures, TortureResults, TortureRow, TunablesSet};
pub use workload::{Preset, Workload};
