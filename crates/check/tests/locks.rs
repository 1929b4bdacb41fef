//! Every lock, in the configurations that its proof consists of.

use std::collections::BTreeSet;

use lockworks::{Setting, Tunable};
use lockworks_check::mutants::configurations;
use lockworks_check::{
    COND, Check, CheckOutcome, Config, ConfigError, End, Event, Limits, Memory, Mode, Site, Time,
    lock_types,
};

fn run(config: &Config) -> CheckOutcome {
    Check::new(config, None)
        .expect("a lock and sizes that there are")
        .run(&Limits::NONE, &mut |_| {})
}

/// A configuration, from that of two threads that acquire twice in weak memory.
fn config(lock: &str, change: impl FnOnce(&mut Config)) -> Config {
    let mut config = Config::new(lock);
    change(&mut config);
    config
}

/// Checks all `configs`. Returns the operations that were never done, of the functions in which some
/// operation was done.
fn keeps(configs: &[Config]) -> Vec<String> {
    keeps_and_counts(configs).0
}

/// Checks all `configs` as `keeps` does. Also returns the events that the lock has counted.
fn keeps_and_counts(configs: &[Config]) -> (Vec<String>, BTreeSet<Event>) {
    let mut covered = vec![false; Site::all().len()];
    let mut events = BTreeSet::new();
    for config in configs {
        let outcome = run(config);
        assert_eq!(outcome.end, End::Kept, "{config}");
        assert!(outcome.is_complete(), "{config}");
        for (all, now) in covered.iter_mut().zip(&outcome.covered) {
            *all |= now;
        }
        events.extend(outcome.events);
    }
    let entered: BTreeSet<_> = Site::all()
        .iter()
        .filter(|site| covered[site.number()])
        .map(|site| (site.file(), site.function()))
        .collect();
    let missing = Site::all()
        .iter()
        .filter(|site| !covered[site.number()])
        .filter(|site| entered.contains(&(site.file(), site.function())))
        .map(|site| format!("{}: {site}", site.function()))
        .collect();
    (missing, events)
}

/// The configurations that every lock has to pass.
fn common(lock: &str) -> Vec<Config> {
    let is_numa_aware = lock_types().any(|known| known.name() == lock && known.is_numa_aware());
    let nodes = if is_numa_aware { 2 } else { 1 };
    vec![
        config(lock, |c| c.nodes = nodes),
        config(lock, |c| {
            c.nodes = nodes;
            c.threads = 3;
        }),
        config(lock, |c| {
            c.nodes = nodes;
            c.threads = 3;
            c.trylock = true;
        }),
        config(lock, |c| {
            c.nodes = nodes;
            c.threads = 4;
            c.memory = Memory::Sc;
        }),
        config(lock, |c| {
            c.nodes = nodes;
            c.nesting = 1;
        }),
        config(lock, |c| {
            c.nodes = nodes;
            c.nesting = 1;
            c.trylock = true;
        }),
        config(lock, |c| {
            c.nodes = nodes;
            c.nesting = 2;
            c.acquisitions = 1;
        }),
    ]
}

/// A fork: a waiter may find that the one before it is not there.
fn forks(lock: &'static str) -> Config {
    config(lock, |c| {
        c.fork = true;
        c.memory = Memory::Sc;
    })
}

/// Operations that the child of a fork needs only for locks whose queue heads park.
const ONLY_PARKED: [&str; 2] = [
    "lw_forked_empty_parked_heads: fetch_and lock->val",
    "lw_forked_empty_parked_heads: store entry->lock",
];

#[test]
fn test_and_set() {
    assert_eq!(keeps(&common("tas")), [""; 0]);
}

#[test]
fn byte() {
    assert_eq!(keeps(&common("byte")), [""; 0]);
}

