//! The `scale` subresource: an `autoscaling/v1` Scale read from an object, and written back to it.
//!
//! Both directions are pure. [`Paths`] says where the three values are in an object, for built-in
//! kinds and custom resources alike.

use serde_json::{Map, Value, json};

use super::label_selector;
use crate::status::Problems;

/// The paths of the values that a Scale shows. They begin with a dot, as `.spec.replicas`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Paths<'a> {
    /// The desired number of replicas.
    pub spec_replicas: &'a str,
    /// The observed number of replicas.
    pub status_replicas: &'a str,
    /// The selector of the pods: a string, or a label selector object.
    pub selector: Option<&'a str>,
}

/// Deployments, ReplicaSets, StatefulSets and ReplicationControllers.
pub const BUILT_IN: Paths<'static> = Paths {
    spec_replicas: ".spec.replicas",
    status_replicas: ".status.replicas",
    selector: Some(".spec.selector"),
};

/// Whether the built-in resource has the subresource.
pub fn is_scalable(group: &str, plural: &str) -> bool {
    matches!(
        (group, plural),
        ("apps", "deployments" | "replicasets" | "statefulsets") | ("", "replicationcontrollers")
    )
}

/// The desired replicas of an object; `None` if they are not set. A custom resource without them
/// has no Scale: the server cannot know how its controller treats that.
pub fn wanted(object: &Value, paths: &Paths<'_>) -> Option<i64> {
    at(object, paths.spec_replicas).as_i64()
}

/// The Scale of an object; an absent number is zero.
pub fn read(object: &Value, paths: &Paths<'_>) -> Value {
    let mut metadata = Map::new();
    for key in [
        "name",
        "namespace",
        "uid",
        "resourceVersion",
        "creationTimestamp",
    ] {
        if let Some(value) = object["metadata"].get(key) {
            metadata.insert(key.into(), value.clone());
        }
    }
    let mut spec = Map::new();
    let wanted = wanted(object, paths).unwrap_or(0);
    // A Scale leaves a zero out of its spec, as clients expect.
    if wanted != 0 {
        spec.insert("replicas".into(), wanted.into());
    }
    let mut status = Map::new();
    status.insert(
        "replicas".into(),
        integer(object, paths.status_replicas).into(),
    );
    let selector = paths.selector.map(|path| selector_text(at(object, path)));
    if let Some(selector) = selector.filter(|text| !text.is_empty()) {
        status.insert("selector".into(), selector.into());
    }
    json!({
        "kind": "Scale",
        "apiVersion": "autoscaling/v1",
        "metadata": metadata,
        "spec": spec,
        "status": status,
    })
}

/// Validates a Scale that a client wrote.
pub fn validate(scale: &Value, problems: &mut Problems) {
    let wanted = integer(scale, ".spec.replicas");
    if wanted < 0 {
        let detail = "must be greater than or equal to 0";
        problems.invalid("spec.replicas", wanted, detail);
    }
}

/// Writes the replicas of a Scale into the object; nothing else of the object changes. Returns
/// whether the path existed.
pub fn write(object: &mut Value, scale: &Value, paths: &Paths<'_>) -> bool {
    let wanted = integer(scale, ".spec.replicas");
    let mut place = object;
    for step in steps(paths.spec_replicas) {
        if place.is_null() {
            *place = Value::Object(Map::new());
        }
        let Some(map) = place.as_object_mut() else {
            return false;
        };
        place = map.entry(step).or_insert(Value::Null);
    }
    *place = wanted.into();
    true
}

fn steps(path: &str) -> impl Iterator<Item = &str> {
    path.split('.').filter(|step| !step.is_empty())
}

fn at<'a>(object: &'a Value, path: &str) -> &'a Value {
    steps(path).fold(object, |value, step| &value[step])
}

fn integer(object: &Value, path: &str) -> i64 {
    at(object, path).as_i64().unwrap_or(0)
}

