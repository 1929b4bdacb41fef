//! Requirements: the least ratios of Lockworks' locks to other locks.

use serde::Serialize;

use crate::tables::ratio;

/// A ratio between two locks that must be reached.
#[derive(Clone, Debug, Serialize)]
pub struct Requirement {
    /// The lock of Lockworks that must be fast enough.
    pub lock: &'static str,
    /// The lock that it is compared with.
    pub than: &'static str,
    /// The least ratio.
    limit: f64,
    /// Whether the ratio must be above the limit, not only reach it.
    above: bool,
    /// The measured ratio. `None` if one of the two locks was not measured.
    ratio: Option<f64>,
    met: Option<bool>,
}

impl Requirement {
    /// Requires that `lock` reaches `limit` times the speed of `than`.
    pub fn at_least(lock: &'static str, than: &'static str, limit: f64) -> Self {
        Self {
            lock,
            than,
            limit,
            above: false,
            ratio: None,
            met: None,
        }
    }

    /// Requires that `lock` is faster than `than`.
    pub fn ahead(lock: &'static str, than: &'static str) -> Self {
        Self {
            above: true,
            ..Self::at_least(lock, than, 1.0)
        }
    }

    /// Compares the ratio with the limit. The ratio is `None` if one of the locks was not measured.
    pub fn judge(&mut self, ratio: Option<f64>) {
        self.ratio = ratio;
        self.met = ratio.map(|ratio| {
            if self.above {
                ratio > self.limit
            } else {
                ratio >= self.limit
            }
        });
    }

    fn verdict(&self) -> &'static str {
        match self.met {
            Some(true) => "met",
            Some(false) => "NOT MET",
            None => "not measured",
        }
    }

    /// The text about this requirement in the row of `lock`. `None` if it belongs to another row.
    pub fn text_for(&self, lock: &str) -> Option<String> {
        let ratio = self.ratio.map_or("-".to_string(), ratio);
        let verdict = self.verdict();
        if self.above && self.than == lock {
            Some(format!("{} {ratio}x: {verdict}", self.lock))
        } else if !self.above && self.lock == lock {
            Some(format!(">= {} {}: {verdict}", self.limit, self.than))
        } else {
            None
        }
    }

    /// The outcome: `Ok` if the requirement is met, `Err` with a sentence if it is not. `None` if it
    /// was not measured.
    pub fn outcome(&self, section: &str) -> Option<Result<(), String>> {
        Some(if self.met? {
            Ok(())
        } else {
            Err(format!(
                "{section}: {} is {} of {}, not {}{}",
                self.lock,
                self.ratio.map_or(String::new(), ratio),
                self.than,
                if self.above { "above " } else { "at least " },
                self.limit,
            ))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::Requirement;

    #[test]
    fn requirements_are_judged() {
        let mut least = Requirement::at_least("a", "b", 0.95);
        least.judge(Some(0.95));
        assert_eq!(least.met, Some(true));
        let mut ahead = Requirement::ahead("a", "b");
        ahead.judge(Some(1.0));
        assert_eq!(ahead.met, Some(false));
        assert_eq!(
            ahead.outcome("s"),
            Some(Err("s: a is 1.00 of b, not above 1".to_owned()))
        );
        ahead.judge(None);
        assert_eq!(ahead.outcome("s"), None);
        assert_eq!((ahead.met, ahead.verdict()), (None, "not measured"));
    }
}
