//! Normalizes values that two controllers may choose differently.
//!
//! Generated names become what they were generated for, hashes the number of their template in
//! order of creation; uids, times, addresses and revisions become their presence. Events are summed
//! up by their content.

use std::{collections::BTreeMap, sync::LazyLock};

use regex::Regex;
use serde_json::{Value, json};

use crate::{node::NODES, scenario::Scenario};

/// Every mask, for the report.
pub const MASKS: [&str; 10] = [
    "uids: whose they are; those of what is gone: presence",
    "times, addresses, minutes in the names of a CronJob's Jobs: presence",
    "resourceVersion, managedFields: left out; resourceVersion of references: presence",
    "drawn suffixes of names, also in prose: presence",
    "hashes of templates and revisions: their number in order of creation; of what is gone: presence",
    "conditions, endpoints and addresses: sorted; objects of one name after this: sorted",
    "Events: type, reason, message, object and component, and how often they were told",
    "which of two budgets is chosen arbitrarily: that one is",
    "where a script says that its pods change at the same time: sizes of ReplicaSets on the way (the sum of all changes), generations of ReplicaSets and EndpointSlices",
    "where a script says that any node may be the first: which one it is",
];

/// The letters of generated names.
const LETTERS: &str = "[bcdfghjklmnpqrstvwxz2456789]";

