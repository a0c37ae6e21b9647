//! Payloads that users create under the names of releases, with a decision in them.

use serde_json::{Value, json};

use super::{
    MINUTE, SECOND, TAG,
    cluster::{TestCluster, integration, periodics},
};
use crate::{
    api::{ReleasePayload, annotations},
    hand_over::Owner,
    image_stream::api::ImageStream,
    payload::Phase,
};

/// A payload without jobs, which its author accepts.
fn accepted_by_its_author() -> ReleasePayload {
    serde_json::from_value(json!({
        "apiVersion": "release.openshift.io/v1alpha1", "kind": "ReleasePayload",
        "metadata": {"name": TAG},
        "spec": {
            "payloadCoordinates": {
                "namespace": "ocp", "streamName": "4.21.0-0.nightly",
                "imagestreamName": "release", "imagestreamTagName": TAG,
            },
            "payloadCreationConfig": {
                "releaseCreationCoordinates": {"namespace": "ci-release", "releaseCreationJobName": TAG},
                "prowCoordinates": {"namespace": "ci"},
                "releaseMirrorCoordinates": {"namespace": "", "releaseMirrorJobName": ""},
            },
            "payloadOverride": {"override": "Accepted", "reason": "trust me"},
            "payloadVerificationConfig": {"payloadVerificationDataSource": "BuildFarmLookup"},
        },
    }))
    .unwrap()
}

fn config() -> Value {
    integration(json!({
        "verify": {"aws": {"prowJob": {"name": "e2e-aws"}}},
        "publish": {"latest": {"tagRef": {"name": "4.21"}}},
    }))
}

#[tokio::test(start_paused = true)]
async fn a_payload_with_the_name_of_the_next_release_decides_nothing() {
    let cluster = TestCluster::open(&periodics(&["e2e-aws"])).await;
    let taken: Vec<_> = (5..15)
        .map(|second| format!("4.21.0-0.nightly-2026-01-02-0304{second:02}"))
        .collect();
    for name in &taken {
        let mut payload = accepted_by_its_author();
        payload.metadata.name = Some(name.clone());
        cluster.create_in("ocp", &payload).await;
    }
    cluster.pass(SECOND).await;
    cluster.declare(&config()).await;
    cluster.pass(SECOND * 5).await;
    assert_eq!(cluster.releases().await, [""; 0], "the names are taken");
    cluster.pass(SECOND * 10).await;
    let target: ImageStream = cluster.get("release").await.unwrap();
    assert!(target.spec.tag("4.21").is_none(), "nothing is published");
    let releases = cluster.releases().await;
    assert_eq!(releases.len(), 1, "{releases:?}");
    let own = &releases[0];
    assert!(!taken.contains(own), "{own}");
    // The release has another name, and is accepted by its jobs.
    cluster.end_job(own, true).await;
    cluster.pass(SECOND * 5).await;
    cluster.end_run(&format!("{own}-aws"), "success").await;
    cluster.pass(SECOND * 5).await;
    assert_eq!(cluster.phase(own).await, Phase::Accepted);
    let target: ImageStream = cluster.get("release").await.unwrap();
    let published = target.spec.tag("4.21").unwrap().from.clone().unwrap();
    assert_eq!(published.name, *own);
}

#[tokio::test(start_paused = true)]
async fn a_release_of_the_controller_believes_no_payload_of_a_user() {
    let cluster = TestCluster::with_options(&periodics(&["e2e-aws"]), |options| {
        options.handed_over_only = true;
    })
    .await;
    cluster.declare(&config()).await;
    cluster.create_in("ocp", &accepted_by_its_author()).await;
    cluster
        .tag_release(json!({"name": TAG, "annotations": {
            annotations::NAME: "4.21.0-0.nightly", annotations::SOURCE: "ocp/4.21-art-latest",
            annotations::CREATION_TIMESTAMP: "2026-01-02T03:04:05Z", annotations::PHASE: "Pending",
            annotations::HASH: "sha256:of-then", annotations::RUN_KEY: "of-then",
        }}))
        .await;
    cluster.pass(MINUTE).await;
    cluster.move_to(Owner::Neaptide).await;
    cluster.move_to(Owner::Neaptide).await;
    cluster.pass(MINUTE).await;
    let target: ImageStream = cluster.get("release").await.unwrap();
    let annotations = &target.spec.tag(TAG).unwrap().annotations;
    assert_eq!(annotations[annotations::PHASE], "Failed");
    assert_eq!(annotations[annotations::REASON], "PayloadConflict");
    assert!(target.spec.tag("4.21").is_none(), "nothing is published");
}
