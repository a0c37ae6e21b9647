//! Validation of `podFailurePolicy` and `successPolicy`.

use std::collections::HashSet;

use serde_json::Value;

use super::super::{
    field_rules::one_of,
    fields::{each_mut, fill, is_set, list, number, part, text},
    path::Path,
};
use crate::status::Problems;

const MAX_RULES: usize = 20;
const MAX_EXIT_CODES: usize = 255;
const MAX_POD_CONDITIONS: usize = 20;
const STATUSES: [&str; 3] = ["False", "True", "Unknown"];

/// Fills absent fields under `podFailurePolicy`.
pub(super) fn default(spec: &mut Value) {
    let Some(policy) = part(spec, "podFailurePolicy") else {
        return;
    };
    for rule in each_mut(policy, "rules") {
        for pattern in each_mut(rule, "onPodConditions") {
            fill(pattern, "status", "True");
        }
    }
}

/// Checks both policies of a job's spec at `path`.
pub(super) fn validate(spec: &Value, path: &Path<'_>, problems: &mut Problems) {
    if is_set(spec, "podFailurePolicy") {
        validate_failure(spec, path, problems);
    }
    if is_set(spec, "successPolicy") {
        let path = path.field("successPolicy");
        let rules = list(&spec["successPolicy"], "rules");
        let path = path.field("rules");
        if rules.is_empty() {
            let detail = "at least one rules must be specified when the successPolicy is specified";
            problems.required(path, detail);
        }
        if rules.len() > MAX_RULES {
            problems.too_many(path, rules.len(), MAX_RULES);
        }
        for (i, rule) in rules.iter().enumerate() {
            validate_success_rule(rule, spec, &path.index(i), problems);
        }
    }
}

fn validate_failure(spec: &Value, path: &Path<'_>, problems: &mut Problems) {
    let restart = text(&spec["template"]["spec"], "restartPolicy");
    if restart == "OnFailure" {
        let path = path.field("template");
        let path = path.field("spec");
        let detail = "only \"Never\" is supported when podFailurePolicy is specified";
        problems.invalid(path.field("restartPolicy"), restart, detail);
    }
    let replacement = text(spec, "podReplacementPolicy");
    if replacement == "TerminatingOrFailed" {
        problems.not_supported(path.field("podReplacementPolicy"), replacement, &["Failed"]);
    }
    let policy = path.field("podFailurePolicy");
    let path = policy.field("rules");
    let rules = list(&spec["podFailurePolicy"], "rules");
    let pod = &spec["template"]["spec"];
    let containers = ["containers", "initContainers"].into_iter();
    let containers: HashSet<&str> = containers
        .flat_map(|field| list(pod, field))
        .map(|container| text(container, "name"))
        .collect();
    if rules.len() > MAX_RULES {
        problems.too_many(path, rules.len(), MAX_RULES);
    }
    for (i, rule) in rules.iter().enumerate() {
        validate_rule(rule, (spec, &containers), &path.index(i), problems);
    }
}

fn validate_rule(
    rule: &Value,
    (spec, containers): (&Value, &HashSet<&str>),
    path: &Path<'_>,
    problems: &mut Problems,
) {
    if text(rule, "action") == "FailIndex" && !is_set(spec, "backoffLimitPerIndex") {
        let detail = "requires the backoffLimitPerIndex to be set";
        problems.invalid(path.field("action"), "FailIndex", detail);
    }
    let conditions = list(rule, "onPodConditions");
    match (is_set(rule, "onExitCodes"), !conditions.is_empty()) {
        (true, true) => {
            let detail = "specifying both OnExitCodes and OnPodConditions is not supported";
            problems.invalid(path, rule.clone(), detail);
        }
        (false, false) => {
            let detail = "specifying one of OnExitCodes and OnPodConditions is required";
            problems.invalid(path, rule.clone(), detail);
        }
        (true, false) => {
            validate_codes(
                &rule["onExitCodes"],
                containers,
                &path.field("onExitCodes"),
                problems,
            );
        }
        (false, true) if conditions.len() > MAX_POD_CONDITIONS => {
            problems.too_many(
                path.field("onPodConditions"),
                conditions.len(),
                MAX_POD_CONDITIONS,
            );
        }
        (false, true) => {
            let path = path.field("onPodConditions");
            for (i, pattern) in conditions.iter().enumerate() {
                one_of(&STATUSES, pattern, &path.index(i), "status", problems);
            }
        }
    }
}

fn validate_codes(
    on: &Value,
    containers: &HashSet<&str>,
    path: &Path<'_>,
    problems: &mut Problems,
) {
    let values = list(on, "values");
    let values_path = path.field("values");
    if values.len() > MAX_EXIT_CODES {
        problems.too_many(values_path, values.len(), MAX_EXIT_CODES);
    }
    let mut before = None;
    for (i, value) in values.iter().filter_map(Value::as_i64).enumerate() {
        let path = values_path.index(i);
        if text(on, "operator") == "In" && value == 0 {
            problems.invalid(path, value, "must not be 0 for the In operator");
        } else if before == Some(value) {
            problems.duplicate(path, value);
        } else if before.is_some_and(|before| before > value) {
            return problems.invalid(values_path, on["values"].clone(), "must be ordered");
        }
        before = Some(value);
    }
    if let Some(name) = on["containerName"].as_str()
        && !containers.contains(name)
    {
        let detail = "must be one of the container or initContainer names in the pod template";
        problems.invalid(path.field("containerName"), name, detail);
    }
}

fn validate_success_rule(rule: &Value, spec: &Value, path: &Path<'_>, problems: &mut Problems) {
    if !is_set(rule, "succeededCount") && !is_set(rule, "succeededIndexes") {
        let detail = "at least one of succeededCount or succeededIndexes must be specified";
        problems.required(path, detail);
    }
    let count = number(rule, "succeededCount");
    if is_set(rule, "succeededCount") && count < 1 {
        let detail = "must be greater than or equal to 1";
        problems.invalid(path.field("succeededCount"), count, detail);
    } else if count > number(spec, "completions") && is_set(spec, "completions") {
        let completions = number(spec, "completions");
        let detail = format!(
            "must be less than or equal to {completions} (the number of specified completions)"
        );
        problems.invalid(path.field("succeededCount"), count, detail);
    }
    if let Some(indexes) = rule["succeededIndexes"].as_str()
        && let Err(why) = check_indexes(indexes, number(spec, "completions"))
    {
        problems.invalid(path.field("succeededIndexes"), indexes, why);
    }
}

/// Increasing indexes and ranges of them, as `0,2-5`, all below `completions`.
fn check_indexes(text: &str, completions: i64) -> Result<(), String> {
    let mut next = 0;
    for part in text.split(',') {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        let read = |text: &str| {
            let digits = !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
            let number = digits.then(|| text.parse::<i64>().ok()).flatten();
            number.ok_or_else(|| format!("cannot convert string to integer for index: {text:?}"))
        };
        let (first, last) = (read(first)?, read(last)?);
        if first < next || last < first {
            return Err(format!(
                "non-increasing order, previous: {}, current: {first}",
                next - 1
            ));
        }
        if last >= completions {
            return Err("too large index".to_owned());
        }
        next = last + 1;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn indexes_increase_and_stay_below_completions() {
        for (text, fine) in [
            ("0", true),
            ("0,2-5", true),
            ("9", true),
            ("10", false),
            ("2,1", false),
            ("1,1", false),
            ("3-2", false),
            ("", false),
            ("1,", false),
            ("+1", false),
            ("a", false),
        ] {
            assert_eq!(check_indexes(text, 10).is_ok(), fine, "{text}");
        }
    }
}
