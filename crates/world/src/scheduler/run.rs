//! Reads the facts, and carries the decision out.

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
    controller::{Outcome, Trigger},
    event::Note,
    key::Key,
    manager::Service,
    planted,
    site::Site,
    watch::{Cache, Change, Ended, Index},
    wiring::{Tools, Wiring},
};
use parking_lot::Mutex;
use serde_json::Value;

use super::decide::{Decision, Place, decide, is_pending};
use crate::workload::{has_ended, moment, reason};

/// Where pods without a node are in the index; no node has such a name.
const PENDING: &str = "(none)";

/// The scheduler.
pub fn service(site: &Site) -> Result<Service, Ended> {
    let mut wiring = Wiring::new(site, "default-scheduler");
    let pods = wiring.read()?;
    let nodes = wiring.read()?;
    let by_node = Index::new(&pods, |pod| whereabouts(pod).into_iter().collect());
    let waiting = by_node.clone();
    wiring.follow(&pods, move |change, trigger| {
        if is_pending(change.object()) {
            trigger.changed(change.key());
        }
        if makes_room(change) {
            wake(&waiting, trigger);
        }
    });
    let waiting = by_node.clone();
    wiring.follow(&nodes, move |change, trigger| {
        if is_news(change) {
            wake(&waiting, trigger);
        }
    });
    let work = Work {
        by_node,
        rooms: Mutex::default(),
        trigger: wiring.trigger(),
        tools: wiring.tools(),
        pods,
        nodes,
    };
    Ok(wiring.service(work, Work::reconcile))
}

/// The node of a pod that needs room there.
fn whereabouts(pod: &Pod) -> Option<String> {
    if is_pending(pod) {
        return Some(PENDING.to_owned());
    }
    let node = pod.spec.as_ref()?.node_name.clone();
    node.filter(|_| !has_ended(pod))
}

fn makes_room(change: &Change<Pod>) -> bool {
    match change {
        Change::Added(_) => false,
        Change::Modified { old, new } => !has_ended(old) && has_ended(new),
        Change::Deleted(_) => true,
    }
}

/// Heartbeats are none.
fn is_news(change: &Change<Node>) -> bool {
    let Change::Modified { old, new } = change else {
        return true;
    };
    let room = |node: &Node| {
        node.status
            .as_ref()
            .map(|status| status.allocatable.clone())
    };
    let relabelled = old.labels() != new.labels() && !planted!(LabelsUntold);
    old.spec != new.spec || relabelled || room(old) != room(new)
}

fn wake(waiting: &Index<Pod>, trigger: &Trigger<Key>) {
    for pod in waiting.get(PENDING) {
        trigger.changed(Key::of(&*pod));
    }
}

/// Rooms that are taken and of which the cache does not know yet.
#[derive(Default)]
struct Rooms {
    /// Pods that are being given a node, or were, by uid.
    placed: HashMap<String, (Arc<Pod>, String)>,
    /// Pods for which there might be room if one of those does not get it.
    waiting: HashSet<Key>,
}

struct Work {
    pods: Cache<Pod>,
    nodes: Cache<Node>,
    by_node: Index<Pod>,
    rooms: Mutex<Rooms>,
    trigger: Trigger<Key>,
    tools: Tools,
}

impl Work {
    async fn reconcile(self: Arc<Self>, key: Key) -> Result<Outcome, Error> {
        let Some(pod) = self.pods.get(&key) else {
            return Ok(Outcome::Gone);
        };
        if !is_pending(&pod) {
            return Ok(Outcome::Gone);
        }
        let Some(decision) = self.choose(&pod) else {
            return Ok(Outcome::Gone);
        };
        match decision {
            Decision::Bind(node) => self.bind(&pod, node).await,
            Decision::Gated => {
                let message = "Scheduling is blocked due to non-empty scheduling gates";
                self.tell(&pod, "SchedulingGated", message).await
            }
            Decision::Nowhere(message) => self.tell(&pod, "Unschedulable", &message).await,
        }
    }

