//! Values as Go prints them, for errors of kube-apiserver that contain them.

use serde_json::Value;

/// A value in plain form, and its type: `[a b]` and `[]interface {}`.
pub(crate) fn shown(value: &Value) -> (String, &'static str) {
    (plain(value), type_of(value))
}

/// The Go type of a value without a schema.
pub(crate) fn type_of(value: &Value) -> &'static str {
    match value {
        Value::Null => "<nil>",
        Value::Bool(_) => "bool",
        Value::Number(number) if number.is_f64() => "float64",
        Value::Number(_) => "int64",
        Value::String(_) => "string",
        Value::Array(_) => "[]interface {}",
        Value::Object(_) => "map[string]interface {}",
    }
}

/// The JSON type of a value in a decoder's messages.
pub(crate) fn json_type(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "bool",
        Value::Number(_) => "number",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}

/// In plain form: `map[image:nginx ports:[80 81]]`.
pub(crate) fn plain(value: &Value) -> String {
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

/// In Go syntax: `map[string]interface {}{"image":"nginx"}`.
pub(crate) fn syntax(value: &Value) -> String {
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
    fn values_are_shown_with_their_types() {
        for (value, text, ty) in [
            (json!(null), "<nil>", "<nil>"),
            (json!(1.5), "1.5", "float64"),
            (json!(["a", 2]), "[a 2]", "[]interface {}"),
            (
                json!({"b": 1, "a": []}),
                "map[a:[] b:1]",
                "map[string]interface {}",
            ),
        ] {
            assert_eq!(shown(&value), (text.to_owned(), ty));
        }
    }

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
