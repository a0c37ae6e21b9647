//! SyncSets: what Hive brings into installed clusters, and what administrators see of it.

use http::Method;
use k8s_openapi::api::core::v1::{ConfigMap, Namespace, Secret};
use kube::{
    Api, Client, ResourceExt,
    api::{ApiResource, DeleteParams, DynamicObject, ListParams, Patch, PatchParams, PostParams},
    core::GroupVersionKind,
};
use serde_json::{Value, json};

use super::{
    arm_client::ArmClient,
    commands::{create, kubeconfig},
    fleet_server::{FleetServer, SUBSCRIPTION, until},
};
use crate::kube_client::connect;

fn kind(group: &str, version: &str, kind: &str, plural: &str) -> ApiResource {
    let kind = GroupVersionKind::gvk(group, version, kind);
    ApiResource::from_gvk_with_plural(&kind, plural)
}

/// The namespace of the one cluster that Hive has.
async fn namespace(hive: &Client) -> String {
    let deployments = kind(
        "hive.openshift.io",
        "v1",
        "ClusterDeployment",
        "clusterdeployments",
    );
    let api: Api<DynamicObject> = Api::all_with(hive.clone(), &deployments);
    let found = api.list(&ListParams::default().limit(10)).await.unwrap();
    assert_eq!(found.items.len(), 1);
    found.items[0].namespace().unwrap()
}

fn map(name: &str) -> Value {
    json!({
        "apiVersion": "v1", "kind": "ConfigMap",
        "metadata": {"namespace": "synced", "name": name},
        "data": {"by": "the set"},
    })
}

async fn set(hive: &Client, namespace: &str, resources: Value) {
    set_with_secrets(hive, namespace, resources, json!([])).await;
}

async fn set_with_secrets(hive: &Client, namespace: &str, resources: Value, secrets: Value) {
    let sets = kind("hive.openshift.io", "v1", "SyncSet", "syncsets");
    let api: Api<DynamicObject> = Api::namespaced_with(hive.clone(), namespace, &sets);
    let set = json!({
        "apiVersion": "hive.openshift.io/v1", "kind": "SyncSet",
        "metadata": {"name": "maps"},
        "spec": {
            "clusterDeploymentRefs": [{"name": "cluster"}],
            "resourceApplyMode": "Sync",
            "resources": resources,
            "secretMappings": secrets,
        },
    });
    let parameters = PatchParams::apply("test").force();
    let applied = api.patch("maps", &parameters, &Patch::Apply(&set)).await;
    applied.unwrap();
}

#[tokio::test]
async fn what_a_sync_set_wants_is_in_the_cluster_and_what_it_wants_no_more_is_not() {
    let server = FleetServer::start();
    create(&server, "blue", 1);
    let hive = connect(&server.kubeconfig()).await;
    let namespace = namespace(&hive).await;
    let guest = connect(&kubeconfig(&server, "blue")).await;
    let space = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "synced"}});
    set(&hive, &namespace, json!([space, map("one"), map("two")])).await;
    let maps: Api<ConfigMap> = Api::namespaced(guest.clone(), "synced");
    until("the objects of the set are there", async || {
        maps.get_opt("two").await.unwrap()
    })
    .await;
    let one = maps.get("one").await.unwrap();
    assert_eq!(one.data.unwrap()["by"], "the set");
    set(&hive, &namespace, json!([space, map("one")])).await;
    until("what the set wants no more is gone", async || {
        maps.get_opt("two").await.unwrap().is_none().then_some(())
    })
    .await;
    assert!(maps.get_opt("one").await.unwrap().is_some());

    copies_a_secret(&hive, &guest, &namespace, &space).await;

    // A kind that the cluster does not have fails, and administrators see why.
    let odd = json!({"apiVersion": "odd.example.com/v1", "kind": "Odd", "metadata": {"name": "x"}});
    set(&hive, &namespace, json!([space, odd])).await;
    let (url, authority) = server.provider().await;
    let administrator = ArmClient::new(&url, &authority, None);
    let path = format!(
        "/admin/subscriptions/{SUBSCRIPTION}/resourceGroups/fleet/providers/Microsoft.RedHatOpenShift/openShiftClusters/blue/clustersync"
    );
    let sync = until("the failure is reported", async || {
        let answer = administrator.send(Method::GET, &path, None).await;
        assert_eq!(answer.status, 200, "{}", answer.body);
        (answer.body["status"]["syncSets"][0]["result"] == "Failure").then_some(answer.body)
    });
    let sync = sync.await;
    let failure = sync["status"]["syncSets"][0]["failureMessage"].as_str();
    assert!(failure.unwrap().contains("Odd x"), "{sync}");
    assert_eq!(sync["status"]["conditions"][0]["status"], "True");

    let sets = kind("hive.openshift.io", "v1", "SyncSet", "syncsets");
    let sets: Api<DynamicObject> = Api::namespaced_with(hive.clone(), &namespace, &sets);
    sets.delete("maps", &DeleteParams::default()).await.unwrap();
    let spaces: Api<Namespace> = Api::all(guest);
    until(
        "a set that is deleted takes its objects along",
        async || {
            let space = spaces.get_opt("synced").await.unwrap();
            space
                .is_none_or(|it| it.metadata.deletion_timestamp.is_some())
                .then_some(())
        },
    )
    .await;
}

/// A Secret of the cluster of Hive is copied while the set maps it.
async fn copies_a_secret(hive: &Client, guest: &Client, namespace: &str, space: &Value) {
    let mapping = json!({
        "sourceRef": {"name": "registry"},
        "targetRef": {"name": "pulled", "namespace": "synced"},
    });
    let secrets: Api<Secret> = Api::namespaced(hive.clone(), namespace);
    let registry: Secret = serde_json::from_value(json!({
        "metadata": {"name": "registry"}, "stringData": {"token": "hush"},
    }))
    .unwrap();
    let parameters = PostParams::default();
    secrets.create(&parameters, &registry).await.unwrap();
    set_with_secrets(hive, namespace, json!([space]), json!([mapping])).await;
    let copies: Api<Secret> = Api::namespaced(guest.clone(), "synced");
    let copy = until("the Secret is copied", async || {
        copies.get_opt("pulled").await.unwrap()
    });
    assert_eq!(copy.await.data.unwrap()["token"].0, b"hush");
    set(hive, namespace, json!([space])).await;
    until("a Secret that is mapped no more is gone", async || {
        copies
            .get_opt("pulled")
            .await
            .unwrap()
            .is_none()
            .then_some(())
    })
    .await;
}
