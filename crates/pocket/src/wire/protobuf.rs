//! Request bodies in Kubernetes protobuf, decoded to the JSON of the same object.
//!
//! Clients send built-in kinds this way and do not fall back when refused. Custom resources are
//! never sent this way, and answers are always JSON, so there is no encoder.
//!
//! Decoding is driven by `data/protobuf.txt` (`descriptor`); no message has code of its own
//! except the few whose JSON is not an object (`special`). The result is what the same client would
//! have sent as JSON, without some artefacts of Go's encoder:
//!
//! - a field that is a pointer in Go is on the wire only if it was set, so it is kept even if zero
//!   (`replicas: 0`, `optional: false`, `emptyDir: {}`);
//! - any other field is on the wire always. Its zero is kept where Go's JSON shows it and the zero
//!   is a scalar, and is left out where the field is `omitempty`;
//! - an empty struct that is no pointer (`status: {}`, `resources: {}`, a zero time) is left out
//!   unless the schema requires the field.
//!
//! The generator decides this per field; here it is one mark, `descriptor::MessageField::keep`.
//!
//! The invariant: any bytes give an object or a `BadRequest`. Nesting is bounded, and nothing is
//! allocated by a length that the remaining bytes do not cover.

mod descriptor;
mod message;
mod reader;
mod special;
#[cfg(test)]
mod tests;
mod union;

use serde_json::{Map, Value};

use crate::status::{ApiError, Result};
use descriptor::{Descriptors, descriptors};
use message::Decoder;
use reader::FieldReader;

/// The content type of such bodies.
pub const CONTENT_TYPE: &str = "application/vnd.kubernetes.protobuf";

/// The prefix of every body.
pub(super) const MAGIC: &[u8] = b"k8s\0";

/// Why a body is invalid.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
enum Malformed {
    #[error("it does not start with the bytes of a Kubernetes object")]
    NoEnvelope,
    #[error("it ends in the middle of a field")]
    Truncated,
    #[error("a number is longer than 64 bits")]
    LongNumber,
    #[error("field {0} has a wire type that is not its own")]
    WireType(u32),
    #[error("field {0} has a wire type that Kubernetes does not use")]
    UnknownWireType(u32),
    #[error("it is nested deeper than {} messages", message::MAX_DEPTH)]
    TooDeep,
    #[error("{0} is not valid UTF-8")]
    NotText(Box<str>),
    #[error("{0} is not valid JSON")]
    NotJson(&'static str),
    #[error("{0} is out of range")]
    OutOfRange(&'static str),
    #[error("its content encoding {0:?} is not understood")]
    Encoding(Box<str>),
    #[error("its content type {0:?} is not understood")]
    ContentType(Box<str>),
    #[error("no kind {kind:?} is registered for version {version:?}")]
    UnknownKind { version: Box<str>, kind: Box<str> },
}

/// The outermost message, with the kind of the raw bytes.
#[derive(Debug, Default)]
struct Envelope<'a> {
    api_version: &'a str,
    kind: &'a str,
    raw: &'a [u8],
    content_encoding: &'a str,
    content_type: &'a str,
}

/// Decodes a request body. The object carries the apiVersion and kind that the body names, or
/// those of `expected` (apiVersion, kind) where it names none.
pub fn decode(body: &[u8], expected: Option<(&str, &str)>) -> Result<Value> {
    object(body, expected, 0).map_err(|why| {
        ApiError::bad_request(format!(
            "the body of the request could not be decoded: {why}"
        ))
    })
}

fn object(
    body: &[u8],
    expected: Option<(&str, &str)>,
    depth: usize,
) -> std::result::Result<Value, Malformed> {
    let mut envelope = Envelope::read(body)?;
    if let Some((version, kind)) = expected {
        if envelope.api_version.is_empty() {
            envelope.api_version = version;
        }
        if envelope.kind.is_empty() {
            envelope.kind = kind;
        }
    }
    if !envelope.content_encoding.is_empty() {
        return Err(Malformed::Encoding(envelope.content_encoding.into()));
    }
    match envelope.content_type {
        "" | CONTENT_TYPE => envelope.message(descriptors(), depth),
        "application/json" => special::json(envelope.raw, "the wrapped object"),
        other => Err(Malformed::ContentType(other.into())),
    }
}

impl<'a> Envelope<'a> {
    fn read(body: &'a [u8]) -> std::result::Result<Self, Malformed> {
        let wrapped = body.strip_prefix(MAGIC).ok_or(Malformed::NoEnvelope)?;
        let mut envelope = Self::default();
        let mut reader = FieldReader::new(wrapped);
        while let Some((number, payload)) = reader.next()? {
            match number {
                1 => envelope.read_type(payload.bytes(number)?)?,
                2 => envelope.raw = payload.bytes(number)?,
                3 => envelope.content_encoding = payload.text(number, "contentEncoding")?,
                4 => envelope.content_type = payload.text(number, "contentType")?,
                _ => {}
            }
        }
        Ok(envelope)
    }

    fn read_type(&mut self, bytes: &'a [u8]) -> std::result::Result<(), Malformed> {
        let mut reader = FieldReader::new(bytes);
        while let Some((number, payload)) = reader.next()? {
            match number {
                1 => self.api_version = payload.text(number, "apiVersion")?,
                2 => self.kind = payload.text(number, "kind")?,
                _ => {}
            }
        }
        Ok(())
    }

    fn message(
        &self,
        descriptors: &Descriptors,
        depth: usize,
    ) -> std::result::Result<Value, Malformed> {
        let id = descriptors
            .kind(self.api_version, self.kind)
            .ok_or_else(|| Malformed::UnknownKind {
                version: self.api_version.into(),
                kind: self.kind.into(),
            })?;
        let mut object = Map::new();
        object.insert("apiVersion".into(), self.api_version.into());
        object.insert("kind".into(), self.kind.into());
        Decoder { descriptors, depth }.message(id, self.raw, &mut object)?;
        Ok(Value::Object(object))
    }
}
