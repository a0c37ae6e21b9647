//! What is left of releases that newer ones of their stream have replaced: it needs nobody's attention.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use crate::api::{annotations, labels};

/// The releases that are not the newest of their stream, by namespace and name, and by name alone.
#[derive(Debug, Clone, Default)]
pub struct Superseded {
    releases: BTreeSet<(String, String)>,
    names: BTreeSet<String>,
}

fn text<'a>(object: &'a Value, pointer: &str) -> &'a str {
    let found = object.pointer(pointer).and_then(Value::as_str);
    found.unwrap_or_default()
}

fn is_payload(object: &Value) -> bool {
    object["kind"] == "ReleasePayload"
}

impl Superseded {
    /// Looks at all ReleasePayloads among `objects`.
    pub fn among(objects: &[Value]) -> Self {
        let mut streams: BTreeMap<(&str, &str), Vec<(&str, &str)>> = BTreeMap::new();
        for object in objects.iter().filter(|object| is_payload(object)) {
            let stream = text(object, "/spec/payloadCoordinates/streamName");
            let release = (
                text(object, "/metadata/creationTimestamp"),
                text(object, "/metadata/name"),
            );
            let namespace = text(object, "/metadata/namespace");
            streams
                .entry((namespace, stream))
                .or_default()
                .push(release);
        }
        let mut found = Self::default();
        for ((namespace, _), mut releases) in streams {
            releases.sort_unstable();
            releases.pop();
            for (_, name) in releases {
                found
                    .releases
                    .insert((namespace.to_owned(), name.to_owned()));
                found.names.insert(name.to_owned());
            }
        }
        found
    }

    /// Whether an object is such a release, or a Job or pod that created or verified one.
    pub fn covers(&self, object: &Value) -> bool {
        if is_payload(object) {
            let key = (
                text(object, "/metadata/namespace").to_owned(),
                text(object, "/metadata/name").to_owned(),
            );
            return self.releases.contains(&key);
        }
        let metadata = &object["metadata"];
        let of = [
            metadata["labels"][labels::PAYLOAD].as_str(),
            metadata["annotations"][annotations::RELEASE_TAG].as_str(),
        ];
        of.into_iter().flatten().any(|tag| self.names.contains(tag))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn all_releases_of_a_stream_but_the_newest_are_superseded() {
        let release = |namespace: &str, stream: &str, name: &str, day: u32| {
            json!({
                "kind": "ReleasePayload",
                "metadata": {
                    "namespace": namespace, "name": name,
                    "creationTimestamp": format!("2026-01-{day:02}T00:00:00Z"),
                },
                "spec": {"payloadCoordinates": {"streamName": stream}},
            })
        };
        let objects = [
            release("ocp", "nightly", "n-1", 1),
            release("ocp", "nightly", "n-2", 2),
            release("ocp", "ci", "c-1", 1),
            release("priv", "nightly", "p-1", 1),
        ];
        let found = Superseded::among(&objects);
        let covered: Vec<_> = objects.iter().map(|object| found.covers(object)).collect();
        assert_eq!(covered, [true, false, false, false]);
        let pod =
            |tag: &str| json!({"kind": "Pod", "metadata": {"labels": {labels::PAYLOAD: tag}}});
        assert!(found.covers(&pod("n-1")) && !found.covers(&pod("n-2")));
        let job =
            json!({"kind": "Job", "metadata": {"annotations": {annotations::RELEASE_TAG: "n-1"}}});
        assert!(found.covers(&job));
        assert!(!found.covers(&json!({"kind": "Pod", "metadata": {"name": "n-1"}})));
    }
}