#[test]
fn ticket() {
    let mut configs = common("ticket");
    configs.push(config("ticket", |c| {
        c.threads = 3;
        c.bypass = Some(0);
    }));
    assert_eq!(keeps(&configs), [""; 0]);
}

#[test]
fn mcs() {
    let mut configs = common("mcs");
    configs.push(config("mcs", |c| {
        c.threads = 3;
        c.bypass = Some(0);
    }));
    assert_eq!(keeps(&configs), [""; 0]);
}

#[test]
fn queued_spinlock() {
    let mut configs = common("qspinlock");
    configs.push(config("qspinlock", |c| {
        c.threads = 3;
        c.bypass = Some(0);
    }));
    configs.push(config("qspinlock", |c| {
        c.threads = 3;
        c.acquisitions = 1;
        c.nesting = 1;
    }));
    configs.push(forks("qspinlock"));
    assert_eq!(keeps(&configs), ONLY_PARKED);
}

/// The configurations of both forms of CNA.
fn cna_with(lock: &str) -> Vec<Config> {
    let three = |change: fn(&mut Config)| {
        config(lock, |c| {
            c.threads = 3;
            c.nodes = 2;
            change(c);
        })
    };
    let mut configs = common(lock);
    configs.extend([
        three(|c| c.nodes = 3),
        three(|c| c.tunables.shuffle_reduction = false),
        three(|c| c.tunables.numa_aware = false),
        three(|c| c.time = Time::Early),
        three(|c| c.time = Time::Late),
        three(|c| {
            c.priority = vec![1];
            c.bypass = Some(0);
        }),
        three(|c| c.priority = vec![0, 2]),
    ]);
    configs
}

#[test]
fn cna() {
    let mut configs = cna_with("cna");
    configs.push(forks("cna"));
    assert_eq!(keeps(&configs), ONLY_PARKED);
}

#[test]
#[ignore = "wide"]
fn cna_as_it_was_published() {
    assert_eq!(keeps(&cna_with("cna13")), [""; 0]);
}

/// A configuration of threads on two nodes that acquire an HQ-spinlock twice, one operation after
/// another.
fn hq(threads: usize, change: impl FnOnce(&mut Config)) -> Config {
    config("hq", |c| {
        c.threads = threads;
        c.nodes = 2;
        c.memory = Memory::Sc;
        change(c);
    })
}

fn set(config: &mut Config, settings: &[(&str, u64)]) {
    let settings: Vec<Setting> = settings
        .iter()
        .map(|(name, value)| {
            let tunable = Tunable::find(name).expect("a tunable");
            Setting::new(tunable, *value).expect("one of its values")
        })
        .collect();
    config.tunables = config.tunables.with(&settings);
}

/// Hand-offs that are never exceeded, and a share of remote ones that is never reached.
const NEVER: u64 = 1000;

#[test]
fn hq_spinlock() {
    let weak = |c: &mut Config| c.memory = Memory::C11;
    let configs = [
        hq(2, weak),
        hq(2, |c| {
            weak(c);
            c.trylock = true;
        }),
        hq(2, |c| {
            weak(c);
            c.nesting = 1;
        }),
        // Turns that are long enough for a waiter in the middle.
        hq(3, |c| {
            c.nodes = 1;
            set(c, &[("hqlock_fairness_threshold", 2)]);
        }),
        hq(3, |c| c.nodes = 3),
        hq(3, |c| c.trylock = true),
        hq(3, |c| c.tunables.numa_aware = false),
        hq(3, |c| set(c, &[("hqlock_fairness_threshold", 0)])),
        // Begins and ceases to queue by NUMA node at every opportunity.
        hq(3, |c| {
            c.mode = Mode::Plain;
            set(
                c,
                &[
                    ("hqlock_remote_handoffs_keep_numa", NEVER),
                    ("hqlock_probability_of_force_stay_numa", 0),
                ],
            );
        }),
        // Stays in either mode.
        hq(3, |c| set(c, &[("hqlock_remote_handoffs_keep_numa", 0)])),
        hq(3, |c| {
            c.mode = Mode::Plain;
            set(c, &[("hqlock_general_handoffs_turn_numa", NEVER)]);
        }),
        hq(4, |c| c.locks = 2),
        forks("hq"),
    ];
    let (missing, events) = keeps_and_counts(&configs);
    assert_eq!(missing, ONLY_PARKED);
    let counted = |name: &str, queued: bool| {
        let here = |e: &Event| e.name == name && if queued { e.queued } else { e.empty };
        assert!(events.iter().any(here), "{name}, queued: {queued}");
    };
    for name in [
        "node_queues_taken",
        "node_queues_released",
        "node_queue_conflicts",
        "numa_mode_entered",
        "numa_mode_left",
    ] {
        counted(name, true);
        counted(name, false);
    }
    for name in ["local_handoffs", "remote_handoffs", "fairness_handoffs"] {
        counted(name, true);
    }
}

