//! Volumes that stay a number's own.

use super::*;

async fn claims(stage: &Stage) -> Vec<PersistentVolumeClaim> {
    let claims: Vec<PersistentVolumeClaim> = stage.list().await;
    let stay = claims
        .into_iter()
        .filter(|it| it.metadata.deletion_timestamp.is_none());
    stay.collect()
}

async fn keep(stage: &Stage, deleted: &str, scaled: &str) {
    let policy = json!({"spec": {"persistentVolumeClaimRetentionPolicy": {
        "whenDeleted": deleted, "whenScaled": scaled,
    }}});
    stage.patch::<StatefulSet>("db", policy).await;
    stage.pass(MINUTE).await;
}

#[tokio::test(start_paused = true)]
async fn a_number_finds_its_volume_again() {
    let stage = stage().await;
    stage.create::<StatefulSet>(set(2)).await;
    stage.pass(MINUTE).await;
    let before = claims(&stage).await;
    assert_eq!(before.len(), 2);
    assert_eq!(before[0].labels()["app"], "db");
    assert_eq!(before[0].labels()["tier"], "fast");
    assert!(before[0].owner_references().is_empty());
    for replicas in [0, 2] {
        let scale = json!({"spec": {"replicas": replicas}});
        stage.patch::<StatefulSet>("db", scale).await;
        stage.pass(MINUTE).await;
    }
    let uids = |claims: &[PersistentVolumeClaim]| -> Vec<_> {
        claims.iter().map(ResourceExt::uid).collect()
    };
    assert_eq!(uids(&before), uids(&claims(&stage).await));
}

#[tokio::test(start_paused = true)]
async fn claims_belong_to_whom_they_shall_go_with() {
    let stage = stage().await;
    stage.create::<StatefulSet>(set(1)).await;
    stage.pass(MINUTE).await;
    let db = stage.get::<StatefulSet>("db").await;
    let owners = async || claims(&stage).await.remove(0).owner_references().to_vec();
    // (when deleted, when scaled, whether it is the set's)
    let cases = [
        ("Delete", "Retain", true),
        ("Retain", "Delete", false),
        ("Delete", "Delete", true),
        ("Retain", "Retain", false),
    ];
    for (deleted, scaled, is_sets) in cases {
        keep(&stage, deleted, scaled).await;
        let expected: Vec<_> = crate::workload::owned_by(&db)
            .into_iter()
            .filter(|_| is_sets)
            .collect();
        assert_eq!(owners().await, expected, "{deleted} {scaled}");
    }
    let told = messages(&stage).await;
    let expected = "Update Pod db-0 in StatefulSet db successful";
    assert!(told.iter().any(|it| it == expected), "{told:?}");
}

#[test]
fn a_claim_goes_with_the_pod_that_is_one_too_many() {
    let mut db = set(1);
    db["metadata"]["uid"] = "u-set".into();
    db["spec"]["persistentVolumeClaimRetentionPolicy"] =
        json!({"whenDeleted": "Delete", "whenScaled": "Delete"});
    let db: StatefulSet = serde_json::from_value(db).unwrap();
    let pod = json!({"metadata": {"name": "db-0", "uid": "u-pod"}});
    let pod: Pod = serde_json::from_value(pod).unwrap();
    let claim = super::super::claim::claims(&db, 0).remove(0);
    assert_eq!(claim.owner_references()[0].uid, "u-set");
    let going = super::super::claim::reowned(&db, Some(&pod), &claim).unwrap();
    assert_eq!(going.owner_references().len(), 1);
    assert_eq!(going.owner_references()[0].uid, "u-pod");
    let back = super::super::claim::reowned(&db, None, &going).unwrap();
    assert_eq!(back.owner_references(), claim.owner_references());
}
