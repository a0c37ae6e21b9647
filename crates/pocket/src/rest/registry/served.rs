//! One version of one resource, with everything the machine asks about it.

mod refusals;
mod rules;
mod showing;

use std::sync::Arc;

use crate::{
    crd,
    discovery::Subresource,
    kinds::{Alias, Role, Rules, Traits},
    rest::Verb,
    schema::Schema,
    status::{ApiError, Result},
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

impl Resource {
    /// Its names, as a definition has them.
    pub fn names(&self) -> crd::Names {
        crd::Names {
            plural: self.plural.clone(),
            singular: self.singular.clone(),
            kind: self.kind.clone(),
            list_kind: self.list_kind.clone(),
            short_names: self.short_names.clone(),
            categories: self.categories.clone(),
        }
    }
}

/// Where the schema and the rules come from.
#[derive(Debug, Clone)]
#[expect(
    clippy::large_enum_variant,
    reason = "made once for each kind and shared; a box would be followed on every request"
)]
pub enum Shape {
    /// From the table of kinds.
    BuiltIn {
        /// The published type of this version.
        schema: Schema<'static>,
        /// The published type of what is stored.
        stored: Schema<'static>,
        /// Set where two APIs share one storage.
        alias: Option<Alias>,
    },
    /// From a definition.
    Custom {
        /// The definition.
        definition: Arc<crd::Definition>,
        /// Which of its versions this is.
        version: usize,
        /// Which of its versions is stored.
        stored: usize,
        /// Whether its schema fills anything in, so that stored objects may lack something.
        has_defaults: bool,
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
    /// Schema, and what stands behind it.
    pub shape: Shape,
    /// Rules of the kind.
    pub rules: Rules,
    /// What the machine does for this kind alone.
    pub role: Role,
}

impl Served {
    /// The rules of the kind.
    pub fn rules(&self) -> &Rules {
        &self.rules
    }

    /// How the machine treats the kind.
    pub fn traits(&self) -> &Traits {
        &self.rules.traits
    }

    /// Whether a definition made it.
    pub fn is_custom(&self) -> bool {
        matches!(self.shape, Shape::Custom { .. })
    }

    /// Whether objects are stored under another name or in another form.
    pub fn is_alias(&self) -> bool {
        matches!(self.shape, Shape::BuiltIn { alias: Some(_), .. })
    }

    /// Whether objects are stored in this version.
    pub fn is_storage(&self) -> bool {
        self.api_version == self.resource.storage && !self.is_review()
    }

    /// Whether objects are answered and never stored.
    pub fn is_review(&self) -> bool {
        self.role == Role::Review
    }

    /// Whether the kind is the home of others.
    pub fn is_namespace(&self) -> bool {
        self.role == Role::Namespace
    }

    /// Whether objects take part in garbage collection as owners.
    pub fn is_collected(&self) -> bool {
        self.role != Role::Event
    }

    /// Whether status is written through an endpoint of its own.
    pub fn has_status(&self) -> bool {
        self.subresource("status").is_some()
    }

    /// A subresource by name.
    pub fn subresource(&self, name: &str) -> Option<&Subresource> {
        self.subresources
            .iter()
            .find(|subresource| subresource.name == name)
    }

    /// Fields that an object of this kind always has, by pointer.
    pub fn blank_fields(&self) -> &'static [&'static str] {
        match self.resource.plural.as_str() {
            _ if self.is_custom() => &[],
            "events" => &[
                "/eventTime",
                "/firstTimestamp",
                "/lastTimestamp",
                "/reportingComponent",
                "/reportingInstance",
                "/involvedObject",
                "/source",
            ],
            "networkpolicies" => &["/spec/podSelector"],
            "roles" | "clusterroles" => &["/rules"],
            _ => &[],
        }
    }

    /// Refuses a new object of a kind that is being removed.
    pub fn check_not_ending(&self, name: &str) -> Result<()> {
        let ending = matches!(&self.shape, Shape::Custom { definition, .. } if definition.ending);
        if !ending {
            return Ok(());
        }
        let why = "create not allowed while custom resource definition is terminating";
        let resource = &self.resource;
        Err(ApiError::forbidden(
            &resource.group,
            &resource.plural,
            name,
            why,
        ))
    }

    /// Refuses a verb that the resource does not have.
    pub fn check_verb(&self, verb: Verb) -> Result<()> {
        if self.verbs.iter().any(|known| known == verb.name()) {
            Ok(())
        } else {
            Err(ApiError::method_not_allowed())
        }
    }

    /// The schema of this version.
    pub fn schema(&self) -> Schema<'_> {
        match &self.shape {
            Shape::BuiltIn { schema, .. } => *schema,
            Shape::Custom {
                definition,
                version,
                ..
            } => definition.versions[*version].root(),
        }
    }

    /// Writes empty lists as they are kept; see [`crate::schema::conform::forget_empty_lists`].
    pub(crate) fn forget_empty_lists(&self, object: &mut serde_json::Value) {
        if let Shape::BuiltIn { stored, .. } = &self.shape {
            crate::schema::conform::forget_empty_lists(*stored, object);
        }
    }

    /// Whether a definition makes the kind in several versions.
    pub fn has_versions(&self) -> bool {
        matches!(&self.shape, Shape::Custom { definition, .. } if definition.versions.len() > 1)
    }

    /// The schema of what is stored.
    pub fn storage_schema(&self) -> Schema<'_> {
        match &self.shape {
            Shape::BuiltIn { stored, .. } => *stored,
            Shape::Custom {
                definition, stored, ..
            } => definition.versions[*stored].root(),
        }
    }
}
