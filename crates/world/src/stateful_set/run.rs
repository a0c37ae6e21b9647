//! Reads the facts, and carries the decision out.

use std::{collections::BTreeSet, sync::Arc};

use k8s_openapi::api::{
    apps::v1::{ControllerRevision, StatefulSet},
    core::v1::{PersistentVolumeClaim, Pod},
};
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

use super::{
    claim,
    decide::{Decision, Facts, decide},
    identity,
    order::{Step, first},
};
use crate::workload::{
    Claiming, ORPHANS, adopt_and_release, echoed, owner_or_orphan, phase, reason, report,
    unless_replaced,
};

const NAME: &str = "statefulset-controller";

/// The controller of StatefulSets.
pub fn service(site: &Site) -> Result<Service, Ended> {
    let sets = site.all::<StatefulSet>()?;
    let pods = site.all::<Pod>()?;
    let revisions = site.all::<ControllerRevision>()?;
    let claims = site.all::<PersistentVolumeClaim>()?;
    let controller = site.controller(Options::new(NAME));
    let work = Arc::new(Work {
        pods_by_owner: Index::new(&pods, owner_or_orphan),
        revisions_by_owner: Index::new(&revisions, owner_or_orphan),
        hand: site.hand(NAME),
        recorder: site.recorder(NAME),
        clock: site.clock,
        sets: sets.clone(),
        pods: pods.clone(),
        revisions: revisions.clone(),
        claims: claims.clone(),
    });
    let trigger = controller.trigger();
    sets.follow(move |change| trigger.changed(change.key()));
    let claiming = Claiming::new(&sets, controller.trigger(), |set: &StatefulSet| {
        set.spec.as_ref().map(|spec| &spec.selector)
    });
    pods.follow(move |change| claiming.tell(change));
    Ok(Service::new(NAME, move |stop| async move {
        let known = async {
            sets.synced().await;
            pods.synced().await;
            revisions.synced().await;
            claims.synced().await;
        };
        let reconcile = move |key| work.clone().reconcile(key);
        controller.run_once_known(known, reconcile, stop).await;
    }))
}

struct Work {
    sets: Cache<StatefulSet>,
    pods: Cache<Pod>,
    pods_by_owner: Index<Pod>,
    revisions: Cache<ControllerRevision>,
    revisions_by_owner: Index<ControllerRevision>,
    claims: Cache<PersistentVolumeClaim>,
    hand: Hand,
    recorder: Recorder,
    clock: Clock,
}

