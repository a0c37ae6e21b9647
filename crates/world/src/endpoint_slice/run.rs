//! Reads the facts, and carries the decision out.

use std::{collections::BTreeMap, sync::Arc};

use k8s_openapi::api::{
    core::v1::{Node, Pod, Service as KubeService},
    discovery::v1::EndpointSlice,
};
use kube::ResourceExt;
use neap_kit::{
    apply::Error,
    controller::Outcome,
    key::Key,
    manager::Service,
    planted,
    site::Site,
    watch::{Cache, Change, Ended, Index},
    wiring::{Tools, Wiring},
};

use super::decide::{Decision, Facts, US, WRITER, decide};
use crate::{
    service_pods::{SERVICE, Selection, Triggers, selector},
    workload::Made,
};

const ZONE: &str = "topology.kubernetes.io/zone";

/// The controller of EndpointSlices.
pub fn service(site: &Site) -> Result<Service, Ended> {
    let mut wiring = Wiring::new(site, "endpointslice-controller");
    let services = wiring.kept()?;
    let pods = wiring.read()?;
    let nodes = wiring.read()?;
    let slices = wiring.read::<EndpointSlice>()?;
    let selection = Selection::new(&pods, &services);
    let selected = selection.clone();
    wiring.follow(&pods, move |change, trigger| selected.tell(change, trigger));
    let (by_node, selected) = (Index::new(&pods, node_of), selection.clone());
    wiring.follow(&nodes, move |change, trigger| {
        if moves(change) {
            for pod in by_node.get(&change.object().name_any()) {
                selected.tell_of(&pod, trigger);
            }
        }
    });
    wiring.follow(&slices, |change, trigger| {
        let slice = change.object();
        if let Some(name) = of(slice).and(slice.labels().get(SERVICE)) {
            trigger.changed(Key::new(&slice.namespace().unwrap_or_default(), name));
        }
    });
    let work = Work {
        selection,
        triggers: Triggers::default(),
        by_service: Index::new(&slices, |slice| of(slice).into_iter().collect()),
        tools: wiring.tools(),
        services,
        slices,
        nodes,
    };
    Ok(wiring.service(work, Work::reconcile))
}

fn node_of(pod: &Pod) -> Vec<String> {
    let spec = pod.spec.iter();
    spec.filter_map(|spec| spec.node_name.clone()).collect()
}

/// Whether the node is in another zone than before. Heartbeats move nothing.
fn moves(change: &Change<Node>) -> bool {
    match change {
        Change::Added(node) => node.labels().contains_key(ZONE),
        Change::Modified { old, new } => old.labels().get(ZONE) != new.labels().get(ZONE),
        Change::Deleted(_) => false,
    }
}

/// The Service that one of our slices is of.
fn of(slice: &EndpointSlice) -> Option<String> {
    let labels = slice.labels();
    let ours = labels.get(WRITER).is_some_and(|writer| writer == US);
    let service = labels.get(SERVICE).filter(|_| ours)?;
    let namespace = slice.namespace().unwrap_or_default();
    Some(Key::new(&namespace, service).to_string())
}

struct Work {
    services: Cache<KubeService>,
    slices: Cache<EndpointSlice>,
    nodes: Cache<Node>,
    selection: Selection,
    triggers: Triggers,
    by_service: Index<EndpointSlice>,
    tools: Tools,
}

impl Work {
    async fn reconcile(self: Arc<Self>, key: Key) -> Result<Outcome, Error> {
        let Some(service) = self.services.get(&key) else {
            // Its slices are its own, and go with it.
            self.triggers.forget(&key);
            return Ok(Outcome::Gone);
        };
        let leaving = service.metadata.deletion_timestamp.is_some();
        if leaving || selector(&service).is_none() {
            return Ok(Outcome::Settled);
        }
        let pods = self.selection.pods(&service);
        let slices = self.by_service.get(&key.to_string());
        let leaves = |slice: &&EndpointSlice| slice.metadata.deletion_timestamp.is_some();
        let facts = Facts {
            trigger: self.triggers.since(&service, &pods),
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
        self.carry_out(decision).await?;
        Ok(Outcome::Settled)
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

    /// What is new comes first, so that no pod is missing between two writes.
    async fn carry_out(&self, decision: Decision) -> Result<(), Error> {
        let mut made = Made::default();
        for slice in &decision.create {
            made.add(slice, self.tools.hand.create(slice).await?.as_ref());
        }
        for slice in &decision.replace {
            let written = self.tools.hand.replace(slice).await;
            planted!(SliceOrNot => if written.is_err() { continue });
            made.add(slice, Some(&written?));
        }
        for slice in &decision.delete {
            self.tools.hand.remove(slice, None).await?;
        }
        made.shown(&self.slices).await
    }
}
