//! Throughput and fairness of locks by number of threads, as a picture.

use std::path::Path;

use anyhow::Result;

use super::{Panel, Point, Series, figure};
use crate::sim::runs::SimulationRow;
use crate::torture::TortureResults;

/// Draws what torture measured.
pub fn measured(path: &Path, results: &TortureResults) -> Result<()> {
    let machine = &results.machine;
    let title = format!(
        "Measured: {} on {} CPUs",
        machine.model.as_deref().unwrap_or("this machine"),
        machine.cpus
    );
    let points = results.rows.iter().map(|row| {
        let spread = (row.operations_per_second_min, row.operations_per_second_max);
        let rates = (row.operations_per_second, spread);
        (row.lock, point(row.threads, rates, row.fairness))
    });
    draw(path, title, points)
}

/// Draws what was simulated. `title` names the workload and the machine.
pub fn simulated(path: &Path, title: String, rows: &[SimulationRow]) -> Result<()> {
    let points = rows.iter().map(|row| {
        let seeds = row.operations_per_second_by_seed.iter().copied();
        let low = seeds.clone().fold(f64::INFINITY, f64::min);
        let spread = (low, seeds.fold(0.0, f64::max));
        let rates = (row.operations_per_second, spread);
        (row.lock, point(row.threads, rates, row.fairness))
    });
    draw(path, title, points)
}

/// A point in million operations a second, from a rate and its spread.
fn point(threads: usize, rates: (f64, (f64, f64)), fairness: Option<f64>) -> Point {
    let (rate, (low, high)) = rates;
    Point {
        threads,
        throughput: rate / 1e6,
        spread: Some((low / 1e6, high / 1e6)),
        fairness,
    }
}

fn draw(
    path: &Path,
    title: String,
    points: impl Iterator<Item = (&'static str, Point)>,
) -> Result<()> {
    let mut series: Vec<Series> = Vec::new();
    for (lock, point) in points {
        match series.iter_mut().find(|one| one.name == lock) {
            Some(one) => one.points.push(point),
            None => series.push(Series {
                name: lock.to_owned(),
                points: vec![point],
            }),
        }
    }
    let unit = "million operations a second".to_owned();
    figure(
        path,
        &[Panel {
            title,
            unit,
            series,
        }],
    )
}
