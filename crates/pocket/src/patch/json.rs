//! JSON patch (RFC 6902): a list of operations, all or nothing.
//!
//! The operations are those of the `json-patch` crate. Added here are the bounds, the API's
//! refusals, and one habit of the API server that clients rely on: a field of a map that is absent
//! is null. So `test` with `null` passes, which is how "only if there are no finalizers yet" is
//! written, `replace` adds and `copy` brings null.

use json_patch::{
    AddOperation, PatchOperation,
    jsonptr::{Pointer, PointerBuf, assign::Assign, resolve::Resolve},
    patch_unsafe,
};
use serde_json::Value;

use super::{
    bounds::{MAX_COPIED, MAX_DEPTH, depth, size, too_deep, too_large},
    unprocessable,
};
use crate::status::{ApiError, Result};

#[cfg(test)]
pub(super) mod tests;

/// The most operations of one patch.
pub const MAX_OPERATIONS: usize = 10_000;

/// The members of an operation that are text.
const NAMES: [&str; 3] = ["op", "path", "from"];

/// The live object after all operations of the patch.
pub fn apply(live: Value, patch: Value) -> Result<Value> {
    let operations = operations(patch)?;
    let mut document = Document {
        depth: depth(&live),
        value: live,
        copied: 0,
    };
    for operation in &operations {
        document.run(operation)?;
    }
    Ok(document.value)
}

/// What is said of a patch that nobody reads before it is carried out.
pub fn check_lenient(patch: &Value) -> Result<()> {
    let (found, ty) = match patch {
        Value::Array(items) => {
            let odd = items
                .iter()
                .find(|item| !item.is_object() && !item.is_null());
            let Some(odd) = odd else { return Ok(()) };
            (odd, "jsonpatch.Operation")
        }
        other => (other, "jsonpatch.Patch"),
    };
    Err(ApiError::bad_request(format!(
        "json: cannot unmarshal {} into Go value of type {ty}",
        type_of(found)
    )))
}

fn operations(patch: Value) -> Result<Vec<PatchOperation>> {
    let Value::Array(list) = &patch else {
        return Err(undecodable(type_of(&patch), "[]handlers.jsonPatchOp"));
    };
    if list.len() > MAX_OPERATIONS {
        return Err(too_large(&format!(
            "The allowed maximum operations in a JSON patch is {MAX_OPERATIONS}, got {}",
            list.len()
        )));
    }
    if let Some(item) = list
        .iter()
        .find(|item| !item.is_object() && !item.is_null())
    {
        return Err(undecodable(type_of(item), "handlers.jsonPatchOp"));
    }
    for (item, name) in list.iter().flat_map(|item| NAMES.map(|name| (item, name))) {
        if let Some(other) = item.get(name).filter(|v| !v.is_string() && !v.is_null()) {
            return Err(ApiError::bad_request(format!(
                "error decoding patch: json: cannot unmarshal {} into Go struct field jsonPatchOp.{name} of type string",
                type_of(other)
            )));
        }
    }
    serde_json::from_value(with_values(patch)).map_err(|_| unprocessable())
}

/// What brings no value brings null.
fn with_values(mut patch: Value) -> Value {
    for operation in patch.as_array_mut().into_iter().flatten() {
        if let Value::Object(fields) = operation
            && matches!(
                fields.get("op").and_then(Value::as_str),
                Some("add" | "replace" | "test")
            )
        {
            fields.entry("value").or_insert(Value::Null);
        }
    }
    patch
}

fn undecodable(found: &str, ty: &str) -> ApiError {
    ApiError::bad_request(format!(
        "error decoding patch: json: cannot unmarshal {found} into Go value of type {ty}"
    ))
}

fn type_of(value: &Value) -> &'static str {
    match value {
        Value::String(_) => "string",
        Value::Number(_) => "number",
        Value::Bool(_) => "bool",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
        Value::Null => "null",
    }
}

/// The document between two operations.
struct Document {
    value: Value,
    /// Not less than the true nesting: measured once and then reckoned, because measuring the
    /// document at every move would make a patch cost operations times size.
    depth: usize,
    /// Bytes added by copies so far.
    copied: usize,
}

