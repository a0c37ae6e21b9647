//! One version of one resource, with everything the machine needs to know about it.

mod refusals;
mod rules;
mod showing;

use std::sync::Arc;

use crate::{
    crd,
    discovery::Subresource,
    kinds::{Alias, KindRole, Rules, Traits},
    rest::Verb,
    schema::Schema,
    status::{ApiError, Result},
};

/// The common part of a resource's versions.
#[derive(Debug, Clone)]
pub struct Resource {
    /// API group, empty for the core group.
    pub group: String,
    /// Plural name, as in URLs.
    pub plural: String,
    /// Singular name.
    pub singular: String,
    pub kind: String,
    pub list_kind: String,
    /// Short names for the command line.
    pub short_names: Vec<String>,
    /// Groups of resources, such as `all`.
    pub categories: Vec<String>,
    /// Whether objects live in namespaces.
    pub namespaced: bool,
    /// The bucket in the store.
    pub bucket: Arc<str>,
    /// `apiVersion` of stored objects.
    pub storage: String,
}

impl Resource {
    /// Its names, as a definition has them.
    pub fn names(&self) -> crd::ResourceNames {
        crd::ResourceNames {
            plural: self.plural.clone(),
            singular: self.singular.clone(),
            kind: self.kind.clone(),
            list_kind: self.list_kind.clone(),
            short_names: self.short_names.clone(),
            categories: self.categories.clone(),
        }
    }
}

/// The source of the schema and the rules.
#[derive(Debug, Clone)]
#[expect(
    clippy::large_enum_variant,
    reason = "made once for each kind and shared; a box would be followed on every request"
)]
pub enum SchemaSource {
    /// From the table of kinds.
    BuiltIn {
        /// The published type of this version.
        schema: Schema<'static>,
        /// The published type of the stored version.
        stored: Schema<'static>,
        /// Set where two APIs share one storage.
        alias: Option<Alias>,
    },
    /// From a definition.
    Custom {
        definition: Arc<crd::Definition>,
        /// The index of this version.
        version: usize,
        /// The index of the storage version.
        stored: usize,
        /// Whether its schema has defaults, so that stored objects may lack fields.
        has_defaults: bool,
    },
}

/// One version of one resource.
#[derive(Debug, Clone)]
pub struct Served {
    pub resource: Arc<Resource>,
    /// Version name.
    pub version: String,
    /// `group/version`.
    pub api_version: String,
    /// Verbs of the main resource.
    pub verbs: Vec<String>,
    pub subresources: Vec<Subresource>,
    /// The source of the schema and the rules.
    pub shape: SchemaSource,
    pub rules: Rules,
    /// What the machine does for this kind alone.
    pub role: KindRole,
}

impl Served {
    pub fn rules(&self) -> &Rules {
        &self.rules
    }

    pub fn traits(&self) -> &Traits {
        &self.rules.traits
    }

    /// Whether a custom resource definition defines it.
    pub fn is_custom(&self) -> bool {
        matches!(self.shape, SchemaSource::Custom { .. })
    }

    /// Whether objects are stored under another group or in another form.
    pub fn is_alias(&self) -> bool {
        matches!(self.shape, SchemaSource::BuiltIn { alias: Some(_), .. })
    }

    /// Whether objects are stored in this version.
    pub fn is_storage(&self) -> bool {
        self.api_version == self.resource.storage && !self.is_review()
    }

    /// Whether objects are answered and never stored.
    pub fn is_review(&self) -> bool {
        self.role == KindRole::Review
    }

    pub fn is_namespace(&self) -> bool {
        self.role == KindRole::Namespace
    }

    /// Whether objects take part in garbage collection as owners.
    pub fn is_collected(&self) -> bool {
        self.role != KindRole::Event
    }

    /// Whether there is a status subresource.
    pub fn has_status(&self) -> bool {
        self.subresource("status").is_some()
    }

    /// A subresource by name.
    pub fn subresource(&self, name: &str) -> Option<&Subresource> {
        self.subresources
            .iter()
            .find(|subresource| subresource.name == name)
    }

    /// Fields that an object of this kind always has, as JSON pointers.
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

    /// Refuses a new object of a definition that is being removed.
    pub fn check_not_ending(&self, name: &str) -> Result<()> {
        let ending =
            matches!(&self.shape, SchemaSource::Custom { definition, .. } if definition.ending);
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
            SchemaSource::BuiltIn { schema, .. } => *schema,
            SchemaSource::Custom {
                definition,
                version,
                ..
            } => definition.versions[*version].root(),
        }
    }

    /// Normalizes empty lists to their stored form; see
    /// [`crate::schema::conform::forget_empty_lists`].
    pub(crate) fn forget_empty_lists(&self, object: &mut serde_json::Value) {
        if let SchemaSource::BuiltIn { stored, .. } = &self.shape {
            crate::schema::conform::forget_empty_lists(*stored, object);
        }
    }

    /// Whether its definition has several versions.
    pub fn has_versions(&self) -> bool {
        matches!(&self.shape, SchemaSource::Custom { definition, .. } if definition.versions.len() > 1)
    }

    /// The schema of the storage version.
    pub fn storage_schema(&self) -> Schema<'_> {
        match &self.shape {
            SchemaSource::BuiltIn { stored, .. } => *stored,
            SchemaSource::Custom {
                definition, stored, ..
            } => definition.versions[*stored].root(),
        }
    }
}
