//! Normalizes values that two servers may choose differently, before responses are compared.
//!
//! A uid, a revision or an address becomes the number of the call whose response first contained
//! it. Two servers agree if they changed the same objects with the same calls: a write that changed
//! nothing on only one server shows, and so does an object that was replaced.

use std::{collections::HashMap, sync::LazyLock};

use regex::Regex;
use serde_json::Value;

use crate::{
    call::{Body, Call},
    generate::made_from,
};

/// Every mask, for the report.
pub const MASKS: [&str; 20] = [
    "uids: by the call that first showed them",
    "resourceVersion of objects: by the call that first showed it; of lists and bookmarks: presence",
    "times of this year: presence and format",
    "continue tokens: presence",
    "clusterIP and clusterIPs above 10.0.0.16, which servers draw, also in prose: presence",
    "node ports from 30086, which servers draw, also where prose calls them so: presence",
    "internalTrafficPolicy of services without an address, which the reference hides but for watchers that share an encoding",
    "the object that a refused patch made, which the refusal repeats",
    "the change that a refused update of a pod shows",
    "whether a refusal shows a node selector that was emptied as no map or as one with nothing in it, which are stored alike",
    "ages, addresses and node ports in cells of tables: presence",
    "descriptions of table columns, which are in our own words: presence",
    "the suffix of generated names, wherever they show: presence",
    "order of managedFields entries, which follows times",
    "whether a write is stored that changes nothing to be seen, if a second ended between the servers' looks at it",
    "order of conflicts and of problems of an applied configuration, which is that of a map, and what is told beside an undeclared field",
    "order of what is wrong with labels, annotations, selectors and data, which is that of a map",
    "order of finalizers in the answer to the delete of a namespace, which is that of a set",
    "namespaces that are on their way out, in lists: when their conditions and finalizers change and when they go is up to the namespace controller",
    "content of objects that the control plane makes by itself (kube-root-ca.crt, default ServiceAccounts)",
];

/// The labels of one server's own values.
#[derive(Debug, Default)]
pub struct Labels {
    seen: HashMap<(&'static str, String), usize>,
    /// Names that were generated from an unusual base, and their labels.
    made: Vec<(String, String)>,
    now: usize,
    /// Leaves compared and leaves masked, so far.
    pub compared: usize,
    pub masked: usize,
}

static UUID: LazyLock<Option<Regex>> = LazyLock::new(|| {
    Regex::new("[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}").ok()
});
static TIME: LazyLock<Option<Regex>> = LazyLock::new(|| {
    Regex::new(r"20[0-9]{2}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}(\.[0-9]+)?Z").ok()
});
/// Times in calls are long ago; a time of this year was set by a server.
#[expect(
    clippy::disallowed_methods,
    reason = "which year it is decides what a server may have said"
)]
static THIS_YEAR: LazyLock<String> =
    LazyLock::new(|| jiff::Timestamp::now().strftime("%Y-").to_string());
/// Prefixes are never used twice, so the suffix carries no information.
static GENERATED: LazyLock<Option<Regex>> = LazyLock::new(|| {
    Regex::new(r"\b([a-z]{3,4}-[0-9x]+-[0-9]+-|kube-api-access-)[bcdfghjklmnpqrstvwxz2456789]{5}\b")
        .ok()
});
static CELL: LazyLock<Option<Regex>> = LazyLock::new(|| {
    Regex::new(r"^[0-9]+[smh]([0-9]+[smh])?$|\b10\.0\.0\.[0-9]+\b|:3[0-9]{4}\b").ok()
});
/// Addresses and ports that servers assign to services, in prose.
static DRAWN: LazyLock<Option<Regex>> = LazyLock::new(|| {
    Regex::new(r"\b10\.0\.0\.([0-9]{1,3})\b|((?:^|nodePort: )(?:Duplicate value: |Invalid value: |\{(?:TCP|UDP|SCTP) ))(3[0-9]{4})\b").ok()
});
/// An emptied node selector, in a refusal that shows it.
const EMPTIED: &str = "Invalid value: {}: only additions to spec.nodeSelector";
const GONE: &str = "Invalid value: null: only additions to spec.nodeSelector";
/// The part of a refused pod update that shows the change.
static SHOWN: LazyLock<Option<Regex>> =
    LazyLock::new(|| Regex::new(r"(?s)(if it was previously negative\))(\n.*|\]$)").ok());
