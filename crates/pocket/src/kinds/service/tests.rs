use std::net::Ipv4Addr;

use proptest::prelude::*;

use super::*;
use crate::kinds::{
    Settings,
    testing::{OtherObjects, created, errors, update_errors},
};

#[expect(
    clippy::needless_pass_by_value,
    reason = "cases read better with the literal in place"
)]
fn service(name: &str, spec: Value) -> Value {
    json!({"metadata": {"name": name, "namespace": "n"}, "spec": spec})
}

#[expect(
    clippy::needless_pass_by_value,
    reason = "cases read better with the literal in place"
)]
fn web(more: Value) -> Value {
    let mut spec = json!({"ports": [{"port": 80}], "selector": {"app": "web"}});
    for (key, value) in more.as_object().unwrap() {
        spec[key] = value.clone();
    }
    created(&RULES, &service("web", spec))
}

fn admitted(sent: &Value, others: &OtherObjects) -> Result<Value, ApiError> {
    let mut object = created(&RULES, sent);
    admit(&mut object, None, others)?;
    Ok(object)
}

fn among(existing: Vec<Value>) -> OtherObjects {
    OtherObjects {
        objects: existing
            .into_iter()
            .map(|object| ("services", object))
            .collect(),
        settings: Settings {
            service_range: (Ipv4Addr::new(10, 0, 0, 0), 28),
            node_ports: (30000, 30002),
            ..Settings::default()
        },
    }
}

#[test]
fn each_service_gets_an_address_of_its_own_until_there_are_none() {
    let mut existing = Vec::new();
    for index in 0..14 {
        let sent = service(&format!("s{index}"), json!({"ports": [{"port": 80}]}));
        let stored = admitted(&sent, &among(existing.clone())).unwrap();
        let address = text(&stored["spec"], "clusterIP");
        assert_eq!(stored["spec"]["clusterIPs"], json!([address]));
        assert!(
            existing
                .iter()
                .all(|other: &Value| other["spec"]["clusterIP"] != address)
        );
        let last: Ipv4Addr = address.parse().unwrap();
        assert!((1..=14).contains(&last.octets()[3]), "{address}");
        existing.push(stored);
    }
    let error = admitted(&service("late", json!({})), &among(existing)).unwrap_err();
    assert!(error.message.contains("range is full"), "{error}");
}

#[test]
fn an_address_that_was_asked_for_is_checked() {
    let existing = admitted(&web(json!({"clusterIP": "10.0.0.5"})), &among(vec![])).unwrap();
    let ask = |address: &str| {
        let sent = service(
            "other",
            json!({"clusterIP": address, "ports": [{"port": 80}]}),
        );
        admitted(&sent, &among(vec![existing.clone()]))
            .map(|stored| stored["spec"]["clusterIP"].clone())
    };
    assert_eq!(ask("10.0.0.6").unwrap(), "10.0.0.6");
    let twice = ask("10.0.0.5").unwrap_err();
    assert_eq!(twice.code, 422);
    assert_eq!(
        twice.message,
        "Service \"other\" is invalid: spec.clusterIPs: Invalid value: [\"10.0.0.5\"]: failed to allocate IP 10.0.0.5: provided IP is already allocated"
    );
    for outside in ["10.0.0.0", "10.0.0.15", "10.0.1.1", "9.9.9.9"] {
        let error = ask(outside).unwrap_err();
        assert!(
            error
                .message
                .ends_with("the provided network does not match the current range"),
            "{error}"
        );
    }
}

#[test]
fn a_headless_service_has_none_and_an_external_name_nothing() {
    let headless = admitted(&web(json!({"clusterIP": "None"})), &among(vec![])).unwrap();
    assert_eq!(headless["spec"]["clusterIP"], "None");
    assert_eq!(headless["spec"]["clusterIPs"], json!(["None"]));
    assert_eq!(headless["spec"]["ipFamilies"], json!(["IPv4"]));
    let external = json!({"type": "ExternalName", "externalName": "example.com"});
    let external = admitted(&service("e", external), &among(vec![])).unwrap();
    assert_eq!(
        external["spec"],
        json!({"type": "ExternalName", "externalName": "example.com", "sessionAffinity": "None"})
    );
}

