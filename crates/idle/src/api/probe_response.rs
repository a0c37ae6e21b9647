//! Requests that a resolver answers itself for a service that sleeps, without waking it.

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};

/// A rule that matches requests, and the response to them. The first rule that matches applies.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ProbeResponse {
    /// The method, compared without regard to case; any if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "method")]
    pub method: Option<String>,
    /// The path; any if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub path: Option<PathMatch>,
    /// Headers, all of which must match.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 16))]
    pub headers: Vec<HeaderMatch>,
    /// Query parameters, all of which must match.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 16))]
    pub query_params: Vec<QueryParameterMatch>,
    /// The response.
    pub response: ProbeAnswer,
}

/// A condition on the path of a request.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PathMatch {
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
    /// The path is equal.
    Exact,
    /// The path begins with these segments.
    PathPrefix,
    /// The regular expression matches a part of it.
    RegularExpression,
}

/// A condition on a header of a request.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct HeaderMatch {
    /// How it is compared; exactly if absent.
    #[serde(rename = "type", default, skip_serializing_if = "Option::is_none")]
    pub kind: Option<ValueMatching>,
    /// The name, compared without regard to case.
    #[schemars(length(max = 256))]
    pub name: String,
    /// The value that one of its values must match.
    #[schemars(length(max = 4096))]
    pub value: String,
}

/// A condition on a query parameter of a request.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct QueryParameterMatch {
    /// How it is compared; exactly if absent.
    #[serde(rename = "type", default, skip_serializing_if = "Option::is_none")]
    pub kind: Option<ValueMatching>,
    /// The name.
    #[schemars(length(max = 256))]
    pub name: String,
    /// The value that one of its values must match.
    #[schemars(length(max = 1024))]
    pub value: String,
}

/// How a value is compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum ValueMatching {
    /// The value is equal.
    Exact,
    /// The regular expression matches a part of it.
    RegularExpression,
}

/// A response without a pod.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ProbeAnswer {
    /// The status code.
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
