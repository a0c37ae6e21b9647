//! What to write, and why.

use std::{collections::BTreeMap, fmt};

use k8s_openapi::NamespaceResourceScope;
use kube::{
    Resource,
    api::{ApiResource, DynamicObject, ObjectMeta},
};
use serde_json::{Value, json};

use super::{APPLIED, Object, differences};
use crate::{hash::stable_hash, key::Key};

/// A kind of objects, as the writer addresses it.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct ResourceKind {
    /// Group, version, kind and plural.
    pub resource: ApiResource,
    /// Whether its objects are namespaced.
    pub namespaced: bool,
}

impl ResourceKind {
    /// The kind of `K`, whose objects are in namespaces.
    pub fn of<K>() -> Self
    where
        K: Resource<DynamicType = (), Scope = NamespaceResourceScope>,
    {
        Self {
            resource: ApiResource::erase::<K>(&()),
            namespaced: true,
        }
    }
}

/// An object as a decision wants it. Its fields are ours; all other fields are left alone.
#[derive(Debug, Clone, PartialEq)]
pub struct DesiredObject {
    /// The kind of the object.
    pub kind: ResourceKind,
    /// The desired fields: `metadata` with name, labels and owner, `spec` and so on.
    pub object: Value,
}

impl DesiredObject {
    /// `object` as a value. Serializing the types of the API does not fail.
    pub fn of<K>(object: &K) -> Self
    where
        K: Object + Resource<Scope = NamespaceResourceScope>,
    {
        Self {
            kind: ResourceKind::of::<K>(),
            object: serde_json::to_value(object).unwrap_or_default(),
        }
    }

    /// Namespace and name.
    pub fn key(&self) -> Key {
        let text = |field: &str| self.object["metadata"][field].as_str().unwrap_or_default();
        Key::new(text("namespace"), text("name"))
    }
}

/// One planned write.
#[derive(Debug, Clone, PartialEq)]
pub enum PlannedChange {
    /// The object does not exist.
    Create(DesiredObject),
    /// The object differs from the desired one.
    Update {
        /// The desired object.
        desired: DesiredObject,
        /// The uid of the object that was read.
        uid: String,
        /// The paths of the fields that differ.
        differences: Vec<String>,
    },
    /// Deletes an object. It is no error if it is gone already.
    Delete {
        /// The object, by its uid: another of the same name is not deleted.
        object: ObjectRef,
        /// The reason, for the log and the dry run.
        reason: String,
    },
    /// Deletes the object of this name if there is one. The server is read first, since no cache shows it.
    DeleteByName {
        /// The kind.
        kind: ResourceKind,
        /// The name.
        key: Key,
        /// The reason, for the log and the dry run.
        reason: String,
    },
    /// Creates a whole object with a POST.
    Post {
        /// The object.
        object: DesiredObject,
        /// The object for which it is created. The writer first confirms with the server that it exists
        /// and is not being deleted: objects of an owner that is gone would be garbage collected and
        /// created again without end.
        owner: Option<ObjectRef>,
        /// What happens if an object of this name exists.
        if_exists: IfExists,
        /// The reason, for the log and the dry run.
        reason: String,
    },
    /// Replaces a whole object with a PUT. Its `resourceVersion` is the precondition.
    Replace {
        /// The object.
        object: DesiredObject,
        /// The object for which it is written, as in [`PlannedChange::Post`].
        owner: Option<ObjectRef>,
        /// The reason, for the log and the dry run.
        reason: String,
    },
    /// Merges a few fields into an object that others write, or into a subresource such as `scale`.
    Merge {
        /// The kind.
        kind: ResourceKind,
        /// Name, namespace and preconditions: the `uid`, and the `resourceVersion` if there is one.
        metadata: Box<ObjectMeta>,
        /// The subresource; the object itself if absent.
        subresource: Option<&'static str>,
        /// The fields.
        patch: Value,
        /// The reason, for the log and the dry run.
        reason: String,
    },
}

