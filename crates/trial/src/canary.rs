//! Strings that nobody may ever see again, in every place where users put secrets.
//!
//! There are two, because two things are asked: what is in a Secret may be in no other object at
//! all; what a user wrote into the spec of a pod goes where that spec goes, and nowhere else.

mod find;
mod listen;

use base64::{Engine, engine::general_purpose::STANDARD};
use serde_json::{Value, json};

pub(crate) use find::{in_spec, of_secret, shows};
pub(crate) use listen::{Listener, by_a_user};

/// What Secrets hold. It differs from itself in base64 and in a URL.
pub(crate) const OF_SECRET: &str = "canary/of=a secret that is nobody's?";
/// What pods are given openly: values of their environment, credentials of their probes.
pub(crate) const IN_SPEC: &str = "canary/in=the spec of a pod, to be kept?";
/// A Secret that is there in every run.
pub(crate) const SECRET: &str = "canary";

/// The Secret that pods are given.
pub(crate) fn secret() -> Value {
    let applied = json!({"stringData": {"password": OF_SECRET}}).to_string();
    let mut secret = json!({
        "apiVersion": "v1", "kind": "Secret",
        "metadata": {
            "name": SECRET, "namespace": "default",
            "annotations": {"kubectl.kubernetes.io/last-applied-configuration": applied},
        },
        "data": {"password": "", "token": ""},
    });
    plant(&mut secret);
    secret
}

/// The same object, or patch of one, with a canary wherever it has something secret.
pub(crate) fn planted(object: &Value) -> Value {
    let mut object = object.clone();
    plant(&mut object);
    object
}

fn plant(value: &mut Value) {
    if value["kind"] == "Secret" {
        fill(value.get_mut("data"), &STANDARD.encode(OF_SECRET));
        fill(value.get_mut("stringData"), OF_SECRET);
    }
    furnish(value);
}

/// All values of a map.
fn fill(map: Option<&mut Value>, with: &str) {
    for (_, value) in map.and_then(Value::as_object_mut).into_iter().flatten() {
        *value = with.into();
    }
}

/// Gives every container something that is secret.
fn furnish(value: &mut Value) {
    match value {
        Value::Object(fields) => {
            for (kind, is_probed) in [("containers", true), ("initContainers", false)] {
                let containers = fields.get_mut(kind).and_then(Value::as_array_mut);
                for container in containers.into_iter().flatten() {
                    confide(container, is_probed);
                }
            }
            fields.iter_mut().for_each(|(_, field)| furnish(field));
        }
        Value::Array(items) => items.iter_mut().for_each(furnish),
        _ => {}
    }
}

/// Those that run before the others come to an end, and nobody asks whether they are ready.
fn confide(container: &mut Value, is_probed: bool) {
    let given = json!([
        {"name": "PASSWORD", "valueFrom": {"secretKeyRef": {"name": SECRET, "key": "password"}}},
        {"name": "TOKEN", "value": IN_SPEC},
    ]);
    let header = json!([{"name": "Authorization", "value": IN_SPEC}]);
    if container["env"].is_null() {
        container["env"] = given;
    }
    if is_probed && container["readinessProbe"].is_null() {
        container["readinessProbe"] = json!({"httpGet": {"port": 80, "httpHeaders": header}});
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_secret_and_every_container_gets_one() {
        let pod =
            json!({"spec": {"template": {"spec": {"containers": [{"name": "a"}, {"name": "b"}]}}}});
        let pod = planted(&pod).to_string();
        assert_eq!(pod.matches(IN_SPEC).count(), 4, "{pod}");
        let first = planted(&json!({"spec": {"initContainers": [{"name": "first"}]}}));
        let first = &first["spec"]["initContainers"][0];
        assert_eq!(first["env"][1]["value"], IN_SPEC);
        assert_eq!(first["env"][0]["valueFrom"]["secretKeyRef"]["name"], SECRET);
        assert_eq!(first["readinessProbe"], Value::Null);
        assert!(!pod.contains(OF_SECRET));
        let secret = json!({"kind": "Secret", "data": {"a": "eA=="}, "stringData": {"b": "x"}});
        let secret = planted(&secret);
        assert_eq!(secret["stringData"]["b"], OF_SECRET);
        assert_eq!(secret["data"]["a"], STANDARD.encode(OF_SECRET));
        let map = json!({"kind": "ConfigMap", "data": {"a": "x"}});
        assert_eq!(planted(&map), map);
    }
}
