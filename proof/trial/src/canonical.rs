//! Objects in a form in which two runs can be compared: without the values that differ in every
//! run.
//!
//! Those values are judged by rules: a uid by the object that it belongs to, a version by being
//! that of the last write, a timestamp by lying between the start and the last write. All other
//! permitted differences are listed in [`crate::judge::ALLOWANCES`].

use std::{collections::HashMap, sync::Arc};

use jiff::Timestamp;
use neap_pocket::store::{Change, Event, Object};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::{
    judge::{FENCE, allowances::TRIGGER},
    plan::plural,
    workload::PermittedDifference,
};

/// Kinds that name their children after their own uid, so that the names differ between runs, and
/// the resource of these children.
const NAMED_BY_UID: [(&str, &str); 4] = [
    ("ReplicaSet", "/pods"),
    ("DaemonSet", "/pods"),
    ("Job", "/pods"),
    ("Service", "discovery.k8s.io/endpointslices"),
];
/// Volumes are named after the uid of the claim that they are created for.
const VOLUME: &str = "pvc-";
/// The server generates the suffix.
const TOKEN_VOLUME: &str = "kube-api-access-";

/// A number that Prow draws is longer than this; a test chooses a shorter one.
const MIN_BUILD_DIGITS: usize = 10;

/// Maps the uids and generated names of a run to names that are the same in every run, and records
/// when and how often each object was written.
#[derive(Debug, Default)]
pub(crate) struct ObjectNames {
    uids: HashMap<String, String>,
    aliases: HashMap<String, String>,
    /// The numbers of the runs of ProwJobs, which Prow draws. They are also inside longer texts.
    builds: Vec<(String, String)>,
    /// The time of the write with each revision.
    moments: HashMap<u64, Timestamp>,
    /// The number of writes to each object, by uid.
    writes: HashMap<String, i64>,
    start: Timestamp,
}

impl ObjectNames {
    /// Collects the names of every object in the history.
    pub(crate) fn of(history: &[Arc<Event>]) -> Self {
        let mut names = Self {
            start: history.first().map(|event| event.at).unwrap_or_default(),
            ..Self::default()
        };
        for event in history {
            names.moments.insert(event.revision(), event.at);
            let uid = event.object.metadata().uid.to_string();
            *names.writes.entry(uid).or_default() += 1;
            if event.change == Change::Added {
                let metadata = event.object.metadata();
                let place = comparison_key(&event.resource, &event.path, &event.object);
                if let Some((_, alias)) = place.rsplit_once('/')
                    && alias != &*metadata.name
                {
                    let name = metadata.name.to_string();
                    names.aliases.insert(name, alias.to_owned());
                }
                if &*event.resource == "/services"
                    && let Some(address) = event.object.value()["spec"]["clusterIP"].as_str()
                    && address != "None"
                {
                    // The server assigns it at random; every object that repeats it must mean the
                    // same Service.
                    names
                        .aliases
                        .insert(address.to_owned(), format!("address of {place}"));
                }
                names.uids.insert(metadata.uid.to_string(), place);
            }
            if &*event.resource == "prow.k8s.io/prowjobs" {
                names.add_build(event);
            }
        }
        names
    }

    fn add_build(&mut self, event: &Event) {
        let value = event.object.value();
        let drawn = value["status"]["build_id"].as_str();
        if let Some(number) = drawn.filter(|number| number.len() >= MIN_BUILD_DIGITS)
            && self.builds.iter().all(|(known, _)| known != number)
        {
            let alias = format!("build of {}", event.path);
            self.builds.push((number.to_owned(), alias));
        }
    }
}

