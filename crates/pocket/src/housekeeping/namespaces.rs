//! Namespaces: the objects that every namespace has, and how one is removed.

use std::sync::Arc;

use super::{Housekeeper, ObjectKey};
use crate::{kinds, rest::Served, status::Result, store::Object};

/// The bucket of namespaces in the store.
pub(super) const BUCKET: &str = kinds::NAMESPACES;

/// Whether an object is one that every namespace has.
pub(super) fn is_standard_object(place: &ObjectKey) -> bool {
    let name = place.1.split_once('/').map(|(_, name)| name);
    kinds::STANDARD_OBJECTS
        .iter()
        .any(|(bucket, standard)| **bucket == *place.0 && name == Some(standard))
}

impl Housekeeper {
    /// The namespace of an object, if it is being removed.
    pub(super) fn terminating_namespace(&self, place: &ObjectKey) -> Option<ObjectKey> {
        let (namespace, _) = place.1.split_once('/')?;
        let home = self.machine.view.store().head(BUCKET, namespace)?.object?;
        let going = home.metadata().deletion_timestamp.is_some();
        going.then(|| (BUCKET.into(), namespace.into()))
    }

    /// Whether an object is in a namespace that was removed: it was being created meanwhile.
    pub(super) fn is_namespace_removed(&self, place: &ObjectKey) -> bool {
        let home = place.1.split_once('/').map(|(namespace, _)| namespace);
        home.is_some_and(|namespace| {
            let head = self.machine.view.store().head(BUCKET, namespace);
            head.is_none_or(|head| head.object.is_none())
        })
    }

    /// Creates the standard objects in an active namespace, and empties a terminating one.
    pub(super) async fn reconcile_namespace(
        &self,
        served: &Arc<Served>,
        place: &ObjectKey,
        object: &Arc<Object>,
    ) -> Result<()> {
        if object.metadata().deletion_timestamp.is_none() {
            return self.machine.ensure_standard_objects(&place.1).await;
        }
        let resources = self.machine.registry.stored();
        let inside = || resources.iter().filter(|served| served.resource.namespaced);
        for resource in inside() {
            self.empty(resource, &place.1).await;
        }
        let remaining: Vec<(Arc<Served>, Vec<Arc<Object>>)> = inside()
            .map(|served| (served.clone(), self.inhabitants(served, &place.1)))
            .filter(|(_, objects)| !objects.is_empty())
            .collect();
        let now = self.machine.environment.timestamp();
        if remaining.is_empty() {
            return self
                .amend(served, place, object, |value| {
                    let mut before = value.clone();
                    kinds::end_namespace(value, &now);
                    before["status"] = value["status"].clone();
                    if let Err(error) = self.machine.record_finalized(served, &before, value) {
                        tracing::debug!(%error, "the removed finalizers could not be recorded in managedFields");
                    }
                })
                .await;
        }
        let (content, finalizers) = describe(&remaining);
        self.amend(served, place, object, |value| {
            kinds::namespace_remains(value, &content, &finalizers, &now);
        })
        .await
    }

    fn inhabitants(&self, served: &Served, namespace: &str) -> Vec<Arc<Object>> {
        let objects = self
            .machine
            .view
            .store()
            .objects(&served.resource.bucket, namespace);
        objects.into_iter().map(|(_, object)| object).collect()
    }

    /// Recreates a standard object that was removed from its namespace.
    pub(super) async fn restore_standard_object(&self, place: &ObjectKey) -> Result<()> {
        match place.1.split_once('/') {
            Some((namespace, _)) if is_standard_object(place) => {
                self.machine.ensure_standard_objects(namespace).await
            }
            _ => Ok(()),
        }
    }
}

/// The two condition messages that say what a terminating namespace still waits for.
fn describe(remaining: &[(Arc<Served>, Vec<Arc<Object>>)]) -> (String, String) {
    let mut finalizers = std::collections::BTreeMap::<String, usize>::new();
    let mut resources = Vec::new();
    for (served, objects) in remaining {
        // The core group has an empty name, and the dot before it stays.
        resources.push(format!(
            "{}.{} has {} resource instances",
            served.resource.plural,
            served.resource.group,
            objects.len()
        ));
        for finalizer in objects
            .iter()
            .flat_map(|object| &object.metadata().finalizers)
        {
            *finalizers.entry(finalizer.to_string()).or_default() += 1;
        }
    }
    let finalizers: Vec<String> = finalizers
        .iter()
        .map(|(name, count)| format!("{name} in {count} resource instances"))
        .collect();
    let content = format!("Some resources are remaining: {}", resources.join(", "));
    let waiting = if finalizers.is_empty() {
        String::new()
    } else {
        format!(
            "Some content in the namespace has finalizers remaining: {}",
            finalizers.join(", ")
        )
    };
    (content, waiting)
}
