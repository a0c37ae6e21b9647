//! Tests of the claims of ordinals.

use super::*;

async fn claims(cluster: &TestCluster) -> Vec<PersistentVolumeClaim> {
    let claims: Vec<PersistentVolumeClaim> = cluster.list().await;
    let stay = claims
        .into_iter()
        .filter(|it| it.metadata.deletion_timestamp.is_none());
    stay.collect()
}

async fn set_policy(cluster: &TestCluster, deleted: &str, scaled: &str) {
    let policy = json!({"spec": {"persistentVolumeClaimRetentionPolicy": {
        "whenDeleted": deleted, "whenScaled": scaled,
    }}});
    cluster.patch::<StatefulSet>("db", policy).await;
    cluster.advance(MINUTE).await;
}

#[tokio::test(start_paused = true)]
async fn an_ordinal_gets_its_volume_again() {
    let cluster = cluster().await;
    cluster.create::<StatefulSet>(set(2)).await;
    cluster.advance(MINUTE).await;
    let before = claims(&cluster).await;
    assert_eq!(before.len(), 2);
    assert_eq!(before[0].labels()["app"], "db");
    assert_eq!(before[0].labels()["tier"], "fast");
    assert!(before[0].owner_references().is_empty());
    for replicas in [0, 2] {
        let scale = json!({"spec": {"replicas": replicas}});
        cluster.patch::<StatefulSet>("db", scale).await;
        cluster.advance(MINUTE).await;
    }
    let uids = |claims: &[PersistentVolumeClaim]| -> Vec<_> {
        claims.iter().map(ResourceExt::uid).collect()
    };
    assert_eq!(uids(&before), uids(&claims(&cluster).await));
}

#[tokio::test(start_paused = true)]
async fn claims_are_owned_as_the_retention_policy_says() {
    let cluster = cluster().await;
    cluster.create::<StatefulSet>(set(1)).await;
    cluster.advance(MINUTE).await;
    let db = cluster.get::<StatefulSet>("db").await;
    let owners = async || claims(&cluster).await.remove(0).owner_references().to_vec();
    // (when deleted, when scaled, whether the set owns the claim)
    let cases = [
        ("Delete", "Retain", true),
        ("Retain", "Delete", false),
        ("Delete", "Delete", true),
        ("Retain", "Retain", false),
    ];
    for (deleted, scaled, is_sets) in cases {
        set_policy(&cluster, deleted, scaled).await;
        let expected: Vec<_> = crate::workload::owned_by(&db)
            .into_iter()
            .filter(|_| is_sets)
            .collect();
        assert_eq!(owners().await, expected, "{deleted} {scaled}");
    }
    let messages = messages(&cluster).await;
    let expected = "Update Pod db-0 in StatefulSet db successful";
    assert!(messages.iter().any(|it| it == expected), "{messages:?}");
}

#[test]
fn a_claim_is_deleted_with_its_scaled_down_pod() {
    let mut db = set(1);
    db["metadata"]["uid"] = "u-set".into();
    db["spec"]["persistentVolumeClaimRetentionPolicy"] =
        json!({"whenDeleted": "Delete", "whenScaled": "Delete"});
    let db: StatefulSet = serde_json::from_value(db).unwrap();
    let pod = json!({"metadata": {"name": "db-0", "uid": "u-pod"}});
    let pod: Pod = serde_json::from_value(pod).unwrap();
    let claim = super::super::claims::claims(&db, 0).remove(0);
    assert_eq!(claim.owner_references()[0].uid, "u-set");
    let going = super::super::claims::reowned(&db, Some(&pod), &claim).unwrap();
    assert_eq!(going.owner_references().len(), 1);
    assert_eq!(going.owner_references()[0].uid, "u-pod");
    let back = super::super::claims::reowned(&db, None, &going).unwrap();
    assert_eq!(back.owner_references(), claim.owner_references());
}
