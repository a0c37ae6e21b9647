//! Reads the facts, and carries the decision out.

use std::{collections::BTreeSet, sync::Arc};

use k8s_openapi::api::{
    apps::v1::{Deployment, ReplicaSet},
    core::v1::Pod,
};
use kube::{Resource, ResourceExt};
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
    annotation,
    decide::{Decision, Facts, decide},
    size::is_recreate,
};
use crate::workload::{
    Claiming, ECHO, ORPHANS, adopt_and_release, echoed, has_ended, owner_of, owner_or_orphan,
    reason, report, unless_replaced,
};

const NAME: &str = "deployment-controller";

/// The controller of Deployments.
pub fn service(site: &Site) -> Result<Service, Ended> {
    let deployments = site.all::<Deployment>()?;
    let sets = site.all::<ReplicaSet>()?;
    let pods = site.all::<Pod>()?;
    let controller = site.controller(Options::new(NAME));
    let work = Arc::new(Work {
        by_owner: Index::new(&sets, owner_or_orphan),
        pods_by_owner: Index::new(&pods, owner_or_orphan),
        hand: site.hand(NAME),
        recorder: site.recorder(NAME),
        clock: site.clock,
        deployments: deployments.clone(),
        sets: sets.clone(),
    });
    let trigger = controller.trigger();
    deployments.follow(move |change| trigger.changed(change.key()));
    let claiming = Claiming::new(&deployments, controller.trigger(), |it: &Deployment| {
        it.spec.as_ref().map(|spec| &spec.selector)
    });
    sets.follow(move |change| claiming.tell(change));
    let (trigger, known_sets) = (controller.trigger(), sets.clone());
    pods.follow(move |change| tell_of_end(change, &known_sets, &trigger));
    Ok(Service::new(NAME, move |stop| async move {
        let known = async {
            deployments.synced().await;
            sets.synced().await;
            pods.synced().await;
        };
        let reconcile = move |key| work.clone().reconcile(key);
        controller.run_once_known(known, reconcile, stop).await;
    }))
}

/// A Deployment that recreates its pods waits for the last of the former ones to go.
fn tell_of_end(change: &Change<Pod>, sets: &Cache<ReplicaSet>, trigger: &Trigger<Key>) {
    let pod = &**change.object();
    let namespace = pod.namespace().unwrap_or_default();
    let ended = matches!(change, Change::Deleted(_)) || has_ended(pod);
    if let Some(owner) = owner_of(pod).filter(|_| ended)
        && let Some(set) = sets.get(&Key::new(&namespace, &owner.name))
        && let Some(owner) = owner_of(&*set)
        && owner.kind == Deployment::kind(&())
    {
        trigger.changed(Key::new(&namespace, &owner.name));
    }
}

struct Work {
    deployments: Cache<Deployment>,
    sets: Cache<ReplicaSet>,
    by_owner: Index<ReplicaSet>,
    pods_by_owner: Index<Pod>,
    hand: Hand,
    recorder: Recorder,
    clock: Clock,
}

impl Work {
    async fn reconcile(self: Arc<Self>, key: Key) -> Result<Outcome, Error> {
        let Some(deployment) = self.deployments.get(&key) else {
            return Ok(Outcome::Gone);
        };
        let mut sets = self.by_owner.get(&deployment.uid().unwrap_or_default());
        sets.extend(self.by_owner.get(&format!("{ORPHANS}{}", key.namespace())));
        let facts = Facts {
            deployment: &deployment,
            sets: sets.iter().map(|set| &**set).collect(),
            busy: self.busy(&deployment, &sets),
            now: self.clock.now(),
        };
        let decision = decide(&facts);
        let again = decision.again;
        let carried_out = Box::pin(self.carry_out(&deployment, decision));
        unless_replaced(carried_out.await)?;
        Ok(again.map_or(Outcome::Settled, Outcome::Again))
    }

