//! Tests of the order of creates and deletes.

use std::collections::BTreeMap;

use super::*;
use crate::{
    stateful_set::{
        decide::{Facts, decide},
        order::BURST_REPLICAS,
    },
    workload::owned_by,
};

#[tokio::test(start_paused = true)]
async fn a_pod_has_the_identity_of_its_ordinal() {
    let cluster = cluster().await;
    cluster.create::<StatefulSet>(set(2)).await;
    cluster.advance(MINUTE).await;
    let db = cluster.get::<StatefulSet>("db").await;
    let pods = pods(&cluster).await;
    assert_eq!(names(&pods), ["db-0", "db-1"]);
    let revision = revisions(&cluster).await.remove(0);
    let pod = &pods[1];
    assert_eq!(pod.owner_references(), [owned_by(&db).unwrap()]);
    assert_eq!(pod.metadata.generate_name.as_deref(), Some("db-"));
    let expected = json!({
        "app": "db",
        "apps.kubernetes.io/pod-index": "1",
        "controller-revision-hash": revision.name_any(),
        "statefulset.kubernetes.io/pod-name": "db-1",
    });
    assert_eq!(serde_json::to_value(pod.labels()).unwrap(), expected);
    let spec = pod.spec.clone().unwrap();
    assert_eq!(spec.hostname.as_deref(), Some("db-1"));
    assert_eq!(spec.subdomain.as_deref(), Some("dbs"));
    let claim = spec.volumes.unwrap()[0].persistent_volume_claim.clone();
    assert_eq!(claim.unwrap().claim_name, "data-db-1");
    let expected = StatefulSetStatus {
        observed_generation: Some(1),
        replicas: 2,
        ready_replicas: Some(2),
        available_replicas: Some(2),
        current_replicas: Some(2),
        updated_replicas: Some(2),
        current_revision: Some(revision.name_any()),
        update_revision: Some(revision.name_any()),
        collision_count: Some(0),
        conditions: None,
    };
    assert_eq!(db.status, Some(expected));
    let expected = [
        "Create Claim data-db-0 Pod db-0 in StatefulSet db success",
        "Create Claim data-db-1 Pod db-1 in StatefulSet db success",
        "Create Pod db-0 in StatefulSet db successful",
        "Create Pod db-1 in StatefulSet db successful",
    ];
    assert_eq!(messages(&cluster).await, expected);
}

#[tokio::test(start_paused = true)]
async fn each_pod_waits_for_the_one_before_it() {
    let cluster = cluster().await;
    let mut slow = set(3);
    slow["spec"]["template"]["metadata"]["labels"]["behavior"] = "slow".into();
    cluster.create::<StatefulSet>(slow).await;
    let half = Duration::from_secs(30);
    for count in 1..=3 {
        cluster.advance(half).await;
        assert_eq!(pods(&cluster).await.len(), count);
        cluster.advance(half).await;
    }
    let fewer = json!({"spec": {"replicas": 0}});
    cluster.patch::<StatefulSet>("db", fewer).await;
    cluster.advance(MINUTE).await;
    assert!(pods(&cluster).await.is_empty());
}

#[tokio::test(start_paused = true)]
async fn availability_counts_and_not_readiness() {
    let cluster = cluster().await;
    let mut careful = set(2);
    careful["spec"]["minReadySeconds"] = 300.into();
    cluster.create::<StatefulSet>(careful).await;
    cluster.advance(4 * MINUTE).await;
    assert_eq!(pods(&cluster).await.len(), 1);
    assert_eq!(status(&cluster).await.ready_replicas, Some(1));
    assert_eq!(status(&cluster).await.available_replicas, Some(0));
    cluster.advance(2 * MINUTE).await;
    assert_eq!(pods(&cluster).await.len(), 2);
    cluster.advance(6 * MINUTE).await;
    assert_eq!(status(&cluster).await.available_replicas, Some(2));
}

#[tokio::test(start_paused = true)]
async fn in_parallel_no_pod_waits() {
    let cluster = cluster().await;
    let mut parallel = set(4);
    parallel["spec"]["podManagementPolicy"] = "Parallel".into();
    parallel["spec"]["template"]["metadata"]["labels"]["behavior"] = "bad".into();
    parallel["spec"]["ordinals"] = json!({"start": 5});
    cluster.create::<StatefulSet>(parallel).await;
    cluster.advance(Duration::from_secs(1)).await;
    assert_eq!(
        names(&pods(&cluster).await),
        ["db-5", "db-6", "db-7", "db-8"]
    );
    let fewer = json!({"spec": {"replicas": 1}});
    cluster.patch::<StatefulSet>("db", fewer).await;
    cluster.advance(Duration::from_secs(1)).await;
    assert_eq!(names(&pods(&cluster).await), ["db-5"]);
}

