mod hostile;
mod language;
mod rules;

use serde_json::json;

use super::*;
use crate::crd::compile::{Compiled, compile};

/// A schema with something of every kind under `spec`.
fn wide() -> Value {
    json!({"type": "object", "properties": {"spec": {"type": "object", "properties": {
        "name": {"type": "string"},
        "other": {"type": "string"},
        "size": {"type": "integer"},
        "ratio": {"type": "number"},
        "on": {"type": "boolean"},
        "when": {"type": "string", "format": "date-time"},
        "wait": {"type": "string", "format": "duration"},
        "raw": {"type": "string", "format": "byte"},
        "port": {"x-kubernetes-int-or-string": true},
        "names": {"type": "array", "items": {"type": "string"}},
        "sizes": {"type": "array", "items": {"type": "integer"}},
        "labels": {"type": "object", "additionalProperties": {"type": "string"}},
        "inner": {"type": "object", "properties": {"deep": {"type": "object", "properties": {"x": {"type": "integer"}}}}},
        "list": {"type": "array", "items": {"type": "object", "properties": {
            "key": {"type": "string"}, "n": {"type": "integer"}}}},
        "keyed": {"type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["key"],
            "items": {"type": "object", "properties": {"key": {"type": "string"}, "n": {"type": "integer"}}}},
        "free": {"x-kubernetes-preserve-unknown-fields": true},
        "has-dash": {"type": "string"},
        "namespace": {"type": "string"},
        "maybe": {"type": "string", "nullable": true},
        "template": {"type": "object", "x-kubernetes-embedded-resource": true, "x-kubernetes-preserve-unknown-fields": true},
    }}}})
}

/// The wide schema with `rules` on `spec`.
fn with_rules(rules: &Value) -> Value {
    let mut schema = wide();
    schema["properties"]["spec"]["x-kubernetes-validations"] = rules.clone();
    schema
}

fn compiled(schema: &Value) -> (Compiled, CompiledRules, Vec<String>) {
    let compiled = compile(schema, false);
    let mut problems = Problems::new();
    let rules = CompiledRules::compile(compiled.root(), "", &mut problems);
    let problems = problems.iter().map(ToString::to_string).collect();
    (compiled, rules, problems)
}

/// What creating a definition with this rule complains of, without the path.
fn refusal(rule: &str) -> Option<String> {
    let (.., problems) = compiled(&with_rules(&json!([{"rule": rule}])));
    assert!(problems.len() <= 1, "{problems:?}");
    let problem = problems.into_iter().next()?;
    let (_, detail) = problem.split_once("Invalid value: ")?;
    Some(detail.to_owned())
}

fn outcome(schema: &Value, new: &Value, old: Option<&Value>) -> Vec<String> {
    let (compiled, rules, problems) = compiled(schema);
    assert_eq!(problems, Vec::<String>::new());
    let mut problems = Problems::new();
    rules.check(compiled.root(), new, old, &mut problems);
    problems.iter().map(ToString::to_string).collect()
}
