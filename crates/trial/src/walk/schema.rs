//! What a declaration can say, as its schema has it.

use std::fmt;

use serde_json::{Value, json};

const TYPES: &str = include_str!("../../../pocket/data/types.json");

/// A schema, and the definitions that it speaks of.
#[derive(Debug, Clone)]
pub struct Schema {
    definitions: Value,
    root: Value,
}

/// One thing that a declaration can say.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Property {
    /// The way to it.
    pub(super) path: Vec<Segment>,
}

/// One step of the way.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Segment {
    /// A field.
    Field(String),
    /// The first item of a list.
    Item,
    /// An entry of a map.
    Entry,
}

/// The entry that is walked through in maps.
pub(super) const ENTRY: &str = "walk";

/// What a value has to be.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Form<'a> {
    Choice(&'a [Value]),
    Truth,
    Whole,
    Number,
    WholeOrText,
    Quantity,
    Moment,
    Text,
    List,
    Map,
    Fields,
    Anything,
}

impl Schema {
    /// That of a kind that every server has, by the name of its type.
    pub fn built_in(name: &str) -> Result<Self, String> {
        let definitions: Value = serde_json::from_str(TYPES).map_err(|error| error.to_string())?;
        let root = definitions[name].clone();
        if root.is_null() {
            return Err(format!("there is no type {name}"));
        }
        Ok(Self { definitions, root })
    }

    /// That of a custom kind, as its definition has it.
    pub fn custom(root: Value) -> Self {
        let definitions = Value::Null;
        Self { definitions, root }
    }

    /// Everything that its spec can say, the plainest first.
    pub fn properties(&self) -> Vec<Property> {
        let mut all = Vec::new();
        let way = vec![Segment::Field("spec".to_owned())];
        let spec = &self.root["properties"]["spec"];
        self.collect(spec, &way, &mut Vec::new(), &mut all);
        all.sort_by_key(|property| property.path.len());
        all
    }

    fn collect<'a>(
        &'a self,
        schema: &'a Value,
        way: &[Segment],
        types: &mut Vec<&'a str>,
        all: &mut Vec<Property>,
    ) {
        if let Some(name) = schema["$ref"].as_str() {
            // What contains itself is walked once.
            if types.contains(&name) {
                return;
            }
            types.push(name);
            self.collect(self.resolve(schema), way, types, all);
            types.pop();
            return;
        }
        let mut step = |segment: Segment, schema: &'a Value, counts: bool| {
            let mut path = way.to_vec();
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

    /// The schema at the end of a way, not resolved.
    pub(super) fn at<'a>(&'a self, way: &[Segment]) -> &'a Value {
        way.iter().fold(&self.root, |schema, segment| {
            let schema = self.resolve(schema);
            match segment {
                Segment::Field(name) => &schema["properties"][name],
                Segment::Item => &schema["items"],
                Segment::Entry => &schema["additionalProperties"],
            }
        })
    }

    pub(super) fn form<'a>(&'a self, schema: &'a Value) -> Form<'a> {
        let name = schema["$ref"].as_str().unwrap_or_default();
        if name.ends_with(".Quantity") {
            return Form::Quantity;
        }
        // Kept as it is, whatever it is.
        if name.ends_with(".FieldsV1") || name.ends_with(".RawExtension") {
            return Form::Anything;
        }
        let schema = self.resolve(schema);
        if let Some(choices) = schema["enum"].as_array() {
            return Form::Choice(choices);
        }
        let format = schema["format"].as_str().unwrap_or_default();
        if format == "int-or-string" || schema["x-kubernetes-int-or-string"] == true {
            return Form::WholeOrText;
        }
        match schema["type"].as_str().unwrap_or_default() {
            "boolean" => Form::Truth,
            "integer" => Form::Whole,
            "number" => Form::Number,
            "string" if format == "date-time" => Form::Moment,
            "string" => Form::Text,
            "array" => Form::List,
            "object" if schema["properties"].is_object() => Form::Fields,
            "object" => Form::Map,
            _ if schema["properties"].is_object() => Form::Fields,
            _ => Form::Anything,
        }
    }

    /// A plain value: what is required, and nothing else.
    pub(super) fn plain(&self, schema: &Value) -> Value {
        let form = self.form(schema);
        let schema = self.resolve(schema);
        match form {
            Form::Choice(choices) => choices.first().cloned().unwrap_or_default(),
            Form::Truth => true.into(),
            Form::Whole | Form::Number => schema["minimum"].as_i64().unwrap_or(1).into(),
            Form::WholeOrText => 1.into(),
            Form::Quantity => "1".into(),
            Form::Moment => "2026-01-01T00:00:00Z".into(),
            Form::Text => ENTRY.into(),
            Form::List => json!([]),
            Form::Map | Form::Anything => json!({}),
            Form::Fields => {
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