    fn busy(&self, deployment: &Deployment, sets: &[Arc<ReplicaSet>]) -> BTreeSet<String> {
        if !deployment.spec.as_ref().is_some_and(is_recreate) {
            return BTreeSet::new();
        }
        let uids = sets.iter().filter_map(|set| set.uid());
        let has_pods = |uid: &String| {
            let pods = self.pods_by_owner.get(uid);
            pods.iter().any(|pod| !has_ended(pod))
        };
        uids.filter(has_pods).collect()
    }

    async fn carry_out(
        &self,
        deployment: &Deployment,
        decision: Decision<'_>,
    ) -> Result<(), Error> {
        let (adopt, release) = (&decision.adopt, &decision.release);
        adopt_and_release(&self.hand, deployment, adopt, release).await?;
        let mut newest = None;
        if let Some(set) = &decision.create {
            match self.create(deployment, set).await? {
                Some(made) => newest = made.resource_version(),
                None => return self.taken(deployment, set).await,
            }
        }
        for (from, to) in &decision.update {
            // Whoever was adopted a moment ago has another version now, and is looked at again.
            let written = self.hand.replace(to).await?;
            newest = written.resource_version();
            self.tell_size(deployment, &to.name_any(), size(from), size(to))
                .await;
        }
        for set in &decision.delete {
            self.hand.remove(*set, None).await?;
        }
        self.report(deployment, &decision).await?;
        // The next look must not miss these sets, or it would give them sizes again.
        echoed(&self.sets, newest).await;
        Ok(())
    }

    async fn create(
        &self,
        deployment: &Deployment,
        set: &ReplicaSet,
    ) -> Result<Option<ReplicaSet>, Error> {
        let made = self.hand.create(set).await;
        match &made {
            Ok(Some(_)) => {
                self.tell_size(deployment, &set.name_any(), 0, size(set))
                    .await;
            }
            Ok(None) => {}
            Err(error) => {
                let name = set.name_any();
                let message = format!(
                    "Failed to create new replica set {name:?}: {}",
                    reason(error)
                );
                let note = Note::warning("ReplicaSetCreateError", message);
                self.recorder.tell(deployment, &note).await;
            }
        }
        made
    }

    /// The name of the set to be made is another's: the next one is tried. If nobody is known under
    /// that name, it is our own, and the watch will show it.
    async fn taken(&self, deployment: &Deployment, set: &ReplicaSet) -> Result<(), Error> {
        let key = Key::of(set);
        let Some(other) = self.sets.get(&key) else {
            return Err(Error::Late { key, waited: ECHO });
        };
        let uid = deployment.uid();
        let is_ours = owner_of(&*other).is_some_and(|owner| Some(&owner.uid) == uid.as_ref());
        let template = |set: &ReplicaSet| {
            let template = set.spec.as_ref().and_then(|spec| spec.template.as_ref());
            template.map(super::sets::plain)
        };
        if is_ours && template(&other) == template(set) {
            return Err(Error::Replaced(key));
        }
        let mut deployment = deployment.clone();
        let status = deployment.status.get_or_insert_default();
        status.collision_count = Some(status.collision_count.unwrap_or(0) + 1);
        self.hand.replace_status(&deployment).await.map(|_| ())
    }

    async fn tell_size(&self, deployment: &Deployment, name: &str, from: i32, to: i32) {
        if from == to {
            return;
        }
        let way = if to > from { "up" } else { "down" };
        let message = format!("Scaled {way} replica set {name} from {from} to {to}");
        let note = Note::normal("ScalingReplicaSet", message);
        self.recorder.tell(deployment, &note).await;
    }

    /// One write, and only if it says something new. The revision goes with it: a write of the
    /// status leaves the generation as it is.
    async fn report(&self, deployment: &Deployment, decision: &Decision<'_>) -> Result<(), Error> {
        let mut said = deployment.clone();
        said.status = Some(decision.status.clone());
        if let Some(revision) = &decision.revision {
            let notes = said.annotations_mut();
            notes.insert(annotation::REVISION.to_owned(), revision.clone());
        }
        if said == *deployment {
            return Ok(());
        }
        report(&self.hand, &said).await
    }
}

fn size(set: &ReplicaSet) -> i32 {
    set.spec
        .as_ref()
        .and_then(|spec| spec.replicas)
        .unwrap_or(1)
}
