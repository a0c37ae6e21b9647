//! The schema of a declaration.

use std::fmt;

use serde_json::{Value, json};

const TYPES: &str = include_str!("../../../../crates/pocket/data/types.json");

/// A schema, and the definitions that it refers to.
#[derive(Debug, Clone)]
pub struct Schema {
    definitions: Value,
    root: Value,
}

/// A property of a declaration.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Property {
    pub(super) path: Vec<Segment>,
}

/// A segment of a property's path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Segment {
    Field(String),
    /// The first item of a list.
    Item,
    /// An entry of a map.
    Entry,
}

/// The key that is used in maps.
pub(super) const ENTRY: &str = "walk";

/// The type of a value.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum ValueType<'a> {
    Choice(&'a [Value]),
    Boolean,
    Integer,
    Number,
    IntOrString,
    Quantity,
    DateTime,
    Text,
    List,
    Map,
    Fields,
    Anything,
}

impl Schema {
    /// The schema of a built-in kind, by the name of its type.
    pub fn built_in(name: &str) -> Result<Self, String> {
        let definitions: Value = serde_json::from_str(TYPES).map_err(|error| error.to_string())?;
        let root = definitions[name].clone();
        if root.is_null() {
            return Err(format!("there is no type {name}"));
        }
        Ok(Self { definitions, root })
    }

    /// The schema of a custom kind, from its definition.
    pub fn custom(root: Value) -> Self {
        let definitions = Value::Null;
        Self { definitions, root }
    }

    /// All properties of the spec, those with the shortest paths first.
    pub fn properties(&self) -> Vec<Property> {
        let mut all = Vec::new();
        let path = vec![Segment::Field("spec".to_owned())];
        let spec = &self.root["properties"]["spec"];
        self.collect(spec, &path, &mut Vec::new(), &mut all);
        all.sort_by_key(|property| property.path.len());
        all
    }

    fn collect<'a>(
        &'a self,
        schema: &'a Value,
        path: &[Segment],
        types: &mut Vec<&'a str>,
        all: &mut Vec<Property>,
    ) {
        if let Some(name) = schema["$ref"].as_str() {
            // A recursive type is walked once.
            if types.contains(&name) {
                return;
            }
            types.push(name);
            self.collect(self.resolve(schema), path, types, all);
            types.pop();
            return;
        }
        let mut step = |segment: Segment, schema: &'a Value, counts: bool| {
            let mut path = path.to_vec();
            path.push(segment);
            if counts {
                all.push(Property { path: path.clone() });
            }
            self.collect(schema, &path, types, all);
        };
        for (name, field) in schema["properties"].as_object().into_iter().flatten() {
            step(Segment::Field(name.clone()), field, true);
        }
        if schema["items"].is_object() {
            step(Segment::Item, &schema["items"], false);
        }
        if schema["additionalProperties"].is_object() {
            step(Segment::Entry, &schema["additionalProperties"], false);
        }
    }

    pub(super) fn resolve<'a>(&'a self, schema: &'a Value) -> &'a Value {
        match schema["$ref"].as_str() {
            Some(name) => &self.definitions[name.trim_start_matches("#/definitions/")],
            None => schema,
        }
    }

    /// The schema at the end of a path, not resolved.
    pub(super) fn at<'a>(&'a self, path: &[Segment]) -> &'a Value {
        path.iter().fold(&self.root, |schema, segment| {
            let schema = self.resolve(schema);
            match segment {
                Segment::Field(name) => &schema["properties"][name],
                Segment::Item => &schema["items"],
                Segment::Entry => &schema["additionalProperties"],
            }
        })
    }

    pub(super) fn value_type<'a>(&'a self, schema: &'a Value) -> ValueType<'a> {
        let name = schema["$ref"].as_str().unwrap_or_default();
        if name.ends_with(".Quantity") {
            return ValueType::Quantity;
        }
        // Stored unchanged, whatever it is.
        if name.ends_with(".FieldsV1") || name.ends_with(".RawExtension") {
            return ValueType::Anything;
        }
        let schema = self.resolve(schema);
        if let Some(choices) = schema["enum"].as_array() {
            return ValueType::Choice(choices);
        }
        let format = schema["format"].as_str().unwrap_or_default();
        if format == "int-or-string" || schema["x-kubernetes-int-or-string"] == true {
            return ValueType::IntOrString;
        }
        match schema["type"].as_str().unwrap_or_default() {
            "boolean" => ValueType::Boolean,
            "integer" => ValueType::Integer,
            "number" => ValueType::Number,
            "string" if format == "date-time" => ValueType::DateTime,
            "string" => ValueType::Text,
            "array" => ValueType::List,
            "object" if schema["properties"].is_object() => ValueType::Fields,
            "object" => ValueType::Map,
            _ if schema["properties"].is_object() => ValueType::Fields,
            _ => ValueType::Anything,
        }
    }

    /// A minimal value: the required fields and nothing else.
    pub(super) fn plain(&self, schema: &Value) -> Value {
        let form = self.value_type(schema);
        let schema = self.resolve(schema);
        match form {
            ValueType::Choice(choices) => choices.first().cloned().unwrap_or_default(),
            ValueType::Boolean => true.into(),
            ValueType::Integer | ValueType::Number => {
                schema["minimum"].as_i64().unwrap_or(1).into()
            }
            ValueType::IntOrString => 1.into(),
            ValueType::Quantity => "1".into(),
            ValueType::DateTime => "2026-01-01T00:00:00Z".into(),
            ValueType::Text => ENTRY.into(),
            ValueType::List => json!([]),
            ValueType::Map | ValueType::Anything => json!({}),
            ValueType::Fields => {
                let mut object = json!({});
                for name in schema["required"].as_array().into_iter().flatten() {
                    let name = name.as_str().unwrap_or_default();
                    object[name] = self.plain(&schema["properties"][name]);
                }
                object
            }
        }
    }
}

impl fmt::Display for Property {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (number, segment) in self.path.iter().enumerate() {
            match segment {
                Segment::Field(name) if number == 0 => write!(f, "{name}")?,
                Segment::Field(name) => write!(f, ".{name}")?,
                Segment::Item => write!(f, "[0]")?,
                Segment::Entry => write!(f, ".{ENTRY}")?,
            }
        }
        Ok(())
    }
}
