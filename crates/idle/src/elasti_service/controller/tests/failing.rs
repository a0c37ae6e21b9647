//! Pods that do not become ready.

use serde_json::{Value, json};

use super::*;
use crate::account::State;

fn pulls() -> Value {
    let state =
        json!({"waiting": {"reason": "ImagePullBackOff", "message": "Back-off pulling image"}});
    json!({"phase": "Pending", "containerStatuses": [{
        "name": "web", "image": "web:1", "imageID": "", "ready": false, "restartCount": 0, "state": state,
    }]})
}

async fn state(cluster: &TestCluster) -> State {
    State::of(&cluster.get::<ElastiService>("web").await.unwrap())
}

#[tokio::test(start_paused = true)]
async fn a_wake_that_fails_is_shown_with_the_reason_of_the_pod_until_a_pod_is_ready() {
    let cluster = TestCluster::asleep().await;
    let saved = cluster.status().await.saved(cluster.now());
    cluster.verdicts.busy();
    cluster.pass(SECOND).await;
    assert_eq!(cluster.replicas().await, 1);
    cluster.pod(pulls()).await;
    assert_eq!(state(&cluster).await, State::Waking);
    cluster.pass(SECOND * 10).await;
    assert_eq!(state(&cluster).await, State::Failed);
    let events = cluster.events_about("ElastiService").await;
    let failed = events.iter().find(|(reason, _)| reason == "WakeFailed");
    assert_eq!(
        failed.unwrap().1,
        "no pod became ready after its last wake: pod web-1: the image web:1 of the container web cannot be \
         pulled"
    );
    // It is idle for a day, and nothing is written.
    cluster.verdicts.idle();
    cluster.pass(MINUTE).await;
    let before = cluster.writes();
    cluster.pass(MINUTE * 60 * 24).await;
    assert_eq!(cluster.writes(), before, "nothing has changed");
    assert_eq!(cluster.replicas().await, 1);
    assert!(cluster.status().await.saved(cluster.now()) <= saved + 180);
    // The image appears, which changes neither the workload nor the ElastiService.
    let ready = json!({
        "phase": "Running", "containerStatuses": null,
        "conditions": [{"type": "Ready", "status": "True"}],
    });
    cluster.pod(ready).await;
    cluster.pods_are_ready(true).await;
    cluster.pass(SECOND * 5).await;
    assert_eq!(cluster.status().await.not_ready, None);
    assert_ne!(state(&cluster).await, State::Failed);
}

#[tokio::test(start_paused = true)]
async fn the_deletion_of_a_broken_service_ends_and_its_owner_learns_what_is_left() {
    let cluster = TestCluster::asleep().await;
    let shop: Service = cluster.get("web").await.unwrap();
    let owner = json!([{
        "apiVersion": "v1", "kind": "Service", "name": "web", "uid": shop.metadata.uid,
    }]);
    let owned = json!({"metadata": {"ownerReferences": owner}});
    cluster.patch::<ElastiService>("web", owned).await;
    cluster.pod(pulls()).await;
    cluster.delete::<ElastiService>("web").await;
    cluster.pass(SECOND * 50).await;
    assert!(cluster.get::<ElastiService>("web").await.is_some());
    assert_eq!(cluster.replicas().await, 3, "it is woken first");
    cluster.pass(SECOND * 20).await;
    assert!(cluster.get::<ElastiService>("web").await.is_none());
    let events = cluster.events_about("Service").await;
    let [(reason, message)] = &events[..] else {
        panic!("{events:?}");
    };
    assert_eq!(reason, "NotRestored");
    assert!(
        message.contains("Deployment web has 3 replicas and no ready pod: pod web-1: the image"),
        "{message}"
    );
}