static TIME: LazyLock<Option<Regex>> =
    LazyLock::new(|| Regex::new(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z").ok());
static ADDRESS: LazyLock<Option<Regex>> =
    LazyLock::new(|| Regex::new(r"\b10\.\d+\.\d+\.\d+\b").ok());
static UID: LazyLock<Option<Regex>> =
    LazyLock::new(|| Regex::new(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}").ok());
static MINUTE: LazyLock<Option<Regex>> = LazyLock::new(|| Regex::new(r"-[23]\d{7}\b").ok());
static HASH: LazyLock<Option<Regex>> =
    LazyLock::new(|| Regex::new(&format!(r"-{LETTERS}{{6,10}}\b")).ok());
static SUFFIX: LazyLock<Option<Regex>> =
    LazyLock::new(|| Regex::new(&format!(r"-{LETTERS}{{5}}\b")).ok());

static CHOSEN: LazyLock<Option<Regex>> =
    LazyLock::new(|| Regex::new("Chose \"[^\"]+\" arbitrarily").ok());

/// The objects of a namespace in a form in which two servers can agree.
pub fn normalize(mut objects: Vec<Value>, scenario: &Scenario) -> Vec<Value> {
    let names = names(&objects);
    for object in &mut objects {
        if let Some(meta) = object["metadata"].as_object_mut() {
            meta.remove("managedFields");
            meta.remove("resourceVersion");
        }
        if scenario.at_once {
            mask_generation(object);
        }
        if scenario.any_node {
            mask_node(object);
        }
        mask(object, &names);
    }
    let (events, mut rest): (Vec<_>, Vec<_>) = objects
        .into_iter()
        .partition(|object| object["kind"] == "Event");
    rest.extend(summarized_events(&events, scenario));
    rest.sort_by_cached_key(|object| (title(object), object.to_string()));
    rest
}

fn mask_generation(object: &mut Value) {
    let fields = match object["kind"].as_str() {
        Some("ReplicaSet") => &["/metadata/generation", "/status/observedGeneration"][..],
        Some("EndpointSlice") => &["/metadata/generation"],
        _ => &[],
    };
    for field in fields {
        if let Some(number) = object.pointer_mut(field) {
            *number = "<generation>".into();
        }
    }
}

fn mask_node(value: &mut Value) {
    match value {
        Value::String(text) if NODES.iter().any(|(node, _)| text == node) => {
            *text = "<node>".into();
        }
        Value::String(text) if NODES.iter().any(|(_, zone)| text == zone) => {
            *text = "<zone>".into();
        }
        Value::Array(items) => items.iter_mut().for_each(mask_node),
        Value::Object(fields) => fields.values_mut().for_each(mask_node),
        _ => {}
    }
}

pub fn title(object: &Value) -> (String, String) {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    (text(&object["kind"]), text(&object["metadata"]["name"]))
}

/// Replacements, the longest first.
fn names(objects: &[Value]) -> Vec<(String, String)> {
    let mut names = Vec::new();
    let of = |kind: &str, label: &'static str| {
        let mut found: Vec<_> = objects
            .iter()
            .filter(|object| object["kind"] == kind)
            .filter_map(|object| {
                let meta = &object["metadata"];
                let hash = meta["labels"][label].as_str()?;
                let age = meta["creationTimestamp"].as_str()?;
                Some((age.to_owned(), hash.to_owned()))
            })
            .collect();
        found.sort();
        found.dedup_by(|one, two| one.1 == two.1);
        found
    };
    let kinds = [
        ("ReplicaSet", "pod-template-hash", "template"),
        (
            "ControllerRevision",
            "controller.kubernetes.io/hash",
            "revision",
        ),
        ("ControllerRevision", "controller-revision-hash", "revision"),
    ];
    for (kind, label, word) in kinds {
        for (number, (_, hash)) in of(kind, label).into_iter().enumerate() {
            names.push((hash, format!("<{word} {}>", number + 1)));
        }
    }
    for object in objects {
        if let Some(uid) = object["metadata"]["uid"].as_str() {
            let (kind, name) = title(object);
            names.push((uid.to_owned(), format!("<uid of {kind} {name}>")));
        }
    }
    names.sort_by_key(|(from, _)| std::cmp::Reverse(from.len()));
    names
}

fn mask(value: &mut Value, names: &[(String, String)]) {
    match value {
        Value::String(text) => mask_text(text, names),
        Value::Array(items) => items.iter_mut().for_each(|item| mask(item, names)),
        Value::Object(fields) => {
            for (key, field) in fields.iter_mut() {
                mask(field, names);
                if key == "resourceVersion" {
                    *field = "<revision>".into();
                }
                if let (
                    "conditions" | "endpoints" | "addresses" | "notReadyAddresses",
                    Some(list),
                ) = (key.as_str(), field.as_array_mut())
                {
                    list.sort_by_cached_key(|item| (item["type"].to_string(), item.to_string()));
                }
            }
        }
        _ => {}
    }
}

fn mask_text(text: &mut String, names: &[(String, String)]) {
    for (from, to) in names {
        if text.contains(from.as_str()) {
            *text = text.replace(from.as_str(), to);
        }
    }
    for (regex, with) in [
        (&UID, "<uid>"),
        (&TIME, "<time>"),
        (&ADDRESS, "<address>"),
        (&MINUTE, "-<minute>"),
        (&SUFFIX, "-*"),
        (&HASH, "-<gone>"),
        (&CHOSEN, "Chose one arbitrarily"),
    ] {
        if let Some(regex) = regex.as_ref()
            && regex.is_match(text)
        {
            *text = regex.replace_all(text, with).into_owned();
        }
    }
}

/// Steps of a scale-up depend on when pods become ready; their sum does not.
fn summed(mut said: Value, times: i64) -> (Value, i64) {
    let name = said["metadata"]["name"].as_str().unwrap_or_default();
    let sizes = name.rsplit_once(" from ").and_then(|(what, sizes)| {
        let (from, to) = sizes.split_once(" to ")?;
        let change = to.parse::<i64>().ok()? - from.parse::<i64>().ok()?;
        Some((what.to_owned(), change.abs() * times))
    });
    match sizes {
        Some((what, change)) => {
            said["metadata"]["name"] = what.into();
            (said, change)
        }
        None => (said, times),
    }
}

/// Events, one for each distinct content.
fn summarized_events(events: &[Value], scenario: &Scenario) -> Vec<Value> {
    let mut sums: BTreeMap<String, (Value, i64)> = BTreeMap::new();
    for event in events {
        let about = &event["involvedObject"];
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let (kind, name, reason) = (
            text(&about["kind"]),
            text(&about["name"]),
            text(&event["reason"]),
        );
        let said = json!({
            "kind": format!("Event {reason}"),
            "metadata": {"name": format!("{kind} {name}: {}", text(&event["message"]))},
            "type": event["type"], "component": event["source"]["component"],
            "reporter": event["reportingComponent"], "field": about["fieldPath"],
        });
        let times = event["count"].as_i64().unwrap_or(1);
        let (said, times) = if scenario.at_once {
            summed(said, times)
        } else {
            (said, times)
        };
        sums.entry(said.to_string()).or_insert((said, 0)).1 += times;
    }
    let sums = sums.into_values().map(|(mut said, times)| {
        said["times"] = times.into();
        said
    });
    sums.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn scenario(more: &str) -> Scenario {
        serde_saphyr::from_str(&format!("name: lone\nsteps: []\n{more}")).unwrap()
    }

    fn event(message: &str, count: i64) -> Value {
        json!({
            "kind": "Event", "reason": "Told", "message": message, "count": count,
            "involvedObject": {"kind": "Pod", "name": "web-x2b4c"},
        })
    }

    #[test]
    fn a_uid_is_known_by_whose_it_is() {
        let [own, gone] = ["1", "2"]
            .map(|digit| format!("{}-0000-0000-0000-{}", digit.repeat(8), digit.repeat(12)));
        let pod = |owner: &str| {
            json!({
                "kind": "Pod",
                "metadata": {"name": "web-x2b4c", "uid": own, "ownerReferences": [{"uid": owner}]},
            })
        };
        let owners = |owner: &str| {
            normalize(vec![pod(owner)], &scenario(""))[0]["metadata"]["ownerReferences"][0]["uid"]
                .clone()
        };
        assert_eq!(owners(&own), "<uid of Pod web-*>");
        assert_eq!(owners(&gone), "<uid>");
    }

    #[test]
    fn events_that_say_the_same_are_one() {
        let said = normalize(
            vec![event("gone", 2), event("gone", 1), event("here", 1)],
            &scenario(""),
        );
        let said: Vec<_> = said
            .iter()
            .map(|it| format!("{} {}", it["metadata"]["name"], it["times"]))
            .collect();
        assert_eq!(said, ["\"Pod web-*: gone\" 3", "\"Pod web-*: here\" 1"]);
    }

    #[test]
    fn steps_and_generations_count_unless_pods_change_at_once() {
        let steps = || {
            vec![
                event("Scaled up x from 1 to 2", 1),
                event("Scaled up x from 2 to 4", 1),
            ]
        };
        let set = json!({"kind": "ReplicaSet", "metadata": {"name": "x", "generation": 3}});
        let all = || [steps(), vec![set.clone()]].concat();
        let exact = normalize(all(), &scenario(""));
        assert_eq!(
            (exact.len(), &exact[2]["metadata"]["generation"]),
            (3, &json!(3))
        );
        let loose = normalize(all(), &scenario("at_once: true"));
        assert_eq!((loose.len(), &loose[0]["times"]), (2, &json!(3)));
        assert_eq!(loose[1]["metadata"]["generation"], "<generation>");
    }

    #[test]
    fn a_node_is_itself_unless_any_may_be_the_first() {
        let pod = || {
            vec![json!({"kind": "Pod", "metadata": {"name": "one"}, "spec": {"nodeName": "one"}})]
        };
        assert_eq!(
            normalize(pod(), &scenario(""))[0]["spec"]["nodeName"],
            "one"
        );
        let any = normalize(pod(), &scenario("any_node: true"));
        assert_eq!(any[0]["spec"]["nodeName"], "<node>");
    }
}
