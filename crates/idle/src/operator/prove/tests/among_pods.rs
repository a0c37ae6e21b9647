//! Resolvers among so many pods that one attempt hardly ever reaches them on every path.

use super::*;

/// The number of attempts, with the delay of the operator between them.
async fn attempts(
    prover: &ResolverProver,
    request: &ProofRequest,
    at_most: usize,
) -> Option<usize> {
    for attempt in 1..=at_most {
        if prover.prove(request).await {
            return Some(attempt);
        }
        prover.clock.sleep(Duration::from_secs(1)).await;
    }
    None
}

#[tokio::test(start_paused = true)]
async fn resolvers_are_found_among_many_pods() {
    for rewrites in [false, true] {
        for (pods, at_most) in [(2, 3), (100, 15), (500, 40)] {
            for seed in 0..10 {
                let mut behind = vec![Pod; pods];
                behind.extend([resolver(0), resolver(1)]);
                let plane = SimulatedDataPlane {
                    rewrites,
                    random: Some(Mutex::new(Jitter::new(seed))),
                    ..SimulatedDataPlane::new(2, &behind)
                };
                let (prover, request) = prepared_with(Arc::new(plane), Towards::Resolvers, true, 3);
                let took = attempts(&prover, &request, at_most).await;
                assert!(
                    took.is_some(),
                    "{pods} pods, seed {seed}, rewrites: {rewrites}"
                );
            }
        }
    }
}

#[tokio::test(start_paused = true)]
async fn pods_alone_are_never_taken_for_resolvers_however_often_it_is_tried() {
    let plane = SimulatedDataPlane {
        random: Some(Mutex::new(Jitter::new(1))),
        lagging: Mutex::new(vec![1]),
        ..SimulatedDataPlane::new(2, &[Pod, resolver(0), resolver(1)])
    };
    let (prover, request) = prepared_with(Arc::new(plane), Towards::Resolvers, true, 3);
    assert_eq!(attempts(&prover, &request, 30).await, None);
}

/// Two attempts: in each only one of two resolvers reaches a resolver.
async fn one_after_the_other(
    towards: Towards,
    change: impl Fn(&mut ProofRequest),
    pause: u64,
) -> bool {
    let plane = Arc::new(SimulatedDataPlane::new(2, &[resolver(0)]));
    let (prover, mut request) = prepared_with(plane.clone(), towards, true, 1);
    for lagging in [0, 1] {
        *plane.lagging.lock() = vec![lagging];
        if prover.prove(&request).await {
            return lagging == 1;
        }
        change(&mut request);
        plane.clock.sleep(Duration::from_secs(pause)).await;
    }
    false
}

#[tokio::test(start_paused = true)]
async fn that_resolvers_were_reached_stays_true_for_the_same_question() {
    let since = "2026-01-01T00:00:00Z".parse().unwrap();
    let same = |_: &mut ProofRequest| {};
    let other = |request: &mut ProofRequest| request.claim.since = since;
    assert!(one_after_the_other(Towards::Resolvers, same, 1).await);
    assert!(!one_after_the_other(Towards::Resolvers, other, 1).await);
    assert!(!one_after_the_other(Towards::Resolvers, same, 130).await);
    // That no resolver accepted a connection is only known for this attempt.
    assert!(!one_after_the_other(Towards::Pods, same, 1).await);
}

#[tokio::test(start_paused = true)]
async fn a_proved_claim_is_checked_again_on_request() {
    let plane = Arc::new(SimulatedDataPlane::new(2, &[resolver(0), resolver(1)]));
    let (prover, request) = prepared_with(plane.clone(), Towards::Resolvers, true, 3);
    assert!(prover.prove(&request).await);
    *plane.lagging.lock() = vec![0];
    assert!(!prover.prove(&request).await);
}

#[tokio::test(start_paused = true)]
async fn a_source_that_was_taken_before_proves_nothing() {
    for lagging in [vec![], vec![1]] {
        let plane = SimulatedDataPlane {
            random: Some(Mutex::new(Jitter::new(1))),
            lagging: Mutex::new(lagging.clone()),
            source_ports: 500,
            ..SimulatedDataPlane::new(2, &[Pod, resolver(0), resolver(1)])
        };
        let (prover, request) = prepared_with(Arc::new(plane), Towards::Resolvers, true, 3);
        let proved = attempts(&prover, &request, 30).await.is_some();
        assert_eq!(proved, lagging.is_empty());
    }
}