/// A selector in its query form. ReplicationControllers select by plain labels.
fn selector_text(selector: &Value) -> String {
    let Some(map) = selector.as_object() else {
        return selector.as_str().unwrap_or_default().to_owned();
    };
    if map.contains_key("matchLabels") || map.contains_key("matchExpressions") {
        label_selector::written(selector)
    } else {
        label_selector::written(&json!({"matchLabels": selector}))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn deployment() -> Value {
        json!({
            "apiVersion": "apps/v1",
            "kind": "Deployment",
            "metadata": {
                "name": "d", "namespace": "n", "uid": "u", "resourceVersion": "7",
                "creationTimestamp": "2026-01-01T00:00:00Z", "labels": {"a": "b"},
            },
            "spec": {"replicas": 3, "selector": {"matchLabels": {"b": "2", "a": "1"}}},
            "status": {"replicas": 2},
        })
    }

    #[test]
    fn a_deployment_reads_as_a_scale() {
        let expected = json!({
            "kind": "Scale",
            "apiVersion": "autoscaling/v1",
            "metadata": {
                "name": "d", "namespace": "n", "uid": "u", "resourceVersion": "7",
                "creationTimestamp": "2026-01-01T00:00:00Z",
            },
            "spec": {"replicas": 3},
            "status": {"replicas": 2, "selector": "a=1,b=2"},
        });
        assert_eq!(read(&deployment(), &BUILT_IN), expected);
    }

    #[test]
    fn plain_label_selectors_are_written_too() {
        let controller = json!({"metadata": {"name": "c"}, "spec": {"selector": {"x": "y"}}});
        let scale = read(&controller, &BUILT_IN);
        assert_eq!(scale["status"], json!({"replicas": 0, "selector": "x=y"}));
        assert_eq!(scale["spec"], json!({}));
    }

    #[test]
    fn writing_a_scale_changes_the_wanted_number_alone() {
        let mut object = deployment();
        assert!(write(
            &mut object,
            &json!({"spec": {"replicas": 5}}),
            &BUILT_IN
        ));
        let mut expected = deployment();
        expected["spec"]["replicas"] = json!(5);
        assert_eq!(object, expected);
        // An absent number is a zero.
        assert!(write(&mut object, &json!({"spec": {}}), &BUILT_IN));
        assert_eq!(object["spec"]["replicas"], json!(0));
    }

    #[test]
    fn custom_resources_keep_their_numbers_anywhere() {
        let paths = Paths {
            spec_replicas: ".spec.pool.size",
            status_replicas: ".status.pool.size",
            selector: Some(".status.selector"),
        };
        let mut object =
            json!({"spec": {}, "status": {"pool": {"size": 4}, "selector": "a in (b)"}});
        assert_eq!(wanted(&object, &paths), None);
        assert!(write(
            &mut object,
            &json!({"spec": {"replicas": 9}}),
            &paths
        ));
        assert_eq!(object["spec"], json!({"pool": {"size": 9}}));
        assert_eq!(wanted(&object, &paths), Some(9));
        let scale = read(&object, &paths);
        assert_eq!(scale["spec"]["replicas"], json!(9));
        assert_eq!(
            scale["status"],
            json!({"replicas": 4, "selector": "a in (b)"})
        );
    }

    #[test]
    fn a_number_has_no_place_below_a_scalar() {
        let mut object = json!({"spec": "text"});
        assert!(!write(
            &mut object,
            &json!({"spec": {"replicas": 1}}),
            &BUILT_IN
        ));
        assert_eq!(object, json!({"spec": "text"}));
    }

    #[test]
    fn negative_numbers_are_refused() {
        let mut problems = Problems::new();
        validate(&json!({"spec": {"replicas": -1}}), &mut problems);
        assert_eq!(
            problems.to_string(),
            "spec.replicas: Invalid value: -1: must be greater than or equal to 0"
        );
    }
}
