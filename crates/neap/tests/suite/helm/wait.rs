//! `--wait`: a command ends when the objects it created are ready.

use serde_json::json;

use super::{
    fake_controllers::{created, job_ended, make_deployment_ready, status},
    helm_cluster::HelmCluster,
};

const DEPLOYMENTS: &str = "/apis/apps/v1/namespaces/bay/deployments";

#[tokio::test]
async fn install_and_upgrade_wait_for_pods() {
    let Some(cluster) = HelmCluster::start("install_and_upgrade_wait_for_pods") else {
        return;
    };
    let install = "install tern CHART --create-namespace --wait --timeout 60s --set replicas=2";
    let helm = cluster.begin(install);
    let deployment = created(&cluster, DEPLOYMENTS, "tern-harbour").await;
    make_deployment_ready(&cluster, &deployment).await;
    let said = helm.end();
    assert_eq!(said.code, Some(0), "{said:?}");

    // No controller reports the pods of the new template; ready pods of the old one are not enough.
    let upgrade = "upgrade tern CHART --reuse-values --set image=example.com/harbour:2 --wait";
    let said = cluster.refused(&format!("{upgrade} --timeout 3s"));
    assert!(said.contains("context deadline exceeded"), "{said}");
    let deployment = cluster.object(&format!("{DEPLOYMENTS}/tern-harbour")).await;
    make_deployment_ready(&cluster, &deployment).await;
    cluster.ok(&format!("{upgrade} --timeout 60s"));
}

#[tokio::test]
async fn install_waits_for_every_supported_kind() {
    let Some(cluster) = HelmCluster::start("install_waits_for_every_supported_kind") else {
        return;
    };
    let helm = cluster.begin(
        "install tern CHART --create-namespace --wait --wait-for-jobs --timeout 60s \
         --set replicas=0,loadBalancer=true,job=true,claim=true,rest=true",
    );
    for (collection, ready) in [
        (
            "/api/v1/namespaces/bay/services",
            json!({"loadBalancer": {"ingress": [{"ip": "203.0.113.7"}]}}),
        ),
        (
            "/api/v1/namespaces/bay/persistentvolumeclaims",
            json!({"phase": "Bound"}),
        ),
        (
            "/apis/apps/v1/namespaces/bay/daemonsets",
            json!({
                "observedGeneration": 1, "desiredNumberScheduled": 1, "currentNumberScheduled": 1,
                "updatedNumberScheduled": 1, "numberReady": 1, "numberMisscheduled": 0,
            }),
        ),
        (
            "/apis/apps/v1/namespaces/bay/statefulsets",
            json!({
                "observedGeneration": 1, "replicas": 2, "readyReplicas": 2, "updatedReplicas": 2,
                "currentRevision": "r1", "updateRevision": "r1",
            }),
        ),
        ("/apis/batch/v1/namespaces/bay/jobs", job_ended(true)),
    ] {
        created(&cluster, collection, "tern-harbour").await;
        status(&cluster, &format!("{collection}/tern-harbour"), ready).await;
    }
    let said = helm.end();
    assert_eq!(said.code, Some(0), "{said:?}");
    // With foreground deletion, dependents are deleted before the command ends.
    cluster.ok("uninstall tern --wait --timeout 60s");
    let jobs = cluster.object("/apis/batch/v1/namespaces/bay/jobs").await;
    assert_eq!(jobs["items"], json!([]));
}
