//! What is stored but not enforced says so, in one line each, as `Warning` headers.

use serde_json::Value;

use super::fields::{is_set, list, text};

/// Warnings about a pod spec; `path` is where it is, such as `spec.template.spec`.
pub fn pod_spec_warnings(spec: &Value, path: &str) -> Vec<String> {
    let containers = || {
        ["initContainers", "containers"]
            .into_iter()
            .flat_map(|field| list(spec, field))
    };
    let is_filled = |value: &Value| value.as_object().is_some_and(|map| !map.is_empty());
    let mut warnings = Vec::new();
    if containers().any(|container| is_filled(&container["resources"]["limits"])) {
        warnings.push(not_enforced(&format!("{path}: resource limits")));
    }
    let confined = containers().any(|container| is_filled(&container["securityContext"]));
    if confined || is_filled(&spec["securityContext"]) {
        warnings.push(not_enforced(&format!("{path}: security contexts")));
    }
    warnings.extend(about_pull_secrets(spec, path));
    warnings.extend(about_volumes(spec, path));
    warnings
}

fn about_pull_secrets(spec: &Value, path: &str) -> Vec<String> {
    let names: Vec<&str> = list(spec, "imagePullSecrets")
        .iter()
        .map(|secret| text(secret, "name"))
        .collect();
    let mut warnings = Vec::new();
    for (index, name) in names.iter().enumerate() {
        let place = format!("{path}.imagePullSecrets[{index}].name");
        if name.is_empty() {
            warnings.push(format!("{place}: invalid empty name \"\""));
        }
        if names[..index].contains(name) {
            warnings.push(format!("{place}: duplicate name \"{name}\""));
        }
    }
    warnings
}

/// Sources that nothing provides any more.
const GONE: [(&str, &str); 4] = [
    ("glusterfs", "deprecated in v1.25, non-functional in v1.26+"),
    ("rbd", "deprecated in v1.28, non-functional in v1.31+"),
    ("scaleIO", "deprecated in v1.16, non-functional in v1.22+"),
    ("quobyte", "deprecated in v1.22, non-functional in v1.25+"),
];

fn about_volumes(spec: &Value, path: &str) -> Vec<String> {
    let mut warnings = Vec::new();
    for (index, volume) in list(spec, "volumes").iter().enumerate() {
        for (source, since) in GONE {
            if is_set(volume, source) {
                warnings.push(format!("{path}.volumes[{index}].{source}: {since}"));
            }
        }
        let sources = list(&volume["projected"], "sources");
        let nothing = |source: &Value| source.as_object().is_some_and(serde_json::Map::is_empty);
        if sources.iter().any(nothing) {
            let name = text(volume, "name");
            warnings.push(format!(
                "volume \"{name}\" (Projected) has no sources provided"
            ));
        }
    }
    warnings
}

/// `<what> are stored but not enforced by this server`.
pub fn not_enforced(what: &str) -> String {
    format!("{what} are stored but not enforced by this server")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_plain_pod_spec_warns_of_nothing() {
        let spec = json!({"securityContext": {}, "containers": [{"resources": {"requests": {"cpu": "1"}}}]});
        assert_eq!(pod_spec_warnings(&spec, "spec"), [""; 0]);
    }

    #[test]
    fn many_containers_make_one_line_each() {
        let container = json!({
            "resources": {"limits": {"cpu": "1"}},
            "securityContext": {"runAsUser": 1},
        });
        let spec = json!({"containers": [container, container], "securityContext": {"fsGroup": 1}});
        assert_eq!(
            pod_spec_warnings(&spec, "spec"),
            [
                "spec: resource limits are stored but not enforced by this server",
                "spec: security contexts are stored but not enforced by this server",
            ]
        );
    }
}
