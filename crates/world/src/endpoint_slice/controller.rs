//! Reads the facts and executes the decision.

use std::{collections::BTreeMap, sync::Arc};

use k8s_openapi::api::{
    core::v1::{Node, Pod, Service},
    discovery::v1::EndpointSlice,
};
use kube::ResourceExt;
use neap_kit::{
    apply::Error,
    builder::{ControllerBuilder, Tools},
    context::Context,
    controller::Outcome,
    key::Key,
    manager::Component,
    planted,
    watch::{Cache, Change, Index, WatchesStopped},
};

use super::decide::{CONTROLLER_NAME, Decision, Facts, MANAGED_BY, decide};
use crate::{
    service_pods::{SERVICE_NAME_LABEL, ServicePodIndex, TriggerTimeTracker, selector},
    workload::CreateResults,
};

const ZONE: &str = "topology.kubernetes.io/zone";

pub fn component(context: &Context) -> Result<Component, WatchesStopped> {
    let mut builder = ControllerBuilder::new(context, "endpointslice-controller");
    let services = builder.primary()?;
    let pods = builder.cache()?;
    let nodes = builder.cache()?;
    let slices = builder.cache::<EndpointSlice>()?;
    let selection = ServicePodIndex::new(&pods, &services);
    let selected = selection.clone();
    builder.on_change(&pods, move |change, enqueuer| {
        selected.enqueue_for_change(change, enqueuer);
    });
    let (by_node, selected) = (Index::new(&pods, node_of), selection.clone());
    builder.on_change(&nodes, move |change, enqueuer| {
        if zone_changed(change) {
            for pod in by_node.get(&change.object().name_any()) {
                selected.enqueue_for_pod(&pod, enqueuer);
            }
        }
    });
    builder.on_change(&slices, |change, enqueuer| {
        let slice = change.object();
        if let Some(name) = service_key(slice).and(slice.labels().get(SERVICE_NAME_LABEL)) {
            enqueuer.enqueue(Key::new(&slice.namespace().unwrap_or_default(), name));
        }
    });
    let reconciler = EndpointSliceReconciler {
        selection,
        triggers: TriggerTimeTracker::default(),
        by_service: Index::new(&slices, |slice| service_key(slice).into_iter().collect()),
        tools: builder.tools(),
        services,
        slices,
        nodes,
    };
    Ok(builder.build(reconciler, EndpointSliceReconciler::reconcile))
}

fn node_of(pod: &Pod) -> Vec<String> {
    let spec = pod.spec.iter();
    spec.filter_map(|spec| spec.node_name.clone()).collect()
}

/// Whether the zone of the node has changed. Heartbeats change nothing.
fn zone_changed(change: &Change<Node>) -> bool {
    match change {
        Change::Added(node) => node.labels().contains_key(ZONE),
        Change::Modified { old, new } => old.labels().get(ZONE) != new.labels().get(ZONE),
        Change::Deleted(_) => false,
    }
}

/// The key of the Service of a slice that this controller wrote.
fn service_key(slice: &EndpointSlice) -> Option<String> {
    let labels = slice.labels();
    let ours = labels
        .get(MANAGED_BY)
        .is_some_and(|writer| writer == CONTROLLER_NAME);
    let service = labels.get(SERVICE_NAME_LABEL).filter(|_| ours)?;
    let namespace = slice.namespace().unwrap_or_default();
    Some(Key::new(&namespace, service).to_string())
}

struct EndpointSliceReconciler {
    services: Cache<Service>,
    slices: Cache<EndpointSlice>,
    nodes: Cache<Node>,
    selection: ServicePodIndex,
    triggers: TriggerTimeTracker,
    by_service: Index<EndpointSlice>,
    tools: Tools,
}

impl EndpointSliceReconciler {
    async fn reconcile(self: Arc<Self>, key: Key) -> Result<Outcome, Error> {
        let Some(service) = self.services.get(&key) else {
            // Its slices are owned by it and are garbage-collected.
            self.triggers.forget(&key);
            return Ok(Outcome::Gone);
        };
        let leaving = service.metadata.deletion_timestamp.is_some();
        if leaving || selector(&service).is_none() {
            return Ok(Outcome::Done);
        }
        let pods = self.selection.pods(&service);
        let slices = self.by_service.get(&key.to_string());
        let leaves = |slice: &&EndpointSlice| slice.metadata.deletion_timestamp.is_some();
        let facts = Facts {
            trigger_time: self.triggers.since(&service, &pods),
            service: &service,
            zones: self.zones(&pods),
            pods: pods.iter().map(|pod| &**pod).collect(),
            slices: slices
                .iter()
                .map(|slice| &**slice)
                .filter(|slice| !leaves(slice))
                .collect(),
        };
        let decision = decide(&facts);
        let makes = !decision.create.is_empty();
        self.tools.confirm(&*service, makes).await?;
        self.execute(decision).await?;
        Ok(Outcome::Done)
    }

    fn zones(&self, pods: &[Arc<Pod>]) -> BTreeMap<String, String> {
        let names = pods
            .iter()
            .filter_map(|pod| pod.spec.as_ref()?.node_name.as_ref());
        let zones = names.filter_map(|name| {
            let node = self.nodes.get(&Key::new("", name))?;
            Some((name.clone(), node.labels().get(ZONE)?.clone()))
        });
        zones.collect()
    }

    /// Creates come first, so that no pod is missing between two writes.
    async fn execute(&self, decision: Decision) -> Result<(), Error> {
        let mut made = CreateResults::default();
        for slice in &decision.create {
            made.add(slice, self.tools.writer.create(slice).await?.as_ref());
        }
        for slice in &decision.replace {
            let written = self.tools.writer.replace(slice).await;
            planted!(SliceOrNot => if written.is_err() { continue });
            made.add(slice, Some(&written?));
        }
        for slice in &decision.delete {
            self.tools.writer.remove(slice, None).await?;
        }
        made.wait_until_cached(&self.slices).await
    }
}
