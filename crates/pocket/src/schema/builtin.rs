//! The built-in types, taken from kube-apiserver and committed under `data/`.

use std::{collections::HashMap, sync::LazyLock};

use serde_json::{Map, Value};

use super::{ListType, Node, NodeId, PatchMarks, Schemas, Type, struct_fields};

/// The name of the type of every object's `metadata`.
pub const OBJECT_META: &str = "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta";

static DEFINITIONS: LazyLock<Map<String, Value>> = LazyLock::new(|| {
    let text = include_str!("../../data/types.json");
    match serde_json::from_str(text) {
        Ok(Value::Object(definitions)) => definitions,
        // The file is generated and checked in; a test parses it.
        _ => Map::new(),
    }
});

static BUILTIN: LazyLock<Schemas> = LazyLock::new(|| compile(&DEFINITIONS));

/// The published definitions by name, as JSON.
pub fn definitions() -> &'static Map<String, Value> {
    &DEFINITIONS
}

/// The compiled schemas of all built-in types.
pub fn builtin() -> &'static Schemas {
    &BUILTIN
}

static KINDS: LazyLock<HashMap<(&'static str, &'static str, &'static str), &'static str>> =
    LazyLock::new(|| {
        let mut kinds = HashMap::new();
        for (name, definition) in DEFINITIONS.iter() {
            let marks = definition["x-kubernetes-group-version-kind"].as_array();
            for mark in marks.into_iter().flatten() {
                if let (Some(group), Some(version), Some(kind)) = (
                    mark["group"].as_str(),
                    mark["version"].as_str(),
                    mark["kind"].as_str(),
                ) {
                    kinds.insert((group, version, kind), name.as_str());
                }
            }
        }
        kinds
    });

/// The published type of a built-in kind.
pub fn of_kind(group: &str, version: &str, kind: &str) -> Option<super::Schema<'static>> {
    // The map is keyed by borrowed text that lives as long as the definitions.
    let (_, name) = KINDS.get_key_value(&(group, version, kind))?;
    BUILTIN.named(name)
}

fn compile(definitions: &Map<String, Value>) -> Schemas {
    let mut compiler = BuiltinCompiler {
        set: Schemas::default(),
        ids: HashMap::new(),
    };
    // All names first, so that a type may refer to a later one or to itself.
    for name in definitions.keys() {
        let id = compiler.set.add(Node::default());
        compiler.ids.insert(name.clone(), id);
        compiler.set.name(name, id);
    }
    for (name, definition) in definitions {
        let mut node = compiler.node(definition, special(name));
        node.held = struct_fields::of(name);
        compiler.set.set(compiler.ids[name], node);
    }
    compiler.set
}

/// Types whose published definition accepts less than the server does.
fn special(name: &str) -> Option<Type> {
    let (_, short) = name.rsplit_once('.')?;
    match short {
        "IntOrString" => Some(Type::IntOrString),
        "Quantity" => Some(Type::Quantity),
        "JSON"
        | "JSONSchemaPropsOrArray"
        | "JSONSchemaPropsOrBool"
        | "JSONSchemaPropsOrStringArray" => Some(Type::Any),
        _ => None,
    }
}

struct BuiltinCompiler {
    set: Schemas,
    ids: HashMap<String, NodeId>,
}

impl BuiltinCompiler {
    fn node(&mut self, definition: &Value, special: Option<Type>) -> Node {
        let ty = special.unwrap_or_else(|| json_type(definition));
        let mut node = Node {
            ty,
            format: definition["format"].as_str().map(Into::into),
            required: strings(&definition["required"]),
            enumeration: definition["enum"].as_array().cloned().unwrap_or_default(),
            list_type: list_type(definition),
            atomic_map: definition["x-kubernetes-map-type"] == "atomic",
            patch: patch_marks(definition),
            ..Node::default()
        };
        if let Some(properties) = definition["properties"].as_object() {
            for (name, property) in properties {
                let id = self.reference(property);
                node.properties.insert(name.as_str().into(), id);
            }
        }
        if let Some(additional) = definition.get("additionalProperties") {
            node.additional = Some(self.reference(additional));
        }
        if let Some(items) = definition.get("items") {
            node.items = Some(self.reference(items));
        }
        // RawExtension, FieldsV1 and the like: an object without declared fields.
        node.preserve_unknown =
            ty == Type::Object && node.properties.is_empty() && node.additional.is_none();
        node
    }