/// What a [`PlannedChange::Post`] does if an object of its name exists.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum IfExists {
    /// It fails with [`Error::Conflict`](super::Error::Conflict): the cache was behind, and the key is
    /// reconciled again.
    Conflict,
    /// It reads the object and replaces it, except for metadata that the server or others maintain.
    TakeOver,
}

/// A single object: kind, name and uid.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ObjectRef {
    /// The kind.
    pub kind: ResourceKind,
    /// Namespace and name.
    pub key: Key,
    /// The uid.
    pub uid: String,
}

impl ObjectRef {
    /// The reference to `object`.
    pub fn of<K>(object: &K) -> Self
    where
        K: Resource<DynamicType = (), Scope = NamespaceResourceScope>,
    {
        Self {
            kind: ResourceKind::of::<K>(),
            key: Key::of(object),
            uid: object.meta().uid.clone().unwrap_or_default(),
        }
    }
}

/// The writes of a decision, in order. A crate whose decisions contain more than single writes has its
/// own type of change.
#[derive(Debug, Clone, PartialEq)]
pub struct Plan<C = PlannedChange> {
    /// The changes before the status is written.
    pub changes: Vec<C>,
    /// The changes after the status is written: those that require that the status records the others,
    /// such as the removal of a finalizer.
    pub cleanup: Vec<C>,
}

impl<C> Plan<C> {
    /// All changes, in order.
    pub fn iter(&self) -> impl Iterator<Item = &C> {
        self.changes.iter().chain(&self.cleanup)
    }

    /// Whether nothing is written.
    pub fn is_empty(&self) -> bool {
        self.changes.is_empty() && self.cleanup.is_empty()
    }
}

impl<C> Default for Plan<C> {
    fn default() -> Self {
        Self {
            changes: Vec::new(),
            cleanup: Vec::new(),
        }
    }
}

impl<C> From<Vec<C>> for Plan<C> {
    fn from(changes: Vec<C>) -> Self {
        Self {
            changes,
            cleanup: Vec::new(),
        }
    }
}

/// The writes that turn `live` into `desired`. `live` are our objects: those with our owner and label,
/// and those that have the name of a desired object.
///
/// Creates and updates come in the order of `desired`, deletes after them, so that a replacement
/// exists before the old object is deleted.
pub fn plan(desired: &[DesiredObject], live: &[(ResourceKind, DynamicObject)]) -> Plan {
    let mut unmatched: BTreeMap<(String, Key), &(ResourceKind, DynamicObject)> = live
        .iter()
        .map(|one| ((group_and_plural(&one.0), Key::of(&one.1)), one))
        .collect();
    let mut changes = Vec::new();
    for desired in desired {
        let desired = with_hash(desired);
        match unmatched.remove(&(group_and_plural(&desired.kind), desired.key())) {
            None => changes.push(PlannedChange::Create(desired)),
            Some((_, object)) => changes.extend(update(desired, object)),
        }
    }
    let undesired = unmatched
        .into_values()
        .filter(|(_, object)| object.metadata.deletion_timestamp.is_none());
    changes.extend(undesired.map(|(kind, object)| PlannedChange::Delete {
        object: ObjectRef {
            kind: kind.clone(),
            key: Key::of(object),
            uid: object.metadata.uid.clone().unwrap_or_default(),
        },
        reason: "it is no longer wanted".to_owned(),
    }));
    changes.into()
}

fn update(desired: DesiredObject, object: &DynamicObject) -> Option<PlannedChange> {
    // An object that is being deleted is created again once it is gone.
    if object.metadata.deletion_timestamp.is_some() {
        return None;
    }
    let live = serde_json::to_value(object).unwrap_or_default();
    let differences = differences(&desired.object, &live);
    let uid = object.metadata.uid.clone().unwrap_or_default();
    (!differences.is_empty()).then_some(PlannedChange::Update {
        desired,
        uid,
        differences,
    })
}

