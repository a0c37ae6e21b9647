//! The definition on a real server: manifests of KubeElasti 0.1.30 are taken as they are, with the same
//! defaults, and what cannot be meant is refused with its field.

use serde_json::{Value, json};

use crate::stage::{ELASTI, Stage};

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
async fn manifests_of_the_original_are_taken_with_its_defaults() {
    let stage = Stage::connected("idle-definition").await;
    stage.define().await;
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
    let made = stage.create(ELASTI, made).await.data;
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
    let small = stage.create(ELASTI, small).await.data;
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
        stage.create(ELASTI, made).await;
    }
    // Its chart's definition takes this, so such objects are there.
    let spec = spec(&json!({"triggers": []}));
    stage
        .create(ELASTI, json!({"metadata": {"name": "none"}, "spec": spec}))
        .await;
    stage.forget().await;
}

#[tokio::test]
async fn what_cannot_be_meant_is_refused_with_its_field() {
    let stage = Stage::connected("idle-refused").await;
    stage.define().await;
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
        let refused = stage.try_create(ELASTI, made).await;
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

/// What 0.1.30 writes into status is what ours reads, to the nanosecond.
#[tokio::test]
async fn the_status_of_the_original_is_kept() {
    let stage = Stage::connected("idle-status").await;
    stage.define().await;
    let made = json!({"metadata": {"name": "old"}, "spec": spec(&json!({}))});
    stage.create(ELASTI, made).await;
    let status = json!({
        "mode": "proxy", "lastReconciledTime": "2026-01-01T00:00:00Z",
        "lastScaledUpTime": "2026-01-01T00:00:00.123456789Z",
    });
    stage
        .patch_status(ELASTI, "old", json!({"status": status}))
        .await;
    assert_eq!(stage.status("old").await, status);
    stage.forget().await;
}
