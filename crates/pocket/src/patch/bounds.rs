//! Bounds on the depth and size of patches and patched objects.
//!
//! Values are walked and dropped recursively, so depth is bounded by the stack.

use http::StatusCode;
use serde_json::Value;

use crate::status::{ApiError, Result};

/// Nesting of lists and maps in a patch and in a patched object, at most. It is what the JSON
/// parser accepts, so that a patched object can be read again.
pub const MAX_DEPTH: usize = 127;

/// Bytes that the copy operations of one JSON patch may add, at most.
pub(super) const MAX_COPIED: usize = 3 * 1024 * 1024;

/// Nesting of lists and maps; a scalar has none. Stops counting one past [`MAX_DEPTH`].
pub(super) fn depth(value: &Value) -> usize {
    fn walk(value: &Value, left: usize) -> usize {
        if left == 0 {
            return 0;
        }
        match value {
            Value::Array(items) => 1 + items.iter().map(|v| walk(v, left - 1)).max().unwrap_or(0),
            Value::Object(map) => 1 + map.values().map(|v| walk(v, left - 1)).max().unwrap_or(0),
            _ => 0,
        }
    }
    walk(value, MAX_DEPTH + 1)
}

/// Refuses a patch that is nested too deep.
pub(super) fn refuse_deep(patch: &Value) -> Result<()> {
    if depth(patch) > MAX_DEPTH {
        return Err(too_deep());
    }
    Ok(())
}

pub(super) fn too_deep() -> ApiError {
    ApiError::bad_request(format!(
        "the patch nests lists and maps deeper than {MAX_DEPTH} levels"
    ))
}

pub(super) fn too_large(why: &str) -> ApiError {
    ApiError::new(
        StatusCode::PAYLOAD_TOO_LARGE,
        "RequestEntityTooLarge",
        format!("Request entity is too large: {why}"),
    )
}

/// The approximate size of the value as JSON; escapes and exact widths of numbers are ignored.
pub(super) fn size(value: &Value) -> usize {
    match value {
        Value::Null | Value::Bool(_) => 5,
        Value::Number(_) => 8,
        Value::String(text) => text.len() + 2,
        Value::Array(items) => 2 + items.iter().map(|v| size(v) + 1).sum::<usize>(),
        Value::Object(map) => {
            2 + map
                .iter()
                .map(|(k, v)| k.len() + size(v) + 4)
                .sum::<usize>()
        }
    }
}
