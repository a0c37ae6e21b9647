//! Normalizes the names of the fields in a trigger's metadata.

use serde_json::{Map, Value};

/// The fields that are used.
const FIELDS: [&str; 5] = [
    "query",
    "serverAddress",
    "threshold",
    "uptimeFilter",
    "headers",
];

/// Normalizes metadata as KubeElasti does: null counts as absent, and names are compared without regard
/// to case. An exact name takes precedence.
pub(super) fn normalize(metadata: &Value) -> Value {
    let fields = match metadata {
        Value::Object(fields) => fields,
        Value::Null => return Value::Object(Map::new()),
        other => return other.clone(),
    };
    let given = || fields.iter().filter(|(_, value)| !value.is_null());
    let fields = FIELDS.iter().filter_map(|field| {
        let exact = given().find(|(name, _)| name == field);
        let (_, value) = exact.or_else(|| given().find(|(name, _)| is_same(name, field)))?;
        Some(((*field).to_owned(), value.clone()))
    });
    Value::Object(fields.collect())
}

fn is_same(name: &str, field: &str) -> bool {
    name.eq_ignore_ascii_case(field)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn names_match_in_any_case_and_null_is_absent() {
        for (given, read) in [
            (json!(null), json!({})),
            (json!({}), json!({})),
            (json!({"query": "up", "more": 1}), json!({"query": "up"})),
            (
                json!({"Query": "up", "SERVERADDRESS": "http://a", "uptimefilter": "x"}),
                json!({"query": "up", "serverAddress": "http://a", "uptimeFilter": "x"}),
            ),
            (
                json!({"QUERY": "b", "query": "a", "qUERY": "c"}),
                json!({"query": "a"}),
            ),
            (json!({"QUERY": "b", "query": null}), json!({"query": "b"})),
            (
                json!({
                    "query": null, "headers": null, "uptimeFilter": null, "threshold": null,
                    "serverAddress": null,
                }),
                json!({}),
            ),
            (json!("hush"), json!("hush")),
        ] {
            assert_eq!(normalize(&given), read, "{given}");
        }
    }
}