#[test]
#[ignore = "wide"]
fn hq_spinlock_of_three_threads_in_weak_memory() {
    keeps(&[hq(3, |c| c.memory = Memory::C11)]);
}

/// A search of three threads found this in both queued locks, when only t0 had a slot:
///
/// ```text
/// t0  head of the queue, waits until                       (t0,0,0)
/// t2  read the word before t0 queued; fetch_or             (t0,1,0)
/// t0  cmpxchg to (0,0,1) fails, so t0 expects a successor
/// t0  sets locked, waits for its next                      (t0,1,1)
/// t2  clears the pending bit again                         (t0,0,1)
/// t2  has no node to queue with, tries until the word is 0
/// ```
///
/// All threads then wait for ever. The queue head now reads the tail again.
#[test]
fn a_pending_bit_that_comes_and_goes_strands_nobody() {
    for (lock, nodes) in [("qspinlock", 1), ("cna", 2), ("hq", 2)] {
        let configs = [0, 1, 2].map(|slots| {
            config(lock, |c| {
                c.threads = 3;
                c.nodes = nodes;
                c.slots = Some(slots);
            })
        });
        // These do not cover all operations: threads without a slot do too few of them.
        keeps(&configs);
    }
}

/// The configurations that every lock whose waiters park has to pass. Such a lock has more states
/// than a lock that spins: parked waiters may wake, and interruptions arrive, at any moment.
fn halting(lock: &str) -> Vec<Config> {
    let small = |change: fn(&mut Config)| config(lock, change);
    let mut configs = vec![
        small(|_| {}),
        small(|c| c.split_release = true),
        small(|c| c.trylock = true),
        small(|c| c.slots = Some(0)),
        small(|c| c.slots = Some(1)),
        // The heads of both locks are in the same table.
        small(|c| c.locks = 2),
        small(|c| set(c, &[("pv_latencies", 1)])),
        three_once(lock, |_| {}),
    ];
    configs.extend([false, true].map(|trylock| {
        config(lock, |c| {
            c.acquisitions = 1;
            c.nesting = 1;
            c.spurious = 0;
            c.trylock = trylock;
        })
    }));
    configs
}

/// Configurations in which waits are cancelled: with queue nodes, without them, and with the release
/// of user space.
fn cancelled(lock: &str) -> [Config; 3] {
    [(None, false), (Some(0), false), (None, true)].map(|(slots, split)| {
        config(lock, |c| {
            c.cancel = true;
            c.slots = slots;
            c.split_release = split;
        })
    })
}

fn three_once(lock: &str, change: impl FnOnce(&mut Config)) -> Config {
    config(lock, |c| {
        c.threads = 3;
        c.acquisitions = 1;
        change(c);
    })
}

/// The same configuration without spurious wake-ups, and so with fewer states.
fn three_kicked(lock: &str, settings: &[(&str, u64)]) -> Config {
    three_once(lock, |c| {
        c.spurious = 0;
        set(c, settings);
    })
}

