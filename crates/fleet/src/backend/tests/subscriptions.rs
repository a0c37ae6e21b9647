//! The deletion of a subscription by a worker that is slow, stopped, or ends.

use futures::{FutureExt, future::BoxFuture};
use neap_store::{CallObserver, Claimed, Error, StoreCall};

use super::*;
use crate::documents::SUBSCRIPTIONS;

/// Every commit takes this long.
struct SlowCommits(Clock, Duration);

impl CallObserver for SlowCommits {
    fn before(&self, call: StoreCall) -> BoxFuture<'_, Result<(), Error>> {
        async move {
            if call.name == "commit" {
                self.0.sleep(self.1).await;
            }
            Ok(())
        }
        .boxed()
    }

    fn after(&self, _: StoreCall) -> BoxFuture<'_, Result<(), Error>> {
        async { Ok(()) }.boxed()
    }
}

/// Clusters whose creation has failed, and their subscription, which was deleted.
async fn deleted(names: &[&str]) -> Bench {
    let bench = Bench::new(failed()).await;
    let mut operations = Vec::new();
    for name in names {
        operations.push(bench.create(name).await);
    }
    let all_failed = async {
        for operation in &operations {
            bench.wait_for(operation, &["Failed"]).await;
        }
    };
    with(&bench.backend("zero"), all_failed).await;
    let path = format!("/subscriptions/{SUBSCRIPTION}");
    let body = json!({"state": "Deleted"});
    let (status, ..) = bench.provider.send("PUT", &path, Some(body)).await;
    assert_eq!(status, 200);
    bench
}

/// Claims the subscription for `owner`, for this many milliseconds.
async fn claim(bench: &Bench, owner: &str, lease: i64) -> Option<Claimed> {
    let store = &bench.provider.store;
    let claimed = store.claim(SUBSCRIPTIONS, QUEUE, owner, lease).await;
    claimed.unwrap()
}

#[tokio::test(start_paused = true)]
async fn a_worker_that_was_stopped_queues_no_deletion() {
    let bench = deleted(&["blue"]).await;
    let stopped = claim(&bench, "one", 0).await.unwrap();
    claim(&bench, "two", 60_000).await.unwrap();
    let now = bench.provider.clock.uptime();
    let queued = bench.backend("one").queue_deletions(&stopped, now).await;
    let error = queued.unwrap_err();
    assert!(matches!(error, Error::LeaseLost(_)), "{error}");
    let document = bench.document("blue").await.unwrap();
    let state = &document["openShiftCluster"]["properties"]["provisioningState"];
    assert_eq!(state, "Failed");
}

#[tokio::test(start_paused = true)]
async fn a_long_look_at_the_clusters_of_a_subscription_keeps_its_lease() {
    let names = ["c0x", "c1x", "c2x", "c3x", "c4x", "c5x", "c6x", "c7x"];
    let bench = deleted(&names).await;
    let clock = bench.provider.clock;
    // Four leases.
    let slow = Arc::new(SlowCommits(clock, Duration::from_secs(6)));
    let store = bench.provider.store.clone().observed_by(slow);
    let claimed = claim(&bench, "one", 12_000).await.unwrap();
    let backend = bench.backend_on(store, "one");
    let others = async {
        loop {
            clock.sleep(Duration::from_secs(1)).await;
            if let Some(claimed) = claim(&bench, "two", 60_000).await {
                return claimed;
            }
        }
    };
    let done = tokio::select! {
        done = backend.queue_deletions(&claimed, clock.uptime()) => done,
        claimed = others => panic!("another worker has {:?}", claimed.lease),
    };
    assert!(done.unwrap());
    for name in names {
        let document = bench.document(name).await.unwrap();
        let state = &document["openShiftCluster"]["properties"]["provisioningState"];
        assert_eq!(state, "Deleting", "{name}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_subscription_that_ends_its_workers_is_left_for_a_while_and_then_tried_again() {
    let bench = deleted(&["blue"]).await;
    let clock = bench.provider.clock;
    for _ in 0..5 {
        assert!(claim(&bench, "crashes", 0).await.is_some());
    }
    let begun = clock.uptime();
    let gone = async {
        while bench.document("blue").await.is_some() {
            clock.sleep(Duration::from_millis(200)).await;
        }
        clock.uptime().saturating_sub(begun)
    };
    let took = with(&bench.backend("one"), gone).await;
    assert!(took > Duration::from_secs(59), "{took:?}");
    assert!(took < Duration::from_secs(80), "{took:?}");
}
