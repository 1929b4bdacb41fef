//! Runs points on threads of this process.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::thread;
use std::time::Instant;

use anyhow::Result;

use super::point::{Judged, Outcome, Point};
use super::source::ReadSources;

/// The number of points that run at the same time unless the user chooses another one.
pub fn default_jobs() -> usize {
    thread::available_parallelism().map_or(1, usize::from)
}

/// Runs points on `jobs` threads until `next` has none left. `done` is called with each outcome.
pub fn run(jobs: usize, next: impl Fn() -> Option<Point> + Sync, done: impl Fn(Outcome) + Sync) {
    let sources = ReadSources::default();
    thread::scope(|scope| {
        for _ in 0..jobs {
            scope.spawn(|| {
                while let Some(point) = next() {
                    done(outcome(point, |point| point.result(&sources, jobs)));
                }
            });
        }
    });
}

/// The outcome of a point. An error or a panic of `run` is an outcome too.
fn outcome(point: Point, run: impl FnOnce(&Point) -> Result<Judged>) -> Outcome {
    let begin = Instant::now();
    let judged = catch_unwind(AssertUnwindSafe(|| run(&point)));
    let (result, error) = match judged {
        Ok(Ok(judged)) => judged,
        Ok(Err(error)) => (None, Some(format!("{error:#}"))),
        Err(panic) => {
            let text = panic
                .downcast_ref::<String>()
                .map(String::as_str)
                .or_else(|| panic.downcast_ref::<&str>().copied());
            let text = text.unwrap_or("no message");
            (None, Some(format!("panic: {text}")))
        }
    };
    let seconds = begin.elapsed().as_secs_f64();
    Outcome {
        key: point.key(),
        point,
        result,
        error,
        seconds,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_panic_is_an_outcome() {
        let point = r#"{"version":"1","kind":"check","lock":"tas","threads":2,"acquisitions":2,
            "locks":1,"memory":"weak","staleness":null,"slots":null,"nodes":1,"trylock":false,
            "spurious":1,"cancel":false,"split_release":false,"nesting":0,"priority":[],
            "time":"any","overtaking":null,"numa":true,"shuffle_reduction":true,"mode":"numa",
            "tune":{}}"#;
        let point: Point = serde_json::from_str(point).expect("a point");
        let outcome = outcome(point.clone(), |_| panic!("number {}", 7));
        assert_eq!(outcome.error.as_deref(), Some("panic: number 7"));
        assert_eq!((outcome.result, outcome.point), (None, point));
    }
}
