//! Tests of runners that share CPUs.

use super::*;
use crate::engine::SharingCounts;

const US: u64 = 1000 * NS;
const MS: u64 = 1000 * US;

/// An engine with runners on the CPUs 0, 1, ... of a machine: a guest's virtual CPUs, or threads.
fn shared(runners: usize, cpus: usize, guest: bool, settings: &[(&str, f64)]) -> Engine {
    let machine = Machine::find("haswell-ex-4").expect("a built-in machine");
    let mut parameters = Parameters::default();
    for (key, value) in settings {
        parameters.parameter_mut(key).expect("a parameter").value = *value;
    }
    let places: Vec<usize> = (0..cpus).collect();
    let model = Model::new(
        &machine,
        (0..runners).map(|r| places[r % cpus]).collect(),
        &parameters,
    );
    let mut engine = Engine::new(model, 200 * MS, 1);
    engine.share(places, guest.then_some(1), false);
    engine
}

fn counts(engine: &Engine) -> SharingCounts {
    engine.sharing_counts().expect("CPUs are shared")
}

fn spin(address: usize, value: u64) -> (u64, Op) {
    (0, await_value(address, value))
}

/// A load without effect, for programs that only compute.
fn touch(word: usize) -> Op {
    op(Kind::Load, word, 0)
}

#[test]
fn runners_of_one_cpu_take_turns_and_lose_no_work() {
    let mut engine = shared(2, 1, false, &[]);
    let words = [0, 1].map(|_| engine.allocate("word", 4, 0));
    let work = |word| vec![(30_000_000, touch(word))];
    let outcomes = run(&mut engine, &[work(words[0]), work(words[1])]);
    let mut ends: Vec<u64> = outcomes.iter().map(|o| o[0].1).collect();
    ends.sort_unstable();
    assert!(ends[0] > 45 * MS, "they take turns: {ends:?}");
    assert!(
        (60 * MS..61 * MS).contains(&ends[1]),
        "no work is lost: {ends:?}"
    );
    let counts = counts(&engine);
    assert!((2..20).contains(&counts.preemptions), "{counts:?}");
    assert!((50 * MS..61 * MS).contains(&counts.steal), "{counts:?}");
}

#[test]
fn a_runner_that_sleeps_gives_its_cpu_to_another() {
    let mut engine = shared(2, 1, false, &[]);
    let word = engine.allocate("word", 4, 0);
    let sleeps = vec![(0, op(Kind::Sleep, 0, 20 * MS)), (0, touch(word))];
    let works = vec![(40_000_000, touch(word))];
    let outcomes = run(&mut engine, &[sleeps, works]);
    assert!(outcomes[0][1].1 < 42 * MS, "{outcomes:?}");
    assert!(outcomes[1][0].1 < 42 * MS, "{outcomes:?}");
}

#[test]
fn a_kick_costs_the_kicker_and_takes_its_time() {
    let mut engine = shared(2, 2, true, &[]);
    let word = engine.allocate("word", 4, 0);
    let halts = vec![(0, op(Kind::Park, word, 0))];
    let kicks = vec![(500_000, op(Kind::Unpark, word, 1)), (0, touch(word))];
    let outcomes = run(&mut engine, &[halts, kicks]);
    let kicked = outcomes[1][0].1 - 7_400 * NS;
    let woken = outcomes[0][0].1 - kicked;
    assert!((63_500 * NS..63_700 * NS).contains(&woken), "{woken}");
    let counts = counts(&engine);
    assert_eq!((counts.halts, counts.kicks), (1, 1));
}

/// Wake-up costs that are easy to tell apart.
const COSTS: [(&str, f64); 4] = [
    ("wake_cost_ns", 5_000.0),
    ("wake_latency_ns", 9_000.0),
    ("wake_busy_cost_ns", 1_000.0),
    ("switch_ns", 800.0),
];