impl Document {
    fn run(&mut self, operation: &PatchOperation) -> Result<()> {
        let plain = self.without_zeros(operation);
        let operation = plain.as_ref().unwrap_or(operation);
        match operation {
            PatchOperation::Test(test) => return self.test(&test.path, &test.value),
            PatchOperation::Add(op) => self.deepen(op.path.count() + depth(&op.value))?,
            PatchOperation::Replace(op) => {
                self.deepen(op.path.count() + depth(&op.value))?;
                self.fill(&op.path);
            }
            PatchOperation::Move(op) => self.relocate(&op.from, &op.path)?,
            PatchOperation::Copy(op) => {
                self.relocate(&op.from, &op.path)?;
                self.count_copy(&op.from)?;
                if self.is_absent(&op.from) {
                    return self.add_null(&op.path);
                }
            }
            PatchOperation::Remove(_) => {}
        }
        let one = std::slice::from_ref(operation);
        patch_unsafe(&mut self.value, one).map_err(|_| unprocessable())
    }

    /// The operation with the places in lists written as numbers are: `02` is `2`.
    fn without_zeros(&self, operation: &PatchOperation) -> Option<PatchOperation> {
        let from = match operation {
            PatchOperation::Move(op) => self.plain_path(&op.from),
            PatchOperation::Copy(op) => self.plain_path(&op.from),
            _ => None,
        };
        let path = self.plain_path(operation.path());
        if path.is_none() && from.is_none() {
            return None;
        }
        let mut plain = operation.clone();
        let (to, of) = match &mut plain {
            PatchOperation::Add(op) => (&mut op.path, None),
            PatchOperation::Replace(op) => (&mut op.path, None),
            PatchOperation::Test(op) => (&mut op.path, None),
            PatchOperation::Remove(op) => (&mut op.path, None),
            PatchOperation::Move(op) => (&mut op.path, Some(&mut op.from)),
            PatchOperation::Copy(op) => (&mut op.path, Some(&mut op.from)),
        };
        for (place, found) in [(Some(to), path), (of, from)] {
            if let (Some(place), Some(found)) = (place, found) {
                *place = found;
            }
        }
        Some(plain)
    }

    fn plain_path(&self, path: &Pointer) -> Option<PointerBuf> {
        let padded = |token: &str| {
            token.len() > 1 && token.starts_with('0') && token.bytes().all(|b| b.is_ascii_digit())
        };
        if !path.tokens().any(|token| padded(&token.decoded())) {
            return None;
        }
        let mut plain = PointerBuf::new();
        for token in path.tokens() {
            let name = token.decoded();
            let in_list = matches!(self.value.resolve(&plain), Ok(Value::Array(_)));
            if in_list && padded(&name) {
                let number = name.trim_start_matches('0');
                plain.push_back(if number.is_empty() { "0" } else { number });
            } else {
                plain.push_back(token);
            }
        }
        Some(plain)
    }

    fn test(&self, path: &Pointer, expected: &Value) -> Result<()> {
        let found = self.value.resolve(path).ok();
        let passes = match found {
            Some(found) => found == expected,
            None => expected.is_null() && self.is_absent(path),
        };
        if passes {
            return Ok(());
        }
        Err(unprocessable())
    }

    /// Whether the path leads to a field that a map does not have.
    fn is_absent(&self, path: &Pointer) -> bool {
        let parent = path.parent().map(|parent| self.value.resolve(parent));
        matches!(parent, Some(Ok(Value::Object(_)))) && self.value.resolve(path).is_err()
    }

    fn fill(&mut self, path: &Pointer) {
        if self.is_absent(path) {
            let _ = self.value.assign(path, Value::Null);
        }
    }

    fn add_null(&mut self, path: &Pointer) -> Result<()> {
        let operation = PatchOperation::Add(AddOperation {
            path: path.to_owned(),
            value: Value::Null,
        });
        let one = std::slice::from_ref(&operation);
        patch_unsafe(&mut self.value, one).map_err(|_| unprocessable())
    }

    fn relocate(&mut self, from: &Pointer, to: &Pointer) -> Result<()> {
        self.deepen(to.count() + self.depth.saturating_sub(from.count()))
    }

    fn deepen(&mut self, depth: usize) -> Result<()> {
        if depth > MAX_DEPTH {
            return Err(too_deep());
        }
        self.depth = self.depth.max(depth);
        Ok(())
    }

    fn count_copy(&mut self, from: &Pointer) -> Result<()> {
        let Ok(source) = self.value.resolve(from) else {
            return Ok(());
        };
        self.copied += size(source);
        if self.copied > MAX_COPIED {
            return Err(too_large(&format!(
                "the copy operations of the JSON patch add more than {MAX_COPIED} bytes"
            )));
        }
        Ok(())
    }
}
