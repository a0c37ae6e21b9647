use serde_json::{Value, json};

use crate::{
    crd::{Definition, definition},
    status::Problems,
};

fn accepted(mut object: Value) -> Definition {
    definition::default(&mut object);
    let mut problems = Problems::new();
    definition::validate(&object, &mut problems);
    assert!(problems.is_empty(), "{problems}");
    Definition::read(&object)
}

fn crd(group: &str, kind: &str, plural: &str, version: Value) -> Value {
    let mut version = version;
    version["served"] = json!(true);
    version["storage"] = json!(true);
    json!({"metadata": {"name": format!("{plural}.{group}"),
            "annotations": {"api-approved.kubernetes.io": "https://example.com/approved"}},
        "spec": {"group": group, "scope": "Namespaced", "names": {"plural": plural, "kind": kind}, "versions": [version]}})
}

/// Treats an object as the server treats one that a client sent.
fn admit(definition: &Definition, mut new: Value, old: Option<&Value>) -> (Value, Vec<String>) {
    let version = definition.storage().unwrap();
    let mut texts = version.prune(&mut new);
    version.default(&mut new);
    let mut problems = Problems::new();
    version.validate(&new, old, &mut problems);
    texts.extend(problems.iter().map(ToString::to_string));
    (new, texts)
}

fn certificate() -> Value {
    crd(
        "certs.example.com",
        "Certificate",
        "certificates",
        json!({"name": "v1",
        "subresources": {"status": {}},
        "additionalPrinterColumns": [
            {"name": "Ready", "type": "string", "jsonPath": ".status.conditions[?(@.type==\"Ready\")].status"},
            {"name": "Age", "type": "date", "jsonPath": ".metadata.creationTimestamp"}],
        "schema": {"openAPIV3Schema": {"type": "object", "required": ["spec"], "properties": {
            "apiVersion": {"type": "string"}, "kind": {"type": "string"}, "metadata": {"type": "object"},
            "spec": {"type": "object", "required": ["issuerRef", "secretName"], "properties": {
                "secretName": {"type": "string"},
                "dnsNames": {"type": "array", "items": {"type": "string"}},
                "duration": {"type": "string"},
                "revisionHistoryLimit": {"type": "integer", "format": "int32", "minimum": 1},
                "issuerRef": {"type": "object", "required": ["name"], "properties": {
                    "group": {"type": "string", "default": "certs.example.com"},
                    "kind": {"type": "string", "default": "Issuer"}, "name": {"type": "string"}}},
                "privateKey": {"type": "object", "properties": {
                    "algorithm": {"type": "string", "enum": ["RSA", "ECDSA", "Ed25519"]},
                    "size": {"type": "integer"}}},
                "usages": {"type": "array", "items": {"type": "string", "enum": ["signing", "server auth"]}}}},
            "status": {"type": "object", "properties": {
                "conditions": {"type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["type"],
                    "items": {"type": "object", "required": ["status", "type"], "properties": {
                        "type": {"type": "string"}, "status": {"type": "string", "enum": ["True", "False", "Unknown"]},
                        "lastTransitionTime": {"type": "string", "format": "date-time"}}}}}}}}}}),
    )
}

#[test]
fn a_certificate_is_defaulted_pruned_and_judged() {
    let definition = accepted(certificate());
    let (object, problems) = admit(
        &definition,
        json!({"metadata": {"name": "a"}, "spec": {"secretName": "s", "issuerRef": {"name": "ca"}, "extra": 1}}),
        None,
    );
    assert_eq!(problems, ["spec.extra"]);
    assert_eq!(object["spec"]["issuerRef"]["kind"], "Issuer");
    let (_, problems) = admit(
        &definition,
        json!({"spec": {"secretName": "s", "issuerRef": {}, "privateKey": {"algorithm": "DSA"}, "usages": ["signing", "x"]},
            "status": {"conditions": [{"type": "Ready", "status": "True", "lastTransitionTime": "yesterday"}]}}),
        None,
    );
    assert_eq!(
        problems,
        [
            "spec.issuerRef.name: Required value",
            "spec.privateKey.algorithm: Unsupported value: \"DSA\": supported values: \"RSA\", \"ECDSA\", \"Ed25519\"",
            "spec.usages[1]: Unsupported value: \"x\": supported values: \"signing\", \"server auth\"",
            "status.conditions[0].lastTransitionTime: Invalid value: \"yesterday\": status.conditions[0].lastTransitionTime in body must be of type date-time: \"yesterday\"",
        ]
    );
    let columns = &definition.storage().unwrap().printer_columns;
    let object = json!({"status": {"conditions": [{"type": "Ready", "status": "True"}]}});
    assert_eq!(columns[0].path.find(&object), [&json!("True")]);
}

