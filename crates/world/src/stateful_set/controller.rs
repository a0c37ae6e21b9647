//! Reads the facts and executes the decision.

use std::{collections::BTreeSet, sync::Arc};

use k8s_openapi::api::{
    apps::v1::{ControllerRevision, StatefulSet},
    core::v1::{PersistentVolumeClaim, Pod},
};
use kube::ResourceExt;
use neap_kit::{
    apply::Error,
    builder::{ControllerBuilder, Tools},
    context::Context,
    controller::Outcome,
    event::EventDraft,
    key::Key,
    manager::Component,
    planted,
    watch::{Cache, WatchesStopped},
};

use super::{
    claims,
    decide::{Decision, Facts, decide},
    identity,
    order::{PodStep, ordinals_in_view},
};
use crate::workload::{
    CreateResults, OwnerEnqueuer, OwnerIndex, adopt_and_release, error_message,
    increment_collision_count, wait_for_own_write,
};

pub fn component(context: &Context) -> Result<Component, WatchesStopped> {
    let mut builder = ControllerBuilder::new(context, "statefulset-controller");
    let sets = builder.primary()?;
    let pods = builder.cache()?;
    let revisions = builder.cache()?;
    let claims = builder.cache()?;
    let owners = OwnerEnqueuer::new(&sets, |set: &StatefulSet| {
        set.spec.as_ref().map(|spec| &spec.selector)
    });
    builder.on_change(&pods, move |change, enqueuer| {
        owners.enqueue_for_change(change, enqueuer);
    });
    let reconciler = StatefulSetReconciler {
        own_pods: OwnerIndex::new(&pods),
        own_revisions: OwnerIndex::new(&revisions),
        tools: builder.tools(),
        sets,
        pods,
        revisions,
        claims,
    };
    Ok(builder.build(reconciler, StatefulSetReconciler::reconcile))
}

struct StatefulSetReconciler {
    sets: Cache<StatefulSet>,
    pods: Cache<Pod>,
    own_pods: OwnerIndex<Pod>,
    revisions: Cache<ControllerRevision>,
    own_revisions: OwnerIndex<ControllerRevision>,
    claims: Cache<PersistentVolumeClaim>,
    tools: Tools,
}

impl StatefulSetReconciler {
    async fn reconcile(self: Arc<Self>, key: Key) -> Result<Outcome, Error> {
        let Some(set) = self.sets.get(&key) else {
            return Ok(Outcome::Gone);
        };
        let pods = self.own_pods.of(&*set);
        let revisions = self.own_revisions.of(&*set);
        let claims = self.claims(&set, &pods);
        let facts = Facts {
            set: &set,
            pods: pods.iter().map(|pod| &**pod).collect(),
            revisions: revisions.iter().map(|it| &**it).collect(),
            claims: claims.iter().map(|it| (it.name_any(), &**it)).collect(),
            now: self.tools.clock.now(),
        };
        let Some(decision) = decide(&facts) else {
            return Ok(Outcome::Done);
        };
        let requeue_after = decision.requeue_after;
        Box::pin(self.execute(&set, decision)).await?;
        Ok(requeue_after.map_or(Outcome::Done, Outcome::RequeueAfter))
    }

    /// The claims of all ordinals that the decision looks at.
    fn claims(&self, set: &StatefulSet, pods: &[Arc<Pod>]) -> Vec<Arc<PersistentVolumeClaim>> {
        let Some(spec) = &set.spec else {
            return Vec::new();
        };
        let set_name = set.name_any();
        let existing: BTreeSet<i32> = pods
            .iter()
            .filter_map(|pod| identity::ordinal(&set_name, pod))
            .collect();
        let mut all = ordinals_in_view(spec, &existing);
        all.extend(existing);
        let namespace = set.namespace().unwrap_or_default();
        let names = all
            .into_iter()
            .flat_map(|ordinal| claims::names(set, ordinal));
        names
            .filter_map(|(_, name)| self.claims.get(&Key::new(&namespace, &name)))
            .collect()
    }

