//! Locks in the memory models of processors and of the Linux kernel.

use lockworks_check::mutants::Mutants;
use lockworks_check::{
    Change, Check, CheckOutcome, Config, End, Limits, Memory, Order, Variant, Violation,
};

/// Explores a lock in a model: two threads that acquire it twice, or three that acquire it once.
fn explore(lock: &str, memory: Memory, threads: usize) -> CheckOutcome {
    explore_variant(lock, None, memory, threads)
}

fn explore_variant(
    lock: &str,
    variant: Option<Variant>,
    memory: Memory,
    threads: usize,
) -> CheckOutcome {
    let mut config = Config::new(lock);
    config.variant = variant;
    config.memory = memory;
    config.threads = threads;
    config.acquisitions = if threads == 2 { 2 } else { 1 };
    let check = Check::new(&config, None).expect("there is such a lock");
    check.run(&Limits::NONE, &mut |_| {})
}

#[test]
fn locks_of_the_kernel_keep_their_promises_in_its_model_and_on_arm() {
    for lock in ["ticket", "mcs", "qspinlock", "cna", "hq"] {
        for memory in [Memory::Arm, Memory::Lkmm] {
            for threads in [2, 3] {
                let outcome = explore(lock, memory, threads);
                assert_eq!(outcome.end, End::Kept, "{lock} {threads} {memory}");
            }
        }
    }
    assert_eq!(explore("pv", Memory::Lkmm, 2).end, End::Kept);
}

/// Where a thread could go on with more operations than a window has, the search says so. A loop of loads
/// that leads nowhere new is no such place.
#[test]
fn a_search_says_where_it_ends_short_of_what_threads_may_delay() {
    let is_bounded = |lock, memory| explore(lock, memory, 2).coverage.delays_cut;
    for memory in [Memory::Sc, Memory::C11] {
        assert!(!is_bounded("cna", memory), "{memory}");
    }
    for memory in [Memory::Tso, Memory::Arm, Memory::Lkmm] {
        assert!(!is_bounded("tas", memory), "{memory}");
    }
    assert!(is_bounded("cna", Memory::Arm));
}

#[test]
fn locks_keep_their_promises_on_other_machines() {
    for lock in ["ticket", "mcs", "qspinlock", "cna", "hq", "pv", "unfair"] {
        let outcome = explore(lock, Memory::Tso, 2);
        assert_eq!(outcome.end, End::Kept, "{lock} tso");
    }
    for lock in ["ticket", "mcs", "qspinlock", "cna"] {
        assert_eq!(explore(lock, Memory::Tso, 3).end, End::Kept, "{lock} tso");
        let outcome = explore(lock, Memory::Riscv, 2);
        assert_eq!(outcome.end, End::Kept, "{lock} riscv");
    }
}

/// The published finding (arXiv 2111.15240): before Linux 6.3 a read-modify-write between a release and
/// an acquire broke the chain. ARM and the model since keep it.
#[test]
fn queued_locks_had_a_data_race_in_the_older_model() {
    for lock in ["qspinlock", "cna", "hq"] {
        let outcome = explore(lock, Memory::Lkmm62, 3);
        let End::Broken(broken) = outcome.end else {
            panic!("{lock}: {:?}", outcome.end);
        };
        assert!(
            matches!(broken.violation, Violation::DataRace { .. }),
            "{lock}: {:?}",
            broken.violation
        );
    }
}

/// The orders of Linux' queued spinlock, and of CNA's series, suffice in Linux' model and on ARM. In C11
/// they do not, since an address that was read orders nothing there.
#[test]
fn the_orders_of_linux_suffice_where_addresses_order() {
    for name in ["linux-qspinlock", "linux-cna13"] {
        let variant = Variant::named(name).unwrap();
        let explore = |memory, threads| {
            let variant = Some(variant.clone());
            explore_variant(
                &variant.as_ref().unwrap().lock.clone(),
                variant,
                memory,
                threads,
            )
            .end
        };
        for (memory, threads) in [
            (Memory::Arm, 2),
            (Memory::Arm, 3),
            (Memory::Lkmm, 2),
            (Memory::Lkmm, 3),
        ] {
            // Takes minutes: it stores much into its nodes, and any store may be late on ARM.
            if (name, memory, threads) != ("linux-cna13", Memory::Arm, 2) {
                let end = explore(memory, threads);
                assert_eq!(end, End::Kept, "{name} {threads} {memory}");
            }
        }
        assert!(matches!(explore(Memory::C11, 2), End::Broken(_)), "{name}");
        assert!(
            matches!(explore(Memory::Lkmm62, 3), End::Broken(_)),
            "{name}"
        );
    }
}

/// Weaker orders that C11 does not forgive are found on ARM and in Linux' model, too, unless a
/// dependency takes their place: the address of the next waiter.
#[test]
fn weak_orders_are_found_in_all_models() {
    let list = Mutants::all().unwrap();
    let weakened = list.mutants.iter().filter(|mutant| {
        let at = mutant.at.as_deref().unwrap_or_default();
        ["tas", "ticket", "mcs", "qspinlock"].contains(&mutant.lock.as_str())
            && mutant.mutation.change == Change::Order(Order::Relaxed)
            && mutant.equivalent.is_none()
            && !at.ends_with("->next")
    });
    let mut missed = Vec::new();
    let mut tried = 0;
    for mutant in weakened {
        for memory in [Memory::C11, Memory::Arm, Memory::Riscv, Memory::Lkmm] {
            let is_caught = mutant.configurations.iter().any(|config| {
                let mut config = config.clone();
                config.memory = memory;
                let runs = config.threads * config.acquisitions as usize;
                let limits = Limits {
                    states: Some(100_000),
                    ..Limits::NONE
                };
                let check = Check::new(&config, Some(mutant.mutation)).unwrap();
                runs <= 4 && matches!(check.run(&limits, &mut |_| {}).end, End::Broken(_))
            });
            if !is_caught {
                missed.push(format!("{}: {mutant} in {memory}", mutant.lock));
            }
        }
        tried += 1;
    }
    assert!(missed.is_empty(), "{missed:#?}");
    assert!(tried >= 10, "{tried}");
}
