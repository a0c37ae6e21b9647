//! Normalizes a value to a built-in type, the way a typed decoder does.
//!
//! kube-apiserver decodes built-in objects into structs, and stores what the structs hold.
//! [`conform`] gives a JSON value the same treatment in place: a value of the wrong type refuses
//! the request, unknown fields are dropped and reported, null, an empty list and an empty map all
//! count as absent, and quantities, times and bytes take their one canonical form. Conforming is
//! idempotent.

mod scalar;
mod strict;
mod time;

use serde_json::{Map, Value};

pub use self::strict::{FieldValidation, strict_problem};
use super::{FieldPath, Node, Schema, StructFields, Type, Zero, builtin, go::json_type};
use crate::status::{ApiError, FieldError, FieldErrorKind, Problems, Result};

#[cfg(test)]
mod tests;

/// Unknown fields that are reported, at most; more would say nothing new.
pub const MAX_UNKNOWN: usize = 100;

/// The findings of [`conform`].
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Conformed {
    /// Paths of unknown fields, such as `spec.bogus`; they were dropped. At most [`MAX_UNKNOWN`].
    pub unknown: Vec<String>,
}

/// Checks a whole `value` against a built-in type and brings it into its canonical form.
///
/// A mismatch is a 400 that names the field; the value is then partly converted and must not be
/// used.
pub fn conform(
    schema: Schema<'_>,
    value: &mut Value,
    kind: &str,
    api_version: &str,
) -> Result<Conformed> {
    walk(schema, value, kind).map_err(|why| unreadable(kind, api_version, &why))
}

/// As [`conform`], for an object that a patch has made: here a mismatch is a 422.
pub fn conform_patched(schema: Schema<'_>, value: &mut Value, kind: &str) -> Result<Conformed> {
    walk(schema, value, kind).map_err(|why| unreadable_patch(&why))
}

/// As [`conform`], with the messages for objects that a merge of typed parts has made.
pub fn conform_merged<'a>(
    schema: Schema<'a>,
    value: &mut Value,
    kind: &'a str,
) -> Result<Conformed, String> {
    let mut walker = Walker {
        merged: true,
        ..Walker::new(kind)
    };
    walker.value(schema, value, FieldPath::Root, kind)?;
    Ok(walker.found)
}

/// Normalizes the metadata of a custom object.
pub fn conform_object_meta(metadata: &mut Value) -> Result<Conformed, String> {
    if metadata.is_null() {
        *metadata = Value::Object(Map::new());
    }
    if !metadata.is_object() {
        let found = json_type(metadata);
        return Err(format!(
            "json: cannot unmarshal {found} into Go value of type v1.ObjectMeta"
        ));
    }
    let Some(schema) = builtin().named(super::OBJECT_META) else {
        return Ok(Conformed::default());
    };
    walk(schema, metadata, "ObjectMeta")
}

fn walk<'a>(schema: Schema<'a>, value: &mut Value, kind: &'a str) -> Result<Conformed, String> {
    let mut walker = Walker::new(kind);
    walker.value(schema, value, FieldPath::Root, kind)?;
    walker.remembered.map_or(Ok(walker.found), Err)
}

/// 400: the body cannot be decoded as its kind.
pub fn unreadable(kind: &str, api_version: &str, why: &str) -> ApiError {
    let version = api_version.rsplit('/').next().unwrap_or_default();
    ApiError::bad_request(format!(
        "{kind} in version {version:?} cannot be handled as a {kind}: {why}"
    ))
}

/// 422: the patched object cannot be decoded as its kind. kube-apiserver shows the whole object
/// before the reason; it is left out, since the reason names the field.
pub fn unreadable_patch(why: &str) -> ApiError {
    let mut problems = Problems::new();
    problems.push(FieldError {
        kind: FieldErrorKind::Invalid,
        path: "patch".into(),
        value: None,
        detail: why.into(),
    });
    ApiError::invalid("", "", "", &problems)
}

/// Kinds that refuse a template without labels, and distinguish absent labels from an empty map.
const SELECTING: [&str; 4] = ["Deployment", "ReplicaSet", "StatefulSet", "DaemonSet"];

struct Walker<'a> {
    /// The type of the whole object.
    whole: &'a str,
    /// The type of the innermost struct, for the decoder's messages.
    inside: &'a str,
    /// The path of fields that leads here.
    fields: Vec<&'a str>,
    /// The value was merged from typed parts.
    merged: bool,
    /// The first mismatch of a decoder that continues after it. Types with their own decoder stop,
    /// and their error is then the only one reported.
    remembered: Option<String>,
    found: Conformed,
}

