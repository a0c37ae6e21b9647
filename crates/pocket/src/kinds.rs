//! The table of built-in kinds, with their defaults and validation.
//!
//! No module outside this one refers to a built-in kind by name. A kind is a row of [`table`]: the
//! resource it is served as, and its [`Rules`]. The generic REST machine calls the rules; they take
//! values and return values, and have no client, clock or randomness inside.

mod address;
mod admission_webhooks;
pub mod check;
mod claim;
mod config_map;
mod controller_revision;
mod core_group;
mod cron_job;
mod cron_schedule;
mod daemon_set;
mod definition;
mod deployment;
mod endpoint_slice;
mod endpoints;
pub mod enums;
pub mod event;
mod field_labels;
mod field_rules;
mod fields;
mod horizontal_pod_autoscaler;
mod ingress;
mod ingress_class;
pub mod int_or_percent;
mod job;
pub mod label_selector;
mod lease;
mod life;
mod limits;
pub mod metadata;
pub mod names;
mod namespace;
mod network_policy;
mod node;
mod path;
pub mod pod;
mod pod_actions;
mod pod_controller;
mod pod_disruption_budget;
pub mod pod_spec;
mod priority_class;
mod protection;
mod quota_scopes;
mod rbac;
mod replica_set;
mod replication_controller;
pub mod required;
mod resources;
mod reviews;
mod runtime_class;
pub mod scale;
mod secret;
mod service;
mod stateful_set;
mod storage_class;
mod table;
#[cfg(test)]
mod testing;
mod volume;
pub mod warnings;
pub mod workloads;

use jiff::Timestamp;
use serde_json::Value;

pub use claim::default_claim_spec;
pub use core_group::core_kinds;

use crate::status::{ApiError, Problems};

pub use definition::RULES as DEFINITION_RULES;
pub use field_labels::{field_value, has_field_label, has_own_labels};
pub use life::{
    DEFINITION_FINALIZER, DEFINITIONS, FIRST_NAMESPACES, NAMESPACES, STANDARD_OBJECTS,
    end_namespace, namespace_remains, own_service, standard_object,
};
pub use names::path_problem;
pub use pod_actions::{Budget, bind, check_binding, copy_topology, eviction_budget, mark_evicted};
pub use priority_class::{PRIORITY_CLASSES, system_classes};
pub use protection::{CLAIMS, may_hold_claims, released};
pub use table::{Alias, alias, rules};

/// The behaviour of a kind that differs from the generic machine.
#[derive(Clone, Copy)]
pub struct Rules {
    /// Fills absent fields; runs on every write before validation, and must be idempotent.
    pub default: fn(&mut Value),
    /// Sets the fields that only the server may set on create (initial status, generated labels).
    /// `metadata` is complete when this runs, uid and namespace included.
    pub prepare_create: fn(&mut Value, &WriteContext),
    /// Copies from the old object the fields that an update may not change silently.
    pub prepare_update: fn(&mut Value, &Value),
    /// Validates the object alone; on create and on update.
    pub validate: fn(&Value, &mut Problems),
    /// Additional validation of a new object alone.
    pub validate_create: fn(&Value, &mut Problems),
    /// Validates a change: immutable fields. Arguments: new, old.
    pub validate_update: fn(&Value, &Value, &mut Problems),
    /// Validates a change through the status subresource. Arguments: new, old.
    pub validate_status: fn(&Value, &Value, &mut Problems),
    /// Texts for `Warning` headers: fields that are stored but not enforced, or deprecated.
    pub warnings: fn(&Value) -> Vec<String>,
    /// Additional warnings for a new object.
    pub first_warnings: fn(&Value) -> Vec<String>,
    /// Reads other objects, and may change this one (allocation of addresses, checks of
    /// references). Runs alone among the writes of its resource if that is [`Traits::exclusive`].
    /// Arguments: new, old, cluster.
    pub admit: Option<Admit>,
    /// Stored parts of an object that are hidden where it is read or written whole.
    pub veil: Option<HiddenFields>,
    /// How the generic machine treats the kind.
    pub traits: Traits,
}

/// See [`Rules::veil`]. Reads of subresources, and deletes that wait, show the hidden parts.
#[derive(Debug, Clone, Copy)]
pub struct HiddenFields {
    /// Objects without this text have no hidden parts.
    pub mark: &'static str,
    /// Removes the hidden parts.
    pub hide: fn(&mut Value),
}

/// See [`Rules::admit`].
pub type Admit = fn(&mut Value, Option<&Value>, &dyn Cluster) -> Result<(), ApiError>;

/// The time of a write and the source of its random parts.
#[derive(Debug, Clone, Copy)]
pub struct WriteContext {
    pub now: Timestamp,
    /// Random bits for suffixes of generated names inside the object.
    pub seed: u64,
}

/// Read access to other objects, for rules.
pub trait Cluster {
    /// One object; `namespace` is empty for cluster-scoped kinds.
    fn get(&self, group: &str, plural: &str, namespace: &str, name: &str) -> Option<Value>;
    /// All objects of a resource; in all namespaces if `namespace` is empty.
    fn list(&self, group: &str, plural: &str, namespace: &str) -> Vec<Value>;
    /// The embedder's settings.
    fn settings(&self) -> &Settings;
    /// Whether nothing will be stored: allocated addresses and ports stay free.
    fn is_dry_run(&self) -> bool {
        false
    }
}

