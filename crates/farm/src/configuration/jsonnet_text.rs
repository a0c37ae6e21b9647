//! JSON values as Jsonnet, in which strings may be expressions.

use serde_json::Value;

/// Marks a string as an expression. A text of a user that begins with it passes through [`literal`], or is
/// refused by the schema of its field.
const MARK: char = '\u{1}';

/// An expression in place of a string.
pub(super) fn code(expression: &str) -> Value {
    Value::from(format!("{MARK}{expression}"))
}

/// A string of a user, which is never an expression.
pub(super) fn literal(text: &str) -> Value {
    Value::from(text.trim_start_matches(MARK))
}

/// The value as Jsonnet.
pub(super) fn jsonnet(value: &Value) -> String {
    let mut text = String::new();
    write(value, 0, &mut text);
    text
}

fn write(value: &Value, depth: usize, text: &mut String) {
    let (open, close, entries): (_, _, Vec<(Option<&String>, &Value)>) = match value {
        Value::String(string) => {
            match string.strip_prefix(MARK) {
                Some(expression) => text.push_str(expression),
                None => text.push_str(&value.to_string()),
            }
            return;
        }
        Value::Object(fields) if !fields.is_empty() => {
            let fields = fields.iter().map(|(name, value)| (Some(name), value));
            ('{', '}', fields.collect())
        }
        Value::Array(items) if !items.is_empty() => {
            ('[', ']', items.iter().map(|item| (None, item)).collect())
        }
        other => return text.push_str(&other.to_string()),
    };
    text.push(open);
    text.push('\n');
    for (name, value) in entries {
        indent(depth + 1, text);
        if let Some(name) = name {
            if is_identifier(name) {
                text.push_str(name);
            } else {
                text.push_str(&Value::from(name.as_str()).to_string());
            }
            text.push_str(": ");
        }
        write(value, depth + 1, text);
        text.push_str(",\n");
    }
    indent(depth, text);
    text.push(close);
}

fn indent(depth: usize, text: &mut String) {
    text.push_str(&"  ".repeat(depth));
}

/// Whether a field needs no quotes. Keywords of Jsonnet that are no field of ours are not excluded.
fn is_identifier(name: &str) -> bool {
    let keyword = [
        "error", "local", "self", "super", "import", "null", "true", "false", "if", "in",
    ];
    let mut letters = name.chars();
    letters.next().is_some_and(|it| it.is_ascii_alphabetic())
        && letters.all(|it| it.is_ascii_alphanumeric())
        && !keyword.contains(&name)
}

/// The value with what the expressions stand for: fields of `common`, or any text.
pub(super) fn resolve(value: &Value, common: &Value) -> Value {
    match value {
        Value::String(text) => match text.strip_prefix(MARK) {
            None => value.clone(),
            Some(expression) => match expression.strip_prefix("common.") {
                None => Value::from(expression),
                Some(path) => {
                    let mut fields = path.split('.');
                    let found = fields.try_fold(common, |it, field| it.get(field));
                    resolve(found.unwrap_or(&Value::Null), common)
                }
            },
        },
        Value::Array(items) => items.iter().map(|it| resolve(it, common)).collect(),
        Value::Object(fields) => {
            let fields = fields.iter();
            let fields = fields.map(|(name, it)| (name.clone(), resolve(it, common)));
            Value::Object(fields.collect())
        }
        other => other.clone(),
    }
}
