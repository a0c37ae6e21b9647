//! IngressClass (networking.k8s.io/v1).

use serde_json::Value;

use super::{
    Rules, Traits,
    field_rules::{immutable, obeys},
    fields::{fill, is_set, part, text},
    names,
    path::Path,
};
use crate::status::Problems;

const SPEC: Path<'_> = Path::At("spec");
const MAX_CONTROLLER_LENGTH: usize = 250;

pub(super) const RULES: Rules = Rules {
    default: |object| {
        if let Some(spec) = part(object, "spec")
            && let Some(parameters) = part(spec, "parameters")
        {
            fill(parameters, "scope", "Cluster");
        }
    },
    validate,
    validate_update: |new, old, problems| {
        immutable(&new["spec"], &old["spec"], &SPEC, "controller", problems);
    },
    traits: Traits {
        generation: true,
        status: false,
        ..Traits::USUAL
    },
    ..Rules::SHAPE_ONLY
};

fn validate(object: &Value, problems: &mut Problems) {
    let spec = &object["spec"];
    let controller = text(spec, "controller");
    let path = SPEC.field("controller");
    if controller.len() > MAX_CONTROLLER_LENGTH {
        problems.too_long(path, MAX_CONTROLLER_LENGTH);
    }
    match controller.split_once('/') {
        _ if controller.is_empty() => problems.required(path, ""),
        Some((domain, rest)) if !rest.is_empty() => {
            obeys(names::subdomain, domain, &path, problems);
        }
        _ => {
            let detail = "must be a domain-prefixed path (such as \"acme.io/foo\")";
            problems.invalid(path, controller, detail);
        }
    }
    if is_set(spec, "parameters") {
        validate_parameters(&spec["parameters"], &SPEC.field("parameters"), problems);
    }
}

fn validate_parameters(parameters: &Value, path: &Path<'_>, problems: &mut Problems) {
    let namespace = text(parameters, "namespace");
    let namespace_path = path.field("namespace");
    match text(parameters, "scope") {
        "Cluster" if !namespace.is_empty() => {
            problems.forbidden(namespace_path, "`parameters.scope` is set to 'Cluster'");
        }
        "Namespace" if namespace.is_empty() => {
            problems.required(namespace_path, "`parameters.scope` is set to 'Namespace'");
        }
        "Namespace" => obeys(names::label, namespace, &namespace_path, problems),
        "Cluster" => {}
        other => problems.not_supported(path.field("scope"), other, &["Cluster", "Namespace"]),
    }
}
