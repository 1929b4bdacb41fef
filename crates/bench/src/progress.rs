//! How far the run is, on terminals.

use indicatif::{ProgressBar, ProgressStyle};

/// A bar on standard error, if that is a terminal. It draws only between measurements.
pub struct Progress(ProgressBar);

impl Progress {
    /// For so many measurements.
    pub fn new(steps: usize) -> Self {
        let bar = ProgressBar::new(steps as u64);
        let style = ProgressStyle::with_template("{bar:30} {pos}/{len}  {eta} left  {msg}")
            .expect("a template that has been tried");
        bar.set_style(style);
        Self(bar)
    }

    /// The next measurement begins.
    pub fn step(&self, what: &str, section: &str) {
        self.0.set_message(format!("{section}: {what}"));
        self.0.inc(1);
    }

    /// All done.
    pub fn finish(&self) {
        self.0.finish_and_clear();
    }
}
