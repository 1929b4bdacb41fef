//! Tests of the machine: its guarantees to simulated code, and the times that code can measure.

mod sharing;

use lockworks_machine::Machine;

use super::*;
use crate::parameters::Parameters;

const NS: u64 = 1000;

/// The steps of a CPU: work for a time (ns), then perform the operation.
type Program = Vec<(u64, Op)>;

/// The result of an operation, and the time at which its CPU went on.
type Outcome = (u64, u64);

fn engine(machine: &str, machine_cpus: &[usize]) -> Engine {
    let machine = Machine::find(machine).expect("a built-in machine");
    let model = Model::new(&machine, machine_cpus.to_vec(), &Parameters::default());
    Engine::new(model, 1_000_000 * NS, 1)
}

/// Runs one program on each CPU. At the end of a fence, a thread that lazy preemption has marked gives
/// way, as where a system call returns.
fn run(engine: &mut Engine, programs: &[Program]) -> Vec<Vec<Outcome>> {
    let mut outcomes = vec![Vec::new(); programs.len()];
    let mut issued = vec![0; programs.len()];
    engine.advance();
    while let Step::Resume(c) = engine.next {
        if issued[c] > outcomes[c].len() {
            outcomes[c].push((engine.result(), engine.time()));
        }
        loop {
            let Some(&(work, mut op)) = programs[c].get(issued[c]) else {
                engine.finish_current();
                break;
            };
            if op.kind == Kind::Fence && engine.gives_way_after_call() {
                op.kind = Kind::Sleep;
            }
            issued[c] += 1;
            engine.work(work * NS);
            let Some(result) = engine.issue(op) else {
                break;
            };
            outcomes[c].push((result, engine.time()));
        }
    }
    outcomes
}

fn op(kind: Kind, address: usize, a: u64) -> Op {
    Op {
        a,
        ..Op::new(kind, address, 4)
    }
}

fn await_value(address: usize, value: u64) -> Op {
    Op {
        a: u64::MAX,
        b: value,
        ..Op::new(Kind::Await, address, 4)
    }
}

#[test]
fn additions_of_many_cpus_never_get_lost() {
    let machine_cpus: Vec<usize> = (0..72).step_by(9).collect();
    let mut engine = engine("oracle-x5-4", &machine_cpus);
    let counter = engine.allocate("counter", 4, 0);
    let programs = vec![vec![(7, op(Kind::Add, counter, 1)); 50]; machine_cpus.len()];
    let mut seen: Vec<u64> = run(&mut engine, &programs)
        .iter()
        .flatten()
        .map(|&(old, _)| old)
        .collect();
    seen.sort_unstable();
    let all: Vec<u64> = (0..50 * machine_cpus.len() as u64).collect();
    assert_eq!(seen, all, "each addition sees another old value");
}

/// On CPU 16, an efficient core, the same count of cycles takes longer than on CPU 0.
#[test]
fn a_core_type_has_times_of_its_own() {
    let mut engine = engine("core-i9-14900k", &[0, 16]);
    let lines = [0, 1].map(|_| engine.allocate("line", 4, 0));
    let again = |line| vec![(0, op(Kind::Add, line, 1)), (1000, op(Kind::Add, line, 1))];
    let outcomes = run(&mut engine, &lines.map(again));
    let model = engine.model();
    let [fast, slow] = [0, 1].map(|c| *model.core_of(c));
    assert_eq!((fast.rmw, slow.rmw), (3571, 4545));
    assert!(fast.look < slow.look && fast.spin_exit < slow.spin_exit);
    for (outcomes, core) in outcomes.iter().zip([fast, slow]) {
        // The second addition finds its line, after a microsecond of work.
        assert_eq!(outcomes[1].1 - outcomes[0].1, 1000 * NS + core.rmw);
    }
    // The figure of 38 ns contains the compare-and-swap of the one or of the other.
    assert_eq!(model.transfer(0, 1, 0), 38 * NS - (3571 + 4545) / 2);
}

/// The times at which CPUs read a line that CPU 0 and another have shared before.
fn reads_of_a_shared_line(readers: &[usize]) -> Vec<u64> {
    let machine_cpus = [&[0, 2], readers].concat();
    let mut engine = engine("oracle-x5-4", &machine_cpus);
    engine.fabric.model.transfer_spread = 0;
    let address = engine.allocate("line", 4, 0);
    let load = op(Kind::Load, address, 0);
    let mut programs = vec![vec![(0, op(Kind::Exchange, address, 1))], vec![(500, load)]];
    programs.extend(readers.iter().map(|_| vec![(1000, load)]));
    let outcomes = run(&mut engine, &programs);
    outcomes[2..].iter().map(|of| of[0].1 - 1000 * NS).collect()
}

#[test]
fn reads_of_a_shared_line_follow_one_another() {
    let times = reads_of_a_shared_line(&[4, 6, 8, 10]);
    // Half of the 50 cycles of the last-level cache, at 2.6 GHz.
    let answer = picoseconds_of_cycles(25.0);
    for pair in times.windows(2) {
        assert!(pair[1].abs_diff(pair[0] + answer) <= 1, "{times:?}");
    }
}