fn gateway() -> Value {
    crd(
        "gateway.example.k8s.io",
        "Gateway",
        "gateways",
        json!({"name": "v1",
        "schema": {"openAPIV3Schema": {"type": "object", "properties": {"spec": {"type": "object", "properties": {
            "listeners": {"type": "array", "minItems": 1, "maxItems": 64,
                "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["name"],
                "x-kubernetes-validations": [
                    {"message": "tls must not be specified for protocols ['HTTP', 'TCP', 'UDP']",
                        "rule": "self.all(l, l.protocol in ['HTTP', 'TCP', 'UDP'] ? !has(l.tls) : true)"},
                    {"message": "hostname must not be specified for protocols ['TCP', 'UDP']",
                        "rule": "self.all(l, l.protocol in ['TCP', 'UDP']  ? (!has(l.hostname) || l.hostname == '') : true)"},
                    {"message": "Combination of port, protocol and hostname must be unique for each listener",
                        "rule": "self.all(l1, self.exists_one(l2, l1.port == l2.port && l1.protocol == l2.protocol && (has(l1.hostname) && has(l2.hostname) ? l1.hostname == l2.hostname : !has(l1.hostname) && !has(l2.hostname))))"}],
                "items": {"type": "object", "required": ["name", "port", "protocol"], "properties": {
                    "name": {"type": "string", "maxLength": 253, "minLength": 1},
                    "hostname": {"type": "string", "maxLength": 253},
                    "port": {"type": "integer", "format": "int32", "minimum": 1, "maximum": 65535},
                    "protocol": {"type": "string", "maxLength": 255},
                    "tls": {"type": "object", "properties": {
                        "mode": {"type": "string", "default": "Terminate", "enum": ["Terminate", "Passthrough"]},
                        "certificateRefs": {"type": "array", "items": {"type": "object", "properties": {"name": {"type": "string"}}}}},
                        "x-kubernetes-validations": [{"message": "certificateRefs must be specified when mode is Terminate",
                            "rule": "self.mode == 'Terminate' ? size(self.certificateRefs) > 0 : true"}]}}}}}}}}}}),
    )
}

#[test]
fn a_gateway_keeps_its_rules() {
    let definition = accepted(gateway());
    let listeners = |listeners: Value| json!({"spec": {"listeners": listeners}});
    for (given, expected) in [
        (
            json!([{"name": "a", "port": 80, "protocol": "HTTP"}]),
            vec![],
        ),
        (
            json!([{"name": "a", "port": 80, "protocol": "HTTP", "tls": {"certificateRefs": [{"name": "c"}]}}]),
            vec![
                "spec.listeners: Invalid value: tls must not be specified for protocols ['HTTP', 'TCP', 'UDP']",
            ],
        ),
        (
            json!([{"name": "a", "port": 80, "protocol": "HTTP"}, {"name": "b", "port": 80, "protocol": "HTTP"}]),
            vec![
                "spec.listeners: Invalid value: Combination of port, protocol and hostname must be unique for each listener",
            ],
        ),
        (
            json!([{"name": "a", "port": 443, "protocol": "HTTPS", "tls": {"certificateRefs": []}}]),
            vec![
                "spec.listeners[0].tls: Invalid value: certificateRefs must be specified when mode is Terminate",
            ],
        ),
        (
            json!([{"name": "a", "port": 0, "protocol": "TCP"}]),
            vec![
                "spec.listeners[0].port: Invalid value: 0: spec.listeners[0].port in body should be greater than or equal to 1",
            ],
        ),
        (
            json!([{"name": "a", "port": "x", "protocol": "TCP"}]),
            vec![
                r#"spec.listeners[0].port: Invalid value: "string": spec.listeners[0].port in body must be of type integer: "string""#,
                "<nil>: Invalid value: null: some validation rules were not checked because the object was invalid; correct the existing errors to complete validation",
            ],
        ),
        (
            json!([{"port": 80, "protocol": "TCP"}]),
            vec![
                "spec.listeners[0].name: Required value",
                "<nil>: Invalid value: null: some validation rules were not checked because the object was invalid; correct the existing errors to complete validation",
            ],
        ),
    ] {
        let (_, problems) = admit(&definition, listeners(given), None);
        assert_eq!(problems, expected);
    }
}

