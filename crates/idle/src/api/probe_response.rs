//! What is answered for a service that sleeps, without waking it.

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};

/// Requests that are answered at once, and how. The first that fits counts.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ProbeResponse {
    /// Any if absent; upper and lower case are the same.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "method")]
    pub method: Option<String>,
    /// Any if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub path: Option<Path>,
    /// All of them must fit.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 16))]
    pub headers: Vec<Header>,
    /// All of them must fit.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 16))]
    pub query_params: Vec<QueryParameter>,
    /// What is answered.
    pub response: Answer,
}

/// Where a request goes.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Path {
    /// How it is compared; by prefix if absent.
    #[serde(rename = "type", default, skip_serializing_if = "Option::is_none")]
    pub kind: Option<PathMatching>,
    /// `/` if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 1024))]
    pub value: Option<String>,
}

/// How a path is compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum PathMatching {
    /// It is the same.
    Exact,
    /// It begins with these segments.
    PathPrefix,
    /// The expression is found in it.
    RegularExpression,
}

/// A header that must be there.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Header {
    /// How it is compared; exactly if absent.
    #[serde(rename = "type", default, skip_serializing_if = "Option::is_none")]
    pub kind: Option<Matching>,
    /// Upper and lower case are the same.
    #[schemars(length(max = 256))]
    pub name: String,
    /// One of its values must be this.
    #[schemars(length(max = 4096))]
    pub value: String,
}

/// A query parameter that must be there.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct QueryParameter {
    /// How it is compared; exactly if absent.
    #[serde(rename = "type", default, skip_serializing_if = "Option::is_none")]
    pub kind: Option<Matching>,
    /// Its name.
    #[schemars(length(max = 256))]
    pub name: String,
    /// One of its values must be this.
    #[schemars(length(max = 1024))]
    pub value: String,
}

/// How a value is compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum Matching {
    /// It is the same.
    Exact,
    /// The expression is found in it.
    RegularExpression,
}

/// What is answered.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Answer {
    /// The status.
    #[schemars(schema_with = "status")]
    pub status: i32,
    /// The body.
    pub body: String,
}

fn method(_: &mut SchemaGenerator) -> Schema {
    json_schema!({
        "type": "string",
        "enum": ["GET", "HEAD", "POST", "PUT", "DELETE", "CONNECT", "OPTIONS", "TRACE", "PATCH"],
    })
}

fn status(_: &mut SchemaGenerator) -> Schema {
    json_schema!({
        "type": "integer",
        "enum": [200, 204, 400, 401, 403, 404, 500, 502, 503, 504],
    })
}
