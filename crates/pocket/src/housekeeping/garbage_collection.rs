//! Garbage collection by owner references: what happens to dependents when their owner is removed.

use std::{
    collections::{BTreeSet, HashMap},
    sync::Arc,
};

use futures::{StreamExt, stream};
use serde_json::{Value, json};

use super::{Housekeeper, MAX_CONCURRENT_RECONCILES, ObjectKey};
use crate::{
    rest::{DeleteOptions, FOREGROUND, ORPHAN, Propagation, Served, path},
    status::Result,
    store::{Event, Metadata, Object, Owner},
};

/// Dependents by the uid of their owner, and owners by dependent.
#[derive(Debug, Default)]
pub(super) struct Graph {
    dependents: HashMap<Box<str>, BTreeSet<ObjectKey>>,
    owners: HashMap<ObjectKey, Vec<Box<str>>>,
    /// Removed owners that are still referenced, and whether they were namespaced. Their kind may
    /// be gone too by the time their dependents are reconciled.
    removed: HashMap<Box<str>, bool>,
}

impl Graph {
    /// Records the newest state of an object. True if it has owners.
    pub(super) fn record(&mut self, place: &ObjectKey, object: Option<&Arc<Object>>) -> bool {
        for uid in self.owners.remove(place).unwrap_or_default() {
            if let Some(places) = self.dependents.get_mut(&uid) {
                places.remove(place);
                if places.is_empty() {
                    self.dependents.remove(&uid);
                    self.removed.remove(&uid);
                }
            }
        }
        // Most objects have no owner, and are recognized without parsing.
        let Some(object) = object.filter(|object| object.may_have_owners()) else {
            return false;
        };
        let uids: Vec<Box<str>> = object
            .metadata()
            .owner_references
            .iter()
            .map(|o| o.uid.clone())
            .collect();
        for uid in &uids {
            self.dependents
                .entry(uid.clone())
                .or_default()
                .insert(place.clone());
        }
        let owned = !uids.is_empty();
        if owned {
            self.owners.insert(place.clone(), uids);
        }
        owned
    }

    /// Records that an object was removed.
    pub(super) fn record_removal(&mut self, owner: &Metadata) {
        if self.dependents.contains_key(&owner.uid) {
            let namespaced = !owner.namespace.is_empty();
            self.removed.insert(owner.uid.clone(), namespaced);
        }
    }

    /// Whether a removed object can have been the owner of an object in `namespace`. A namespaced
    /// object cannot own a cluster-scoped one, so its removal says nothing about such an object.
    fn was_removed(&self, uid: &str, namespace: &str) -> bool {
        let namespaced = self.removed.get(uid);
        namespaced.is_some_and(|namespaced| !namespaced || !namespace.is_empty())
    }

    /// Everything that references `uid` as an owner.
    pub(super) fn dependents(&self, uid: &str) -> Vec<ObjectKey> {
        self.dependents
            .get(uid)
            .into_iter()
            .flatten()
            .cloned()
            .collect()
    }
}

/// The state of an owner, as a dependent sees it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum OwnerState {
    /// It does not exist.
    Absent,
    /// Its state cannot be determined: its kind is not served, or it cannot own this object.
    /// Nothing is removed on a guess.
    Unknown,
    /// It waits for its dependents to be removed (foreground deletion).
    Waiting,
    /// It exists and stays.
    Solid,
}

impl Housekeeper {
    /// The objects that a change concerns: the dependents of a removed owner, and the owners of a
    /// dependent that was removed or dropped its reference, since they may be waiting for it.
    pub(super) fn concerned(&self, event: &Event) -> Vec<ObjectKey> {
        let mut places = Vec::new();
        if event.present().is_none() {
            places.extend(self.graph.dependents(&event.object.metadata().uid));
        }
        if let Some(previous) = event
            .previous
            .as_ref()
            .filter(|object| object.may_have_owners())
        {
            let metadata = previous.metadata();
            let owners = metadata.owner_references.iter();
            places.extend(owners.filter_map(|owner| self.place_of(owner, &metadata.namespace)));
        }
        places
    }

    /// The key that an owner must have: in the dependent's namespace, or cluster-wide. `None` if
    /// there is no such resource.
    fn place_of(&self, owner: &Owner, namespace: &str) -> Option<ObjectKey> {
        let served = self
            .machine
            .registry
            .by_kind(&owner.api_version, &owner.kind)?;
        if served.resource.namespaced && namespace.is_empty() {
            return None;
        }
        let namespace = if served.resource.namespaced {
            namespace
        } else {
            ""
        };
        Some((
            served.resource.bucket.clone(),
            path(namespace, &owner.name).into(),
        ))
    }

