//! Advice from throughputs. A lock is better than another only if their ranges do not overlap.

use lockworks_experiments::PublishedTable;

use super::throughput::{Throughput, find};
use crate::figures::scaled;

/// A lock to choose from.
#[derive(Clone, Copy, Debug)]
pub struct Candidate {
    /// The name of the lock.
    pub lock: &'static str,
    /// Whether the lock bounds how long a waiter is passed over.
    pub bounds_waiting: bool,
    /// Whether waiters park.
    pub parks: bool,
    /// Whether programs use this lock already. Another lock must then be better to be advised.
    pub is_incumbent: bool,
}

/// The lock to choose, and the locks that are not known to be worse.
struct Choice<'a> {
    chosen: &'a Throughput,
    equals: Vec<&'a str>,
}

impl Choice<'_> {
    /// The locks that are as good, as the end of a sentence.
    fn equals(&self) -> String {
        match self.equals.as_slice() {
            [] => String::new(),
            [one] => format!("; {one} is as good, within the noise"),
            [some @ .., last] => {
                format!(
                    "; {} and {last} are as good, within the noise",
                    some.join(", ")
                )
            }
        }
    }
}

/// The best of some locks with a number of threads. Of locks that the noise does not tell from the
/// best, the incumbent is chosen.
fn choose<'a>(
    figures: &'a [Throughput],
    threads: usize,
    candidates: impl Iterator<Item = &'a Candidate>,
) -> Option<Choice<'a>> {
    let figures: Vec<(&Candidate, &Throughput)> = candidates
        .filter_map(|candidate| Some((candidate, find(figures, candidate.lock, threads)?)))
        .collect();
    let (_, best) = figures
        .iter()
        .max_by(|(_, a), (_, b)| a.median.total_cmp(&b.median))?;
    let good: Vec<_> = figures
        .iter()
        .filter(|(_, figure)| figure.overlaps(best))
        .collect();
    let incumbent = good.iter().find(|(candidate, _)| candidate.is_incumbent);
    let chosen = incumbent.map_or(best, |(_, figure)| figure);
    let others = good.iter().filter(|(_, figure)| figure.lock != chosen.lock);
    Some(Choice {
        chosen,
        equals: others.map(|(_, figure)| figure.lock.as_str()).collect(),
    })
}

/// The range of a measured figure.
fn range(figure: &Throughput) -> String {
    format!("{}..{}/s", scaled(figure.low), scaled(figure.high))
}

/// The advice for this machine, from measurements.
pub fn here(figures: &[Throughput], candidates: &[Candidate], cpus: usize) -> String {
    let threads = || figures.iter().map(|figure| figure.threads);
    let within = threads()
        .filter(|&threads| threads <= cpus)
        .max()
        .unwrap_or(1);
    let most = threads().max().unwrap_or(1);
    let mut sentences = Vec::new();

    if let Some(choice) = choose(figures, within, candidates.iter()) {
        let lock = &choice.chosen.lock;
        let is_incumbent = candidates.iter().any(|c| c.is_incumbent && c.lock == lock);
        sentences.push(format!(
            "With {within} threads on these {cpus} CPUs, {} {lock} ({}){}.",
            if is_incumbent { "keep" } else { "take" },
            range(choice.chosen),
            choice.equals()
        ));
    }
    let bounded = || {
        candidates
            .iter()
            .filter(|candidate| candidate.bounds_waiting)
    };
    let bounded = choose(figures, within, bounded());
    if let Some(choice) = &bounded {
        sentences.push(format!(
            "Where waiting must be bounded, take {} ({}){}.",
            choice.chosen.lock,
            range(choice.chosen),
            choice.equals()
        ));
    }
    let parking = candidates.iter().filter(|candidate| candidate.parks);
    if most > cpus
        && let Some(choice) = choose(figures, most, parking)
    {
        sentences.push(format!(
            "Once threads outnumber CPUs, take a lock whose waiters park: with {most} threads, {} \
             ({}){}.",
            choice.chosen.lock,
            range(choice.chosen),
            choice.equals()
        ));
        sentences.extend(faster_spinning(figures, candidates, choice.chosen));
        sentences.extend(bounded.and_then(|choice| collapse(figures, most, choice.chosen)));
    }
    sentences.join(" ")
}

