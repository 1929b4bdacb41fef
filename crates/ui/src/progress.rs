//! Progress bars and lines on standard error, shown on a terminal only.

use std::sync::LazyLock;
use std::time::Duration;

use indicatif::{MultiProgress, ProgressBar, ProgressStyle};
use lockworks_machine::measure::{self, Measured};

/// All bars and lines, each below those that were there before.
static ALL: LazyLock<MultiProgress> = LazyLock::new(MultiProgress::new);

/// How often a line that shows the time is drawn again.
const TICK: Duration = Duration::from_millis(200);

fn style(template: &str) -> ProgressStyle {
    ProgressStyle::with_template(template).expect("the template is well formed")
}

/// A bar for a number of steps.
pub fn bar(steps: usize, template: &str) -> ProgressBar {
    ALL.add(ProgressBar::new(steps as u64).with_style(style(template)))
}

/// A bar for a number of simulations of `what`.
pub fn runs(runs: usize, what: &str) -> ProgressBar {
    bar(runs, "{msg} [{wide_bar}] {pos}/{len} runs, {eta} left").with_message(what.to_owned())
}

/// Measures this machine. A bar on a terminal shows the progress.
///
/// # Errors
/// The machine cannot be measured.
pub fn measure_with_progress() -> anyhow::Result<Measured> {
    // The bar draws nothing unless standard error is a terminal.
    let bar = bar(0, "{wide_bar} {pos}/{len}");
    let measured = measure::this_machine(|done, total| {
        tracing::debug!(done, total, "measured");
        bar.set_length(total as u64);
        bar.set_position(done as u64);
    });
    bar.finish_and_clear();
    Ok(measured?)
}

/// A line that shows what is done now.
pub fn line(template: &str) -> ProgressBar {
    let line = ALL.add(ProgressBar::new_spinner().with_style(style(template)));
    line.enable_steady_tick(TICK);
    line
}