static REVISIONS: LazyLock<Option<Regex>> = LazyLock::new(|| {
    Regex::new(r"(?i)(resource ?version[^0-9\]}]{0,40}?\(?)([0-9]+)\)?|\(current: [0-9]+\)|\([0-9]{2,}\)|: [0-9]{3,}, current").ok()
});

impl Labels {
    /// Starts the response to a call.
    pub fn begin(&mut self, call: usize) {
        self.now = call;
    }

    /// Records a generated name, from the response to a call with only a base. With usual bases the
    /// form of the name is enough.
    pub fn learn_name(&mut self, call: &Call, answer: &Value) {
        let Body::Json(body) = &call.body else {
            return;
        };
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let (base, given) = (
            text(&body["metadata"]["generateName"]),
            text(&body["metadata"]["name"]),
        );
        if call.method != "POST" || base.is_empty() || !given.is_empty() {
            return;
        }
        for name in [&answer["metadata"]["name"], &answer["details"]["name"]].map(text) {
            let usual = GENERATED
                .as_ref()
                .is_some_and(|usual| usual.is_match(&name));
            if !usual && made_from(&base, &name) {
                let shown = format!("{}<generated>", &name[..name.len() - 5]);
                self.made.push((name, shown));
            }
        }
    }

    fn label(&mut self, what: &'static str, value: &str) -> String {
        self.masked += 1;
        let now = self.now;
        let first = *self.seen.entry((what, value.to_owned())).or_insert(now);
        format!("<{what}@{first}>")
    }

    fn hidden(&mut self, what: &str) -> Value {
        self.masked += 1;
        format!("<{what}>").into()
    }

    /// The normalized response.
    pub fn mask(&mut self, value: &Value) -> Value {
        self.walk("", "", value)
    }

    fn walk(&mut self, parent: &str, key: &str, value: &Value) -> Value {
        match value {
            Value::Object(fields) => {
                if is_created_by_control_plane(fields) {
                    return Value::String(format!("<own {}>", fields["metadata"]["name"]));
                }
                let list = fields.contains_key("items") || fields.contains_key("rows");
                let bookmark = fields.get("type").is_some_and(|ty| ty == "BOOKMARK");
                let mut out = serde_json::Map::new();
                for (name, item) in fields {
                    if key == "spec" && name == "internalTrafficPolicy" && parent == "object" {
                        // Only objects of watch events have this key.
                        if fields.get("type").is_some_and(|ty| ty == "ExternalName") {
                            continue;
                        }
                    }
                    let shown = if list && name == "metadata" {
                        Self::list_metadata(item)
                    } else if bookmark && name == "object" {
                        Self::bookmark(item)
                    } else {
                        self.walk(key, name, item)
                    };
                    out.insert(self.plain_text(name), shown);
                }
                Value::Object(out)
            }
            Value::Array(items) => {
                let mut out: Vec<_> = items.iter().map(|item| self.walk(key, key, item)).collect();
                if key == "managedFields" {
                    out.sort_by_cached_key(entry_order);
                }
                Value::Array(out)
            }
            Value::String(text) => self.text(parent, key, text),
            Value::Number(number) if key == "nodePort" || key == "healthCheckNodePort" => {
                match number.as_u64() {
                    Some(30086..) => self.hidden("port"),
                    _ => value.clone(),
                }
            }
            _ => {
                self.compared += 1;
                value.clone()
            }
        }
    }

    /// The revision of a bookmark depends on the last write of any client.
    fn bookmark(object: &Value) -> Value {
        let mut object = object.clone();
        object["metadata"] = Self::list_metadata(&object["metadata"]);
        object
    }

