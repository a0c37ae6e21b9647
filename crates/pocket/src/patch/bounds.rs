//! How deep and how large a patch may make an object.
//!
//! Values are walked and dropped recursively, so depth is a matter of the stack and not of taste.

use http::StatusCode;
use serde_json::Value;

use crate::status::{ApiError, Result};

/// The deepest nesting of lists and maps in a patch and in a patched object. It is what the JSON
/// reader accepts, so that what a patch makes can be read again.
pub const MAX_DEPTH: usize = 127;

/// The most bytes that the copy operations of one JSON patch may add.
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

/// 413.
pub(super) fn too_large(why: &str) -> ApiError {
    ApiError::new(
        StatusCode::PAYLOAD_TOO_LARGE,
        "RequestEntityTooLarge",
        format!("Request entity is too large: {why}"),
    )
}

/// About how many bytes the value takes as JSON; escapes and exact widths of numbers are not
/// looked at.
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