/// Fails unless all events in `names` were counted.
#[track_caller]
fn assert_counted(events: &BTreeSet<Event>, names: &[&str]) {
    for name in names {
        assert!(events.iter().any(|event| event.name == *name), "{name}");
    }
}

#[track_caller]
fn assert_never_counted(events: &BTreeSet<Event>, names: &[&str]) {
    for name in names {
        assert!(events.iter().all(|event| event.name != *name), "{name}");
    }
}

#[test]
fn paravirt_ticket_lock() {
    // The slots of the waiters of two locks have the same contents.
    let mut configs = halting("pvticket");
    configs.push(three_once("pvticket", |c| c.bypass = Some(0)));
    let (missing, events) = keeps_and_counts(&configs);
    assert_eq!(missing, [""; 0]);
    assert_counted(&events, &["halts_in_queue", "kicks_at_unlock"]);
}

#[test]
fn paravirt_spinlock_of_linux_4_2() {
    let (_, events) = keeps_and_counts(&halting("pv42"));
    assert_counted(
        &events,
        &[
            "nodeless_acquisitions",
            "halts_at_head",
            "halts_in_queue",
            "kicks_at_unlock",
            "kicks_at_handoff",
            "spurious_wakeups",
            "wakeups",
        ],
    );
    let improvements = ["steals_on_arrival", "pending_acquisitions", "halts_early"];
    assert_never_counted(&events, &improvements);
    let fifo = config("pv42", |c| {
        c.threads = 3;
        c.acquisitions = 1;
        c.bypass = Some(0);
    });
    keeps(&[fifo]);
}

#[test]
fn paravirt_spinlock() {
    let mut configs = halting("pv");
    configs.extend(cancelled("pv"));
    configs.extend([
        config("pv", |c| {
            c.cancel = true;
            set(c, &[("pv_steal", 0)]);
        }),
        config("pv", |c| set(c, &[("pv_arrival_spin", 1)])),
        three_kicked("pv", &[("pv_arrival_spin", 1)]),
        forks("pv"),
    ]);
    let (missing, events) = keeps_and_counts(&configs);
    assert_eq!(missing, [""; 0]);
    assert_counted(
        &events,
        &[
            "pending_acquisitions",
            "nodeless_acquisitions",
            "steals_on_arrival",
            "halts_at_head",
            "halts_in_queue",
            "halts_early",
            "kicks_at_unlock",
            "kicks_ahead",
            "spurious_wakeups",
            "waits_cancelled",
            "wakeups",
        ],
    );
}

#[test]
fn three_threads_release_as_in_user_space() {
    let three = |lock| three_once(lock, |c| c.split_release = true);
    keeps(&[three("pv42"), three("unfair")]);
}

#[test]
fn each_improvement_of_the_paravirt_spinlock_can_be_switched_off() {
    let without = |setting: &str| {
        let configs = [three_kicked("pv", &[(setting, 0)])];
        keeps_and_counts(&configs).1
    };
    let kicked_early = without("pv_kick_at_unlock");
    assert_counted(&kicked_early, &["kicks_at_handoff"]);
    assert_never_counted(&without("pv_kick_ahead"), &["kicks_ahead"]);
    assert_never_counted(&without("pv_wait_early"), &["halts_early"]);
    assert_never_counted(&without("pv_pending"), &["pending_acquisitions"]);
    assert_never_counted(&without("pv_steal"), &["steals_on_arrival"]);
    let all = [
        "pv_kick_at_unlock",
        "pv_kick_ahead",
        "pv_wait_early",
        "pv_pending",
        "pv_steal",
    ];
    keeps(&[three_kicked("pv", &all.map(|name| (name, 0)))]);
}

