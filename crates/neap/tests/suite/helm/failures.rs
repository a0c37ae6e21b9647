//! Releases that fail, and what remains of them.

use super::helm_cluster::HelmCluster;

const CONFIG: &str = "/api/v1/namespaces/bay/configmaps/tern-harbour";

fn state(number: u64, state: &str) -> (u64, String) {
    (number, state.to_owned())
}

#[tokio::test]
async fn failed_install_stays_as_failed_and_atomic_install_is_removed() {
    let Some(cluster) =
        HelmCluster::start("failed_install_stays_as_failed_and_atomic_install_is_removed")
    else {
        return;
    };
    let broken = "CHART --create-namespace --set broken=true,replicas=0";
    let said = cluster.refused(&format!("install tern {broken}"));
    assert!(
        said.contains(
            "spec.ports[0].port: Invalid value: 0: must be between 1 and 65535, inclusive"
        ),
        "{said}"
    );
    assert_eq!(cluster.history("tern"), [state(1, "failed")]);
    cluster.ok("uninstall tern");

    let said = cluster.refused(&format!("install tern {broken} --atomic --timeout 30s"));
    assert!(
        said.contains("has been uninstalled due to atomic being set"),
        "{said}"
    );
    assert!(
        cluster
            .refused("history tern")
            .contains("release: not found")
    );
    assert_eq!(cluster.get(CONFIG).await.status, 404);
}

#[tokio::test]
async fn atomic_install_whose_pods_never_start_is_removed() {
    let Some(cluster) = HelmCluster::start("atomic_install_whose_pods_never_start_is_removed")
    else {
        return;
    };
    let said = cluster.refused("install tern CHART --create-namespace --atomic --timeout 3s");
    assert!(said.contains("context deadline exceeded"), "{said}");
    assert!(
        cluster
            .refused("status tern")
            .contains("release: not found")
    );
    let left = cluster
        .object("/apis/apps/v1/namespaces/bay/deployments")
        .await;
    assert_eq!(left["items"].as_array().map(Vec::len), Some(0));
}

#[tokio::test]
async fn failed_upgrade_is_rolled_back_manually_or_atomically() {
    let Some(cluster) = HelmCluster::start("failed_upgrade_is_rolled_back_manually_or_atomically")
    else {
        return;
    };
    cluster.ok("install tern CHART --create-namespace --set replicas=0");
    let broken = "upgrade tern CHART --set broken=true,replicas=0,tide=high";
    let said = cluster.refused(broken);
    assert!(
        said.contains(
            "UPGRADE FAILED: failed to create resource: Service \"tern-harbour-broken\" is invalid"
        ),
        "{said}"
    );
    assert_eq!(
        cluster.history("tern"),
        [state(1, "deployed"), state(2, "failed")]
    );
    cluster.ok("rollback tern");
    assert_eq!(cluster.object(CONFIG).await["data"]["tide"], "low");

    let said = cluster.refused(&format!("{broken} --atomic --timeout 30s"));
    assert!(
        said.contains("has been rolled back due to atomic being set"),
        "{said}"
    );
    let expected = ["superseded", "failed", "superseded", "failed", "deployed"];
    let states: Vec<_> = cluster
        .history("tern")
        .into_iter()
        .map(|(_, state)| state)
        .collect();
    assert_eq!(states, expected);
    assert_eq!(cluster.object(CONFIG).await["data"]["tide"], "low");
}

#[tokio::test]
async fn objects_of_other_owners_are_not_adopted() {
    let Some(cluster) = HelmCluster::start("objects_of_other_owners_are_not_adopted") else {
        return;
    };
    cluster.ok("install tern CHART --create-namespace --set replicas=0");
    let mut map = cluster.object(CONFIG).await;
    map["metadata"] = serde_json::json!({"name": "gull-harbour"});
    let maps = "/api/v1/namespaces/bay/configmaps";
    let mut connection = cluster.connect().await;
    let made = connection
        .send(http::Method::POST, maps, map.to_string())
        .await;
    made.unwrap().success().unwrap();
    let said = cluster.refused("install gull CHART --set replicas=0");
    assert!(said.contains("ConfigMap \"gull-harbour\" in namespace \"bay\" exists and cannot be imported into the current release"), "{said}");
    cluster.ok("install gull CHART --set replicas=0 --take-ownership");
}
