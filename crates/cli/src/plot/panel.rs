//! The contents of a figure.

/// The locks on one machine or from one source. A panel is a column of the figure.
#[derive(Clone, Debug)]
pub struct Panel {
    /// The title above it.
    pub title: String,
    /// The unit of [`Point::throughput`], as "million operations a second". Panels of the same unit
    /// share a scale.
    pub unit: String,
    /// The locks.
    pub series: Vec<Series>,
}

/// The points of one lock. A lock has the same colour and marker in all panels.
#[derive(Clone, Debug)]
pub struct Series {
    /// The name of the lock.
    pub name: String,
    /// The points, by increasing number of threads.
    pub points: Vec<Point>,
}

/// The figures of a lock with one number of threads.
#[derive(Clone, Copy, Debug)]
pub struct Point {
    /// The number of threads.
    pub threads: usize,
    /// The throughput, in the panel's unit.
    pub throughput: f64,
    /// The lowest and the highest throughput over the rounds, if there were several.
    pub spread: Option<(f64, f64)>,
    /// The fairness factor, if known.
    pub fairness: Option<f64>,
}
