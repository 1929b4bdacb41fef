//! The progress of a run, shown on terminals.

use indicatif::{ProgressBar, ProgressStyle};

/// A progress bar on standard error, if that is a terminal.
///
/// It is drawn only between measurements, so that it does not disturb them.
pub struct Progress(ProgressBar);

impl Progress {
    /// Makes a bar for this many measurements.
    pub fn new(steps: usize) -> Self {
        let bar = ProgressBar::new(steps as u64);
        let style = ProgressStyle::with_template("{bar:30} {pos}/{len}  {eta} left  {msg}")
            .expect("the template is valid");
        bar.set_style(style);
        Self(bar)
    }

    /// Shows that the measurement of `what` begins.
    pub fn step(&self, what: &str, section: &str) {
        self.0.set_message(format!("{section}: {what}"));
        self.0.inc(1);
    }

    /// Removes the bar.
    pub fn finish(&self) {
        self.0.finish_and_clear();
    }
}