/// The key under which two runs compare an object: all pods of a set have the same one.
pub(crate) fn comparison_key(resource: &str, path: &str, object: &Object) -> String {
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

/// The object without values of its own run, and the number of its fields that were masked.
pub(crate) fn canonical(
    object: &Object,
    names: &ObjectNames,
    differences: &[PermittedDifference],
) -> (Value, FieldCoverage) {
    let mut value = object.value();
    let mut share = FieldCoverage::default();
    let version = &mut value["metadata"]["resourceVersion"];
    if version.as_str() == Some(&*object.revision().to_string()) {
        *version = "that of the last write".into();
    }
    let writes = names.writes.get(&*object.metadata().uid);
    count_from_now(&mut value, writes.copied().unwrap_or_default());
    put_in_order(&mut value);
    share.masked += forget_trigger(&mut value["metadata"]);
    share.masked += forget(&mut value["metadata"], "annotations", FENCE);
    share.masked += forget_attempts(&mut value);
    share.masked += forget_differences(&mut value, differences);
    let last = names.moments.get(&object.revision());
    let mask = Mask {
        names,
        last: last.copied().unwrap_or_default(),
    };
    mask.apply("", &mut value, &mut share);
    (value, share)
}

/// The number of changes on the way does not matter. What matters: there were no more changes than
/// writes, and the last change was observed.
fn count_from_now(value: &mut Value, writes: i64) {
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
    if (1..=writes).contains(&generation) {
        value["metadata"]["generation"] = "at most its writes".into();
    }
}

/// Faults change how often an Operation attempts a step; the result of the step must not change.
fn forget_attempts(value: &mut Value) -> usize {
    if value["kind"] != "Operation" {
        return 0;
    }
    let strip = |message: &mut Value| {
        if let Value::String(text) = message {
            *text = without_attempt(text);
        }
    };
    if let Some(message) = value.pointer_mut("/status/message") {
        strip(message);
    }
    let conditions = value.pointer_mut("/status/conditions");
    let conditions = conditions.and_then(Value::as_array_mut);
    for condition in conditions.into_iter().flatten() {
        strip(&mut condition["message"]);
    }
    let steps = value.pointer_mut("/status/steps");
    let steps = steps.and_then(Value::as_array_mut).into_iter().flatten();
    let forget = |step: &mut Value| {
        step["attempts"] = Value::Null;
        if let Some(fields) = step.as_object_mut() {
            for field in ["failures", "interrupted", "polled"] {
                fields.remove(field);
            }
        }
    };
    steps.map(forget).count()
}

/// The fields that a workload permits to differ. A value that is zero or empty is none.
fn forget_differences(value: &mut Value, differences: &[PermittedDifference]) -> usize {
    let kind = value["kind"].as_str().unwrap_or_default().to_owned();
    let of_kind = differences.iter().filter(|one| one.kind == kind);
    let mut forgotten = 0;
    for one in of_kind {
        let field = value.pointer_mut(one.pointer);
        let Some(field) = field else { continue };
        forgotten += match one.inside {
            None => forget_value(field),
            Some(inside) => forget_inside(field, inside),
        };
    }
    forgotten
}

fn forget_value(field: &mut Value) -> usize {
    if *field == 0 || *field == "" {
        return 0;
    }
    *field = "that of its run".into();
    1
}

/// A field inside a JSON document whose text is the value. A text that is none is compared as it is.
fn forget_inside(text: &mut Value, inside: &str) -> usize {
    let document = text
        .as_str()
        .and_then(|text| serde_json::from_str(text).ok());
    let Some(mut document): Option<Value> = document else {
        return 0;
    };
    let forgotten = document.pointer_mut(inside).map_or(0, forget_value);
    *text = document.to_string().into();
    forgotten
}

/// The message without the number of the attempt.
fn without_attempt(text: &str) -> String {
    match text.split_once("attempt ") {
        Some((before, after)) => {
            let after = after.trim_start_matches(|letter: char| letter.is_ascii_digit());
            format!("{before}attempt{after}")
        }
        None => text.to_owned(),
    }
}

/// A restarted controller does not know which changes it has recorded, and records the last one
/// again.
fn forget_trigger(metadata: &mut Value) -> usize {
    let mut forgotten = forget(metadata, "annotations", TRIGGER);
    let writers = metadata
        .get_mut("managedFields")
        .and_then(Value::as_array_mut);
    for writer in writers.into_iter().flatten() {
        if let Some(fields) = writer.pointer_mut("/fieldsV1/f:metadata") {
            forgotten += forget(fields, "f:annotations", &format!("f:{TRIGGER}"));
        }
    }
    forgotten
}

/// Removes `key` from the map `field`, and the map if it is then empty. Returns the number of
/// removed fields.
fn forget(value: &mut Value, field: &str, key: &str) -> usize {
    let map = value.get_mut(field).and_then(Value::as_object_mut);
    let Some(map) = map.filter(|map| map.contains_key(key)) else {
        return 0;
    };
    map.remove(key);
    if map.keys().all(|key| key == ".")
        && let Some(fields) = value.as_object_mut()
    {
        fields.remove(field);
    }
    1
}

/// Sorts lists whose order only reflects which entry came first.
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

/// The number of compared and masked fields.
#[derive(Debug, Clone, Copy, Default, Serialize, Deserialize)]
pub struct FieldCoverage {
    pub compared: usize,
    pub masked: usize,
}

/// Replaces the values of one object that are specific to its run.
struct Mask<'a> {
    names: &'a ObjectNames,
    /// When the object was last written.
    last: Timestamp,
}

