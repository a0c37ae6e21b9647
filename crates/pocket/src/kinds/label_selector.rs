//! Label selectors inside objects: `matchLabels` and `matchExpressions`.
//!
//! The query-string form belongs to the REST machine; this module only writes it, for `scale`.

use serde_json::Value;

use super::{
    field_rules::obeys,
    fields::{entries, list, text},
    names::{label_value, qualified},
    path::Path,
};
use crate::status::Problems;

const NEEDS_VALUES: &str = "must be specified when `operator` is 'In' or 'NotIn'";
const TAKES_NO_VALUES: &str = "may not be specified when `operator` is 'Exists' or 'DoesNotExist'";

/// Whether the selector has no requirements, and so selects everything.
pub fn is_empty(selector: &Value) -> bool {
    entries(selector, "matchLabels").next().is_none()
        && list(selector, "matchExpressions").is_empty()
}

/// Whether an object with these labels is selected. An absent selector selects nothing.
pub fn matches(selector: &Value, labels: &Value) -> bool {
    if selector.is_null() {
        return false;
    }
    entries(selector, "matchLabels").all(|(key, value)| labels[key] == *value)
        && list(selector, "matchExpressions")
            .iter()
            .all(|expression| expression_matches(expression, labels))
}

fn expression_matches(expression: &Value, labels: &Value) -> bool {
    let value = &labels[text(expression, "key")];
    let listed = || list(expression, "values").contains(value);
    match text(expression, "operator") {
        "In" => listed(),
        "NotIn" => !listed(),
        "Exists" => !value.is_null(),
        "DoesNotExist" => value.is_null(),
        _ => false,
    }
}

/// Whether the selector can be evaluated.
pub(super) fn is_valid(selector: &Value) -> bool {
    let mut problems = Problems::new();
    validate(selector, &Path::Root, &mut problems);
    let keyed = list(selector, "matchExpressions").iter().all(|expression| {
        qualified(text(expression, "key")).is_empty() && !text(expression, "operator").is_empty()
    });
    problems.is_empty() && keyed
}

/// Validates the selector at `path`.
pub fn validate_label_selector(selector: &Value, path: &str, problems: &mut Problems) {
    validate(selector, &Path::At(path), problems);
}

/// As [`validate_label_selector`], with a path that is not written out yet.
pub(super) fn validate(selector: &Value, path: &Path<'_>, problems: &mut Problems) {
    let labels = path.field("matchLabels");
    for (key, value) in entries(selector, "matchLabels") {
        obeys(qualified, key, &labels, problems);
        obeys(
            label_value,
            value.as_str().unwrap_or_default(),
            &labels,
            problems,
        );
    }
    let expressions = path.field("matchExpressions");
    for (i, expression) in list(selector, "matchExpressions").iter().enumerate() {
        validate_expression(expression, &expressions.index(i), problems);
    }
}

fn validate_expression(expression: &Value, path: &Path<'_>, problems: &mut Problems) {
    let values = list(expression, "values");
    match text(expression, "operator") {
        "In" | "NotIn" => {
            if values.is_empty() {
                problems.required(path.field("values"), NEEDS_VALUES);
            }
        }
        "Exists" | "DoesNotExist" => {
            if !values.is_empty() {
                problems.forbidden(path.field("values"), TAKES_NO_VALUES);
            }
        }
        other => problems.invalid(
            path.field("operator"),
            other,
            "not a valid selector operator",
        ),
    }
    let key = text(expression, "key");
    obeys(qualified, key, &path.field("key"), problems);
    let values_path = path.field("values");
    for (i, value) in values.iter().enumerate() {
        let value = value.as_str().unwrap_or_default();
        obeys(label_value, value, &values_path.index(i), problems);
    }
}

