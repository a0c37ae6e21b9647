//! What makes the node look at a pod.

use k8s_openapi::api::{
    core::v1::{PersistentVolume, Pod, Service},
    discovery::v1::EndpointSlice,
};
use kube::ResourceExt;
use neap_kit::{
    controller::Trigger,
    key::Key,
    watch::{Cache, Change, Index},
};

use crate::{
    node::gather::reference,
    service_pods::{SERVICE, is_headless},
};

/// Pods are looked at when they change.
pub(super) fn pods(pods: &Cache<Pod>, trigger: &Trigger<Key>) {
    let trigger = trigger.clone();
    pods.follow(move |change| trigger.changed(change.key()));
}

/// Pods are looked at when something that they are made of changes.
pub(super) fn part<K>(
    cache: &Cache<K>,
    kind: &'static str,
    by_part: &Index<Pod>,
    trigger: &Trigger<Key>,
) where
    K: kube::Resource + Send + Sync + 'static,
{
    let (by_part, trigger) = (by_part.clone(), trigger.clone());
    cache.follow(move |change| {
        let key = change.key();
        let part = reference(kind, key.namespace(), key.name());
        tell(&by_part, &part, &trigger);
    });
}

/// A volume is part of the pods whose claim it is bound to.
pub(super) fn volumes(
    volumes: &Cache<PersistentVolume>,
    by_part: &Index<Pod>,
    trigger: &Trigger<Key>,
) {
    let (by_part, trigger) = (by_part.clone(), trigger.clone());
    volumes.follow(move |change| {
        let spec = change.object().spec.as_ref();
        if let Some(claim) = spec.and_then(|spec| spec.claim_ref.as_ref()) {
            let namespace = claim.namespace.as_deref().unwrap_or_default();
            let name = claim.name.as_deref().unwrap_or_default();
            tell(&by_part, &reference("claim", namespace, name), &trigger);
        }
    });
}

fn tell(by_part: &Index<Pod>, part: &str, trigger: &Trigger<Key>) {
    for pod in by_part.get(part) {
        trigger.changed(Key::of(&*pod));
    }
}

/// Every pod knows the names of all services, and of the pods behind those without an address.
pub(super) fn names(
    services: &Cache<Service>,
    slices: &Cache<EndpointSlice>,
    pods: &Cache<Pod>,
    trigger: &Trigger<Key>,
) {
    let everybody = {
        let (pods, trigger) = (pods.clone(), trigger.clone());
        move || {
            for pod in pods.list("") {
                trigger.resync(Key::of(&*pod));
            }
        }
    };
    let (all, known) = (everybody.clone(), services.clone());
    services.follow(move |change| {
        if !matches!(change, Change::Modified { old, new } if old.spec == new.spec) {
            all();
        }
    });
    slices.follow(move |change| {
        let service = of(change.object()).and_then(|key| known.get(&key));
        if service.is_some_and(|service| is_headless(&service)) {
            everybody();
        }
    });
}

/// The slices by the service that they are of.
pub(super) fn by_service(slices: &Cache<EndpointSlice>) -> Index<EndpointSlice> {
    Index::new(slices, |slice: &EndpointSlice| {
        of(slice).map(|key| key.to_string()).into_iter().collect()
    })
}

fn of(slice: &EndpointSlice) -> Option<Key> {
    let namespace = slice.namespace().unwrap_or_default();
    Some(Key::new(&namespace, slice.labels().get(SERVICE)?))
}
