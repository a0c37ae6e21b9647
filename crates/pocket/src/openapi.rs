//! Reduced OpenAPI v3: the schemas of the served kinds and one bare `patch` operation for each.
//!
//! That is all that clients read: `kubectl apply`, `diff`, `edit` and `explain` look up a kind's
//! schema, which query parameters its `patch` takes, and whether it takes a strategic merge patch.
//!
//! The index needs only [`GroupVersion::hash`], which reads a version's inputs without rendering
//! it, so that documents can be rendered lazily. Clients cache documents on disk under the hash: it
//! changes with the kinds, their schemas and the release.

mod operation;
mod schemas;
#[cfg(test)]
mod tests;

use std::sync::LazyLock;

use serde_json::{Map, Value, json};

use crate::digest::Digest;

/// A published kind.
#[derive(Debug, Clone, Copy)]
pub struct Published<'a> {
    /// Plural resource name.
    pub plural: &'a str,
    pub kind: &'a str,
    /// Whether its objects live in namespaces.
    pub namespaced: bool,
    /// Whether its objects can be patched: kinds that are answered and never stored cannot.
    pub patched: bool,
    pub schema: SchemaOrigin<'a>,
}

/// The source of a kind's schema.
#[derive(Debug, Clone, Copy)]
pub enum SchemaOrigin<'a> {
    /// A built-in kind: [`crate::schema::definitions`].
    Builtin,
    /// A custom resource: its `openAPIV3Schema`.
    Custom(&'a Value),
}

/// One version of a group with the kinds it serves.
#[derive(Debug, Clone, Copy)]
pub struct GroupVersion<'a> {
    /// API group, empty for the core group.
    pub group: &'a str,
    /// API version.
    pub version: &'a str,
    pub kinds: &'a [Published<'a>],
}

// The documents of built-in kinds change only with the program: its version and its types.
static RELEASE: LazyLock<Digest> = LazyLock::new(|| {
    Digest::of(env!("CARGO_PKG_VERSION")).with(include_bytes!("../data/types.json"))
});

impl GroupVersion<'_> {
    /// `api/v1` or `apis/GROUP/VERSION`: the document's name in the index.
    pub fn path(&self) -> String {
        if self.group.is_empty() {
            format!("api/{}", self.version)
        } else {
            format!("apis/{}/{}", self.group, self.version)
        }
    }

    /// The hash of the document, without rendering it.
    pub fn hash(&self) -> String {
        let mut digest = RELEASE.with(self.path());
        for kind in self.kinds {
            let facts = format!("\0{}\0{}\0{}\0", kind.plural, kind.kind, kind.namespaced);
            digest = digest.with(facts);
            if let SchemaOrigin::Custom(schema) = kind.schema {
                // Writing to a digest cannot fail, and a Value always serializes.
                let _ = serde_json::to_writer(&mut digest, schema);
            }
        }
        digest.to_string()
    }

    pub fn document(&self) -> Value {
        let mut paths = Map::new();
        let mut schemas = schemas::Collector::default();
        for kind in self.kinds {
            if kind.patched {
                paths.insert(
                    operation::path(self, kind),
                    operation::path_item(self, kind),
                );
            }
            schemas.add(self, kind);
        }
        // Built by hand, because `json!` would copy the schemas.
        let mut document = json!({
            "openapi": "3.0.0",
            "info": {"title": "Kubernetes", "version": "v1.36"},
            "components": {},
        });
        document["paths"] = Value::Object(paths);
        document["components"]["schemas"] = Value::Object(schemas.finish());
        document
    }
}

/// `/openapi/v3`: the index of the documents. Takes each document's path and hash.
pub fn index(documents: impl IntoIterator<Item = (String, String)>) -> Value {
    let entry = |(path, hash): (String, String)| {
        let url = format!("/openapi/v3/{path}?hash={hash}");
        (path, json!({"serverRelativeURL": url}))
    };
    let paths: Map<String, Value> = documents.into_iter().map(entry).collect();
    json!({"paths": paths})
}