    async fn execute(&self, set: &StatefulSet, decision: Decision<'_>) -> Result<(), Error> {
        let (revisions, writer) = (&decision.revisions, &self.tools.writer);
        self.tools
            .confirm(set, decision.creates_or_adopts())
            .await?;
        if !revisions.execute(writer, set, &self.revisions).await? {
            return increment_collision_count(&self.tools, set).await;
        }
        adopt_and_release(writer, set, &decision.adopt, &decision.release).await?;
        let mut updated = set.clone();
        updated.status = Some(decision.status);
        self.tools.update_status(set, &updated).await?;
        planted!(ClaimsAfterPods => for step in &decision.delete { self.delete(set, *step).await? });
        for claim in &decision.reown {
            let tied = writer.replace(claim).await;
            planted!(ClaimOrNot => continue);
            tied?;
        }
        for pod in &decision.repair {
            writer.replace(pod).await?;
        }
        for pod in &decision.updated {
            self.record(set, "Update", pod, &Ok(Some(()))).await;
        }
        for (claim, pod) in &decision.claims {
            self.create_claim(set, claim, pod).await?;
        }
        let mut made = CreateResults::default();
        for pod in &decision.create {
            made.add(pod, self.create(set, pod).await?.as_ref());
        }
        for step in &decision.delete {
            self.delete(set, *step).await?;
        }
        made.wait_until_cached(&self.pods).await
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
        match self.tools.writer.create(claim).await {
            Ok(None) => Ok(()),
            Ok(Some(made)) => {
                let event =
                    EventDraft::normal("SuccessfulCreate", format!("Create {what} success"));
                self.tools.record(set, &event).await;
                wait_for_own_write(&self.claims, made.resource_version()).await;
                Ok(())
            }
            Err(error) => {
                let message = format!("Create {what} failed error: {}", error_message(&error));
                let event = EventDraft::warning("FailedCreate", message);
                self.tools.record(set, &event).await;
                Err(error)
            }
        }
    }

    /// Creates a pod unless it exists.
    async fn create(&self, set: &StatefulSet, pod: &Pod) -> Result<Option<Pod>, Error> {
        let made = self.tools.writer.create(pod).await;
        self.record(set, "Create", &pod.name_any(), &made).await;
        made
    }

    async fn delete(&self, set: &StatefulSet, step: PodStep<'_>) -> Result<(), Error> {
        let pod = match step {
            PodStep::Create(_) => return Ok(()),
            PodStep::Replace(pod) | PodStep::ScaleDown(pod) | PodStep::Recreate(pod) => pod,
        };
        let deleted = self.tools.writer.remove(pod, None).await.map(Some);
        self.record(set, "Delete", &pod.name_any(), &deleted).await;
        planted!(StepOrNot => return Ok(()));
        deleted.map(|_| ())
    }

    /// Records an Event for a change to a pod, unless it had been made before.
    async fn record<T>(
        &self,
        set: &StatefulSet,
        verb: &str,
        pod: &str,
        done: &Result<Option<T>, Error>,
    ) {
        let (success, failure) = match verb {
            "Create" => ("SuccessfulCreate", "FailedCreate"),
            "Update" => ("SuccessfulUpdate", "FailedUpdate"),
            _ => ("SuccessfulDelete", "FailedDelete"),
        };
        let what = format!("Pod {pod} in StatefulSet {}", set.name_any());
        let event = match done {
            Ok(None) => return,
            Ok(Some(_)) => EventDraft::normal(success, format!("{verb} {what} successful")),
            Err(error) => {
                let (verb, why) = (verb.to_lowercase(), error_message(error));
                EventDraft::warning(failure, format!("{verb} {what} failed error: {why}"))
            }
        };
        self.tools.record(set, &event).await;
    }
}
