//! Compiles the JSON of an `openAPIV3Schema` to the arena that the other modules walk.
//!
//! Compiling never fails: what is not understood is left out, because a definition is reviewed
//! before it is served and a stored one must stay readable.

use serde_json::Value;

use super::pattern::pattern;
use crate::schema::{
    Limits, ListType, Node, NodeId, OBJECT_META, Pattern, Schema, Schemas, Type, ValidationRule,
    builtin, strings,
};

/// A compiled schema and where it begins.
#[derive(Debug)]
pub struct Compiled {
    schemas: Schemas,
    root: NodeId,
}

impl Compiled {
    /// The schema of the whole object.
    pub fn root(&self) -> Schema<'_> {
        self.schemas.at(self.root)
    }

    /// The arena the schema lives in.
    pub fn schemas(&self) -> &Schemas {
        &self.schemas
    }
}

/// Compiles the schema of a whole custom resource; `preserve` keeps unknown fields at the root.
pub fn compile(schema: &Value, preserve: bool) -> Compiled {
    let mut compiler = SchemaCompiler::default();
    let mut node = compiler.node(schema);
    node.preserve_unknown |= preserve;
    if node.ty == Type::Any {
        node.ty = Type::Object;
    }
    compiler.give_object_fields(&mut node, &schema["properties"]["metadata"]);
    let root = compiler.schemas.add(node);
    Compiled {
        schemas: compiler.schemas,
        root,
    }
}

#[derive(Default)]
struct SchemaCompiler {
    schemas: Schemas,
}

impl SchemaCompiler {
    fn add(&mut self, schema: &Value) -> NodeId {
        let node = self.node(schema);
        self.schemas.add(node)
    }

    fn node(&mut self, schema: &Value) -> Node {
        let flag = |name: &str| schema[name] == true;
        let mut node = Node {
            ty: json_type(schema),
            format: schema["format"].as_str().map(Into::into),
            nullable: flag("nullable"),
            preserve_unknown: flag("x-kubernetes-preserve-unknown-fields"),
            embedded_resource: flag("x-kubernetes-embedded-resource"),
            required: strings(&schema["required"]),
            default: schema.get("default").filter(|d| !d.is_null()).cloned(),
            list_type: list_type(schema),
            atomic_map: schema["x-kubernetes-map-type"] == "atomic",
            enumeration: schema["enum"].as_array().cloned().unwrap_or_default(),
            ..Node::default()
        };
        if let Some(properties) = schema["properties"].as_object() {
            for (name, property) in properties {
                node.properties
                    .insert(name.as_str().into(), self.add(property));
            }
        }
        node.additional = match &schema["additionalProperties"] {
            additional @ Value::Object(_) => Some(self.add(additional)),
            // Any value with no declared fields: the fields of an object in it are pruned.
            Value::Bool(true) => Some(self.schemas.add(Node::default())),
            _ => None,
        };
        if schema["items"].is_object() {
            node.items = Some(self.add(&schema["items"]));
        }
        if node.embedded_resource {
            self.give_object_fields(&mut node, &schema["properties"]["metadata"]);
        }
        node.limits = self.limits(schema).map(Box::new);
        node
    }

    /// Adds apiVersion, kind and metadata, which a whole object has whether or not its schema
    /// declares them. All that a schema may add to metadata is limits on name and generateName.
    fn give_object_fields(&mut self, node: &mut Node, metadata: &Value) {
        for name in ["apiVersion", "kind"] {
            if !node.properties.contains_key(name) {
                let string = Node {
                    ty: Type::String,
                    ..Node::default()
                };
                let id = self.schemas.add(string);
                node.properties.insert(name.into(), id);
            }
        }
        let Some(meta) = builtin().named(OBJECT_META) else {
            return;
        };
        let id = self.schemas.import(meta);
        let mut meta = self.schemas.at(id).node().clone();
        for name in ["name", "generateName"] {
            if metadata["properties"][name].is_object() {
                let limited = self.add(&metadata["properties"][name]);
                meta.properties.insert(name.into(), limited);
            }
        }
        meta.limits = self.limits(metadata).map(Box::new);
        self.schemas.set(id, meta);
        node.properties.insert("metadata".into(), id);
    }

