//! Which pods answer for a Service, and where.

use std::{
    collections::{BTreeMap, HashMap},
    net::IpAddr,
    sync::Arc,
};

use jiff::Timestamp;
use k8s_openapi::{
    api::core::v1::{ContainerPort, ObjectReference, Pod, Service, ServicePort},
    apimachinery::pkg::{apis::meta::v1::ObjectMeta, util::intstr::IntOrString},
};
use kube::ResourceExt;
use neap_kit::{
    controller::Trigger,
    key::Key,
    watch::{Cache, Change, Index},
};
use parking_lot::Mutex;

use crate::workload::{Labelled, has_all, label, phase, readiness};

/// On an EndpointSlice: the name of its Service.
pub(crate) const SERVICE: &str = "kubernetes.io/service-name";
/// When happened what endpoints were written for.
const TRIGGER: &str = "endpoints.kubernetes.io/last-change-trigger-time";
/// Marks endpoints of a Service without an address of its own.
pub(crate) const HEADLESS: &str = "service.kubernetes.io/headless";

/// Finds the pods that a Service selects, and the Services that select a pod.
#[derive(Debug, Clone)]
pub(crate) struct Selection {
    pods: Labelled,
    services: Index<Service>,
}

impl Selection {
    pub(crate) fn new(pods: &Cache<Pod>, services: &Cache<Service>) -> Self {
        let by_first = |service: &Service| {
            let namespace = service.namespace().unwrap_or_default();
            let pair = selector(service).and_then(|wanted| wanted.first_key_value());
            let label = pair.map(|(key, value)| label(&namespace, key, value));
            label.into_iter().collect()
        };
        Self {
            pods: Labelled::new(pods),
            services: Index::new(services, by_first),
        }
    }

    /// The pods that `service` selects.
    pub(crate) fn pods(&self, service: &Service) -> Vec<Arc<Pod>> {
        let namespace = service.namespace().unwrap_or_default();
        let wanted = selector(service);
        wanted.map_or_else(Vec::new, |wanted| self.pods.with(&namespace, wanted))
    }

    /// Has the Services looked at that select a pod which changed, or did.
    pub(crate) fn tell(&self, change: &Change<Pod>, trigger: &Trigger<Key>) {
        self.tell_of(change.object(), trigger);
        if let Change::Modified { old, new } = change
            && old.labels() != new.labels()
        {
            self.tell_of(old, trigger);
        }
    }

    /// Has the Services looked at that select `pod`.
    pub(crate) fn tell_of(&self, pod: &Pod, trigger: &Trigger<Key>) {
        let namespace = pod.namespace().unwrap_or_default();
        for (key, value) in pod.labels() {
            for service in self.services.get(&label(&namespace, key, value)) {
                if selector(&service).is_some_and(|wanted| has_all(pod, wanted)) {
                    trigger.changed(Key::of(&*service));
                }
            }
        }
    }
}

/// When the pods of Services changed, as far as was seen.
#[derive(Debug, Default)]
pub(crate) struct Triggers {
    seen: Mutex<HashMap<Key, BTreeMap<String, Timestamp>>>,
}

impl Triggers {
    /// The first of what has happened since the last look: the Service was made, or a pod of it
    /// became ready or unready.
    pub(crate) fn since(&self, service: &Service, pods: &[Arc<Pod>]) -> Option<Timestamp> {
        let of_pods = pods.iter().filter_map(|pod| {
            let since = readiness(pod)?.last_transition_time.as_ref()?.0;
            Some((pod.name_any(), since))
        });
        let made = service
            .creation_timestamp()
            .map(|made| (String::new(), made.0));
        let now: BTreeMap<_, _> = of_pods.chain(made).collect();
        let mut seen = self.seen.lock();
        let before = seen.insert(Key::of(service), now.clone());
        let before = before.unwrap_or_default();
        let new = now
            .iter()
            .filter(|(name, time)| before.get(*name) != Some(time));
        new.map(|(_, time)| *time).min()
    }

    pub(crate) fn forget(&self, service: &Key) {
        self.seen.lock().remove(service);
    }
}