#[test]
fn a_paravirt_spinlock_kicks_two_waiters_ahead() {
    let four = config("pv", |c| {
        c.threads = 4;
        c.acquisitions = 1;
        c.memory = Memory::Sc;
        c.spurious = 0;
        set(c, &[("pv_kick_ahead", 2), ("pv_pending", 0)]);
    });
    let (_, events) = keeps_and_counts(&[four, three_kicked("pv", &[("pv_kick_ahead", 2)])]);
    assert_counted(&events, &["kicks_ahead"]);
}

#[test]
fn waits_for_a_paravirt_spinlock_are_cancelled_in_every_place() {
    let waits_cancelled = three_once("pv", |c| {
        c.cancel = true;
        c.spurious = 0;
    });
    let (_, events) = keeps_and_counts(&[waits_cancelled]);
    let waits_cancelled = |e: &Event| e.name == "waits_cancelled" && e.queued && e.empty;
    assert!(events.iter().any(waits_cancelled));
}

#[test]
fn queued_unfair_lock() {
    let spins = |c: &mut Config| set(c, &[("unfair_park", 0)]);
    let mut configs = halting("unfair");
    configs.extend([
        config("unfair", spins),
        three_kicked("unfair", &[("unfair_park", 0), ("unfair_arrival_spin", 1)]),
        // As in a kernel, where no waiter parks or abandons its node.
        config("unfair", |c| {
            spins(c);
            c.never_park = true;
        }),
        three_once("unfair", |c| {
            set(c, &[("unfair_park", 0), ("unfair_arrival_spin", 1)]);
            c.never_park = true;
        }),
        config("unfair", |c| {
            c.threads = 3;
            c.memory = Memory::Sc;
            spins(c);
        }),
        three_once("unfair", |c| c.cancel = true),
        // A waiter with a predecessor and a successor leaves the queue.
        config("unfair", |c| {
            c.threads = 4;
            c.acquisitions = 1;
            c.memory = Memory::Sc;
            c.spurious = 0;
        }),
    ]);
    configs.extend(cancelled("unfair"));
    configs.push(config("unfair", |c| {
        c.cancel = true;
        set(c, &[("unfair_starvation_limit", 0)]);
    }));
    configs.push(forks("unfair"));
    let (missing, events) = keeps_and_counts(&configs);
    assert_eq!(missing, [""; 0]);
    assert_counted(
        &events,
        &[
            "nodeless_acquisitions",
            "steals_on_arrival",
            "steals_behind_head",
            "halts_at_head",
            "halts_in_queue",
            "kicks_at_unlock",
            "spurious_wakeups",
            "waits_cancelled",
            "wakeups",
        ],
    );
    assert_never_counted(&events, &["halts_early", "kicks_ahead"]);
}

const RETAKES: [(&str, u64); 1] = [("mutex_trials", 1)];

#[test]
fn mutex() {
    let two = |change: fn(&mut Config)| config("mutex", change);
    // Three threads that may park have too many states in weak memory.
    let three = |nodes, change: fn(&mut Config)| {
        three_once("mutex", |c| {
            c.memory = Memory::Sc;
            c.nodes = nodes;
            change(c);
        })
    };
    let mut configs = vec![
        two(|c| c.nodes = 2),
        two(|c| c.split_release = true),
        two(|c| c.trylock = true),
        two(|c| c.slots = Some(0)),
        two(|c| c.slots = Some(1)),
        // The heads of both locks are in the same table, and their waiters share node queues.
        two(|c| {
            c.locks = 2;
            c.nodes = 2;
        }),
        two(|c| c.spurious = 2),
        three(1, |_| {}),
        three(2, |_| {}),
        three(3, |_| {}),
        three(1, |c| c.split_release = true),
        three(1, |c| c.cancel = true),
        three(2, |c| c.tunables.numa_aware = false),
    ];
    // An interruption before any operation.
    configs.push(config("mutex", |c| {
        c.acquisitions = 1;
        c.nesting = 1;
        c.spurious = 0;
    }));
    configs.extend(cancelled("mutex"));
    configs.extend(mutex_that_never_parks());
    configs.push(Config {
        threads: 3,
        acquisitions: 1,
        nodes: 1,
        ..forks("mutex")
    });
    let (missing, events) = keeps_and_counts(&configs);
    assert_eq!(missing, [""; 0]);
    assert_counted(
        &events,
        &[
            "pending_acquisitions",
            "nodeless_acquisitions",
            "steals_on_arrival",
            "retakes",
            "node_queues_taken",
            "node_queues_released",
            "node_queue_conflicts",
            "local_handoffs",
            "halts_at_head",
            "halts_in_queue",
            "kicks_at_unlock",
            "kicks_at_handoff",
            "spurious_wakeups",
            "waits_cancelled",
        ],
    );
}