/// The time that a wake-up takes of the waker, and the time until the sleeper runs. Thread 0 sleeps after
/// `first` and thread 1 wakes it after so many nanoseconds more; a third does `third` on the CPU of
/// thread 0.
fn thread_wake_up_beside(
    first: &[(u64, Op)],
    third: &[Program],
    after: u64,
    scheduler: &[(&str, f64)],
) -> (u64, u64) {
    let threads = 2 + third.len();
    let mut engine = shared(threads, 2, false, &[&COSTS[..], scheduler].concat());
    let words: Vec<usize> = (0..threads)
        .map(|_| engine.allocate("word", 4, 0))
        .collect();
    let sleeps = [first, &[(20_000, op(Kind::Park, words[0], 0))]].concat();
    let wakes = vec![
        (20_000 + after, op(Kind::Add, words[1], 1)),
        (0, op(Kind::Unpark, words[0], 1)),
        (100_000_000, touch(words[1])),
    ];
    let outcomes = run(&mut engine, &[&[sleeps, wakes], third].concat());
    let [began, ended] = [outcomes[1][0].1, outcomes[1][1].1];
    (ended - began, outcomes[0][first.len()].1 - began)
}

fn thread_wake_up(threads: usize, after: u64, wakeup_granularity_us: f64) -> (u64, u64) {
    let cfs = [
        ("eevdf", 0.0),
        ("scheduler_granularity_us", 300_000.0),
        ("wakeup_granularity_us", wakeup_granularity_us),
    ];
    let computes = vec![vec![(100_000_000, op(Kind::Fence, 0, 0))]; threads - 2];
    thread_wake_up_beside(&[], &computes, after, &cfs)
}

#[test]
fn a_wake_up_costs_what_the_sleepers_cpu_makes_it_cost() {
    let near = |(cost, latency): (u64, u64), costs: u64, takes: u64| {
        let differ = |a: u64, b: u64| a.abs_diff(b * NS) > 200 * NS;
        assert!(
            !differ(cost, costs) && !differ(latency, takes),
            "{cost} and {latency}, not {costs} and {takes}"
        );
    };
    // Its CPU is idle.
    near(thread_wake_up(2, 2_000, 0.0), 5_000, 9_000);
    // It has not left its CPU yet.
    near(thread_wake_up(2, 300, 0.0), 1_000, 1_400);
    // It preempts the thread of its CPU: an interrupt and a switch.
    near(thread_wake_up(3, 2_000, 0.0), 5_000, 5_800);
    // It has to wait for the thread of its CPU.
    let (cost, latency) = thread_wake_up(3, 2_000, 1e6);
    assert!(cost < 1_200 * NS && latency > 10 * MS, "{cost} {latency}");
}

#[test]
fn with_lazy_preemption_a_wake_up_interrupts_nobody() {
    let wake_up = |lazy: f64, call_ns: u64| {
        // It lacks time when it sleeps, since the other has run meanwhile.
        let naps = [(0, op(Kind::Sleep, 0, 100 * US))];
        let calls = vec![(call_ns, op(Kind::Fence, 0, 0)); 100_000_000 / call_ns as usize];
        let lazy = [("lazy_preemption", lazy)];
        let (cost, latency) = thread_wake_up_beside(&naps, &[calls], 20_200_000, &lazy);
        (cost / NS, latency / NS)
    };
    // Before: an interrupt and a switch.
    let (cost, latency) = wake_up(0.0, 100_000_000);
    assert!(
        cost.abs_diff(5_000) < 200 && latency.abs_diff(5_800) < 200,
        "{cost} {latency}"
    );
    // At the next tick.
    let (cost, latency) = wake_up(1.0, 100_000_000);
    assert!(
        cost.abs_diff(1_000) < 200 && (50_000..1_001_000).contains(&latency),
        "{cost} {latency}"
    );
    // Where the next system call returns.
    let (cost, soon) = wake_up(1.0, 20_000);
    assert!(
        cost.abs_diff(1_000) < 200 && (1_800..45_000).contains(&soon),
        "{cost} {soon}"
    );
}

#[test]
fn a_halted_runner_is_polled_for_after_short_halts() {
    let nap = |ms: f64| {
        let mut engine = shared(1, 1, true, &[("halt_poll_most_us", ms * 1000.0)]);
        let naps = vec![(0, op(Kind::Sleep, 0, 25 * US)); 8];
        run(&mut engine, &[naps]);
        counts(&engine).polls_successful
    };
    // The poll is 10 us at first, 20 after the first halt, and 40 after the second.
    assert_eq!(nap(0.2), 6);
    assert_eq!(nap(0.0), 0);
}

