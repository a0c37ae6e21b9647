//! What is stored but not enforced says so, in one line each, as `Warning` headers.

use serde_json::Value;

use super::fields::list;

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
