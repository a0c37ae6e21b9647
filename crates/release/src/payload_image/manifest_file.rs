//! The files of components: which count as manifests, what they must be, and how they are named in a payload.

use std::collections::HashSet;

use serde::Deserialize;
use serde_json::Value;

/// The folder of manifests in component images.
pub const FOLDER: &str = "manifests/";

/// A file of a component.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ManifestFile {
    /// Its name, without folders.
    pub name: String,
    /// Seconds since 1970.
    pub mtime: i64,
    /// Its content.
    pub content: Vec<u8>,
}

/// Why a file is no manifest.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// It is not YAML or JSON.
    #[error("it cannot be parsed: {0}")]
    Unreadable(String),
    /// A document is not an object.
    #[error("document {0} is not an object with fields")]
    NotAnObject(usize),
    /// A document has no kind or no version.
    #[error("document {document} has no {field}")]
    Incomplete {
        /// Which document, from 1 on.
        document: usize,
        /// The field.
        field: &'static str,
    },
}

/// Whether a name is that of a manifest.
pub fn is_manifest(name: &str) -> bool {
    let extension = name.rsplit_once('.').map(|(_, extension)| extension);
    matches!(extension, Some("json" | "yml" | "yaml"))
}

/// The documents of a manifest. Empty documents are left out.
pub fn documents(content: &[u8]) -> Result<Vec<Value>, Error> {
    let text =
        std::str::from_utf8(content).map_err(|error| Error::Unreadable(error.to_string()))?;
    if text.trim_start().starts_with('{') {
        let values = serde_json::Deserializer::from_str(text).into_iter::<Value>();
        if let Ok(values) = values.collect::<Result<Vec<_>, _>>() {
            return Ok(values);
        }
    }
    let values: Vec<Value> = serde_saphyr::from_multiple(text)
        .map_err(|error| Error::Unreadable(first_line(&error.to_string())))?;
    Ok(values
        .into_iter()
        .filter(|value| !value.is_null())
        .collect())
}

/// Checks that every document is an object with a kind and a version; at least one.
pub fn check(content: &[u8]) -> Result<(), Error> {
    let documents = documents(content)?;
    if documents.is_empty() {
        return Err(Error::NotAnObject(1));
    }
    for (document, value) in documents.iter().enumerate() {
        let document = document + 1;
        if !value.is_object() {
            return Err(Error::NotAnObject(document));
        }
        for field in ["kind", "apiVersion"] {
            let text = value[field].as_str().unwrap_or_default();
            if text.is_empty() {
                return Err(Error::Incomplete { document, field });
            }
        }
    }
    Ok(())
}

fn first_line(text: &str) -> String {
    text.lines().next().unwrap_or_default().to_owned()
}

/// The name of a component's file in a payload, without regard to other files.
pub fn name_in_payload(component: &str, name: &str) -> String {
    if name.starts_with("0000_") {
        name.to_owned()
    } else {
        format!("0000_50_{component}_{name}")
    }
}

/// Gives each name once: later ones get `_2`, `_3`, … before their extension.
#[derive(Debug, Default)]
pub struct Names(HashSet<String>);

impl Names {
    /// The name, or the next that is free.
    pub fn take(&mut self, name: String) -> String {
        if self.0.insert(name.clone()) {
            return name;
        }
        let (stem, extension) = match name.rfind('.') {
            Some(at) => name.split_at(at),
            None => (name.as_str(), ""),
        };
        let mut number = 2_u64;
        loop {
            let next = format!("{stem}_{number}{extension}");
            if self.0.insert(next.clone()) {
                return next;
            }
            number += 1;
        }
    }
}

/// An object as text of a manifest: `---` and YAML.
pub fn to_yaml(value: &Value) -> Result<String, Error> {
    let text =
        serde_saphyr::to_string(value).map_err(|error| Error::Unreadable(error.to_string()))?;
    let text = text.trim_end();
    Ok(format!("---\n{text}\n"))
}

/// The kind and version of an object.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct TypeOf {
    /// The kind.
    #[serde(default)]
    pub kind: String,
    /// Group and version.
    #[serde(default)]
    pub api_version: String,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_keep_their_place_in_the_order_and_are_given_once() {
        assert_eq!(
            name_in_payload("demo", "0000_30_demo_02.yaml"),
            "0000_30_demo_02.yaml"
        );
        assert_eq!(
            name_in_payload("demo", "00_ns.yaml"),
            "0000_50_demo_00_ns.yaml"
        );
        let mut names = Names::default();
        let mut take = |name: &str| names.take(name.to_owned());
        assert_eq!(
            [
                take("a.yaml"),
                take("a.yaml"),
                take("a_2.yaml"),
                take("a.yaml"),
                take("b"),
                take("b")
            ],
            ["a.yaml", "a_2.yaml", "a_2_2.yaml", "a_3.yaml", "b", "b_2"]
        );
    }

    #[test]
    fn every_document_must_have_a_kind_and_a_version() {
        let good = "kind: A\napiVersion: v1\n---\n---\nkind: B\napiVersion: v1\n";
        assert_eq!(check(good.as_bytes()), Ok(()));
        assert_eq!(check(br#"{"kind": "A", "apiVersion": "v1"}"#), Ok(()));
        let second = "kind: A\napiVersion: v1\n---\nkind: B\n";
        assert_eq!(
            check(second.as_bytes()),
            Err(Error::Incomplete {
                document: 2,
                field: "apiVersion"
            })
        );
        assert_eq!(
            check(b"kind: ''\napiVersion: v1\n"),
            Err(Error::Incomplete {
                document: 1,
                field: "kind"
            })
        );
        assert_eq!(check(b"- a\n"), Err(Error::NotAnObject(1)));
        assert_eq!(check(b""), Err(Error::NotAnObject(1)));
        assert!(matches!(check(b"a: [\n"), Err(Error::Unreadable(_))));
        assert!(matches!(check(&[0xff]), Err(Error::Unreadable(_))));
    }

    #[test]
    fn an_object_survives_being_written() {
        let value = serde_json::json!({"kind": "A", "data": {"on": "yes", "n": "012", "text": "a: b\n#c\n"}});
        let text = to_yaml(&value).unwrap();
        assert!(text.starts_with("---\n") && text.ends_with('\n'), "{text}");
        assert_eq!(documents(text.as_bytes()).unwrap(), [value]);
    }
}
