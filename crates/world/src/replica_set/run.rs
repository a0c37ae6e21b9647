//! Reads the facts, and carries the decision out.

use std::sync::Arc;

use k8s_openapi::api::{apps::v1::ReplicaSet, core::v1::Pod};
use kube::ResourceExt;
use neap_kit::{
    apply::{Error, Hand},
    clock::Clock,
    controller::{Options, Outcome},
    event::{Note, Recorder},
    key::Key,
    manager::Service,
    site::Site,
    watch::{Cache, Ended, Index},
};

use super::decide::{Decision, Facts, decide};
use crate::workload::{
    Claiming, ORPHANS, adopt_and_release, echoed, owner_or_orphan, reason, report,
};

const NAME: &str = "replicaset-controller";

/// The controller of ReplicaSets.
pub fn service(site: &Site) -> Result<Service, Ended> {
    let sets = site.all::<ReplicaSet>()?;
    let pods = site.all::<Pod>()?;
    let controller = site.controller(Options::new(NAME));
    let work = Arc::new(Work {
        by_owner: Index::new(&pods, owner_or_orphan),
        hand: site.hand(NAME),
        recorder: site.recorder(NAME),
        clock: site.clock,
        sets: sets.clone(),
        pods: pods.clone(),
    });
    let trigger = controller.trigger();
    sets.follow(move |change| trigger.changed(change.key()));
    let claiming = Claiming::new(&sets, controller.trigger(), |set: &ReplicaSet| {
        set.spec.as_ref().map(|spec| &spec.selector)
    });
    pods.follow(move |change| claiming.tell(change));
    Ok(Service::new(NAME, move |stop| async move {
        let known = async {
            sets.synced().await;
            pods.synced().await;
        };
        let reconcile = move |key| work.clone().reconcile(key);
        controller.run_once_known(known, reconcile, stop).await;
    }))
}

struct Work {
    sets: Cache<ReplicaSet>,
    pods: Cache<Pod>,
    by_owner: Index<Pod>,
    hand: Hand,
    recorder: Recorder,
    clock: Clock,
}

impl Work {
    async fn reconcile(self: Arc<Self>, key: Key) -> Result<Outcome, Error> {
        let Some(set) = self.sets.get(&key) else {
            return Ok(Outcome::Gone);
        };
        let mut pods = self.by_owner.get(&set.uid().unwrap_or_default());
        pods.extend(self.by_owner.get(&format!("{ORPHANS}{}", key.namespace())));
        let facts = Facts {
            set: &set,
            pods: pods.iter().map(|pod| &**pod).collect(),
            now: self.clock.now(),
        };
        let decision = decide(&facts);
        let again = decision.again;
        self.carry_out(&set, decision).await?;
        Ok(again.map_or(Outcome::Settled, Outcome::Again))
    }

    async fn carry_out(&self, set: &ReplicaSet, decision: Decision<'_>) -> Result<(), Error> {
        let (adopt, release) = (&decision.adopt, &decision.release);
        adopt_and_release(&self.hand, set, adopt, release).await?;
        self.report(set, &decision).await?;
        let mut newest = None;
        for pod in &decision.create {
            newest = self.create(set, pod).await?.or(newest);
        }
        for pod in &decision.delete {
            self.hand.remove(*pod, None).await?;
            let message = format!("Deleted pod: {}", pod.name_any());
            let note = Note::normal("SuccessfulDelete", message);
            self.recorder.tell(set, &note).await;
        }
        // The next look must not miss these pods.
        echoed(&self.pods, newest).await;
        Ok(())
    }

    /// Makes a pod, and says which version of it is the first.
    async fn create(&self, set: &ReplicaSet, pod: &Pod) -> Result<Option<String>, Error> {
        match self.hand.create(pod).await {
            Ok(made) => {
                if made.is_some() {
                    let note = Note::normal(
                        "SuccessfulCreate",
                        format!("Created pod: {}", pod.name_any()),
                    );
                    self.recorder.tell(set, &note).await;
                }
                Ok(made.and_then(|pod| pod.resource_version()))
            }
            Err(error) => {
                let message = format!("Error creating: {}", reason(&error));
                self.recorder
                    .tell(set, &Note::warning("FailedCreate", message))
                    .await;
                Err(error)
            }
        }
    }

    /// One write, and only if it says something new.
    async fn report(&self, set: &ReplicaSet, decision: &Decision<'_>) -> Result<(), Error> {
        if set.status.as_ref() == Some(&decision.status) {
            return Ok(());
        }
        let mut set = set.clone();
        set.status = Some(decision.status.clone());
        report(&self.hand, &set).await
    }
}
