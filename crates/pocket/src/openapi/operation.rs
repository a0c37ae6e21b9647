//! The one operation that clients look up: `patch`.

use serde_json::{Map, Value, json};

use super::{GroupVersion, Published, SchemaOrigin};

/// Patches that every kind takes.
const PATCHES: [&str; 3] = [
    "application/apply-patch+yaml",
    "application/json-patch+json",
    "application/merge-patch+json",
];

/// Custom resources do not accept it; clients send them a merge patch because it is not listed.
const STRATEGIC: &str = "application/strategic-merge-patch+json";

/// Parameters that clients look up before they send them: without `fieldValidation` here, kubectl
/// falls back to a validation that needs OpenAPI v2.
const PARAMETERS: [(&str, &str); 4] = [
    ("dryRun", "string"),
    ("fieldManager", "string"),
    ("fieldValidation", "string"),
    ("force", "boolean"),
];

/// The path of one object.
pub(super) fn path(place: &GroupVersion<'_>, kind: &Published<'_>) -> String {
    let scope = if kind.namespaced {
        "namespaces/{namespace}/"
    } else {
        ""
    };
    format!("/{}/{scope}{}/{{name}}", place.path(), kind.plural)
}

/// The path's `patch`, with only the parts that clients read.
pub(super) fn path_item(place: &GroupVersion<'_>, kind: &Published<'_>) -> Value {
    let strategic = matches!(kind.schema, SchemaOrigin::Builtin).then_some(STRATEGIC);
    let content: Map<String, Value> = PATCHES
        .into_iter()
        .chain(strategic)
        .map(|media_type| (media_type.into(), json!({"schema": {"type": "object"}})))
        .collect();
    let parameters: Vec<Value> = PARAMETERS
        .iter()
        .map(|(name, ty)| json!({"name": name, "in": "query", "schema": {"type": ty}}))
        .collect();
    json!({
        "patch": {
            "operationId": format!("patch{}", kind.kind),
            "parameters": parameters,
            "requestBody": {"content": content, "required": true},
            "responses": {"200": {"description": "OK"}},
            "x-kubernetes-action": "patch",
            "x-kubernetes-group-version-kind": {
                "group": place.group,
                "version": place.version,
                "kind": kind.kind,
            },
        },
    })
}
