//! The changes that enqueue pods.

use k8s_openapi::api::{
    core::v1::{PersistentVolume, Pod, Service},
    discovery::v1::EndpointSlice,
};
use kube::ResourceExt;
use neap_kit::{
    controller::Enqueuer,
    key::Key,
    watch::{Cache, Change, Index},
};

use crate::{
    node::source_reader::reference,
    service_pods::{SERVICE_NAME_LABEL, is_headless},
};

/// Enqueues pods when they change.
pub(super) fn pods(pods: &Cache<Pod>, enqueuer: &Enqueuer<Key>) {
    let enqueuer = enqueuer.clone();
    pods.subscribe(move |change| enqueuer.enqueue(change.key()));
}

/// Enqueues pods when an object that they refer to changes.
pub(super) fn referenced<K>(
    cache: &Cache<K>,
    kind: &'static str,
    by_reference: &Index<Pod>,
    enqueuer: &Enqueuer<Key>,
) where
    K: kube::Resource + Send + Sync + 'static,
{
    let (by_reference, enqueuer) = (by_reference.clone(), enqueuer.clone());
    cache.subscribe(move |change| {
        let key = change.key();
        let referenced = reference(kind, key.namespace(), key.name());
        enqueue_all(&by_reference, &referenced, &enqueuer);
    });
}

/// Enqueues the pods whose claim is bound to a changed volume.
pub(super) fn volumes(
    volumes: &Cache<PersistentVolume>,
    by_reference: &Index<Pod>,
    enqueuer: &Enqueuer<Key>,
) {
    let (by_reference, enqueuer) = (by_reference.clone(), enqueuer.clone());
    volumes.subscribe(move |change| {
        let spec = change.object().spec.as_ref();
        if let Some(claim) = spec.and_then(|spec| spec.claim_ref.as_ref()) {
            let namespace = claim.namespace.as_deref().unwrap_or_default();
            let name = claim.name.as_deref().unwrap_or_default();
            enqueue_all(
                &by_reference,
                &reference("claim", namespace, name),
                &enqueuer,
            );
        }
    });
}

fn enqueue_all(by_reference: &Index<Pod>, referenced: &str, enqueuer: &Enqueuer<Key>) {
    for pod in by_reference.get(referenced) {
        enqueuer.enqueue(Key::of(&*pod));
    }
}

/// Enqueues all pods when a Service or the endpoints of a headless Service change: every hosts file
/// contains them.
pub(super) fn service_names(
    services: &Cache<Service>,
    slices: &Cache<EndpointSlice>,
    pods: &Cache<Pod>,
    enqueuer: &Enqueuer<Key>,
) {
    let enqueue_pods = {
        let (pods, enqueuer) = (pods.clone(), enqueuer.clone());
        move || {
            for pod in pods.list("") {
                enqueuer.enqueue_resync(Key::of(&*pod));
            }
        }
    };
    let (all, cached) = (enqueue_pods.clone(), services.clone());
    services.subscribe(move |change| {
        if !matches!(change, Change::Modified { old, new } if old.spec == new.spec) {
            all();
        }
    });
    slices.subscribe(move |change| {
        let service = service_key(change.object()).and_then(|key| cached.get(&key));
        if service.is_some_and(|service| is_headless(&service)) {
            enqueue_pods();
        }
    });
}

/// The slices by Service.
pub(super) fn by_service(slices: &Cache<EndpointSlice>) -> Index<EndpointSlice> {
    Index::new(slices, |slice: &EndpointSlice| {
        service_key(slice)
            .map(|key| key.to_string())
            .into_iter()
            .collect()
    })
}

fn service_key(slice: &EndpointSlice) -> Option<Key> {
    let namespace = slice.namespace().unwrap_or_default();
    Some(Key::new(
        &namespace,
        slice.labels().get(SERVICE_NAME_LABEL)?,
    ))
}
