//! Reads the facts and executes the decision.

use std::sync::Arc;

use k8s_openapi::api::{apps::v1::ReplicaSet, core::v1::Pod};
use neap_kit::{
    apply::Error,
    builder::{ControllerBuilder, Tools},
    context::Context,
    controller::Outcome,
    key::Key,
    manager::Component,
    watch::{Cache, WatchesStopped},
};

use super::decide::{Decision, Facts, decide};
use crate::workload::{OwnerEnqueuer, OwnerIndex, adopt_and_release, create_pods, delete_pod};

pub fn component(context: &Context) -> Result<Component, WatchesStopped> {
    let mut builder = ControllerBuilder::new(context, "replicaset-controller");
    let sets = builder.primary()?;
    let pods = builder.cache()?;
    let owners = OwnerEnqueuer::new(&sets, |set: &ReplicaSet| {
        set.spec.as_ref().map(|spec| &spec.selector)
    });
    builder.on_change(&pods, move |change, enqueuer| {
        owners.enqueue_for_change(change, enqueuer);
    });
    let reconciler = ReplicaSetReconciler {
        own: OwnerIndex::new(&pods),
        tools: builder.tools(),
        sets,
        pods,
    };
    Ok(builder.build(reconciler, ReplicaSetReconciler::reconcile))
}

struct ReplicaSetReconciler {
    sets: Cache<ReplicaSet>,
    pods: Cache<Pod>,
    own: OwnerIndex<Pod>,
    tools: Tools,
}

impl ReplicaSetReconciler {
    async fn reconcile(self: Arc<Self>, key: Key) -> Result<Outcome, Error> {
        let Some(set) = self.sets.get(&key) else {
            return Ok(Outcome::Gone);
        };
        let pods = self.own.of(&*set);
        let facts = Facts {
            set: &set,
            pods: pods.iter().map(|pod| &**pod).collect(),
            now: self.tools.clock.now(),
        };
        let decision = decide(&facts);
        let requeue_after = decision.requeue_after;
        // Boxed because whole pods are held across its awaits.
        Box::pin(self.execute(&set, decision)).await?;
        Ok(requeue_after.map_or(Outcome::Done, Outcome::RequeueAfter))
    }

    async fn execute(&self, set: &ReplicaSet, decision: Decision<'_>) -> Result<(), Error> {
        let (adopt, release) = (&decision.adopt, &decision.release);
        let makes = !decision.create.is_empty() || !adopt.is_empty();
        self.tools.confirm(set, makes).await?;
        adopt_and_release(&self.tools.writer, set, adopt, release).await?;
        let mut updated = set.clone();
        updated.status = Some(decision.status);
        self.tools.update_status(set, &updated).await?;
        let made = create_pods(&self.tools, set, &decision.create).await?;
        for pod in &decision.delete {
            delete_pod(&self.tools, set, pod).await?;
        }
        made.wait_until_cached(&self.pods).await
    }
}
