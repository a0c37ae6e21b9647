//! What is known about a ProwJob.

use std::sync::Arc;

use jiff::Timestamp;
use k8s_openapi::api::{batch::v1::Job, core::v1::Pod};
use kube::{Api, ResourceExt};
use neap_kit::{
    builder::ControllerBuilder,
    clock::Clock,
    context::Context,
    key::Key,
    watch::{Cache, Change, Selection, WatchesStopped},
};

use super::{
    ProwOptions,
    api::{ProwJob, ProwJobState},
    run::{CREATED_BY_PROW, ID, job_names},
};
use crate::fault_book::fits;

/// What is known about a ProwJob.
#[derive(Debug, Clone)]
pub(super) struct Facts {
    pub(super) prow_job: Arc<ProwJob>,
    /// The names that its Jobs may have, and the Jobs there are under them: its own, and those of others.
    pub(super) jobs: Vec<(String, Option<Arc<Job>>)>,
    /// Its pods, the oldest first.
    pub(super) pods: Vec<Arc<Pod>>,
    /// How many other ProwJobs of the same job are pending.
    pub(super) others_pending: usize,
    pub(super) now: Timestamp,
    pub(super) log_server: Option<String>,
    /// Whether an injected fault keeps it from being started.
    pub(super) hangs: bool,
    /// Whether an injected fault makes it fail at the start.
    pub(super) fails: bool,
}

/// Where the facts come from.
#[derive(Debug)]
pub(super) struct FactSources {
    prow_jobs: Cache<ProwJob>,
    jobs: Cache<Job>,
    pods: Cache<Pod>,
    clock: Clock,
    options: ProwOptions,
}

impl FactSources {
    pub(super) fn new(
        builder: &mut ControllerBuilder,
        context: &Context,
        options: ProwOptions,
    ) -> Result<Self, WatchesStopped> {
        let prow_jobs = builder.primary::<ProwJob>()?;
        let ours = Selection {
            labels: Some(format!("{CREATED_BY_PROW}=true")),
            ..Selection::default()
        };
        // All of them: a Job of another owner may have the name.
        let jobs = builder.cache::<Job>()?;
        builder.on_change(&jobs, |change: &Change<Job>, enqueuer| {
            if let Some(key) = owner(change.object().as_ref()) {
                enqueuer.enqueue(key);
            }
        });
        let pods = Api::all(context.client.clone());
        let pods = builder.selected::<Pod>(pods, ours)?;
        builder.on_change(&pods, |change: &Change<Pod>, enqueuer| {
            if let Some(key) = owner(change.object().as_ref()) {
                enqueuer.enqueue(key);
            }
        });
        Ok(Self {
            prow_jobs,
            jobs,
            pods,
            clock: context.clock,
            options,
        })
    }

    pub(super) fn gather(&self, key: &Key) -> Option<Facts> {
        let prow_job = self.prow_jobs.get(key)?;
        let job = |name: String| {
            let found = self.jobs.get(&Key::new(key.namespace(), &name));
            (name, found)
        };
        let name = &prow_job.spec.job;
        let matches = |patterns: &[String]| patterns.iter().any(|it| fits(it, name));
        Some(Facts {
            jobs: job_names(&prow_job).map(job).collect(),
            pods: self.pods(key),
            others_pending: self.others_pending(key, name),
            now: self.clock.now(),
            log_server: self.options.log_server.clone(),
            hangs: matches(&self.options.hang),
            fails: matches(&self.options.fail),
            prow_job,
        })
    }

    fn pods(&self, key: &Key) -> Vec<Arc<Pod>> {
        let mut pods = self.pods.list(key.namespace());
        pods.retain(|pod| owner(pod.as_ref()).as_ref() == Some(key));
        pods.sort_by_key(|pod| {
            let created = pod.creation_timestamp().map(|time| time.0);
            (created, pod.name_any())
        });
        pods
    }

    fn others_pending(&self, key: &Key, job: &str) -> usize {
        let all = self.prow_jobs.list(key.namespace()).into_iter();
        let pending = |other: &Arc<ProwJob>| {
            let status = other.status.as_ref();
            other.spec.job == job
                && Key::of(other.as_ref()) != *key
                && status.and_then(|status| status.state) == Some(ProwJobState::Pending)
        };
        all.filter(pending).count()
    }
}

/// The ProwJob that an object was created for.
fn owner(object: &impl ResourceExt) -> Option<Key> {
    let name = object.labels().get(ID).cloned();
    let name = object.annotations().get(ID).cloned().or(name)?;
    Some(Key::new(&object.namespace()?, &name))
}
