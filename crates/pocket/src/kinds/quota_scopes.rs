//! The resources a quota may limit, and which scopes fit them.

use std::collections::HashSet;

use serde_json::Value;

use super::{
    fields::{entries, list, text},
    names,
    path::Path,
    resources::{check_amount, quantity},
};
use crate::status::{FieldErrorKind, Problems};

const SPEC: Path<'_> = Path::At("spec");

/// Compute resources: names that stand alone, and that take a `requests.` or `limits.` prefix.
const USED: [&str; 3] = ["cpu", "memory", "ephemeral-storage"];

/// Objects that are counted under their own name.
const COUNTED: [&str; 10] = [
    "pods",
    "services",
    "replicationcontrollers",
    "resourcequotas",
    "secrets",
    "configmaps",
    "persistentvolumeclaims",
    "services.nodeports",
    "services.loadbalancers",
    "requests.storage",
];

/// Validates the `hard` limits.
pub(super) fn check_hard(spec: &Value, problems: &mut Problems) {
    let path = SPEC.field("hard");
    for (name, amount) in entries(spec, "hard") {
        let path = path.key(name);
        check_name(name, &path, problems);
        check_amount(amount, &path, problems);
        if is_counted(name) && quantity(amount).is_some_and(|amount| !amount.is_whole()) {
            problems.invalid(path, amount.clone(), "must be an integer");
        }
    }
}

fn check_name(name: &str, path: &Path<'_>, problems: &mut Problems) {
    let complaints = names::qualified(name);
    let is_name = complaints.is_empty();
    for complaint in complaints {
        problems.invalid(path, name, complaint);
    }
    if !name.contains('/') && !is_standard(name) {
        if is_name {
            let detail = "must be a standard resource type or fully qualified";
            problems.invalid(path, name, detail);
        }
        problems.invalid(path, name, "must be a standard resource for quota");
    }
}

/// Whether a name without a domain is known.
pub(super) fn is_standard(name: &str) -> bool {
    let bare = name
        .strip_prefix("requests.")
        .or_else(|| name.strip_prefix("limits."));
    let is_used = |name: &str| USED.contains(&name);
    let is_huge = |name: &str| name.starts_with("hugepages-");
    COUNTED.contains(&name)
        || is_used(name)
        || is_huge(name)
        || bare.is_some_and(is_used)
        || name.strip_prefix("requests.").is_some_and(is_huge)
}

/// Whether a resource only has integer amounts.
fn is_counted(name: &str) -> bool {
    match name {
        "requests.storage" => false,
        _ if name.starts_with("requests.") => false,
        _ => name.contains('/') || COUNTED.contains(&name),
    }
}

/// Validates the scopes.
pub(super) fn check_scopes(spec: &Value, problems: &mut Problems) {
    let scopes: Vec<&str> = list(spec, "scopes")
        .iter()
        .filter_map(Value::as_str)
        .collect();
    let path = SPEC.field("scopes");
    if !all_fit(scopes.iter().copied(), spec) {
        let detail = "unsupported scope applied to resource";
        problems.invalid(path, list(spec, "scopes"), detail);
    }
    for _ in scopes.iter().filter(|scope| !is_known(scope)) {
        problems.invalid(path, list(spec, "scopes"), "unsupported scope");
    }
    if contradict(&scopes) {
        problems.invalid(path, spec["scopes"].clone(), "conflicting scopes");
    }
    check_selector(spec, problems);
}

fn check_selector(spec: &Value, problems: &mut Problems) {
    let selector = &spec["scopeSelector"];
    let path = SPEC.field("scopeSelector");
    let path = path.field("matchExpressions");
    let expressions = list(selector, "matchExpressions");
    for expression in expressions {
        check_expression(expression, &path, problems);
    }
    let scopes: Vec<&str> = expressions.iter().map(|e| text(e, "scopeName")).collect();
    let known = scopes.iter().copied().filter(|scope| is_known(scope));
    if !all_fit(known, spec) {
        let detail = "unsupported scope applied to resource";
        let kind = FieldErrorKind::Invalid;
        problems.written(kind, path, &shown(expressions), detail);
    }
    if contradict(&scopes) {
        problems.invalid(path, Value::Null, "conflicting scopes");
    }
}

