//! JSON patch (RFC 6902): a list of operations, all or nothing.
//!
//! The operations are those of the `json-patch` crate. Added here are the bounds, the API's errors,
//! and one behaviour of the API server that clients rely on: an absent field of a map is null. So
//! `test` with `null` passes, which is how "only if there are no finalizers yet" is written,
//! `replace` adds and `copy` copies null.

use json_patch::{
    AddOperation, CopyOperation, MoveOperation, PatchOperation, RemoveOperation, ReplaceOperation,
    TestOperation,
    jsonptr::{Pointer, PointerBuf, Token, assign::Assign, resolve::Resolve},
    patch_unsafe,
};
use serde_json::Value;

use super::{
    bounds::{MAX_COPIED, MAX_DEPTH, depth, size, too_deep, too_large},
    unprocessable,
};
use crate::{
    schema::go::json_type,
    status::{ApiError, Result},
};

#[cfg(test)]
pub(super) mod tests;

/// Operations of one patch, at most.
pub const MAX_OPERATIONS: usize = 10_000;
/// Entries of lists that one patch may move, at most: an insertion at the front moves all of them.
const MAX_SHIFTED: usize = 1 << 25;

/// The members of an operation that are text.
const NAMES: [&str; 3] = ["op", "path", "from"];

/// The live object after all operations of the patch.
pub fn apply(live: Value, patch: Value) -> Result<Value> {
    let operations = operations(patch)?;
    let mut document = PatchedDocument {
        depth: depth(&live),
        value: live,
        copied: 0,
        shifted: 0,
    };
    for mut operation in operations {
        document.settle(&mut operation);
        document.run(&operation)?;
    }
    Ok(document.value)
}

/// The checks of a patch whose fields are not validated before it is applied.
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
        json_type(found)
    )))
}

fn operations(patch: Value) -> Result<Vec<PatchOperation>> {
    let Value::Array(list) = &patch else {
        return Err(undecodable(json_type(&patch), "[]handlers.jsonPatchOp"));
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
        return Err(undecodable(json_type(item), "handlers.jsonPatchOp"));
    }
    for (item, name) in list.iter().flat_map(|item| NAMES.map(|name| (item, name))) {
        if let Some(other) = item.get(name).filter(|v| !v.is_string() && !v.is_null()) {
            return Err(ApiError::bad_request(format!(
                "error decoding patch: json: cannot unmarshal {} into Go struct field jsonPatchOp.{name} of type string",
                json_type(other)
            )));
        }
    }
    serde_json::from_value(with_values(patch)).map_err(|_| unprocessable())
}

/// Sets absent values to null.
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

/// A position in a list of this length, counted from the front.
fn position(text: &str, length: usize) -> Option<usize> {
    let number: i64 = text.parse().ok()?;
    let length = i64::try_from(length).ok()?;
    let number = if number < 0 { number + length } else { number };
    usize::try_from(number).ok()
}

/// The document between two operations.
struct PatchedDocument {
    value: Value,
    /// An upper bound of the nesting: measured once and then estimated, because measuring the
    /// document at every move would make a patch cost operations times size.
    depth: usize,
    /// Bytes added by copies so far.
    copied: usize,
    /// Entries of lists that insertions and removals have moved so far, at most.
    shifted: usize,
}

impl PatchedDocument {
    /// Normalizes positions in lists: kube-apiserver accepts `01` and `+1` for 1, and counts
    /// negative ones from the end.
    fn settle(&self, operation: &mut PatchOperation) {
        let room = matches!(operation, PatchOperation::Add(_));
        match operation {
            PatchOperation::Add(AddOperation { path, .. })
            | PatchOperation::Test(TestOperation { path, .. })
            | PatchOperation::Remove(RemoveOperation { path })
            | PatchOperation::Replace(ReplaceOperation { path, .. }) => self.count(path, room),
            PatchOperation::Move(MoveOperation { from, path })
            | PatchOperation::Copy(CopyOperation { from, path }) => {
                self.count(from, false);
                self.count(path, true);
            }
        }
    }

    /// With `room`, the path may also lead to the end of the list, for an insertion.
    fn count(&self, path: &mut PointerBuf, room: bool) {
        let plain = |token: &Token<'_>| {
            let text = token.encoded();
            !matches!(text.as_bytes(), [b'+' | b'-' | b'0', _, ..])
        };
        if path.tokens().all(|token| plain(&token)) {
            return;
        }
        let (mut settled, last) = (PointerBuf::new(), path.count());
        for (at, token) in path.tokens().enumerate() {
            let length = match self.value.resolve(&settled) {
                Ok(Value::Array(items)) => items.len() + usize::from(room && at + 1 == last),
                _ => 0,
            };
            match position(token.encoded(), length) {
                Some(position) if length > 0 => settled.push_back(position),
                _ => settled.push_back(token),
            }
        }
        *path = settled;
    }

    fn run(&mut self, operation: &PatchOperation) -> Result<()> {
        match operation {
            PatchOperation::Add(op) => self.count_shift(&op.path)?,
            PatchOperation::Remove(op) => self.count_shift(&op.path)?,
            PatchOperation::Copy(op) => self.count_shift(&op.path)?,
            PatchOperation::Move(op) => {
                self.count_shift(&op.from)?;
                self.count_shift(&op.path)?;
            }
            PatchOperation::Test(_) | PatchOperation::Replace(_) => {}
        }
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

    /// Whether the path leads to an absent field of a map.
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

    /// Counts the entries behind an insertion or a removal: each may cost as much as the list is long.
    fn count_shift(&mut self, path: &Pointer) -> Result<()> {
        let parent = path.parent().map(|parent| self.value.resolve(parent));
        let Some(Ok(Value::Array(items))) = parent else {
            return Ok(());
        };
        let place = path.last().and_then(|token| token.encoded().parse().ok());
        self.shifted += items.len().saturating_sub(place.unwrap_or(items.len()));
        if self.shifted > MAX_SHIFTED {
            return Err(too_large(&format!(
                "the operations of the JSON patch move more than {MAX_SHIFTED} entries of lists"
            )));
        }
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
