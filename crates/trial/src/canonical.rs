//! Objects as two runs can be compared by: without what no two runs share.

use std::{collections::HashMap, sync::Arc};

use jiff::Timestamp;
use neap_pocket::store::{Change, Event, Object};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::plan::plural;

/// Fields that no two runs share, wherever they are.
const OWN: [&str; 2] = ["uid", "resourceVersion"];
/// Who names pods after its own uid, so that names differ where uids do.
const NAMED_BY_UID: [&str; 3] = ["ReplicaSet", "DaemonSet", "Job"];
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
        .find(|owner| NAMED_BY_UID.contains(&&*owner.kind));
    match (owner, path.split_once('/')) {
        (Some(owner), Some((namespace, _))) if resource == "/pods" => {
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
    count_from_now(&mut value, &mut share);
    put_in_order(&mut value);
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
    value["metadata"]["generation"] = Value::Null;
    share.masked += 1;
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
