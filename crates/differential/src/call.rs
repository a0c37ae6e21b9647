//! A request before it is known which server it goes to.
//!
//! What servers choose themselves (uids, revisions, continue tokens, generated names, addresses) is
//! named by the answer it was in: `⟦12:/metadata/uid⟧` stands for the uid in this server's answer
//! to the request numbered 12. That makes one call two requests that mean the same, and makes a
//! recorded call repeatable against servers that choose anew.

use std::collections::HashMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;

const OPEN: char = '⟦';
const CLOSE: char = '⟧';

/// The answers of one server that later calls may name.
pub type Captures = HashMap<usize, Value>;

/// One request for both servers.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Call {
    /// The HTTP method.
    pub method: String,
    /// Path and query; may name captures.
    pub path: String,
    /// The `Accept` header.
    pub accept: String,
    /// The `Content-Type` header; none if empty.
    pub content_type: String,
    /// The body; may name captures.
    pub body: Body,
    /// What the call is about, for counting.
    pub about: About,
}

/// The body of a call.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Body {
    /// No body.
    None,
    /// Sent as it is.
    Text(String),
    /// Sent as JSON, which is YAML as well.
    Json(Value),
}

/// What a call is about.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct About {
    /// The kind, by name.
    pub kind: String,
    /// The verb, with the patch language and the subresource.
    pub verb: String,
    /// The namespace and name of the object, if it is about one; may name captures.
    pub object: Option<(String, String)>,
}

impl Call {
    /// Whether it asks to change nothing. A delete that has options in its body has them all there:
    /// servers do not look at its query then.
    pub fn is_dry_run(&self) -> bool {
        match &self.body {
            Body::Json(options) if self.method == "DELETE" => {
                let asked = options["dryRun"].as_array();
                asked.is_some_and(|asked| !asked.is_empty())
            }
            _ => self.path.contains("dryRun"),
        }
    }
}

/// A reference to part of a captured answer.
pub fn capture(number: usize, pointer: &str) -> String {
    format!("{OPEN}{number}:{pointer}{CLOSE}")
}

/// Fills in what this server answered before.
pub fn fill_text(text: &str, captures: &Captures) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, reference, after)) = split(rest) {
        out.push_str(before);
        if let Some(Value::String(value)) = look_up(reference, captures) {
            out.push_str(value);
        }
        rest = after;
    }
    out.push_str(rest);
    out
}

/// The same in every string of a value. A string that is nothing but a reference becomes what it
/// names, whatever its type; a field is left out if there is no such thing.
pub fn fill(value: &Value, captures: &Captures) -> Option<Value> {
    match value {
        Value::String(text) => match split(text) {
            None => Some(value.clone()),
            Some(("", reference, "")) => look_up(reference, captures).cloned(),
            Some(_) => Some(fill_text(text, captures).into()),
        },
        Value::Array(items) => Some(
            items
                .iter()
                .filter_map(|item| fill(item, captures))
                .collect(),
        ),
        Value::Object(fields) => Some(
            fields
                .iter()
                .filter_map(|(key, item)| Some((key.clone(), fill(item, captures)?)))
                .collect(),
        ),
        _ => Some(value.clone()),
    }
}

fn split(text: &str) -> Option<(&str, &str, &str)> {
    let (before, rest) = text.split_once(OPEN)?;
    let (reference, after) = rest.split_once(CLOSE)?;
    Some((before, reference, after))
}

fn look_up<'a>(reference: &str, captures: &'a Captures) -> Option<&'a Value> {
    let (number, pointer) = reference.split_once(':')?;
    captures.get(&number.parse().ok()?)?.pointer(pointer)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn options_in_the_body_of_a_delete_hide_those_in_its_query() {
        let dry = json!({"dryRun": ["All"]});
        for (method, query, body, is_dry) in [
            ("DELETE", "dryRun=All", Body::None, true),
            ("DELETE", "dryRun=All", Body::Json(json!({})), false),
            ("DELETE", "", Body::Json(dry.clone()), true),
            ("PUT", "", Body::Json(dry), false),
            ("PUT", "dryRun=All", Body::Json(json!({})), true),
        ] {
            let call = Call {
                method: method.into(),
                path: format!("/x?{query}"),
                accept: String::new(),
                content_type: String::new(),
                body,
                about: About::default(),
            };
            assert_eq!(call.is_dry_run(), is_dry, "{call:?}");
        }
    }

    #[test]
    fn each_server_gets_its_own_values() {
        let captures = Captures::from([(3, json!({"metadata": {"uid": "u", "n": 7}}))]);
        let uid = capture(3, "/metadata/uid");
        assert_eq!(fill_text(&format!("/x?u={uid}&y"), &captures), "/x?u=u&y");
        let body = json!({"a": uid, "b": [capture(3, "/metadata/n")], "c": capture(4, "/x")});
        assert_eq!(fill(&body, &captures), Some(json!({"a": "u", "b": [7]})));
    }
}