#[test]
fn node_ports_are_given_shared_by_protocol_and_checked() {
    let ports = json!([
        {"name": "a", "port": 53, "protocol": "TCP"},
        {"name": "b", "port": 53, "protocol": "UDP"},
        {"name": "c", "port": 80},
    ]);
    let sent = service("dns", json!({"type": "NodePort", "ports": ports}));
    let stored = admitted(&sent, &among(vec![])).unwrap();
    let nodes: Vec<i64> = list(&stored["spec"], "ports")
        .iter()
        .map(|p| p["nodePort"].as_i64().unwrap())
        .collect();
    assert_eq!(nodes[0], nodes[1]);
    assert_ne!(nodes[0], nodes[2]);
    let ask = |node: i64| {
        let ports = json!([{"port": 80, "nodePort": node}]);
        let sent = service("other", json!({"type": "NodePort", "ports": ports}));
        admitted(&sent, &among(vec![stored.clone()]))
            .unwrap_err()
            .message
    };
    assert!(ask(nodes[0]).ends_with("provided port is already allocated"));
    assert!(ask(80).ends_with("The range of valid ports is 30000-30002"));
}

/// An update as it is validated, with its errors.
fn changed(mut new: Value, old: &Value) -> Result<(Value, Vec<String>), ApiError> {
    admit(&mut new, Some(old), &among(vec![old.clone()]))?;
    (RULES.prepare_update)(&mut new, old);
    let mut source_errors = update_errors(&RULES, &new, old);
    source_errors.extend(errors(&RULES, &new));
    Ok((new, source_errors))
}

#[test]
fn an_update_keeps_what_the_client_left_out() {
    let old = admitted(&web(json!({"type": "NodePort"})), &among(vec![])).unwrap();
    let (new, errors) = changed(web(json!({"type": "NodePort"})), &old).unwrap();
    assert_eq!(new["spec"], old["spec"], "its own address is not taken");
    assert_eq!(errors, [""; 0]);
}

#[test]
fn the_address_may_not_change_once_set() {
    let old = admitted(&web(json!({})), &among(vec![])).unwrap();
    for address in ["10.0.0.3", "None"] {
        let mut new = old.clone();
        new["spec"]["clusterIP"] = json!(address);
        assert_eq!(
            changed(new, &old).unwrap().1,
            [format!(
                "spec.clusterIPs[0]: Invalid value: [\"{address}\"]: may not change once set"
            )]
        );
    }
}

#[test]
fn another_type_drops_what_the_old_one_needed() {
    let old = admitted(&web(json!({"type": "NodePort"})), &among(vec![])).unwrap();
    let mut inner = old.clone();
    inner["spec"]["type"] = json!("ClusterIP");
    let (inner, errors) = changed(inner, &old).unwrap();
    assert_eq!(errors, [""; 0]);
    assert_eq!(inner["spec"]["clusterIP"], old["spec"]["clusterIP"]);
    assert!(inner["spec"]["ports"][0].get("nodePort").is_none());
    let mut external = old.clone();
    external["spec"]["type"] = json!("ExternalName");
    external["spec"]["externalName"] = json!("example.com");
    let (external, errors) = changed(external, &old).unwrap();
    assert_eq!(errors, [""; 0]);
    assert!(external["spec"].get("clusterIP").is_none());
}

