//! Namespaces: what every one of them gets, and how one ends.

use std::sync::Arc;

use super::{Housekeeper, Place};
use crate::{kinds, rest::Served, status::Result, store::Object};

/// Where namespaces are stored.
pub(super) const BUCKET: &str = kinds::NAMESPACES;

/// Whether an object is one that every namespace has.
pub(super) fn is_furniture(place: &Place) -> bool {
    let name = place.1.split_once('/').map(|(_, name)| name);
    kinds::FURNITURE
        .iter()
        .any(|(bucket, furniture)| **bucket == *place.0 && name == Some(furniture))
}

impl Housekeeper {
    /// The namespace of an object, if it waits to be empty.
    pub(super) fn home_that_goes(&self, place: &Place) -> Option<Place> {
        let (namespace, _) = place.1.split_once('/')?;
        let home = self.machine.view.store().head(BUCKET, namespace)?.object?;
        let going = home.metadata().deletion_timestamp.is_some();
        going.then(|| (BUCKET.into(), namespace.into()))
    }

    /// Whether an object is in a namespace that has gone: its creation was under way meanwhile.
    pub(super) fn is_homeless(&self, place: &Place) -> bool {
        let home = place.1.split_once('/').map(|(namespace, _)| namespace);
        home.is_some_and(|namespace| {
            let head = self.machine.view.store().head(BUCKET, namespace);
            head.is_none_or(|head| head.object.is_none())
        })
    }

    /// Furnishes a namespace that lives, and empties one that is going.
    pub(super) async fn tend_namespace(
        &self,
        served: &Arc<Served>,
        place: &Place,
        object: &Arc<Object>,
    ) -> Result<()> {
        if object.metadata().deletion_timestamp.is_none() {
            return self.machine.furnish(&place.1).await;
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
                    if let Err(error) = self.machine.book_finalized(served, &before, value) {
                        tracing::debug!(%error, "finalizers could not be booked");
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

    /// What was removed from a namespace that should always have it is put back.
    pub(super) async fn restore_furniture(&self, place: &Place) -> Result<()> {
        match place.1.split_once('/') {
            Some((namespace, _)) if is_furniture(place) => self.machine.furnish(namespace).await,
            _ => Ok(()),
        }
    }
}

/// The two sentences by which a namespace says what it still waits for.
fn describe(remaining: &[(Arc<Served>, Vec<Arc<Object>>)]) -> (String, String) {
    let mut finalizers = std::collections::BTreeMap::<String, usize>::new();
    let mut resources = Vec::new();
    for (served, objects) in remaining {
        // The core group has no name, and the dot before it stays.
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