impl<'a> Walker<'a> {
    fn new(kind: &'a str) -> Self {
        Self {
            whole: kind,
            inside: kind,
            fields: Vec::new(),
            merged: false,
            remembered: None,
            found: Conformed::default(),
        }
    }

    fn value(
        &mut self,
        schema: Schema<'a>,
        value: &mut Value,
        at: FieldPath<'_>,
        ty: &'a str,
    ) -> Result<(), String> {
        let node = schema.node();
        match (node.ty, &mut *value) {
            (Type::Any, _) => Ok(()),
            (Type::Object, _) if node.preserve_unknown => Ok(()),
            (Type::Object, Value::Object(map)) if is_map(node) => self.map(schema, map, at, ty),
            (Type::Object, Value::Object(fields)) => self.fields(schema, fields, at),
            (Type::Array, Value::Array(items)) => self.items(schema, items, at, ty),
            (Type::Object | Type::Array, other) => {
                let why = self.mismatch(schema, other, ty);
                self.refuse(node, why)
            }
            (_, Value::Array(items)) if ty == "[]uint8" && !self.merged => {
                if let Some(odd) = items.iter().find(|item| !is_byte(item)) {
                    let why = self.mismatch(schema, odd, "uint8");
                    return self.refuse(node, why);
                }
                *value = scalar::encoded(items).into();
                Ok(())
            }
            (Type::Integer, Value::Number(number)) if self.merged => {
                *value = scalar::converted(node, number)
                    .ok_or_else(|| format!("cannot convert float64 to {ty}"))?;
                Ok(())
            }
            (_, scalar) => match scalar::check(schema, scalar) {
                Ok(()) => Ok(()),
                Err(scalar::ScalarProblem::Mismatch) => {
                    let why = self.mismatch(schema, value, ty);
                    self.refuse(node, why)
                }
                Err(scalar::ScalarProblem::Content(why)) if self.merged && ty == "[]uint8" => {
                    Err(format!("error decoding from json: {why}"))
                }
                Err(scalar::ScalarProblem::Content(why)) => self.refuse(node, why),
            },
        }
    }

    /// Stops with the error, or remembers it and continues.
    fn refuse(&mut self, node: &Node, why: String) -> Result<(), String> {
        if self.merged || is_self_decoding(node) {
            return Err(why);
        }
        self.remembered.get_or_insert(why);
        Ok(())
    }

    /// Normalizes the named fields of a struct.
    fn fields(
        &mut self,
        schema: Schema<'a>,
        fields: &mut Map<String, Value>,
        at: FieldPath<'_>,
    ) -> Result<(), String> {
        let held = schema.node().held;
        let outside = std::mem::replace(&mut self.inside, held.map_or("struct", |held| held.name));
        // A merged value is read in the order of the type, every other in its own order.
        let mut problem: Option<(usize, String)> = None;
        fields.retain(|name, value| {
            let here = FieldPath::Field(&at, name);
            let Some((name, field)) = schema.named_property(name) else {
                self.unknown(here);
                return false;
            };
            let known = held.and_then(|held| held.field(name));
            let place = known.map_or(0, |known| known.place);
            let over = |(at, _): &(usize, String)| !self.merged || *at <= place;
            if value.is_null() || problem.as_ref().is_some_and(over) {
                return false;
            }
            let depth = self.fields.len();
            self.fields.extend(known.and_then(|known| known.inside));
            self.fields.push(name);
            let ty = known.map_or("string", |known| known.ty);
            if let Err(why) = self.value(field, value, here, ty) {
                problem = Some((place, why));
            }
            self.fields.truncate(depth);
            let zero = known.map_or(Zero::Dropped, |known| known.zero);
            // An empty list of managers resets the managers of a built-in object.
            let resets = name == "managedFields" && self.inside == "ObjectMeta" && depth == 1;
            let resets = resets || (depth == 0 && zero == Zero::Written && value.is_array());
            let shown = name == "labels" && self.is_selected();
            let judged = self.is_judged_empty(name);
            (resets || shown || judged || !is_empty(field.node(), value))
                && (matches!(zero, Zero::Kept | Zero::Written) || !is_zero(field.node(), value))
        });
        self.inside = outside;
        write_zeros(schema, fields);
        problem.map_or(Ok(()), |(_, why)| Err(why))
    }

