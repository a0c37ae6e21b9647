//! Reads the facts and executes the decision.

use std::{collections::BTreeSet, sync::Arc};

use k8s_openapi::api::{
    apps::v1::{Deployment, ReplicaSet},
    core::v1::Pod,
};
use kube::{Resource, ResourceExt};
use neap_kit::{
    apply::Error,
    builder::{ControllerBuilder, OWN_WRITE_TIMEOUT, Tools},
    context::Context,
    controller::{Enqueuer, Outcome},
    event::EventDraft,
    key::Key,
    manager::Component,
    planted,
    watch::{Cache, Change, WatchesStopped},
};

use super::{
    annotation,
    decide::{Decision, Facts, decide},
    size::is_recreate,
};
use crate::workload::{
    OwnerEnqueuer, OwnerIndex, adopt_and_release, error_message, has_ended,
    increment_collision_count, owner_of, wait_for_own_write,
};

pub fn component(context: &Context) -> Result<Component, WatchesStopped> {
    let mut builder = ControllerBuilder::new(context, "deployment-controller");
    let deployments = builder.primary()?;
    let sets = builder.cache::<ReplicaSet>()?;
    let pods = builder.cache()?;
    let owners = OwnerEnqueuer::new(&deployments, |it: &Deployment| {
        it.spec.as_ref().map(|spec| &spec.selector)
    });
    builder.on_change(&sets, move |change, enqueuer| {
        owners.enqueue_for_change(change, enqueuer);
    });
    let cached_sets = sets.clone();
    builder.on_change(&pods, move |change, enqueuer| {
        enqueue_on_pod_end(change, &cached_sets, enqueuer);
    });
    let reconciler = DeploymentReconciler {
        own_sets: OwnerIndex::new(&sets),
        own_pods: OwnerIndex::new(&pods),
        tools: builder.tools(),
        deployments,
        sets,
    };
    Ok(builder.build(reconciler, DeploymentReconciler::reconcile))
}

/// Enqueues a Deployment when a pod ends: with the strategy `Recreate` it waits for the last of its
/// old pods.
fn enqueue_on_pod_end(change: &Change<Pod>, sets: &Cache<ReplicaSet>, enqueuer: &Enqueuer<Key>) {
    let pod = &**change.object();
    let namespace = pod.namespace().unwrap_or_default();
    let ended = matches!(change, Change::Deleted(_)) || has_ended(pod);
    if let Some(owner) = owner_of(pod).filter(|_| ended)
        && let Some(set) = sets.get(&Key::new(&namespace, &owner.name))
        && let Some(owner) = owner_of(&*set)
        && owner.kind == Deployment::kind(&())
    {
        enqueuer.enqueue(Key::new(&namespace, &owner.name));
    }
}

struct DeploymentReconciler {
    deployments: Cache<Deployment>,
    sets: Cache<ReplicaSet>,
    own_sets: OwnerIndex<ReplicaSet>,
    own_pods: OwnerIndex<Pod>,
    tools: Tools,
}

impl DeploymentReconciler {
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
        let requeue_after = decision.requeue_after;
        Box::pin(self.execute(&deployment, decision)).await?;
        Ok(requeue_after.map_or(Outcome::Done, Outcome::RequeueAfter))
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

    async fn execute(&self, deployment: &Deployment, decision: Decision<'_>) -> Result<(), Error> {
        let (adopt, release) = (&decision.adopt, &decision.release);
        let makes = decision.create.is_some() || !adopt.is_empty();
        self.tools.confirm(deployment, makes).await?;
        adopt_and_release(&self.tools.writer, deployment, adopt, release).await?;
        let mut newest = None;
        if let Some(set) = &decision.create {
            match self.create(deployment, set).await? {
                Some(made) => newest = made.resource_version(),
                None => return self.handle_taken_name(deployment, set).await,
            }
        }
        for (from, to) in &decision.update {
            // A ReplicaSet that was just adopted has a newer version: the write conflicts, and the
            // reconcile is repeated.
            let written = self.tools.writer.replace(to).await;
            planted!(SizeOrNot => if written.is_err() { continue });
            newest = written?.resource_version();
            self.record_scaling(deployment, &to.name_any(), size(from), size(to))
                .await;
        }
        for set in &decision.delete {
            self.tools.writer.remove(*set, None).await?;
        }
        self.update_status(deployment, &decision).await?;
        // The next reconcile must see these writes, or it would scale the ReplicaSets again.
        wait_for_own_write(&self.sets, newest).await;
        Ok(())
    }

    async fn create(
        &self,
        deployment: &Deployment,
        set: &ReplicaSet,
    ) -> Result<Option<ReplicaSet>, Error> {
        let made = self.tools.writer.create(set).await;
        planted!(SetOrNot => if made.is_err() { return Ok(Some(set.clone())) });
        match &made {
            Ok(Some(_)) => {
                self.record_scaling(deployment, &set.name_any(), 0, size(set))
                    .await;
            }
            Ok(None) => {}
            Err(error) => {
                let name = set.name_any();
                let message = format!(
                    "Failed to create new replica set {name:?}: {}",
                    error_message(error)
                );
                let event = EventDraft::warning("ReplicaSetCreateError", message);
                self.tools.record(deployment, &event).await;
            }
        }
        made
    }

    /// Handles a taken name: if another owner has it, the collision count is raised so that the
    /// next name is tried. If the cache has no such object, it is our own and the watch will
    /// deliver it.
    async fn handle_taken_name(
        &self,
        deployment: &Deployment,
        set: &ReplicaSet,
    ) -> Result<(), Error> {
        let key = Key::of(set);
        let Some(other) = self.sets.get(&key) else {
            planted!(SetDisowned => return increment_collision_count(&self.tools, deployment).await);
            return Err(Error::Timeout {
                key,
                waited: OWN_WRITE_TIMEOUT,
            });
        };
        let uid = deployment.uid();
        let is_ours = owner_of(&*other).is_some_and(|owner| Some(&owner.uid) == uid.as_ref());
        let template = |set: &ReplicaSet| {
            let template = set.spec.as_ref().and_then(|spec| spec.template.as_ref());
            template.map(super::replica_sets::without_hash)
        };
        if is_ours && template(&other) == template(set) {
            return Err(Error::Conflict(key));
        }
        increment_collision_count(&self.tools, deployment).await
    }

    async fn record_scaling(&self, deployment: &Deployment, name: &str, from: i32, to: i32) {
        if from == to {
            return;
        }
        let direction = if to > from { "up" } else { "down" };
        let message = format!("Scaled {direction} replica set {name} from {from} to {to}");
        let event = EventDraft::normal("ScalingReplicaSet", message);
        self.tools.record(deployment, &event).await;
    }

    /// The revision is written with the status: a status write leaves the generation unchanged.
    async fn update_status(
        &self,
        deployment: &Deployment,
        decision: &Decision<'_>,
    ) -> Result<(), Error> {
        let mut updated = deployment.clone();
        updated.status = Some(decision.status.clone());
        if let Some(revision) = &decision.revision {
            let annotations = updated.annotations_mut();
            annotations.insert(annotation::REVISION.to_owned(), revision.clone());
        }
        self.tools.update_status(deployment, &updated).await
    }
}

fn size(set: &ReplicaSet) -> i32 {
    set.spec
        .as_ref()
        .and_then(|spec| spec.replicas)
        .unwrap_or(1)
}
