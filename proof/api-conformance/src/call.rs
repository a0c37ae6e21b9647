//! A request before it is known which server it goes to.
//!
//! Values that servers choose themselves (uids, revisions, continue tokens, generated names,
//! addresses) are named by the response they were in: `⟦12:/metadata/uid⟧` stands for the uid in
//! this server's response to request 12. So one call becomes two requests with the same meaning,
//! and a recorded call can be repeated against servers that choose other values.

use std::collections::HashMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;

const OPEN: char = '⟦';
const CLOSE: char = '⟧';

/// The responses of one server that later calls may refer to.
pub type Captures = HashMap<usize, Value>;

/// A request for both servers.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Call {
    pub method: String,
    /// Path and query; may refer to captures.
    pub path: String,
    /// The `Accept` header.
    pub accept: String,
    /// The `Content-Type` header; none if empty.
    pub content_type: String,
    /// May refer to captures.
    pub body: Body,
    /// What the call is about, for the report.
    pub about: About,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Body {
    None,
    /// Sent unchanged.
    Text(String),
    /// Sent as JSON, which is YAML as well.
    Json(Value),
}

/// What a call is about.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct About {
    /// The kind, by name.
    pub kind: String,
    /// The verb, with the patch type and the subresource.
    pub verb: String,
    /// The namespace and name of the object, if there is one; may refer to captures.
    pub object: Option<(String, String)>,
}

impl Call {
    /// Whether it is a dry run. Servers ignore the query of a delete that has options in its body.
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

/// A reference to a part of a captured response.
pub fn capture(number: usize, pointer: &str) -> String {
    format!("{OPEN}{number}:{pointer}{CLOSE}")
}

/// Replaces references by values of this server's responses.
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

/// The same in every string of a value. A string that is only a reference becomes the value that it
/// refers to, of any type; a field whose reference has no value is omitted.
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
