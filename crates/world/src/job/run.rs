//! Reads the facts, and carries the decision out.

use std::sync::Arc;

use k8s_openapi::api::{batch::v1::Job, core::v1::Pod};
use kube::ResourceExt;
use neap_kit::{
    apply::Error,
    controller::Outcome,
    key::Key,
    manager::Service,
    planted,
    site::Site,
    watch::{Cache, Ended, Index},
    wiring::{Tools, Wiring},
};

use super::{
    count::{TRACKING, is_tracked},
    decide::{Decision, Facts, decide},
};
use crate::workload::{Claimable, Claiming, create_pods, delete_pod, owned_by, owner_of, second};

/// The name of the Job for which a pod was made.
const JOB: &str = "batch.kubernetes.io/job-name";

/// The controller of Jobs.
pub fn service(site: &Site) -> Result<Service, Ended> {
    let mut wiring = Wiring::new(site, "job-controller");
    let jobs = wiring.kept()?;
    let pods = wiring.read()?;
    let claiming = Claiming::new(&jobs, |job: &Job| {
        job.spec.as_ref().and_then(|spec| spec.selector.as_ref())
    });
    wiring.follow(&pods, move |change, trigger| {
        claiming.tell(change, trigger);
        if let Some(key) = tracker(change.object()) {
            trigger.changed(key);
        }
    });
    let work = Work {
        own: Claimable::new(&pods),
        tracked: Index::new(&pods, |pod| {
            tracker(pod).iter().map(Key::to_string).collect()
        }),
        tools: wiring.tools(),
        jobs,
        pods,
    };
    Ok(wiring.service(work, Work::reconcile))
}

/// The name of the Job for which a pod waits to be counted: its owner, or who was.
fn tracker(pod: &Pod) -> Option<Key> {
    let name = match owner_of(pod) {
        Some(owner) => (owner.kind == "Job").then_some(&owner.name),
        None => pod.labels().get(JOB),
    };
    let namespace = pod.namespace().unwrap_or_default();
    let name = name.filter(|_| is_tracked(pod))?;
    Some(Key::new(&namespace, name))
}

struct Work {
    jobs: Cache<Job>,
    pods: Cache<Pod>,
    own: Claimable<Pod>,
    tracked: Index<Pod>,
    tools: Tools,
}

impl Work {
    async fn reconcile(self: Arc<Self>, key: Key) -> Result<Outcome, Error> {
        let job = self.jobs.get(&key);
        planted!(StrangersKept => if job.is_none() { return Ok(Outcome::Gone) });
        self.free_strangers(&key, job.as_deref()).await?;
        let Some(job) = job else {
            return Ok(Outcome::Gone);
        };
        let keeper = job
            .spec
            .as_ref()
            .and_then(|spec| spec.managed_by.as_deref());
        if keeper.is_some_and(|keeper| keeper != "kubernetes.io/job-controller") {
            return Ok(Outcome::Settled);
        }
        let pods = self.own.of(&*job);
        let facts = Facts {
            job: &job,
            pods: pods.iter().map(|pod| &**pod).collect(),
            now: second(self.tools.clock.now()),
        };
        let decision = decide(&facts);
        let again = decision.again;
        // Whole pods are held across its awaits.
        Box::pin(self.carry_out(&job, decision)).await?;
        Ok(again.map_or(Outcome::Settled, Outcome::Again))
    }

    /// Pods whose Job is no more are counted by nobody, and must not wait for it.
    async fn free_strangers(&self, key: &Key, job: Option<&Job>) -> Result<(), Error> {
        let uid = job.and_then(ResourceExt::uid);
        for pod in self.tracked.get(&key.to_string()) {
            let owner = owner_of(&*pod).map(|owner| owner.uid.clone());
            // One that is nobody's may still be claimed while there is a Job of that name.
            let strange = owner.map_or(uid.is_none(), |owner| Some(owner) != uid);
            if strange {
                self.free(&pod).await?;
            }
        }
        Ok(())
    }

    async fn carry_out(&self, job: &Job, decision: Decision<'_>) -> Result<(), Error> {
        let makes = !decision.create.is_empty() || !decision.adopt.is_empty();
        self.tools.confirm_unchanged(job, makes).await?;
        self.claim(job, &decision).await?;
        planted!(FreedBeforeCounted => for pod in &decision.free { self.free(pod).await? });
        // If the Job has changed meanwhile, nothing that follows from its status may be done.
        let mut said = job.clone();
        said.status = Some(decision.status);
        self.tools.report(job, &said).await?;
        for note in &decision.notes {
            self.tools.tell(job, note).await;
        }
        planted!(EndedBeforeFreed => for pod in &decision.delete { delete_pod(&self.tools, job, pod).await? });
        for pod in &decision.free {
            self.free(pod).await?;
        }
        for pod in &decision.delete {
            delete_pod(&self.tools, job, pod).await?;
        }
        let made = create_pods(&self.tools, job, &decision.create).await?;
        made.shown(&self.pods).await?;
        if decision.remove {
            self.tools.hand.remove(job, None).await?;
        }
        Ok(())
    }

    async fn claim(&self, job: &Job, decision: &Decision<'_>) -> Result<(), Error> {
        for pod in &decision.adopt {
            let mut pod = (*pod).clone();
            pod.owner_references_mut().extend(owned_by(job));
            if !is_tracked(&pod) {
                pod.finalizers_mut().push(TRACKING.to_owned());
            }
            self.tools.hand.replace(&pod).await?;
        }
        for pod in &decision.release {
            let mut pod = (*pod).clone();
            let uid = job.uid().unwrap_or_default();
            pod.owner_references_mut().retain(|owner| owner.uid != uid);
            pod.finalizers_mut()
                .retain(|finalizer| finalizer != TRACKING);
            self.tools.hand.replace(&pod).await?;
        }
        Ok(())
    }

    async fn free(&self, pod: &Pod) -> Result<(), Error> {
        if !is_tracked(pod) {
            return Ok(());
        }
        let mut pod = pod.clone();
        pod.finalizers_mut()
            .retain(|finalizer| finalizer != TRACKING);
        self.tools.hand.replace(&pod).await.map(drop)
    }
}
