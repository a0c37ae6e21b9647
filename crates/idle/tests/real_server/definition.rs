//! The definition on a real server: it accepts manifests of KubeElasti 0.1.30 with the same defaults, and
//! refuses invalid values with the path of the field.

use serde_json::{Value, json};

use crate::test_namespace::{ELASTI, TestNamespace};

fn spec(change: &Value) -> Value {
    let mut spec = json!({
        "service": "target-deployment",
        "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "deployments", "name": "target"},
    });
    for (field, value) in change.as_object().unwrap() {
        spec[field] = value.clone();
    }
    spec
}

#[tokio::test]
async fn manifests_of_kubeelasti_are_accepted_with_its_defaults() {
    let cluster = TestNamespace::connected("idle-definition").await;
    cluster.install_definition().await;
    let whole = json!({
        "minTargetReplicas": 2,
        "triggers": [{"type": "prometheus", "metadata": {
            "query": "sum(rate(envoy_http_downstream_rq_total[1m])) or vector(0)",
            "serverAddress": "http://prometheus:9090", "threshold": "0.01", "unheardOf": {"a": [1]},
        }}],
        "autoscaler": {"type": "keda", "name": "target-scaled-object"},
        "enabledPeriod": {},
        "probeResponse": [
            {"method": "GET", "path": {"type": "PathPrefix", "value": "/healthz"},
             "response": {"status": 200, "body": "{\"ok\":true}"}},
            {"method": "POST", "path": {"type": "Exact", "value": "/hook"},
             "headers": [{"name": "a", "value": "b", "type": "RegularExpression"}],
             "queryParams": [{"name": "a", "value": "b"}],
             "response": {"status": 204, "body": ""}},
        ],
    });
    let made = json!({"metadata": {"name": "whole"}, "spec": spec(&whole)});
    let made = cluster.create(ELASTI, made).await.data;
    assert_eq!(made["spec"]["cooldownPeriod"], 900);
    let day = json!({"schedule": "0 0 * * *", "duration": "24h"});
    assert_eq!(made["spec"]["enabledPeriod"], day);
    let metadata = &made["spec"]["triggers"][0]["metadata"];
    assert_eq!(
        metadata, &whole["triggers"][0]["metadata"],
        "nothing is dropped"
    );
    assert_eq!(made["spec"]["probeResponse"], whole["probeResponse"]);
    let small = json!({"metadata": {"name": "small"}, "spec": spec(&json!({}))});
    let small = cluster.create(ELASTI, small).await.data;
    assert!(small["spec"].get("minTargetReplicas").is_none());
    assert!(small["spec"].get("enabledPeriod").is_none(), "always");
    for (name, version, kind) in [
        ("rollouts", "argoproj.io/v1alpha1", "rollouts"),
        ("rollout", "argoproj.io/v1alpha1", "Rollout"),
        ("stateful", "apps/v1", "StatefulSet"),
        ("deployment", "apps/v1", "Deployment"),
        ("other", "example.com/v1", "Lamp"),
    ] {
        let target = json!({"apiVersion": version, "kind": kind, "name": "target"});
        let spec = spec(&json!({"scaleTargetRef": target}));
        let made = json!({"metadata": {"name": name}, "spec": spec});
        cluster.create(ELASTI, made).await;
    }
    // The definition in KubeElasti's chart accepts this, so such objects exist.
    let spec = spec(&json!({"triggers": []}));
    cluster
        .create(ELASTI, json!({"metadata": {"name": "none"}, "spec": spec}))
        .await;
    cluster.delete_elasti_services().await;
}

#[tokio::test]
async fn invalid_values_are_refused_with_the_path_of_the_field() {
    let cluster = TestNamespace::connected("idle-refused").await;
    cluster.install_definition().await;
    for (field, change) in [
        ("spec.minTargetReplicas", json!({"minTargetReplicas": 0})),
        ("spec.cooldownPeriod", json!({"cooldownPeriod": 604_801})),
        (
            "spec.triggers[0].type",
            json!({"triggers": [{"type": "wish"}]}),
        ),
        (
            "spec.autoscaler.name",
            json!({"autoscaler": {"type": "keda"}}),
        ),
        (
            "spec.probeResponse[0].response.status",
            json!({"probeResponse": [{"response": {"status": 418, "body": ""}}]}),
        ),
        (
            "spec.scaleTargetRef.name",
            json!({"scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment"}}),
        ),
    ] {
        let made = json!({"metadata": {"name": "bad"}, "spec": spec(&change)});
        let refused = cluster.try_create(ELASTI, made).await;
        let Err(kube::Error::Api(status)) = refused else {
            panic!("{field}: {refused:?}");
        };
        assert_eq!(status.code, 422, "{field}: {status:?}");
        assert!(
            status.message.contains(field),
            "{field}: {}",
            status.message
        );
    }
}

/// The status that 0.1.30 writes is read without loss, to the nanosecond.
#[tokio::test]
async fn the_status_of_kubeelasti_is_preserved() {
    let cluster = TestNamespace::connected("idle-status").await;
    cluster.install_definition().await;
    let made = json!({"metadata": {"name": "old"}, "spec": spec(&json!({}))});
    cluster.create(ELASTI, made).await;
    let status = json!({
        "mode": "proxy", "lastReconciledTime": "2026-01-01T00:00:00Z",
        "lastScaledUpTime": "2026-01-01T00:00:00.123456789Z",
    });
    cluster
        .patch_status(ELASTI, "old", json!({"status": status}))
        .await;
    assert_eq!(cluster.status("old").await, status);
    cluster.delete_elasti_services().await;
}
