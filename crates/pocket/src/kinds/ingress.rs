//! Ingress (networking.k8s.io/v1). It is stored; no controller here acts on it.

use std::net::IpAddr;

use serde_json::{Value, json};

use super::{
    Rules, Traits,
    field_rules::obeys,
    fields::{fill, is_set, list, number, set, text},
    names,
    path::Path,
};
use crate::status::Problems;

const SPEC: Path<'_> = Path::At("spec");
const FORBIDDEN_IN_PATHS: [&str; 5] = ["//", "/./", "/../", "%2f", "%2F"];
const FORBIDDEN_AT_END: [&str; 2] = ["/..", "/."];
const CLASS_ANNOTATION: &str = "kubernetes.io/ingress.class";

pub(super) const RULES: Rules = Rules {
    default: |object| {
        if let Some(status) = object.get_mut("status") {
            fill(status, "loadBalancer", json!({}));
        }
    },
    prepare_create: |object, _| set(object, "status", json!({"loadBalancer": {}})),
    validate,
    warnings: |_| {
        vec![
            "ingresses are stored but not enforced by this server: nothing routes their traffic"
                .into(),
        ]
    },
    traits: Traits {
        generation: true,
        ..Traits::USUAL
    },
    ..Rules::SHAPE_ONLY
};

fn validate(object: &Value, problems: &mut Problems) {
    let spec = &object["spec"];
    if list(spec, "rules").is_empty() && !is_set(spec, "defaultBackend") {
        let detail = "either `defaultBackend` or `rules` must be specified";
        problems.invalid(SPEC, spec.clone(), detail);
    }
    if is_set(spec, "defaultBackend") {
        let path = SPEC.field("defaultBackend");
        validate_backend(&spec["defaultBackend"], &path, problems);
    }
    let path = SPEC.field("rules");
    for (i, rule) in list(spec, "rules").iter().enumerate() {
        validate_rule(rule, &path.index(i), problems);
    }
    let path = SPEC.field("tls");
    for (i, tls) in list(spec, "tls").iter().enumerate() {
        let hosts = path.index(i);
        let hosts = hosts.field("hosts");
        for (j, host) in list(tls, "hosts").iter().enumerate() {
            validate_host(host.as_str().unwrap_or_default(), &hosts.index(j), problems);
        }
    }
    if let Some(class) = spec["ingressClassName"].as_str() {
        obeys(
            names::subdomain,
            class,
            &SPEC.field("ingressClassName"),
            problems,
        );
        let annotations = &object["metadata"]["annotations"];
        let annotated = text(annotations, CLASS_ANNOTATION);
        if !annotated.is_empty() && annotated != class {
            let path = Path::At("metadata.annotations");
            let detail = "must match `ingressClassName` when both are specified";
            problems.invalid(path.field(CLASS_ANNOTATION), annotated, detail);
        }
    }
}

fn validate_rule(rule: &Value, path: &Path<'_>, problems: &mut Problems) {
    let host = text(rule, "host");
    if !host.is_empty() {
        let path = path.field("host");
        if host.parse::<IpAddr>().is_ok() {
            problems.invalid(path, host, "must be a DNS name, not an IP address");
        } else {
            validate_host(host, &path, problems);
        }
    }
    let path = path.field("http");
    let path = path.field("paths");
    for (i, item) in list(&rule["http"], "paths").iter().enumerate() {
        validate_path(item, &path.index(i), problems);
    }
}

fn validate_host(host: &str, path: &Path<'_>, problems: &mut Problems) {
    if !host.contains('*') {
        return obeys(names::subdomain, host, path, problems);
    }
    let rest = host.strip_prefix("*.").unwrap_or_default();
    if rest.is_empty() || !names::subdomain(rest).is_empty() {
        let detail = "a wildcard DNS-1123 subdomain must start with '*.', followed by a valid DNS subdomain, which must consist of lower case alphanumeric characters, '-' or '.' and end with an alphanumeric character (e.g. '*.example.com', regex used for validation is '\\*\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')";
        problems.invalid(path, host, detail);
    }
}

fn validate_path(item: &Value, path: &Path<'_>, problems: &mut Problems) {
    let value = text(item, "path");
    let at = path.field("path");
    match text(item, "pathType") {
        "Exact" | "Prefix" if !value.starts_with('/') => {
            problems.invalid(at, value, "must be an absolute path");
        }
        "Exact" | "Prefix" => {
            let parts = FORBIDDEN_IN_PATHS.iter();
            for part in parts.filter(|part| value.contains(*part)) {
                problems.invalid(at, value, format!("must not contain '{part}'"));
            }
            let ends = FORBIDDEN_AT_END.iter();
            for end in ends.filter(|end| value.ends_with(*end)) {
                problems.invalid(at, value, format!("cannot end with '{end}'"));
            }
        }
        "ImplementationSpecific" if !value.is_empty() && !value.starts_with('/') => {
            problems.invalid(at, value, "must be an absolute path");
        }
        // Missing and unknown types were reported from the schema.
        _ => {}
    }
    validate_backend(&item["backend"], &path.field("backend"), problems);
}

fn validate_backend(backend: &Value, path: &Path<'_>, problems: &mut Problems) {
    match (is_set(backend, "resource"), is_set(backend, "service")) {
        (true, true) => problems.invalid(path, "", "cannot set both resource and service backends"),
        (false, false) => problems.invalid(path, "", "resource or service backend is required"),
        (true, false) => {}
        (false, true) => validate_service(&backend["service"], path, problems),
    }
}

fn validate_service(service: &Value, backend: &Path<'_>, problems: &mut Problems) {
    let path = backend.field("service");
    let name = text(service, "name");
    if !name.is_empty() {
        obeys(names::label_1035, name, &path.field("name"), problems);
    }
    let path = path.field("port");
    let port = &service["port"];
    let (name, number) = (text(port, "name"), number(port, "number"));
    match (name.is_empty(), number) {
        (false, 0) => obeys(names::port_name, name, &path.field("name"), problems),
        (false, _) => problems.invalid(backend, "", "cannot set both port name & port number"),
        (true, 0) => problems.required(backend, "port name or number is required"),
        (true, number) => {
            for complaint in names::port_number(number) {
                problems.invalid(path.field("number"), number, complaint);
            }
        }
    }
}
