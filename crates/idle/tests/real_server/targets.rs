//! What else can sleep under the rights of an install: a StatefulSet that KEDA scales, and a kind of the
//! user's own, for which the user gives rights.

use kube::api::ListParams;
use serde_json::{Value, json};

use crate::{
    account::Account,
    operator::IDLE,
    stage::{DEFINITION, ELASTI, Kind, ROLE, SERVICE, Stage},
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

/// Kinds that the operator has to find: before it begins, as in a cluster.
pub(crate) async fn define(stage: &Stage) {
    for (kind, group, version, name) in [
        (SCALED, "keda.sh", "v1alpha1", "ScaledObject"),
        (LAMP, "example.com", "v1", "Lamp"),
    ] {
        let definition = definition(group, version, name);
        stage.apply(DEFINITION, definition).await;
        let all = ListParams::default();
        let served = async || stage.api(kind).list(&all).await.is_ok();
        stage.until(served).await;
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
    stage.apply(ROLE, role).await;
}

/// Waits until what the user granted has come to the operator.
pub(crate) async fn granted(stage: &Stage, operator: &Account) {
    let (client, all) = (operator.client().await, ListParams::default());
    let lamps = stage.api_of(client, LAMP);
    let granted = async || lamps.list(&all).await.is_ok();
    stage.until(granted).await;
}

async fn declare(stage: &Stage, name: &str, (version, kind): Kind, autoscaler: Value) {
    let service = json!({
        "metadata": {"name": name, "annotations": {IDLE: "true"}},
        "spec": {
            "service": name, "cooldownPeriod": 1, "autoscaler": autoscaler,
            "scaleTargetRef": {"apiVersion": version, "kind": kind, "name": name},
            "triggers": [{"type": "prometheus"}],
        },
    });
    stage.create(ELASTI, service).await;
}

async fn service(stage: &Stage, name: &str) {
    let spec = json!({"selector": {"app": name}, "ports": [{"name": "tcp", "port": 5432}]});
    let service = json!({"metadata": {"name": name}, "spec": spec});
    stage.create(SERVICE, service).await;
}

/// A StatefulSet sleeps with its ScaledObject paused, and both go on.
pub(crate) async fn a_stateful_set(stage: &Stage) {
    service(stage, "db").await;
    let set = json!({"metadata": {"name": "db"}, "spec": {
        "replicas": 1, "serviceName": "db", "selector": {"matchLabels": {"app": "db"}},
        "template": {
            "metadata": {"labels": {"app": "db"}},
            "spec": {"containers": [{"name": "main", "image": "main"}]},
        },
    }});
    stage.create(STATEFUL_SET, set).await;
    let scaled = json!({
        "metadata": {"name": "scale-db"}, "spec": {"scaleTargetRef": {"name": "db"}},
    });
    stage.create(SCALED, scaled).await;
    let keda = json!({"type": "keda", "name": "scale-db"});
    declare(stage, "db", STATEFUL_SET, keda).await;
    let replicas = async || {
        let found = stage.api(STATEFUL_SET).get("db").await.unwrap();
        found.data["spec"]["replicas"].as_i64()
    };
    let paused = async || {
        let found = stage.api(SCALED).get("scale-db").await.unwrap();
        let annotations = found.metadata.annotations.unwrap_or_default();
        annotations.get("autoscaling.keda.sh/paused").cloned()
    };
    stage.until(async || replicas().await == Some(0)).await;
    assert_eq!(paused().await.as_deref(), Some("true"));
    stage.wake("db").await;
    assert_eq!(replicas().await, Some(1));
    stage
        .until(async || paused().await.as_deref() == Some("false"))
        .await;
    stage.goes("db").await;
}

/// Something that only its user knows sleeps and wakes.
pub(crate) async fn a_kind_of_the_users_own(stage: &Stage) {
    service(stage, "lamp").await;
    let pod = json!({
        "metadata": {"name": "lamp", "labels": {"app": "lamp"}},
        "spec": {"containers": [{"name": "main", "image": "main"}]},
    });
    stage.create(POD, pod).await;
    let lamp = json!({"metadata": {"name": "lamp"}, "spec": {"size": 4}});
    stage.create(LAMP, lamp).await;
    declare(stage, "lamp", LAMP, Value::Null).await;
    let size = async || {
        let found = stage.api(LAMP).get("lamp").await.unwrap();
        found.data["spec"]["size"].as_i64()
    };
    stage.until(async || size().await == Some(0)).await;
    stage.wake("lamp").await;
    assert_eq!(size().await, Some(1));
    stage.goes("lamp").await;
}