/// The time at which a spinner sees the write of another runner. Both share the guest's one CPU.
fn spinner_sees(window_cycles: f64) -> (u64, SharingCounts) {
    let window = ("pause_window_cycles", window_cycles);
    // EEVDF lets no runner go first that has had more than its share.
    let mut engine = shared(2, 1, true, &[window, ("eevdf", 0.0)]);
    let word = engine.allocate("word", 4, 0);
    // Two turns, so that the spinner certainly gets one turn after the other runner.
    let sets = vec![
        (20_000_000, touch(word)),
        (1_000, op(Kind::Exchange, word, 1)),
        (40_000_000, touch(word)),
    ];
    let outcomes = run(&mut engine, &[vec![spin(word, 1)], sets]);
    (outcomes[0][0].1, counts(&engine))
}

#[test]
fn a_spinner_in_a_guest_yields_to_a_runner_that_waits_for_a_cpu() {
    let (with, counts) = spinner_sees(4096.0);
    assert!(
        counts.pause_exits > 0 && counts.directed_yields > 0,
        "{counts:?}"
    );
    let (without, counts) = spinner_sees(0.0);
    assert_eq!((counts.pause_exits, counts.directed_yields), (0, 0));
    assert!(with + 5 * MS < without, "{with} {without}");
}

#[test]
fn a_bounded_wait_counts_only_time_with_a_cpu() {
    let mut engine = shared(2, 1, false, &[]);
    let words = [0, 1].map(|_| engine.allocate("word", 4, 0));
    let look = engine.model().core(0).look;
    let polls = (20 * MS / look) as u32;
    let bounded = Op {
        polls,
        ..await_value(words[0], 1)
    };
    let works = vec![(40_000_000, touch(words[1]))];
    let outcomes = run(&mut engine, &[vec![(0, bounded)], works]);
    let end = outcomes[0][0].1;
    assert!((30 * MS..50 * MS).contains(&end), "{end}");
}

#[test]
fn runners_that_nothing_can_wake_are_a_deadlock() {
    for guest in [false, true] {
        let mut engine = shared(3, 1, guest, &[]);
        let word = engine.allocate("word", 4, 0);
        let programs = [
            vec![spin(word, 1)],
            vec![spin(word, 2)],
            vec![(0, op(Kind::Park, word, 0))],
        ];
        run(&mut engine, &programs);
        assert!(engine.next == Step::Deadlock);
    }
    let mut engine = shared(2, 1, false, &[("base_slice_us", 300_000.0)]);
    let word = engine.allocate("word", 4, 0);
    let programs = [vec![spin(word, 1)], vec![(0, op(Kind::Exchange, word, 1))]];
    run(&mut engine, &programs);
    assert!(
        engine.next == Step::End,
        "the other has not had its turn yet"
    );
}

#[test]
fn idle_cpus_take_waiting_runners() {
    // Two runners that end at once leave two CPUs to the four others.
    let mut engine = shared(6, 4, false, &[]);
    let words: Vec<usize> = (0..6).map(|_| engine.allocate("word", 4, 0)).collect();
    let programs: Vec<Program> = words
        .iter()
        .enumerate()
        .map(|(r, &word)| vec![(if r == 2 || r == 3 { 0 } else { 60_000_000 }, touch(word))])
        .collect();
    let outcomes = run(&mut engine, &programs);
    assert!(outcomes.iter().all(|o| o[0].1 < 62 * MS), "{outcomes:?}");
    assert_eq!(counts(&engine).migrations, 2);
}

#[test]
fn only_pauses_close_to_each_other_are_a_loop_that_exits() {
    let exits = |nanoseconds_apart| {
        let mut engine = shared(1, 1, true, &[]);
        let pauses = vec![(nanoseconds_apart, op(Kind::Pause, 0, 0)); 2000];
        run(&mut engine, &[pauses]);
        counts(&engine).pause_exits
    };
    // A pause takes 15 cycles. The window doubles, so exits are at 4096, 12288 and 28672 cycles.
    assert_eq!(exits(0), 3);
    // The gap is 128 cycles of 0.5 ns.
    assert!(exits(50) > 3);
    assert_eq!(exits(60), 0);
}
