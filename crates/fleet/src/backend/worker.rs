//! One worker: holds a lease, runs the steps, and ends or hands over the work.

use std::{pin::pin, time::Duration};

use neap_kit::{
    operation::{Cause, JournalError, OperationOutcome, RunState, Runner, Session, StepKind},
    why::{Code, chain},
};
use neap_store::{Claimed, Document, Error, Lease, Scope};
use serde_json::Value;
use tokio_util::sync::CancellationToken;

use super::{
    Backend, EndFacts, StoreJournal,
    end::end,
    renewal::{LeaseTrust, Renewal},
};
use crate::{
    cloud_error::CloudError,
    documents::{OPERATIONS, SUBSCRIPTIONS, TIMELINES, set, subscription_document, text},
    install::{ClusterSteps, steps_of},
};

/// How a run ended.
enum Run {
    /// The operation has an outcome, and perhaps an error for customers.
    Ended(OperationOutcome, Option<CloudError>),
    /// Another worker continues.
    HandOver,
    /// Nothing may be written any more.
    LeaseLost,
    /// The journal cannot be used: the lease expires, and the work is claimed again.
    Abandoned,
}

impl Backend {
    /// `claimed_at` is when the call that claimed the document was sent.
    pub(super) async fn work_on_cluster(
        &self,
        claimed: Claimed,
        claimed_at: Duration,
        stop: CancellationToken,
    ) {
        let Claimed { document, lease } = claimed;
        let operation = text(&document.body, "/asyncOperationId").to_owned();
        let cluster = document.key.id.clone();
        let run = if lease.dequeues > self.0.options.max_dequeues {
            given_up(lease.dequeues - 1)
        } else {
            // Boxed because the futures of all steps are in it.
            Box::pin(self.run_with_lease(&document, &lease, claimed_at, &operation, &stop)).await
        };
        let done = match run {
            Run::Ended(outcome, told) => self.end_work(&lease, &operation, outcome, told).await,
            Run::HandOver => self.store().release(&lease, 0).await,
            Run::LeaseLost => {
                tracing::warn!(
                    cluster,
                    "the lease was lost; another worker has the cluster"
                );
                Ok(())
            }
            Run::Abandoned => Ok(()),
        };
        if let Err(error) = done {
            let why = chain(&error);
            tracing::warn!(
                cluster,
                operation,
                why,
                "the end of work was not recorded; it is claimed again"
            );
        }
    }

    /// Runs the steps while the lease is renewed.
    async fn run_with_lease(
        &self,
        document: &Document,
        lease: &Lease,
        claimed_at: Duration,
        operation: &str,
        stop: &CancellationToken,
    ) -> Run {
        let interrupt = CancellationToken::new();
        let mut running = pin!(self.run_steps(document, lease, operation, stop, &interrupt));
        let mut renewing = pin!(self.renew_until_lost(lease, claimed_at, operation, &interrupt));
        tokio::select! {
            run = &mut running => run,
            () = &mut renewing => Run::LeaseLost,
        }
    }

    /// Renews the lease. Returns when it is lost, or could not be renewed for two thirds of its time.
    async fn renew_until_lost(
        &self,
        lease: &Lease,
        claimed_at: Duration,
        operation: &str,
        interrupt: &CancellationToken,
    ) {
        let (clock, options) = (self.clock(), &self.0.options);
        let mut trust = LeaseTrust::claimed(options.lease, claimed_at);
        // Nothing between two renewals takes longer than the lease is trusted.
        let at_most = |trust: &LeaseTrust| options.renewal.min(trust.left(clock.uptime()));
        loop {
            clock.sleep(at_most(&trust)).await;
            let sent = clock.uptime();
            let renewing = self.store().renew(lease, options.lease_millis());
            // A database that does not answer must not keep a worker that another one replaces.
            let renewal = match clock.within(trust.left(sent), renewing).await {
                Some(Ok(())) => Renewal::Succeeded,
                Some(Err(Error::LeaseLost(_))) | None => Renewal::Lost,
                Some(Err(error)) => {
                    let (cluster, why) = (&lease.key.id, chain(&error));
                    tracing::warn!(cluster, why, "the lease was not renewed; it is tried again");
                    Renewal::Failed
                }
            };
            match trust.after(renewal, sent, clock.uptime()) {
                Some(next) => trust = next,
                None => return,
            }
            let cancelled = self.is_cancelled(lease, operation);
            if clock.within(at_most(&trust), cancelled).await == Some(true) {
                interrupt.cancel();
            }
        }
    }

    async fn is_cancelled(&self, lease: &Lease, operation: &str) -> bool {
        let key = subscription_document(OPERATIONS, lease.key.partition.name(), operation);
        let found = self
            .store()
            .get(Scope::Partition(&key.partition), &key)
            .await;
        matches!(found, Ok(Some(it)) if !text(&it.body, "/cancelRequested").is_empty())
    }

