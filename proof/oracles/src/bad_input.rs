//! Requests that a server must refuse without harm, and the form of a proper refusal.
//!
//! The same attempts are made in process and over a socket. They work on a ConfigMap `x` in the
//! namespace `default`, which each of them must leave unchanged.

mod bodies;
mod definitions;
mod patches;
mod paths;

use http::Method;
use serde_json::{Value, json};

pub use bodies::{malformed, unacceptable};
pub use definitions::{broken_rules, expensive_rule};
pub use patches::{growing, hostile};
pub use paths::{invalid_options, unknown_paths};

const MAPS: &str = "/api/v1/namespaces/default/configmaps";
const MAP: &str = "/api/v1/namespaces/default/configmaps/x";
const JSON: &str = "application/json";
const MERGE: &str = "application/merge-patch+json";
/// Bytes of a refusal's message; no refusal needs more.
const MAX_MESSAGE_LENGTH: usize = 64 << 10;

/// A request.
#[derive(Debug, Clone)]
pub struct Attempt {
    pub method: Method,
    /// Path and query.
    pub path: String,
    pub content_type: &'static str,
    pub body: Vec<u8>,
    /// The accepted status codes.
    pub codes: &'static [u16],
    /// Words of which the message of a 422 must contain one; none if the list is empty.
    pub words: &'static [&'static str],
}

impl Attempt {
    fn new(method: Method, path: impl Into<String>, codes: &'static [u16]) -> Self {
        Self {
            method,
            path: path.into(),
            content_type: JSON,
            body: Vec::new(),
            codes,
            words: &[],
        }
    }

    fn with(mut self, content_type: &'static str, body: impl Into<Vec<u8>>) -> Self {
        self.content_type = content_type;
        self.body = body.into();
        self
    }

    /// Checks the answer; the error describes what is wrong with it.
    pub fn judge(&self, status: u16, answer: &Value) -> Result<(), String> {
        let wrong = |what: &str| Err(format!("{self}: {what}: {status} {answer:.300}"));
        if !self.codes.contains(&status) {
            return wrong("not the code that was expected");
        }
        if status < 400 {
            return Ok(());
        }
        if answer["kind"] != "Status" || answer["code"] != status {
            return wrong("not a Status with the code of the answer");
        }
        let filled = |key: &str| answer[key].as_str().is_some_and(|text| !text.is_empty());
        // A failure for which the API has no reason has none.
        let named = status == 500 || filled("reason");
        if !named || !filled("message") {
            return wrong("no reason or no message");
        }
        let message = answer["message"].as_str().unwrap_or_default();
        if message.len() >= MAX_MESSAGE_LENGTH {
            return wrong("far too many words");
        }
        let explains = self.words.is_empty() || self.words.iter().any(|w| message.contains(w));
        if status == 422 && !explains {
            return wrong("not the words that were expected");
        }
        Ok(())
    }
}

impl std::fmt::Display for Attempt {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let path: String = self.path.chars().take(120).collect();
        let body = &self.body[..self.body.len().min(60)];
        let body = String::from_utf8_lossy(body);
        let (method, content_type) = (&self.method, self.content_type);
        write!(f, "{method} {path} {content_type} {body:?}")
    }
}

/// The request that creates the object which must stay unchanged.
pub fn create_bystander() -> Attempt {
    let map = json!({"metadata": {"name": "x"}, "data": {"a": "1"}});
    Attempt::new(Method::POST, MAPS, &[201]).with(JSON, map.to_string())
}

/// The request that reads that object.
pub fn read_bystander() -> Attempt {
    Attempt::new(Method::GET, MAP, &[200])
}

/// Checks that the object is unchanged.
pub fn check_bystander(status: u16, map: &Value) -> Result<(), String> {
    if status == 200 && map["data"] == json!({"a": "1"}) {
        return Ok(());
    }
    Err(format!(
        "another client no longer sees what was there: {status} {map:.300}"
    ))
}

pub fn all() -> Vec<Attempt> {
    [
        malformed(),
        unacceptable(),
        invalid_options(),
        hostile(),
        growing(),
        broken_rules(),
        expensive_rule(),
        unknown_paths(),
    ]
    .concat()
}

fn nested(open: &str, close: &str, depth: usize) -> String {
    open.repeat(depth) + "1" + &close.repeat(depth)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refusal_is_a_status_that_says_why() {
        let attempt = Attempt::new(Method::GET, MAP, &[400]);
        let proper = json!({"kind": "Status", "code": 400, "reason": "BadRequest", "message": "m"});
        assert_eq!(attempt.judge(400, &proper), Ok(()));
        assert!(attempt.judge(500, &proper).is_err());
        for (key, value) in [
            ("kind", json!("ConfigMap")),
            ("code", json!(500)),
            ("reason", json!("")),
            ("message", Value::Null),
            ("message", json!("m".repeat(MAX_MESSAGE_LENGTH))),
        ] {
            let mut improper = proper.clone();
            improper[key] = value;
            assert!(attempt.judge(400, &improper).is_err(), "{key}");
        }
    }

    #[test]
    fn the_list_is_as_long_as_it_was() {
        assert!(all().len() >= 80, "{}", all().len());
    }
}
