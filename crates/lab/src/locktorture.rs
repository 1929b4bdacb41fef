//! The output of the kernel's locktorture module, and the fairness that follows from it.

use serde::Serialize;

/// The results of a session of locktorture.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct TortureFigures {
    /// Acquisitions by all writers.
    pub operations: u64,
    /// Acquisitions by the writer with the most.
    pub max: u64,
    /// Acquisitions by the writer with the fewest.
    pub min: u64,
    /// The number of times that a writer was not alone.
    pub fail: u64,
    /// The end that the module reported.
    pub end: Option<String>,
}

impl TortureFigures {
    /// Reads lines of the kernel's log; `None` if the module reported no figures.
    pub fn read<'a>(lines: impl IntoIterator<Item = &'a str>) -> Option<Self> {
        let mut figures: Option<Self> = None;
        let mut end = None;
        for line in lines {
            if let Some(read) = writes(line) {
                figures = Some(read);
            }
            if let Some((_, rest)) = line.split_once("End of test: ") {
                let word = rest.split([' ', ':']).next();
                end = word.map(str::to_owned);
            }
        }
        figures.map(|figures| Self { end, ..figures })
    }

    /// Whether the session ended successfully, without broken mutual exclusion.
    pub fn is_good(&self) -> bool {
        self.fail == 0 && self.end.as_deref() == Some("SUCCESS")
    }
}

/// Parses a line such as `Writes:  Total: 12  Max/Min: 7/5   Fail: 0`.
fn writes(line: &str) -> Option<TortureFigures> {
    let (_, rest) = line.split_once("Writes:")?;
    let mut words = rest.split_whitespace();
    let mut after = |mark: &str| {
        words.find(|word| *word == mark)?;
        words.next()
    };
    let operations = after("Total:")?.parse().ok()?;
    let (max, min) = after("Max/Min:")?.split_once('/')?;
    let fail = after("Fail:")?;
    Some(TortureFigures {
        operations,
        max: max.parse().ok()?,
        min: min.parse().ok()?,
        fail: fail.parse().ok()?,
        end: None,
    })
}

/// The upper bound of the fairness factor that these figures allow.
///
/// The factor is the share of all operations that the busier half of the writers has: 0.5 is fair, 1
/// unfair. If the number of writers is odd, the middle one counts half to either side. Each writer of
/// the busier half has at most `max` operations, each of the others at least `min`. For two writers
/// the bound is the factor itself.
pub fn fairness_bound(figures: &TortureFigures, writers: u32) -> Option<f64> {
    if figures.operations == 0 || writers == 0 {
        return None;
    }
    let half = f64::from(writers) / 2.0;
    let total = figures.operations as f64;
    let busier = half * figures.max as f64 / total;
    let others = half * figures.min as f64 / total;
    Some(busier.min(1.0 - others).clamp(0.5, 1.0))
}

#[cfg(test)]
mod tests {
    use super::*;

    pub(super) const GOOD: [&str; 3] = [
        "[    9.1] spin_lock-torture:--- Start of test [debug]: nwriters_stress=8",
        "[   19.2] Writes:  Total: 1000  Max/Min: 150/100   Fail: 0 ",
        "[   19.2] spin_lock-torture:--- End of test: SUCCESS [debug]: nwriters_stress=8",
    ];

    #[test]
    fn reads_what_the_module_prints() {
        let figures = TortureFigures::read(GOOD).unwrap();
        assert_eq!(
            figures,
            TortureFigures {
                operations: 1000,
                max: 150,
                min: 100,
                fail: 0,
                end: Some("SUCCESS".into())
            }
        );
        assert!(figures.is_good());
        assert_eq!(TortureFigures::read(GOOD.into_iter().take(1)), None);
    }

    #[test]
    fn tells_good_ends_from_others() {
        let read = |line: &str, end: &str| {
            TortureFigures::read(["Writes:  Total: 9  Max/Min: 6/3 ???  Fail: 0 ", line, end])
                .unwrap()
        };
        assert!(read("", "x-torture:--- End of test: SUCCESS: a=1").is_good());
        for end in ["FAILURE", "LOCK_HOTPLUG", "RCU_HOTPLUG"] {
            assert!(!read("", &format!("x-torture:--- End of test: {end}: a=1")).is_good());
        }
        assert!(!read("", "").is_good(), "it has not ended");
        let fails = read(
            "Writes:  Total: 9  Max/Min: 6/3   Fail: 4 !!!",
            "x-torture:--- End of test: SUCCESS: a=1",
        );
        assert_eq!(fails.fail, 4);
        assert!(!fails.is_good());
    }

    fn bound(writers: u32, operations: u64, max: u64, min: u64) -> Option<f64> {
        let figures = TortureFigures {
            operations,
            max,
            min,
            ..TortureFigures::default()
        };
        fairness_bound(&figures, writers)
    }

    #[test]
    fn bounds_the_fairness_factor() {
        assert_eq!(bound(1, 10, 10, 10), Some(0.5));
        assert_eq!(bound(2, 10, 7, 3), Some(0.7));
        assert_eq!(bound(8, 800, 100, 100), Some(0.5));
        // 150 150 100 100: both bounds are exact.
        assert_eq!(bound(4, 500, 150, 100), Some(0.6));
        // 2.5 * 30 of 100, against 1 - 2.5 * 10 of 100.
        assert_eq!(bound(5, 100, 30, 10), Some(0.75));
        assert_eq!(bound(4, 100, 100, 0), Some(1.0));
        assert_eq!(bound(4, 0, 0, 0), None);
    }
}

#[cfg(test)]
mod properties {
    use lockworks_properties::nearly;
    use proptest::prelude::*;

    use super::tests::GOOD;
    use super::*;

    proptest! {
        #[test]
        fn figures_are_read_as_they_were_printed(numbers in any::<[u64; 4]>(), unfair: bool) {
            let [operations, max, min, fail] = numbers;
            let line = format!(
                "[   19.2] Writes:  Total: {operations}  Max/Min: {max}/{min} {}  Fail: {fail} {}",
                if unfair { "???" } else { "" },
                if fail == 0 { "" } else { "!!!" },
            );
            let expected = TortureFigures { operations, max, min, fail, end: None };
            prop_assert_eq!(TortureFigures::read([&*line]), Some(expected));
        }

        /// Changed figures are other figures or none, and a session without an end is not good.
        #[test]
        fn changed_figures_are_refused_or_read(line in nearly(vec![GOOD[1]], 3), writers: u32) {
            if let Some(figures) = TortureFigures::read(line.lines()) {
                prop_assert!(!figures.is_good());
                let bound = fairness_bound(&figures, writers);
                prop_assert!(bound.is_none_or(|bound| (0.5..=1.0).contains(&bound)), "{bound:?}");
            }
        }
    }
}
