//! Reads the facts and executes the decision.

use std::sync::Arc;

use k8s_openapi::api::batch::v1::{CronJob, Job};
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

use super::decide::{Decision, Facts, decide, reference};
use crate::workload::{
    OwnerIndex, error_message, owner_of, truncate_to_second, wait_for_own_write,
};

pub fn component(context: &Context) -> Result<Component, WatchesStopped> {
    let mut builder = ControllerBuilder::new(context, "cronjob-controller");
    let crons = builder.primary()?;
    let jobs = builder.cache()?;
    builder.on_change(&jobs, |change, enqueuer| {
        let job: &Job = change.object();
        if let Some(owner) = owner_of(job).filter(|owner| owner.kind == "CronJob") {
            let namespace = job.namespace().unwrap_or_default();
            enqueuer.enqueue(Key::new(&namespace, &owner.name));
        }
    });
    let reconciler = CronJobReconciler {
        claimable: OwnerIndex::new(&jobs),
        tools: builder.tools(),
        crons,
        jobs,
    };
    Ok(builder.build(reconciler, CronJobReconciler::reconcile))
}

struct CronJobReconciler {
    crons: Cache<CronJob>,
    jobs: Cache<Job>,
    claimable: OwnerIndex<Job>,
    tools: Tools,
}

impl CronJobReconciler {
    async fn reconcile(self: Arc<Self>, key: Key) -> Result<Outcome, Error> {
        let Some(cron) = self.crons.get(&key) else {
            return Ok(Outcome::Gone);
        };
        let jobs = self.claimable.owned(&*cron);
        let facts = Facts {
            cron: &cron,
            jobs: jobs.iter().map(|job| &**job).collect(),
            now: truncate_to_second(self.tools.clock.now()),
        };
        let decision = decide(&facts);
        let requeue_after = decision.requeue_after;
        // Boxed because whole Jobs are held across its awaits.
        Box::pin(self.execute(&cron, decision)).await?;
        Ok(requeue_after.map_or(Outcome::Done, Outcome::RequeueAfter))
    }

    async fn execute(&self, cron: &CronJob, decision: Decision<'_>) -> Result<(), Error> {
        let makes = decision.create.is_some();
        self.tools.confirm(cron, makes).await?;
        for job in &decision.delete {
            self.tools.writer.remove(*job, None).await?;
            let message = format!("Deleted job {}", job.name_any());
            self.tools
                .record(cron, &EventDraft::normal("SuccessfulDelete", message))
                .await;
        }
        let mut status = decision.status;
        let mut newest = None;
        if let Some(job) = &decision.create {
            let Some(made) = self.create(cron, job).await? else {
                // A Job of this name exists already. The status is written only once the cache
                // shows that Job and that it is ours.
                return Err(Error::Conflict(Key::of(job)));
            };
            newest = made.resource_version();
            status.active.get_or_insert_default().push(reference(&made));
        }
        let mut updated = cron.clone();
        updated.status = Some(status);
        self.tools.update_status(cron, &updated).await?;
        // The status now contains what these Events report, so each is recorded once.
        for event in &decision.events {
            self.tools.record(cron, event).await;
        }
        wait_for_own_write(&self.jobs, newest).await;
        Ok(())
    }

    async fn create(&self, cron: &CronJob, job: &Job) -> Result<Option<Job>, Error> {
        match self.tools.writer.create(job).await {
            Ok(None) if planted!(HourSeenTo) => Ok(Some(job.clone())),
            Ok(made) => {
                if let Some(made) = &made {
                    let message = format!("Created job {}", made.name_any());
                    self.tools
                        .record(cron, &EventDraft::normal("SuccessfulCreate", message))
                        .await;
                }
                Ok(made)
            }
            Err(error) => {
                let message = format!("Error creating job: {}", error_message(&error));
                self.tools
                    .record(cron, &EventDraft::warning("FailedCreate", message))
                    .await;
                Err(error)
            }
        }
    }
}
