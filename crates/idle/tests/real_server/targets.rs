//! Other scale targets under the rights of an install: a StatefulSet that KEDA scales, and a custom kind for
//! which the user grants the rights.

use kube::api::ListParams;
use serde_json::{Value, json};

use crate::{
    account::Account,
    operator::IDLE,
    test_namespace::{DEFINITION, ELASTI, Kind, ROLE, SERVICE, TestNamespace},
};

const STATEFUL_SET: Kind = ("apps/v1", "StatefulSet");
const SCALED: Kind = ("keda.sh/v1alpha1", "ScaledObject");
const LAMP: Kind = ("example.com/v1", "Lamp");
const POD: Kind = ("v1", "Pod");

fn definition(group: &str, version: &str, kind: &str) -> Value {
    let any = json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true});
    let (singular, plural) = (kind.to_lowercase(), format!("{}s", kind.to_lowercase()));
    let paths = json!({"specReplicasPath": ".spec.size", "statusReplicasPath": ".status.size"});
    json!({
        "metadata": {"name": format!("{plural}.{group}")},
        "spec": {
            "group": group, "scope": "Namespaced",
            "names": {"kind": kind, "plural": plural, "singular": singular},
            "versions": [{
                "name": version, "served": true, "storage": true,
                "schema": {"openAPIV3Schema": any},
                "subresources": {"status": {}, "scale": paths},
            }],
        },
    })
}

/// Defines the kinds before the operator starts, as in a cluster.
pub(crate) async fn define(cluster: &TestNamespace) {
    for (kind, group, version, name) in [
        (SCALED, "keda.sh", "v1alpha1", "ScaledObject"),
        (LAMP, "example.com", "v1", "Lamp"),
    ] {
        let definition = definition(group, version, name);
        cluster.apply(DEFINITION, definition).await;
        let all = ListParams::default();
        let served = async || cluster.api(kind).list(&all).await.is_ok();
        cluster.until(served).await;
    }
    let role = json!({
        "metadata": {
            "name": "lamps",
            "labels": {"idle.neaptide.dev/aggregate-to-scale-targets": "true"},
        },
        "rules": [
            {"apiGroups": ["example.com"], "resources": ["lamps"], "verbs": ["get", "list", "watch"]},
            {"apiGroups": ["example.com"], "resources": ["lamps/scale"], "verbs": ["get", "patch"]},
        ],
    });
    cluster.apply(ROLE, role).await;
}

/// Waits until the rights that the user granted have reached the operator.
pub(crate) async fn granted(cluster: &TestNamespace, operator: &Account) {
    let (client, all) = (operator.client().await, ListParams::default());
    let lamps = cluster.api_with(client, LAMP);
    let granted = async || lamps.list(&all).await.is_ok();
    cluster.until(granted).await;
}

async fn declare(cluster: &TestNamespace, name: &str, (version, kind): Kind, autoscaler: Value) {
    let service = json!({
        "metadata": {"name": name, "annotations": {IDLE: "true"}},
        "spec": {
            "service": name, "cooldownPeriod": 1, "autoscaler": autoscaler,
            "scaleTargetRef": {"apiVersion": version, "kind": kind, "name": name},
            "triggers": [{"type": "prometheus"}],
        },
    });
    cluster.create(ELASTI, service).await;
}

async fn service(cluster: &TestNamespace, name: &str) {
    let spec = json!({"selector": {"app": name}, "ports": [{"name": "tcp", "port": 5432}]});
    let service = json!({"metadata": {"name": name}, "spec": spec});
    cluster.create(SERVICE, service).await;
}

/// A StatefulSet sleeps with its ScaledObject paused, and wakes with it resumed.
pub(crate) async fn a_stateful_set(cluster: &TestNamespace) {
    service(cluster, "db").await;
    let set = json!({"metadata": {"name": "db"}, "spec": {
        "replicas": 1, "serviceName": "db", "selector": {"matchLabels": {"app": "db"}},
        "template": {
            "metadata": {"labels": {"app": "db"}},
            "spec": {"containers": [{"name": "main", "image": "main"}]},
        },
    }});
    cluster.create(STATEFUL_SET, set).await;
    let scaled = json!({
        "metadata": {"name": "scale-db"}, "spec": {"scaleTargetRef": {"name": "db"}},
    });
    cluster.create(SCALED, scaled).await;
    let keda = json!({"type": "keda", "name": "scale-db"});
    declare(cluster, "db", STATEFUL_SET, keda).await;
    let replicas = async || {
        let found = cluster.api(STATEFUL_SET).get("db").await.unwrap();
        found.data["spec"]["replicas"].as_i64()
    };
    let paused = async || {
        let found = cluster.api(SCALED).get("scale-db").await.unwrap();
        let annotations = found.metadata.annotations.unwrap_or_default();
        annotations.get("autoscaling.keda.sh/paused").cloned()
    };
    cluster.until(async || replicas().await == Some(0)).await;
    assert_eq!(paused().await.as_deref(), Some("true"));
    cluster.wake("db").await;
    assert_eq!(replicas().await, Some(1));
    cluster
        .until(async || paused().await.as_deref() == Some("false"))
        .await;
    cluster.delete("db").await;
}

/// A custom kind sleeps and wakes.
pub(crate) async fn a_custom_kind(cluster: &TestNamespace) {
    service(cluster, "lamp").await;
    let pod = json!({
        "metadata": {"name": "lamp", "labels": {"app": "lamp"}},
        "spec": {"containers": [{"name": "main", "image": "main"}]},
    });
    cluster.create(POD, pod).await;
    let lamp = json!({"metadata": {"name": "lamp"}, "spec": {"size": 4}});
    cluster.create(LAMP, lamp).await;
    declare(cluster, "lamp", LAMP, Value::Null).await;
    let size = async || {
        let found = cluster.api(LAMP).get("lamp").await.unwrap();
        found.data["spec"]["size"].as_i64()
    };
    cluster.until(async || size().await == Some(0)).await;
    cluster.wake("lamp").await;
    assert_eq!(size().await, Some(1));
    cluster.delete("lamp").await;
}
