//! Objects as two runs can be compared by: without what no two runs share.

use std::{collections::HashMap, sync::Arc};

use jiff::Timestamp;
use neap_pocket::store::{Change, Event, Object};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::plan::plural;

/// Fields that no two runs share, wherever they are.
const OWN: [&str; 2] = ["uid", "resourceVersion"];
/// Who names what it makes after its own uid, so that names differ where uids do, and what that is.
const NAMED_BY_UID: [(&str, &str); 4] = [
    ("ReplicaSet", "/pods"),
    ("DaemonSet", "/pods"),
    ("Job", "/pods"),
    ("Service", "discovery.k8s.io/endpointslices"),
];
/// A volume is named after the uid of the claim that it is made for.
const VOLUME: &str = "pvc-";
/// The server chooses the end of it.
const TOKEN_VOLUME: &str = "kube-api-access-";

/// What objects are called in a comparison, by their uids and names.
#[derive(Debug, Default)]
pub(crate) struct Names {
    uids: HashMap<String, String>,
    names: HashMap<String, String>,
}

impl Names {
    /// Those of everything that ever was.
    pub(crate) fn of(history: &[Arc<Event>]) -> Self {
        let mut names = Self::default();
        for event in history {
            if event.change == Change::Added {
                let metadata = event.object.metadata();
                let place = place(&event.resource, &event.path, &event.object);
                if let Some((_, alias)) = place.rsplit_once('/')
                    && alias != &*metadata.name
                {
                    let name = metadata.name.to_string();
                    names.names.insert(name, alias.to_owned());
                }
                names.uids.insert(metadata.uid.to_string(), place);
            }
        }
        names
    }
}

/// Where an object is, as two runs can agree on it: pods of a set are all the same to it.
pub(crate) fn place(resource: &str, path: &str, object: &Object) -> String {
    let owners = &object.metadata().owner_references;
    let owner = owners
        .iter()
        .find(|owner| NAMED_BY_UID.contains(&(&*owner.kind, resource)));
    match (owner, path.split_once('/')) {
        (Some(owner), Some((namespace, _))) => {
            format!("{resource}/{namespace}/{}-*", owner.name)
        }
        _ if resource == "/persistentvolumes" && path.starts_with(VOLUME) => {
            let claim = object.value()["spec"]["claimRef"]["name"].to_string();
            format!("{resource}/{VOLUME}{claim}")
        }
        _ => format!("{resource}/{path}"),
    }
}

/// An object without what is its own, and how many of its fields were left out of how many.
pub(crate) fn canonical(object: &Object, names: &Names) -> (Value, Share) {
    let mut value = object.value();
    let mut share = Share::default();
    if let Some(metadata) = value["metadata"].as_object_mut() {
        for field in OWN {
            if metadata.remove(field).is_some() {
                share.masked += 1;
            }
        }
    }
    count_from_now(&mut value, &mut share);
    put_in_order(&mut value);
    forget_trigger(&mut value["metadata"]);
    mask(&mut value, names, &mut share);
    (value, share)
}

/// How often something was changed on its way is nobody's business; that the last change was seen
/// is.
fn count_from_now(value: &mut Value, share: &mut Share) {
    let generation = value["metadata"]["generation"].as_i64();
    let Some(generation) = generation else { return };
    if let Some(seen) = value.pointer_mut("/status/observedGeneration")
        && let Some(observed) = seen.as_i64()
    {
        *seen = (observed - generation).into();
    }
    let conditions = value.pointer_mut("/status/conditions");
    let conditions = conditions.and_then(Value::as_array_mut);
    for condition in conditions.into_iter().flatten() {
        if let Some(observed) = condition["observedGeneration"].as_i64() {
            condition["observedGeneration"] = (observed - generation).into();
        }
    }
    value["metadata"]["generation"] = Value::Null;
    share.masked += 1;
}

/// On endpoints: when happened what they were last written for.
const TRIGGER: &str = "endpoints.kubernetes.io/last-change-trigger-time";

/// A controller that was started anew does not know what it has told of, and tells it again.
fn forget_trigger(metadata: &mut Value) {
    forget(metadata, "annotations", TRIGGER);
    let writers = metadata
        .get_mut("managedFields")
        .and_then(Value::as_array_mut);
    for writer in writers.into_iter().flatten() {
        if let Some(fields) = writer.pointer_mut("/fieldsV1/f:metadata") {
            forget(fields, "f:annotations", &format!("f:{TRIGGER}"));
        }
    }
}

/// Takes `key` out of the map `field`, and the map with it if nothing else is there.
fn forget(value: &mut Value, field: &str, key: &str) {
    let Some(map) = value.get_mut(field).and_then(Value::as_object_mut) else {
        return;
    };
    if map.remove(key).is_some()
        && map.keys().all(|key| key == ".")
        && let Some(fields) = value.as_object_mut()
    {
        fields.remove(field);
    }
}