/// Settings of the embedder that rules depend on.
#[derive(Debug, Clone)]
pub struct Settings {
    /// First address and prefix length of the range that Service addresses come from.
    pub service_range: (std::net::Ipv4Addr, u8),
    /// First and last node port.
    pub node_ports: (u16, u16),
    /// Endpoints and slices may hold loopback addresses. Off in kube-apiserver; `neap up` turns it
    /// on, because its pods are local processes.
    pub loopback_endpoints: bool,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            service_range: (std::net::Ipv4Addr::new(10, 0, 0, 0), 24),
            node_ports: (30000, 32767),
            loopback_endpoints: false,
        }
    }
}

/// How the generic machine treats a kind.
#[derive(Debug, Clone, Copy)]
pub struct Traits {
    /// `metadata.generation` counts changes of everything but metadata and status.
    pub generation: bool,
    /// `metadata.generation` counts changes of the annotations too (Deployment).
    pub annotations_count: bool,
    /// PUT without a resourceVersion is allowed.
    pub unconditional_update: bool,
    /// PUT creates the object when it is missing.
    pub create_on_update: bool,
    /// DELETE answers with the object and not with a `Status`.
    pub delete_returns_object: bool,
    /// A delete with no policy orphans the dependents (Job, ReplicationController).
    pub orphan_by_default: bool,
    /// Grace period of a delete that names none; `None` for kinds that have no grace.
    pub grace: Option<Grace>,
    /// The syntax of names.
    pub name: NameRule,
    /// Objects are removed this long after their last write (Events).
    pub ttl: Option<std::time::Duration>,
    /// Writes of the main resource keep the stored status, and writes of the status subresource
    /// keep everything else.
    pub status: bool,
    /// Writes of the whole object are serialized: a kind that allocates something, or allows only
    /// one object of a sort, must not do so twice at once.
    pub exclusive: bool,
    /// Fields of `metadata` that the status subresource may not change.
    pub status_keeps: &'static [&'static str],
    /// Fields of `status` that stay if a write leaves them out.
    pub status_stays: &'static [&'static str],
    /// The warning in every response about the kind.
    pub deprecation: Option<&'static str>,
    /// Finalizers need no domain.
    pub plain_finalizers: bool,
    /// The validation of a new object's metadata also applies to a changed one, after the shared
    /// validation.
    pub checks_metadata_again: bool,
    /// The validation of a change runs before that of the object alone.
    pub change_first: bool,
    /// The validation of a metadata change runs last.
    pub metadata_change_last: bool,
    /// The kind validates its enumerations itself, each at its place in the order.
    pub judges_enums: bool,
    /// [`Rules::admit`] runs before the other rules, which validate what it allocates too.
    pub admitted_first: bool,
}

/// The grace period for an object: `fn(object, requested) -> seconds`.
pub type Grace = fn(&Value, Option<i64>) -> i64;

/// The syntax of a kind's names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NameRule {
    /// DNS subdomain, at most 253 characters: most kinds.
    Subdomain,
    /// DNS label, at most 63 characters: namespaces.
    Label,
    /// DNS label that starts with a letter: services.
    Rfc1035,
    /// A path segment: RBAC kinds.
    PathSegment,
    /// A path segment that may begin with anything: the rule for any existing object.
    Changed,
}

impl Traits {
    /// The traits of most kinds: a separate status, and nothing else special.
    pub const USUAL: Self = Self {
        generation: false,
        annotations_count: false,
        unconditional_update: true,
        create_on_update: false,
        delete_returns_object: false,
        orphan_by_default: false,
        grace: None,
        name: NameRule::Subdomain,
        ttl: None,
        status: true,
        exclusive: false,
        status_keeps: &[],
        status_stays: &[],
        deprecation: None,
        checks_metadata_again: false,
        change_first: false,
        metadata_change_last: false,
        judges_enums: false,
        admitted_first: false,
        plain_finalizers: false,
    };
}

impl Rules {
    /// Rules of a kind of which only the schema is checked.
    pub const SHAPE_ONLY: Self = Self {
        default: |_| {},
        prepare_create: |_, _| {},
        prepare_update: |_, _| {},
        validate: |_, _| {},
        validate_create: |_, _| {},
        validate_update: |_, _, _| {},
        validate_status: |_, _, _| {},
        warnings: |_| Vec::new(),
        first_warnings: |_| Vec::new(),
        admit: None,
        veil: None,
        traits: Traits::USUAL,
    };
}

impl std::fmt::Debug for Rules {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Rules")
            .field("traits", &self.traits)
            .finish_non_exhaustive()
    }
}

/// What the server does for single kinds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum KindRole {
    /// Nothing special.
    Ordinary,
    /// Contains other objects.
    Namespace,
    /// Defines other kinds.
    Definition,
    /// Ranks pods; some of its objects belong to the server.
    PriorityClass,
    /// Shared by two APIs, and not garbage collected.
    Event,
    /// Answered and never stored.
    Review,
}

/// One built-in kind: its resource and its rules.
#[derive(Debug, Clone, Copy)]
pub struct BuiltinKind {
    /// API group, empty for the core group.
    pub group: &'static str,
    /// API version.
    pub version: &'static str,
    /// Plural resource name.
    pub plural: &'static str,
    pub rules: Rules,
}
