//! The list fields of the built-in types, and entries for them.

use std::{fmt, sync::LazyLock};

use serde_json::{Map, Value, json};

static TYPES: LazyLock<Map<String, Value>> = LazyLock::new(|| {
    let text = include_str!("../../../data/types.json");
    serde_json::from_str(text).unwrap()
});

/// How the entries of a list are made.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Filling {
    /// Required fields only, all different.
    Short,
    /// Every scalar field, all different.
    Full,
    /// Every scalar field, all the same.
    Same,
}

impl Filling {
    pub(super) const ALL: [Self; 3] = [Self::Short, Self::Full, Self::Same];
}

/// A step from a value to a part of it.
#[derive(Debug, Clone, PartialEq)]
enum Step {
    Field(String),
    /// Any key of a map.
    Key,
    /// Any entry of a list.
    Item,
}

/// The path of a list field.
#[derive(Debug, Clone)]
pub(super) struct FieldPath(Vec<Step>);

impl fmt::Display for FieldPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|step| match step {
            Step::Field(name) => write!(f, ".{name}"),
            Step::Key => f.write_str("{}"),
            Step::Item => f.write_str("[]"),
        })
    }
}

/// One list field of a kind.
pub(super) struct ListField {
    pub(super) path: FieldPath,
    /// The types of the values on the path, from the object to the list's parent.
    parents: Vec<&'static Value>,
    items: &'static Value,
    keys: Vec<String>,
}

/// Every list field of a type. A type inside itself is entered once.
pub(super) fn lists_of(ty: &str) -> Vec<ListField> {
    let mut found = Vec::new();
    let root = &TYPES[ty];
    walk(
        root,
        &mut Vec::new(),
        &mut vec![root],
        &mut Vec::new(),
        &mut found,
    );
    found
}

fn walk(
    schema: &'static Value,
    path: &mut Vec<Step>,
    parents: &mut Vec<&'static Value>,
    names: &mut Vec<&'static str>,
    found: &mut Vec<ListField>,
) {
    let (schema, name) = resolved(schema);
    if name.is_some_and(|name| names.contains(&name)) {
        return;
    }
    names.extend(name);
    let mut below = |step: Step, inner: &'static Value| {
        path.push(step);
        parents.push(inner);
        walk(inner, path, parents, names, found);
        parents.pop();
        path.pop();
    };
    if let Some(items) = schema.get("items") {
        below(Step::Item, items);
        let keys = schema["x-kubernetes-list-map-keys"].as_array();
        let keys = keys.into_iter().flatten().filter_map(Value::as_str);
        let merge = schema["x-kubernetes-patch-merge-key"].as_str();
        found.push(ListField {
            path: FieldPath(path.clone()),
            parents: parents.clone(),
            items,
            keys: keys.chain(merge).map(Into::into).collect(),
        });
    } else {
        for (name, inner) in schema["properties"].as_object().into_iter().flatten() {
            // The server owns the entries of managed fields; their number is tried elsewhere.
            below(Step::Field(name.clone()), inner);
        }
        if let Some(inner) = schema.get("additionalProperties").filter(|s| s.is_object()) {
            below(Step::Key, inner);
        }
    }
    if name.is_some() {
        names.pop();
    }
}

fn resolved(schema: &'static Value) -> (&'static Value, Option<&'static str>) {
    match schema["$ref"].as_str() {
        Some(reference) => {
            let name = reference.rsplit('/').next().unwrap_or_default();
            (&TYPES[name], Some(name))
        }
        None => (schema, None),
    }
}

impl ListField {
    /// Whether the field is in the pod template of a workload.
    pub(super) fn is_of_template(&self) -> bool {
        self.path.to_string().contains(".template.spec.")
    }

    /// The number of entries that make `base` a body of almost this size, and of no more unless the
    /// object is larger by itself.
    pub(super) fn entries_in(&self, filling: Filling, base: &Value, bytes: usize) -> usize {
        let (mut best, mut count) = (2, 1000);
        for _ in 0..8 {
            let body = self.placed_in(base.clone(), self.items(filling, count));
            let size = body.to_string().len();
            if size <= bytes {
                best = count.max(best);
            }
            // A little less than the average allows: later entries are longer than earlier ones.
            let fitting = count * bytes / size * 99 / 100;
            if fitting <= best {
                break;
            }
            count = fitting;
        }
        best
    }

    pub(super) fn items(&self, filling: Filling, count: usize) -> Vec<Value> {
        let entry = |at: usize| {
            let at = if filling == Filling::Same { 1 } else { at + 1 };
            value(self.items, at, filling != Filling::Short, &self.keys)
        };
        (0..count).map(entry).collect()
    }

    /// The object with the list in its place, and all else that the path needs.
    pub(super) fn placed_in(&self, mut object: Value, items: Vec<Value>) -> Value {
        let mut place = &mut object;
        for (step, parent) in self.path.0.iter().zip(&self.parents[1..]) {
            place = match step {
                Step::Field(name) => &mut place[name],
                Step::Key => &mut place["k"],
                Step::Item => {
                    if place.as_array().is_none_or(Vec::is_empty) {
                        *place = json!([value(parent, 1, false, &[])]);
                    }
                    &mut place[0]
                }
            };
            let is_map = resolved(parent).0.get("items").is_none();
            if place.is_null() && is_map {
                *place = value(parent, 1, false, &[]);
            }
        }
        *place = items.into();
        object
    }
}

/// A value of a type that differs for each `at`.
fn value(schema: &'static Value, at: usize, full: bool, keys: &[String]) -> Value {
    let (schema, name) = resolved(schema);
    match name.and_then(|name| name.rsplit('.').next()) {
        Some("Quantity") => return json!("1"),
        Some("IntOrString") => return json!(at % 65535),
        Some("Time") => return json!("2026-01-01T00:00:00Z"),
        Some("MicroTime") => return json!("2026-01-01T00:00:00.000000Z"),
        _ => {}
    }
    if let Some(first) = schema["enum"].as_array().and_then(|all| all.first()) {
        return first.clone();
    }
    match schema["type"].as_str() {
        Some("string") => json!(format!("a{at:x}")),
        Some("integer" | "number") => json!(at),
        Some("boolean") => json!(true),
        Some("array") => json!([]),
        _ => {
            let required = schema["required"].as_array();
            let required: Vec<&str> = required
                .into_iter()
                .flatten()
                .filter_map(Value::as_str)
                .collect();
            let properties = schema["properties"].as_object().into_iter().flatten();
            let wanted = properties.filter(|(name, inner)| {
                let scalar = inner["type"].is_string() && inner["type"] != "array";
                let scalar = scalar && inner["type"] != "object";
                let key = keys.contains(name);
                required.contains(&name.as_str()) || key || (full && scalar)
            });
            let fields = wanted.map(|(name, inner)| (name.clone(), value(inner, at, false, &[])));
            Value::Object(fields.collect())
        }
    }
}
