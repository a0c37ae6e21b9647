//! Asks and tells what runs how many there are to be.

use std::collections::BTreeMap;

use kube::{
    Api, Client,
    api::{DynamicObject, ObjectMeta},
};
use neap_kit::{
    apply::{Error, Hand, Kind},
    key::Key,
};
use serde_json::{Value, json};

use super::{Keda, Target, kind::scaled_objects};
use crate::api::{Autoscaler, AutoscalerKind};

/// Stands still.
const PAUSED: &str = "autoscaling.keda.sh/paused";
/// At so many replicas.
const PAUSED_REPLICAS: &str = "autoscaling.keda.sh/paused-replicas";
/// That it stands still is our doing.
const BY_US: &str = "idle.neaptide.dev/paused";

/// What runs, as the server has it now and not as a cache had it, and whether the server has such a
/// kind at all.
pub async fn look(client: &Client, kind: &Kind, key: &Key) -> (Target, bool) {
    let api = api(client, kind, key);
    match api.get_subresource("scale", key.name()).await {
        Ok(scale) => {
            let target = Target::Scaled {
                // A Scale leaves out a zero.
                replicas: number(&scale.data["spec"]["replicas"]),
                seen: Box::new(scale.metadata),
            };
            (target, true)
        }
        Err(kube::Error::Api(status)) if status.is_not_found() => {
            let details = status.details.as_ref();
            let named = details.is_some_and(|details| details.name == key.name());
            (Target::Missing, named)
        }
        Err(_) => (Target::Unknown, false),
    }
}

/// Has `replicas` of it run.
pub async fn scale(
    hand: &Hand,
    kind: &Kind,
    seen: &ObjectMeta,
    replicas: i32,
) -> Result<(), Error> {
    let change = json!({"spec": {"replicas": replicas}});
    hand.merge(kind, seen, Some("scale"), change)
        .await
        .map(drop)
}

/// The ScaledObject that was named, as it is now; nothing if the server does not say.
pub async fn keda(
    client: &Client,
    namespace: &str,
    autoscaler: Option<&Autoscaler>,
) -> Option<Keda> {
    let named = autoscaler.filter(|named| named.kind == AutoscalerKind::Keda);
    let Some(named) = named else {
        return Some(Keda::Unused);
    };
    let key = Key::new(namespace, &named.name);
    let found = api(client, &scaled_objects(), &key).get(key.name()).await;
    match found {
        Ok(found) => {
            let annotations = found.metadata.annotations.clone().unwrap_or_default();
            let says = |name: &str| annotations.get(name).is_some_and(|value| value == "true");
            Some(Keda::Found {
                paused: says(PAUSED) || annotations.contains_key(PAUSED_REPLICAS),
                // KubeElasti left no mark but stood it at zero, which no user's pause does.
                by_us: says(BY_US) || says(PAUSED) && stands_at_zero(&annotations),
                seen: Box::new(found.metadata),
            })
        }
        Err(error) => missing(&error).map(|()| Keda::Missing),
    }
}

/// Has KEDA stand still at zero, or go on.
pub async fn switch(hand: &Hand, seen: &ObjectMeta, pause: bool) -> Result<(), Error> {
    let annotations = if pause {
        json!({PAUSED: "true", PAUSED_REPLICAS: "0", BY_US: "true"})
    } else {
        json!({PAUSED: "false", PAUSED_REPLICAS: null, BY_US: null})
    };
    let change = json!({"metadata": {"annotations": annotations}});
    let seen = ObjectMeta {
        resource_version: None,
        ..seen.clone()
    };
    hand.merge(&scaled_objects(), &seen, None, change)
        .await
        .map(drop)
}

fn stands_at_zero(annotations: &BTreeMap<String, String>) -> bool {
    let at = annotations.get(PAUSED_REPLICAS);
    at.is_some_and(|replicas| replicas == "0")
}

fn api(client: &Client, kind: &Kind, key: &Key) -> Api<DynamicObject> {
    Api::namespaced_with(client.clone(), key.namespace(), &kind.resource)
}

fn missing(error: &kube::Error) -> Option<()> {
    matches!(error, kube::Error::Api(status) if status.is_not_found()).then_some(())
}

fn number(value: &Value) -> i32 {
    let number = value.as_i64().unwrap_or(0);
    number.try_into().unwrap_or(i32::MAX)
}
