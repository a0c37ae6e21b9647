//! Reads the facts, and carries the decision out.

use std::sync::Arc;

use k8s_openapi::api::{
    apps::v1::{ControllerRevision, DaemonSet},
    core::v1::{Node, Pod},
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
    watch::{Cache, Change, Ended},
    wiring::{Tools, Wiring},
};

use super::{
    decide::{Decision, Facts, decide},
    pod::node_of,
};
use crate::workload::{
    Claimable, Claiming, adopt_and_release, create_pods, delete_pod, phase, rename,
};

/// The controller of DaemonSets.
pub fn service(site: &Site) -> Result<Service, Ended> {
    let mut wiring = Wiring::new(site, "daemonset-controller");
    let sets = wiring.kept()?;
    let pods = wiring.read()?;
    let nodes = wiring.read()?;
    let revisions = wiring.read()?;
    let claiming = Claiming::new(&sets, |set: &DaemonSet| {
        set.spec.as_ref().map(|spec| &spec.selector)
    });
    wiring.follow(&pods, move |change, trigger| claiming.tell(change, trigger));
    let known_sets = sets.clone();
    wiring.follow(&nodes, move |change, trigger| {
        tell_of_node(change, &known_sets, trigger);
    });
    let work = Work {
        own_pods: Claimable::new(&pods),
        own_revisions: Claimable::new(&revisions),
        tools: wiring.tools(),
        sets,
        pods,
        nodes,
        revisions,
    };
    Ok(wiring.service(work, Work::reconcile))
}

/// Every set has to look at a node that came, went, or is another for pods. How it feels is none
/// of their business.
fn tell_of_node(change: &Change<Node>, sets: &Cache<DaemonSet>, trigger: &Trigger<Key>) {
    if let Change::Modified { old, new } = change
        && old.spec == new.spec
        && (old.labels() == new.labels() || planted!(NodeUntold))
    {
        return;
    }
    for set in sets.list("") {
        trigger.changed(Key::of(&*set));
    }
}

struct Work {
    sets: Cache<DaemonSet>,
    pods: Cache<Pod>,
    own_pods: Claimable<Pod>,
    nodes: Cache<Node>,
    revisions: Cache<ControllerRevision>,
    own_revisions: Claimable<ControllerRevision>,
    tools: Tools,
}

impl Work {
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
            return Ok(Outcome::Settled);
        };
        let again = decision.again;
        Box::pin(self.carry_out(&set, decision)).await?;
        Ok(again.map_or(Outcome::Settled, Outcome::Again))
    }

    async fn carry_out(&self, set: &DaemonSet, decision: Decision<'_>) -> Result<(), Error> {
        let (revisions, hand) = (&decision.revisions, &self.tools.hand);
        let makes = !decision.create.is_empty() || !decision.adopt.is_empty();
        self.tools.confirm(set, makes || revisions.makes()).await?;
        if !revisions.carry_out(hand, set, &self.revisions).await? {
            return rename(&self.tools, set).await;
        }
        adopt_and_release(hand, set, &decision.adopt, &decision.release).await?;
        let mut said = set.clone();
        said.status = Some(decision.status);
        self.tools.report(set, &said).await?;
        let made = create_pods(&self.tools, set, &decision.create).await?;
        for pod in &decision.delete {
            if let Some(note) = end(pod) {
                self.tools.tell(set, &note).await;
            }
            delete_pod(&self.tools, set, pod).await?;
        }
        made.shown(&self.pods).await
    }
}

/// What is said of a pod that has run to its end.
fn end(pod: &Pod) -> Option<Note> {
    let namespace = pod.namespace().unwrap_or_default();
    let node = node_of(pod).unwrap_or_default();
    let which = format!("daemon pod {namespace}/{} on node {node}", pod.name_any());
    match phase(pod) {
        "Failed" => {
            let message = format!("Found failed {which}, will try to kill it");
            Some(Note::warning("FailedDaemonPod", message))
        }
        "Succeeded" => {
            let message = format!("Found succeeded {which}, will try to delete it");
            Some(Note::normal("SucceededDaemonPod", message))
        }
        _ => None,
    }
}
