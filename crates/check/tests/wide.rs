//! Wide random runs.

use lockworks_check::{
    Change, Config, ConfigError, Memory, Mutation, Program, Scheduler, Site, Wide, WideOutcome,
    WideToken, WideViolation, lock_types,
};

const PROGRAMS: [Program; 2] = [Program::Check, Program::Conformance];
const SCHEDULERS: [Scheduler; 2] = [Scheduler::Random, Scheduler::Pct { depth: 5 }];

fn config(lock: &str, threads: usize) -> Config {
    Config {
        threads,
        memory: Memory::Sc,
        nodes: 2,
        trylock: true,
        ..Config::new(lock)
    }
}

fn run(config: &Config, program: Program, scheduler: Scheduler, runs: usize) -> WideOutcome {
    let wide = Wide {
        config,
        program,
        scheduler,
        runs,
        seed: 1,
        mutation: None,
    };
    wide.run(None, &mut |_| {})
        .expect("the configuration is valid")
}

#[test]
fn every_lock_passes() {
    for lock in lock_types().filter(|lock| !lock.is_broken()) {
        for threads in [8, 16] {
            let config = Config {
                nesting: 2,
                priority: vec![1, 5],
                ..config(lock.name(), threads)
            };
            for program in PROGRAMS {
                for scheduler in SCHEDULERS {
                    let outcome = run(&config, program, scheduler, 40);
                    let what = format!("{config}, {program}, {scheduler}");
                    assert_eq!(outcome.violation, None, "{what}");
                    assert_eq!(outcome.runs, 40, "{what}");
                }
            }
        }
    }
}

/// Locks share the queues of NUMA nodes; the conformance client has several locks anyway.
#[test]
fn queues_of_more_nodes_and_locks_pass() {
    for threads in [8, 16] {
        for (nodes, locks) in [(2, 2), (3, 1), (3, 2)] {
            let config = Config {
                nodes,
                locks,
                nesting: 1,
                ..config("hq", threads)
            };
            for program in PROGRAMS {
                for scheduler in SCHEDULERS {
                    let outcome = run(&config, program, scheduler, 40);
                    let what = format!("{config}, {program}, {scheduler}");
                    assert_eq!(outcome.violation, None, "{what}");
                }
            }
        }
    }
}

#[test]
fn a_lock_that_excludes_no_thread_is_caught_and_replayed() {
    let config = config("busted", 8);
    for program in PROGRAMS {
        for scheduler in SCHEDULERS {
            let outcome = run(&config, program, scheduler, 100);
            let violation = outcome.violation.expect("it is caught");
            assert_eq!(
                violation.kind,
                match program {
                    Program::Check => "mutual_exclusion",
                    Program::Conformance => "conformance",
                }
            );
            let token: WideToken = violation.token.parse().expect("a token");
            let again = token.replay(None).expect("it was valid before");
            assert_eq!(again.violation, Some(violation));
        }
    }
}

/// The first violation that 200 runs by each scheduler find in a lock with `change` made to an
/// operation of `function`.
fn changed(lock: &str, function: &str, operation: &str, change: Change) -> Option<WideViolation> {
    let site = Site::all()
        .iter()
        .find(|site| site.function() == function && site.to_string() == operation)
        .unwrap_or_else(|| panic!("{function} has {operation}"));
    let config = config(lock, 8);
    SCHEDULERS.iter().find_map(|scheduler| {
        let wide = Wide {
            config: &config,
            program: Program::Check,
            scheduler: *scheduler,
            runs: 200,
            seed: 1,
            mutation: Some(Mutation::at(site, change)),
        };
        let outcome = wide.run(None, &mut |_| {}).expect("it is valid");
        let violation = outcome.violation?;
        let token: WideToken = violation.token.parse().expect("a token");
        let again = token.replay(wide.mutation).expect("it was valid before");
        assert_eq!(again.violation.as_ref(), Some(&violation));
        Some(violation)
    })
}

fn kind(violation: Option<WideViolation>) -> Option<&'static str> {
    violation.map(|violation| violation.kind)
}

#[test]
fn planted_mistakes_are_caught() {
    let wait = "await_ne node->locked";
    let found = changed("qspinlock", "lw_mcs_wait", wait, Change::Drop);
    assert_eq!(kind(found), Some("mutual_exclusion"));
    let wake = "store next->locked";
    let found = changed("cna", "lw_mcs_handoff", wake, Change::Drop);
    assert_eq!(kind(found), Some("deadlock"));
    let link = "store prev->next";
    let found = changed("mcs", "lw_mcs_lock", link, Change::Defer);
    assert_eq!(kind(found), Some("deadlock"));
    let unlink = "store head->next";
    let found = changed("cna", "lw_cna_move", unlink, Change::Drop);
    assert!(found.is_some());
    let place = "store lw_hq_decode_tail(lock, old)->next";
    let found = changed("hq", "lw_hq_wait", place, Change::Drop);
    assert_eq!(kind(found), Some("deadlock"));
    let release = "cmpxchg me->queue->waiters";
    let found = changed("hq", "lw_hq_try_release", release, Change::Blind);
    assert!(found.is_some());
    let found = changed("hq", "lw_hq_try_release", release, Change::Drop);
    assert!(found.is_some());
}

#[test]
fn polling_rather_than_waiting_is_no_mistake() {
    let wait = "await_eq lock->locked";
    let found = changed("tas", "lw_tas_lock", wait, Change::Drop);
    assert_eq!(found, None);
}

#[test]
fn bad_input_is_refused() {
    assert!("".parse::<WideToken>().is_err());
    assert!("rubbish".parse::<WideToken>().is_err());
    for threads in [1, 65] {
        let config = config("cna", threads);
        let wide = Wide {
            config: &config,
            program: Program::Check,
            scheduler: Scheduler::Random,
            runs: 1,
            seed: 1,
            mutation: None,
        };
        let error = wide.run(None, &mut |_| {});
        assert_eq!(error, Err(ConfigError::WideThreads(threads)));
    }
}
