//! Prints reports as text, JSON or YAML. Text for people is escaped here, once for all commands.

use std::io::Write;

use serde::Serialize;
use serde_json::{Value, json};

use crate::{
    cli::DataFormat,
    exit::{Exit, Failure, chain},
    printable::{printable, printable_line},
};

/// Writes a text for people and a newline; nothing for an empty text.
pub(crate) fn text(out: &mut dyn Write, text: &str) -> Result<(), Failure> {
    raw(out, &printable(text))
}

/// Writes one line for people; nothing for an empty one.
pub(crate) fn line(out: &mut dyn Write, text: &str) -> Result<(), Failure> {
    raw(out, &printable_line(text))
}

/// Writes a document for programs and a newline; nothing for an empty one.
pub(crate) fn raw(out: &mut dyn Write, text: &str) -> Result<(), Failure> {
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
    raw(out, &document(format, kind, report)?)
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_for_people_are_escaped_and_documents_for_programs_are_not() {
        let mut out = Vec::new();
        text(&mut out, "a\u{1b}[2J\nb\n").unwrap();
        line(&mut out, "c\nd").unwrap();
        data(
            &mut out,
            DataFormat::Json,
            "Test",
            &json!({"name": "\u{1b}\u{9b}"}),
        )
        .unwrap();
        let out = String::from_utf8(out).unwrap();
        let document = out.strip_prefix("a\\u{1b}[2J\nb\nc\\nd\n").unwrap();
        let report: Value = serde_json::from_str(document).unwrap();
        assert_eq!(report["name"], "\u{1b}\u{9b}");
    }
}
