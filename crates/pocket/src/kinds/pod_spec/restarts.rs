//! Validation of restart rules and resize policies of containers.

use std::collections::HashSet;

use serde_json::Value;

use crate::{
    kinds::{
        field_rules::one_of_set,
        fields::{is_set, list, text},
        path::Path,
    },
    status::Problems,
};

const MAX_RESTART_RULES: usize = 20;
const MAX_EXIT_CODES: usize = 255;

pub(super) fn check(container: &Value, path: &Path<'_>, problems: &mut Problems) {
    let policies = ["Always", "Never", "OnFailure"];
    one_of_set(&policies, container, path, "restartPolicy", problems);
    let rules = list(container, "restartPolicyRules");
    if rules.is_empty() {
        return;
    }
    if !is_set(container, "restartPolicy") {
        let detail = "must specify restartPolicy when restart rules are used";
        problems.required(path.field("restartPolicy"), detail);
        // Init containers need no further checks.
        if is_init(path) {
            return;
        }
    }
    let path = path.field("restartPolicyRules");
    if rules.len() > MAX_RESTART_RULES {
        problems.too_many(path, rules.len(), MAX_RESTART_RULES);
    }
    for (index, rule) in rules.iter().enumerate() {
        check_rule(rule, &path.index(index), problems);
    }
}

fn is_init(path: &Path<'_>) -> bool {
    matches!(path, Path::Index(Path::Field(_, "initContainers"), _))
}

fn check_rule(rule: &Value, path: &Path<'_>, problems: &mut Problems) {
    let actions = ["Restart", "RestartAllContainers"];
    if !actions.contains(&text(rule, "action")) {
        problems.not_supported(path.field("action"), text(rule, "action"), &actions);
    }
    let (codes, path) = (&rule["exitCodes"], path.field("exitCodes"));
    if codes.is_null() {
        problems.required(path, "must be specified");
        return;
    }
    let operators = ["In", "NotIn"];
    if !operators.contains(&text(codes, "operator")) {
        problems.not_supported(path.field("operator"), text(codes, "operator"), &operators);
    }
    let count = list(codes, "values").len();
    if count > MAX_EXIT_CODES {
        problems.too_many(path.field("values"), count, MAX_EXIT_CODES);
    }
}

/// Errors of single entries are reported for the whole list, except for duplicates.
pub(super) fn check_resize(
    container: &Value,
    spec: &Value,
    path: &Path<'_>,
    problems: &mut Problems,
) {
    let mut seen = HashSet::new();
    for (index, entry) in list(container, "resizePolicy").iter().enumerate() {
        let (name, policy) = (text(entry, "resourceName"), text(entry, "restartPolicy"));
        if !seen.insert(name) {
            problems.duplicate(path.index(index), name);
        }
        one_of_needed(name, &["cpu", "memory"], path, problems);
        one_of_needed(policy, &["NotRequired", "RestartContainer"], path, problems);
        if text(spec, "restartPolicy") == "Never" && policy != "NotRequired" {
            let detail = "must be 'NotRequired' when pod `restartPolicy` is 'Never'";
            problems.invalid(path, policy, detail);
        }
    }
}

fn one_of_needed(value: &str, known: &[&str], path: &Path<'_>, problems: &mut Problems) {
    if value.is_empty() {
        problems.required(path, "");
    } else if !known.contains(&value) {
        problems.not_supported(path, value, known);
    }
}
