//! Bodies that are no objects, too large, or of an unknown type.

use http::Method;
use serde_json::json;

use super::{Attempt, JSON, MAP, MAPS, MERGE, nested};

const YAML: &str = "application/yaml";
const PROTOBUF: &str = "application/vnd.kubernetes.protobuf";

/// Bodies that do not parse, nest without end, or grow when they are expanded.
pub fn malformed() -> Vec<Attempt> {
    let deep = format!("{{\"data\":{}}}", nested("{\"a\":", "}", 20_000));
    let wide = format!("{{\"data\":{}}}", nested("[", "]", 500_000));
    let infinite = b"{\"metadata\":{\"name\":\"y\"},\"data\":{\"a\":1e999}}";
    let bodies: [(&str, Vec<u8>); 17] = [
        (JSON, b"{".to_vec()),
        (JSON, b"{\"metadata\":{\"name\":\"y\"}} trailing".to_vec()),
        (JSON, b"\xff\xfe\x00".to_vec()),
        (JSON, b"[]".to_vec()),
        (JSON, b"null".to_vec()),
        (JSON, b"\"text\"".to_vec()),
        (JSON, b"{\"metadata\": 7}".to_vec()),
        (JSON, infinite.to_vec()),
        (JSON, deep.into_bytes()),
        (JSON, wide.into_bytes()),
        (YAML, b"a: [".to_vec()),
        (YAML, b"\t- :\n  - {".to_vec()),
        (YAML, bomb().into_bytes()),
        (YAML, nested("[", "]", 100_000).into_bytes()),
        (PROTOBUF, b"k8s\0".to_vec()),
        (PROTOBUF, b"not protobuf at all".to_vec()),
        (PROTOBUF, [b"k8s\0".as_slice(), &[0xff; 64]].concat()),
    ];
    let attempts = bodies.into_iter().map(|(content_type, body)| {
        Attempt::new(Method::POST, MAPS, &[400, 422]).with(content_type, body)
    });
    attempts.collect()
}

/// Aliases of aliases, which would expand to billions of words.
fn bomb() -> String {
    let mut bomb = "a: &a [x, x, x, x, x, x, x, x, x]\n".to_owned();
    for letter in b'b'..=b'k' {
        let (this, previous) = (letter as char, (letter - 1) as char);
        let nine = vec![format!("*{previous}"); 9].join(",");
        bomb.extend([this.to_string(), format!(": &{this} [{nine}]\n")]);
    }
    bomb
}

/// Bodies that are too large or of an unknown type.
pub fn unacceptable() -> Vec<Attempt> {
    let padding = "x".repeat((3 << 20) + 1);
    let large = json!({"metadata": {"name": "y"}, "data": {"a": padding}}).to_string();
    let mut attempts = vec![
        Attempt::new(Method::POST, MAPS, &[413]).with(JSON, large.clone()),
        Attempt::new(Method::PUT, MAP, &[413]).with(JSON, large.clone()),
        Attempt::new(Method::PATCH, MAP, &[413]).with(MERGE, large),
    ];
    for unknown in ["text/plain", "application/xml", "application/cbor", "a/b/c"] {
        for (method, path) in [(Method::POST, MAPS), (Method::PATCH, MAP)] {
            attempts.push(Attempt::new(method, path, &[415]).with(unknown, "{}"));
        }
    }
    attempts
}
