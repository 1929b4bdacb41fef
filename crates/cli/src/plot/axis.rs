//! The axis of thread counts.

use std::ops::Range;

use plotters::coord::ranged1d::{DefaultFormatting, KeyPointHint, Ranged};

use super::panel::Panel;

/// The least distance between two labels, in pixels.
const LABEL_GAP: f64 = 24.0;

/// An axis of thread counts on which every doubling has the same length.
pub struct ThreadAxis {
    /// All thread counts of the panel, increasing.
    threads: Vec<usize>,
    /// The least distance between two labels, in doublings.
    label_gap: f64,
}

impl ThreadAxis {
    /// The axis of a panel, `width` pixels long.
    pub fn new(panel: &Panel, width: f64) -> Self {
        let points = panel.series.iter().flat_map(|series| &series.points);
        let mut threads: Vec<usize> = points.map(|point| point.threads).collect();
        threads.sort_unstable();
        threads.dedup();
        let mut axis = Self {
            threads,
            label_gap: 0.0,
        };
        let (start, end) = axis.ends();
        axis.label_gap = LABEL_GAP / width * (end - start);
        axis
    }

    /// The ends of the axis, a little beyond the first and last thread count, in doublings.
    fn ends(&self) -> (f64, f64) {
        let Range { start, end } = self.range();
        let (start, end) = ((start as f64).log2(), (end as f64).log2());
        let more = 0.04 * (end - start) + 0.1;
        (start - more, end + more)
    }
}

impl Ranged for ThreadAxis {
    type FormatOption = DefaultFormatting;
    type ValueType = usize;

    fn map(&self, threads: &usize, limit: (i32, i32)) -> i32 {
        let (start, end) = self.ends();
        let along = ((*threads as f64).log2() - start) / (end - start);
        limit.0 + (f64::from(limit.1 - limit.0) * along).round() as i32
    }

    /// The greatest thread count, then those below it that have room for a label.
    fn key_points<Hint: KeyPointHint>(&self, hint: Hint) -> Vec<usize> {
        let mut labelled: Vec<usize> = Vec::new();
        if hint.weight().allow_light_points() {
            return labelled;
        }
        for &threads in self.threads.iter().rev() {
            let has_room =
                |&above: &usize| (above as f64).log2() - (threads as f64).log2() >= self.label_gap;
            if labelled.last().is_none_or(has_room) {
                labelled.push(threads);
            }
        }
        labelled
    }

    fn range(&self) -> Range<usize> {
        let first = self.threads.first().copied().unwrap_or(1);
        first..self.threads.last().copied().unwrap_or(1)
    }
}

#[cfg(test)]
mod tests {
    use plotters::coord::ranged1d::BoldPoints;

    use super::*;
    use crate::plot::panel::{Point, Series};

    #[test]
    fn labels_keep_their_distance() {
        let point = |threads| Point {
            threads,
            throughput: 1.0,
            spread: None,
            fairness: None,
        };
        let panel = Panel {
            title: String::new(),
            unit: String::new(),
            series: vec![Series {
                name: "cna".to_owned(),
                points: [1, 2, 142].map(point).to_vec(),
            }],
        };
        let mut axis = ThreadAxis::new(&panel, 350.0);
        assert_eq!(axis.key_points(BoldPoints(9)), [142, 2, 1]);
        axis.label_gap = 2.0;
        assert_eq!(axis.key_points(BoldPoints(9)), [142, 2]);
    }
}