/// The desired object with a hash of its fields as an annotation. The hash differs when a field was
/// dropped, which a comparison with the live object does not show.
fn with_hash(desired: &DesiredObject) -> DesiredObject {
    let mut desired = desired.clone();
    let text = desired.object.to_string();
    let hash = format!("{:016x}", stable_hash([text.as_bytes()]));
    if let Some(metadata) = desired.object["metadata"].as_object_mut() {
        let annotations = metadata.entry("annotations").or_insert_with(|| json!({}));
        annotations[APPLIED] = hash.into();
    }
    desired
}

fn group_and_plural(kind: &ResourceKind) -> String {
    let ApiResource { group, plural, .. } = &kind.resource;
    format!("{group}/{plural}")
}

impl<C: fmt::Display> fmt::Display for Plan<C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.is_empty() {
            return f.write_str("nothing to do");
        }
        for (at, change) in self.iter().enumerate() {
            let break_before = if at > 0 { "\n" } else { "" };
            write!(f, "{break_before}{change}")?;
        }
        Ok(())
    }
}

impl PlannedChange {
    /// What it does to the object, in one word.
    pub fn verb(&self) -> &'static str {
        match self {
            Self::Create(_) | Self::Post { .. } => "create",
            Self::Update { .. } => "update",
            Self::Delete { .. } | Self::DeleteByName { .. } => "delete",
            Self::Replace { .. } => "replace",
            Self::Merge { .. } => "patch",
        }
    }

    /// The kind of the object.
    pub fn kind(&self) -> &ResourceKind {
        match self {
            Self::Create(object)
            | Self::Update {
                desired: object, ..
            }
            | Self::Post { object, .. }
            | Self::Replace { object, .. } => &object.kind,
            Self::Delete { object, .. } => &object.kind,
            Self::DeleteByName { kind, .. } | Self::Merge { kind, .. } => kind,
        }
    }

    /// Namespace and name of the object.
    pub fn key(&self) -> Key {
        match self {
            Self::Create(object)
            | Self::Update {
                desired: object, ..
            }
            | Self::Post { object, .. }
            | Self::Replace { object, .. } => object.key(),
            Self::Delete { object, .. } => object.key.clone(),
            Self::DeleteByName { key, .. } => key.clone(),
            Self::Merge { metadata, .. } => {
                let text = |text: &Option<String>| text.clone().unwrap_or_default();
                Key::new(&text(&metadata.namespace), &text(&metadata.name))
            }
        }
    }

    /// The subresource that is written; none if it is the object itself.
    pub fn subresource(&self) -> Option<&'static str> {
        match self {
            Self::Merge { subresource, .. } => *subresource,
            _ => None,
        }
    }

    /// The object or the fields that are written; none for a deletion.
    pub fn content(&self) -> Option<&Value> {
        match self {
            Self::Create(object)
            | Self::Update {
                desired: object, ..
            }
            | Self::Post { object, .. }
            | Self::Replace { object, .. } => Some(&object.object),
            Self::Merge { patch, .. } => Some(patch),
            Self::Delete { .. } | Self::DeleteByName { .. } => None,
        }
    }

    /// The reason of the change.
    pub fn reason(&self) -> String {
        match self {
            Self::Create(_) => "it is missing".to_owned(),
            Self::Update { differences, .. } => differences.join(", "),
            Self::Delete { reason, .. }
            | Self::DeleteByName { reason, .. }
            | Self::Post { reason, .. }
            | Self::Replace { reason, .. }
            | Self::Merge { reason, .. } => reason.clone(),
        }
    }
}

impl fmt::Display for PlannedChange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kind = &self.kind().resource.kind;
        write!(f, "{} {kind} {}", self.verb(), self.key())?;
        if let Some(subresource) = self.subresource() {
            write!(f, " ({subresource})")?;
        }
        write!(f, ": {}", self.reason())
    }
}