/// Lists whose order only tells what came first.
fn put_in_order(value: &mut Value) {
    for (list, keys) in [
        ("/status/conditions", &["type"][..]),
        (
            "/metadata/managedFields",
            &["manager", "operation", "subresource"],
        ),
    ] {
        if let Some(Value::Array(items)) = value.pointer_mut(list) {
            items.sort_by_cached_key(|item| {
                let words = keys.iter().map(|key| item[key].to_string());
                words.collect::<Vec<_>>()
            });
        }
    }
}

/// How many fields were compared.
#[derive(Debug, Clone, Copy, Default, Serialize, Deserialize)]
pub struct Share {
    /// Those that were.
    pub compared: usize,
    /// Those that were left out.
    pub masked: usize,
}

fn mask(value: &mut Value, names: &Names, share: &mut Share) {
    match value {
        Value::Object(fields) => {
            // A reference to an object may say which version was meant.
            if fields.contains_key("uid") && fields.remove("resourceVersion").is_some() {
                share.masked += 1;
            }
            for (_, field) in fields.iter_mut() {
                mask(field, names, share);
            }
            rename(fields, names);
        }
        Value::Array(items) => {
            for item in items {
                mask(item, names, share);
            }
        }
        Value::String(text) => {
            let alias = names.uids.get(text.as_str());
            if let Some((folder, name)) = text.rsplit_once('/')
                && let Some(alias) = names.names.get(name)
            {
                *text = format!("{folder}/{alias}");
                share.compared += 1;
            } else if let Some(alias) = alias.or_else(|| names.names.get(text.as_str())) {
                alias.clone_into(text);
                share.compared += 1;
            } else if is_moment(text) {
                "TIME".clone_into(text);
                share.masked += 1;
            } else if text.starts_with(TOKEN_VOLUME) {
                TOKEN_VOLUME.clone_into(text);
                share.masked += 1;
            } else {
                share.compared += 1;
            }
        }
        _ => share.compared += 1,
    }
}

/// Managed fields name the items of a list by their keys, and owners are known by uid.
fn rename(fields: &mut Map<String, Value>, names: &Names) {
    const BY_UID: &str = "k:{\"uid\":\"";
    let named = fields.keys().find(|key| key.starts_with(BY_UID)).cloned();
    let uid = named
        .as_ref()
        .and_then(|key| key[BY_UID.len()..].split('"').next());
    if let (Some(key), Some(alias)) = (&named, uid.and_then(|uid| names.uids.get(uid)))
        && let Some(field) = fields.remove(key)
    {
        fields.insert(format!("k:{alias}"), field);
        rename(fields, names);
    }
}

fn is_moment(text: &str) -> bool {
    text.starts_with("20") && text.ends_with('Z') && text.parse::<Timestamp>().is_ok()
}

/// The path under which an object is made.
pub(crate) fn collection(object: &Value) -> String {
    let text = |field: &str| object[field].as_str().unwrap_or_default();
    let version = text("apiVersion");
    let root = if version.contains('/') { "apis" } else { "api" };
    let kind = plural(text("kind"));
    match object["metadata"]["namespace"].as_str() {
        Some(namespace) => format!("/{root}/{version}/namespaces/{namespace}/{kind}"),
        None => format!("/{root}/{version}/{kind}"),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn reviewed(metadata: &Value, generations: [u32; 2], conditions: [&str; 2]) -> Value {
        let conditions = conditions.map(|kind| json!({"type": kind}));
        let mut value = json!({
            "metadata": metadata,
            "status": {"observedGeneration": generations[1], "conditions": conditions},
        });
        value["metadata"]["generation"] = generations[0].into();
        count_from_now(&mut value, &mut Share::default());
        put_in_order(&mut value);
        forget_trigger(&mut value["metadata"]);
        value
    }

    #[test]
    fn only_what_was_reviewed_may_differ() {
        let plain = json!({"name": "a"});
        let one = reviewed(&plain, [3, 3], ["A", "B"]);
        assert_eq!(one, reviewed(&plain, [4, 4], ["B", "A"]));
        assert_ne!(one, reviewed(&plain, [4, 3], ["A", "B"]), "it lags behind");
        assert_ne!(one, reviewed(&plain, [3, 3], ["A", "C"]));
        let told = json!({"name": "a", "annotations": {TRIGGER: "TIME"}});
        assert_eq!(one, reviewed(&told, [3, 3], ["A", "B"]));
        let more = json!({"name": "a", "annotations": {TRIGGER: "TIME", "more": "1"}});
        assert_ne!(
            one,
            reviewed(&more, [3, 3], ["A", "B"]),
            "others are compared"
        );
    }
}
