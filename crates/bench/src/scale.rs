//! The length of a run: the number of rounds, and the amount that each round measures.

/// The numbers of rounds of a run, and the length of each measurement.
pub struct Scale {
    /// Rounds without contention. Each measures every lock.
    pub rounds: usize,
    /// Bursts of each lock in such a round. The fastest one counts.
    pub bursts: usize,
    /// Acquisitions in a burst without contention.
    pub burst_operations: u64,
    /// Rounds with contention.
    pub rounds_contended: usize,
    /// Milliseconds of a burst with contention.
    pub contended_ms: u64,
    /// Rounds with more threads than CPUs.
    pub rounds_oversubscribed: usize,
    /// Milliseconds of a burst with more threads than CPUs.
    pub oversubscribed_ms: u64,
    /// Runs of each simulation.
    pub rounds_simulator: usize,
    /// Virtual milliseconds of a simulation.
    pub simulated_ms: f64,
    /// Runs of each check.
    pub rounds_checker: usize,
    /// The most threads that a check may have.
    pub checked_threads: usize,
    /// Rounds of the programs. Each runs every program under every lock.
    pub rounds_programs: usize,
}

/// The scale of a run with meaningful figures.
pub const FULL: Scale = Scale {
    rounds: 15,
    bursts: 7,
    burst_operations: 100_000,
    rounds_contended: 75,
    contended_ms: 3,
    rounds_oversubscribed: 5,
    oversubscribed_ms: 200,
    rounds_simulator: 5,
    simulated_ms: 20.0,
    rounds_checker: 3,
    checked_threads: usize::MAX,
    rounds_programs: 3,
};

/// The scale of a run that only tests that everything works, in a few seconds.
pub const QUICK: Scale = Scale {
    rounds: 1,
    bursts: 1,
    burst_operations: 10_000,
    rounds_contended: 1,
    contended_ms: 2,
    rounds_oversubscribed: 1,
    oversubscribed_ms: 5,
    rounds_simulator: 1,
    simulated_ms: 1.0,
    rounds_checker: 1,
    checked_threads: 2,
    rounds_programs: 1,
};
