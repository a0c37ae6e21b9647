use std::time::Duration;

use proptest::prelude::*;

use super::{Answer, Host};
use crate::client::{
    BudgetPolicy, CircuitPolicy, Error, RetryPolicy, budget::RetryBudget, circuit::Circuit,
};

const URL: &str = "https://example.com/";
const POLICY: CircuitPolicy = CircuitPolicy {
    failures: 3,
    first_open: Duration::from_secs(5),
    max_open: Duration::from_secs(15),
};

#[tokio::test(start_paused = true)]
async fn a_host_that_keeps_failing_is_left_alone_and_probed_later() {
    let host = Host::with(vec![Answer::Status(500); 4]);
    let once = RetryPolicy::never();
    let client = host.client().circuit(POLICY).retry(once).build().unwrap();
    for _ in 0..3 {
        client.get(URL).send().await.unwrap();
    }
    let error = client.get(URL).send().await.unwrap_err();
    assert!(matches!(error, Error::CircuitOpen { .. }), "{error}");
    assert_eq!(error.retry_after(), Some(Duration::from_secs(5)));
    assert_eq!(host.received().len(), 3);
    let other = client.get("https://other.example.com/").send().await;
    assert_eq!(
        other.unwrap().status(),
        500,
        "another host has its own circuit"
    );

    client.clock().sleep(Duration::from_secs(5)).await;
    let probe = client.get(URL).send().await.unwrap();
    assert_eq!(probe.status(), 200);
    client.get(URL).send().await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_probe_whose_caller_gives_up_does_not_keep_the_circuit_open() {
    let script = [
        Answer::Status(500),
        Answer::Status(500),
        Answer::Status(500),
        Answer::Silence,
    ];
    let host = Host::with(script);
    let once = RetryPolicy::never();
    let client = host.client().circuit(POLICY).retry(once).build().unwrap();
    for _ in 0..3 {
        client.get(URL).send().await.unwrap();
    }
    client.clock().sleep(Duration::from_secs(5)).await;
    let hung = client.get(URL).send();
    let given_up = client.clock().within(Duration::from_secs(1), hung).await;
    assert!(given_up.is_none());
    let next = client.get(URL).send().await.unwrap();
    assert_eq!(next.status(), 200);
}

#[test]
fn a_circuit_opens_longer_each_time_that_the_probe_fails() {
    let mut circuit = Circuit::CLOSED;
    let mut now = Duration::ZERO;
    for _ in 0..3 {
        circuit.failed(&POLICY, now);
    }
    for expected in [5, 10, 15, 15] {
        let wait = circuit.admit(&POLICY, now).unwrap_err();
        assert_eq!(wait, Duration::from_secs(expected));
        now += wait;
        circuit.admit(&POLICY, now).unwrap();
        assert!(circuit.admit(&POLICY, now).is_err(), "one probe at a time");
        circuit.failed(&POLICY, now);
    }
    now += Duration::from_secs(15);
    circuit.admit(&POLICY, now).unwrap();
    circuit.succeeded();
    assert_eq!(circuit, Circuit::CLOSED);
}

#[test]
fn successes_in_between_keep_a_circuit_closed() {
    let mut circuit = Circuit::CLOSED;
    for _ in 0..10 {
        circuit.failed(&POLICY, Duration::ZERO);
        circuit.failed(&POLICY, Duration::ZERO);
        circuit.succeeded();
    }
    circuit.admit(&POLICY, Duration::ZERO).unwrap();
}

proptest! {
    /// From any history, a circuit admits a call again once the time it names has passed.
    #[test]
    fn a_circuit_never_stays_open(steps in prop::collection::vec((0_u8..4, 0_u64..30), 0..60)) {
        let mut circuit = Circuit::CLOSED;
        let mut now = Duration::ZERO;
        for (step, seconds) in steps {
            now += Duration::from_secs(seconds);
            match step {
                0 => circuit.failed(&POLICY, now),
                1 => circuit.succeeded(),
                2 => circuit.abandoned(now),
                _ => drop(circuit.admit(&POLICY, now)),
            }
        }
        // A probe that is under way ends in one of three ways.
        circuit.abandoned(now);
        if let Err(wait) = circuit.admit(&POLICY, now) {
            prop_assert!(wait <= POLICY.max_open);
            circuit.admit(&POLICY, now + wait).unwrap();
        }
    }

    /// Whatever is asked for when, retries never exceed the reserve and what was added since.
    #[test]
    fn a_budget_never_gives_more_than_was_added(
        steps in prop::collection::vec((any::<bool>(), 0_u64..3_000), 1..300),
    ) {
        let policy = BudgetPolicy { per_call: 0.2, per_second: 0.5, reserve: 4.0 };
        let mut now = Duration::ZERO;
        let mut budget = RetryBudget::new(&policy, now);
        let (mut calls, mut retries) = (0.0, 0.0);
        for (retry, millis) in steps {
            now += Duration::from_millis(millis);
            if retry {
                if budget.withdraw(&policy, now) {
                    retries += 1.0;
                }
            } else {
                budget.deposit(&policy, now);
                calls += 1.0;
            }
        }
        let added = policy.reserve + calls * 0.2 + now.as_secs_f64() * 0.5;
        prop_assert!(retries <= added + 1e-6, "{retries} of {added}");
    }
}
