//! Reads the facts, and carries the decision out.

use std::{sync::Arc, time::Duration};

use k8s_openapi::{
    api::batch::v1::{CronJob, Job},
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

use super::decide::{Decision, Facts, decide, reference};
use crate::workload::{owner_of, owner_or_orphan, reason, report};

const NAME: &str = "cronjob-controller";
/// So long a write may take to come back by the watch. Late is no harm: names are chosen the same
/// again.
const ECHO: Duration = Duration::from_secs(5);

/// The controller of CronJobs.
pub fn service(site: &Site) -> Result<Service, Ended> {
    let crons = site.all::<CronJob>()?;
    let jobs = site.all::<Job>()?;
    let controller = site.controller(Options::new(NAME));
    let work = Arc::new(Work {
        by_owner: Index::new(&jobs, owner_or_orphan),
        hand: site.hand(NAME),
        recorder: site.recorder(NAME),
        clock: site.clock,
        crons: crons.clone(),
        jobs: jobs.clone(),
    });
    let trigger = controller.trigger();
    crons.follow(move |change| trigger.changed(change.key()));
    let trigger = controller.trigger();
    jobs.follow(move |change| {
        let job = change.object();
        if let Some(owner) = owner_of(&**job).filter(|owner| owner.kind == "CronJob") {
            let namespace = job.namespace().unwrap_or_default();
            trigger.changed(Key::new(&namespace, &owner.name));
        }
    });
    Ok(Service::new(NAME, move |stop| async move {
        let known = async {
            crons.synced().await;
            jobs.synced().await;
        };
        let reconcile = move |key| work.clone().reconcile(key);
        controller.run_once_known(known, reconcile, stop).await;
    }))
}

struct Work {
    crons: Cache<CronJob>,
    jobs: Cache<Job>,
    by_owner: Index<Job>,
    hand: Hand,
    recorder: Recorder,
    clock: Clock,
}

impl Work {
    async fn reconcile(self: Arc<Self>, key: Key) -> Result<Outcome, Error> {
        let Some(cron) = self.crons.get(&key) else {
            return Ok(Outcome::Gone);
        };
        let jobs = self.by_owner.get(&cron.uid().unwrap_or_default());
        let now = self.clock.now();
        let facts = Facts {
            cron: &cron,
            jobs: jobs.iter().map(|job| &**job).collect(),
            now: Timestamp::from_second(now.as_second()).unwrap_or(now),
        };
        let decision = decide(&facts);
        let again = decision.again;
        // Whole Jobs are held across its awaits.
        Box::pin(self.carry_out(&cron, decision)).await?;
        Ok(again.map_or(Outcome::Settled, Outcome::Again))
    }

    async fn carry_out(&self, cron: &CronJob, decision: Decision<'_>) -> Result<(), Error> {
        for note in &decision.notes {
            self.recorder.tell(cron, note).await;
        }
        for job in &decision.delete {
            self.hand.remove(*job, None).await?;
            let message = format!("Deleted job {}", job.name_any());
            self.recorder
                .tell(cron, &Note::normal("SuccessfulDelete", message))
                .await;
        }
        let mut status = decision.status;
        let mut newest = None;
        if let Some(job) = &decision.create
            && let Some(made) = self.create(cron, job).await?
        {
            newest = made.resource_version();
            status.active.get_or_insert_default().push(reference(&made));
        }
        if cron.status.as_ref() != Some(&status) {
            let mut cron = cron.clone();
            cron.status = Some(status);
            report(&self.hand, &cron).await?;
        }
        if let Some(version) = newest {
            // The next look must not miss this Job.
            let _ = self.jobs.shows(&version, ECHO).await;
        }
        Ok(())
    }

    async fn create(&self, cron: &CronJob, job: &Job) -> Result<Option<Job>, Error> {
        match self.hand.create(job).await {
            Ok(made) => {
                if let Some(made) = &made {
                    let message = format!("Created job {}", made.name_any());
                    self.recorder
                        .tell(cron, &Note::normal("SuccessfulCreate", message))
                        .await;
                }
                Ok(made)
            }
            Err(error) => {
                let message = format!("Error creating job: {}", reason(&error));
                self.recorder
                    .tell(cron, &Note::warning("FailedCreate", message))
                    .await;
                Err(error)
            }
        }
    }
}