    /// Whether this is the metadata of a template that a selector must match.
    fn is_selected(&self) -> bool {
        self.fields == ["spec", "template", "metadata"] && SELECTING.contains(&self.whole)
    }

    /// Whether an empty list or map is kept for validation: where nothing may be set at all, it
    /// counts as set. Objects that have one are refused, so none is ever stored.
    fn is_judged_empty(&self, name: &str) -> bool {
        match (self.fields.as_slice(), name) {
            ([.., "ephemeralContainers"], "ports" | "resizePolicy" | "restartPolicyRules")
            | ([.., "ephemeralContainers", _, "resources"], "limits" | "requests" | "claims") => {
                true
            }
            ([.., "spec", "resources"], "claims") => self.inside == "ResourceRequirements",
            _ => false,
        }
    }

    /// Normalizes the entries of a map: none is dropped, and null is the zero of the type.
    fn map(
        &mut self,
        schema: Schema<'a>,
        map: &mut Map<String, Value>,
        at: FieldPath<'_>,
        ty: &'a str,
    ) -> Result<(), String> {
        let Some(values) = schema.additional() else {
            return Ok(());
        };
        let amounts = ty.ends_with("ResourceList");
        let ty = ty
            .strip_prefix("map[string]")
            .unwrap_or("resource.Quantity");
        for (key, value) in map {
            fill_null(values.node(), value);
            self.value(values, value, FieldPath::Field(&at, key), ty)?;
            if amounts {
                scalar::round_up(value);
            }
        }
        Ok(())
    }

    fn items(
        &mut self,
        schema: Schema<'a>,
        items: &mut [Value],
        at: FieldPath<'_>,
        ty: &'a str,
    ) -> Result<(), String> {
        let Some(element) = schema.items() else {
            return Ok(());
        };
        let ty = ty.strip_prefix("[]").unwrap_or(ty);
        for (i, item) in items.iter_mut().enumerate() {
            fill_null(element.node(), item);
            self.value(element, item, FieldPath::Index(&at, i), ty)?;
        }
        Ok(())
    }

    fn unknown(&mut self, at: FieldPath<'_>) {
        if self.found.unknown.len() < MAX_UNKNOWN {
            self.found.unknown.push(at.to_string());
        }
    }

    /// The decoder's message for a value of another type. Types with their own decoder do not know
    /// their path in a merged object.
    fn mismatch(&self, schema: Schema<'_>, value: &Value, ty: &str) -> String {
        let node = schema.node();
        if self.merged && !is_self_decoding(node) {
            return unmerged(node, value, ty);
        }
        let found = match value {
            Value::Number(number) if matches!(node.ty, Type::Integer | Type::IntOrString) => {
                format!("number {number}")
            }
            other => json_type(other).to_owned(),
        };
        let ty = match node.ty {
            Type::IntOrString => "int32",
            Type::String if node.format.as_deref() == Some("date-time") => "string",
            Type::Quantity => return scalar::NOT_A_QUANTITY.to_owned(),
            _ => ty,
        };
        if self.merged || self.fields.is_empty() {
            return format!("json: cannot unmarshal {found} into Go value of type {ty}");
        }
        let (inside, path) = (self.inside, self.fields.join("."));
        format!("json: cannot unmarshal {found} into Go struct field {inside}.{path} of type {ty}")
    }
}

/// Whether an element of a list that encodes bytes is a byte.
fn is_byte(item: &Value) -> bool {
    item.is_null() || item.as_u64().is_some_and(|number| number < 256)
}

/// Whether a type has its own JSON decoder.
fn is_self_decoding(node: &Node) -> bool {
    let time = node.ty == Type::String && node.format.as_deref() == Some("date-time");
    time || matches!(node.ty, Type::IntOrString | Type::Quantity)
}

