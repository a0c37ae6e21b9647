//! RuntimeClass: the overhead of a pod's runtime, and the nodes that offer it.

use std::collections::HashSet;

use serde_json::{Map, Value};

/// Gives a new pod the overhead, node selector and tolerations of its runtime class, or says why
/// they conflict. `class` is the class the pod names, if it exists.
pub fn apply(pod: &mut Value, class: Option<&Value>) -> Result<(), String> {
    let spec = &pod["spec"];
    let name = spec["runtimeClassName"]
        .as_str()
        .unwrap_or_default()
        .to_owned();
    let given = &spec["overhead"];
    let has_overhead = given.as_object().is_some_and(|amounts| !amounts.is_empty());
    let Some(class) = class else {
        if !name.is_empty() {
            return Err(format!("pod rejected: RuntimeClass \"{name}\" not found"));
        }
        return Ok(());
    };
    let overhead = &class["overhead"]["podFixed"];
    if has_overhead && given != overhead {
        let differs = if overhead.is_null() {
            "pod rejected: Pod Overhead set without corresponding RuntimeClass defined Overhead"
        } else {
            "pod rejected: Pod's Overhead doesn't match RuntimeClass's defined Overhead"
        };
        return Err(differs.into());
    }
    if !overhead.is_null() {
        pod["spec"]["overhead"] = overhead.clone();
    }
    schedule(pod, &class["scheduling"])
}

/// Refuses a valid pod whose overhead comes from no class.
pub fn check(pod: &Value) -> Result<(), String> {
    let spec = &pod["spec"];
    let named = !spec["runtimeClassName"]
        .as_str()
        .unwrap_or_default()
        .is_empty();
    let has_overhead = spec["overhead"]
        .as_object()
        .is_some_and(|amounts| !amounts.is_empty());
    if has_overhead && !named {
        let unfounded =
            "pod rejected: Pod Overhead set without corresponding RuntimeClass defined Overhead";
        return Err(unfounded.into());
    }
    Ok(())
}

fn schedule(pod: &mut Value, scheduling: &Value) -> Result<(), String> {
    if let Some(wanted) = scheduling["nodeSelector"]
        .as_object()
        .filter(|map| !map.is_empty())
    {
        let field = &mut pod["spec"]["nodeSelector"];
        if !field.is_object() {
            *field = Value::Object(Map::new());
        }
        for (key, value) in wanted {
            match field.get(key) {
                Some(other) if other != value => {
                    let plain = |value: &Value| value.as_str().unwrap_or_default().to_owned();
                    return Err(format!(
                        "conflict: runtimeClass.scheduling.nodeSelector[{key}] = {}; pod.spec.nodeSelector[{key}] = {}",
                        plain(value),
                        plain(other)
                    ));
                }
                _ => field[key] = value.clone(),
            }
        }
    }
    let field = &mut pod["spec"]["tolerations"];
    let held = field.as_array().map(Vec::as_slice).unwrap_or_default();
    let mut seen: HashSet<&Value> = held.iter().collect();
    let more = scheduling["tolerations"].as_array().into_iter().flatten();
    let more: Vec<Value> = more.filter(|one| seen.insert(one)).cloned().collect();
    match field.as_array_mut() {
        _ if more.is_empty() => {}
        Some(list) => list.extend(more),
        None => *field = Value::Array(more),
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_pod_takes_over_what_its_class_says() {
        let class = json!({"overhead": {"podFixed": {"cpu": "10m"}}, "scheduling": {"nodeSelector": {"a": "b"}, "tolerations": [{"key": "t", "operator": "Exists"}]}});
        let pod = |spec: Value| json!({ "spec": spec });
        let refusals = |spec: Value, class: Option<&Value>| apply(&mut pod(spec), class);
        let mut plain = pod(json!({"runtimeClassName": "rc"}));
        apply(&mut plain, Some(&class)).unwrap();
        assert_eq!(
            plain["spec"],
            json!({"runtimeClassName": "rc", "overhead": {"cpu": "10m"}, "nodeSelector": {"a": "b"}, "tolerations": [{"key": "t", "operator": "Exists"}]})
        );
        for (spec, class, why) in [
            (
                json!({"nodeSelector": {"a": "c"}}),
                Some(&class),
                "conflict: runtimeClass.scheduling.nodeSelector[a] = b; pod.spec.nodeSelector[a] = c",
            ),
            (
                json!({"overhead": {"cpu": "1"}}),
                Some(&class),
                "pod rejected: Pod's Overhead doesn't match RuntimeClass's defined Overhead",
            ),
            (
                json!({"runtimeClassName": "nope"}),
                None,
                "pod rejected: RuntimeClass \"nope\" not found",
            ),
        ] {
            assert_eq!(refusals(spec, class), Err(why.into()));
        }
        assert_eq!(refusals(json!({}), None), Ok(()));
    }

    #[test]
    fn overhead_without_a_class_is_refused() {
        let pod = |spec: Value| json!({ "spec": spec });
        let why =
            "pod rejected: Pod Overhead set without corresponding RuntimeClass defined Overhead";
        let given = pod(json!({"overhead": {"cpu": "1"}}));
        assert_eq!(check(&given), Err(why.to_owned()));
        assert_eq!(check(&pod(json!({"overhead": {}}))), Ok(()));
    }
}