fn infrastructure() -> Value {
    crd(
        "config.example.com",
        "Infrastructure",
        "infrastructures",
        json!({"name": "v1",
        "schema": {"openAPIV3Schema": {"type": "object", "properties": {"spec": {"type": "object",
            "x-kubernetes-validations": [
                {"rule": "!has(oldSelf.platform) || has(self.platform)", "message": "platform may not be removed"},
                {"rule": "oldSelf.?platform.type.orValue('') == '' || oldSelf.platform.type == self.?platform.type.orValue('')",
                    "message": "platform type is immutable once set"}],
            "properties": {"platform": {"type": "object",
                "x-kubernetes-validations": [{"rule": "self.?type.orValue('') == 'AWS' ? has(self.aws) : !has(self.aws)",
                    "message": "aws is required when type is AWS, and forbidden otherwise"}],
                "properties": {
                    "type": {"type": "string", "enum": ["AWS", "None"]},
                    "apiServerInternalIPs": {"type": "array", "x-kubernetes-list-type": "set", "items": {"type": "string",
                        "x-kubernetes-validations": [{"rule": "isIP(self) && ip(self).family() == 4", "message": "must be an IPv4 address"}]}},
                    "machineNetworks": {"type": "array", "x-kubernetes-list-type": "atomic", "items": {"type": "string"},
                        "x-kubernetes-validations": [{"rule": "self.all(x, self.exists_one(y, x == y)) && self.all(c, isCIDR(c))",
                            "messageExpression": "'bad networks: ' + self.filter(c, !isCIDR(c)).join(', ')"}]},
                    "aws": {"type": "object", "properties": {"region": {"type": "string"}}}}}}}}}}}),
    )
}

#[test]
fn optional_syntax_guards_transitions() {
    let definition = accepted(infrastructure());
    let aws = json!({"spec": {"platform": {"type": "AWS", "aws": {"region": "x"}}}});
    let none = json!({"spec": {"platform": {"type": "None"}}});
    let empty = json!({"spec": {}});
    for (new, old, expected) in [
        (&aws, None, vec![]),
        (&aws, Some(&empty), vec![]),
        (&aws, Some(&aws), vec![]),
        (
            &none,
            Some(&aws),
            vec!["spec: Invalid value: platform type is immutable once set"],
        ),
        (
            &empty,
            Some(&aws),
            vec![
                "spec: Invalid value: platform may not be removed",
                "spec: Invalid value: platform type is immutable once set",
            ],
        ),
    ] {
        let (_, problems) = admit(&definition, new.clone(), old);
        assert_eq!(problems, expected, "{new} {old:?}");
    }
    let (_, problems) = admit(
        &definition,
        json!({"spec": {"platform": {"apiServerInternalIPs": ["10.0.0.1", "::1"], "machineNetworks": ["10.0.0.0/8", "x"]}}}),
        None,
    );
    assert_eq!(
        problems,
        [
            "spec.platform.apiServerInternalIPs[1]: Invalid value: \"::1\": must be an IPv4 address",
            "spec.platform.machineNetworks: Invalid value: bad networks: x",
        ]
    );
}
