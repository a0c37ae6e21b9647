//! Releases on a server with a node and controllers: `--wait` waits for pods that really run.

use serde_json::{Value, json};

use super::helm_cluster::HelmCluster;

const DEPLOYMENT: &str = "/apis/apps/v1/namespaces/bay/deployments/tern-harbour";
const PODS: &str = "/api/v1/namespaces/bay/pods";

/// The images of the pods that are ready and not being deleted.
async fn ready_images(cluster: &HelmCluster) -> Vec<String> {
    let pods = cluster.object(PODS).await;
    let ready = |pod: &&Value| {
        let conditions = pod["status"]["conditions"].as_array();
        let mut conditions = conditions.into_iter().flatten();
        pod["metadata"]["deletionTimestamp"].is_null()
            && conditions.any(|one| one["type"] == "Ready" && one["status"] == "True")
    };
    let pods = pods["items"].as_array().unwrap().iter().filter(ready);
    pods.map(|pod| {
        let image = &pod["spec"]["containers"][0]["image"];
        image.as_str().unwrap().to_owned()
    })
    .collect()
}

#[tokio::test]
async fn release_runs_from_install_to_uninstall() {
    let Some(cluster) = HelmCluster::start_with_workloads("release_runs_from_install_to_uninstall")
    else {
        return;
    };
    cluster.ok("install tern CHART --create-namespace --wait --timeout 60s --set replicas=2");
    assert_eq!(ready_images(&cluster).await, ["example.com/harbour:1"; 2]);

    let upgrade = "upgrade tern CHART --reuse-values --wait";
    let second = "--set image=example.com/harbour:2 --timeout 60s";
    cluster.ok(&format!("{upgrade} {second}"));
    assert_eq!(ready_images(&cluster).await, ["example.com/harbour:2"; 2]);

    // A revision that cannot start fails, and the running pods stay.
    let third = "--set image=example.com/unknown:3 --timeout 3s";
    let said = cluster.refused(&format!("{upgrade} {third}"));
    assert!(said.contains("context deadline exceeded"), "{said}");
    assert_eq!(ready_images(&cluster).await, ["example.com/harbour:2"; 2]);

    cluster.ok("rollback tern 1 --wait --timeout 60s");
    assert_eq!(ready_images(&cluster).await, ["example.com/harbour:1"; 2]);
    let states: Vec<_> = cluster.history("tern");
    let states: Vec<_> = states.iter().map(|(_, state)| state.as_str()).collect();
    assert_eq!(states, ["superseded", "superseded", "failed", "deployed"]);

    cluster.ok("uninstall tern --wait --cascade foreground --timeout 60s");
    assert_eq!(cluster.get(DEPLOYMENT).await.status, 404);
    assert_eq!(cluster.object(PODS).await["items"], json!([]));
}

#[tokio::test]
async fn jobs_hooks_and_tests_of_a_release_run() {
    let Some(cluster) = HelmCluster::start_with_workloads("jobs_hooks_and_tests_of_a_release_run")
    else {
        return;
    };
    cluster.ok(
        "install tern CHART --create-namespace --wait --wait-for-jobs --timeout 60s \
         --set replicas=0,job=true,claim=true,hooks=true,image=example.com/done",
    );
    let job = cluster
        .object("/apis/batch/v1/namespaces/bay/jobs/tern-harbour")
        .await;
    assert_eq!(job["status"]["succeeded"], 1);
    let claim = "/api/v1/namespaces/bay/persistentvolumeclaims/tern-harbour";
    assert_eq!(cluster.object(claim).await["status"]["phase"], "Bound");
    let said = cluster.ok("test tern --timeout 60s");
    assert!(said.contains("Phase:          Succeeded"), "{said}");

    // A failing hook fails the release.
    let broken = "--set image=example.com/unknown --timeout 3s";
    cluster.refused(&format!("upgrade tern CHART --reuse-values {broken}"));
    cluster.ok("rollback tern 1 --no-hooks --wait --timeout 60s");
    cluster.ok("uninstall tern --wait --timeout 60s");
}
