//! Values as the reference prints them in its refusals.

use serde_json::Value;

/// In the plain form: `map[image:nginx ports:[80 81]]`.
pub(super) fn plain(value: &Value) -> String {
    match value {
        Value::Null => "<nil>".to_owned(),
        Value::String(text) => text.clone(),
        Value::Array(items) => {
            let items: Vec<String> = items.iter().map(plain).collect();
            format!("[{}]", items.join(" "))
        }
        Value::Object(fields) => {
            let mut fields: Vec<_> = fields.iter().collect();
            fields.sort_by_key(|(key, _)| *key);
            let shown = fields
                .iter()
                .map(|(key, value)| format!("{key}:{}", plain(value)));
            format!("map[{}]", shown.collect::<Vec<_>>().join(" "))
        }
        other => other.to_string(),
    }
}

/// In the syntax of its language: `map[string]interface {}{"image":"nginx"}`.
pub(super) fn syntax(value: &Value) -> String {
    match value {
        Value::Null => "interface {}(nil)".to_owned(),
        Value::Array(items) => {
            let items: Vec<String> = items.iter().map(syntax).collect();
            format!("[]interface {{}}{{{}}}", items.join(", "))
        }
        Value::Object(fields) => {
            let fields = fields
                .iter()
                .map(|(key, value)| format!("{key:?}:{}", syntax(value)));
            let fields: Vec<_> = fields.collect();
            format!("map[string]interface {{}}{{{}}}", fields.join(", "))
        }
        other => other.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn values_are_shown_in_two_forms() {
        let value = json!({"b": [1, null], "a": "x"});
        assert_eq!(plain(&value), "map[a:x b:[1 <nil>]]");
        assert_eq!(
            syntax(&json!({"a": ["x"]})),
            "map[string]interface {}{\"a\":[]interface {}{\"x\"}}"
        );
    }
}