#[test]
#[ignore = "wide"]
fn mutex_in_its_largest_configurations() {
    keeps(&[config("mutex", |c| {
        c.acquisitions = 1;
        c.nesting = 1;
        c.spurious = 0;
        c.memory = Memory::Sc;
        c.trylock = true;
    })]);
}

/// The configurations of the mutex in kernels.
fn mutex_that_never_parks() -> Vec<Config> {
    let three = |change: fn(&mut Config)| {
        config("mutex", |c| {
            c.threads = 3;
            c.nodes = 2;
            c.never_park = true;
            change(c);
        })
    };
    vec![
        three(|c| c.threads = 2),
        three(|c| {
            c.threads = 2;
            c.trylock = true;
        }),
        three(|c| {
            c.threads = 2;
            c.acquisitions = 1;
            c.nesting = 1;
        }),
        three(|c| c.acquisitions = 1),
        three(|c| {
            c.acquisitions = 1;
            c.nodes = 3;
        }),
        three(|c| c.memory = Memory::Sc),
        three(|c| {
            c.acquisitions = 1;
            c.slots = Some(1);
        }),
        three(|c| {
            c.acquisitions = 1;
            set(c, &RETAKES);
        }),
        // The last holder retakes the mutex until a waiter sets STARVED.
        three(|c| {
            c.threads = 2;
            c.acquisitions = 3;
            set(c, &RETAKES);
        }),
        three(|c| {
            c.memory = Memory::Sc;
            c.locks = 2;
        }),
        three(|c| {
            c.threads = 4;
            c.acquisitions = 1;
            c.memory = Memory::Sc;
        }),
        // Nobody passes a waiter that queues, if nobody comes twice.
        three(|c| {
            c.acquisitions = 1;
            c.nodes = 1;
            c.bypass = Some(0);
        }),
    ]
}

#[test]
fn a_mutex_that_never_parks_has_no_wait_limit_and_no_split_release() {
    let refused = |change: fn(&mut Config)| {
        let config = config("mutex", |c| {
            c.never_park = true;
            change(c);
        });
        config.validate().unwrap_err()
    };
    assert_eq!(refused(|c| c.cancel = true), ConfigError::CancelNeverPark);
    assert_eq!(
        refused(|c| c.split_release = true),
        ConfigError::SplitNeverPark
    );
}

fn condition_variables() -> Vec<Config> {
    let of = |change: &dyn Fn(&mut Config)| config(COND, change);
    vec![
        of(&|_| {}),
        of(&|c| c.cancel = true),
        of(&|c| c.split_release = true),
        of(&|c| {
            c.threads = 3;
            c.memory = Memory::Sc;
        }),
    ]
}

#[test]
fn condition_variable() {
    keeps(&condition_variables());
}

/// Some operations are done only where two of three threads wait and cancel.
#[test]
#[ignore = "wide"]
fn all_of_a_condition_variable() {
    let mut configs = condition_variables();
    configs.push(config(COND, |c| {
        c.threads = 3;
        c.memory = Memory::Sc;
        c.cancel = true;
        c.spurious = 0;
    }));
    let (missing, _) = keeps_and_counts(&configs);
    let of_cond = |site: &String| site.starts_with("lw_cond_");
    assert_eq!(missing.into_iter().filter(of_cond).count(), 0);
}