    async fn run_steps(
        &self,
        document: &Document,
        lease: &Lease,
        operation: &str,
        stop: &CancellationToken,
        interrupt: &CancellationToken,
    ) -> Run {
        let Some(mut list) = steps_of(&document.body) else {
            // It is queued in a state without work: a version that knew of some queued it.
            let cause = Cause::coded(
                Code("NT-FLEET-0009"),
                "this version of the program has no steps for the state of the cluster",
            );
            return failed("", cause, None);
        };
        if let Some(poll) = self.0.options.condition_poll {
            for step in &mut list.steps {
                if let StepKind::Condition { poll_interval, .. } = &mut step.kind {
                    *poll_interval = poll;
                }
            }
        }
        let subscription = match self.subscription(lease).await {
            Ok(subscription) => subscription,
            Err(error) => {
                let (cluster, why) = (&lease.key.id, chain(&error));
                tracing::warn!(cluster, why, "the subscription was not read");
                return Run::HandOver;
            }
        };
        let hand_over = stop.child_token();
        let context = self.0.context.clone();
        let steps = ClusterSteps::new(context, lease.clone(), subscription, hand_over.clone());
        let store = self.store().clone();
        let total = list.steps.len();
        let journal = StoreJournal::new(store, lease.clone(), &document.key.id, list.kind, total)
            .telling(steps.told().clone());
        let session = Session::default();
        let runner = Runner::new(operation, &list, &journal, &steps, self.clock())
            .in_session(&session)
            .interrupted_by(interrupt.clone())
            .with_telemetry(&self.0.telemetry);
        let clock = self.clock();
        loop {
            match Box::pin(runner.run_until_waiting(&hand_over)).await {
                Ok(RunState::Finished(outcome)) => return Run::Ended(outcome, steps.told().get()),
                Ok(RunState::Stopped) => return Run::HandOver,
                Ok(RunState::Waiting(time)) => tokio::select! {
                    () = hand_over.cancelled() => return Run::HandOver,
                    () = interrupt.cancelled(), if !interrupt.is_cancelled() => {}
                    () = clock.sleep(time) => {}
                },
                Err(JournalError::Unreachable(error)) => {
                    let lost = matches!(error.downcast_ref(), Some(Error::LeaseLost(_)));
                    if lost {
                        return Run::LeaseLost;
                    }
                    // The step that was recorded as running is attempted again by the next worker.
                    let (cluster, why) = (&lease.key.id, chain(&*error));
                    tracing::warn!(cluster, why, "the timeline was not written");
                    self.clock().sleep(super::STORE_RETRY_DELAY).await;
                }
                Err(JournalError::Conflict | JournalError::Missing) => return Run::Abandoned,
            }
        }
    }

    async fn subscription(&self, lease: &Lease) -> Result<Value, Error> {
        let id = lease.key.partition.name();
        let key = subscription_document(SUBSCRIPTIONS, id, id);
        let found = self
            .store()
            .get(Scope::Partition(&key.partition), &key)
            .await?;
        Ok(found.map(|it| it.body).unwrap_or_default())
    }

    /// Records the end, in one transaction.
    async fn end_work(
        &self,
        lease: &Lease,
        operation: &str,
        outcome: OperationOutcome,
        told: Option<CloudError>,
    ) -> Result<(), Error> {
        let partition = lease.key.partition.clone();
        let scope = Scope::Partition(&partition);
        loop {
            let Some(cluster) = self.store().get(scope, &lease.key).await? else {
                return Ok(());
            };
            let of = |collection| subscription_document(collection, partition.name(), operation);
            let operation = if operation.is_empty() {
                None
            } else {
                self.store().get(scope, &of(OPERATIONS)).await?
            };
            let timeline = match &operation {
                Some(_) => self.store().get(scope, &of(TIMELINES)).await?,
                None => None,
            };
            let commit = end(&EndFacts {
                cluster: &cluster,
                operation: operation.as_ref(),
                timeline: timeline.as_ref(),
                lease,
                outcome: &outcome,
                told: told.clone(),
                now: self.clock().now().to_string(),
            });
            match self.store().commit(commit).await {
                // An operation was cancelled between read and write.
                Err(Error::Conflict(_)) => {}
                done => return done.map(drop),
            }
        }
    }
}

fn failed(step: &str, cause: Cause, told: Option<CloudError>) -> Run {
    let step = step.to_owned();
    Run::Ended(OperationOutcome::Failed { step, cause }, told)
}

/// Work that ended its workers again and again: it delays no other work any more.
fn given_up(claims: i64) -> Run {
    let message = format!(
        "the work was claimed {claims} times without progress, because the processes that did it ended or lost the database"
    );
    failed("", Cause::coded(Code("NT-FLEET-0002"), message), None)
}

/// Marks an operation as cancelled: the worker that holds it ends it.
pub(crate) fn request_cancel(operation: &Value, reason: &str) -> Value {
    let mut operation = operation.clone();
    set(&mut operation, "/cancelRequested", reason.into());
    operation
}
