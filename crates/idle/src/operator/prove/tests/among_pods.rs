//! Resolvers that stand beside so many pods that one attempt hardly ever finds them everywhere.

use super::*;

/// So many attempts it took, with the pause between them that the operator makes.
async fn attempts(proofs: &Proofs, search: &Search, at_most: usize) -> Option<usize> {
    for attempt in 1..=at_most {
        if proofs.prove(search).await {
            return Some(attempt);
        }
        proofs.clock.sleep(Duration::from_secs(1)).await;
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
                let plane = Plane {
                    rewrites,
                    chance: Some(Mutex::new(Jitter::new(seed))),
                    ..Plane::new(2, &behind)
                };
                let (proofs, search) = prepared_with(Arc::new(plane), Towards::Resolvers, true, 3);
                let took = attempts(&proofs, &search, at_most).await;
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
    let plane = Plane {
        chance: Some(Mutex::new(Jitter::new(1))),
        lagging: Mutex::new(vec![1]),
        ..Plane::new(2, &[Pod, resolver(0), resolver(1)])
    };
    let (proofs, search) = prepared_with(Arc::new(plane), Towards::Resolvers, true, 3);
    assert_eq!(attempts(&proofs, &search, 30).await, None);
}

/// What one resolver and then only the other one finds.
async fn one_after_the_other(towards: Towards, change: impl Fn(&mut Search), pause: u64) -> bool {
    let plane = Arc::new(Plane::new(2, &[resolver(0)]));
    let (proofs, mut search) = prepared_with(plane.clone(), towards, true, 1);
    for lagging in [0, 1] {
        *plane.lagging.lock() = vec![lagging];
        if proofs.prove(&search).await {
            return lagging == 1;
        }
        change(&mut search);
        plane.clock.sleep(Duration::from_secs(pause)).await;
    }
    false
}

#[tokio::test(start_paused = true)]
async fn that_resolvers_were_reached_stays_true_for_the_same_question() {
    let since = "2026-01-01T00:00:00Z".parse().unwrap();
    let same = |_: &mut Search| {};
    let other = |search: &mut Search| search.question.since = since;
    assert!(one_after_the_other(Towards::Resolvers, same, 1).await);
    assert!(!one_after_the_other(Towards::Resolvers, other, 1).await);
    assert!(!one_after_the_other(Towards::Resolvers, same, 130).await);
    // That no resolver took it is only known of now.
    assert!(!one_after_the_other(Towards::Pods, same, 1).await);
}

#[tokio::test(start_paused = true)]
async fn what_is_proved_is_proved_anew_if_it_is_asked_again() {
    let plane = Arc::new(Plane::new(2, &[resolver(0), resolver(1)]));
    let (proofs, search) = prepared_with(plane.clone(), Towards::Resolvers, true, 3);
    assert!(proofs.prove(&search).await);
    *plane.lagging.lock() = vec![0];
    assert!(!proofs.prove(&search).await);
}

#[tokio::test(start_paused = true)]
async fn a_source_that_was_taken_before_proves_nothing() {
    for lagging in [vec![], vec![1]] {
        let plane = Plane {
            chance: Some(Mutex::new(Jitter::new(1))),
            lagging: Mutex::new(lagging.clone()),
            machine_has: 500,
            ..Plane::new(2, &[Pod, resolver(0), resolver(1)])
        };
        let (proofs, search) = prepared_with(Arc::new(plane), Towards::Resolvers, true, 3);
        let proved = attempts(&proofs, &search, 30).await.is_some();
        assert_eq!(proved, lagging.is_empty());
    }
}
