use super::*;

fn ingress(spec: &Value) -> Value {
    json!({"metadata": {"name": "x1"}, "spec": spec})
}

fn backend() -> Value {
    json!({"service": {"name": "s", "port": {"number": 80}}})
}

fn route(path: &str, kind: &str) -> Value {
    let item = json!({"path": path, "pathType": kind, "backend": backend()});
    json!({"rules": [{"host": "a.example.com", "http": {"paths": [item]}}]})
}

#[test]
fn routes_of_ingresses_are_absolute_and_plain() {
    for (path, kind, detail) in [
        ("/", "Prefix", None),
        ("/a/b", "Exact", None),
        ("", "ImplementationSpecific", None),
        ("a", "Prefix", Some("must be an absolute path")),
        ("", "Exact", Some("must be an absolute path")),
        (
            "a",
            "ImplementationSpecific",
            Some("must be an absolute path"),
        ),
        ("/a//b", "Prefix", Some("must not contain '//'")),
        ("/a/../b", "Prefix", Some("must not contain '/../'")),
        ("/a%2Fb", "Exact", Some("must not contain '%2F'")),
        ("/a/..", "Exact", Some("cannot end with '/..'")),
    ] {
        let errors = refusals("ingresses", &ingress(&route(path, kind)));
        let expected = detail.map(|detail| {
            format!("spec.rules[0].http.paths[0].path: Invalid value: {path:?}: {detail}")
        });
        assert_eq!(errors, Vec::from_iter(expected), "{path} {kind}");
    }
}

#[test]
fn backends_of_ingresses_are_one_thing_with_one_port() {
    for (backend, errors) in [
        (backend(), None),
        (
            json!({"service": {"name": "s", "port": {"name": "http"}}}),
            None,
        ),
        (json!({"resource": {"kind": "Bucket", "name": "b"}}), None),
        (
            json!({}),
            Some(
                "spec.defaultBackend: Invalid value: \"\": resource or service backend is required",
            ),
        ),
        (
            json!({"service": {"name": "s", "port": {"number": 1}}, "resource": {"kind": "B", "name": "b"}}),
            Some(
                "spec.defaultBackend: Invalid value: \"\": cannot set both resource and service backends",
            ),
        ),
        (
            json!({"service": {"name": "s"}}),
            Some("spec.defaultBackend: Required value: port name or number is required"),
        ),
        (
            json!({"service": {"name": "s", "port": {"number": 1, "name": "a"}}}),
            Some(
                "spec.defaultBackend: Invalid value: \"\": cannot set both port name & port number",
            ),
        ),
        (
            json!({"service": {"name": "s", "port": {"number": 70000}}}),
            Some(
                "spec.defaultBackend.service.port.number: Invalid value: 70000: must be between 1 and 65535, inclusive",
            ),
        ),
    ] {
        let told_now = refusals("ingresses", &ingress(&json!({"defaultBackend": backend})));
        assert_eq!(told_now, Vec::from_iter(errors));
    }
}

#[test]
fn hosts_of_ingresses_are_names_or_wildcards() {
    for (host, fine) in [
        ("a.example.com", true),
        ("*.example.com", true),
        ("", true),
        ("10.0.0.1", false),
        ("*", false),
        ("a.*.com", false),
        ("*.*.com", false),
        ("A.com", false),
    ] {
        let mut spec = route("/", "Prefix");
        spec["rules"][0]["host"] = json!(host);
        assert_eq!(
            refusals("ingresses", &ingress(&spec)).is_empty(),
            fine,
            "{host}"
        );
    }
}

#[test]
fn an_ingress_without_routes_is_refused() {
    let errors = refusals("ingresses", &ingress(&json!({})));
    assert_eq!(
        errors,
        ["spec: Invalid value: {}: either `defaultBackend` or `rules` must be specified"]
    );
}

#[test]
fn the_class_of_an_ingress_is_said_once_or_twice_alike() {
    let annotated = |annotation: &str, class: &str| {
        let mut object = ingress(&json!({"defaultBackend": backend(), "ingressClassName": class}));
        object["metadata"]["annotations"] = json!({"kubernetes.io/ingress.class": annotation});
        refusals("ingresses", &object)
    };
    assert_eq!(annotated("a", "a"), [""; 0]);
    assert_eq!(
        annotated("a", "b"),
        [
            "metadata.annotations.kubernetes.io/ingress.class: Invalid value: \"a\": must match `ingressClassName` when both are specified"
        ]
    );
    let errors = refusals(
        "ingresses",
        &ingress(&json!({"defaultBackend": backend(), "ingressClassName": "A_"})),
    );
    assert_eq!(errors.len(), 1);
    assert!(
        errors[0].starts_with("spec.ingressClassName: Invalid value: \"A_\": "),
        "{errors:?}"
    );
}

#[test]
fn hosts_of_certificates_are_judged_too() {
    let tls = json!([{"hosts": ["a.example.com", "*.example.com", "*"]}]);
    let errors = refusals(
        "ingresses",
        &ingress(&json!({"defaultBackend": backend(), "tls": tls})),
    );
    assert_eq!(errors.len(), 1);
    assert!(
        errors[0].starts_with("spec.tls[0].hosts[2]: Invalid value: \"*\": "),
        "{errors:?}"
    );
}

#[test]
fn the_controller_of_an_ingress_class_stays() {
    let class =
        |controller: &str| json!({"metadata": {"name": "x"}, "spec": {"controller": controller}});
    assert_eq!(refusals("ingressclasses", &class("acme.io/lb")), [""; 0]);
    assert_eq!(
        refusals("ingressclasses", &class("")),
        ["spec.controller: Required value"]
    );
    assert_eq!(refusals("ingressclasses", &class("acme")).len(), 1);
    let errors = refusals_of_change("ingressclasses", &class("acme.io/lb"), |object| {
        object["spec"]["controller"] = json!("acme.io/other");
    });
    assert_eq!(
        errors,
        ["spec.controller: Invalid value: \"acme.io/other\": field is immutable"]
    );
}