#[test]
fn cpus_of_a_core_read_a_shared_line_once() {
    let times = reads_of_a_shared_line(&[4, 5, 6]);
    let l1 = picoseconds_of_cycles(4.0);
    assert!(times[1].abs_diff(times[0] + l1) <= 1, "{times:?}");
    assert_eq!(times[2], reads_of_a_shared_line(&[4, 6])[1]);
    // CPU 1 is on the core of CPU 0, which has the line.
    assert!(reads_of_a_shared_line(&[1])[0] < reads_of_a_shared_line(&[4])[0] / 2);
}

fn picoseconds_of_cycles(cycles: f64) -> u64 {
    (cycles / 2.6 * 1000.0).round() as u64
}

#[test]
fn exclusive_transactions_of_a_line_follow_one_another() {
    let mut engine = engine("oracle-x5-4", &[0, 20, 40]);
    let line = engine.allocate("line", 4, 0);
    let programs = vec![vec![(0, op(Kind::Exchange, line, 1)); 20]; 3];
    let transfer = engine
        .model()
        .transfer(0, 1, 0)
        .min(engine.model().transfer(1, 2, 0));
    let mut owners: Vec<(u64, usize)> = run(&mut engine, &programs)
        .iter()
        .enumerate()
        .flat_map(|(c, outcomes)| outcomes.iter().map(move |&(_, at)| (at, c)))
        .collect();
    owners.sort_unstable();
    for pair in owners.windows(2).filter(|pair| pair[0].1 != pair[1].1) {
        // The request overlaps with the former owner's work; the transfer of the data does not.
        assert!(pair[1].0 - pair[0].0 > transfer / 3, "{owners:?}");
    }
}

/// The data that a reader finds after it has waited for a flag; the writer writes the data before
/// the flag. The reader has a copy of the data, whose invalidation takes longer than the flag's
/// arrival.
fn message_passing(machine: &str, far: usize, release: bool, head_start: u64) -> u64 {
    let mut engine = engine(machine, &[0, 1, far]);
    let flag = engine.allocate("flag", 4, 0);
    let data = engine.allocate("data", 4, 0);
    let set_flag = Op {
        release,
        ..op(Kind::Store, flag, 1)
    };
    let writer = vec![(3000 + head_start, op(Kind::Store, data, 1)), (0, set_flag)];
    let reader = vec![
        (1000, op(Kind::Load, data, 0)),
        (0, await_value(flag, 1)),
        (0, op(Kind::Load, data, 0)),
    ];
    let other_sharer = vec![(0, op(Kind::Load, data, 0))];
    run(&mut engine, &[writer, reader, other_sharer])[1][2].0
}

#[test]
fn total_store_order_keeps_messages_in_order() {
    for head_start in (0..100).step_by(7) {
        for far in [20, 71] {
            assert_eq!(message_passing("oracle-x5-4", far, false, head_start), 1);
        }
    }
}

#[test]
fn weak_order_reorders_messages_unless_they_release() {
    let stale = |release| {
        (0..100)
            .step_by(7)
            .any(|head_start| message_passing("kunpeng-920", 95, release, head_start) == 0)
    };
    assert!(stale(false));
    assert!(!stale(true));
}

#[test]
fn a_load_takes_its_value_from_the_store_before_it() {
    let mut engine = engine("oracle-x5-4", &[0, 40]);
    let line = engine.allocate("line", 64, 0);
    let owner = vec![(0, op(Kind::Exchange, line, 0x1111))];
    let narrow = Op::new(Kind::Load, line + 1, 1);
    let wide = Op::new(Kind::Load, line, 8);
    let user = vec![
        (2000, op(Kind::Store, line, 0xabcd)),
        (0, op(Kind::Load, line, 0)),
        (0, narrow),
        (0, wide),
    ];
    let outcomes = &run(&mut engine, &[owner, user])[1];
    let values: Vec<u64> = outcomes.iter().map(|o| o.0).collect();
    assert_eq!(values[1..], [0xabcd, 0xab, 0xabcd]);
    assert!(outcomes[2].1 < 2010 * NS, "forwarded: {outcomes:?}");
    assert!(outcomes[3].1 > 2050 * NS, "not all of it is in the store");
}

#[test]
fn a_read_modify_write_waits_for_earlier_stores() {
    let mut engine = engine("oracle-x5-4", &[0, 40]);
    let far = engine.allocate("far", 4, 0);
    let near = engine.allocate("near", 4, 0);
    let owner = vec![(0, op(Kind::Exchange, far, 0))];
    let user = vec![
        (0, op(Kind::Exchange, near, 0)),
        (2000, op(Kind::Store, far, 1)),
        (0, op(Kind::Load, near, 0)),
        (0, op(Kind::Add, near, 1)),
    ];
    let outcomes = &run(&mut engine, &[owner, user])[1];
    assert!(outcomes[2].1 < outcomes[1].1 + 10 * NS);
    assert!(outcomes[3].1 > outcomes[1].1 + 50 * NS);
}