#[test]
fn a_service_alone_is_judged() {
    for (more, expected) in [
        (json!({"ports": []}), "spec.ports: Required value"),
        (
            json!({"ports": [{}]}),
            "spec.ports[0].port: Invalid value: 0: must be between 1 and 65535, inclusive",
        ),
        (
            json!({"ports": [{"port": 1}, {"port": 2, "name": "b"}]}),
            "spec.ports[0].name: Required value",
        ),
        (
            json!({"ports": [{"port": 1, "name": "a"}, {"port": 2, "name": "a"}]}),
            "spec.ports[1].name: Duplicate value: \"a\"",
        ),
        (
            json!({"ports": [{"port": 1, "nodePort": 30001}]}),
            "spec.ports[0].nodePort: Forbidden: may not be used when `type` is 'ClusterIP'",
        ),
        (
            json!({"ports": [{"port": 1, "targetPort": "80"}]}),
            "spec.ports[0].targetPort: Invalid value: \"80\": must contain at least one letter (a-z)",
        ),
        (
            json!({"clusterIP": "10.0.0", "clusterIPs": ["10.0.0"]}),
            "spec.clusterIPs[0]: Invalid value: \"10.0.0\": must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)",
        ),
        (
            json!({"type": "NodePort", "clusterIP": "None", "clusterIPs": ["None"]}),
            "spec.clusterIPs[0]: Invalid value: \"None\": may not be set to 'None' for NodePort services",
        ),
        (
            json!({"type": "ExternalName"}),
            "spec.externalName: Required value",
        ),
        (
            json!({"sessionAffinity": "ClientIP", "sessionAffinityConfig": {"clientIP": {"timeoutSeconds": 86401}}}),
            "spec.sessionAffinityConfig.clientIP.timeoutSeconds: Invalid value: 86401: must be greater than 0 and less than 86400",
        ),
        (
            json!({"externalTrafficPolicy": "Local"}),
            "spec.externalTrafficPolicy: Invalid value: \"Local\": may only be set for externally-accessible services",
        ),
    ] {
        assert_eq!(errors(&RULES, &web(more.clone())), [expected], "{more}");
    }
    assert_eq!(
        errors(&RULES, &web(json!({"sessionAffinity": "ClientIP"}))),
        [""; 0]
    );
    let unused = web(json!({"sessionAffinityConfig": {"clientIP": {"timeoutSeconds": 1}}}));
    assert_eq!(errors(&RULES, &unused), [""; 0]);
    assert!(unused["spec"].get("sessionAffinityConfig").is_none());
    assert_eq!(
        errors(
            &RULES,
            &web(json!({"clusterIP": "None", "clusterIPs": ["None"], "ports": []}))
        ),
        [""; 0]
    );
}

#[test]
fn a_balancer_that_asks_nodes_gets_a_port_to_ask_on() {
    let sent = web(json!({"type": "LoadBalancer", "externalTrafficPolicy": "Local"}));
    let stored = admitted(&sent, &among(vec![])).unwrap();
    let health = stored["spec"]["healthCheckNodePort"].as_i64().unwrap();
    assert_ne!(stored["spec"]["ports"][0]["nodePort"], health);
    assert_eq!(stored["spec"]["allocateLoadBalancerNodePorts"], true);
}

#[test]
fn a_second_family_is_refused() {
    let error = admitted(
        &web(json!({"ipFamilyPolicy": "RequireDualStack"})),
        &among(vec![]),
    )
    .unwrap_err();
    assert!(
        error.message.contains("not configured for dual-stack"),
        "{error}"
    );
    let prefers = admitted(
        &web(json!({"ipFamilyPolicy": "PreferDualStack"})),
        &among(vec![]),
    )
    .unwrap();
    assert_eq!(prefers["spec"]["ipFamilies"], json!(["IPv4"]));
}

#[test]
fn a_health_port_that_cannot_be_had_is_a_failure_with_its_cause() {
    let spec = json!({"type": "LoadBalancer", "externalTrafficPolicy": "Local", "healthCheckNodePort": 80});
    let error = admitted(&web(spec), &among(vec![])).unwrap_err();
    let why = "failed to allocate requested HealthCheck NodePort 80: provided port is not in the valid range. The range of valid ports is 30000-30002";
    let status = error.to_value();
    assert_eq!(status["message"], format!("Internal error occurred: {why}"));
    assert_eq!(status["details"], json!({"causes": [{"message": why}]}));
}

