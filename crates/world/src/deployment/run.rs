//! Reads the facts, and carries the decision out.

use std::{collections::BTreeSet, sync::Arc};

use k8s_openapi::api::{
    apps::v1::{Deployment, ReplicaSet},
    core::v1::Pod,
};
use kube::{Resource, ResourceExt};
use neap_kit::{
    apply::Error,
    controller::{Outcome, Trigger},
    event::Note,
    key::Key,
    manager::Service,
    planted,
    site::Site,
    watch::{Cache, Change, Ended},
    wiring::{ECHO, Tools, Wiring},
};

use super::{
    annotation,
    decide::{Decision, Facts, decide},
    size::is_recreate,
};
use crate::workload::{
    Claimable, Claiming, adopt_and_release, echoed, has_ended, owner_of, reason, rename,
};

/// The controller of Deployments.
pub fn service(site: &Site) -> Result<Service, Ended> {
    let mut wiring = Wiring::new(site, "deployment-controller");
    let deployments = wiring.kept()?;
    let sets = wiring.read::<ReplicaSet>()?;
    let pods = wiring.read()?;
    let claiming = Claiming::new(&deployments, |it: &Deployment| {
        it.spec.as_ref().map(|spec| &spec.selector)
    });
    wiring.follow(&sets, move |change, trigger| claiming.tell(change, trigger));
    let known_sets = sets.clone();
    wiring.follow(&pods, move |change, trigger| {
        tell_of_end(change, &known_sets, trigger);
    });
    let work = Work {
        own_sets: Claimable::new(&sets),
        own_pods: Claimable::new(&pods),
        tools: wiring.tools(),
        deployments,
        sets,
    };
    Ok(wiring.service(work, Work::reconcile))
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
    own_sets: Claimable<ReplicaSet>,
    own_pods: Claimable<Pod>,
    tools: Tools,
}

impl Work {
    async fn reconcile(self: Arc<Self>, key: Key) -> Result<Outcome, Error> {
        let Some(deployment) = self.deployments.get(&key) else {
            return Ok(Outcome::Gone);
        };
        let sets = self.own_sets.of(&*deployment);
        let facts = Facts {
            deployment: &deployment,
            sets: sets.iter().map(|set| &**set).collect(),
            busy: self.busy(&deployment, &sets),
            now: self.tools.clock.now(),
        };
        let decision = decide(&facts);
        let again = decision.again;
        Box::pin(self.carry_out(&deployment, decision)).await?;
        Ok(again.map_or(Outcome::Settled, Outcome::Again))
    }

    fn busy(&self, deployment: &Deployment, sets: &[Arc<ReplicaSet>]) -> BTreeSet<String> {
        if !deployment.spec.as_ref().is_some_and(is_recreate) {
            return BTreeSet::new();
        }
        let has_pods = |set: &&Arc<ReplicaSet>| {
            let pods = self.own_pods.owned(&***set);
            pods.iter().any(|pod| !has_ended(pod))
        };
        let busy = sets.iter().filter(has_pods);
        busy.filter_map(|set| set.uid()).collect()
    }

    async fn carry_out(
        &self,
        deployment: &Deployment,
        decision: Decision<'_>,
    ) -> Result<(), Error> {
        let (adopt, release) = (&decision.adopt, &decision.release);
        let makes = decision.create.is_some() || !adopt.is_empty();
        self.tools.confirm(deployment, makes).await?;
        adopt_and_release(&self.tools.hand, deployment, adopt, release).await?;
        let mut newest = None;
        if let Some(set) = &decision.create {
            match self.create(deployment, set).await? {
                Some(made) => newest = made.resource_version(),
                None => return self.taken(deployment, set).await,
            }
        }
        for (from, to) in &decision.update {
            // Whoever was adopted a moment ago has another version now, and is looked at again.
            let written = self.tools.hand.replace(to).await;
            planted!(SizeOrNot => if written.is_err() { continue });
            newest = written?.resource_version();
            self.tell_size(deployment, &to.name_any(), size(from), size(to))
                .await;
        }
        for set in &decision.delete {
            self.tools.hand.remove(*set, None).await?;
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
        let made = self.tools.hand.create(set).await;
        planted!(SetOrNot => if made.is_err() { return Ok(Some(set.clone())) });
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
                self.tools.tell(deployment, &note).await;
            }
        }
        made
    }

    /// The name of the set to be made is another's: the next one is tried. If nobody is known under
    /// that name, it is our own, and the watch will show it.
    async fn taken(&self, deployment: &Deployment, set: &ReplicaSet) -> Result<(), Error> {
        let key = Key::of(set);
        let Some(other) = self.sets.get(&key) else {
            planted!(SetDisowned => return rename(&self.tools, deployment).await);
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
        rename(&self.tools, deployment).await
    }

    async fn tell_size(&self, deployment: &Deployment, name: &str, from: i32, to: i32) {
        if from == to {
            return;
        }
        let way = if to > from { "up" } else { "down" };
        let message = format!("Scaled {way} replica set {name} from {from} to {to}");
        let note = Note::normal("ScalingReplicaSet", message);
        self.tools.tell(deployment, &note).await;
    }

    /// The revision goes with the status: a write of that leaves the generation as it is.
    async fn report(&self, deployment: &Deployment, decision: &Decision<'_>) -> Result<(), Error> {
        let mut said = deployment.clone();
        said.status = Some(decision.status.clone());
        if let Some(revision) = &decision.revision {
            let notes = said.annotations_mut();
            notes.insert(annotation::REVISION.to_owned(), revision.clone());
        }
        self.tools.report(deployment, &said).await
    }
}

fn size(set: &ReplicaSet) -> i32 {
    set.spec
        .as_ref()
        .and_then(|spec| spec.replicas)
        .unwrap_or(1)
}
