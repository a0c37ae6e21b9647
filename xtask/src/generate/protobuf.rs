//! The protobuf messages that the served kinds reach, as `data/protobuf.txt`.
//!
//! `inputs/protobuf.json` comes from `tests/reference/protobuf-fixtures` (`go run ./facts`), which
//! reads the Go types: only they say which fields are pointers and which are left out of JSON when
//! empty.
//!
//! The text has two kinds of lines:
//!
//! ```text
//! kind apps/v1 Deployment apps.v1.Deployment
//! apps.v1.Deployment 1:metadata:meta.v1.ObjectMeta 2:spec:apps.v1.DeploymentSpec
//! ```
//!
//! A field is `number:json-name:type`. In front of the type, `[]` is a list, `{}` a map with string
//! keys, `^` a struct whose fields belong to the one around it, and `!` says that a zero value is
//! written and not left out.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt::Write,
};

use anyhow::{Context, bail};
use serde_json::{Map, Value};

use super::{discovery::list, types};

const DELETE_OPTIONS: &str = "io.k8s.apimachinery.pkg.apis.meta.v1.DeleteOptions";

const HEADER: &str = "# Written by `cargo xtask generate`; see xtask/src/generate/protobuf.rs.\n";

/// The text of `data/protobuf.txt`.
pub(super) fn render(facts: &Value, schema: &Value, resources: &[Value]) -> anyhow::Result<String> {
    let messages = facts["messages"]
        .as_object()
        .context("protobuf.json has no messages")?;
    let schema = types::definitions(schema)?;
    let mut text = String::from(HEADER);
    let mut reached = BTreeSet::from([DELETE_OPTIONS]);
    for (version, kind) in types::kinds(resources) {
        // PodExecOptions and its like are query parameters and never a body.
        if kind.ends_with("Options") {
            continue;
        }
        let Some(name) = facts["kinds"][format!("{version}/{kind}")].as_str() else {
            bail!("protobuf.json lacks {version} {kind}");
        };
        let _ = writeln!(text, "kind {version} {kind} {}", short(name));
        reach(name, messages, &mut reached);
    }
    reach(DELETE_OPTIONS, messages, &mut reached);
    lines(&reached, messages, schema, &mut text)?;
    Ok(text)
}

fn reach<'a>(name: &'a str, messages: &'a Map<String, Value>, reached: &mut BTreeSet<&'a str>) {
    for field in list(&messages[name]) {
        let target = field["type"].as_str().unwrap_or_default();
        if messages.contains_key(target) && special(target).is_none() && reached.insert(target) {
            reach(target, messages, reached);
        }
    }
    reached.insert(name);
}

fn lines(
    reached: &BTreeSet<&str>,
    messages: &Map<String, Value>,
    schema: &Map<String, Value>,
    text: &mut String,
) -> anyhow::Result<()> {
    let mut shorts = BTreeMap::new();
    for name in reached {
        if let Some(other) = shorts.insert(short(name), name) {
            bail!("{other} and {name} have the same short name");
        }
        text.push_str(&short(name));
        for entry in list(&messages[*name]) {
            text.push_str(&field(entry, schema.get(*name)));
        }
        text.push('\n');
    }
    Ok(())
}

fn field(entry: &Value, schema: Option<&Value>) -> String {
    let is = |word: &str| entry[word] == true;
    let (name, target) = (
        entry["name"].as_str().unwrap_or_default(),
        entry["type"].as_str().unwrap_or_default(),
    );
    let marks = match () {
        () if is("inline") => "^",
        () if is("repeated") => "[]",
        () if is("map") => "{}",
        () if kept(entry, target, name, schema) => "!",
        () => "",
    };
    let word = special(target).map_or_else(|| short(target), Into::into);
    format!(" {}:{name}:{marks}{word}", entry["n"])
}

/// Whether the JSON of an object shows this field even if it is zero.
///
/// A pointer is written to the wire only when it is set, so its zero was meant. The other fields
/// are always written: those without `omitempty` show their zero in JSON too, and the rest do not.
/// An empty struct is noise unless the schema asks for the field.
fn kept(entry: &Value, target: &str, name: &str, schema: Option<&Value>) -> bool {
    let required = || {
        let required = schema.map(|schema| list(&schema["required"]));
        required.is_some_and(|names| names.iter().any(|required| required == name))
    };
    if entry["pointer"] == true {
        return true;
    }
    match special(target) {
        Some("quantity") => true,
        Some("int-or-string") => entry["omitempty"] != true,
        Some("time" | "micro-time") => false,
        _ if target.contains('.') => required(),
        _ => entry["omitempty"] != true,
    }
}

/// Types whose JSON is not the JSON of a message, by the word the decoder knows them under.
fn special(name: &str) -> Option<&'static str> {
    let (_, last) = name.rsplit_once('.')?;
    Some(match last {
        "Time" => "time",
        "MicroTime" => "micro-time",
        "Quantity" => "quantity",
        "IntOrString" => "int-or-string",
        "RawExtension" => "raw-object",
        "FieldsV1" | "JSON" => "raw-json",
        "ExtraValue" => "string-list",
        "JSONSchemaPropsOrArray" => "schema-or-list",
        "JSONSchemaPropsOrBool" => "schema-or-bool",
        "JSONSchemaPropsOrStringArray" => "schema-or-strings",
        _ => return None,
    })
}

/// `core.v1.Pod` for `io.k8s.api.core.v1.Pod`.
fn short(name: &str) -> String {
    let parts: Vec<&str> = name.split('.').collect();
    parts[parts.len().saturating_sub(3)..].join(".")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_zero_is_kept_where_json_shows_it() {
        let message = "io.k8s.api.core.v1.PodSpec";
        let table = [
            (json!({"type": "int32", "omitempty": true}), ":int32"),
            (
                json!({"type": "int32", "omitempty": true, "pointer": true}),
                ":!int32",
            ),
            (json!({"type": "int32"}), ":!int32"),
            (json!({"type": message}), ":core.v1.PodSpec"),
            (
                json!({"type": message, "pointer": true}),
                ":!core.v1.PodSpec",
            ),
            (
                json!({"type": message, "name": "asked"}),
                ":!core.v1.PodSpec",
            ),
            (
                json!({"type": message, "repeated": true}),
                ":[]core.v1.PodSpec",
            ),
            (json!({"type": "bytes", "map": true}), ":{}bytes"),
            (
                json!({"type": message, "inline": true}),
                ":^core.v1.PodSpec",
            ),
            (json!({"type": "x.y.Time"}), ":time"),
            (json!({"type": "x.y.Time", "pointer": true}), ":!time"),
            (
                json!({"type": "x.y.Quantity", "omitempty": true}),
                ":!quantity",
            ),
            (
                json!({"type": "x.y.IntOrString", "omitempty": true}),
                ":int-or-string",
            ),
        ];
        let schema = json!({"required": ["asked"]});
        for (entry, expected) in table {
            let text = field(&entry, Some(&schema));
            assert!(text.ends_with(expected), "{entry}: {text}");
        }
    }

    #[test]
    fn a_served_kind_without_facts_is_an_error() {
        let resources = [json!({"version": "v1", "plural": "ships", "kind": "Ship"})];
        let facts = json!({"kinds": {}, "messages": {DELETE_OPTIONS: []}});
        let schema = json!({"definitions": {}});
        assert!(render(&facts, &schema, &resources).is_err());
    }
}