#[test]
fn families_are_settled_before_anything_else_is_judged() {
    const FEW: &str = "spec.ipFamilyPolicy: Invalid value: \"SingleStack\": must be 'RequireDualStack' or 'PreferDualStack' when multiple IP families are specified";
    for (more, expected) in [
        (json!({"ipFamilies": ["IPv4", "IPv6"]}), FEW),
        (
            json!({"ipFamilies": ["IPv4", "IPv4"], "ports": []}),
            "spec.ipFamilies[1]: Duplicate value: \"IPv4\"",
        ),
        (
            json!({"ipFamilies": ["IPv4", "IPv6"], "ipFamilyPolicy": "PreferDualStack"}),
            "spec.ipFamilies[1]: Invalid value: \"IPv6\": not configured on this cluster",
        ),
        (
            json!({"clusterIP": "10.0.0.9", "ipFamilies": ["IPv6"]}),
            "spec.clusterIPs[0]: Invalid value: \"10.0.0.9\": expected an IPv6 value as indicated by `ipFamilies[0]`",
        ),
        (
            json!({"clusterIP": "fd00::1"}),
            "spec.clusterIPs[0]: Invalid value: [\"fd00::1\"]: IPv6 is not configured on this cluster",
        ),
        (
            json!({"clusterIP": "None", "clusterIPs": ["::1"], "ipFamilies": ["IPv4"]}),
            "[spec.clusterIPs: Invalid value: [\"::1\"]: first value must match `clusterIP`, spec.clusterIPs[0]: Invalid value: \"::1\": expected an IPv4 value as indicated by `ipFamilies[0]`]",
        ),
        (
            json!({"clusterIPs": ["10.0.0.9"]}),
            "spec.clusterIPs: Invalid value: [\"10.0.0.9\"]: must be empty when `clusterIP` is not specified",
        ),
    ] {
        let error = admitted(&web(more.clone()), &among(vec![])).unwrap_err();
        let expected = format!("Service \"web\" is invalid: {expected}");
        assert_eq!(error.message, expected, "{more}");
    }
}

#[test]
fn a_headless_service_that_selects_nothing_has_the_families_it_names() {
    for (more, families) in [
        (json!({}), json!(["IPv4", "IPv6"])),
        (json!({"ipFamilies": ["IPv6"]}), json!(["IPv6", "IPv4"])),
        (json!({"ipFamilyPolicy": "SingleStack"}), json!(["IPv4"])),
    ] {
        let mut spec = json!({"clusterIP": "None", "ports": [{"port": 80}]});
        for (key, value) in more.as_object().unwrap() {
            spec[key] = value.clone();
        }
        let old = admitted(&service("s", spec), &among(vec![])).unwrap();
        assert_eq!(old["spec"]["ipFamilies"], families, "{more}");
    }
    let spec = json!({"clusterIP": "None", "ports": [{"port": 80}]});
    let old = admitted(&service("s", spec), &among(vec![])).unwrap();
    let mut one = old.clone();
    one["spec"]["ipFamilyPolicy"] = json!("SingleStack");
    let (one, _) = changed(one, &old).unwrap();
    assert_eq!(one["spec"]["ipFamilies"], json!(["IPv4"]));
    let mut fewer = old.clone();
    fewer["spec"]["ipFamilies"] = json!(["IPv4"]);
    let error = changed(fewer, &old).unwrap_err();
    assert!(
        error
            .message
            .ends_with("must be 'SingleStack' to release the secondary IP family")
    );
}

#[test]
fn node_ports_follow_names_and_are_not_given_twice() {
    let old = admitted(&web(json!({"type": "NodePort"})), &among(vec![])).unwrap();
    let node = old["spec"]["ports"][0]["nodePort"].clone();
    let ports = json!([{"port": 90, "protocol": "TCP", "targetPort": 90}]);
    let (new, _) = changed(web(json!({"type": "NodePort", "ports": ports})), &old).unwrap();
    assert_eq!(new["spec"]["ports"][0]["nodePort"], node);
    let port = json!({"name": "a", "port": 1, "protocol": "TCP", "nodePort": node});
    let twice = web(json!({"type": "NodePort", "ports": [port, port]}));
    let error = changed(twice, &old).unwrap_err();
    assert_eq!(error.message, format!("duplicate nodePort: {{TCP {node}}}"));
}

#[test]
fn a_service_without_a_name_holds_no_address() {
    let error = admitted(&service("a/b", json!({})), &among(vec![])).unwrap_err();
    assert_eq!(
        error.message,
        "Service \"a/b\" is invalid: spec.clusterIPs: Invalid value: [\"\"]: failed to allocate IP: IPAddress.networking.k8s.io \"10.0.0.1\" is invalid: spec.parentRef.name: Invalid value: \"a/b\": may not contain '/'"
    );
}

