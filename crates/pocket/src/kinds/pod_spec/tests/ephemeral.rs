//! Ephemeral containers and init containers.

use super::*;

#[test]
fn a_container_that_looks_in_has_no_part_in_the_pod() {
    let forbidden = "cannot be set for an Ephemeral Container";
    let never = "must be 'NotRequired' when pod `restartPolicy` is 'Never'";
    let at = "spec.ephemeralContainers[0]";
    let resize = |field: &str| format!("{at}.resizePolicy: {field}");
    let set = |field: &str| format!("{at}.{field}: Forbidden: {forbidden}");
    for (more, expected) in [
        (json!({}), vec![]),
        (json!({"targetContainerName": "c"}), vec![]),
        (
            json!({"targetContainerName": "e"}),
            vec![format!("{at}.targetContainerName: Not found: \"e\"")],
        ),
        (json!({"ports": []}), vec![set("ports")]),
        (
            json!({"restartPolicyRules": []}),
            vec![set("restartPolicyRules")],
        ),
        (json!({"resources": {}}), vec![]),
        (json!({"resources": {"limits": {}}}), vec![set("resources")]),
        (
            json!({"resizePolicy": [{"restartPolicy": "x"}]}),
            vec![
                resize("Required value"),
                resize(
                    "Unsupported value: \"x\": supported values: \"NotRequired\", \"RestartContainer\"",
                ),
                resize(&format!("Invalid value: \"x\": {never}")),
                set("resizePolicy"),
            ],
        ),
    ] {
        let mut container = json!({"name": "e", "image": "i"});
        for (field, value) in more.as_object().unwrap() {
            container[field] = value.clone();
        }
        let mut spec = with("/ephemeralContainers", json!([container]));
        spec["restartPolicy"] = json!("Never");
        assert_eq!(errors(&spec), expected, "{more}");
    }
}

#[test]
fn init_containers_are_not_restarted_for_their_size_and_are_each_the_first() {
    let ports = json!([{"containerPort": 1, "hostPort": 9}, {"containerPort": 2, "hostPort": 9}]);
    let grows = json!([{"resourceName": "cpu", "restartPolicy": "RestartContainer"}]);
    let init = |more: (&str, &Value)| json!([{"name": "a", "image": "i"}, {"name": "b", "image": "i", more.0: more.1}]);
    refused(vec![
        (
            "/initContainers",
            init(("ports", &ports)),
            "spec.initContainers[0].ports[1].hostPort: Duplicate value: \"TCP//9\"",
        ),
        (
            "/initContainers",
            init(("resizePolicy", &grows)),
            "spec.initContainers[1].resizePolicy[0].restartPolicy: Invalid value: \"RestartContainer\": must not be set to 'RestartContainer' for non-sidecar initContainers",
        ),
    ]);
}

#[test]
fn what_is_given_of_a_pod_as_a_whole_is_judged_even_if_it_is_empty() {
    refused(vec![
        (
            "/preemptionPolicy",
            json!(""),
            "spec.preemptionPolicy: Required value",
        ),
        (
            "/runtimeClassName",
            json!(""),
            "spec.runtimeClassName: Invalid value: \"\": a lowercase RFC 1123 subdomain",
        ),
        (
            "/resources",
            json!({"claims": []}),
            "spec.resources.claims: Forbidden: claims may not be set for Resources at pod-level",
        ),
    ]);
    let mut spec = with("/resources", json!({"claims": []}));
    spec["os"] = json!({"name": "windows"});
    assert_eq!(
        errors(&spec),
        ["spec.resources: Forbidden: may not be set for a windows pod"]
    );
}

#[test]
fn keys_of_labels_have_one_expression_each() {
    let rule = |selector: Value| json!([{"maxSkew": 1, "topologyKey": "z", "whenUnsatisfiable": "DoNotSchedule", "matchLabelKeys": ["b", "a"], "labelSelector": selector}]);
    let own = json!({"key": "a", "operator": "Exists"});
    let at = "/topologySpreadConstraints";
    accepted(vec![
        (at, rule(json!({"matchExpressions": [own]}))),
        (at, rule(json!({"matchLabels": {"a": "x"}}))),
    ]);
    let twice = "spec.topologySpreadConstraints[0][1]: Invalid value: \"a\": exists in both matchLabelKeys and labelSelector";
    refused(vec![
        (at, rule(json!({"matchExpressions": [own, own]})), twice),
        (
            at,
            rule(json!({"matchLabels": {"a": "x"}, "matchExpressions": [own]})),
            twice,
        ),
    ]);
}
