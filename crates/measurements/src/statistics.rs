//! Medians and ranges of figures that were measured several times.

use serde::Serialize;

/// The middle and the ends of several values.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Range {
    /// The median.
    pub median: f64,
    /// The least.
    pub min: f64,
    /// The greatest.
    pub max: f64,
}

impl Range {
    /// The range of these values. None: there are none.
    pub fn of(values: impl Iterator<Item = f64>) -> Option<Self> {
        let values = sorted(values);
        Some(Self {
            median: median(&values)?,
            min: values[0],
            max: values[values.len() - 1],
        })
    }
}

/// The values in ascending order.
pub fn sorted(values: impl Iterator<Item = f64>) -> Vec<f64> {
    let mut values: Vec<f64> = values.collect();
    values.sort_by(f64::total_cmp);
    values
}

/// The median of sorted values. None: there are none.
pub fn median(values: &[f64]) -> Option<f64> {
    let n = values.len();
    (n > 0).then(|| (values[(n - 1) / 2] + values[n / 2]) / 2.0)
}

#[cfg(test)]
mod tests {
    use super::median;

    #[test]
    fn medians() {
        assert_eq!(median(&[]), None);
        assert_eq!(median(&[1.0, 2.0, 9.0]), Some(2.0));
        assert_eq!(median(&[1.0, 3.0]), Some(2.0));
    }
}