/// A selector with kube-apiserver's internal field names, as errors show it.
fn shown(expressions: &[Value]) -> String {
    let expression = |e: &Value| {
        let (scope, operator, values) = (&e["scopeName"], &e["operator"], &e["values"]);
        format!(r#"{{"ScopeName":{scope},"Operator":{operator},"Values":{values}}}"#)
    };
    let all: Vec<String> = expressions.iter().map(expression).collect();
    format!(r#"{{"MatchExpressions":[{}]}}"#, all.join(","))
}

fn check_expression(expression: &Value, path: &Path<'_>, problems: &mut Problems) {
    let (scope, operator) = (text(expression, "scopeName"), text(expression, "operator"));
    if !is_known(scope) {
        problems.invalid(path.field("scopeName"), scope, "unsupported scope");
    }
    let by_presence = !matches!(scope, "PriorityClass" | "VolumeAttributesClass");
    if is_known(scope) && by_presence && operator != "Exists" {
        let detail = "must be 'Exists' when scope is any of ResourceQuotaScopeTerminating, \
                      ResourceQuotaScopeNotTerminating, ResourceQuotaScopeBestEffort, \
                      ResourceQuotaScopeNotBestEffort or ResourceQuotaScopeCrossNamespacePodAffinity";
        problems.invalid(path.field("operator"), operator, detail);
    }
    let values = list(expression, "values");
    match operator {
        "In" | "NotIn" if values.is_empty() => problems.required(
            path.field("values"),
            "must be at least one value when `operator` is 'In' or 'NotIn' for scope selector",
        ),
        "Exists" | "DoesNotExist" if !values.is_empty() => problems.invalid(
            path.field("values"),
            values,
            "must be no value when `operator` is 'Exist' or 'DoesNotExist' for scope selector",
        ),
        "In" | "NotIn" | "Exists" | "DoesNotExist" => {}
        _ => problems.invalid(
            path.field("operator"),
            operator,
            "not a valid selector operator",
        ),
    }
}

fn is_known(scope: &str) -> bool {
    matches!(
        scope,
        "Terminating"
            | "NotTerminating"
            | "BestEffort"
            | "NotBestEffort"
            | "PriorityClass"
            | "CrossNamespacePodAffinity"
            | "VolumeAttributesClass"
    )
}

fn contradict(scopes: &[&str]) -> bool {
    let both = |one, other| scopes.contains(&one) && scopes.contains(&other);
    both("BestEffort", "NotBestEffort") || both("Terminating", "NotTerminating")
}

/// Whether all limited resources can be limited under all scopes; each scope is looked at once.
fn all_fit<'a>(scopes: impl Iterator<Item = &'a str>, spec: &Value) -> bool {
    // Unknown scopes fit everything.
    let mut seen = HashSet::new();
    let mut scopes = scopes.filter(|scope| is_known(scope) && seen.insert(*scope));
    scopes.all(|scope| entries(spec, "hard").all(|(name, _)| fits(scope, name)))
}

/// Whether a resource can be limited under a scope. Names with a domain are not checked.
fn fits(scope: &str, name: &str) -> bool {
    if name.contains('/') {
        return true;
    }
    let bare = name
        .strip_prefix("requests.")
        .or_else(|| name.strip_prefix("limits."))
        .unwrap_or(name);
    match scope {
        "BestEffort" => name == "pods",
        "VolumeAttributesClass" => matches!(name, "persistentvolumeclaims" | "requests.storage"),
        _ if is_known(scope) => name == "pods" || matches!(bare, "cpu" | "memory"),
        _ => true,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[expect(
        clippy::needless_pass_by_value,
        reason = "cases read better with the literal in place"
    )]
    fn errors(spec: Value) -> Vec<String> {
        let mut problems = Problems::new();
        check_hard(&spec, &mut problems);
        check_scopes(&spec, &mut problems);
        problems.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn a_scope_fits_what_is_bounded() {
        let unfit = |scope: &str| {
            format!(
                "spec.scopes: Invalid value: [\"{scope}\"]: unsupported scope applied to resource"
            )
        };
        for (scope, name, fits) in [
            ("BestEffort", "pods", true),
            ("BestEffort", "cpu", false),
            ("BestEffort", "services", false),
            ("BestEffort", "count/deployments.apps", true),
            ("NotBestEffort", "limits.memory", true),
            ("NotBestEffort", "ephemeral-storage", false),
            ("PriorityClass", "requests.cpu", true),
            ("PriorityClass", "configmaps", false),
            ("VolumeAttributesClass", "requests.storage", true),
            ("VolumeAttributesClass", "pods", false),
        ] {
            let errors = errors(json!({"hard": {(name): "1"}, "scopes": [scope]}));
            let expected: Vec<String> = (!fits).then(|| unfit(scope)).into_iter().collect();
            assert_eq!(errors, expected, "{scope} {name}");
        }
    }

    #[test]
    fn scopes_are_known_and_do_not_contradict_each_other() {
        let spec = json!({"hard": {"pods": "1"}, "scopes": ["BestEffort", "NotBestEffort", "Foo"]});
        let of = "spec.scopes: Invalid value: [\"BestEffort\",\"NotBestEffort\",\"Foo\"]";
        assert_eq!(
            errors(spec),
            [
                format!("{of}: unsupported scope"),
                format!("{of}: conflicting scopes")
            ]
        );
    }

    #[test]
    fn a_selector_says_how_a_scope_is_met() {
        let expressions = json!([
            {"scopeName": "PriorityClass", "operator": "In"},
            {"scopeName": "Foo", "operator": "Bar"},
            {"scopeName": "PriorityClass", "operator": "Exists", "values": ["x"]},
        ]);
        let spec =
            json!({"hard": {"pods": "1"}, "scopeSelector": {"matchExpressions": expressions}});
        let at = "spec.scopeSelector.matchExpressions";
        assert_eq!(
            errors(spec),
            [
                format!(
                    "{at}.values: Required value: must be at least one value when `operator` is 'In' or 'NotIn' for scope selector"
                ),
                format!("{at}.scopeName: Invalid value: \"Foo\": unsupported scope"),
                format!("{at}.operator: Invalid value: \"Bar\": not a valid selector operator"),
                format!(
                    "{at}.values: Invalid value: [\"x\"]: must be no value when `operator` is 'Exist' or 'DoesNotExist' for scope selector"
                ),
            ]
        );
    }

    #[test]
    fn what_is_bounded_has_a_known_name_and_an_amount() {
        for (name, amount, expected) in [
            ("pods", "1500m", Some("must be an integer")),
            ("pods", "-1", Some("must be greater than or equal to 0")),
            ("limits.nvidia.com/gpu", "1500m", Some("must be an integer")),
            ("requests.nvidia.com/gpu", "1500m", None),
            ("requests.storage", "1500m", None),
            (
                "limits.storage",
                "1",
                Some("must be a standard resource type or fully qualified"),
            ),
        ] {
            let errors = errors(json!({"hard": {(name): amount}}));
            match expected {
                None => assert_eq!(errors, [""; 0], "{name}"),
                Some(text) => assert!(errors[0].contains(text), "{errors:?}"),
            }
        }
    }
}
