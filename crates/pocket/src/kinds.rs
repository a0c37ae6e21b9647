//! The table of built-in kinds, with their defaults and rules.
//!
//! Nothing outside this room knows a built-in kind by name. A kind is a row of [`table`]: which
//! resource it is served as and which [`Rules`] it keeps. The generic REST machine asks the rules;
//! they take values and return values, and have no client, clock or randomness inside.

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
    DEFINITION_FINALIZER, DEFINITIONS, FIRST_NAMESPACES, FURNITURE, NAMESPACES, end_namespace,
    furniture, namespace_remains, own_service,
};
pub use names::path_problem;
pub use pod_actions::{Budget, bind, check_binding, eviction_budget, mark_evicted, tell_place};
pub use priority_class::{PRIORITY_CLASSES, system_classes};
pub use protection::{CLAIMS, may_hold_claims, released};
pub use table::{Alias, alias, rules};

/// What a kind does differently from the generic machine.
#[derive(Clone, Copy)]
pub struct Rules {
    /// Fills absent fields; runs on every write before validation, and must be idempotent.
    pub default: fn(&mut Value),
    /// Sets what only the server may set on create (initial status, generated labels).
    /// `metadata` is complete when this runs, uid and namespace included.
    pub prepare_create: fn(&mut Value, &Moment),
    /// Carries over from the old object what an update may not change silently.
    pub prepare_update: fn(&mut Value, &Value),
    /// Rules on the object alone; on create and on update.
    pub validate: fn(&Value, &mut Problems),
    /// Rules on a new object alone, besides those.
    pub validate_create: fn(&Value, &mut Problems),
    /// Rules on a change: immutable fields. Arguments: new, old.
    pub validate_update: fn(&Value, &Value, &mut Problems),
    /// Rules on a change through the status subresource. Arguments: new, old.
    pub validate_status: fn(&Value, &Value, &mut Problems),
    /// Texts for `Warning` headers: what is stored but not enforced, what is deprecated.
    pub warnings: fn(&Value) -> Vec<String>,
    /// More of them that are told of a new object alone.
    pub first_warnings: fn(&Value) -> Vec<String>,
    /// Needs a look at other objects, and may change this one (allocation of addresses, checks of
    /// references). Runs alone among the writes of its resource if that is [`Traits::exclusive`].
    /// Arguments: new, old, cluster.
    pub admit: Option<Admit>,
    /// What is kept of an object and not shown where it is read or written whole.
    pub veil: Option<Veil>,
    /// How the generic machine treats the kind.
    pub traits: Traits,
}

/// See [`Rules::veil`]. Other parts of the object, and deletes that wait, show what is kept.
#[derive(Debug, Clone, Copy)]
pub struct Veil {
    /// Objects without this text have nothing to hide.
    pub mark: &'static str,
    /// Takes out what is hidden.
    pub hide: fn(&mut Value),
}

/// See [`Rules::admit`].
pub type Admit = fn(&mut Value, Option<&Value>, &dyn Cluster) -> Result<(), ApiError>;

/// The time of a write and the source of its random parts.
#[derive(Debug, Clone, Copy)]
pub struct Moment {
    /// When the write happens.
    pub now: Timestamp,
    /// Random bits for suffixes of generated names inside the object.
    pub seed: u64,
}

/// What a rule may see of the other objects.
pub trait Cluster {
    /// One object; `namespace` is empty for cluster-scoped kinds.
    fn get(&self, group: &str, plural: &str, namespace: &str, name: &str) -> Option<Value>;
    /// All objects of a resource; in all namespaces if `namespace` is empty.
    fn list(&self, group: &str, plural: &str, namespace: &str) -> Vec<Value>;
    /// What the embedder chose.
    fn settings(&self) -> &Settings;
    /// Whether nothing will be stored: what is handed out is nobody's.
    fn is_dry_run(&self) -> bool {
        false
    }
}

/// Choices of the embedder that rules depend on.
#[derive(Debug, Clone)]
pub struct Settings {
    /// First address and prefix length of the range that Service addresses come from.
    pub service_range: (std::net::Ipv4Addr, u8),
    /// First and last node port.
    pub node_ports: (u16, u16),
    /// Endpoints and slices may hold loopback addresses. Off in the real server; `neap up` turns
    /// it on, because its pods are local processes.
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
    /// Which names are allowed.
    pub name: NameRule,
    /// Objects vanish this long after their last write (Events).
    pub ttl: Option<std::time::Duration>,
    /// The main resource's writes keep the stored status and the status subresource's writes keep
    /// everything else.
    pub status: bool,
    /// One write of the whole object at a time: whoever hands something out, or must be the only
    /// one of its sort, may not do so twice at once.
    pub exclusive: bool,
    /// What of `metadata` the status subresource may not change.
    pub status_keeps: &'static [&'static str],
    /// What of `status` stays if a writer of it leaves it out.
    pub status_stays: &'static [&'static str],
    /// What every answer about the kind warns of.
    pub deprecation: Option<&'static str>,
    /// Finalizers need no domain.
    pub plain_finalizers: bool,
    /// The rules on a new object's metadata are asked of a changed one too, after the shared ones.
    pub checks_metadata_again: bool,
    /// The rules on a change are asked before those on the object alone.
    pub change_first: bool,
    /// The rules on a change of metadata are asked last.
    pub metadata_change_last: bool,
    /// The kind's own rules judge values off a list, each in its place.
    pub judges_enums: bool,
    /// What [`Rules::admit`] hands out is handed out before the other rules are asked, and they
    /// judge it too.
    pub admitted_first: bool,
}

/// The grace period for an object: `fn(object, requested) -> seconds`.
pub type Grace = fn(&Value, Option<i64>) -> i64;

/// Which names a kind takes.
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
    /// A path segment that may begin like anything: whatever an object is, once it is there.
    Changed,
}

impl Traits {
    /// What most kinds have: a status of its own is kept apart, nothing else is special.
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
    /// Rules of a kind of which only the shape is checked.
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

/// What the server does for some kinds alone.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// Nothing.
    Ordinary,
    /// A home for others.
    Namespace,
    /// Makes other kinds.
    Definition,
    /// Ranks pods; some of them belong to the server.
    PriorityClass,
    /// Shared by two APIs, and not garbage collected.
    Event,
    /// A question that is answered and never stored.
    Review,
}

/// One built-in kind: where it is served and which rules it keeps.
#[derive(Debug, Clone, Copy)]
pub struct Kind {
    /// API group, empty for the core group.
    pub group: &'static str,
    /// API version.
    pub version: &'static str,
    /// Plural resource name.
    pub plural: &'static str,
    /// The rules.
    pub rules: Rules,
}
