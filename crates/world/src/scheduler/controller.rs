//! Reads the facts and executes the decision.

use std::{
    collections::{HashMap, HashSet},
    sync::Arc,
};

use k8s_openapi::{
    api::core::v1::{Binding, Node, ObjectReference, Pod, PodCondition},
    apimachinery::pkg::apis::meta::v1::ObjectMeta,
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
    watch::{Cache, Change, Index, WatchesStopped},
};
use parking_lot::Mutex;
use serde_json::Value;

use super::decide::{Decision, NodeInfo, decide, is_pending};
use crate::workload::{api_time, error_message, has_ended};

/// The index key of pods without a node; no node has such a name.
const PENDING: &str = "(none)";

pub fn component(context: &Context) -> Result<Component, WatchesStopped> {
    let mut builder = ControllerBuilder::new(context, "default-scheduler");
    let pods = builder.cache()?;
    let nodes = builder.cache()?;
    let by_node = Index::new(&pods, |pod| index_key(pod).into_iter().collect());
    let waiting = by_node.clone();
    builder.on_change(&pods, move |change, enqueuer| {
        if is_pending(change.object()) {
            enqueuer.enqueue(change.key());
        }
        if frees_resources(change) {
            enqueue_pending(&waiting, enqueuer);
        }
    });
    let waiting = by_node.clone();
    builder.on_change(&nodes, move |change, enqueuer| {
        if may_make_schedulable(change) {
            enqueue_pending(&waiting, enqueuer);
        }
    });
    let reconciler = SchedulerReconciler {
        by_node,
        assumed: Mutex::default(),
        enqueuer: builder.enqueuer(),
        tools: builder.tools(),
        pods,
        nodes,
    };
    Ok(builder.build(reconciler, SchedulerReconciler::reconcile))
}

/// The index key of a pod: its node, or [`PENDING`]. A pod that has ended uses no resources and has
/// none.
fn index_key(pod: &Pod) -> Option<String> {
    if is_pending(pod) {
        return Some(PENDING.to_owned());
    }
    let node = pod.spec.as_ref()?.node_name.clone();
    node.filter(|_| !has_ended(pod))
}

fn frees_resources(change: &Change<Pod>) -> bool {
    match change {
        Change::Added(_) => false,
        Change::Modified { old, new } => !has_ended(old) && has_ended(new),
        Change::Deleted(_) => true,
    }
}

/// Whether the change of a node may make a pod schedulable. Heartbeats do not.
fn may_make_schedulable(change: &Change<Node>) -> bool {
    let Change::Modified { old, new } = change else {
        return true;
    };
    let allocatable = |node: &Node| {
        node.status
            .as_ref()
            .map(|status| status.allocatable.clone())
    };
    let labels_changed = old.labels() != new.labels() && !planted!(LabelsUntold);
    old.spec != new.spec || labels_changed || allocatable(old) != allocatable(new)
}

fn enqueue_pending(waiting: &Index<Pod>, enqueuer: &Enqueuer<Key>) {
    for pod in waiting.get(PENDING) {
        enqueuer.enqueue(Key::of(&*pod));
    }
}

/// Pods that are bound or being bound and that the cache does not show as bound yet.
#[derive(Default)]
struct AssumedPods {
    /// These pods with their nodes, by uid.
    bindings: HashMap<String, (Arc<Pod>, String)>,
    /// Unschedulable pods that might fit if one of those is not bound.
    waiting: HashSet<Key>,
}

struct SchedulerReconciler {
    pods: Cache<Pod>,
    nodes: Cache<Node>,
    by_node: Index<Pod>,
    assumed: Mutex<AssumedPods>,
    enqueuer: Enqueuer<Key>,
    tools: Tools,
}

impl SchedulerReconciler {
    async fn reconcile(self: Arc<Self>, key: Key) -> Result<Outcome, Error> {
        let Some(pod) = self.pods.get(&key) else {
            return Ok(Outcome::Gone);
        };
        if !is_pending(&pod) {
            return Ok(Outcome::Gone);
        }
        let Some(decision) = self.assume(&pod) else {
            return Ok(Outcome::Gone);
        };
        match decision {
            Decision::Bind(node) => self.bind(&pod, node).await,
            Decision::Gated => {
                let message = "Scheduling is blocked due to non-empty scheduling gates";
                self.report_pending(&pod, "SchedulingGated", message).await
            }
            Decision::Unschedulable(message) => {
                self.report_pending(&pod, "Unschedulable", &message).await
            }
        }
    }

    /// Decides, and reserves the resources on the node at once: pods are assigned one after the
    /// other, and none waits for the API server's answer for another. None if the pod is assumed
    /// already.
    fn assume(&self, pod: &Arc<Pod>) -> Option<Decision> {
        let uid = pod.uid()?;
        let mut assumed = self.assumed.lock();
        assumed.bindings.retain(|uid, (pod, _)| {
            let now = self.pods.get(&Key::of(&**pod));
            now.is_some_and(|now| now.uid().as_ref() == Some(uid) && is_pending(&now))
        });
        if assumed.bindings.contains_key(&uid) {
            return None;
        }
        if assumed.bindings.is_empty() {
            assumed.waiting.clear();
        }
        let decision = self.decide(pod, &assumed.bindings);
        match &decision {
            Decision::Bind(node) => {
                let node = node.clone();
                assumed.bindings.insert(uid, (pod.clone(), node));
            }
            Decision::Unschedulable(_) if !assumed.bindings.is_empty() => {
                assumed.waiting.insert(Key::of(&**pod));
            }
            _ => {}
        }
        Some(decision)
    }

