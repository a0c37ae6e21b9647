//! The pods behind a Service, and their addresses and ports.

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
    controller::Enqueuer,
    key::Key,
    watch::{Cache, Change, Index},
};
use parking_lot::Mutex;

use crate::workload::{LabelIndex, has_all, label, phase, readiness};

/// The label of an EndpointSlice that names its Service.
pub(crate) const SERVICE_NAME_LABEL: &str = "kubernetes.io/service-name";
/// The annotation with the time of the change that endpoints were written for.
const TRIGGER_TIME: &str = "endpoints.kubernetes.io/last-change-trigger-time";
/// The label of endpoints of a Service without an address of its own.
pub(crate) const HEADLESS_LABEL: &str = "service.kubernetes.io/headless";

/// Finds the pods that a Service selects, and the Services that select a pod.
#[derive(Debug, Clone)]
pub(crate) struct ServicePodIndex {
    pods: LabelIndex,
    services: Index<Service>,
}

impl ServicePodIndex {
    pub(crate) fn new(pods: &Cache<Pod>, services: &Cache<Service>) -> Self {
        let by_first = |service: &Service| {
            let namespace = service.namespace().unwrap_or_default();
            let pair = selector(service).and_then(|wanted| wanted.first_key_value());
            let label = pair.map(|(key, value)| label(&namespace, key, value));
            label.into_iter().collect()
        };
        Self {
            pods: LabelIndex::new(pods),
            services: Index::new(services, by_first),
        }
    }

    /// The pods that `service` selects.
    pub(crate) fn pods(&self, service: &Service) -> Vec<Arc<Pod>> {
        let namespace = service.namespace().unwrap_or_default();
        let wanted = selector(service);
        wanted.map_or_else(Vec::new, |wanted| self.pods.with(&namespace, wanted))
    }

    /// Enqueues the Services that select a pod which changed, or that selected it before.
    pub(crate) fn enqueue_for_change(&self, change: &Change<Pod>, enqueuer: &Enqueuer<Key>) {
        self.enqueue_for_pod(change.object(), enqueuer);
        if let Change::Modified { old, new } = change
            && old.labels() != new.labels()
        {
            self.enqueue_for_pod(old, enqueuer);
        }
    }

    /// Enqueues the Services that select `pod`.
    pub(crate) fn enqueue_for_pod(&self, pod: &Pod, enqueuer: &Enqueuer<Key>) {
        let namespace = pod.namespace().unwrap_or_default();
        for (key, value) in pod.labels() {
            for service in self.services.get(&label(&namespace, key, value)) {
                if selector(&service).is_some_and(|wanted| has_all(pod, wanted)) {
                    enqueuer.enqueue(Key::of(&*service));
                }
            }
        }
    }
}

/// The last observed change times of Services and their pods.
#[derive(Debug, Default)]
pub(crate) struct TriggerTimeTracker {
    seen: Mutex<HashMap<Key, BTreeMap<String, Timestamp>>>,
}

impl TriggerTimeTracker {
    /// The earliest change since the last call: the creation of the Service, or a pod of it that
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

/// Annotates endpoints with the time of the change they are written for, from which the latency of
/// endpoint programming is measured.
pub(crate) fn set_trigger_time(meta: &mut ObjectMeta, time: Option<Timestamp>) {
    let mut annotations = meta.annotations.take().unwrap_or_default();
    annotations.remove(TRIGGER_TIME);
    if let Some(time) = time {
        annotations.insert(TRIGGER_TIME.to_owned(), time.to_string());
    }
    meta.annotations = Some(annotations).filter(|annotations| !annotations.is_empty());
}

/// The labels that its pods must have; none if the endpoints are not managed by selector.
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

/// Whether the Service publishes its pods before they are ready.
pub(crate) fn publishes_not_ready(service: &Service) -> bool {
    let spec = service.spec.as_ref();
    spec.and_then(|spec| spec.publish_not_ready_addresses) == Some(true)
}

/// The addresses of a pod that has not ended, of one IP family.
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

/// The DNS name of the pod below that of the Service.
pub(crate) fn hostname(service: &Service, pod: &Pod) -> Option<String> {
    let spec = pod.spec.as_ref()?;
    let below = spec.subdomain == service.metadata.name;
    let hostname = spec.hostname.clone().filter(|name| !name.is_empty());
    hostname.filter(|_| below)
}

/// The reference of an endpoint to its pod.
pub(crate) fn target_ref(pod: &Pod) -> ObjectReference {
    ObjectReference {
        kind: Some("Pod".to_owned()),
        namespace: pod.namespace(),
        name: pod.metadata.name.clone(),
        uid: pod.uid(),
        ..ObjectReference::default()
    }
}

/// The ports of a Service with their numbers in `pod`. A named target port that the pod does not
/// have is left out.
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

/// The ports of containers, and of sidecars, which run as long as they do.
fn container_ports(pod: &Pod) -> impl Iterator<Item = &ContainerPort> {
    let spec = pod.spec.iter();
    let containers = spec.clone().flat_map(|spec| &spec.containers);
    let first = spec.flat_map(|spec| spec.init_containers.iter().flatten());
    let sidecars = first.filter(|first| first.restart_policy.as_deref() == Some("Always"));
    containers
        .chain(sidecars)
        .flat_map(|container| container.ports.iter().flatten())
}