    fn standing(&self, owner: &Owner, namespace: &str) -> OwnerState {
        if self.graph.was_removed(&owner.uid, namespace) {
            return OwnerState::Absent;
        }
        let Some(place) = self.place_of(owner, namespace) else {
            return OwnerState::Unknown;
        };
        match self.current(&place) {
            Some(object) if object.metadata().uid == owner.uid => {
                if is_waiting(&object) {
                    OwnerState::Waiting
                } else {
                    OwnerState::Solid
                }
            }
            _ => OwnerState::Absent,
        }
    }

    /// Acts on the owner references of an object, as a dependent and as an owner.
    pub(super) async fn collect(
        &self,
        served: &Arc<Served>,
        place: &ObjectKey,
        object: &Arc<Object>,
    ) -> Result<()> {
        let metadata = object.metadata();
        if metadata.deletion_timestamp.is_some() {
            if metadata.finalizers.iter().any(|name| **name == *ORPHAN) {
                return self.orphan(served, place, object).await;
            }
            if is_waiting(object) {
                return self.clear_foreground(served, place, object).await;
            }
            return Ok(());
        }
        if metadata.owner_references.is_empty() {
            return Ok(());
        }
        self.check_owners(served, place, object).await
    }

    async fn check_owners(
        &self,
        served: &Arc<Served>,
        place: &ObjectKey,
        object: &Object,
    ) -> Result<()> {
        let metadata = object.metadata();
        let standings: Vec<OwnerState> = metadata
            .owner_references
            .iter()
            .map(|owner| self.standing(owner, &metadata.namespace))
            .collect();
        let has = |standing| standings.contains(&standing);
        if has(OwnerState::Unknown) {
            self.unknown_owners.lock().insert(place.clone());
            return Ok(());
        }
        if standings.iter().all(|each| *each == OwnerState::Solid) {
            return Ok(());
        }
        if has(OwnerState::Solid) {
            // A waiting owner need not wait for a dependent that stays.
            let kept: BTreeSet<&str> = metadata
                .owner_references
                .iter()
                .zip(&standings)
                .filter(|(_, standing)| **standing == OwnerState::Solid)
                .map(|(owner, _)| &*owner.uid)
                .collect();
            return self
                .amend(served, place, object, |value| {
                    keep_owners(value, |uid| kept.contains(uid));
                })
                .await;
        }
        let propagation = self.propagation(place, object, has(OwnerState::Waiting));
        self.delete(served, object, propagation).await
    }

    /// The propagation policy for an object whose owners are gone or wait for it: as its finalizers
    /// say, and foreground if an owner waits.
    fn propagation(&self, place: &ObjectKey, object: &Object, awaited: bool) -> Propagation {
        let metadata = object.metadata();
        let asked = |name: &str| metadata.finalizers.iter().any(|other| **other == *name);
        if asked(ORPHAN) {
            return Propagation::Orphan;
        }
        let dependents = self.dependents(place, &metadata.uid);
        // In a cycle each object would wait for the next one for ever.
        let circle = dependents.iter().any(|(_, other, _)| is_waiting(other));
        if asked(FOREGROUND) || (awaited && !dependents.is_empty() && !circle) {
            return Propagation::Foreground;
        }
        Propagation::Background
    }

    /// The objects that `place` owns, each with its reference. A reference with the right uid whose
    /// kind, name or namespace leads to another object does not count.
    fn dependents(&self, place: &ObjectKey, uid: &str) -> Vec<(ObjectKey, Arc<Object>, Owner)> {
        let named = self.graph.dependents(uid).into_iter();
        named
            .filter_map(|dependent| {
                let object = self.current(&dependent)?;
                let metadata = object.metadata();
                let mut owners = metadata.owner_references.iter();
                let owner = owners.find(|owner| *owner.uid == *uid)?.clone();
                let meant = self.place_of(&owner, &metadata.namespace)?;
                (meant == *place).then_some((dependent, object, owner))
            })
            .collect()
    }