/// Says on endpoints that are written when happened what they are written for, so that it can be
/// measured how long that took.
pub(crate) fn note_trigger(meta: &mut ObjectMeta, trigger: Option<Timestamp>) {
    let mut notes = meta.annotations.take().unwrap_or_default();
    notes.remove(TRIGGER);
    if let Some(time) = trigger {
        notes.insert(TRIGGER.to_owned(), time.to_string());
    }
    meta.annotations = Some(notes).filter(|notes| !notes.is_empty());
}

/// What its pods must be labelled; nothing if somebody else says where it leads.
pub(crate) fn selector(service: &Service) -> Option<&BTreeMap<String, String>> {
    let spec = service.spec.as_ref()?;
    if spec.type_.as_deref() == Some("ExternalName") {
        return None;
    }
    spec.selector.as_ref().filter(|wanted| !wanted.is_empty())
}

/// Whether it has no address of its own.
pub(crate) fn is_headless(service: &Service) -> bool {
    let spec = service.spec.as_ref();
    spec.and_then(|spec| spec.cluster_ip.as_deref()) == Some("None")
}

/// Whether its pods are to be found before they are ready.
pub(crate) fn publishes_all(service: &Service) -> bool {
    let spec = service.spec.as_ref();
    spec.and_then(|spec| spec.publish_not_ready_addresses) == Some(true)
}

/// The addresses of a pod that has not ended; IPv6 ones or the others.
pub(crate) fn addresses(pod: &Pod, v6: bool) -> Vec<String> {
    if matches!(phase(pod), "Succeeded" | "Failed") {
        return Vec::new();
    }
    let status = pod.status.iter();
    let all = status.flat_map(|status| match &status.pod_ips {
        Some(ips) => ips.iter().map(|ip| ip.ip.clone()).collect(),
        None => status.pod_ip.clone().into_iter().collect::<Vec<_>>(),
    });
    let fits = |ip: &String| ip.parse::<IpAddr>().is_ok_and(|ip| ip.is_ipv6() == v6);
    all.filter(fits).collect()
}

/// The name under which the pod is found below the Service's own.
pub(crate) fn hostname(service: &Service, pod: &Pod) -> Option<String> {
    let spec = pod.spec.as_ref()?;
    let below = spec.subdomain == service.metadata.name;
    let hostname = spec.hostname.clone().filter(|name| !name.is_empty());
    hostname.filter(|_| below)
}

/// The pod, as an endpoint refers to it.
pub(crate) fn target(pod: &Pod) -> ObjectReference {
    ObjectReference {
        kind: Some("Pod".to_owned()),
        namespace: pod.namespace(),
        name: pod.metadata.name.clone(),
        uid: pod.uid(),
        ..ObjectReference::default()
    }
}

/// The ports of a Service with the numbers they have in `pod`. One that the pod does not name is
/// left out.
pub(crate) fn ports<'a>(service: &'a Service, pod: &Pod) -> Vec<(&'a ServicePort, i32)> {
    let all = service
        .spec
        .iter()
        .flat_map(|spec| spec.ports.iter().flatten());
    all.filter_map(|port| Some((port, number(port, pod)?)))
        .collect()
}

fn number(port: &ServicePort, pod: &Pod) -> Option<i32> {
    let protocol = |protocol: &Option<String>| protocol.clone().unwrap_or("TCP".to_owned());
    match &port.target_port {
        None | Some(IntOrString::Int(0)) => Some(port.port),
        Some(IntOrString::Int(number)) => Some(*number),
        Some(IntOrString::String(name)) => {
            let fits = |given: &&ContainerPort| {
                given.name.as_ref() == Some(name)
                    && protocol(&given.protocol) == protocol(&port.protocol)
            };
            let found = container_ports(pod).find(fits);
            found.map(|port| port.container_port)
        }
    }
}

/// Those of containers, and of sidecars, which run as long as they.
fn container_ports(pod: &Pod) -> impl Iterator<Item = &ContainerPort> {
    let spec = pod.spec.iter();
    let containers = spec.clone().flat_map(|spec| &spec.containers);
    let first = spec.flat_map(|spec| spec.init_containers.iter().flatten());
    let sidecars = first.filter(|first| first.restart_policy.as_deref() == Some("Always"));
    containers
        .chain(sidecars)
        .flat_map(|container| container.ports.iter().flatten())
}