#[test]
fn parameters_of_an_ingress_class_are_in_a_namespace_or_not() {
    for (scope, namespace, errors) in [
        (json!(null), json!(null), None),
        (json!("Namespace"), json!("n"), None),
        (
            json!("Namespace"),
            json!(null),
            Some(
                "spec.parameters.namespace: Required value: `parameters.scope` is set to 'Namespace'",
            ),
        ),
        (
            json!("Namespace"),
            json!("a.b"),
            Some("spec.parameters.namespace: Invalid value: \"a.b\": must not contain dots"),
        ),
        (
            json!("Cluster"),
            json!("n"),
            Some("spec.parameters.namespace: Forbidden: `parameters.scope` is set to 'Cluster'"),
        ),
    ] {
        let parameters = json!({"kind": "K", "name": "n", "scope": scope, "namespace": namespace});
        let spec = json!({"controller": "acme.io/lb", "parameters": parameters});
        let found = refusals(
            "ingressclasses",
            &json!({"metadata": {"name": "x"}, "spec": spec}),
        );
        assert_eq!(found.len(), usize::from(errors.is_some()), "{found:?}");
        for (found, errors) in found.iter().zip(errors) {
            assert!(found.starts_with(errors), "{found}");
        }
    }
}

fn policy(spec: Value) -> Value {
    let mut all = json!({"podSelector": {}});
    merge(&mut all, spec);
    json!({"metadata": {"name": "x1"}, "spec": all})
}

#[test]
fn policy_types_follow_from_the_rules_given() {
    for (spec, types) in [
        (json!({}), json!(["Ingress"])),
        (json!({"egress": []}), json!(["Ingress"])),
        (json!({"egress": [{}]}), json!(["Ingress", "Egress"])),
        (json!({"policyTypes": ["Egress"]}), json!(["Egress"])),
    ] {
        let object = created("networkpolicies", &policy(spec));
        assert_eq!(object["spec"]["policyTypes"], types);
    }
    let ports = json!({"ingress": [{"ports": [{"port": 80}, {"protocol": "UDP"}]}]});
    let object = created("networkpolicies", &policy(ports));
    let ports = json!([{"port": 80, "protocol": "TCP"}, {"protocol": "UDP"}]);
    assert_eq!(object["spec"]["ingress"][0]["ports"], ports);
}

#[test]
#[expect(clippy::too_many_lines, reason = "a table of cases")]
fn network_policies_refuse_what_makes_no_sense() {
    let port = |port: Value| json!({"ingress": [{"ports": [port]}]});
    let peer = |peer: Value| json!({"egress": [{"to": [peer]}]});
    for (spec, errors) in [
        (port(json!({"port": 80, "endPort": 90})), None),
        (
            peer(json!({"ipBlock": {"cidr": "10.0.0.0/8", "except": ["10.1.0.0/16"]}})),
            None,
        ),
        (
            peer(json!({"podSelector": {}, "namespaceSelector": {}})),
            None,
        ),
        (
            port(json!({"port": 0})),
            Some(
                "spec.ingress[0].ports[0].port: Invalid value: 0: must be between 1 and 65535, inclusive",
            ),
        ),
        (
            port(json!({"port": 80, "endPort": 79})),
            Some(
                "spec.ingress[0].ports[0].endPort: Invalid value: 79: must be greater than or equal to `port`",
            ),
        ),
        (
            port(json!({"port": "http", "endPort": 79})),
            Some(
                "spec.ingress[0].ports[0].endPort: Invalid value: 79: may not be specified when `port` is non-numeric",
            ),
        ),
        (
            port(json!({"endPort": 79})),
            Some(
                "spec.ingress[0].ports[0].endPort: Invalid value: 79: may not be specified when `port` is not specified",
            ),
        ),
        (
            peer(json!({"podSelector": {"matchExpressions": [{"key": "a", "operator": "In"}]}})),
            Some(
                "spec.egress[0].to[0].podSelector.matchExpressions[0].values: Required value: must be specified when `operator` is 'In' or 'NotIn'",
            ),
        ),
        (
            peer(json!({"ipBlock": {"cidr": "10.0.0.0"}})),
            Some(
                "spec.egress[0].to[0].ipBlock.cidr: Invalid value: \"10.0.0.0\": must be a valid CIDR value, (e.g. 10.9.8.0/24 or 2001:db8::/64)",
            ),
        ),
        (
            json!({"policyTypes": ["Ingress", "Egress", "Ingress"]}),
            Some(
                "spec.policyTypes: Invalid value: [\"Ingress\",\"Egress\",\"Ingress\"]: may not specify more than two policyTypes",
            ),
        ),
        (
            peer(json!({})),
            Some("spec.egress[0].to[0]: Required value: must specify a peer"),
        ),
        (
            peer(json!({"podSelector": {}, "ipBlock": {"cidr": "10.0.0.0/8"}})),
            Some("spec.egress[0].to[0]: Forbidden: may not specify both ipBlock and another peer"),
        ),
        (
            peer(json!({"ipBlock": {"cidr": "10.0.0.0/8", "except": ["11.0.0.0/16"]}})),
            Some(
                "spec.egress[0].to[0].ipBlock.except[0]: Invalid value: \"11.0.0.0/16\": must be a strict subset of `cidr`",
            ),
        ),
    ] {
        assert_eq!(
            refusals("networkpolicies", &policy(spec)),
            Vec::from_iter(errors)
        );
    }
}
