//! Verification by several runs: analysed together, tried again, in the alternate repository.

use super::*;

fn label<'a>(run: &'a ProwJob, name: &str) -> Option<&'a str> {
    let labels = run.metadata.labels.as_ref()?;
    labels.get(name).map(String::as_str)
}

async fn runs(cluster: &TestCluster) -> Vec<String> {
    let all = cluster.all::<ProwJob>("ci").await;
    let names = all.into_iter().filter_map(|run| run.metadata.name);
    let names = names.map(|name| name.replace(&format!("{TAG}-"), ""));
    names.collect()
}

#[tokio::test(start_paused = true)]
async fn runs_that_are_analysed_together_are_launched_once_and_their_aggregator_decides() {
    let cluster = TestCluster::open(&periodics(&["e2e-metal", "analyse"])).await;
    let verify = json!({"verify": {"metal": {
        "prowJob": {"name": "e2e-metal"}, "maxRetries": 1,
        "aggregatedProwJob": {"prowJob": {"name": "analyse"}, "analysisJobCount": 3},
    }}});
    cluster.declare(&integration(verify)).await;
    cluster.pass(SECOND * 5).await;
    cluster.end_job(TAG, true).await;
    cluster.pass(SECOND * 5).await;
    let first = [
        "metal-aggregator",
        "metal-analysis-0",
        "metal-analysis-1",
        "metal-analysis-2",
    ];
    assert_eq!(runs(&cluster).await, first);
    let all = cluster.all::<ProwJob>("ci").await;
    let (aggregator, analysed) = (&all[0], &all[1]);
    assert_eq!(aggregator.spec.job, "metal-analyse");
    assert_eq!(
        label(aggregator, "release.openshift.io/aggregator"),
        Some(TAG)
    );
    assert_eq!(
        label(aggregator, "release.openshift.io/verify"),
        Some("true")
    );
    assert_eq!(analysed.spec.job, "e2e-metal");
    assert_eq!(label(analysed, "release.openshift.io/analysis"), Some(TAG));
    assert_eq!(label(analysed, "release.openshift.io/verify"), None);
    let before = cluster.writes();
    cluster.pass(MINUTE * 30).await;
    assert_eq!(cluster.writes(), before, "no run is created twice");

    for (run, state) in first[1..].iter().zip(["success", "failure", "success"]) {
        cluster.end_run(&format!("{TAG}-{run}"), state).await;
    }
    cluster
        .end_run(&format!("{TAG}-metal-aggregator"), "failure")
        .await;
    cluster.pass(SECOND * 5).await;
    let again = [&first[..1], &["metal-aggregator-1"], &first[1..]].concat();
    assert_eq!(
        runs(&cluster).await,
        again,
        "only the aggregator runs again"
    );
    let payload: ReleasePayload = cluster.get(TAG).await.unwrap();
    let status = payload.status.unwrap();
    let analysed = &status.informing_job_results[0];
    assert_eq!(
        (analysed.results.len(), format!("{:?}", analysed.state)),
        (3, "Success".to_owned()),
        "two of three are enough"
    );
    assert_eq!(cluster.phase(TAG).await, Phase::Ready);
    cluster
        .end_run(&format!("{TAG}-metal-aggregator-1"), "success")
        .await;
    cluster.pass(SECOND * 5).await;
    assert_eq!(cluster.phase(TAG).await, Phase::Accepted);
}

#[tokio::test(start_paused = true)]
async fn retries_wait_longer_each_time_and_end() {
    let cluster = TestCluster::open(&periodics(&["e2e-aws"])).await;
    let verify = json!({"verify": {"aws": {"prowJob": {"name": "e2e-aws"}, "maxRetries": 2}}});
    cluster.declare(&integration(verify)).await;
    cluster.pass(SECOND * 5).await;
    cluster.end_job(TAG, true).await;
    cluster.pass(SECOND * 5).await;
    cluster.end_run(&format!("{TAG}-aws"), "failure").await;
    cluster.pass(SECOND * 5).await;
    assert_eq!(runs(&cluster).await, ["aws", "aws-1"]);
    cluster.end_run(&format!("{TAG}-aws-1"), "aborted").await;
    cluster.pass(SECOND * 100).await;
    assert_eq!(runs(&cluster).await.len(), 2, "it waits two minutes");
    cluster.pass(SECOND * 30).await;
    assert_eq!(runs(&cluster).await, ["aws", "aws-1", "aws-2"]);
    assert_eq!(cluster.phase(TAG).await, Phase::Ready);
    cluster.end_run(&format!("{TAG}-aws-2"), "error").await;
    cluster.pass(MINUTE * 30).await;
    assert_eq!(runs(&cluster).await.len(), 3);
    assert_eq!(cluster.phase(TAG).await, Phase::Rejected);
}

#[tokio::test(start_paused = true)]
async fn a_verdict_waits_for_the_copy_in_the_alternate_repository() {
    let cluster = TestCluster::open(&periodics(&["e2e-aws"])).await;
    let config = json!({
        "verify": {"aws": {"prowJob": {"name": "e2e-aws"}}},
        "alternateImageRepository": "quay.example/ocp/release",
        "alternateImageRepositorySecretName": "quay",
    });
    cluster.declare(&integration(config)).await;
    cluster.pass(SECOND * 5).await;
    cluster.end_job(TAG, true).await;
    cluster.pass(SECOND * 5).await;
    cluster.end_run(&format!("{TAG}-aws"), "success").await;
    cluster.pass(SECOND * 5).await;
    let payload: ReleasePayload = cluster.get(TAG).await.unwrap();
    let accepted = cluster::condition(&payload, "PayloadAccepted");
    assert_eq!(accepted.status, "Unknown");
    assert!(
        accepted
            .message
            .starts_with("waiting for the copy in the alternate repository"),
        "{}",
        accepted.message
    );
    let job = format!("{TAG}-alternate-mirror");
    let copied: Job = cluster.get_in("ci-release", &job).await.unwrap();
    let pod = copied.spec.unwrap().template.spec.unwrap();
    let volume = &pod.volumes.unwrap()[0];
    let secret = volume.secret.as_ref().unwrap().secret_name.as_deref();
    assert_eq!(secret, Some("quay"));
    // A copy that fails does not reject: what is published is the release itself.
    cluster.end_job(&job, false).await;
    cluster.pass(SECOND * 5).await;
    assert_eq!(cluster.phase(TAG).await, Phase::Accepted);
    let payload: ReleasePayload = cluster.get(TAG).await.unwrap();
    let failed = cluster::condition(&payload, "PayloadMirrorFailed");
    assert_eq!(failed.status, "True");
}