    fn list_metadata(value: &Value) -> Value {
        let Some(fields) = value.as_object() else {
            return value.clone();
        };
        let masked = |name: &str| matches!(name, "resourceVersion" | "continue");
        let fields = fields.iter().map(|(name, item)| {
            let shown = if masked(name) {
                "<set>".into()
            } else {
                item.clone()
            };
            (name.clone(), shown)
        });
        Value::Object(fields.collect())
    }

    fn text(&mut self, parent: &str, key: &str, text: &str) -> Value {
        let digits = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
        match key {
            "resourceVersion" if digits && parent == "metadata" => {
                return self.label("revision", text).into();
            }
            "clusterIP" | "clusterIPs" if is_drawn(text) => return self.hidden("address"),
            "description" if parent == "columnDefinitions" => return self.hidden("description"),
            "continue" if text.len() > 20 => return "<set>".into(),
            "cells" => return self.cell(text),
            _ => {}
        }
        self.compared += 1;
        self.plain_text(text).into()
    }

    /// Cells of a table have no field names; values chosen by servers are recognised by their form.
    fn cell(&mut self, text: &str) -> Value {
        self.compared += 1;
        let Some(cell) = CELL.as_ref() else {
            return text.into();
        };
        let masked = cell.replace_all(text, |found: &regex::Captures<'_>| match &found[0] {
            address if address.starts_with("10.") => "<address>".to_owned(),
            port if port.starts_with(':') => ":<port>".to_owned(),
            _ => "<age>".to_owned(),
        });
        self.plain_text(&masked).into()
    }

    /// Masks values in prose.
    pub fn plain_text(&mut self, text: &str) -> String {
        let mut text = text.to_owned();
        if text.len() >= 20 {
            if text.contains(EMPTIED) {
                text = text.replace(EMPTIED, GONE);
            }
            if let Some(shown) = SHOWN
                .as_ref()
                .filter(|_| text.contains("may not change fields"))
            {
                text = shown.replace_all(&text, "$1").into_owned();
            }
            if let Some(uuid) = UUID.as_ref() {
                let found: Vec<_> = uuid
                    .find_iter(&text)
                    .map(|m| m.as_str().to_owned())
                    .collect();
                // Calls contain one that no server chooses.
                for uid in found
                    .into_iter()
                    .filter(|uid| !uid.starts_with("00000000-"))
                {
                    let label = self.label("uid", &uid);
                    text = text.replace(&uid, &label);
                }
            }
            if let Some(time) = TIME.as_ref() {
                let near = |found: &regex::Captures<'_>| {
                    let micros = found.get(1).map_or("", |_| ".fraction");
                    if found[0].starts_with(&*THIS_YEAR) {
                        format!("<time{micros}>")
                    } else {
                        found[0].to_owned()
                    }
                };
                text = time.replace_all(&text, near).into_owned();
            }
            if let Some(drawn) = DRAWN.as_ref() {
                text = drawn.replace_all(&text, without_drawn).into_owned();
            }
            if let Some(revisions) = REVISIONS.as_ref() {
                text = revisions.replace_all(&text, "${1}<revision>").into_owned();
            }
        }
        if let Some(generated) = GENERATED.as_ref() {
            text = generated.replace_all(&text, "${1}<generated>").into_owned();
        }
        for (name, shown) in &self.made {
            if text.contains(name) {
                text = text.replace(name, shown);
            }
        }
        text
    }
}

fn without_drawn(found: &regex::Captures<'_>) -> String {
    let number = |group| {
        let digits = found
            .get(group)
            .map(|digits| digits.as_str().parse::<u32>());
        digits.and_then(Result::ok)
    };
    match (found.get(2), number(1), number(3)) {
        (Some(before), _, Some(30086..)) => format!("{}<port>", before.as_str()),
        (None, Some(0 | 17..), _) => "<address>".to_owned(),
        _ => found[0].to_owned(),
    }
}

