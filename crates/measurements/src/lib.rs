//! How measurements are made in rounds and summarised: the order of the contenders in each round, and
//! medians, ranges and percentiles of the figures, the law that extrapolates them, and which contender to take.

mod choice;
mod latency;
mod statistics;
mod timeline;
mod turns;
mod usl;

pub use choice::{lock_to_take, mean_share};
pub use latency::{Histogram, Latency, latencies};
pub use statistics::{Range, median, sorted};
pub use timeline::{Activity, Timeline, TimelineEvent, TimelineThread};
pub use turns::turns;
pub use usl::Usl;