/// The message for a merged value of a wrong type.
fn unmerged(node: &Node, value: &Value, ty: &str) -> String {
    let found = match value {
        Value::Null => "invalid",
        Value::Bool(_) => "bool",
        Value::Number(number) if number.is_f64() => "float64",
        Value::Number(_) => "int64",
        Value::String(_) => "string",
        Value::Array(_) => "slice",
        Value::Object(_) => "map",
    };
    match (node.ty, node.format.as_deref()) {
        (Type::Array, _) | (Type::String, Some("byte")) => {
            format!("cannot restore slice from {found}")
        }
        (Type::Object, _) if is_map(node) => format!("cannot restore map from {found}"),
        (Type::Object, _) => format!("cannot restore struct from: {found}"),
        (Type::String, _) if found == "int64" => format!("cannot convert int64 to {ty}"),
        (Type::String, _) => "unrecognized type: string".to_owned(),
        (Type::Boolean, _) => "unrecognized type: bool".to_owned(),
        _ => format!("unrecognized type: {ty}"),
    }
}

/// Adds the fields that are present whether they were set or not.
fn write_zeros(schema: Schema<'_>, fields: &mut Map<String, Value>) {
    for (name, field) in schema
        .node()
        .held
        .into_iter()
        .flat_map(StructFields::written)
    {
        let Some(property) = schema.property(name).filter(|_| !fields.contains_key(name)) else {
            continue;
        };
        if (field.zero == Zero::Written || is_struct(property.node()))
            && let Some(zero) = zero(property)
        {
            fields.insert(name.to_owned(), zero);
        }
    }
}

/// Replaces the empty lists of an object by null, as they are stored. Until managedFields are
/// updated the two differ.
pub fn forget_empty_lists(schema: Schema<'_>, object: &mut Value) {
    for (name, field) in schema
        .node()
        .held
        .into_iter()
        .flat_map(StructFields::written)
    {
        if field.zero == Zero::Written
            && let Some(list @ Value::Array(_)) = object.get_mut(name)
            && list.as_array().is_some_and(Vec::is_empty)
        {
            *list = Value::Null;
        }
    }
}

/// Whether kube-apiserver holds a value of this type as a struct, which is never omitted.
pub(crate) fn is_struct(node: &Node) -> bool {
    match node.ty {
        Type::Object => !is_map(node) && !node.preserve_unknown,
        Type::String => node.format.as_deref() == Some("date-time"),
        Type::Quantity => true,
        _ => false,
    }
}

/// The zero of a type as it is written; `None` where that is not known.
fn zero(schema: Schema<'_>) -> Option<Value> {
    let node = schema.node();
    Some(match (node.ty, node.format.as_deref()) {
        (Type::String, Some("date-time" | "byte")) | (Type::Array, _) => Value::Null,
        (Type::String, _) => "".into(),
        (Type::Integer | Type::IntOrString, _) => 0.into(),
        (Type::Boolean, _) => false.into(),
        (Type::Quantity, _) => "0".into(),
        (Type::Object, _) if is_map(node) => Value::Null,
        (Type::Object, _) if !node.preserve_unknown => {
            let mut fields = Map::new();
            write_zeros(schema, &mut fields);
            fields.into()
        }
        _ => return None,
    })
}

fn is_map(node: &Node) -> bool {
    node.additional.is_some() && node.properties.is_empty()
}

/// Whether a list or map is empty, and so absent. An empty struct is not: `emptyDir: {}` has a
/// meaning.
fn is_empty(node: &Node, value: &Value) -> bool {
    match value {
        Value::Array(items) => node.ty == Type::Array && items.is_empty(),
        Value::Object(map) => is_map(node) && map.is_empty(),
        _ => false,
    }
}

/// Whether a scalar is the zero of its type.
fn is_zero(node: &Node, value: &Value) -> bool {
    match (node.ty, value) {
        (Type::String, Value::String(text)) => text.is_empty(),
        (Type::Integer | Type::IntOrString, Value::Number(number)) => number.as_i64() == Some(0),
        (Type::Number, Value::Number(number)) => number.as_f64() == Some(0.0),
        (Type::Boolean, Value::Bool(set)) => !set,
        _ => false,
    }
}

/// Replaces null where a value cannot be absent, in a list or a map, by the zero of the type.
fn fill_null(node: &Node, value: &mut Value) {
    if !value.is_null() {
        return;
    }
    *value = match node.ty {
        Type::String if node.format.as_deref() != Some("date-time") => Value::from(""),
        Type::Integer | Type::IntOrString | Type::Number => Value::from(0),
        Type::Boolean => Value::Bool(false),
        Type::Quantity => Value::from("0"),
        Type::Object if !node.preserve_unknown => Value::Object(Map::new()),
        Type::Array => Value::Array(Vec::new()),
        _ => Value::Null,
    };
}
