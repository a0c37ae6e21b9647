//! Reads the facts, and carries the decision out.

use std::sync::Arc;

use k8s_openapi::api::batch::v1::{CronJob, Job};
use kube::ResourceExt;
use neap_kit::{
    apply::Error,
    controller::Outcome,
    event::Note,
    key::Key,
    manager::Service,
    planted,
    site::Site,
    watch::{Cache, Ended},
    wiring::{Tools, Wiring},
};

use super::decide::{Decision, Facts, decide, reference};
use crate::workload::{Claimable, echoed, owner_of, reason, second};

/// The controller of CronJobs.
pub fn service(site: &Site) -> Result<Service, Ended> {
    let mut wiring = Wiring::new(site, "cronjob-controller");
    let crons = wiring.kept()?;
    let jobs = wiring.read()?;
    wiring.follow(&jobs, |change, trigger| {
        let job: &Job = change.object();
        if let Some(owner) = owner_of(job).filter(|owner| owner.kind == "CronJob") {
            let namespace = job.namespace().unwrap_or_default();
            trigger.changed(Key::new(&namespace, &owner.name));
        }
    });
    let work = Work {
        claimable: Claimable::new(&jobs),
        tools: wiring.tools(),
        crons,
        jobs,
    };
    Ok(wiring.service(work, Work::reconcile))
}

struct Work {
    crons: Cache<CronJob>,
    jobs: Cache<Job>,
    claimable: Claimable<Job>,
    tools: Tools,
}

impl Work {
    async fn reconcile(self: Arc<Self>, key: Key) -> Result<Outcome, Error> {
        let Some(cron) = self.crons.get(&key) else {
            return Ok(Outcome::Gone);
        };
        let jobs = self.claimable.owned(&*cron);
        let facts = Facts {
            cron: &cron,
            jobs: jobs.iter().map(|job| &**job).collect(),
            now: second(self.tools.clock.now()),
        };
        let decision = decide(&facts);
        let again = decision.again;
        // Whole Jobs are held across its awaits.
        Box::pin(self.carry_out(&cron, decision)).await?;
        Ok(again.map_or(Outcome::Settled, Outcome::Again))
    }

    async fn carry_out(&self, cron: &CronJob, decision: Decision<'_>) -> Result<(), Error> {
        let makes = decision.create.is_some();
        self.tools.confirm(cron, makes).await?;
        for job in &decision.delete {
            self.tools.hand.remove(*job, None).await?;
            let message = format!("Deleted job {}", job.name_any());
            self.tools
                .tell(cron, &Note::normal("SuccessfulDelete", message))
                .await;
        }
        let mut status = decision.status;
        let mut newest = None;
        if let Some(job) = &decision.create {
            let Some(made) = self.create(cron, job).await? else {
                // It is there, or so the server said. That its time was seen to is written when
                // the Job was seen, and is ours.
                return Err(Error::Replaced(Key::of(job)));
            };
            newest = made.resource_version();
            status.active.get_or_insert_default().push(reference(&made));
        }
        let mut said = cron.clone();
        said.status = Some(status);
        self.tools.report(cron, &said).await?;
        // What was seen is in the status by now, so it is told once.
        for note in &decision.notes {
            self.tools.tell(cron, note).await;
        }
        echoed(&self.jobs, newest).await;
        Ok(())
    }

    async fn create(&self, cron: &CronJob, job: &Job) -> Result<Option<Job>, Error> {
        match self.tools.hand.create(job).await {
            Ok(None) if planted!(HourSeenTo) => Ok(Some(job.clone())),
            Ok(made) => {
                if let Some(made) = &made {
                    let message = format!("Created job {}", made.name_any());
                    self.tools
                        .tell(cron, &Note::normal("SuccessfulCreate", message))
                        .await;
                }
                Ok(made)
            }
            Err(error) => {
                let message = format!("Error creating job: {}", reason(&error));
                self.tools
                    .tell(cron, &Note::warning("FailedCreate", message))
                    .await;
                Err(error)
            }
        }
    }
}