/// Objects that the control plane creates by itself.
fn is_created_by_control_plane(fields: &serde_json::Map<String, Value>) -> bool {
    let Some(name) = fields
        .get("metadata")
        .and_then(|metadata| metadata["name"].as_str())
    else {
        return false;
    };
    name == "kube-root-ca.crt" && !fields.contains_key("code")
}

/// Addresses that servers assign are above those that calls request.
fn is_drawn(address: &str) -> bool {
    let last = address
        .strip_prefix("10.0.0.")
        .and_then(|last| last.parse::<u8>().ok());
    last.is_some_and(|last| last > 16 || last == 0)
}

fn entry_order(entry: &Value) -> String {
    ["operation", "manager", "subresource", "apiVersion"]
        .map(|field| entry[field].as_str().unwrap_or_default())
        .join("/")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// A response to the second call, after the first has shown revision 7.
    fn masked(value: &Value) -> Value {
        let mut labels = Labels::default();
        labels.begin(1);
        labels.mask(&json!({"metadata": {"resourceVersion": "7"}}));
        labels.begin(2);
        labels.mask(value)
    }

    #[test]
    fn only_an_emptied_node_selector_is_shown_as_none() {
        let told = |shown: &str| {
            let text = format!(
                "spec.nodeSelector: Invalid value: {shown}: only additions to spec.nodeSelector are allowed"
            );
            Labels::default().plain_text(&text)
        };
        assert_eq!(told("{}"), told("null"));
        assert_ne!(told(r#"{"a":"b"}"#), told("null"));
    }

    #[test]
    fn a_name_that_was_made_from_any_base_is_masked_wherever_it_shows() {
        for (base, name, answer) in [
            ("1", "1fg7w6", json!({"metadata": {"name": "1fg7w6"}})),
            (
                "a.b.",
                "a.b.wptr4",
                json!({"details": {"name": "a.b.wptr4"}}),
            ),
        ] {
            let call = Call {
                method: "POST".into(),
                path: "/x".into(),
                accept: String::new(),
                content_type: String::new(),
                body: Body::Json(json!({"metadata": {"generateName": base, "name": ""}})),
                about: crate::call::About::default(),
            };
            let mut labels = Labels::default();
            let told = format!("secrets \"{name}\" not found");
            assert_eq!(labels.plain_text(&told), told);
            labels.learn_name(&call, &answer);
            let masked = format!("secrets \"{base}<generated>\" not found");
            assert_eq!(labels.plain_text(&told), masked);
        }
    }

    #[test]
    fn revisions_of_lists_and_bookmarks_are_left_to_servers_and_nothing_else_is() {
        let event = |ty: &str, metadata: Value| json!({"type": ty, "object": {"kind": "Pod", "metadata": metadata}});
        let list = |metadata: Value| json!({"metadata": metadata, "items": []});
        let revision = |revision: &str| json!({"resourceVersion": revision});
        let end =
            json!({"resourceVersion": "7", "annotations": {"k8s.io/initial-events-end": "true"}});
        let counted = |left: u32| json!({"resourceVersion": "7", "remainingItemCount": left});
        for (theirs, ours, agree) in [
            (
                event("BOOKMARK", revision("7")),
                event("BOOKMARK", revision("9")),
                true,
            ),
            (
                event("BOOKMARK", revision("7")),
                event("BOOKMARK", json!({})),
                false,
            ),
            (
                event("BOOKMARK", revision("7")),
                event("BOOKMARK", end),
                false,
            ),
            (
                event("ADDED", revision("8")),
                event("ADDED", revision("9")),
                true,
            ),
            (
                event("ADDED", revision("7")),
                event("ADDED", revision("9")),
                false,
            ),
            (list(revision("7")), list(revision("9")), true),
            (list(revision("7")), list(json!({})), false),
            (list(counted(1)), list(counted(2)), false),
        ] {
            assert_eq!(masked(&theirs) == masked(&ours), agree, "{theirs} {ours}");
        }
    }
}
