//! Reads the facts, and carries the decision out.

use std::{sync::Arc, time::Duration};

use k8s_openapi::{
    api::{batch::v1::Job, core::v1::Pod},
    jiff::Timestamp,
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
    count::{TRACKING, is_tracked},
    decide::{Decision, Facts, decide},
};
use crate::workload::{Claiming, ORPHANS, owned_by, owner_of, owner_or_orphan, reason};

const NAME: &str = "job-controller";
/// The name of the Job for which a pod was made.
const JOB: &str = "batch.kubernetes.io/job-name";
/// So long a write may take to come back by the watch. Late is no harm: names and victims are
/// chosen the same again.
const ECHO: Duration = Duration::from_secs(5);

/// The controller of Jobs.
pub fn service(site: &Site) -> Result<Service, Ended> {
    let jobs = site.all::<Job>()?;
    let pods = site.all::<Pod>()?;
    let controller = site.controller(Options::new(NAME));
    let work = Arc::new(Work {
        by_owner: Index::new(&pods, owner_or_orphan),
        tracked: Index::new(&pods, |pod| {
            tracker(pod).iter().map(Key::to_string).collect()
        }),
        hand: site.hand(NAME),
        recorder: site.recorder(NAME),
        clock: site.clock,
        jobs: jobs.clone(),
        pods: pods.clone(),
    });
    let trigger = controller.trigger();
    jobs.follow(move |change| trigger.changed(change.key()));
    let claiming = Claiming::new(&jobs, controller.trigger(), |job: &Job| {
        job.spec.as_ref().and_then(|spec| spec.selector.as_ref())
    });
    let trigger = controller.trigger();
    pods.follow(move |change| {
        claiming.tell(change);
        if let Some(key) = tracker(change.object()) {
            trigger.changed(key);
        }
    });
    Ok(Service::new(NAME, move |stop| async move {
        let known = async {
            jobs.synced().await;
            pods.synced().await;
        };
        let reconcile = move |key| work.clone().reconcile(key);
        controller.run_once_known(known, reconcile, stop).await;
    }))
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
    by_owner: Index<Pod>,
    tracked: Index<Pod>,
    hand: Hand,
    recorder: Recorder,
    clock: Clock,
}

impl Work {
    async fn reconcile(self: Arc<Self>, key: Key) -> Result<Outcome, Error> {
        let job = self.jobs.get(&key);
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
        let mut pods = self.by_owner.get(&job.uid().unwrap_or_default());
        pods.extend(self.by_owner.get(&format!("{ORPHANS}{}", key.namespace())));
        let now = self.clock.now();
        let facts = Facts {
            job: &job,
            pods: pods.iter().map(|pod| &**pod).collect(),
            now: Timestamp::from_second(now.as_second()).unwrap_or(now),
        };
        let decision = decide(&facts);
        let again = decision.again;
        self.carry_out(&job, decision).await?;
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
        self.claim(job, &decision).await?;
        if !self.report(job, &decision).await? {
            return Ok(());
        }
        for pod in &decision.free {
            self.free(pod).await?;
        }
        for pod in &decision.delete {
            self.hand.remove(*pod, None).await?;
            let message = format!("Deleted pod: {}", pod.name_any());
            self.recorder
                .tell(job, &Note::normal("SuccessfulDelete", message))
                .await;
        }
        let mut newest = None;
        for pod in &decision.create {
            newest = self.create(job, pod).await?.or(newest);
        }
        if let Some(version) = newest {
            // The next look must not miss these pods.
            let _ = self.pods.shows(&version, ECHO).await;
        }
        if decision.remove {
            self.hand.remove(job, None).await?;
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
            self.hand.replace(&pod).await?;
        }
        for pod in &decision.release {
            let mut pod = (*pod).clone();
            let uid = job.uid().unwrap_or_default();
            pod.owner_references_mut().retain(|owner| owner.uid != uid);
            pod.finalizers_mut()
                .retain(|finalizer| finalizer != TRACKING);
            self.hand.replace(&pod).await?;
        }
        Ok(())
    }

    /// Whether the status is as it should be now. If not, the Job has changed meanwhile, and
    /// nothing that follows from the status may be done.
    async fn report(&self, job: &Job, decision: &Decision<'_>) -> Result<bool, Error> {
        if job.status.as_ref() != Some(&decision.status) {
            let mut job = job.clone();
            job.status = Some(decision.status.clone());
            match self.hand.replace_status(&job).await {
                Ok(_) => {}
                Err(Error::Replaced(_)) => return Ok(false),
                Err(error) => return Err(error),
            }
        }
        for note in &decision.notes {
            self.recorder.tell(job, note).await;
        }
        Ok(true)
    }

    async fn free(&self, pod: &Pod) -> Result<(), Error> {
        if !is_tracked(pod) {
            return Ok(());
        }
        let mut pod = pod.clone();
        pod.finalizers_mut()
            .retain(|finalizer| finalizer != TRACKING);
        self.hand.replace(&pod).await.map(drop)
    }

    /// Makes a pod, and says which version of it is the first.
    async fn create(&self, job: &Job, pod: &Pod) -> Result<Option<String>, Error> {
        match self.hand.create(pod).await {
            Ok(None) => Ok(None),
            Ok(Some(made)) => {
                let message = format!("Created pod: {}", made.name_any());
                self.recorder
                    .tell(job, &Note::normal("SuccessfulCreate", message))
                    .await;
                Ok(made.resource_version())
            }
            Err(error) => {
                let message = format!("Error creating: {}", reason(&error));
                self.recorder
                    .tell(job, &Note::warning("FailedCreate", message))
                    .await;
                Err(error)
            }
        }
    }
}
