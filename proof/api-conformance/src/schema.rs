//! The schemas of objects: which properties exist, and which of them were sent.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::{Context, Result};
use serde_json::{Value, json};

const TYPES: &str = include_str!("../../../crates/pocket/data/types.json");
/// Properties that only the server writes, or that are the same in every object.
const EXCLUDED: [&str; 3] = ["managedFields", "apiVersion", "kind"];

/// The type tables of built-in kinds, and the schemas of custom ones.
#[derive(Debug)]
pub struct Types {
    definitions: Value,
}

/// A type and a path in it.
pub type Property = (String, String);

/// Properties that requests contained.
#[derive(Debug, Default, Clone)]
pub struct SentProperties {
    sent: BTreeSet<Property>,
    accepted: BTreeSet<Property>,
}

impl Types {
    /// The tables that the server itself is generated from.
    pub fn read() -> Result<Self> {
        let definitions = serde_json::from_str(TYPES).context("the type tables are not JSON")?;
        Ok(Self { definitions })
    }

    /// Adds the type of a custom kind.
    pub fn add(&mut self, name: &str, mut schema: Value) {
        let metadata = "#/definitions/io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta";
        schema["properties"]["metadata"] = json!({"$ref": metadata});
        self.definitions[name] = schema;
    }

    /// Follows a reference. Also returns the name of the type, if it has one.
    pub fn resolve<'a>(&'a self, schema: &'a Value) -> (Option<&'a str>, &'a Value) {
        let Some(reference) = schema["$ref"].as_str() else {
            return (None, schema);
        };
        let name = reference.trim_start_matches("#/definitions/");
        (Some(name), &self.definitions[name])
    }

    pub fn of(&self, name: &str) -> &Value {
        &self.definitions[name]
    }

    /// Every property that objects of these types can have.
    pub fn properties(&self, roots: &[String]) -> BTreeSet<Property> {
        let mut all = BTreeSet::new();
        let mut todo: Vec<String> = roots.to_vec();
        let mut done = BTreeSet::new();
        while let Some(name) = todo.pop() {
            if !done.insert(name.clone()) {
                continue;
            }
            self.collect(&name, "", self.of(&name), &mut all, &mut todo);
        }
        all
    }

    fn collect(
        &self,
        name: &str,
        path: &str,
        schema: &Value,
        all: &mut BTreeSet<Property>,
        todo: &mut Vec<String>,
    ) {
        if let (Some(other), _) = self.resolve(schema) {
            todo.push(other.to_owned());
            return;
        }
        for (key, property) in schema["properties"].as_object().into_iter().flatten() {
            if EXCLUDED.contains(&key.as_str()) {
                continue;
            }
            let path = format!("{path}.{key}");
            all.insert((name.to_owned(), path.clone()));
            self.collect(name, &path, property, all, todo);
        }
        for inner in ["items", "additionalProperties"] {
            if schema[inner].is_object() {
                self.collect(name, path, &schema[inner], all, todo);
            }
        }
    }

    fn visit(
        &self,
        name: &str,
        path: &str,
        schema: &Value,
        value: &Value,
        seen: &mut BTreeSet<Property>,
    ) {
        if let (Some(other), schema) = self.resolve(schema) {
            return self.visit(other, "", schema, value, seen);
        }
        match value {
            Value::Array(items) => {
                for item in items {
                    self.visit(name, path, &schema["items"], item, seen);
                }
            }
            Value::Object(fields) => {
                for (key, item) in fields {
                    let property = &schema["properties"][key];
                    if property.is_null() {
                        self.visit(name, path, &schema["additionalProperties"], item, seen);
                    } else if !EXCLUDED.contains(&key.as_str()) {
                        let path = format!("{path}.{key}");
                        seen.insert((name.to_owned(), path.clone()));
                        self.visit(name, &path, property, item, seen);
                    }
                }
            }
            _ => {}
        }
    }
}

impl SentProperties {
    /// Records the properties in a request's body.
    pub fn record(&mut self, types: &Types, root: &str, body: &Value, accepted: bool) {
        let mut seen = BTreeSet::new();
        types.visit(root, "", types.of(root), body, &mut seen);
        if accepted {
            self.accepted.extend(seen.iter().cloned());
        }
        self.sent.extend(seen);
    }

    /// Adds the properties of another run.
    pub fn extend(&mut self, other: &Self) {
        self.sent.extend(other.sent.iter().cloned());
        self.accepted.extend(other.accepted.iter().cloned());
    }

    /// How many of `all` were sent, and how many in an accepted request.
    pub fn counts(&self, all: &BTreeSet<Property>) -> (usize, usize) {
        let of = |seen: &BTreeSet<Property>| seen.intersection(all).count();
        (of(&self.sent), of(&self.accepted))
    }

    /// The types with properties that were never sent.
    pub fn missed(&self, all: &BTreeSet<Property>) -> BTreeMap<String, Vec<String>> {
        let mut missed = BTreeMap::<_, Vec<_>>::new();
        for (name, path) in all.difference(&self.sent) {
            missed.entry(name.clone()).or_default().push(path.clone());
        }
        missed
    }
}
