//! Bodies that are not even the form of an object, refused in the reference's words.

use std::fmt::Write;

use serde_json::Value;

use crate::{
    rest::{Payload, Served, Verb},
    schema::{conform, go::json_type},
    status::{ApiError, Result},
};

/// What is said of a body that ends too early.
pub(super) const ENDED: &str = "unexpected end of JSON input";

/// How much of a body a refusal shows.
const SHOWN: usize = 30;
/// How much it repeats where others repeat everything: a body has megabytes, and what is said of it
/// is kept, logged and shown.
const REPEATED: usize = 10 << 10;

/// What is said of a body that is no JSON.
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

/// The form of a patch, which decides what is said of one that is no JSON.
#[derive(Clone, Copy)]
pub(super) enum Patch {
    /// A JSON or merge patch of which every field is looked at.
    Strict,
    /// A merge patch of which nobody asks what its fields are.
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

    /// Nobody asks what the fields are.
    pub(super) fn is_lenient(self) -> bool {
        !matches!(self, Self::Strict)
    }

    /// A patch that is no JSON, which is said once it is known that there is something to patch.
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

/// Whether the body of a write can be read at all: where it cannot, nothing is said of its options.
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

/// 400 for what no custom resource can be asked; of a built-in one it is 405.
pub(super) fn misplaced(served: &Served, method: &http::Method, error: ApiError) -> ApiError {
    match method.as_str() {
        "PUT" if served.is_custom() => ApiError::bad_request("name must be provided"),
        _ => error,
    }
}

/// Refuses what is no object, and a custom object that does not say what it is.
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
        // Nothing is as good as an object without fields.
        Value::Null => return Ok(()),
        other => json_type(other),
    };
    let why = format!(
        "json: cannot unmarshal {found} into Go value of type struct {{ APIVersion string \"json:\\\"apiVersion,omitempty\\\"\"; Kind string \"json:\\\"kind,omitempty\\\"\" }}"
    );
    Err(unreadable(served, body, &parse_error(&why)))
}

/// What is said of a custom object without a kind; in other words where nobody asks what its fields
/// are, since another reader then meets it first.
fn unnamed(served: &Served, body: &[u8], lenient: bool) -> ApiError {
    let why = format!("Object 'Kind' is missing in '{}'", repeated(body));
    if lenient {
        let (kind, version) = (&served.resource.kind, &served.api_version);
        return conform::unreadable(kind, version, &why);
    }
    unreadable(served, body, &why)
}

/// A body as text, as far as it is repeated.
fn repeated(body: &[u8]) -> String {
    let text = String::from_utf8_lossy(&body[..body.len().min(REPEATED)]);
    let rest = if body.len() > REPEATED { " ..." } else { "" };
    format!("{text}{rest}")
}

/// The beginning of a body: as text if it begins like an object, else as bytes.
fn shown(body: &[u8]) -> String {
    let cut = &body[..body.len().min(SHOWN)];
    let rest = if body.len() > SHOWN { " ..." } else { "" };
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
        assert_eq!(repeated(&[b'a'; REPEATED]).len(), REPEATED);
        assert_eq!(repeated(&vec![b'a'; 3 << 20]).len(), REPEATED + 4);
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