    /// Decides, and takes the room there before anybody else can: pods are placed one after the
    /// other, and none waits for the server's answer to another. Nothing if the pod has its room
    /// already.
    fn choose(&self, pod: &Arc<Pod>) -> Option<Decision> {
        let uid = pod.uid()?;
        let mut rooms = self.rooms.lock();
        rooms.placed.retain(|uid, (pod, _)| {
            let now = self.pods.get(&Key::of(&**pod));
            now.is_some_and(|now| now.uid().as_ref() == Some(uid) && is_pending(&now))
        });
        if rooms.placed.contains_key(&uid) {
            return None;
        }
        if rooms.placed.is_empty() {
            rooms.waiting.clear();
        }
        let decision = self.decide(pod, &rooms.placed);
        match &decision {
            Decision::Bind(node) => {
                let node = node.clone();
                rooms.placed.insert(uid, (pod.clone(), node));
            }
            Decision::Nowhere(_) if !rooms.placed.is_empty() => {
                rooms.waiting.insert(Key::of(&**pod));
            }
            _ => {}
        }
        Some(decision)
    }

    fn decide(&self, pod: &Pod, placed: &HashMap<String, (Arc<Pod>, String)>) -> Decision {
        let nodes = self.nodes.list("");
        let on: Vec<_> = nodes
            .iter()
            .map(|node| {
                let name = node.name_any();
                let coming = placed.values().filter(|(_, to)| *to == name);
                let mut pods = self.by_node.get(&name);
                pods.extend(coming.map(|(pod, _)| pod.clone()));
                pods
            })
            .collect();
        let places = nodes.iter().zip(&on).map(|(node, pods)| Place {
            node,
            pods: pods.iter().map(|pod| &**pod).collect(),
        });
        decide(pod, &places.collect::<Vec<_>>())
    }

    async fn bind(&self, pod: &Arc<Pod>, node: String) -> Result<Outcome, Error> {
        let key = Key::of(&**pod);
        let room = Room::of(pod, self);
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
            .hand
            .post::<Pod, _, Value>(&key, "binding", &binding)
            .await;
        if let Err(error) = bound {
            planted!(BoundByAnother => if let Error::Refused { .. } = error { return Ok(Outcome::Gone) });
            if let Error::Replaced(_) = error {
                // It is gone, or somebody was faster.
                return Err(error);
            }
            let note = Note::warning(
                "FailedScheduling",
                format!("binding rejected: {}", reason(&error)),
            );
            self.tools.tell(&**pod, &note).await;
            return Err(error);
        }
        room.keep();
        let message = format!("Successfully assigned {key} to {node}");
        let note = Note::normal("Scheduled", message);
        self.tools.tell(&**pod, &note).await;
        Ok(Outcome::Gone)
    }

    /// Says once why the pod waits.
    async fn tell(&self, pod: &Pod, why: &str, message: &str) -> Result<Outcome, Error> {
        let mut pod = pod.clone();
        let status = pod.status.get_or_insert_default();
        let conditions = status.conditions.get_or_insert_default();
        let former = conditions
            .iter()
            .position(|known| known.type_ == "PodScheduled");
        let former = former.map(|place| conditions.remove(place));
        let same = former.as_ref().is_some_and(|former| {
            former.reason.as_deref() == Some(why) && former.message.as_deref() == Some(message)
        });
        if same {
            return Ok(Outcome::Settled);
        }
        let since = former.filter(|former| former.status == "False");
        let since = since.and_then(|former| former.last_transition_time);
        conditions.push(PodCondition {
            type_: "PodScheduled".to_owned(),
            status: "False".to_owned(),
            reason: Some(why.to_owned()),
            message: Some(message.to_owned()),
            last_transition_time: since.or_else(|| Some(moment(self.tools.clock.now()))),
            observed_generation: pod.metadata.generation,
            ..PodCondition::default()
        });
        if why == "Unschedulable" {
            // Before the status, which says that it was told.
            let note = Note::warning("FailedScheduling", message);
            self.tools.tell(&pod, &note).await;
        }
        let said = self.tools.hand.replace_status(&pod).await;
        planted!(ReasonOrNot => return Ok(Outcome::Settled));
        said?;
        Ok(Outcome::Settled)
    }
}

/// Room that a pod has taken. It is given back unless the server says that the pod has it, however
/// the asking ends.
struct Room<'a> {
    uid: Option<String>,
    work: &'a Work,
}

impl<'a> Room<'a> {
    fn of(pod: &Pod, work: &'a Work) -> Self {
        let uid = pod.uid();
        Self { uid, work }
    }

    fn keep(mut self) {
        self.uid = None;
    }
}

impl Drop for Room<'_> {
    fn drop(&mut self) {
        planted!(PlacedBeforeBound => return);
        let Some(uid) = &self.uid else { return };
        let mut rooms = self.work.rooms.lock();
        rooms.placed.remove(uid);
        for key in rooms.waiting.drain() {
            self.work.trigger.changed(key);
        }
    }
}