/// The selector as a query string writes it, `a=b,c in (x,y),!d`, ordered by key.
pub fn written(selector: &Value) -> String {
    let mut parts: Vec<(&str, String)> = Vec::new();
    for (key, value) in entries(selector, "matchLabels") {
        let value = value.as_str().unwrap_or_default();
        parts.push((key, format!("{key}={value}")));
    }
    for expression in list(selector, "matchExpressions") {
        let key = text(expression, "key");
        parts.push((key, written_expression(expression, key)));
    }
    parts.sort_by_key(|(key, _)| *key);
    let parts: Vec<String> = parts.into_iter().map(|(_, part)| part).collect();
    parts.join(",")
}

fn written_expression(expression: &Value, key: &str) -> String {
    let mut values: Vec<&str> = list(expression, "values")
        .iter()
        .filter_map(Value::as_str)
        .collect();
    values.sort_unstable();
    let values = values.join(",");
    match text(expression, "operator") {
        "In" => format!("{key} in ({values})"),
        "NotIn" => format!("{key} notin ({values})"),
        "DoesNotExist" => format!("!{key}"),
        _ => key.into(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn selectors_match_as_the_api_says() {
        let labels = json!({"a": "b", "tier": "front"});
        for (selector, expected) in [
            (json!(null), false),
            (json!({}), true),
            (json!({"matchLabels": {"a": "b"}}), true),
            (json!({"matchLabels": {"a": "c"}}), false),
            (json!({"matchLabels": {"x": "b"}}), false),
            (one("tier", "In", &json!(["front", "back"])), true),
            (one("tier", "In", &json!(["back"])), false),
            (one("none", "In", &json!(["back"])), false),
            (one("tier", "NotIn", &json!(["back"])), true),
            (one("none", "NotIn", &json!(["back"])), true),
            (one("tier", "NotIn", &json!(["front"])), false),
            (one("tier", "Exists", &json!(null)), true),
            (one("none", "Exists", &json!(null)), false),
            (one("none", "DoesNotExist", &json!(null)), true),
            (one("tier", "DoesNotExist", &json!(null)), false),
        ] {
            assert_eq!(matches(&selector, &labels), expected, "{selector}");
        }
    }

    fn one(key: &str, operator: &str, values: &Value) -> Value {
        json!({"matchExpressions": [{"key": key, "operator": operator, "values": values}]})
    }

    #[test]
    fn every_selector_matches_the_labels_it_names() {
        let labels = json!({"a": "1", "b": "2"});
        assert!(matches(&json!({"matchLabels": labels}), &labels));
    }

    #[test]
    fn malformed_selectors_are_refused() {
        for (selector, path, detail) in [
            (json!({"matchLabels": {"a b": "c"}}), "s.matchLabels", ""),
            (json!({"matchLabels": {"a": "c d"}}), "s.matchLabels", ""),
            (
                one("a", "In", &json!([])),
                "s.matchExpressions[0].values",
                NEEDS_VALUES,
            ),
            (
                one("a", "Exists", &json!(["x"])),
                "s.matchExpressions[0].values",
                TAKES_NO_VALUES,
            ),
            (
                one("a", "Near", &json!(null)),
                "s.matchExpressions[0].operator",
                "not a valid selector operator",
            ),
            (
                one("-a", "Exists", &json!(null)),
                "s.matchExpressions[0].key",
                "",
            ),
            (
                one("a", "In", &json!(["-"])),
                "s.matchExpressions[0].values[0]",
                "",
            ),
        ] {
            let mut problems = Problems::new();
            validate_label_selector(&selector, "s", &mut problems);
            let found = problems
                .iter()
                .next()
                .unwrap_or_else(|| panic!("{selector} passed"));
            assert_eq!(found.path, path);
            assert!(found.detail.contains(detail), "{found}");
        }
    }

    #[test]
    fn selectors_are_written_ordered_by_key() {
        let selector = json!({
            "matchLabels": {"m": "n"},
            "matchExpressions": [
                {"key": "z", "operator": "In", "values": ["y", "x"]},
                {"key": "b", "operator": "DoesNotExist"},
                {"key": "c", "operator": "Exists"},
                {"key": "d", "operator": "NotIn", "values": ["e"]},
            ],
        });
        assert_eq!(written(&selector), "!b,c,d notin (e),m=n,z in (x,y)");
        assert_eq!(written(&json!(null)), "");
    }
}
