//! The part of JSONPath that definitions use: printer columns, selectable fields, scale paths.
//!
//! `.spec.x`, `.metadata.labels['a.b']`, `.metadata.annotations.example\.com/x`,
//! `.status.conditions[?(@.type=="Ready")].status`, `[0]`, `[-1]`, `[*]`. A path that leads
//! nowhere finds nothing; that is not an error.

mod read;
#[cfg(test)]
mod tests;

use std::{cmp::Ordering, fmt};

use serde_json::Value;

/// A parsed path.
#[derive(Debug, Clone, PartialEq)]
pub struct JsonPath {
    source: Box<str>,
    steps: Vec<PathStep>,
}

#[derive(Debug, Clone, PartialEq)]
enum PathStep {
    /// `.name` or `['name']`.
    Field(Box<str>),
    /// `[0]`; counted from the end when negative.
    Index(i64),
    /// `[*]` or `.*`.
    Each,
    /// `[?(@.type=="Ready")]`.
    Filter(FilterExpression),
}

#[derive(Debug, Clone, PartialEq)]
struct FilterExpression {
    left: Vec<PathStep>,
    /// Absent for `[?(@.x)]`, which asks whether there is an `x`.
    test: Option<(FilterOperator, Operand)>,
}

#[derive(Debug, Clone, PartialEq)]
enum Operand {
    Literal(Value),
    Path(Vec<PathStep>),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum FilterOperator {
    Equal,
    NotEqual,
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
}

impl JsonPath {
    /// Parses a path; a surrounding `{…}` is allowed, as kubectl writes it.
    pub fn parse(source: &str) -> Result<Self, String> {
        let inner = source.strip_prefix('{').and_then(|s| s.strip_suffix('}'));
        Ok(Self {
            source: source.into(),
            steps: read::steps(inner.unwrap_or(source))?,
        })
    }

    /// The values the path leads to, in the order of the object.
    pub fn find<'a>(&self, value: &'a Value) -> Vec<&'a Value> {
        follow(&self.steps, value)
    }

    /// The field names of a path made of fields alone, such as `.spec.replicas`.
    pub fn fields(&self) -> Option<Vec<&str>> {
        self.steps
            .iter()
            .map(|step| match step {
                PathStep::Field(name) => Some(&**name),
                _ => None,
            })
            .collect()
    }

    /// As it was written.
    pub fn source(&self) -> &str {
        &self.source
    }
}

impl fmt::Display for JsonPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.source)
    }
}

fn follow<'a>(steps: &[PathStep], value: &'a Value) -> Vec<&'a Value> {
    let mut found = vec![value];
    for step in steps {
        found = found
            .into_iter()
            .flat_map(|value| step.apply(value))
            .collect();
    }
    found
}

impl PathStep {
    fn apply<'a>(&self, value: &'a Value) -> Vec<&'a Value> {
        match self {
            Self::Field(name) => value.get(&**name).into_iter().collect(),
            Self::Index(index) => at(value, *index).into_iter().collect(),
            Self::Each => children(value),
            Self::Filter(filter) => {
                let mut children = children(value);
                children.retain(|child| filter.holds(child));
                children
            }
        }
    }
}

fn at(value: &Value, index: i64) -> Option<&Value> {
    let list = value.as_array()?;
    let index = if index < 0 {
        index + list.len() as i64
    } else {
        index
    };
    list.get(usize::try_from(index).ok()?)
}

fn children(value: &Value) -> Vec<&Value> {
    match value {
        Value::Array(items) => items.iter().collect(),
        Value::Object(fields) => fields.values().collect(),
        _ => Vec::new(),
    }
}

impl FilterExpression {
    fn holds(&self, value: &Value) -> bool {
        let left = follow(&self.left, value);
        let Some((comparison, operand)) = &self.test else {
            return !left.is_empty();
        };
        let right = match operand {
            Operand::Literal(literal) => vec![literal],
            Operand::Path(steps) => follow(steps, value),
        };
        match (left.first(), right.first()) {
            (Some(left), Some(right)) => comparison.holds(left, right),
            _ => false,
        }
    }
}

impl FilterOperator {
    fn holds(self, left: &Value, right: &Value) -> bool {
        let order = order(left, right);
        match self {
            Self::Equal => order == Some(Ordering::Equal),
            Self::NotEqual => order != Some(Ordering::Equal),
            Self::Less => order == Some(Ordering::Less),
            Self::LessOrEqual => matches!(order, Some(Ordering::Less | Ordering::Equal)),
            Self::Greater => order == Some(Ordering::Greater),
            Self::GreaterOrEqual => matches!(order, Some(Ordering::Greater | Ordering::Equal)),
        }
    }
}

fn order(left: &Value, right: &Value) -> Option<Ordering> {
    match (left, right) {
        (Value::Number(a), Value::Number(b)) => a.as_f64()?.partial_cmp(&b.as_f64()?),
        (Value::String(a), Value::String(b)) => Some(a.cmp(b)),
        (a, b) => (a == b).then_some(Ordering::Equal),
    }
}
