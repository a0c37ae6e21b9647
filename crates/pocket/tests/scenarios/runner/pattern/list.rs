//! List patterns.

use serde_json::Value;

use super::{Match, matches};
use crate::runner::variables::Variables;

/// Stands for any number of items.
const REST: &str = "...";

impl Match {
    pub(super) fn list(&mut self, path: &str, items: &[Value], value: &Value) {
        let Value::Array(found) = value else {
            return self.differs(path, &"a list", value);
        };
        if items.iter().any(|item| item == REST) {
            match glob(items, found, &self.variables) {
                Some(variables) => self.variables = variables,
                None => self.differs(path, &Value::from(items), value),
            }
            return;
        }
        if items.len() != found.len() {
            let length = format!("{} items", items.len());
            self.differs(&format!("{path}[]"), &length, value);
        }
        for (index, (pattern, value)) in items.iter().zip(found).enumerate() {
            self.value(&format!("{path}[{index}]"), pattern, value);
        }
    }
}

/// Matches items in order; each `...` takes as many as necessary.
fn glob(items: &[Value], found: &[Value], variables: &Variables) -> Option<Variables> {
    let Some((first, rest)) = items.split_first() else {
        return found.is_empty().then(|| variables.clone());
    };
    if first == REST {
        return (0..=found.len()).find_map(|skip| glob(rest, &found[skip..], variables));
    }
    let (value, others) = found.split_first()?;
    glob(rest, others, &matches(first, value, variables)?)
}