#[tokio::test(start_paused = true)]
async fn a_failed_pod_is_created_again() {
    let cluster = cluster().await;
    let mut short = set(1);
    short["spec"]["template"]["metadata"]["labels"]["behavior"] = "short".into();
    cluster.create::<StatefulSet>(short).await;
    cluster.advance(MINUTE).await;
    let before = pods(&cluster).await.remove(0);
    cluster.advance(6 * MINUTE).await;
    let after = pods(&cluster).await.remove(0);
    assert_eq!(before.name_any(), after.name_any());
    assert_ne!(before.uid(), after.uid());
    assert!(is_ready(&after));
    let messages = messages(&cluster).await;
    let expected = "Delete Pod db-0 in StatefulSet db successful";
    assert!(messages.iter().any(|it| it == expected), "{messages:?}");
}

#[tokio::test(start_paused = true)]
async fn pods_with_its_names_are_adopted() {
    let cluster = cluster().await;
    for name in ["db-0", "db-x"] {
        let stray = json!({
            "metadata": {"name": name, "labels": {"app": "db"}},
            "spec": {"containers": [{"name": "main", "image": "app:1"}]},
        });
        cluster.create::<Pod>(stray).await;
    }
    cluster.create::<StatefulSet>(set(1)).await;
    cluster.advance(MINUTE).await;
    let adopted = cluster.get::<Pod>("db-0").await;
    assert_eq!(adopted.owner_references().len(), 1);
    assert_eq!(
        adopted.labels()["statefulset.kubernetes.io/pod-name"],
        "db-0"
    );
    let other = cluster.get::<Pod>("db-x").await;
    assert!(other.owner_references().is_empty());
}

#[tokio::test(start_paused = true)]
async fn nothing_is_written_when_nothing_happens() {
    let cluster = cluster().await;
    cluster.create::<StatefulSet>(set(2)).await;
    cluster.advance(MINUTE).await;
    let before = cluster.get::<StatefulSet>("db").await.resource_version();
    cluster.advance(120 * MINUTE).await;
    assert_eq!(
        cluster.get::<StatefulSet>("db").await.resource_version(),
        before
    );
}

/// A set whose pods do not wait for each other, with two volumes for each.
fn parallel(replicas: i32) -> Value {
    let mut set = set(replicas);
    set["spec"]["podManagementPolicy"] = "Parallel".into();
    let mut second = set["spec"]["volumeClaimTemplates"][0].clone();
    second["metadata"]["name"] = "log".into();
    let templates = set["spec"]["volumeClaimTemplates"].as_array_mut().unwrap();
    templates.push(second);
    set
}

#[test]
fn what_one_reconcile_plans_does_not_grow_with_the_replicas() {
    let mut object = parallel(i32::MAX);
    object["metadata"]["namespace"] = "default".into();
    object["metadata"]["uid"] = "1".into();
    let set: StatefulSet = serde_json::from_value(object).unwrap();
    let facts = Facts {
        set: &set,
        pods: Vec::new(),
        revisions: Vec::new(),
        claims: BTreeMap::new(),
        now: "2026-01-01T00:00:00Z".parse().unwrap(),
    };
    let decision = decide(&facts).unwrap();
    assert_eq!(decision.create.len(), BURST_REPLICAS);
    assert_eq!(decision.claims.len(), 2 * BURST_REPLICAS);
}

#[tokio::test(start_paused = true)]
async fn more_pods_than_one_reconcile_creates_or_deletes_are_created_and_deleted() {
    let cluster = cluster().await;
    cluster.create::<StatefulSet>(parallel(120)).await;
    cluster.advance(MINUTE).await;
    assert_eq!(status(&cluster).await.ready_replicas, Some(120));
    assert_eq!(cluster.list::<PersistentVolumeClaim>().await.len(), 240);
    let fewer = json!({"spec": {"replicas": 5}});
    cluster.patch::<StatefulSet>("db", fewer).await;
    cluster.advance(MINUTE).await;
    let mut names = names(&pods(&cluster).await);
    names.sort();
    assert_eq!(names, ["db-0", "db-1", "db-2", "db-3", "db-4"]);
}
