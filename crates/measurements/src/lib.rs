//! How measurements are made in rounds and summarised: the order of the contenders in each round, and
//! medians and ranges of the figures.

mod statistics;
mod turns;

pub use statistics::{Range, median, sorted};
pub use turns::turns;
