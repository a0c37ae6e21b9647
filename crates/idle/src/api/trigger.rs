//! How it is found out whether a service is in use.

use std::{collections::BTreeMap, fmt};

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, Serialize, de::Error};
use serde_json::Value;

use super::wire;

/// One source that reports whether the service is in use.
#[derive(Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Trigger {
    /// The kind of source.
    #[serde(rename = "type")]
    pub kind: TriggerKind,
    /// The query; a [`PrometheusTrigger`] for Prometheus.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "any_fields")]
    pub metadata: Option<Value>,
}

/// Kinds of triggers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum TriggerKind {
    /// A Prometheus server, or one with the same API.
    #[default]
    Prometheus,
    /// The resolvers, which stay in the path and count requests.
    Requests,
}

/// A query to Prometheus.
#[derive(Clone, PartialEq, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PrometheusTrigger {
    /// An expression with one value.
    #[serde(default)]
    pub query: String,
    /// The address of the server; the default of the operator if absent.
    #[serde(default)]
    pub server_address: Option<String>,
    /// The service is idle while the value is below this.
    #[serde(default)]
    pub threshold: Threshold,
    /// The label filter of the `up` series that shows whether Prometheus itself was running.
    #[serde(default = "own_container")]
    pub uptime_filter: String,
    /// Headers of every query. They may hold credentials, so they are never shown.
    #[serde(default)]
    pub headers: BTreeMap<String, String>,
}

impl fmt::Debug for Trigger {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut metadata = self.metadata.clone();
        metadata.iter_mut().for_each(wire::hide_secrets);
        f.debug_struct("Trigger")
            .field("kind", &self.kind)
            .field("metadata", &metadata)
            .finish()
    }
}

impl fmt::Debug for PrometheusTrigger {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let headers = self.headers.keys().map(|name| (name, wire::REDACTED));
        let headers: BTreeMap<_, _> = headers.collect();
        let mut address = Value::from(self.server_address.clone());
        wire::hide_user(&mut address);
        f.debug_struct("PrometheusTrigger")
            .field("query", &self.query)
            .field("server_address", &address.as_str())
            .field("threshold", &self.threshold)
            .field("uptime_filter", &self.uptime_filter)
            .field("headers", &headers)
            .finish()
    }
}

fn own_container() -> String {
    r#"container="prometheus""#.to_owned()
}

/// A number, which users write with quotes or without.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Threshold(pub f64);

impl<'de> Deserialize<'de> for Threshold {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let number = match Value::deserialize(deserializer)? {
            Value::String(text) => text.trim().parse().ok(),
            Value::Number(number) => number.as_f64(),
            _ => None,
        };
        let number = number.filter(|number: &f64| number.is_finite());
        number
            .map(Self)
            .ok_or_else(|| D::Error::custom("a threshold is a number such as \"0.5\""))
    }
}

fn any_fields(_: &mut SchemaGenerator) -> Schema {
    json_schema!({"x-kubernetes-preserve-unknown-fields": true})
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn threshold(value: &Value) -> Option<f64> {
        let read: Result<PrometheusTrigger, _> =
            serde_json::from_value(json!({ "threshold": value }));
        read.ok().map(|trigger| trigger.threshold.0)
    }

    #[test]
    fn credentials_for_prometheus_are_not_shown() {
        let metadata = json!({
            "query": "up", "serverAddress": "https://me:hush@prometheus.example.com/x",
            "headers": {"Authorization": "Bearer hush"},
        });
        let trigger: PrometheusTrigger = serde_json::from_value(metadata.clone()).unwrap();
        let whole = Trigger {
            metadata: Some(metadata),
            ..Trigger::default()
        };
        for shown in [format!("{trigger:?}"), format!("{whole:?}")] {
            assert!(!shown.contains("hush"), "{shown}");
            assert!(shown.contains("Authorization"), "{shown}");
            assert!(shown.contains("prometheus.example.com/x"), "{shown}");
        }
    }

    #[test]
    fn a_threshold_may_be_quoted_or_not() {
        assert_eq!(threshold(&json!("0.5")), Some(0.5));
        assert_eq!(threshold(&json!(0.5)), Some(0.5));
        assert_eq!(threshold(&json!("many")), None);
        assert_eq!(threshold(&json!("NaN")), None);
        assert_eq!(threshold(&json!(null)), None);
    }
}