    fn limits(&mut self, schema: &Value) -> Option<Limits> {
        let number = |name: &str| schema[name].as_f64();
        let count = |name: &str| schema[name].as_u64();
        let flag = |name: &str| schema[name] == true;
        let limits = Limits {
            minimum: number("minimum"),
            maximum: number("maximum"),
            exclusive_minimum: flag("exclusiveMinimum"),
            exclusive_maximum: flag("exclusiveMaximum"),
            multiple_of: number("multipleOf"),
            min_length: count("minLength"),
            max_length: count("maxLength"),
            pattern: schema["pattern"].as_str().and_then(limit_pattern),
            min_items: count("minItems"),
            max_items: count("maxItems"),
            unique_items: flag("uniqueItems"),
            min_properties: count("minProperties"),
            max_properties: count("maxProperties"),
            all_of: self.junction(&schema["allOf"]),
            any_of: self.junction(&schema["anyOf"]),
            one_of: self.junction(&schema["oneOf"]),
            not: schema["not"].is_object().then(|| self.add(&schema["not"])),
            rules: rules(&schema["x-kubernetes-validations"]),
        };
        (!limits.is_empty()).then_some(limits)
    }

    fn junction(&mut self, list: &Value) -> Vec<NodeId> {
        let list = list.as_array().map(Vec::as_slice).unwrap_or_default();
        list.iter().map(|schema| self.add(schema)).collect()
    }
}

fn limit_pattern(source: &str) -> Option<Pattern> {
    Some(Pattern {
        source: source.into(),
        regex: pattern(source).ok()?,
    })
}

fn json_type(schema: &Value) -> Type {
    if schema["x-kubernetes-int-or-string"] == true {
        return Type::IntOrString;
    }
    match schema["type"].as_str() {
        Some("object") => Type::Object,
        Some("array") => Type::Array,
        Some("string") => Type::String,
        Some("integer") => Type::Integer,
        Some("number") => Type::Number,
        Some("boolean") => Type::Boolean,
        _ => Type::Any,
    }
}

fn list_type(schema: &Value) -> ListType {
    match schema["x-kubernetes-list-type"].as_str() {
        Some("set") => ListType::Set,
        Some("map") => ListType::Map(strings(&schema["x-kubernetes-list-map-keys"])),
        _ => ListType::Atomic,
    }
}

fn rules(list: &Value) -> Vec<ValidationRule> {
    let list = list.as_array().map(Vec::as_slice).unwrap_or_default();
    list.iter().map(rule).collect()
}

fn rule(value: &Value) -> ValidationRule {
    let text = |name: &str| {
        let text = value[name].as_str().filter(|text| !text.is_empty());
        text.map(ToOwned::to_owned)
    };
    ValidationRule {
        rule: text("rule").unwrap_or_default(),
        message: text("message"),
        message_expression: text("messageExpression"),
        reason: text("reason"),
        field_path: text("fieldPath"),
        optional_old_self: value["optionalOldSelf"] == true,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn marks_defaults_and_limits_are_read() {
        let compiled = compile(
            &json!({"type": "object", "properties": {"spec": {"type": "object", "properties": {
                "size": {"type": "integer", "minimum": 1, "default": 3},
                "port": {"x-kubernetes-int-or-string": true},
                "tags": {"type": "array", "items": {"type": "string"}, "x-kubernetes-list-type": "set"},
            }}}}),
            false,
        );
        let spec = compiled.root().property("spec").unwrap();
        let size = spec.property("size").unwrap().node();
        assert_eq!(size.default, Some(json!(3)));
        assert_eq!(size.limits.as_ref().unwrap().minimum, Some(1.0));
        assert_eq!(spec.property("port").unwrap().node().ty, Type::IntOrString);
        assert_eq!(
            spec.property("tags").unwrap().node().list_type,
            ListType::Set
        );
    }

    #[test]
    fn metadata_is_the_built_in_type_with_the_schemas_limits_on_the_name() {
        let compiled = compile(
            &json!({"type": "object", "properties": {"metadata": {"type": "object",
                "properties": {"name": {"type": "string", "maxLength": 5}}}}}),
            false,
        );
        let meta = compiled.root().property("metadata").unwrap();
        assert!(meta.property("labels").unwrap().additional().is_some());
        let name = meta.property("name").unwrap().node();
        assert_eq!(name.limits.as_ref().unwrap().max_length, Some(5));
    }
}
