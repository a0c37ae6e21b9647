//! Hook jobs and test pods of a release.

use serde_json::{Value, json};

use super::{
    fake_controllers::{created, created_after, job_ended, status},
    helm_cluster::{HelmCluster, HelmCommand},
};
use crate::command_output::CommandOutput;

const JOBS: &str = "/apis/batch/v1/namespaces/bay/jobs";
const PODS: &str = "/api/v1/namespaces/bay/pods";
const POD: &str = "/api/v1/namespaces/bay/pods/tern-harbour-test";

/// Waits for the job of a hook and writes its final status.
async fn finish_hook(
    cluster: &HelmCluster,
    event: &str,
    done: bool,
    helm: HelmCommand,
) -> CommandOutput {
    let name = format!("tern-harbour-{event}");
    created(cluster, JOBS, &name).await;
    status(cluster, &format!("{JOBS}/{name}"), job_ended(done)).await;
    helm.end()
}

#[tokio::test]
async fn hooks_block_the_release_until_their_jobs_end() {
    let Some(cluster) = HelmCluster::start("hooks_block_the_release_until_their_jobs_end") else {
        return;
    };
    let hooks = "--set hooks=true,replicas=0 --timeout 60s";
    let helm = cluster.begin(&format!("install tern CHART --create-namespace {hooks}"));
    let said = finish_hook(&cluster, "pre-install", true, helm).await;
    assert_eq!(said.code, Some(0), "{said:?}");
    // The annotation of the hook lets helm delete it after success.
    assert_eq!(cluster.object(JOBS).await["items"], json!([]));

    let helm = cluster.begin(&format!("upgrade tern CHART {hooks}"));
    let said = finish_hook(&cluster, "post-upgrade", false, helm).await;
    assert_eq!(said.code, Some(1), "{said:?}");
    assert!(
        said.stderr
            .contains("UPGRADE FAILED: post-upgrade hooks failed"),
        "{said:?}"
    );

    let helm = cluster.begin("uninstall tern --timeout 60s --wait");
    let said = finish_hook(&cluster, "pre-delete", true, helm).await;
    assert_eq!(said.code, Some(0), "{said:?}");
}

#[tokio::test]
async fn tests_of_a_release_pass_and_fail_with_their_pod() {
    let Some(cluster) = HelmCluster::start("tests_of_a_release_pass_and_fail_with_their_pod")
    else {
        return;
    };
    cluster.ok("install tern CHART --create-namespace --no-hooks --set hooks=true,replicas=0");
    let mut before = Value::Null;
    for (phase, code, word) in [
        ("Succeeded", Some(0), "Phase:          Succeeded"),
        ("Failed", Some(1), "Phase:          Failed"),
    ] {
        let helm = cluster.begin("test tern --timeout 60s");
        // Helm replaces the pod of the previous test.
        let pod = created_after(&cluster, PODS, "tern-harbour-test", &before).await;
        before = pod["metadata"]["uid"].clone();
        status(&cluster, POD, json!({"phase": phase})).await;
        let said = helm.end();
        assert_eq!(said.code, code, "{said:?}");
        assert!(said.stdout.contains(word), "{said:?}");
    }
}