    fn decide(&self, pod: &Pod, bindings: &HashMap<String, (Arc<Pod>, String)>) -> Decision {
        let nodes = self.nodes.list("");
        let on: Vec<_> = nodes
            .iter()
            .map(|node| {
                let name = node.name_any();
                let coming = bindings.values().filter(|(_, to)| *to == name);
                let mut pods = self.by_node.get(&name);
                pods.extend(coming.map(|(pod, _)| pod.clone()));
                pods
            })
            .collect();
        let infos = nodes.iter().zip(&on).map(|(node, pods)| NodeInfo {
            node,
            pods: pods.iter().map(|pod| &**pod).collect(),
        });
        decide(pod, &infos.collect::<Vec<_>>())
    }

    async fn bind(&self, pod: &Arc<Pod>, node: String) -> Result<Outcome, Error> {
        let key = Key::of(&**pod);
        let guard = AssumedPodGuard::of(pod, self);
        let binding = Binding {
            metadata: ObjectMeta {
                name: pod.metadata.name.clone(),
                namespace: pod.namespace(),
                uid: pod.uid(),
                ..ObjectMeta::default()
            },
            target: ObjectReference {
                kind: Some("Node".to_owned()),
                name: Some(node.clone()),
                ..ObjectReference::default()
            },
        };
        let bound = self
            .tools
            .writer
            .post::<Pod, _, Value>(&key, "binding", &binding)
            .await;
        if let Err(error) = bound {
            planted!(BoundByAnother => if let Error::Refused { .. } = error { return Ok(Outcome::Gone) });
            if let Error::Conflict(_) = error {
                // The pod is gone, or was bound by another.
                return Err(error);
            }
            let event = EventDraft::warning(
                "FailedScheduling",
                format!("binding rejected: {}", error_message(&error)),
            );
            self.tools.record(&**pod, &event).await;
            return Err(error);
        }
        guard.confirm();
        let message = format!("Successfully assigned {key} to {node}");
        let event = EventDraft::normal("Scheduled", message);
        self.tools.record(&**pod, &event).await;
        Ok(Outcome::Gone)
    }

    /// Reports why the pod waits, once per reason.
    async fn report_pending(&self, pod: &Pod, why: &str, message: &str) -> Result<Outcome, Error> {
        let mut pod = pod.clone();
        let status = pod.status.get_or_insert_default();
        let conditions = status.conditions.get_or_insert_default();
        let former = conditions
            .iter()
            .position(|condition| condition.type_ == "PodScheduled");
        let former = former.map(|index| conditions.remove(index));
        let same = former.as_ref().is_some_and(|former| {
            former.reason.as_deref() == Some(why) && former.message.as_deref() == Some(message)
        });
        if same {
            return Ok(Outcome::Done);
        }
        let since = former.filter(|former| former.status == "False");
        let since = since.and_then(|former| former.last_transition_time);
        conditions.push(PodCondition {
            type_: "PodScheduled".to_owned(),
            status: "False".to_owned(),
            reason: Some(why.to_owned()),
            message: Some(message.to_owned()),
            last_transition_time: since.or_else(|| Some(api_time(self.tools.clock.now()))),
            observed_generation: pod.metadata.generation,
            ..PodCondition::default()
        });
        if why == "Unschedulable" {
            // Recorded before the status, which shows that it was recorded.
            let event = EventDraft::warning("FailedScheduling", message);
            self.tools.record(&pod, &event).await;
        }
        let written = self.tools.writer.replace_status(&pod).await;
        planted!(ReasonOrNot => return Ok(Outcome::Done));
        written?;
        Ok(Outcome::Done)
    }
}

/// The resources reserved for a pod. They are released unless the API server confirms the binding,
/// however the request ends.
struct AssumedPodGuard<'a> {
    uid: Option<String>,
    reconciler: &'a SchedulerReconciler,
}

impl<'a> AssumedPodGuard<'a> {
    fn of(pod: &Pod, reconciler: &'a SchedulerReconciler) -> Self {
        let uid = pod.uid();
        Self { uid, reconciler }
    }

    fn confirm(mut self) {
        self.uid = None;
    }
}

impl Drop for AssumedPodGuard<'_> {
    fn drop(&mut self) {
        planted!(PlacedBeforeBound => return);
        let Some(uid) = &self.uid else { return };
        let mut assumed = self.reconciler.assumed.lock();
        assumed.bindings.remove(uid);
        for key in assumed.waiting.drain() {
            self.reconciler.enqueuer.enqueue(key);
        }
    }
}