#[test]
fn a_bounded_wait_times_out() {
    let mut engine = engine("oracle-x5-4", &[0]);
    let word = engine.allocate("word", 4, 0);
    let bounded = Op {
        polls: 100,
        ..await_value(word, 1)
    };
    let look = engine.model().core(0).look;
    let outcomes = run(&mut engine, &[vec![(0, bounded), (0, bounded)]]);
    let (value, first) = outcomes[0][0];
    let (_, second) = outcomes[0][1];
    assert_eq!(value, 0);
    let waited = second - first;
    assert!((100 * look..110 * look).contains(&waited), "{waited} ps");
}

#[test]
fn a_timeout_ends_no_other_wait() {
    let mut engine = engine("oracle-x5-4", &[0, 1]);
    let word = engine.allocate("word", 4, 0);
    let satisfied = Op {
        polls: 100,
        ..await_value(word, 0)
    };
    let waiter = vec![
        (0, op(Kind::Load, word, 0)),
        (0, satisfied),
        (0, await_value(word, 1)),
    ];
    let writer = vec![(9000, op(Kind::Store, word, 1))];
    let outcomes = run(&mut engine, &[waiter, writer]);
    assert_eq!(outcomes[0][2].0, 1);
    assert!(outcomes[0][2].1 > 9000 * NS);
}

#[test]
fn waits_that_nothing_can_end_are_a_deadlock() {
    let mut engine = engine("oracle-x5-4", &[0, 40, 41]);
    let word = engine.allocate("word", 64, 0);
    let programs = [
        vec![(0, await_value(word, 1))],
        vec![(0, op(Kind::Park, word + 8, 0))],
        vec![],
    ];
    run(&mut engine, &programs);
    assert!(engine.next == Step::Deadlock);
    let cpus = engine.describe_cpus();
    assert!(
        cpus[0].ends_with(
            "Waiting, awaits (word+0 & 0xffffffffffffffff) == 0x1, sees 0x0, 0 buffered"
        ),
        "{}",
        cpus[0]
    );
    assert!(
        cpus[1].contains("Parked, Park of word+8 = 0x0"),
        "{}",
        cpus[1]
    );
    assert!(cpus[2].ends_with("finished"), "{}", cpus[2]);
}

#[test]
fn all_programs_finished_is_the_end() {
    let mut engine = engine("oracle-x5-4", &[0, 1]);
    run(&mut engine, &[vec![], vec![]]);
    assert!(engine.next == Step::End);
}

#[test]
fn virtual_time_ends() {
    let mut engine = engine("oracle-x5-4", &[0]);
    let word = engine.allocate("word", 4, 0);
    run(&mut engine, &[vec![(999_999, op(Kind::Load, word, 0)); 9]]);
    assert!(engine.next == Step::End);
}

#[test]
fn unpark_wakes_as_many_as_it_is_asked_to() {
    let mut engine = engine("oracle-x5-4", &[0, 1, 2, 3]);
    let word = engine.allocate("word", 4, 0);
    let sleeper = vec![(0, op(Kind::Park, word, 0))];
    let waker = vec![
        (9000, op(Kind::Unpark, word, 2)),
        (9000, op(Kind::Unpark, word, 2)),
        (0, op(Kind::Park, word, 5)),
    ];
    let times = engine.model().thread_times;
    let latency = times.wake_latency + times.enter;
    let programs = [sleeper.clone(), sleeper.clone(), sleeper, waker];
    let outcomes = run(&mut engine, &programs);
    let woken: Vec<u64> = outcomes[3].iter().map(|o| o.0).collect();
    assert_eq!(woken[..2], [2, 1]);
    assert_eq!(outcomes[3].len(), 3, "another value is no reason to sleep");
    let mut wakes: Vec<u64> = outcomes[..3].iter().map(|o| o[0].1).collect();
    wakes.sort_unstable();
    assert_eq!(wakes[0], wakes[1]);
    assert_eq!(wakes[0], 9000 * NS + latency);
    assert!(wakes[2] > wakes[1]);
}

#[test]
#[should_panic(expected = "access outside simulated memory")]
fn no_access_leaves_simulated_memory() {
    let mut engine = engine("oracle-x5-4", &[0]);
    engine.allocate("word", 4, 0);
    run(&mut engine, &[vec![(0, op(Kind::Load, 64, 0))]]);
}

#[test]
fn parts_of_a_word_are_read_and_written_alone() {
    let mut line = Line::new(0, 0, 1);
    let start = line::start_of(0);
    line.write(start + 8, 8, 0x8877_6655_4433_2211);
    assert_eq!(line.read(start + 8, 1), 0x11);
    assert_eq!(line.read(start + 14, 2), 0x8877);
    line.write(start + 10, 2, 0xffff_abcd);
    assert_eq!(line.read(start + 8, 8), 0x8877_6655_abcd_2211);
    assert_eq!(line.read(start + 12, 4), 0x8877_6655);
}
