//! Work that is cut between two writes.

use std::sync::atomic::{AtomicU64, Ordering};

use futures::{FutureExt, future::BoxFuture};
use neap_store::{CallObserver, Error, Store, StoreCall};

use super::*;
use crate::documents::OPERATIONS;

/// Fails the first commit after the end of an operation was recorded in its timeline, and before it was recorded
/// in the operation.
struct FailingEnd {
    store: Store,
    operation: Mutex<String>,
    failed: AtomicU64,
}

impl CallObserver for FailingEnd {
    fn before(&self, call: StoreCall) -> BoxFuture<'_, Result<(), Error>> {
        async move {
            let id = self.operation.lock().clone();
            if call.name != "commit" || id.is_empty() {
                return Ok(());
            }
            let key = subscription_document(TIMELINES, SUBSCRIPTION, &id);
            let timeline = self.store.get(Scope::Everywhere, &key).await?;
            let has_ended = timeline.is_some_and(|it| !it.body["timeline"]["outcome"].is_null());
            if has_ended && self.failed.fetch_add(1, Ordering::Relaxed) == 0 {
                return Err(Error::Unavailable("the process ends".into()));
            }
            Ok(())
        }
        .boxed()
    }

    fn after(&self, _: StoreCall) -> BoxFuture<'_, Result<(), Error>> {
        async { Ok(()) }.boxed()
    }
}

#[tokio::test(start_paused = true)]
async fn the_error_of_a_step_is_told_by_the_worker_that_ends_the_operation() {
    let said = CloudError::bad_request("RequestDisallowedByPolicy", "", "a policy forbids it")
        .with_detail("AzureRequestDisallowedByPolicy", "", "policy 7");
    let bench = Bench::new(Installation::Failed(said.clone())).await;
    let operation = bench.create("blue").await;
    let id = text(&bench.get(&operation).await, "/name").to_owned();
    let ends = Arc::new(FailingEnd {
        store: bench.provider.store.clone(),
        operation: Mutex::new(id.clone()),
        failed: AtomicU64::new(0),
    });
    let backend = bench.backend_on(
        bench.provider.store.clone().observed_by(ends.clone()),
        "one",
    );
    let status = with(&backend, bench.wait_for(&operation, &["Failed"])).await;
    assert!(
        ends.failed.load(Ordering::Relaxed) > 1,
        "another worker ended it"
    );
    assert_eq!(status["error"], json!(said));
    let key = subscription_document(OPERATIONS, SUBSCRIPTION, &id);
    let found = bench.provider.store.get(Scope::Everywhere, &key).await;
    assert_eq!(
        found.unwrap().unwrap().body["asyncOperation"]["error"],
        json!(said)
    );
    let rows = bench.provider.store.audit(100).await.unwrap();
    assert_eq!(
        rows.last().unwrap().detail,
        said.to_string(),
        "with its status"
    );
}

#[tokio::test(start_paused = true)]
async fn a_namespace_whose_creation_was_cancelled_is_removed_with_the_cluster() {
    let bench = Bench::new(running()).await;
    bench.installer.hang_after_namespace();
    let operation = bench.create("blue").await;
    let cut = async {
        while bench.installer.namespaces().is_empty() {
            bench.provider.clock.sleep(Duration::from_millis(50)).await;
        }
        let id = text(&bench.get(&operation).await, "/name").to_owned();
        let cancel = format!("/admin/operations/{SUBSCRIPTION}/{id}/cancel");
        assert_eq!(bench.provider.send("POST", &cancel, None).await.0, 202);
        bench.wait_for(&operation, &["Canceled"]).await;
        let blue = path("blue", API);
        let (status, headers, _) = bench.provider.send("DELETE", &blue, None).await;
        assert_eq!(status, 202);
        let deletion = self::operation(&headers);
        bench.wait_for(&deletion, &["Succeeded"]).await;
    };
    with(&bench.backend("one"), cut).await;
    assert_eq!(bench.installer.namespaces(), [""; 0]);
    assert!(bench.document("blue").await.is_none());
}

#[tokio::test(start_paused = true)]
async fn the_lengths_of_the_queues_are_metrics() {
    let bench = Bench::new(running()).await;
    bench.create("blue").await;
    bench.create("green").await;
    let backend = bench.backend("one");
    let stop = CancellationToken::new();
    let measured = async {
        bench.provider.clock.sleep(Duration::from_secs(1)).await;
        stop.cancel();
    };
    let housekeeping = backend.housekeeping("housekeeping").run(stop.clone());
    tokio::join!(housekeeping, measured);
    let text = backend.0.telemetry.text();
    for expected in [
        "neaptide_fleet_queue_length{collection=\"OpenShiftClusters\"} 2",
        "neaptide_fleet_queue_length{collection=\"Subscriptions\"} 0",
    ] {
        assert!(text.contains(expected), "{text}");
    }
}
