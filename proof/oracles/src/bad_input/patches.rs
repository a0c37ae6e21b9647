//! Patches that are invalid, or that would do harm.

use http::Method;
use serde_json::{Value, json};

use super::{Attempt, MAP, MERGE, nested};

const JSON_PATCH: &str = "application/json-patch+json";
const STRATEGIC: &str = "application/strategic-merge-patch+json";
const APPLY: &str = "application/apply-patch+yaml";

/// Patches that do not parse, do not apply, or have no end.
pub fn hostile() -> Vec<Attempt> {
    let test = json!({"op": "test", "path": "/data/a", "value": "1"});
    let many = Value::Array(vec![test; 10_001]).to_string();
    let deep = nested("{\"data\":", "}", 50_000);
    let lists = nested("[", "]", 50_000);
    let doubling = json!({"op": "copy", "from": "/data", "path": "/data/again"});
    let doubling = Value::Array(vec![doubling; 64]).to_string();
    let directives = json!({"data": {"$patch": "explode"}}).to_string();
    let absent = json!([{"op": "remove", "path": "/data/none"}]).to_string();
    let number = json!([{"op": "replace", "path": "", "value": 1}]).to_string();
    let patches: [(&str, &str); 13] = [
        (MERGE, &deep),
        (STRATEGIC, &deep),
        (JSON_PATCH, &lists),
        (APPLY, &lists),
        (MERGE, "[1]"),
        (MERGE, "\"x\""),
        (STRATEGIC, "[]"),
        (JSON_PATCH, "{}"),
        (JSON_PATCH, "[{\"op\":\"fly\"}]"),
        (JSON_PATCH, &absent),
        (JSON_PATCH, &number),
        (JSON_PATCH, &doubling),
        (APPLY, "a: ["),
    ];
    // A real server has no better code for an unknown directive.
    let unknown = patch(STRATEGIC, &directives, &[500]);
    let mut attempts = vec![patch(JSON_PATCH, &many, &[413]), unknown];
    for (content_type, body) in patches {
        attempts.push(patch(content_type, body, &[400, 413, 422]));
    }
    attempts
}

/// A patch that keeps copying what it has added.
pub fn growing() -> Vec<Attempt> {
    let large = json!({"op": "add", "path": "/data/big", "value": "x".repeat(1 << 20)});
    let copies = (0..4000).map(
        |copy| json!({"op": "copy", "from": "/data/big", "path": format!("/data/copy{copy}")}),
    );
    let operations: Vec<Value> = std::iter::once(large).chain(copies).collect();
    let body = Value::Array(operations).to_string();
    vec![patch(JSON_PATCH, &body, &[413, 422])]
}

fn patch(content_type: &'static str, body: &str, codes: &'static [u16]) -> Attempt {
    let path = match content_type {
        APPLY => format!("{MAP}?fieldManager=m"),
        _ => MAP.to_owned(),
    };
    Attempt::new(Method::PATCH, path, codes).with(content_type, body)
}
