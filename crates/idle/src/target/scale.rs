//! Reads and changes the scale of workloads, and the pause of ScaledObjects.

use std::collections::BTreeMap;

use kube::{
    Api, Client,
    api::{DynamicObject, ObjectMeta},
};
use neap_kit::{
    apply::{PlannedChange, ResourceKind},
    key::Key,
};
use serde_json::{Value, json};

use super::{Keda, Target, kind::scaled_object_kind};
use crate::api::{Autoscaler, AutoscalerKind};

/// KEDA's annotation that pauses a ScaledObject.
const PAUSED: &str = "autoscaling.keda.sh/paused";
/// KEDA's annotation with the number of replicas during the pause.
const PAUSED_REPLICAS: &str = "autoscaling.keda.sh/paused-replicas";
/// Our annotation: the pause is ours.
const PAUSED_BY_US: &str = "idle.neaptide.dev/paused";

/// Reads the scale of a workload from the API server, not from a cache. The second value is whether the
/// server has such a kind at all.
pub async fn read(client: &Client, kind: &ResourceKind, key: &Key) -> (Target, bool) {
    let api = api(client, kind, key);
    match api.get_subresource("scale", key.name()).await {
        Ok(scale) => {
            let target = Target::Scaled {
                // A Scale omits a zero.
                replicas: number(&scale.data["spec"]["replicas"]),
                metadata: Box::new(scale.metadata),
            };
            (target, true)
        }
        Err(kube::Error::Api(status)) if status.is_not_found() => {
            let details = status.details.as_ref();
            let names_object = details.is_some_and(|details| details.name == key.name());
            (Target::Missing, names_object)
        }
        Err(_) => (Target::Unknown, false),
    }
}

/// The change that scales the workload with this metadata, whose `resourceVersion` is a precondition if it
/// is there.
pub fn scale_change(
    kind: &ResourceKind,
    metadata: &ObjectMeta,
    replicas: i32,
    reason: impl Into<String>,
) -> PlannedChange {
    PlannedChange::Merge {
        kind: kind.clone(),
        metadata: Box::new(metadata.clone()),
        subresource: Some("scale"),
        patch: json!({"spec": {"replicas": replicas}}),
        reason: reason.into(),
    }
}

/// Reads the ScaledObject that `autoscaler` names; none if the API server did not respond.
pub async fn read_keda(
    client: &Client,
    namespace: &str,
    autoscaler: Option<&Autoscaler>,
) -> Option<Keda> {
    let named = autoscaler.filter(|named| named.kind == AutoscalerKind::Keda);
    let Some(named) = named else {
        return Some(Keda::Unused);
    };
    let key = Key::new(namespace, &named.name);
    let found = api(client, &scaled_object_kind(), &key)
        .get(key.name())
        .await;
    match found {
        Ok(found) => {
            let annotations = found.metadata.annotations.clone().unwrap_or_default();
            let is_set = |name: &str| annotations.get(name).is_some_and(|value| value == "true");
            Some(Keda::Found {
                paused: is_set(PAUSED) || annotations.contains_key(PAUSED_REPLICAS),
                // KubeElasti leaves no annotation of its own, but pauses at zero, which no user does.
                by_us: is_set(PAUSED_BY_US) || is_set(PAUSED) && is_paused_at_zero(&annotations),
                metadata: Box::new(found.metadata),
            })
        }
        Err(kube::Error::Api(status)) if status.is_not_found() => Some(Keda::Missing),
        Err(_) => None,
    }
}

/// The change that pauses a ScaledObject at zero replicas, or resumes it.
pub fn keda_change(metadata: &ObjectMeta, pause: bool, reason: impl Into<String>) -> PlannedChange {
    let annotations = if pause {
        json!({PAUSED: "true", PAUSED_REPLICAS: "0", PAUSED_BY_US: "true"})
    } else {
        json!({PAUSED: "false", PAUSED_REPLICAS: null, PAUSED_BY_US: null})
    };
    PlannedChange::Merge {
        kind: scaled_object_kind(),
        metadata: Box::new(ObjectMeta {
            resource_version: None,
            ..metadata.clone()
        }),
        subresource: None,
        patch: json!({"metadata": {"annotations": annotations}}),
        reason: reason.into(),
    }
}

fn is_paused_at_zero(annotations: &BTreeMap<String, String>) -> bool {
    let replicas = annotations.get(PAUSED_REPLICAS);
    replicas.is_some_and(|replicas| replicas == "0")
}

fn api(client: &Client, kind: &ResourceKind, key: &Key) -> Api<DynamicObject> {
    Api::namespaced_with(client.clone(), key.namespace(), &kind.resource)
}

fn number(value: &Value) -> i32 {
    let number = value.as_i64().unwrap_or(0);
    number.try_into().unwrap_or(i32::MAX)
}
