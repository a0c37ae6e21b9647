//! Patterns: what a response must contain.
//!
//! An object pattern matches a subset, a list pattern the whole list unless it holds `...`; strings
//! may be variables, comparisons or one of the `~` words.

mod list;
mod text;

use serde_json::{Map, Value};

use super::variables::Variables;

/// The key or value that must not be there.
const ABSENT: &str = "~absent";

/// A comparison of a pattern with a value.
#[derive(Debug)]
pub(crate) struct Match {
    pub(crate) variables: Variables,
    pub(crate) differences: Vec<String>,
}

/// The variables after a match, if it is one.
pub(crate) fn matches(pattern: &Value, value: &Value, variables: &Variables) -> Option<Variables> {
    let mut matching = Match::new(variables.clone());
    matching.value("", pattern, value);
    matching
        .differences
        .is_empty()
        .then_some(matching.variables)
}

impl Match {
    pub(crate) fn new(variables: Variables) -> Self {
        Self {
            variables,
            differences: Vec::new(),
        }
    }

    /// Compares `pattern` with `value`, which is at `path`.
    pub(crate) fn value(&mut self, path: &str, pattern: &Value, value: &Value) {
        match pattern {
            Value::Object(fields) => self.object(path, fields, value),
            Value::Array(items) => self.list(path, items, value),
            Value::String(text) => self.text(path, text, value),
            _ if pattern == value => {}
            _ => self.differs(path, pattern, value),
        }
    }

    fn object(&mut self, path: &str, fields: &Map<String, Value>, value: &Value) {
        let Value::Object(found) = value else {
            return self.differs(path, &"an object", value);
        };
        if fields.is_empty() && !found.is_empty() {
            return self.differs(path, &"an empty object", value);
        }
        for (name, pattern) in fields {
            let Some(name) = self.filled(path, name) else {
                return;
            };
            let inner = format!("{path}.{name}");
            match found.get(&name) {
                _ if name == "~only" => {}
                None if pattern == ABSENT => {}
                None => self.differs(&inner, pattern, &"nothing"),
                Some(value) => self.value(&inner, pattern, value),
            }
        }
        if fields.contains_key("~only") {
            self.nothing_else(path, fields, found);
        }
    }

    fn nothing_else(
        &mut self,
        path: &str,
        fields: &Map<String, Value>,
        found: &Map<String, Value>,
    ) {
        for (name, value) in found {
            if !fields.contains_key(name) {
                self.differs(&format!("{path}.{name}"), &"nothing", value);
            }
        }
    }

    fn filled(&mut self, path: &str, text: &str) -> Option<String> {
        match self.variables.fill(text) {
            Ok(filled) => Some(filled),
            Err(failure) => {
                self.differences.push(format!("{path}: {failure}"));
                None
            }
        }
    }

    fn differs(
        &mut self,
        path: &str,
        expected: &dyn std::fmt::Display,
        found: &dyn std::fmt::Display,
    ) {
        let path = if path.is_empty() { "." } else { path };
        let mut found = found.to_string();
        if let Some((cut, _)) = found.char_indices().nth(400) {
            found.truncate(cut);
            found.push('…');
        }
        self.differences
            .push(format!("{path}: expected {expected}, got {found}"));
    }
}
