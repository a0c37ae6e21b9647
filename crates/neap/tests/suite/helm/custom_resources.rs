//! A chart with a CustomResourceDefinition and a custom resource.

use serde_json::json;

use super::helm_cluster::HelmCluster;

const DEFINITION: &str =
    "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/boats.harbour.example";
const BOAT: &str = "/apis/harbour.example/v1/namespaces/bay/boats/tern-harbour";

#[tokio::test]
async fn definition_is_installed_first_and_stays_after_uninstall() {
    let Some(cluster) =
        HelmCluster::start("definition_is_installed_first_and_stays_after_uninstall")
    else {
        return;
    };
    let said = cluster
        .refused("install tern CHART --create-namespace --skip-crds --set boat=true,replicas=0");
    assert!(
        said.contains("no matches for kind \"Boat\" in version \"harbour.example/v1\""),
        "{said}"
    );
    cluster.ok(
        "install tern CHART --create-namespace --set boat=true,replicas=0 --wait --timeout 60s",
    );
    let boat = cluster.object(BOAT).await;
    assert_eq!(
        boat["spec"],
        json!({"berth": "low", "masts": 1, "cargo": ["tin", "rope"]})
    );
    assert_eq!(
        boat["metadata"]["labels"]["app.kubernetes.io/managed-by"],
        "Helm"
    );

    cluster.ok("upgrade tern CHART --reuse-values --set tide=high");
    let after = cluster.object(BOAT).await;
    assert_eq!(after["spec"]["berth"], "high");
    assert_eq!(after["metadata"]["generation"], 2);
    let said = cluster.refused("upgrade tern CHART --reuse-values --set-json tide=7");
    assert!(
        said.contains(
            "spec.berth: Invalid value: \"integer\": spec.berth in body must be of type string"
        ),
        "{said}"
    );

    cluster.ok("rollback tern 1");
    assert_eq!(cluster.object(BOAT).await["spec"]["berth"], "low");
    cluster.ok("uninstall tern --wait");
    assert_eq!(cluster.get(BOAT).await.status, 404);
    assert_eq!(cluster.get(DEFINITION).await.status, 200);
}
