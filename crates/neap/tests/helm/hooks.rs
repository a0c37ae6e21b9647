//! Jobs and pods that run at points of a release's life.

use serde_json::{Value, json};

use crate::{
    cluster::{Cluster, Running, Said},
    hands::{created, created_after, job_ended, status},
};

const JOBS: &str = "/apis/batch/v1/namespaces/bay/jobs";
const PODS: &str = "/api/v1/namespaces/bay/pods";
const POD: &str = "/api/v1/namespaces/bay/pods/tern-harbour-test";

/// Ends the job of a hook when it comes.
async fn play(cluster: &Cluster, event: &str, done: bool, helm: Running) -> Said {
    let name = format!("tern-harbour-{event}");
    created(cluster, JOBS, &name).await;
    status(cluster, &format!("{JOBS}/{name}"), job_ended(done)).await;
    helm.end()
}

#[tokio::test]
async fn hooks_hold_the_release_until_their_jobs_end() {
    let Some(cluster) = Cluster::start("hooks_hold_the_release_until_their_jobs_end") else {
        return;
    };
    let hooks = "--set hooks=true,replicas=0 --timeout 60s";
    let helm = cluster.begin(&format!("install tern CHART --create-namespace {hooks}"));
    let said = play(&cluster, "pre-install", true, helm).await;
    assert_eq!(said.code, Some(0), "{said:?}");
    // A hook that succeeded is deleted, as its annotation asks.
    assert_eq!(cluster.object(JOBS).await["items"], json!([]));

    let helm = cluster.begin(&format!("upgrade tern CHART {hooks}"));
    let said = play(&cluster, "post-upgrade", false, helm).await;
    assert_eq!(said.code, Some(1), "{said:?}");
    assert!(
        said.stderr
            .contains("UPGRADE FAILED: post-upgrade hooks failed"),
        "{said:?}"
    );

    let helm = cluster.begin("uninstall tern --timeout 60s --wait");
    let said = play(&cluster, "pre-delete", true, helm).await;
    assert_eq!(said.code, Some(0), "{said:?}");
}

#[tokio::test]
async fn tests_of_a_release_pass_and_fail_with_their_pod() {
    let Some(cluster) = Cluster::start("tests_of_a_release_pass_and_fail_with_their_pod") else {
        return;
    };
    cluster.ok("install tern CHART --create-namespace --no-hooks --set hooks=true,replicas=0");
    let mut before = Value::Null;
    for (phase, code, word) in [
        ("Succeeded", Some(0), "Phase:          Succeeded"),
        ("Failed", Some(1), "Phase:          Failed"),
    ] {
        let helm = cluster.begin("test tern --timeout 60s");
        // The pod of the test before is replaced.
        let pod = created_after(&cluster, PODS, "tern-harbour-test", &before).await;
        before = pod["metadata"]["uid"].clone();
        status(&cluster, POD, json!({"phase": phase})).await;
        let said = helm.end();
        assert_eq!(said.code, code, "{said:?}");
        assert!(said.stdout.contains(word), "{said:?}");
    }
}