    /// Removes the owner's references from its dependents, then its orphan finalizer.
    async fn orphan(
        &self,
        served: &Arc<Served>,
        place: &ObjectKey,
        owner: &Arc<Object>,
    ) -> Result<()> {
        let uid = &*owner.metadata().uid;
        stream::iter(self.dependents(place, uid))
            .for_each_concurrent(
                MAX_CONCURRENT_RECONCILES,
                |(dependent, object, _)| async move {
                    if let Some(served) = self.machine.registry.by_bucket(&dependent.0) {
                        let others = |value: &mut Value| keep_owners(value, |other| other != uid);
                        let _ = self.amend(&served, &dependent, &object, others).await;
                    }
                },
            )
            .await;
        // Only when no dependent references it any more; until then the dependents' changes enqueue
        // it again.
        if !self.dependents(place, uid).is_empty() {
            return Ok(());
        }
        self.amend(served, place, owner, |value| drop_finalizer(value, ORPHAN))
            .await
    }

    /// Deletes the dependents, and removes the owner's finalizer once none of them blocks it.
    async fn clear_foreground(
        &self,
        served: &Arc<Served>,
        place: &ObjectKey,
        owner: &Arc<Object>,
    ) -> Result<()> {
        let uid = &*owner.metadata().uid;
        stream::iter(self.dependents(place, uid))
            .for_each_concurrent(
                MAX_CONCURRENT_RECONCILES,
                |(dependent, object, _)| async move {
                    if object.metadata().deletion_timestamp.is_none()
                        && let Some(served) = self.machine.registry.by_bucket(&dependent.0)
                    {
                        let _ = self.check_owners(&served, &dependent, &object).await;
                    }
                },
            )
            .await;
        let remaining = self.dependents(place, uid);
        if remaining.iter().any(|(_, _, o)| o.block_owner_deletion) {
            return Ok(());
        }
        self.amend(served, place, owner, |value| {
            drop_finalizer(value, FOREGROUND);
        })
        .await
    }

    /// Deletes exactly the object that was read.
    pub(super) async fn delete(
        &self,
        served: &Arc<Served>,
        object: &Object,
        propagation: Propagation,
    ) -> Result<()> {
        let metadata = object.metadata();
        let options = DeleteOptions {
            uid: Some(metadata.uid.to_string()),
            propagation: Some(propagation),
            ..DeleteOptions::default()
        };
        self.machine
            .remove(served, &metadata.namespace, &metadata.name, &options)
            .await?;
        Ok(())
    }
}

fn is_waiting(object: &Object) -> bool {
    let metadata = object.metadata();
    metadata.deletion_timestamp.is_some()
        && metadata.finalizers.iter().any(|name| **name == *FOREGROUND)
}

fn keep_owners(value: &mut Value, keep: impl Fn(&str) -> bool) {
    let Some(owners) = value["metadata"]["ownerReferences"].as_array_mut() else {
        return;
    };
    let mut gone = Vec::new();
    owners.retain(|owner| {
        let kept = owner["uid"].as_str().is_some_and(&keep);
        if !kept {
            gone.push(json!({"uid": owner["uid"]}).to_string());
        }
        kept
    });
    let none = owners.is_empty();
    if none && let Some(metadata) = value["metadata"].as_object_mut() {
        metadata.remove("ownerReferences");
    }
    forget_owners(&mut value["metadata"], &gone, none);
}

/// Removes the managed-field entries of owner references that were removed.
fn forget_owners(metadata: &mut Value, gone: &[String], none: bool) {
    let entries = metadata.get_mut("managedFields");
    let Some(entries) = entries.and_then(Value::as_array_mut) else {
        return;
    };
    for entry in entries.iter_mut() {
        let Some(fields) = entry["fieldsV1"].as_object_mut() else {
            continue;
        };
        let Some(meta) = fields.get_mut("f:metadata").and_then(Value::as_object_mut) else {
            continue;
        };
        if none {
            meta.remove("f:ownerReferences");
        } else if let Some(owners) = meta.get_mut("f:ownerReferences") {
            for key in gone {
                if let Some(owners) = owners.as_object_mut() {
                    owners.remove(&format!("k:{key}"));
                }
            }
        }
        if meta.is_empty() {
            fields.remove("f:metadata");
        }
    }
    entries.retain(|entry| {
        entry["fieldsV1"]
            .as_object()
            .is_none_or(|fields| !fields.is_empty())
    });
    if entries.is_empty()
        && let Some(metadata) = metadata.as_object_mut()
    {
        metadata.remove("managedFields");
    }
}

pub(super) fn drop_finalizer(value: &mut Value, name: &str) {
    let Some(finalizers) = value["metadata"]["finalizers"].as_array_mut() else {
        return;
    };
    finalizers.retain(|finalizer| finalizer != &json!(name));
    if finalizers.is_empty()
        && let Some(metadata) = value["metadata"].as_object_mut()
    {
        metadata.remove("finalizers");
    }
}
