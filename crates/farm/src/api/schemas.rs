//! Schemas of fields whose content Kubernetes defines. A definition with all fields of a pod would have a
//! megabyte; the API server checks such content when the operator applies it, and the operator reports a
//! refusal in the status.

use schemars::{Schema, SchemaGenerator, json_schema};

/// A map of free content.
pub(super) fn object(_: &mut SchemaGenerator) -> Schema {
    json_schema!({"type": "object", "x-kubernetes-preserve-unknown-fields": true})
}

/// A list of maps of free content.
pub(super) fn objects(_: &mut SchemaGenerator) -> Schema {
    json_schema!({
        "type": "array",
        "items": {"type": "object", "x-kubernetes-preserve-unknown-fields": true},
    })
}

/// A list of named things of free content.
pub(super) fn named(_: &mut SchemaGenerator) -> Schema {
    json_schema!({
        "type": "array",
        "items": {
            "type": "object",
            "required": ["name"],
            "properties": {"name": {"type": "string"}},
            "x-kubernetes-preserve-unknown-fields": true,
        },
    })
}

/// References to Secrets of the same namespace.
pub(super) fn references(_: &mut SchemaGenerator) -> Schema {
    json_schema!({
        "type": "array",
        "items": {"type": "object", "properties": {"name": {"type": "string"}}},
    })
}

/// Requests and limits.
pub(super) fn resources(_: &mut SchemaGenerator) -> Schema {
    let quantities = json_schema!({
        "type": "object",
        "additionalProperties": {
            "anyOf": [{"type": "integer"}, {"type": "string"}],
            "x-kubernetes-int-or-string": true,
        },
    });
    json_schema!({
        "type": "object",
        "properties": {
            "limits": quantities,
            "requests": quantities,
            "claims": {
                "type": "array",
                "items": {
                    "type": "object",
                    "required": ["name"],
                    "properties": {"name": {"type": "string"}, "request": {"type": "string"}},
                },
            },
        },
    })
}

/// The most pods of a component.
pub const MAX_PODS: i32 = 10_000;

/// The most shards of a farm. The configurations of all programs have an address of each shard for each store,
/// and while the shards change, those of the former ones too. All of them fit into a ConfigMap.
pub const MAX_SHARDS: i32 = 500;

/// A number of replicas.
pub(super) fn replicas(_: &mut SchemaGenerator) -> Schema {
    json_schema!({"type": "integer", "format": "int32", "minimum": 0, "maximum": MAX_PODS})
}

/// A number of shards.
pub(super) fn shard_count(_: &mut SchemaGenerator) -> Schema {
    json_schema!({"type": "integer", "format": "int32", "minimum": 0, "maximum": MAX_SHARDS})
}

/// A quantity of bytes.
pub(super) fn quantity(_: &mut SchemaGenerator) -> Schema {
    json_schema!({"type": "string", "pattern": "^[0-9]+(Ki|Mi|Gi|Ti|Pi|k|M|G|T|P)?$"})
}

/// The type of a Service.
pub(super) fn service_type(_: &mut SchemaGenerator) -> Schema {
    json_schema!({"type": "string", "enum": ["ClusterIP", "NodePort", "LoadBalancer"]})
}