impl Work {
    async fn reconcile(self: Arc<Self>, key: Key) -> Result<Outcome, Error> {
        let Some(set) = self.sets.get(&key) else {
            return Ok(Outcome::Gone);
        };
        let (uid, orphans) = (set.uid().unwrap_or_default(), key.namespace());
        let orphans = format!("{ORPHANS}{orphans}");
        let mut pods = self.pods_by_owner.get(&uid);
        pods.extend(self.pods_by_owner.get(&orphans));
        let mut revisions = self.revisions_by_owner.get(&uid);
        revisions.extend(self.revisions_by_owner.get(&orphans));
        let claims = self.claims(&set, &pods);
        let facts = Facts {
            set: &set,
            pods: pods.iter().map(|pod| &**pod).collect(),
            revisions: revisions.iter().map(|it| &**it).collect(),
            claims: claims.iter().map(|it| (it.name_any(), &**it)).collect(),
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

    /// The claims of all numbers that there are or shall be.
    fn claims(&self, set: &StatefulSet, pods: &[Arc<Pod>]) -> Vec<Arc<PersistentVolumeClaim>> {
        let Some(spec) = &set.spec else {
            return Vec::new();
        };
        let first = first(spec);
        let wanted = first..first + spec.replicas.unwrap_or(1);
        let set_name = set.name_any();
        let there = pods
            .iter()
            .filter_map(|pod| identity::number(&set_name, pod));
        let numbers: BTreeSet<i32> = wanted.chain(there).collect();
        let namespace = set.namespace().unwrap_or_default();
        let names = numbers
            .into_iter()
            .flat_map(|number| claim::names(set, number));
        names
            .filter_map(|(_, name)| self.claims.get(&Key::new(&namespace, &name)))
            .collect()
    }

    async fn carry_out(&self, set: &StatefulSet, decision: Decision<'_>) -> Result<(), Error> {
        let revisions = &decision.revisions;
        if !revisions
            .carry_out(&self.hand, set, &self.revisions)
            .await?
        {
            return self.rename(set).await;
        }
        adopt_and_release(&self.hand, set, &decision.adopt, &decision.release).await?;
        self.report(set, &decision).await?;
        for claim in &decision.reown {
            self.hand.replace(claim).await?;
        }
        for pod in &decision.mend {
            self.hand.replace(pod).await?;
        }
        for pod in &decision.updated {
            self.tell(set, "Update", pod, &Ok(Some(()))).await;
        }
        for (claim, pod) in &decision.claims {
            self.create_claim(set, claim, pod).await?;
        }
        let mut newest = None;
        for pod in &decision.create {
            newest = self.create(set, pod).await?.or(newest);
        }
        for step in &decision.delete {
            self.delete(set, *step).await?;
        }
        // The next look must not miss these pods.
        echoed(&self.pods, newest).await;
        Ok(())
    }

    /// The name of the latest revision is another's: the next one is tried.
    async fn rename(&self, set: &StatefulSet) -> Result<(), Error> {
        let mut set = set.clone();
        let status = set.status.get_or_insert_default();
        status.collision_count = Some(status.collision_count.unwrap_or(0) + 1);
        report(&self.hand, &set).await
    }

    async fn create_claim(
        &self,
        set: &StatefulSet,
        claim: &PersistentVolumeClaim,
        pod: &str,
    ) -> Result<(), Error> {
        let what = format!(
            "Claim {} Pod {pod} in StatefulSet {}",
            claim.name_any(),
            set.name_any()
        );
        match self.hand.create(claim).await {
            Ok(None) => Ok(()),
            Ok(Some(made)) => {
                let note = Note::normal("SuccessfulCreate", format!("Create {what} success"));
                self.recorder.tell(set, &note).await;
                echoed(&self.claims, made.resource_version()).await;
                Ok(())
            }
            Err(error) => {
                let message = format!("Create {what} failed error: {}", reason(&error));
                let note = Note::warning("FailedCreate", message);
                self.recorder.tell(set, &note).await;
                Err(error)
            }
        }
    }

    /// Makes a pod, and says which version of it is the first.
    async fn create(&self, set: &StatefulSet, pod: &Pod) -> Result<Option<String>, Error> {
        let made = self.hand.create(pod).await;
        self.tell(set, "Create", &pod.name_any(), &made).await;
        Ok(made?.and_then(|pod| pod.resource_version()))
    }

    async fn delete(&self, set: &StatefulSet, step: Step<'_>) -> Result<(), Error> {
        let pod = match step {
            Step::Make(_) => return Ok(()),
            Step::Replace(pod) | Step::Drop(pod) => pod,
            Step::Renew(pod) => {
                self.recorder.tell(set, &renewal(set, pod)).await;
                pod
            }
        };
        let deleted = self.hand.remove(pod, None).await.map(Some);
        self.tell(set, "Delete", &pod.name_any(), &deleted).await;
        deleted.map(|_| ())
    }

    /// Tells of what was done to a pod, unless it had been done before.
    async fn tell<T>(
        &self,
        set: &StatefulSet,
        verb: &str,
        pod: &str,
        done: &Result<Option<T>, Error>,
    ) {
        let (well, ill) = match verb {
            "Create" => ("SuccessfulCreate", "FailedCreate"),
            "Update" => ("SuccessfulUpdate", "FailedUpdate"),
            _ => ("SuccessfulDelete", "FailedDelete"),
        };
        let what = format!("Pod {pod} in StatefulSet {}", set.name_any());
        let note = match done {
            Ok(None) => return,
            Ok(Some(_)) => Note::normal(well, format!("{verb} {what} successful")),
            Err(error) => {
                let (verb, why) = (verb.to_lowercase(), reason(error));
                Note::warning(ill, format!("{verb} {what} failed error: {why}"))
            }
        };
        self.recorder.tell(set, &note).await;
    }

    /// One write, and only if it says something new.
    async fn report(&self, set: &StatefulSet, decision: &Decision<'_>) -> Result<(), Error> {
        if set.status.as_ref() == Some(&decision.status) {
            return Ok(());
        }
        let mut set = set.clone();
        set.status = Some(decision.status.clone());
        report(&self.hand, &set).await
    }
}

fn renewal(set: &StatefulSet, pod: &Pod) -> Note {
    let who = format!("{}/{}", set.namespace().unwrap_or_default(), set.name_any());
    let name = pod.name_any();
    if phase(pod) == "Failed" {
        let message = format!("StatefulSet {who} is recreating failed Pod {name}");
        Note::warning("RecreatingFailedPod", message)
    } else {
        let message = format!("StatefulSet {who} is recreating terminated Pod {name}");
        Note::normal("RecreatingTerminatedPod", message)
    }
}
