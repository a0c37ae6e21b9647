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
    mask(&mut value, names, &mut share);
    let owned = !object.metadata().owner_references.is_empty();
    reviewed(&mut value, owned, &mut share);
    (value, share)
}

/// What faults may change though nothing is wrong, each with its reason.
fn reviewed(value: &mut Value, owned: bool, share: &mut Share) {
    // Entries are in the order of their times, and times are not compared.
    sort(&mut value["metadata"], "managedFields", |entry| {
        let text = |field: &str| entry[field].as_str().unwrap_or_default().to_owned();
        [text("manager"), text("operation"), text("subresource")]
    });
    // A set of conditions by type: who was said last is at the end, and says nothing by that.
    sort(&mut value["status"], "conditions", |condition| {
        condition["type"].as_str().unwrap_or_default().to_owned()
    });
    // A controller that was started anew does not know what it has told of, and tells it again.
    forget_trigger(&mut value["metadata"]);
    // How many steps a roll-out takes depends on how its pods come up. What a controller writes has
    // as many generations; that the last of them was seen is compared.
    if owned {
        let generation = value["metadata"]["generation"].take();
        let observed = value["status"].get_mut("observedGeneration");
        if let Some(observed) = observed.filter(|observed| **observed == generation) {
            *observed = "LATEST".into();
        }
        share.compared -= usize::from(generation.is_number());
        share.masked += usize::from(generation.is_number());
    }
}

/// On endpoints: when happened what they were last written for.
const TRIGGER: &str = "endpoints.kubernetes.io/last-change-trigger-time";

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

fn sort<K: Ord>(value: &mut Value, field: &str, by: impl Fn(&Value) -> K) {
    if let Some(items) = value.get_mut(field).and_then(Value::as_array_mut) {
        items.sort_by_key(by);
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
            if let Some(alias) = alias.or_else(|| names.names.get(text.as_str())) {
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

    fn set(order: [&str; 2], generation: u32, observed: u32) -> Value {
        let writers = order.map(|manager| json!({"manager": manager, "operation": "Update"}));
        let conditions = order.map(|kind| json!({"type": kind}));
        json!({
            "metadata": {"generation": generation, "managedFields": writers},
            "status": {"observedGeneration": observed, "conditions": conditions},
        })
    }

    fn reviewed(mut value: Value, owned: bool) -> Value {
        let mut share = Share {
            compared: 10,
            masked: 0,
        };
        super::reviewed(&mut value, owned, &mut share);
        assert_eq!(
            (share.compared, share.masked),
            if owned { (9, 1) } else { (10, 0) }
        );
        value
    }

    #[test]
    fn only_what_was_reviewed_may_differ() {
        let one = reviewed(set(["a", "b"], 3, 3), true);
        assert_eq!(one, reviewed(set(["b", "a"], 4, 4), true));
        assert_ne!(one, reviewed(set(["a", "b"], 4, 3), true), "it lags behind");
        assert_ne!(one, reviewed(set(["a", "c"], 3, 3), true));
        let mut told = set(["a", "b"], 3, 3);
        told["metadata"]["annotations"] = json!({TRIGGER: "TIME"});
        assert_eq!(one, reviewed(told.clone(), true));
        told["metadata"]["annotations"]["more"] = "1".into();
        assert_ne!(one, reviewed(told, true), "other annotations are compared");
        let users = reviewed(set(["a", "b"], 3, 3), false);
        assert_ne!(users, reviewed(set(["a", "b"], 4, 4), false));
    }
}
