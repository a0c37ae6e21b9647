//! ValidatingWebhookConfiguration and MutatingWebhookConfiguration
//! (admissionregistration.k8s.io/v1).

mod client;
mod rules;

use std::collections::HashSet;

use serde_json::Value;

use super::{
    Rules, Traits,
    field_rules::obeys,
    fields::{each_mut, fill, filled, list, part, text},
    label_selector, names,
    path::Path,
};
use crate::{crd::cel::Condition, status::Problems};

const VERSIONS: [&str; 2] = ["v1", "v1beta1"];
const MAX_TIMEOUT_SECONDS: i64 = 30;
const MAX_MATCH_CONDITIONS: usize = 64;

pub(super) const VALIDATING: Rules = Rules {
    default: |object| {
        for webhook in each_mut(object, "webhooks") {
            default_webhook(webhook);
        }
    },
    validate,
    traits: Traits {
        generation: true,
        unconditional_update: false,
        status: false,
        ..Traits::USUAL
    },
    ..Rules::SHAPE_ONLY
};

pub(super) const MUTATING: Rules = Rules {
    default: |object| {
        for webhook in each_mut(object, "webhooks") {
            default_webhook(webhook);
            fill(webhook, "reinvocationPolicy", "Never");
        }
    },
    ..VALIDATING
};

fn default_webhook(webhook: &mut Value) {
    fill(webhook, "failurePolicy", "Fail");
    fill(webhook, "matchPolicy", "Equivalent");
    fill(webhook, "timeoutSeconds", 10);
    filled(webhook, "namespaceSelector");
    filled(webhook, "objectSelector");
    for rule in each_mut(webhook, "rules") {
        fill(rule, "scope", "*");
    }
    if let Some(client) = part(webhook, "clientConfig")
        && let Some(service) = part(client, "service")
    {
        fill(service, "port", 443);
    }
}

fn validate(object: &Value, problems: &mut Problems) {
    let path = Path::At("webhooks");
    let mut seen = HashSet::new();
    for (i, webhook) in list(object, "webhooks").iter().enumerate() {
        let path = path.index(i);
        validate_webhook(webhook, &path, problems);
        let name = text(webhook, "name");
        if !name.is_empty() && !seen.insert(name) {
            problems.duplicate(path.field("name"), name);
        }
    }
}

fn validate_webhook(webhook: &Value, path: &Path<'_>, problems: &mut Problems) {
    validate_name(text(webhook, "name"), &path.field("name"), problems);
    for key in ["namespaceSelector", "objectSelector"] {
        label_selector::validate(&webhook[key], &path.field(key), problems);
    }
    let effects = text(webhook, "sideEffects");
    // The schema still lists the values of the first version of the API.
    if effects == "Some" || effects == "Unknown" {
        let allowed = ["None", "NoneOnDryRun"];
        problems.not_supported(path.field("sideEffects"), effects, &allowed);
    }
    if let Some(seconds) = webhook["timeoutSeconds"].as_i64()
        && !(1..=MAX_TIMEOUT_SECONDS).contains(&seconds)
    {
        let detail =
            format!("the timeout value must be between 1 and {MAX_TIMEOUT_SECONDS} seconds");
        problems.invalid(path.field("timeoutSeconds"), seconds, detail);
    }
    validate_versions(webhook, &path.field("admissionReviewVersions"), problems);
    let at = path.field("rules");
    for (i, rule) in list(webhook, "rules").iter().enumerate() {
        rules::validate(rule, &at.index(i), problems);
    }
    client::validate(
        &webhook["clientConfig"],
        &path.field("clientConfig"),
        problems,
    );
    validate_conditions(webhook, &path.field("matchConditions"), problems);
}

fn validate_name(name: &str, path: &Path<'_>, problems: &mut Problems) {
    if name.is_empty() {
        return;
    }
    obeys(names::subdomain, name, path, problems);
    if names::subdomain(name).is_empty() && name.split('.').count() < 3 {
        let detail = "should be a domain with at least three segments separated by dots";
        problems.invalid(path, name, detail);
    }
}

fn validate_versions(webhook: &Value, path: &Path<'_>, problems: &mut Problems) {
    let versions = list(webhook, "admissionReviewVersions");
    if versions.is_empty() {
        return;
    }
    let mut seen = HashSet::new();
    for (i, version) in versions.iter().enumerate() {
        let version = version.as_str().unwrap_or_default();
        obeys(names::label_1035, version, &path.index(i), problems);
        if !seen.insert(version) {
            problems.invalid(path.index(i), version, "duplicate version");
        }
    }
    if !VERSIONS.iter().any(|version| seen.contains(version)) {
        let detail = format!("must include at least one of {}", VERSIONS.join(", "));
        problems.invalid(path, versions.to_vec(), detail);
    }
}

fn validate_conditions(webhook: &Value, path: &Path<'_>, problems: &mut Problems) {
    let conditions = list(webhook, "matchConditions");
    if conditions.len() > MAX_MATCH_CONDITIONS {
        problems.too_many(path, conditions.len(), MAX_MATCH_CONDITIONS);
    }
    let mut seen = HashSet::new();
    for (i, condition) in conditions.iter().enumerate() {
        let name = text(condition, "name");
        let path = path.index(i);
        validate_expression(text(condition, "expression"), &path, problems);
        if name.is_empty() {
            continue;
        }
        obeys(names::qualified, name, &path.field("name"), problems);
        if !seen.insert(name) {
            problems.duplicate(path.field("name"), name);
        }
    }
}

/// Refuses an expression that does not compile.
fn validate_expression(expression: &str, path: &Path<'_>, problems: &mut Problems) {
    let path = path.field("expression");
    if expression.trim().is_empty() {
        return problems.required(path, "");
    }
    if let Err(why) = Condition::compile(expression) {
        problems.invalid(path, expression, why);
    }
}
