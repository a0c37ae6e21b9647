//! A few cycles of each kind, and whether failures are detected.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::time::Duration;

use neap_traffic::{Cell, Deviation, Protocol, RunOptions, SimulatedOutcome, run_cell};

fn asked(lag: u64, rate: u32, protocol: Protocol, deviation: Deviation) -> RunOptions {
    let cell = Cell {
        lag,
        rate,
        protocol,
    };
    RunOptions {
        cell,
        cycles: 2,
        min_cycles: 0,
        budget: None,
        seed: 7,
        deviation,
    }
}

fn played(lag: u64, rate: u32, protocol: Protocol, deviation: Deviation) -> SimulatedOutcome {
    run_cell(asked(lag, rate, protocol, deviation)).unwrap()
}

#[test]
fn nothing_is_lost_when_a_service_sleeps_and_wakes() {
    for protocol in Protocol::ALL {
        let outcome = played(1, 50, protocol, Deviation::None);
        assert!(outcome.holds(), "{outcome:#?}");
        assert_eq!(outcome.cycles, 2);
        assert!(outcome.tally.through > 100, "{outcome:#?}");
    }
}

#[test]
fn a_cell_without_time_left_plays_its_least_number_of_cycles() {
    for (min_cycles, played) in [(0, 1), (1, 1), (2, 2), (5, 2)] {
        let outcome = run_cell(RunOptions {
            min_cycles,
            budget: Some(Duration::ZERO),
            ..asked(0, 1, Protocol::Http1, Deviation::None)
        });
        assert_eq!(outcome.unwrap().cycles, played, "at least {min_cycles}");
    }
}

#[test]
fn pods_that_leave_before_the_data_plane_knows_are_noticed() {
    let outcome = played(1, 50, Protocol::Http1, Deviation::PodsLeaveAtOnce);
    assert!(outcome.tally.lost > 0, "{outcome:#?}");
    assert_eq!((outcome.tally.duplicated, outcome.unproved), (0, 0));
}

#[test]
fn replicas_that_go_before_resolvers_come_are_noticed() {
    let outcome = played(5, 50, Protocol::Tcp, Deviation::ScaledByUser);
    assert_eq!(outcome.unproved, outcome.cycles, "{outcome:#?}");
    assert!(!outcome.holds());
}

#[test]
fn requests_held_by_a_terminating_resolver_are_answered() {
    for protocol in Protocol::ALL {
        let outcome = played(1, 51, protocol, Deviation::ResolverTerminates);
        assert!(outcome.holds(), "{outcome:#?}");
        assert_eq!(outcome.tally.refused, 0, "{outcome:#?}");
    }
}

#[test]
fn requests_held_by_a_resolver_that_terminates_before_pods_start_are_refused() {
    for protocol in Protocol::ALL {
        let outcome = played(1, 52, protocol, Deviation::ResolverTerminatesFirst);
        assert!(outcome.holds(), "{outcome:#?}");
        assert!(outcome.tally.refused > 0, "{outcome:#?}");
    }
}

#[test]
fn no_request_waits_longer_than_a_pod_takes_to_start() {
    let outcome = played(0, 53, Protocol::Http1, Deviation::None);
    assert!(outcome.holds(), "{outcome:#?}");
    // As long as a pod takes to start, and a moment.
    assert!(outcome.tally.longest_wait < 3200, "{outcome:#?}");
}
