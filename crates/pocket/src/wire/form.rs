//! Errors for bodies that are not objects, with kube-apiserver's messages.

use std::fmt::Write;

use serde_json::Value;

use crate::{
    rest::{Payload, Served, Verb},
    schema::{conform, go::json_type},
    status::{ApiError, Result},
};

/// The message for a truncated body.
pub(super) const ENDED: &str = "unexpected end of JSON input";

/// Bytes of a body that an error shows.
const SHOWN_BYTES: usize = 30;
/// Bytes of a body that an error repeats where kube-apiserver repeats everything: a body can have
/// megabytes, and errors are stored, logged and shown.
const MAX_REPEATED_BYTES: usize = 10 << 10;

/// The message for invalid JSON.
pub(super) fn parse_error(why: &str) -> String {
    format!("couldn't get version/kind; json parse error: {why}")
}

/// 400 for a body that is no object of this kind.
pub(super) fn unreadable(served: &Served, body: &[u8], why: &str) -> ApiError {
    ApiError::bad_request(format!(
        "the object provided is unrecognized (must be of type {}): {why} ({})",
        served.resource.kind,
        shown(body)
    ))
}

/// The handling of a patch, which decides the error for invalid JSON.
#[derive(Clone, Copy)]
pub(super) enum Patch {
    /// A JSON or merge patch whose fields are validated.
    Strict,
    /// A merge patch whose fields are not validated.
    LenientMerge,
    /// Any other.
    Plain,
}

impl Patch {
    pub(super) fn of(content_type: &str, lenient: bool) -> Self {
        match content_type {
            "application/strategic-merge-patch+json" => Self::Plain,
            "application/merge-patch+json" if lenient => Self::LenientMerge,
            _ if lenient => Self::Plain,
            _ => Self::Strict,
        }
    }

    /// Whether fields are not validated.
    pub(super) fn is_lenient(self) -> bool {
        !matches!(self, Self::Strict)
    }

    /// A patch that is not JSON; the error is reported once the object is known to exist.
    pub(super) fn undecodable(self, why: &str) -> Payload {
        let why = why.rsplit("json parse error: ").next().unwrap_or(why);
        let problem = match self {
            Self::Strict => format!("error decoding patch: {why}"),
            Self::LenientMerge => "Invalid JSON Patch".to_owned(),
            Self::Plain => why.to_owned(),
        };
        Payload {
            problem: Some(problem),
            ..Payload::default()
        }
    }
}

/// Whether the body of a write has a supported content type: if not, its options are not validated.
pub(super) fn is_readable(verb: Verb, content_type: &str, custom: bool) -> bool {
    match verb {
        Verb::Create => matches!(
            content_type,
            "" | "application/json" | "application/yaml" | super::protobuf::CONTENT_TYPE
        ),
        Verb::Patch => {
            content_type.contains("patch+") && !(custom && content_type.contains("strategic"))
        }
        _ => true,
    }
}

/// 400 for a method that no custom resource supports; for a built-in one it is 405.
pub(super) fn misplaced(served: &Served, method: &http::Method, error: ApiError) -> ApiError {
    match method.as_str() {
        "PUT" if served.is_custom() => ApiError::bad_request("name must be provided"),
        _ => error,
    }
}

/// Refuses a body that is no object, and a custom object without apiVersion and kind.
pub(super) fn check(served: &Served, body: &[u8], value: &Value, lenient: bool) -> Result<()> {
    let found = match value {
        Value::Object(fields) => {
            for field in ["apiVersion", "kind"] {
                let is_odd = |value: &&Value| !value.is_null() && !value.is_string();
                if let Some(found) = fields.get(field).filter(is_odd).map(json_type) {
                    let why = format!(
                        "json: cannot unmarshal {found} into Go struct field .{field} of type string"
                    );
                    return Err(unreadable(served, body, &parse_error(&why)));
                }
            }
            let kind = fields.get("kind").and_then(Value::as_str);
            return match kind.filter(|kind| !kind.is_empty()) {
                None if served.is_custom() => Err(unnamed(served, body, lenient)),
                _ => Ok(()),
            };
        }
        Value::Null if served.is_custom() => return Err(unnamed(served, body, lenient)),
        // Null counts as an object without fields.
        Value::Null => return Ok(()),
        other => json_type(other),
    };
    let why = format!(
        "json: cannot unmarshal {found} into Go value of type struct {{ APIVersion string \"json:\\\"apiVersion,omitempty\\\"\"; Kind string \"json:\\\"kind,omitempty\\\"\" }}"
    );
    Err(unreadable(served, body, &parse_error(&why)))
}

/// The error for a custom object without a kind; its text differs when fields are not validated,
/// since another decoder then meets it first.
fn unnamed(served: &Served, body: &[u8], lenient: bool) -> ApiError {
    let why = format!("Object 'Kind' is missing in '{}'", repeated(body));
    if lenient {
        let (kind, version) = (&served.resource.kind, &served.api_version);
        return conform::unreadable(kind, version, &why);
    }
    unreadable(served, body, &why)
}

/// A body as text, truncated.
fn repeated(body: &[u8]) -> String {
    let text = String::from_utf8_lossy(&body[..body.len().min(MAX_REPEATED_BYTES)]);
    let rest = if body.len() > MAX_REPEATED_BYTES {
        " ..."
    } else {
        ""
    };
    format!("{text}{rest}")
}

/// The beginning of a body: as text if it begins like an object, else as bytes.
fn shown(body: &[u8]) -> String {
    let cut = &body[..body.len().min(SHOWN_BYTES)];
    let rest = if body.len() > SHOWN_BYTES { " ..." } else { "" };
    match body.first() {
        None => "<empty>".to_owned(),
        Some(b'{') => format!("{}{rest}", String::from_utf8_lossy(cut)),
        Some(_) => {
            let bytes = cut.iter().fold(String::new(), |mut out, byte| {
                let _ = write!(out, "{byte:02x}");
                out
            });
            format!("{bytes}{rest}")
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_large_body_is_not_repeated_whole() {
        assert_eq!(
            repeated(&[b'a'; MAX_REPEATED_BYTES]).len(),
            MAX_REPEATED_BYTES
        );
        assert_eq!(repeated(&vec![b'a'; 3 << 20]).len(), MAX_REPEATED_BYTES + 4);
    }

    #[test]
    fn only_the_beginning_of_a_body_is_shown() {
        assert_eq!(shown(b""), "<empty>");
        assert_eq!(shown(b"{"), "{");
        assert_eq!(shown(b"[]"), "5b5d");
        let long = format!("{{{}", "a".repeat(40));
        assert_eq!(shown(long.as_bytes()), format!("{{{} ...", "a".repeat(29)));
    }
}
