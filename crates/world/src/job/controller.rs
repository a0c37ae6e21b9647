//! Reads the facts and executes the decision.

use std::sync::Arc;

use k8s_openapi::api::{batch::v1::Job, core::v1::Pod};
use kube::ResourceExt;
use neap_kit::{
    apply::Error,
    builder::{ControllerBuilder, Tools},
    context::Context,
    controller::Outcome,
    key::Key,
    manager::Component,
    planted,
    watch::{Cache, Index, WatchesStopped},
};

use super::{
    count::{TRACKING_FINALIZER, is_tracked},
    decide::{Decision, Facts, decide},
};
use crate::workload::{
    OwnerEnqueuer, OwnerIndex, create_pods, delete_pod, owned_by, owner_of, truncate_to_second,
};

/// The label with the name of the Job that a pod was created for.
const JOB_NAME_LABEL: &str = "batch.kubernetes.io/job-name";

pub fn component(context: &Context) -> Result<Component, WatchesStopped> {
    let mut builder = ControllerBuilder::new(context, "job-controller");
    let jobs = builder.primary()?;
    let pods = builder.cache()?;
    let owners = OwnerEnqueuer::new(&jobs, |job: &Job| {
        job.spec.as_ref().and_then(|spec| spec.selector.as_ref())
    });
    builder.on_change(&pods, move |change, enqueuer| {
        owners.enqueue_for_change(change, enqueuer);
        if let Some(key) = tracking_job(change.object()) {
            enqueuer.enqueue(key);
        }
    });
    let reconciler = JobReconciler {
        own: OwnerIndex::new(&pods),
        tracked: Index::new(&pods, |pod| {
            tracking_job(pod).iter().map(Key::to_string).collect()
        }),
        tools: builder.tools(),
        jobs,
        pods,
    };
    Ok(builder.build(reconciler, JobReconciler::reconcile))
}

/// The Job that a pod waits for to be counted: its owner, or its former owner by label.
fn tracking_job(pod: &Pod) -> Option<Key> {
    let name = match owner_of(pod) {
        Some(owner) => (owner.kind == "Job").then_some(&owner.name),
        None => pod.labels().get(JOB_NAME_LABEL),
    };
    let namespace = pod.namespace().unwrap_or_default();
    let name = name.filter(|_| is_tracked(pod))?;
    Some(Key::new(&namespace, name))
}

struct JobReconciler {
    jobs: Cache<Job>,
    pods: Cache<Pod>,
    own: OwnerIndex<Pod>,
    tracked: Index<Pod>,
    tools: Tools,
}

impl JobReconciler {
    async fn reconcile(self: Arc<Self>, key: Key) -> Result<Outcome, Error> {
        let job = self.jobs.get(&key);
        planted!(StrangersKept => if job.is_none() { return Ok(Outcome::Gone) });
        self.release_orphans(&key, job.as_deref()).await?;
        let Some(job) = job else {
            return Ok(Outcome::Gone);
        };
        let manager = job
            .spec
            .as_ref()
            .and_then(|spec| spec.managed_by.as_deref());
        if manager.is_some_and(|manager| manager != "kubernetes.io/job-controller") {
            return Ok(Outcome::Done);
        }
        let pods = self.own.of(&*job);
        let facts = Facts {
            job: &job,
            pods: pods.iter().map(|pod| &**pod).collect(),
            now: truncate_to_second(self.tools.clock.now()),
        };
        let decision = decide(&facts);
        let requeue_after = decision.requeue_after;
        // Boxed because whole pods are held across its awaits.
        Box::pin(self.execute(&job, decision)).await?;
        Ok(requeue_after.map_or(Outcome::Done, Outcome::RequeueAfter))
    }

    /// Removes the finalizers of pods whose Job no longer exists: no controller counts them, so
    /// they must not wait for it.
    async fn release_orphans(&self, key: &Key, job: Option<&Job>) -> Result<(), Error> {
        let uid = job.and_then(ResourceExt::uid);
        for pod in self.tracked.get(&key.to_string()) {
            let owner = owner_of(&*pod).map(|owner| owner.uid.clone());
            // An orphan may still be adopted while a Job of that name exists.
            let is_orphan = owner.map_or(uid.is_none(), |owner| Some(owner) != uid);
            if is_orphan {
                self.remove_finalizer(&pod).await?;
            }
        }
        Ok(())
    }

    async fn execute(&self, job: &Job, decision: Decision<'_>) -> Result<(), Error> {
        let makes = !decision.create.is_empty() || !decision.adopt.is_empty();
        self.tools.confirm_unchanged(job, makes).await?;
        self.claim(job, &decision).await?;
        planted!(FreedBeforeCounted => for pod in &decision.untrack { self.remove_finalizer(pod).await? });
        // If the Job has changed meanwhile, the write conflicts, and nothing that follows from its
        // status may be done.
        let mut updated = job.clone();
        updated.status = Some(decision.status);
        self.tools.update_status(job, &updated).await?;
        for event in &decision.events {
            self.tools.record(job, event).await;
        }
        planted!(EndedBeforeFreed => for pod in &decision.delete { delete_pod(&self.tools, job, pod).await? });
        for pod in &decision.untrack {
            self.remove_finalizer(pod).await?;
        }
        for pod in &decision.delete {
            delete_pod(&self.tools, job, pod).await?;
        }
        let made = create_pods(&self.tools, job, &decision.create).await?;
        made.wait_until_cached(&self.pods).await?;
        if decision.remove {
            self.tools.writer.remove(job, None).await?;
        }
        Ok(())
    }

    async fn claim(&self, job: &Job, decision: &Decision<'_>) -> Result<(), Error> {
        for pod in &decision.adopt {
            let mut pod = (*pod).clone();
            pod.owner_references_mut().extend(owned_by(job));
            if !is_tracked(&pod) {
                pod.finalizers_mut().push(TRACKING_FINALIZER.to_owned());
            }
            self.tools.writer.replace(&pod).await?;
        }
        for pod in &decision.release {
            let mut pod = (*pod).clone();
            let uid = job.uid().unwrap_or_default();
            pod.owner_references_mut().retain(|owner| owner.uid != uid);
            pod.finalizers_mut()
                .retain(|finalizer| finalizer != TRACKING_FINALIZER);
            self.tools.writer.replace(&pod).await?;
        }
        Ok(())
    }

    async fn remove_finalizer(&self, pod: &Pod) -> Result<(), Error> {
        if !is_tracked(pod) {
            return Ok(());
        }
        let mut pod = pod.clone();
        pod.finalizers_mut()
            .retain(|finalizer| finalizer != TRACKING_FINALIZER);
        self.tools.writer.replace(&pod).await.map(drop)
    }
}
