use serde_json::json;

use super::*;

fn of_spec(spec: &Value) -> Vec<String> {
    pod_warnings(&json!({"metadata": {"name": "p"}, "spec": spec}))
}

#[test]
fn a_plain_pod_spec_warns_of_nothing() {
    let spec =
        json!({"securityContext": {}, "containers": [{"resources": {"requests": {"cpu": "1"}}}]});
    assert_eq!(of_spec(&spec), [""; 0]);
}

#[test]
fn many_containers_make_one_line_each() {
    let container = json!({
        "resources": {"limits": {"cpu": "1"}},
        "securityContext": {"runAsUser": 1},
    });
    let spec = json!({"containers": [container, container], "securityContext": {"fsGroup": 1}});
    assert_eq!(
        of_spec(&spec),
        [
            "spec: resource limits are stored but not enforced by this server",
            "spec: security contexts are stored but not enforced by this server",
        ]
    );
}

#[test]
fn names_that_are_no_host_names_are_told_of() {
    let errors = pod_warnings(&json!({"metadata": {"name": "a.b"}, "spec": {}}));
    let rest = "which can result in surprising behavior; a DNS label is recommended: [must not contain dots]";
    let used = "metadata.name: this is used in";
    assert_eq!(errors, [format!("{used} the Pod's hostname, {rest}")]);
    let errors = owner_warnings(&json!({"metadata": {"name": "a.b"}}));
    assert_eq!(errors, [format!("{used} Pod names and hostnames, {rest}")]);
}

#[test]
fn what_is_seldom_meant_is_told_of() {
    let volume = |source: &str, held: Value| json!({"volumes": [{"name": "v", source: held}]});
    let twice = json!({"name": "c", "items": [{"path": "b"}, {"path": "b/"}, {"path": "b"}]});
    for (spec, errors) in [
        (
            json!({"containers": [{"env": [{"name": "A"}, {"name": "A"}, {"name": "A", "value": "$(A):x"}]}]}),
            "spec.containers[0].env[1]: hides previous definition of \"A\", which may be dropped when using apply",
        ),
        (
            json!({"containers": [{"resources": {"requests": {"memory": "100m", "cpu": "100m"}}}]}),
            "spec.containers[0].resources.requests[memory]: fractional byte value \"100m\" is invalid, must be an integer",
        ),
        (
            json!({"nodeSelector": {"beta.kubernetes.io/os": "x"}}),
            "spec.nodeSelector[beta.kubernetes.io/os]: deprecated since v1.14; use \"kubernetes.io/os\" instead",
        ),
        (
            json!({"topologySpreadConstraints": [{"topologyKey": "k"}]}),
            "spec.topologySpreadConstraints[0].labelSelector: a null labelSelector results in matching no pod",
        ),
        (
            json!({"hostAliases": [{"ip": "1.1.1.1"}, {"ip": "1.1.1.1"}]}),
            "spec.hostAliases[1].ip: duplicate ip \"1.1.1.1\"",
        ),
        (
            json!({"dnsConfig": {"nameservers": ["2001:DB8::0"]}}),
            "spec.dnsConfig.nameservers[0]: IPv6 address \"2001:DB8::0\" should be in RFC 5952 canonical format (\"2001:db8::\")",
        ),
        (
            volume("configMap", twice),
            "volume \"v\" (ConfigMap \"c\"): overlapping paths: \"b\" with \"b\"",
        ),
        (
            volume(
                "projected",
                json!({"sources": [{"secret": {"name": "s", "items": [{"path": "a"}]}}, {"serviceAccountToken": {"path": "a/b"}}]}),
            ),
            "volume \"v\" (Projected): overlapping paths: \"a/b\" (ServiceAccountToken) with \"a\" (Secret \"s\")",
        ),
        (
            volume("projected", json!({"sources": [{}]})),
            "volume \"v\" (Projected) has no sources provided",
        ),
        (
            volume("storageos", json!({})),
            "spec.volumes[0].storageOS: deprecated in v1.22, non-functional in v1.25+",
        ),
    ] {
        assert_eq!(of_spec(&spec), [errors]);
    }
}

#[test]
fn ports_that_cannot_be_told_apart_are_told_of() {
    let second = "spec.containers[0].ports[1]";
    let first = "port definition with spec.containers[0].ports[0]";
    for (port, other, errors) in [
        (json!({}), json!({}), "duplicate"),
        (json!({}), json!({"hostPort": 1}), "overlapping"),
        (
            json!({"hostPort": 1}),
            json!({"hostPort": 1, "hostIP": "1.1.1.1"}),
            "dangerously ambiguous",
        ),
    ] {
        let spec = json!({"containers": [{"name": "c", "ports": [port, other]}]});
        assert_eq!(of_spec(&spec), [format!("{second}: {errors} {first}")]);
    }
    let alone = json!([{"containerPort": 80, "protocol": "TCP", "hostIP": "1.1.1.1"}]);
    assert_eq!(
        of_spec(&json!({"containers": [{"name": "c", "ports": alone}]})),
        [
            "spec.containers[0].ports[0]: hostIP set without hostPort: {Name: HostPort:0 ContainerPort:80 Protocol:TCP HostIP:1.1.1.1}"
        ]
    );
}

#[test]
fn a_template_is_told_of_under_its_path() {
    let template = json!({
        "metadata": {"annotations": {"security.alpha.kubernetes.io/sysctls": "a"}},
        "spec": {"terminationGracePeriodSeconds": -1},
    });
    assert_eq!(
        template_warnings(&template, "spec.template"),
        [
            "spec.template.metadata.annotations[security.alpha.kubernetes.io/sysctls]: non-functional in v1.11+; use the \"sysctls\" field instead",
            "spec.template.spec.terminationGracePeriodSeconds: must be >= 0; negative values are invalid and will be treated as 1",
        ]
    );
}