#[test]
fn a_policy_without_an_address_is_kept_and_not_shown() {
    let external = json!({"spec": {"type": "ExternalName", "internalTrafficPolicy": "Local"}});
    let veil = RULES.veil.unwrap();
    assert!(external.to_string().contains(veil.mark));
    let mut shown = external.clone();
    (veil.hide)(&mut shown);
    assert_eq!(shown, json!({"spec": {"type": "ExternalName"}}));
    let mut gone = external;
    gone["metadata"]["deletionTimestamp"] = json!("t");
    (veil.hide)(&mut gone);
    assert_eq!(gone["spec"]["internalTrafficPolicy"], "Local");
}

#[test]
fn authors_are_told_of_what_has_no_effect_or_an_odd_form() {
    for (more, expected) in [
        (
            json!({"loadBalancerIP": "010.1.1.1"}),
            vec![
                "spec.loadBalancerIP: non-standard IP address \"010.1.1.1\" is invalid: use \"10.1.1.1\"",
            ],
        ),
        (
            json!({"externalIPs": ["FD00::1"], "externalName": "x"}),
            vec![
                "spec.externalIPs[0]: IPv6 address \"FD00::1\" should be in RFC 5952 canonical format (\"fd00::1\")",
                "spec.externalIPs is deprecated and may no longer be implemented in some clusters",
                "spec.externalName is ignored when spec.type is not \"ExternalName\"",
            ],
        ),
        (
            json!({"clusterIP": "None", "sessionAffinity": "ClientIP"}),
            vec!["spec.SessionAffinity is ignored for headless services"],
        ),
        (json!({}), vec![]),
    ] {
        assert_eq!((RULES.warnings)(&web(more.clone())), expected, "{more}");
    }
}

#[test]
fn what_a_service_holds_outlives_a_change_of_ranges() {
    let sent = web(json!({"type": "NodePort"}));
    let old = admitted(&sent, &among(vec![])).unwrap();
    let mut moved = among(vec![old.clone()]);
    moved.settings.service_range = (Ipv4Addr::new(10, 9, 0, 0), 24);
    moved.settings.node_ports = (31000, 31010);
    let mut new = old.clone();
    let more = json!({"name": "b", "port": 81, "protocol": "TCP", "targetPort": 81});
    new["spec"]["ports"][0]["name"] = json!("a");
    new["spec"]["ports"].as_array_mut().unwrap().push(more);
    admit(&mut new, Some(&old), &moved).unwrap();
    assert_eq!(new["spec"]["clusterIP"], old["spec"]["clusterIP"]);
    assert_eq!(
        new["spec"]["ports"][0]["nodePort"],
        old["spec"]["ports"][0]["nodePort"]
    );
    assert!(new["spec"]["ports"][1]["nodePort"].as_i64().unwrap() >= 31000);
}

proptest! {
    /// After any sequence of creates and deletes, no two services share an address or a node port.
    #[test]
    fn nothing_is_given_twice(steps in proptest::collection::vec((0..6_usize, any::<bool>()), 1..40)) {
        let mut living: Vec<Value> = Vec::new();
        for (slot, create) in steps {
            let name = format!("s{slot}");
            living.retain(|other| other["metadata"]["name"] != name.as_str());
            if create {
                let spec = json!({"type": "NodePort", "ports": [{"port": 80}]});
                let mut others = among(living.clone());
                others.settings.node_ports = (30000, 30007);
                living.push(admitted(&service(&name, spec), &others).unwrap());
            }
            for field in ["/spec/clusterIP", "/spec/ports/0/nodePort"] {
                let given: std::collections::HashSet<String> =
                    living.iter().map(|other| other.pointer(field).unwrap().to_string()).collect();
                prop_assert_eq!(given.len(), living.len(), "{}", field);
            }
        }
    }
}

#[test]
fn a_port_asked_for_is_not_given_to_a_sibling() {
    let ports = json!([{"name": "a", "port": 1}, {"name": "b", "port": 2, "nodePort": 30000}]);
    let sent = service("pair", json!({"type": "NodePort", "ports": ports}));
    let stored = admitted(&sent, &among(vec![])).unwrap();
    assert_eq!(
        node_ports::of(&stored["spec"]).collect::<Vec<_>>(),
        [30001, 30000]
    );
}
