//! Reads the facts and executes the decision.

use std::sync::Arc;

use k8s_openapi::api::{
    apps::v1::{ControllerRevision, DaemonSet},
    core::v1::{Node, Pod},
};
use kube::ResourceExt;
use neap_kit::{
    apply::Error,
    builder::{ControllerBuilder, Tools},
    context::Context,
    controller::{Enqueuer, Outcome},
    event::EventDraft,
    key::Key,
    manager::Component,
    planted,
    watch::{Cache, Change, WatchesStopped},
};

use super::{
    decide::{Decision, Facts, decide},
    pod::node_of,
};
use crate::workload::{
    OwnerEnqueuer, OwnerIndex, adopt_and_release, create_pods, delete_pod,
    increment_collision_count, phase,
};

pub fn component(context: &Context) -> Result<Component, WatchesStopped> {
    let mut builder = ControllerBuilder::new(context, "daemonset-controller");
    let sets = builder.primary()?;
    let pods = builder.cache()?;
    let nodes = builder.cache()?;
    let revisions = builder.cache()?;
    let owners = OwnerEnqueuer::new(&sets, |set: &DaemonSet| {
        set.spec.as_ref().map(|spec| &spec.selector)
    });
    builder.on_change(&pods, move |change, enqueuer| {
        owners.enqueue_for_change(change, enqueuer);
    });
    let cached_sets = sets.clone();
    builder.on_change(&nodes, move |change, enqueuer| {
        enqueue_on_node_change(change, &cached_sets, enqueuer);
    });
    let reconciler = DaemonSetReconciler {
        own_pods: OwnerIndex::new(&pods),
        own_revisions: OwnerIndex::new(&revisions),
        tools: builder.tools(),
        sets,
        pods,
        nodes,
        revisions,
    };
    Ok(builder.build(reconciler, DaemonSetReconciler::reconcile))
}

/// Enqueues every DaemonSet when a node is added or removed, or when its spec or labels change. The
/// status of a node does not matter to them.
fn enqueue_on_node_change(
    change: &Change<Node>,
    sets: &Cache<DaemonSet>,
    enqueuer: &Enqueuer<Key>,
) {
    if let Change::Modified { old, new } = change
        && old.spec == new.spec
        && (old.labels() == new.labels() || planted!(NodeUntold))
    {
        return;
    }
    for set in sets.list("") {
        enqueuer.enqueue(Key::of(&*set));
    }
}

struct DaemonSetReconciler {
    sets: Cache<DaemonSet>,
    pods: Cache<Pod>,
    own_pods: OwnerIndex<Pod>,
    nodes: Cache<Node>,
    revisions: Cache<ControllerRevision>,
    own_revisions: OwnerIndex<ControllerRevision>,
    tools: Tools,
}

impl DaemonSetReconciler {
    async fn reconcile(self: Arc<Self>, key: Key) -> Result<Outcome, Error> {
        let Some(set) = self.sets.get(&key) else {
            return Ok(Outcome::Gone);
        };
        let pods = self.own_pods.of(&*set);
        let revisions = self.own_revisions.of(&*set);
        let nodes = self.nodes.list("");
        let facts = Facts {
            set: &set,
            pods: pods.iter().map(|pod| &**pod).collect(),
            revisions: revisions.iter().map(|it| &**it).collect(),
            nodes: nodes.iter().map(|node| &**node).collect(),
            now: self.tools.clock.now(),
        };
        let Some(decision) = decide(&facts) else {
            return Ok(Outcome::Done);
        };
        let requeue_after = decision.requeue_after;
        Box::pin(self.execute(&set, decision)).await?;
        Ok(requeue_after.map_or(Outcome::Done, Outcome::RequeueAfter))
    }

    async fn execute(&self, set: &DaemonSet, decision: Decision<'_>) -> Result<(), Error> {
        let (revisions, writer) = (&decision.revisions, &self.tools.writer);
        let makes = !decision.create.is_empty() || !decision.adopt.is_empty();
        self.tools
            .confirm(set, makes || revisions.creates_or_adopts())
            .await?;
        if !revisions.execute(writer, set, &self.revisions).await? {
            return increment_collision_count(&self.tools, set).await;
        }
        adopt_and_release(writer, set, &decision.adopt, &decision.release).await?;
        let mut updated = set.clone();
        updated.status = Some(decision.status);
        self.tools.update_status(set, &updated).await?;
        let made = create_pods(&self.tools, set, &decision.create).await?;
        for pod in &decision.delete {
            if let Some(event) = ended_event(pod) {
                self.tools.record(set, &event).await;
            }
            delete_pod(&self.tools, set, pod).await?;
        }
        made.wait_until_cached(&self.pods).await
    }
}

/// The Event for a pod that has ended.
fn ended_event(pod: &Pod) -> Option<EventDraft> {
    let namespace = pod.namespace().unwrap_or_default();
    let node = node_of(pod).unwrap_or_default();
    let which = format!("daemon pod {namespace}/{} on node {node}", pod.name_any());
    match phase(pod) {
        "Failed" => {
            let message = format!("Found failed {which}, will try to kill it");
            Some(EventDraft::warning("FailedDaemonPod", message))
        }
        "Succeeded" => {
            let message = format!("Found succeeded {which}, will try to delete it");
            Some(EventDraft::normal("SucceededDaemonPod", message))
        }
        _ => None,
    }
}
