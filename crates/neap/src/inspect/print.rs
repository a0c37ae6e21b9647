//! Prints reports as text or as JSON.

use std::io::Write;

use serde::Serialize;
use serde_json::{Value, json};

use crate::exit::Failure;

/// Writes a text and a newline.
pub(crate) fn text(out: &mut dyn Write, text: &str) -> Result<(), Failure> {
    writeln!(out, "{}", text.trim_end()).map_err(|error| Failure::output(&error))
}

/// Writes a report as JSON, with the `apiVersion` and `kind` that all reports have.
pub(crate) fn json(
    out: &mut dyn Write,
    kind: &str,
    report: &impl Serialize,
) -> Result<(), Failure> {
    let mut envelope = json!({"apiVersion": "neaptide.dev/v1alpha1", "kind": kind});
    if let (Value::Object(envelope), Ok(Value::Object(report))) =
        (&mut envelope, serde_json::to_value(report))
    {
        envelope.extend(report);
    }
    text(out, &format!("{envelope:#}"))
}