/// The reason why spinning locks are not advised although the table shows them ahead.
fn faster_spinning(
    figures: &[Throughput],
    candidates: &[Candidate],
    chosen: &Throughput,
) -> Option<String> {
    let spinning = candidates.iter().filter(|candidate| !candidate.parks);
    let figures = spinning.filter_map(|candidate| find(figures, candidate.lock, chosen.threads));
    let faster: Vec<&str> = figures
        .filter(|figure| figure.low > chosen.high)
        .map(|figure| figure.lock.as_str())
        .collect();
    (!faster.is_empty()).then(|| {
        format!(
            "The table has {} ahead of it there, but waiters that spin take CPU time from threads \
             that would do something else.",
            faster.join(", ")
        )
    })
}

/// A sentence on how far the lock falls once threads outnumber CPUs. None: it does not fall.
fn collapse(figures: &[Throughput], most: usize, within: &Throughput) -> Option<String> {
    let beyond = find(figures, &within.lock, most)?;
    (beyond.high < within.low).then(|| format!("{} falls to {} there.", within.lock, range(beyond)))
}

/// The advice for the machine of the published table, from a simulation of these locks.
pub fn there(
    simulated: &[Throughput],
    published: &[Throughput],
    table: &PublishedTable,
    locks: &[&'static str],
) -> String {
    let candidates: Vec<Candidate> = locks
        .iter()
        .map(|&lock| Candidate {
            lock,
            bounds_waiting: true,
            parks: false,
            is_incumbent: lock == table.lock(table.baseline()),
        })
        .collect();
    let points = table.points();
    let most = points.iter().copied().max().unwrap_or(1);
    let stock = table.lock(table.baseline());
    let Some(choice) = choose(simulated, most, candidates.iter()) else {
        return String::new();
    };
    let chosen = &choice.chosen.lock;
    let mut text = format!(
        "On the simulated {}, of locks whose waiting is bounded, {} {chosen} with {most} threads{}.",
        table.machine(),
        if chosen == stock { "keep" } else { "take" },
        choice.equals()
    );
    let gain = |figures: &[Throughput], lock: &str| {
        let rate = |lock| find(figures, lock, most).map(|figure| figure.median);
        Some(rate(lock)? / rate(stock)?)
    };
    if chosen != stock {
        let is_ahead = |threads: usize| {
            let of = |lock| find(simulated, lock, threads);
            of(chosen)
                .zip(of(stock))
                .is_some_and(|(a, b)| a.low > b.high)
        };
        let from = points
            .iter()
            .copied()
            .find(|&n| points.iter().all(|&m| m < n || is_ahead(m)));
        if let (Some(from), Some(gain)) = (from, gain(simulated, chosen)) {
            text.push_str(&format!(
                " It is ahead of {stock} from {from} threads on, at {most} by {gain:.2} times"
            ));
            if let Some(fairness) = choice.chosen.fairness {
                text.push_str(&format!(", for a fairness factor of {fairness:.2}"));
            }
            text.push('.');
        }
    }
    let headline = table.lock(table.headline());
    if let Some((simulated, published)) = gain(simulated, headline).zip(gain(published, headline)) {
        text.push_str(&format!(
            " The gain of {headline} over {stock} is {simulated:.2} simulated and {published:.2} \
             published."
        ));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn candidate(lock: &'static str, bounds_waiting: bool, parks: bool) -> Candidate {
        Candidate {
            lock,
            bounds_waiting,
            parks,
            is_incumbent: false,
        }
    }

    const CANDIDATES: [Candidate; 5] = [
        Candidate {
            is_incumbent: true,
            ..candidate("pthread_mutex", false, true)
        },
        candidate("tas", false, false),
        candidate("qspinlock", true, false),
        candidate("mutex", false, true),
        candidate("pv", false, true),
    ];

    /// Lock, threads, and the range in millions of operations a second.
    fn figures(all: &[(&str, usize, f64, f64)]) -> Vec<Throughput> {
        let figures = all.iter().map(|&(lock, threads, low, high)| Throughput {
            lock: lock.to_owned(),
            threads,
            median: 1e6 * (low + high) / 2.0,
            low: 1e6 * low,
            high: 1e6 * high,
            fairness: None,
        });
        figures.collect()
    }

    #[test]
    fn a_peer_that_is_faster_is_kept() {
        let figures = figures(&[
            ("pthread_mutex", 2, 41.0, 42.0),
            ("tas", 2, 38.0, 39.0),
            ("qspinlock", 2, 20.0, 21.0),
        ]);
        let advice = here(&figures, &CANDIDATES, 2);
        let words = "With 2 threads on these 2 CPUs, keep pthread_mutex (41.0M..42.0M/s). \
                     Where waiting must be bounded, take qspinlock (20.0M..21.0M/s).";
        assert_eq!(advice, words);
    }

    #[test]
    fn locks_whose_ranges_overlap_are_as_good() {
        let measured = figures(&[
            ("pthread_mutex", 2, 30.0, 31.0),
            ("mutex", 2, 40.0, 42.0),
            ("pv", 2, 41.0, 44.0),
            ("tas", 2, 20.0, 39.0),
        ]);
        let advice = here(&measured, &CANDIDATES, 2);
        let words = "take pv (41.0M..44.0M/s); mutex is as good, within the noise.";
        assert!(advice.ends_with(words), "{advice}");

        // Noise that reaches the lock that programs have is no reason to leave it.
        let noisy = figures(&[("pthread_mutex", 2, 30.0, 41.0), ("pv", 2, 40.0, 44.0)]);
        let advice = here(&noisy, &CANDIDATES, 2);
        let words = "keep pthread_mutex (30.0M..41.0M/s); pv is as good, within the noise.";
        assert!(advice.ends_with(words), "{advice}");
    }

    #[test]
    fn with_more_threads_than_cpus_waiters_park() {
        let all = [
            ("qspinlock", 2, 20.0, 21.0),
            ("qspinlock", 8, 0.1, 0.2),
            ("mutex", 8, 30.0, 31.0),
            ("tas", 8, 32.0, 33.0),
        ];
        let advice = here(&figures(&all), &CANDIDATES, 2);
        for words in [
            "with 8 threads, mutex (30.0M..31.0M/s).",
            "The table has tas ahead of it there, but waiters that spin",
            "qspinlock falls to 100k..200k/s there.",
        ] {
            assert!(advice.contains(words), "no {words:?} in {advice}");
        }
        let within_noise = all.map(|(lock, threads, low, high)| {
            let low = if lock == "tas" { 30.5 } else { low };
            (lock, threads, low, high)
        });
        let advice = here(&figures(&within_noise), &CANDIDATES, 2);
        assert!(!advice.contains("tas ahead"), "{advice}");
    }

    #[test]
    fn the_best_simulated_lock_is_advised_not_the_published_one() {
        let table = PublishedTable::find("cna_locktorture")
            .unwrap()
            .expect("a table");
        let simulated = |hq: f64| {
            let points = table.points().into_iter();
            let all: Vec<_> = points
                .flat_map(|threads| {
                    [
                        ("qspinlock", threads, 5.0, 6.0),
                        ("cna", threads, 10.0, 10.5),
                        ("hq", threads, hq, hq + 1.0),
                    ]
                })
                .collect();
            figures(&all)
        };
        let published = figures(&[("qspinlock", 142, 5.0, 5.0), ("cna", 142, 9.0, 9.0)]);
        let locks = ["qspinlock", "cna", "hq"];
        let advice = there(&simulated(11.0), &published, &table, &locks);
        for words in [
            "take hq with 142 threads. It is ahead of qspinlock from 1 threads on, at 142 by 2.09",
            "The gain of cna over qspinlock is 1.86 simulated and 1.80 published.",
        ] {
            assert!(advice.contains(words), "no {words:?} in {advice}");
        }
        let advice = there(&simulated(10.2), &published, &table, &locks);
        let words = "take hq with 142 threads; cna is as good, within the noise.";
        assert!(advice.contains(words), "no {words:?} in {advice}");
        let advice = there(&simulated(1.0), &published, &table, &["qspinlock", "hq"]);
        assert!(
            advice.contains("keep qspinlock with 142 threads."),
            "{advice}"
        );
    }
}
