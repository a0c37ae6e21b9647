//! A controller beside the original, which owns the streams that were not handed over.

use serde_json::json;

use super::{
    MINUTE, SECOND, TAG,
    cluster::{TestCluster, integration, periodics},
};
use crate::{
    api::{ProwJob, ReleasePayload, annotations},
    hand_over::Owner,
    image_stream::api::ImageStream,
    payload::Phase,
};

async fn beside_the_original() -> TestCluster {
    let cluster = TestCluster::with_options(&periodics(&["e2e-aws"]), |options| {
        options.handed_over_only = true;
    })
    .await;
    let verify = json!({"verify": {"aws": {"prowJob": {"name": "e2e-aws"}, "maxRetries": 1}}});
    cluster.declare(&integration(verify)).await;
    cluster
}

#[tokio::test(start_paused = true)]
async fn a_stream_is_written_only_while_it_is_handed_over() {
    let cluster = beside_the_original().await;
    cluster.pass(MINUTE * 20).await;
    assert_eq!(cluster.writes(), 0, "the original owns the stream");
    cluster.move_to(Owner::Neaptide).await;
    cluster.pass(MINUTE * 20).await;
    assert_eq!(cluster.writes(), 0, "the stream has no owner");
    cluster.move_to(Owner::Neaptide).await;
    cluster.pass(SECOND * 5).await;
    let newest = cluster.state().await.newest.unwrap();
    cluster.end_job(&newest, true).await;
    cluster.pass(SECOND * 5).await;
    cluster.end_run(&format!("{newest}-aws"), "success").await;
    cluster.pass(SECOND * 5).await;
    assert_eq!(cluster.phase(&newest).await, Phase::Accepted);
    assert_eq!(cluster.releases().await.len(), 1);

    cluster.move_to(Owner::Original).await;
    cluster.pass(SECOND * 5).await;
    let before = cluster.writes();
    cluster.new_image(1).await;
    cluster.pass(MINUTE * 20).await;
    cluster.move_to(Owner::Original).await;
    cluster.pass(MINUTE * 20).await;
    assert_eq!(
        cluster.writes(),
        before,
        "the original owns the stream again"
    );
    let source: ImageStream = cluster.get("4.21-art-latest").await.unwrap();
    let all = source.metadata.annotations.unwrap();
    assert!(all[annotations::CONFIG].contains("e2e-aws"));
    assert!(
        !all.contains_key(annotations::CONFIG_REF) && !all.contains_key(annotations::HAND_OVER)
    );
}

/// A payload without a key of runs.
fn payload_of_the_original() -> ReleasePayload {
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
            "payloadOverride": {"override": ""},
            "payloadVerificationConfig": {
                "payloadVerificationDataSource": "BuildFarmLookup",
                "blockingJobs": [{
                    "ciConfigurationName": "aws", "ciConfigurationJobName": "e2e-aws", "maxRetries": 1,
                }],
            },
        },
    }))
    .unwrap()
}

/// A release as the original makes it: its image exists, and its only job runs.
async fn add_release_of_the_original(cluster: &TestCluster) {
    let now = "2026-01-02T03:04:05Z";
    cluster
        .tag_release(json!({"name": TAG, "annotations": {
            annotations::NAME: "4.21.0-0.nightly", annotations::SOURCE: "ocp/4.21-art-latest",
            annotations::CREATION_TIMESTAMP: now, annotations::PHASE: "Pending",
            annotations::HASH: "sha256:of-the-original",
        }}))
        .await;
    cluster.create_in("ocp", &payload_of_the_original()).await;
    let job = json!({
        "apiVersion": "batch/v1", "kind": "Job",
        "metadata": {"name": TAG, "annotations": {
            annotations::SOURCE: "ocp/4.21-art-latest", annotations::TARGET: "ocp/release",
            annotations::RELEASE_TAG: TAG, annotations::GENERATION: "1",
        }},
        "spec": {"template": {"spec": {"restartPolicy": "Never", "containers": [{"name": "build", "image": "x"}]}}},
    });
    let job: k8s_openapi::api::batch::v1::Job = serde_json::from_value(job).unwrap();
    cluster.create_in("ci-release", &job).await;
    cluster.end_job(TAG, true).await;
    let run: ProwJob = serde_json::from_value(json!({
        "apiVersion": "prow.k8s.io/v1", "kind": "ProwJob",
        "metadata": {
            "name": format!("{TAG}-aws"),
            "labels": {"release.openshift.io/verify": "true", "release.openshift.io/payload": TAG},
            "annotations": {
                annotations::SOURCE: "ocp/4.21-art-latest", annotations::TO_TAG: TAG,
                annotations::PROW_JOB: "e2e-aws",
            },
        },
        "spec": {"type": "periodic", "agent": "kubernetes", "cluster": "build01", "job": "e2e-aws"},
        "status": {"state": "pending", "startTime": now},
    }))
    .unwrap();
    cluster.create_in("ci", &run).await;
}

#[tokio::test(start_paused = true)]
async fn a_release_of_the_original_is_finished_without_a_second_run() {
    let cluster = beside_the_original().await;
    add_release_of_the_original(&cluster).await;
    cluster.pass(MINUTE).await;
    assert_eq!(cluster.phase(TAG).await, Phase::Ready);

    cluster.move_to(Owner::Neaptide).await;
    cluster.move_to(Owner::Neaptide).await;
    cluster.pass(MINUTE).await;
    let runs = cluster.all::<ProwJob>("ci").await;
    let of_release: Vec<_> = runs
        .iter()
        .filter_map(|run| run.metadata.name.as_deref())
        .filter(|name| name.starts_with(TAG))
        .collect();
    assert_eq!(
        of_release,
        [format!("{TAG}-aws")],
        "the run of the original goes on"
    );
    cluster.end_run(&format!("{TAG}-aws"), "failure").await;
    cluster.pass(MINUTE).await;
    cluster.end_run(&format!("{TAG}-aws-1"), "success").await;
    cluster.pass(MINUTE).await;
    assert_eq!(
        cluster.phase(TAG).await,
        Phase::Accepted,
        "its retry is ours"
    );
    let target: ImageStream = cluster.get("release").await.unwrap();
    let tag = target.spec.tag(TAG).unwrap();
    assert_eq!(tag.annotations[annotations::PHASE], "Accepted");
}
