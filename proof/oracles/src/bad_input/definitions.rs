//! Custom resource definitions with rules that do not compile, or that cost too much.

use http::Method;
use serde_json::{Value, json};

use super::{Attempt, JSON, nested};

const DEFINITIONS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";

/// Rules that are refused with their definition.
pub fn broken_rules() -> Vec<Attempt> {
    let schema = json!({"type": "object", "properties": {"n": {"type": "integer"}}});
    let chain = format!("self.spec.n == {}", vec!["1"; 5000].join(" + "));
    let parentheses = nested("(", ")", 5000) + " == 1";
    let rules = [
        "self.spec.n ==",
        "self.spec.missing == 1",
        "self.spec.n",
        "self.spec.n == 'text'",
        "unknown(self)",
        "'a'.matches('(((((')",
        "",
        &chain,
        &parentheses,
    ];
    let attempts = rules
        .into_iter()
        .map(|rule| define("broken", rule, &schema, &[422]));
    attempts.collect()
}

/// A rule that would run for years: refused with its definition, or at the latest when an object
/// uses it, which is then not created.
pub fn expensive_rule() -> Vec<Attempt> {
    let strings = json!({"type": "string", "maxLength": 10});
    let list = json!({"type": "array", "maxItems": 1000, "items": strings});
    let schema = json!({"type": "object", "properties": {"a": list}});
    let rule = "self.spec.a.all(x, self.spec.a.all(y, self.spec.a.all(z, x + y + z != '')))";
    let thing = json!({
        "apiVersion": "hostile.dev/v1", "kind": "Expensive", "metadata": {"name": "t"},
        "spec": {"a": vec!["x"; 1000]},
    });
    let things = "/apis/hostile.dev/v1/namespaces/default/expensives";
    let mut used = Attempt::new(Method::POST, things, &[404, 422]).with(JSON, thing.to_string());
    used.words = &["cost", "budget"];
    vec![define("expensive", rule, &schema, &[201, 422]), used]
}

fn define(name: &str, rule: &str, schema: &Value, codes: &'static [u16]) -> Attempt {
    let mut root = json!({"type": "object", "properties": {"spec": schema}});
    root["x-kubernetes-validations"] = json!([{"rule": rule}]);
    let kind = name[..1].to_uppercase() + &name[1..];
    let version = json!({
        "name": "v1", "served": true, "storage": true,
        "schema": {"openAPIV3Schema": root},
    });
    let definition = json!({
        "metadata": {"name": format!("{name}s.hostile.dev")},
        "spec": {
            "group": "hostile.dev", "scope": "Namespaced",
            "names": {"plural": format!("{name}s"), "kind": kind},
            "versions": [version],
        },
    });
    Attempt::new(Method::POST, DEFINITIONS, codes).with(JSON, definition.to_string())
}
