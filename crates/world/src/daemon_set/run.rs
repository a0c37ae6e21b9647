//! Reads the facts, and carries the decision out.

use std::sync::Arc;

use k8s_openapi::api::{
    apps::v1::{ControllerRevision, DaemonSet},
    core::v1::{Node, Pod},
};
use kube::ResourceExt;
use neap_kit::{
    apply::{Error, Hand},
    clock::Clock,
    controller::{Options, Outcome, Trigger},
    event::{Note, Recorder},
    key::Key,
    manager::Service,
    site::Site,
    watch::{Cache, Change, Ended, Index},
};

use super::{
    decide::{Decision, Facts, decide},
    pod::node_of,
};
use crate::workload::{
    Claiming, ORPHANS, adopt_and_release, echoed, owner_or_orphan, phase, reason, report,
    unless_replaced,
};

const NAME: &str = "daemonset-controller";

/// The controller of DaemonSets.
pub fn service(site: &Site) -> Result<Service, Ended> {
    let sets = site.all::<DaemonSet>()?;
    let pods = site.all::<Pod>()?;
    let nodes = site.all::<Node>()?;
    let revisions = site.all::<ControllerRevision>()?;
    let controller = site.controller(Options::new(NAME));
    let work = Arc::new(Work {
        pods_by_owner: Index::new(&pods, owner_or_orphan),
        revisions_by_owner: Index::new(&revisions, owner_or_orphan),
        hand: site.hand(NAME),
        recorder: site.recorder(NAME),
        clock: site.clock,
        sets: sets.clone(),
        pods: pods.clone(),
        nodes: nodes.clone(),
        revisions: revisions.clone(),
    });
    let trigger = controller.trigger();
    sets.follow(move |change| trigger.changed(change.key()));
    let claiming = Claiming::new(&sets, controller.trigger(), |set: &DaemonSet| {
        set.spec.as_ref().map(|spec| &spec.selector)
    });
    pods.follow(move |change| claiming.tell(change));
    let (trigger, known_sets) = (controller.trigger(), sets.clone());
    nodes.follow(move |change| tell_of_node(change, &known_sets, &trigger));
    Ok(Service::new(NAME, move |stop| async move {
        let known = async {
            sets.synced().await;
            pods.synced().await;
            nodes.synced().await;
            revisions.synced().await;
        };
        let reconcile = move |key| work.clone().reconcile(key);
        controller.run_once_known(known, reconcile, stop).await;
    }))
}

/// Every set has to look at a node that came, went, or is another for pods. How it feels is none
/// of their business.
fn tell_of_node(change: &Change<Node>, sets: &Cache<DaemonSet>, trigger: &Trigger<Key>) {
    if let Change::Modified { old, new } = change
        && old.spec == new.spec
        && old.labels() == new.labels()
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
    pods_by_owner: Index<Pod>,
    nodes: Cache<Node>,
    revisions: Cache<ControllerRevision>,
    revisions_by_owner: Index<ControllerRevision>,
    hand: Hand,
    recorder: Recorder,
    clock: Clock,
}

impl Work {
    async fn reconcile(self: Arc<Self>, key: Key) -> Result<Outcome, Error> {
        let Some(set) = self.sets.get(&key) else {
            return Ok(Outcome::Gone);
        };
        let uid = set.uid().unwrap_or_default();
        let orphans = format!("{ORPHANS}{}", key.namespace());
        let mut pods = self.pods_by_owner.get(&uid);
        pods.extend(self.pods_by_owner.get(&orphans));
        let mut revisions = self.revisions_by_owner.get(&uid);
        revisions.extend(self.revisions_by_owner.get(&orphans));
        let nodes = self.nodes.list("");
        let facts = Facts {
            set: &set,
            pods: pods.iter().map(|pod| &**pod).collect(),
            revisions: revisions.iter().map(|it| &**it).collect(),
            nodes: nodes.iter().map(|node| &**node).collect(),
            now: self.clock.now(),
        };
        let Some(decision) = decide(&facts) else {
            return Ok(Outcome::Settled);
        };
        let again = decision.again;
        let carried_out = Box::pin(self.carry_out(&set, decision));
        unless_replaced(carried_out.await)?;
        Ok(again.map_or(Outcome::Settled, Outcome::Again))
    }

    async fn carry_out(&self, set: &DaemonSet, decision: Decision<'_>) -> Result<(), Error> {
        let revisions = &decision.revisions;
        if !revisions
            .carry_out(&self.hand, set, &self.revisions)
            .await?
        {
            return self.rename(set).await;
        }
        adopt_and_release(&self.hand, set, &decision.adopt, &decision.release).await?;
        self.report(set, &decision).await?;
        let mut newest = None;
        for pod in &decision.create {
            newest = self.create(set, pod).await?.or(newest);
        }
        for pod in &decision.delete {
            self.delete(set, pod).await?;
        }
        // The next look must not miss these pods.
        echoed(&self.pods, newest).await;
        Ok(())
    }

    /// The name of the latest revision is another's: the next one is tried.
    async fn rename(&self, set: &DaemonSet) -> Result<(), Error> {
        let mut set = set.clone();
        let status = set.status.get_or_insert_default();
        status.collision_count = Some(status.collision_count.unwrap_or(0) + 1);
        report(&self.hand, &set).await
    }

    /// Makes a pod, and says which version of it is the first.
    async fn create(&self, set: &DaemonSet, pod: &Pod) -> Result<Option<String>, Error> {
        let made = self.hand.create(pod).await;
        let note = match &made {
            Ok(None) => return Ok(None),
            Ok(Some(pod)) => Note::normal(
                "SuccessfulCreate",
                format!("Created pod: {}", pod.name_any()),
            ),
            Err(error) => {
                Note::warning("FailedCreate", format!("Error creating: {}", reason(error)))
            }
        };
        self.recorder.tell(set, &note).await;
        Ok(made?.and_then(|pod| pod.resource_version()))
    }

    async fn delete(&self, set: &DaemonSet, pod: &Pod) -> Result<(), Error> {
        if let Some(note) = end(pod) {
            self.recorder.tell(set, &note).await;
        }
        self.hand.remove(pod, None).await?;
        let message = format!("Deleted pod: {}", pod.name_any());
        let note = Note::normal("SuccessfulDelete", message);
        self.recorder.tell(set, &note).await;
        Ok(())
    }

    /// One write, and only if it says something new.
    async fn report(&self, set: &DaemonSet, decision: &Decision<'_>) -> Result<(), Error> {
        if set.status.as_ref() == Some(&decision.status) {
            return Ok(());
        }
        let mut set = set.clone();
        set.status = Some(decision.status.clone());
        report(&self.hand, &set).await
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
