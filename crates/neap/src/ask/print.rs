//! What all answers have in common.

use std::io::Write;

use serde::Serialize;
use serde_json::{Value, json};

use crate::exit::Failure;

/// Writes a text and ends its line.
pub(crate) fn text(out: &mut dyn Write, text: &str) -> Result<(), Failure> {
    writeln!(out, "{}", text.trim_end()).map_err(|error| Failure::output(&error))
}

/// Writes an answer as JSON, in the envelope that all of ours have.
pub(crate) fn json(
    out: &mut dyn Write,
    kind: &str,
    answer: &impl Serialize,
) -> Result<(), Failure> {
    let mut envelope = json!({"apiVersion": "neaptide.dev/v1alpha1", "kind": kind});
    if let (Value::Object(envelope), Ok(Value::Object(answer))) =
        (&mut envelope, serde_json::to_value(answer))
    {
        envelope.extend(answer);
    }
    text(out, &format!("{envelope:#}"))
}
