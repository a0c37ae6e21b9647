//! One version of one resource, with everything the machine asks about it.

use std::sync::Arc;

use bytes::{BufMut, Bytes, BytesMut};
use serde_json::{Value, json};

use crate::{
    crd,
    kinds::{self, NameRule, Role, Rules, Traits, scale::ScalePaths},
    rest::Verb,
    schema::{Schema, conform},
    status::{ApiError, Problems, Result},
    store::Object,
    table::Printer,
};

/// A resource: what all its versions have in common.
#[derive(Debug, Clone)]
pub struct Resource {
    /// API group, empty for the core group.
    pub group: String,
    /// Plural name, as in URLs.
    pub plural: String,
    /// Singular name.
    pub singular: String,
    /// Kind.
    pub kind: String,
    /// Kind of lists.
    pub list_kind: String,
    /// Short names for the command line.
    pub short_names: Vec<String>,
    /// Groups of resources, such as `all`.
    pub categories: Vec<String>,
    /// Whether objects live in namespaces.
    pub namespaced: bool,
    /// Where objects are stored.
    pub bucket: Arc<str>,
    /// `apiVersion` of stored objects.
    pub storage: String,
}

/// Something below an object.
#[derive(Debug, Clone)]
pub struct Subresource {
    /// Name in URLs.
    pub name: String,
    /// Group, version and kind of what it takes and gives.
    pub kind: (String, String, String),
    /// Verbs.
    pub verbs: Vec<String>,
}

/// Turns objects of one API into those of another that shares its storage.
#[derive(Debug, Clone, Copy)]
pub struct Codec {
    /// From what is stored to what is shown.
    pub show: fn(&mut Value),
    /// From what was sent to what is stored.
    pub store: fn(&mut Value),
}

/// Where the schema and the rules come from.
#[derive(Debug, Clone)]
pub enum Shape {
    /// From the table of kinds.
    BuiltIn {
        /// The published type.
        schema: Schema<'static>,
        /// The rules.
        rules: Rules,
        /// What the machine does for this kind alone.
        role: Role,
        /// Set where two APIs share one storage.
        codec: Option<Codec>,
    },
    /// From a definition.
    Custom {
        /// The definition.
        definition: Arc<crd::Definition>,
        /// Which of its versions.
        version: usize,
        /// Traits that follow from the definition.
        rules: Rules,
    },
}

/// One version of one resource.
#[derive(Debug, Clone)]
pub struct Served {
    /// The resource.
    pub resource: Arc<Resource>,
    /// Version name.
    pub version: String,
    /// `group/version`.
    pub api_version: String,
    /// Verbs of the main resource.
    pub verbs: Vec<String>,
    /// What is below.
    pub subresources: Vec<Subresource>,
    /// Schema and rules.
    pub shape: Shape,
}