    /// A bare reference is the type itself; a reference with extensions beside it is a copy with
    /// extensions.
    fn reference(&mut self, definition: &Value) -> NodeId {
        let target = definition["$ref"]
            .as_str()
            .and_then(|r| r.rsplit('/').next())
            .and_then(|name| self.ids.get(name).copied().map(|id| (name.to_owned(), id)));
        let Some((name, id)) = target else {
            let node = self.node(definition, None);
            return self.set.add(node);
        };
        let marked = definition.as_object().is_some_and(|d| d.len() > 1);
        if !marked {
            return id;
        }
        let Some(referenced) = DEFINITIONS.get(&name) else {
            return id;
        };
        let mut node = self.node(referenced, special(&name));
        node.held = struct_fields::of(&name);
        node.patch = patch_marks(definition);
        node.atomic_map |= definition["x-kubernetes-map-type"] == "atomic";
        self.set.add(node)
    }
}

fn json_type(definition: &Value) -> Type {
    match definition["type"].as_str() {
        Some("object") => Type::Object,
        Some("array") => Type::Array,
        Some("string") if definition["format"] == "int-or-string" => Type::IntOrString,
        Some("string") => Type::String,
        Some("integer") => Type::Integer,
        Some("number") => Type::Number,
        Some("boolean") => Type::Boolean,
        _ => Type::Any,
    }
}

fn list_type(definition: &Value) -> ListType {
    match definition["x-kubernetes-list-type"].as_str() {
        Some("set") => ListType::Set,
        Some("map") => ListType::Map(strings(&definition["x-kubernetes-list-map-keys"])),
        _ => ListType::Atomic,
    }
}

fn patch_marks(definition: &Value) -> PatchMarks {
    let strategy = definition["x-kubernetes-patch-strategy"]
        .as_str()
        .unwrap_or_default();
    let has = |word| strategy.split(',').any(|s| s == word);
    PatchMarks {
        merge: has("merge"),
        replace: has("replace"),
        retain_keys: has("retainKeys"),
        merge_key: definition["x-kubernetes-patch-merge-key"]
            .as_str()
            .map(Into::into),
    }
}

/// The texts of a list.
pub(crate) fn strings(value: &Value) -> Vec<Box<str>> {
    let list = value.as_array().map(Vec::as_slice).unwrap_or_default();
    list.iter()
        .filter_map(Value::as_str)
        .map(Into::into)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_reference_resolves_and_marks_are_read() {
        let pod = builtin().named("io.k8s.api.core.v1.PodSpec").unwrap();
        let containers = pod.property("containers").unwrap();
        assert_eq!(containers.node().patch.merge_key.as_deref(), Some("name"));
        assert_eq!(
            containers.node().list_type,
            ListType::Map(vec!["name".into()])
        );
        let image = containers.items().unwrap().property("image").unwrap();
        assert_eq!(image.node().ty, Type::String);
    }

    #[test]
    fn recursive_types_end() {
        let props = "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.JSONSchemaProps";
        let schema = builtin().named(props).unwrap();
        let again = schema.property("not").unwrap();
        assert_eq!(schema.id(), again.id());
    }

    #[test]
    fn import_copies_what_it_refers_to() {
        let mut other = Schemas::default();
        let meta = builtin().named(OBJECT_META).unwrap();
        let id = other.import(meta);
        let owners = other.at(id).property("ownerReferences").unwrap();
        assert!(owners.items().unwrap().property("uid").is_some());
    }
}
