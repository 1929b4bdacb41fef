//! Progress bars and lines on standard error, shown on a terminal only.

use std::time::Duration;

use indicatif::{ProgressBar, ProgressStyle};

/// How often a line that shows the time is drawn again.
const TICK: Duration = Duration::from_millis(200);

fn style(template: &str) -> ProgressStyle {
    ProgressStyle::with_template(template).expect("the template is well formed")
}

/// A bar for a number of steps.
pub fn bar(steps: usize, template: &str) -> ProgressBar {
    ProgressBar::new(steps as u64).with_style(style(template))
}

/// A bar for a number of simulations of `what`.
pub fn runs(runs: usize, what: &str) -> ProgressBar {
    bar(runs, "{msg} [{wide_bar}] {pos}/{len} runs, {eta} left").with_message(what.to_owned())
}

/// A line that shows what is done now.
pub fn line(template: &str) -> ProgressBar {
    let line = ProgressBar::new_spinner().with_style(style(template));
    line.enable_steady_tick(TICK);
    line
}