impl Mask<'_> {
    fn apply(&self, field: &str, value: &mut Value, share: &mut FieldCoverage) {
        match value {
            Value::Object(fields) => {
                // A reference to an object may contain a version.
                if fields.contains_key("uid")
                    && !fields.contains_key("creationTimestamp")
                    && fields.remove("resourceVersion").is_some()
                {
                    share.masked += 1;
                }
                for (field, value) in fields.iter_mut() {
                    self.apply(field, value, share);
                }
                rename(fields, self.names);
            }
            Value::Array(items) => {
                for item in items {
                    self.apply(field, item, share);
                }
            }
            Value::String(text) => {
                if let Some((folder, name)) = text.rsplit_once('/')
                    && let Some(alias) = self.names.aliases.get(name)
                {
                    *text = format!("{folder}/{alias}");
                } else if let Some(word) = self.word(field, text) {
                    word.clone_into(text);
                } else {
                    self.forget_builds(text);
                }
                share.compared += 1;
            }
            _ => share.compared += 1,
        }
    }

    fn forget_builds(&self, text: &mut String) {
        for (number, alias) in &self.names.builds {
            if text.contains(number) {
                *text = text.replace(number, alias);
            }
        }
    }

    /// The value that is compared instead of `text`.
    fn word(&self, field: &str, text: &str) -> Option<&str> {
        let alias = self.names.uids.get(text);
        if let Some(alias) = alias.or_else(|| self.names.aliases.get(text)) {
            return Some(alias);
        }
        if text.starts_with(TOKEN_VOLUME) {
            return Some(TOKEN_VOLUME);
        }
        // An object may be deleted, and an operation may be due, after the last write.
        let last = if matches!(field, "deletionTimestamp" | "due") {
            Timestamp::MAX
        } else {
            self.last
        };
        let moment = moment(text)?;
        // Timestamps are stored in whole seconds.
        let since = self.names.start.as_second()..=last.as_second();
        since
            .contains(&moment.as_second())
            .then_some("a moment of its life")
    }
}

/// Managed fields name list items by their keys, and owner references have the uid as their key.
fn rename(fields: &mut Map<String, Value>, names: &ObjectNames) {
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

fn moment(text: &str) -> Option<Timestamp> {
    (text.starts_with("20") && text.ends_with('Z'))
        .then(|| text.parse().ok())
        .flatten()
}

/// The path of the collection that an object belongs to.
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
        count_from_now(&mut value, 9);
        put_in_order(&mut value);
        forget_trigger(&mut value["metadata"]);
        value
    }

    #[test]
    fn of_a_document_inside_a_value_only_the_named_field_may_differ() {
        let difference = [PermittedDifference::inside("A", "/data/state", "/at")];
        let seen = |state: &str| {
            let mut value = json!({"kind": "A", "data": {"state": state}});
            forget_differences(&mut value, &difference);
            value
        };
        let one = seen(r#"{"at": 1, "reason": "Done"}"#);
        assert_eq!(one, seen(r#"{"at": 2, "reason": "Done"}"#));
        assert_ne!(one, seen(r#"{"at": 2, "reason": "Failed"}"#));
        assert_ne!(
            one,
            seen(r#"{"reason": "Done"}"#),
            "that it is there is compared"
        );
        assert_ne!(one, seen("at 1"));
    }

    #[test]
    fn only_what_was_reviewed_may_differ() {
        let plain = json!({"name": "a"});
        let one = reviewed(&plain, [3, 3], ["A", "B"]);
        assert_eq!(one, reviewed(&plain, [4, 4], ["B", "A"]));
        assert_ne!(one, reviewed(&plain, [4, 3], ["A", "B"]), "it lags behind");
        assert_ne!(one, reviewed(&plain, [10, 10], ["A", "B"]), "nine writes");
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
