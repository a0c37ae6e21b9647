//! Label selectors: requirements on labels, and matching.

mod parse;

use std::fmt;

use serde_json::{Map, Value};

use super::names::{key_problem, value_problem};
use crate::status::{ApiError, Problems, Result};

#[cfg(test)]
mod tests;

/// The operator of a requirement.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Operator {
    /// The label is present and has one of the values; `=` and `==` are this with one value.
    In,
    /// The label is absent or has none of the values; `!=` is this with one value.
    NotIn,
    /// The label is present.
    Exists,
    /// The label is absent.
    DoesNotExist,
    /// The label is an integer above the value.
    GreaterThan,
    /// The label is an integer below the value.
    LessThan,
}

/// One condition on one label.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Requirement {
    key: Box<str>,
    operator: Operator,
    /// Sorted and without repetition, so that a match is a binary search.
    values: Vec<Box<str>>,
    /// The value of `>` and `<`, parsed once.
    bound: i64,
}

/// A conjunction of requirements on labels.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct LabelSelector {
    requirements: Vec<Requirement>,
    nothing: bool,
}

impl Requirement {
    /// A requirement with a valid key and valid values.
    pub fn new(key: &str, operator: Operator, values: &[&str]) -> Result<Self> {
        Self::checked(key, operator, values).map_err(|problems| {
            ApiError::bad_request(format!("unable to parse requirement: {problems}"))
        })
    }

    pub(super) fn checked(
        key: &str,
        operator: Operator,
        values: &[&str],
    ) -> Result<Self, Problems> {
        let mut problems = Problems::new();
        if let Some(why) = key_problem(key) {
            // kube-apiserver reports no path for the key.
            problems.invalid("<nil>", key, why);
        }
        if let Some(why) = wrong_count(operator, values.len()) {
            let shown = values.iter().map(|v| Value::from(*v)).collect::<Value>();
            problems.invalid("values", shown, why);
        }
        // Sorted first: an invalid value is reported by its position among all of them.
        let mut sorted = values.to_vec();
        sorted.sort_unstable();
        sorted.dedup();
        for (i, value) in sorted.iter().enumerate() {
            if let Some(why) = value_problem(value) {
                problems.invalid(format!("values[{i}][{key}]"), *value, why);
            }
        }
        let mut bound = 0;
        if let (Operator::GreaterThan | Operator::LessThan, [value]) = (operator, values) {
            match value.parse() {
                Ok(number) => bound = number,
                Err(_) => problems.invalid(
                    "values[0]",
                    *value,
                    "for 'Gt', 'Lt' operators, the value must be an integer",
                ),
            }
        }
        if !problems.is_empty() {
            return Err(problems);
        }
        Ok(Self {
            key: key.into(),
            operator,
            values: sorted.into_iter().map(Box::from).collect(),
            bound,
        })
    }

    /// The label's key.
    pub fn key(&self) -> &str {
        &self.key
    }

    pub fn operator(&self) -> Operator {
        self.operator
    }

    /// The values, sorted.
    pub fn values(&self) -> impl Iterator<Item = &str> {
        self.values.iter().map(AsRef::as_ref)
    }

    /// Whether these labels meet the requirement.
    pub fn matches(&self, labels: &Map<String, Value>) -> bool {
        let value = labels.get(&*self.key).and_then(Value::as_str);
        match (self.operator, value) {
            (Operator::In, Some(value)) => self.has(value),
            (Operator::NotIn, Some(value)) => !self.has(value),
            (Operator::NotIn | Operator::DoesNotExist, None) | (Operator::Exists, Some(_)) => true,
            (Operator::GreaterThan, Some(value)) => integer(value).is_some_and(|n| n > self.bound),
            (Operator::LessThan, Some(value)) => integer(value).is_some_and(|n| n < self.bound),
            (Operator::DoesNotExist, Some(_)) | (_, None) => false,
        }
    }

    fn has(&self, value: &str) -> bool {
        self.values
            .binary_search_by(|known| (**known).cmp(value))
            .is_ok()
    }
}

fn integer(text: &str) -> Option<i64> {
    text.parse().ok()
}

fn wrong_count(operator: Operator, count: usize) -> Option<&'static str> {
    match operator {
        Operator::In | Operator::NotIn if count == 0 => {
            Some("for 'in', 'notin' operators, values set can't be empty")
        }
        Operator::Exists | Operator::DoesNotExist if count != 0 => {
            Some("values set must be empty for exists and does not exist")
        }
        Operator::GreaterThan | Operator::LessThan if count != 1 => {
            Some("for 'Gt', 'Lt' operators, exactly one value is required")
        }
        _ => None,
    }
}

impl LabelSelector {
    /// Selects every object.
    pub fn everything() -> Self {
        Self::default()
    }

    /// Selects no object.
    pub fn nothing() -> Self {
        Self {
            requirements: Vec::new(),
            nothing: true,
        }
    }

    /// The conjunction of these.
    pub fn all_of(requirements: Vec<Requirement>) -> Self {
        Self {
            requirements,
            nothing: false,
        }
    }

    /// The requirements, in the order they were written.
    pub fn requirements(&self) -> &[Requirement] {
        &self.requirements
    }

    /// Whether every object is selected, so that no labels need to be read.
    pub fn is_everything(&self) -> bool {
        !self.nothing && self.requirements.is_empty()
    }

    /// Whether these labels are selected.
    pub fn matches(&self, labels: &Map<String, Value>) -> bool {
        !self.nothing && self.requirements.iter().all(|r| r.matches(labels))
    }

    /// Whether the labels of this object are selected.
    pub fn matches_object(&self, object: &Value) -> bool {
        match object.get("metadata").and_then(|m| m.get("labels")) {
            Some(Value::Object(labels)) => self.matches(labels),
            _ => self.matches(&Map::new()),
        }
    }
}

/// The text that parses to an equal selector. A selector of nothing has no text of its own and is
/// written as a contradiction.
impl fmt::Display for LabelSelector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.nothing {
            return f.write_str("nothing,!nothing");
        }
        for (i, requirement) in self.requirements.iter().enumerate() {
            if i > 0 {
                f.write_str(",")?;
            }
            requirement.fmt(f)?;
        }
        Ok(())
    }
}

impl fmt::Display for Requirement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let key = &self.key;
        let joined = self.values.join(",");
        match (self.operator, self.values.len()) {
            (Operator::Exists, _) => f.write_str(key),
            (Operator::DoesNotExist, _) => write!(f, "!{key}"),
            (Operator::In, 1) => write!(f, "{key}={joined}"),
            (Operator::NotIn, 1) => write!(f, "{key}!={joined}"),
            (Operator::In, _) => write!(f, "{key} in ({joined})"),
            (Operator::NotIn, _) => write!(f, "{key} notin ({joined})"),
            (Operator::GreaterThan, _) => write!(f, "{key}>{joined}"),
            (Operator::LessThan, _) => write!(f, "{key}<{joined}"),
        }
    }
}