#[test]
fn mutex_of_linux_3_7_and_with_read_first() {
    for lock in ["mutex37", "mutex310"] {
        let small = |change: fn(&mut Config)| config(lock, change);
        let configs = [
            small(|_| {}),
            small(|c| c.trylock = true),
            small(|c| c.slots = Some(0)),
            small(|c| c.slots = Some(1)),
            small(|c| c.locks = 2),
            small(|c| set(c, &[("mutex37_spin", 2)])),
            // An interruption must not try a mutex whose waiter it may have interrupted.
            small(|c| {
                c.acquisitions = 1;
                c.nesting = 1;
                c.spurious = 0;
            }),
            three_once(lock, |_| {}),
            three_once(lock, |c| c.slots = Some(1)),
        ];
        let (missing, events) = keeps_and_counts(&configs);
        let read_first = ["lw_count_mutex_ask: load mutex->count"];
        assert_eq!(missing, read_first[usize::from(lock == "mutex310")..]);
        assert_counted(
            &events,
            &[
                "queued_acquisitions",
                "nodeless_acquisitions",
                "steals_on_arrival",
                "halts_in_queue",
                "kicks_at_unlock",
            ],
        );
    }
}

#[test]
fn mutex_of_glibc() {
    let small = |change: fn(&mut Config)| config("futex", change);
    let mut configs = vec![
        small(|_| {}),
        small(|c| c.trylock = true),
        small(|c| c.locks = 2),
        small(|c| c.threads = 3),
        three_once("futex", |c| c.trylock = true),
    ];
    configs.extend([false, true].map(|trylock| {
        config("futex", |c| {
            c.acquisitions = 1;
            c.nesting = 1;
            c.spurious = 0;
            c.trylock = trylock;
        })
    }));
    let (missing, events) = keeps_and_counts(&configs);
    assert_eq!(missing, [""; 0]);
    assert_counted(&events, &["halts_in_queue", "kicks_at_unlock"]);
}

/// Also locks that have no test of their own, as one that `lockworks locks new` has written.
#[test]
fn every_lock_in_its_small_configurations() {
    let limits = Limits {
        states: Some(20_000),
        ..Limits::NONE
    };
    for lock in lock_types().filter(|lock| !lock.is_broken()) {
        for config in configurations(lock.name()).expect("a list that can be read") {
            let check = Check::new(&config, None).expect("a lock and sizes that there are");
            let end = check.run(&limits, &mut |_| {}).end;
            assert!(!matches!(end, End::Broken(_)), "{config}: {end:?}");
        }
    }
}

#[test]
fn the_broken_lock_fails() {
    for memory in [Memory::C11, Memory::Sc] {
        let outcome = run(&config("busted", |c| c.memory = memory));
        assert!(matches!(outcome.end, End::Broken(_)), "{memory}");
    }
}

#[test]
fn limits_end_a_search_short_of_complete() {
    let config = config("cna", |c| c.threads = 3);
    let limits = Limits {
        states: Some(10_000),
        ..Limits::NONE
    };
    let outcome = Check::new(&config, None)
        .expect("a lock and sizes that there are")
        .run(&limits, &mut |_| {});
    assert!(matches!(outcome.end, End::Unfinished(_)));
    assert!(!outcome.is_complete());
    assert!(outcome.coverage.waiting > 0);
}

#[test]
fn a_staleness_that_leaves_reads_out_is_not_complete() {
    let bounded = |bound| {
        run(&config("qspinlock", |c| {
            c.threads = 3;
            c.staleness = Some(bound);
        }))
    };
    assert!(!bounded(0).is_complete());
    assert!(bounded(100).is_complete());
}
