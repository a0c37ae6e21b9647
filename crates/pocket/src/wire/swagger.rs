//! `/openapi/v2`: an empty document in the older form.
//!
//! Current clients read version 3. They fall back to version 2 for what version 3 does not contain,
//! such as an object whose definition is not installed. An empty document lets them report that;
//! without a document they fail with an unrelated error.

use bytes::Bytes;
use http::{HeaderMap, HeaderValue, Response, header::CONTENT_TYPE};
use serde_json::json;

use super::{Body, negotiate};

/// The protobuf form, which clients prefer. They request it with an `@`, which is not allowed in a
/// media type and which they refuse to read.
const PROTOBUF: &str = "application/com.github.proto-openapi.spec.v2.v1.0+protobuf";

/// The title in both forms.
const TITLE: &str = "Kubernetes";
const VERSION: &str = "v1.36";

/// The document in the requested form.
pub(super) fn respond(headers: &HeaderMap) -> Response<Body> {
    let protobuf = negotiate::accepted(headers).first().is_some_and(|range| {
        range
            .media
            .starts_with("application/com.github.proto-openapi")
    });
    let (body, content_type) = if protobuf {
        (message(), PROTOBUF)
    } else {
        let info = json!({"title": TITLE, "version": VERSION});
        let document = json!({"swagger": "2.0", "info": info, "paths": {}});
        (Bytes::from(document.to_string()), "application/json")
    };
    let mut response = Response::new(Body::full(body));
    let content_type = HeaderValue::from_static(content_type);
    response.headers_mut().insert(CONTENT_TYPE, content_type);
    response
}

/// `Document { 1: swagger, 2: Info { 1: title, 2: version }, 8: Paths {} }`
fn message() -> Bytes {
    let info = [field(1, TITLE.as_bytes()), field(2, VERSION.as_bytes())].concat();
    Bytes::from([field(1, b"2.0"), field(2, &info), field(8, b"")].concat())
}

/// A length-delimited field. Everything in this document is shorter than 128 bytes, so tag and
/// length take one byte each.
fn field(number: u8, value: &[u8]) -> Vec<u8> {
    let mut bytes = vec![number << 3 | 2, value.len() as u8];
    bytes.extend_from_slice(value);
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn message_says_what_it_is_and_nothing_else() {
        let expected = b"\x0a\x032.0\x12\x13\x0a\x0aKubernetes\x12\x05v1.36\x42\x00";
        assert_eq!(&message()[..], expected);
    }

    #[test]
    fn form_is_the_one_asked_for() {
        let mut headers = HeaderMap::new();
        let form = |headers: &HeaderMap| respond(headers).headers()[CONTENT_TYPE].clone();
        assert_eq!(form(&headers), "application/json");
        let asked = "application/com.github.proto-openapi.spec.v2@v1.0+protobuf";
        headers.insert(http::header::ACCEPT, HeaderValue::from_static(asked));
        assert_eq!(form(&headers), PROTOBUF);
    }
}
