//! The check that every line of every watch stream passes.

use serde_json::Value;

use super::{Failure, server::wrong};

/// Checks what holds for every line whatever the scenario: one JSON document of a known type, with
/// an object. The oracles check whole streams at the end.
pub(crate) fn observe_stream_line(stream: &str, line: &str) -> Result<(), Failure> {
    let event: Value = serde_json::from_str(line).map_err(wrong)?;
    let known = ["ADDED", "MODIFIED", "DELETED", "BOOKMARK", "ERROR"];
    let kind = event["type"].as_str().unwrap_or_default();
    if known.contains(&kind) && event["object"].is_object() {
        return Ok(());
    }
    Err(Failure::new(format!("{stream}: not a watch event: {line}")))
}
