//! `metav1.LabelSelector`: the selector inside workloads, policies and webhooks.

use serde_json::Value;

use super::{LabelSelector, Operator, Requirement};
use crate::status::{ApiError, Result};

impl LabelSelector {
    /// The selector of a `matchLabels`/`matchExpressions` object: an absent one selects nothing, an
    /// empty one selects everything.
    pub fn from_object(object: Option<&Value>) -> Result<Self> {
        let object = match object {
            None | Some(Value::Null) => return Ok(Self::nothing()),
            Some(object) => object,
        };
        let mut requirements = Vec::new();
        if let Some(labels) = object["matchLabels"].as_object() {
            for (key, value) in labels {
                let value = value.as_str().unwrap_or_default();
                requirements.push(Requirement::new(key, Operator::In, &[value])?);
            }
        }
        if let Some(expressions) = object["matchExpressions"].as_array() {
            for expression in expressions {
                requirements.push(expressed(expression)?);
            }
        }
        Ok(Self::all_of(requirements))
    }

    /// The selector of an equality map, as in `spec.selector` of a Service: an absent one and an
    /// empty one select nothing.
    pub fn from_map(map: Option<&Value>) -> Result<Self> {
        let Some(map) = map.and_then(Value::as_object).filter(|m| !m.is_empty()) else {
            return Ok(Self::nothing());
        };
        let requirements = map.iter().map(|(key, value)| {
            Requirement::new(key, Operator::In, &[value.as_str().unwrap_or_default()])
        });
        Ok(Self::all_of(requirements.collect::<Result<_>>()?))
    }
}

fn expressed(expression: &Value) -> Result<Requirement> {
    let operator = match expression["operator"].as_str().unwrap_or_default() {
        "In" => Operator::In,
        "NotIn" => Operator::NotIn,
        "Exists" => Operator::Exists,
        "DoesNotExist" => Operator::DoesNotExist,
        other => {
            return Err(ApiError::bad_request(format!(
                "{other:?} is not a valid label selector operator"
            )));
        }
    };
    let values = expression["values"].as_array();
    let values: Vec<&str> = values
        .into_iter()
        .flatten()
        .filter_map(Value::as_str)
        .collect();
    Requirement::new(
        expression["key"].as_str().unwrap_or_default(),
        operator,
        &values,
    )
}
