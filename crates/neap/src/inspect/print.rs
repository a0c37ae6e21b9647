//! Prints reports as text, JSON or YAML.

use std::io::Write;

use serde::Serialize;
use serde_json::{Value, json};

use crate::{
    cli::DataFormat,
    exit::{Exit, Failure, chain},
};

/// Writes a text and a newline; nothing for an empty text.
pub(crate) fn text(out: &mut dyn Write, text: &str) -> Result<(), Failure> {
    let text = text.trim_end();
    if text.is_empty() {
        return Ok(());
    }
    let written = writeln!(out, "{text}").and_then(|()| out.flush());
    written.map_err(|error| Failure::output(&error))
}

/// Writes a report for programs, with the `apiVersion` and `kind` that all reports have.
pub(crate) fn data(
    out: &mut dyn Write,
    format: DataFormat,
    kind: &str,
    report: &impl Serialize,
) -> Result<(), Failure> {
    text(out, &document(format, kind, report)?)
}

/// A report for programs, as a text.
pub(crate) fn document(
    format: DataFormat,
    kind: &str,
    report: &impl Serialize,
) -> Result<String, Failure> {
    let mut envelope = json!({"apiVersion": "neaptide.dev/v1alpha1", "kind": kind});
    if let (Value::Object(envelope), Ok(Value::Object(report))) =
        (&mut envelope, serde_json::to_value(report))
    {
        envelope.extend(report);
    }
    match format {
        DataFormat::Json => Ok(format!("{envelope:#}")),
        DataFormat::Yaml => yaml(&envelope),
    }
}

/// A value as YAML.
pub(crate) fn yaml(value: &Value) -> Result<String, Failure> {
    serde_saphyr::to_string(value).map_err(|error| {
        let what = "the report cannot be printed as YAML";
        Failure::new("NT-CLI-0006", Exit::Failed, what, &chain(&error)).remedy("use -o json")
    })
}
