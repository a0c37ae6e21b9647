//! `components.schemas`: the schemas of a version's kinds and all that they reference.

use std::{collections::HashMap, sync::LazyLock};

use serde_json::{Map, Value, json};

use super::{GroupVersion, Published, SchemaOrigin};
use crate::schema::{OBJECT_META, definitions};

const GVK: &str = "x-kubernetes-group-version-kind";
const PREFIX: &str = "#/components/schemas/";

/// Definitions of built-in kinds by group, version and kind.
static KINDS: LazyLock<HashMap<[&'static str; 3], &'static str>> = LazyLock::new(|| {
    let mut kinds = HashMap::new();
    for (name, definition) in definitions() {
        for gvk in definition[GVK].as_array().into_iter().flatten() {
            let word = |key: &str| gvk[key].as_str().unwrap_or_default();
            let key = [word("group"), word("version"), word("kind")];
            kinds.insert(key, name.as_str());
        }
    }
    kinds
});

/// Collects schemas and what they reference.
#[derive(Debug, Default)]
pub(super) struct Collector {
    schemas: Map<String, Value>,
}

impl Collector {
    pub(super) fn add(&mut self, place: &GroupVersion<'_>, kind: &Published<'_>) {
        match kind.schema {
            SchemaOrigin::Builtin => {
                if let Some(name) = KINDS.get(&[place.group, place.version, kind.kind]) {
                    self.builtin(name);
                }
            }
            SchemaOrigin::Custom(schema) => {
                self.builtin(OBJECT_META);
                let schema = custom(place, kind, schema);
                self.schemas.insert(custom_name(place, kind), schema);
            }
        }
    }

    pub(super) fn finish(self) -> Map<String, Value> {
        self.schemas
    }

    fn builtin(&mut self, name: &str) {
        if self.schemas.contains_key(name) {
            return;
        }
        let Some(definition) = definitions().get(name) else {
            return;
        };
        // A placeholder, so that a type that references itself ends.
        self.schemas.insert(name.into(), Value::Null);
        let schema = union(name).unwrap_or_else(|| self.converted(definition));
        self.schemas.insert(name.into(), schema);
    }

    /// A copy in the form of v3; its references are collected too.
    fn converted(&mut self, definition: &Value) -> Value {
        match definition {
            Value::Object(map) => match map.get("$ref").and_then(Value::as_str) {
                Some(target) => self.reference(target, map),
                None => self.fields(map).into(),
            },
            Value::Array(list) => list.iter().map(|item| self.converted(item)).collect(),
            other => other.clone(),
        }
    }

    fn fields(&mut self, map: &Map<String, Value>) -> Map<String, Value> {
        map.iter()
            .map(|(key, value)| (key.clone(), self.converted(value)))
            .collect()
    }

    /// Readers of v3 ignore siblings of a reference, so extensions go around it.
    fn reference(&mut self, target: &str, map: &Map<String, Value>) -> Value {
        let name = target.rsplit('/').next().unwrap_or(target);
        self.builtin(name);
        let reference = json!({"$ref": format!("{PREFIX}{name}")});
        if map.len() == 1 {
            return reference;
        }
        let mut around: Map<String, Value> = map.clone();
        around.remove("$ref");
        around.insert("allOf".into(), json!([reference]));
        Value::Object(around)
    }
}

/// Types that v2 can only declare as strings.
fn union(name: &str) -> Option<Value> {
    if name.ends_with(".IntOrString") {
        let either = json!([{"type": "integer"}, {"type": "string"}]);
        return Some(json!({"format": "int-or-string", "oneOf": either}));
    }
    if name.ends_with(".Quantity") {
        return Some(json!({"oneOf": [{"type": "string"}, {"type": "number"}]}));
    }
    None
}

/// `dev.tide.v1.Boat`.
fn custom_name(place: &GroupVersion<'_>, kind: &Published<'_>) -> String {
    let mut parts: Vec<&str> = place.group.split('.').rev().collect();
    parts.extend([place.version, kind.kind]);
    parts.join(".")
}

/// The schema of a custom resource with the fields of every object.
fn custom(place: &GroupVersion<'_>, kind: &Published<'_>, schema: &Value) -> Value {
    let mut schema = match schema {
        Value::Object(map) if !map.is_empty() => map.clone(),
        _ => Map::from_iter([("x-kubernetes-preserve-unknown-fields".into(), true.into())]),
    };
    schema.insert("type".into(), "object".into());
    let mut properties = match schema.remove("properties") {
        Some(Value::Object(properties)) => properties,
        _ => Map::new(),
    };
    properties.insert("apiVersion".into(), json!({"type": "string"}));
    properties.insert("kind".into(), json!({"type": "string"}));
    let metadata = json!({"allOf": [{"$ref": format!("{PREFIX}{OBJECT_META}")}]});
    properties.insert("metadata".into(), metadata);
    schema.insert("properties".into(), Value::Object(properties));
    let gvk = json!([{"group": place.group, "version": place.version, "kind": kind.kind}]);
    schema.insert(GVK.into(), gvk);
    Value::Object(schema)
}
