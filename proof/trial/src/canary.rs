//! Canary strings, planted wherever users put secrets, that must not appear anywhere else.
//!
//! There are two, because two rules are checked: the value of a Secret may appear in no other
//! object; a value in the spec of a pod may appear wherever that spec is copied, and nowhere else.

mod find;
mod log_scanner;

use base64::{Engine, engine::general_purpose::STANDARD};
use serde_json::{Value, json};

pub(crate) use find::{in_spec, of_secret, shows};
pub(crate) use log_scanner::{LogScanner, as_user};

/// The value of Secrets. Its base64 and URL encodings differ from the plain text.
pub(crate) const OF_SECRET: &str = "canary/of=a secret that isn't shared?";
/// The value given to pods openly: in environment variables and credentials of probes.
pub(crate) const IN_SPEC: &str = "canary/in=the spec of a pod, to be kept?";
/// The name of a Secret that exists in every run.
pub(crate) const SECRET: &str = "canary";

/// The Secret that pods refer to.
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

/// A copy of the object, or of a patch, with a canary in every secret field.
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
    plant_in_containers(value);
}

/// Sets every value of a map.
fn fill(map: Option<&mut Value>, with: &str) {
    for (_, value) in map.and_then(Value::as_object_mut).into_iter().flatten() {
        *value = with.into();
    }
}

/// Plants canaries in every container of a pod spec.
fn plant_in_containers(value: &mut Value) {
    match value {
        Value::Object(fields) => {
            for (kind, is_probed) in [("containers", true), ("initContainers", false)] {
                let containers = fields.get_mut(kind).and_then(Value::as_array_mut);
                for container in containers.into_iter().flatten() {
                    plant_in_container(container, is_probed);
                }
            }
            fields
                .iter_mut()
                .for_each(|(_, field)| plant_in_containers(field));
        }
        Value::Array(items) => items.iter_mut().for_each(plant_in_containers),
        _ => {}
    }
}

/// Init containers run to completion and have no readiness probe.
fn plant_in_container(container: &mut Value, is_probed: bool) {
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
