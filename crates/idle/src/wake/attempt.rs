//! One wake of one service, with its retries.

use std::{sync::Arc, time::Duration};

use jiff::Timestamp;
use kube::{Client, api::ObjectMeta};
use neap_kit::{
    apply::{self, ResourceKind, Writer},
    clock::Clock,
    event::{EventDraft, EventRecorder},
    key::Key,
    telemetry::Meter,
    why::chain,
};
use serde_json::json;

use super::{
    WakeCause, WakeOutcome,
    metrics::{WakeFinished, WakeMetrics},
    runner::Waiters,
};
use crate::{
    api::{Breakdown, ElastiService},
    target::{self, Keda, KindLookup, Target},
};

/// The number of attempts before a wake fails; the resolver then requests another one.
const MAX_ATTEMPTS: u32 = 5;
/// The time within which an attempt has to succeed.
const ATTEMPT_TIMEOUT: Duration = Duration::from_secs(10);
/// The delay after the first failure; each further one is twice as long.
const RETRY_DELAY: Duration = Duration::from_millis(100);

/// What a wake needs.
#[derive(Debug, Clone)]
pub(super) struct WakeTools {
    /// Writes without leadership; see the documentation of the module.
    pub(super) writer: Writer,
    pub(super) recorder: EventRecorder,
    pub(super) kinds: Arc<KindLookup>,
    pub(super) clock: Clock,
    pub(super) meter: Meter<WakeMetrics>,
}

/// When a wake started, and how long it took until replicas were written.
#[derive(Debug, Clone, Copy)]
struct WakeStart {
    time: Timestamp,
    took: Duration,
}

/// Why an attempt failed.
#[derive(Debug, thiserror::Error)]
enum WakeError {
    #[error(transparent)]
    Kind(#[from] target::UnknownKind),
    #[error("{0} does not exist")]
    Missing(String),
    #[error("the API server did not return the replicas of {0}")]
    ScaleUnknown(String),
    #[error("no response within {ATTEMPT_TIMEOUT:?}")]
    Timeout,
    #[error(transparent)]
    Write(#[from] apply::Error),
}

impl WakeTools {
    /// Wakes `service`. The waiters get the outcome first, since they hold requests; the status and the
    /// Event are written after that.
    pub(super) async fn wake(
        self,
        client: Client,
        service: Arc<ElastiService>,
        cause: WakeCause,
        waiters: Waiters,
    ) {
        let (began, start) = (self.clock.now(), self.clock.uptime());
        let outcome = Box::pin(self.raise(&client, &service)).await;
        let took = self.clock.uptime().saturating_sub(start);
        self.meter.emit(&WakeFinished {
            service: &service,
            cause: &cause,
            outcome: &outcome,
            took,
        });
        for waiter in waiters {
            let _ = waiter.send(outcome.clone());
        }
        let began = WakeStart { time: began, took };
        self.report(&service, &outcome, &cause, began).await;
    }

    async fn raise(&self, client: &Client, service: &ElastiService) -> WakeOutcome {
        let mut delay = RETRY_DELAY;
        let mut attempts = 1;
        loop {
            let attempt = Box::pin(self.attempt(client, service));
            let error = match self.clock.within(ATTEMPT_TIMEOUT, attempt).await {
                Some(Ok(outcome)) => return outcome,
                Some(Err(error)) => error,
                None => WakeError::Timeout,
            };
            if attempts == MAX_ATTEMPTS || matches!(error, WakeError::Missing(_)) {
                return WakeOutcome::Failed(chain(&error));
            }
            // A conflict is retried at once: another controller wrote in between.
            if !matches!(error, WakeError::Write(apply::Error::Conflict(_))) {
                self.clock.sleep(delay).await;
                delay *= 2;
            }
            attempts += 1;
        }
    }

    async fn attempt(
        &self,
        client: &Client,
        service: &ElastiService,
    ) -> Result<WakeOutcome, WakeError> {
        let namespace = service.metadata.namespace.as_deref().unwrap_or_default();
        let named = &service.spec.scale_target_ref;
        let display = format!("{} {namespace}/{}", named.kind, named.name);
        self.resume(client, namespace, service).await?;
        let kind = self.kinds.of(client, named).await?;
        let key = Key::new(namespace, &named.name);
        let wanted = service.spec.wake_replicas();
        let (found, _) = target::read(client, &kind, &key).await;
        match found {
            Target::Missing => Err(WakeError::Missing(display)),
            Target::Unknown => Err(WakeError::ScaleUnknown(display)),
            Target::Scaled { replicas, .. } if replicas >= wanted => {
                Ok(WakeOutcome::Awake { replicas })
            }
            Target::Scaled { replicas, metadata } => {
                let change = target::scale_change(&kind, &metadata, wanted, "a request needs it");
                self.writer.execute_change(change).await?;
                let (from, to) = (replicas, wanted);
                Ok(WakeOutcome::Woken { from, to })
            }
        }
    }

    /// Resumes KEDA if it is paused for a sleep of ours or of KubeElasti. A pause of a user stays.
    async fn resume(
        &self,
        client: &Client,
        namespace: &str,
        service: &ElastiService,
    ) -> Result<(), WakeError> {
        let autoscaler = service.spec.autoscaler.as_ref();
        let Some(Keda::Found {
            metadata,
            paused,
            by_us,
        }) = target::read_keda(client, namespace, autoscaler).await
        else {
            return Ok(());
        };
        if paused && by_us {
            let change = target::keda_change(&metadata, false, "a request needs its target");
            self.writer.execute_change(change).await?;
        }
        Ok(())
    }

    async fn report(
        &self,
        service: &ElastiService,
        outcome: &WakeOutcome,
        cause: &WakeCause,
        began: WakeStart,
    ) {
        let event = match outcome {
            WakeOutcome::Woken { from, to } => Some(EventDraft::normal(
                "SuccessToScale",
                format!("woken from {from} to {to} replicas: {cause}"),
            )),
            WakeOutcome::Failed(why) => Some(EventDraft::warning("FailedToScale", why.clone())),
            WakeOutcome::Awake { .. } | WakeOutcome::Unknown => None,
        };
        let woken = matches!(outcome, WakeOutcome::Woken { .. });
        let requested = !matches!(outcome, WakeOutcome::Unknown) && *cause == WakeCause::Request;
        if woken || (requested && service.activity_write_is_due(began.time)) {
            self.record_in_status(service, cause, woken, began).await;
        }
        if let Some(event) = event {
            self.recorder.record(service, &event).await;
        }
    }

    /// Records the time in the status, from which the cooldown is measured.
    async fn record_in_status(
        &self,
        service: &ElastiService,
        cause: &WakeCause,
        woken: bool,
        began: WakeStart,
    ) {
        let mut status = json!({"lastScaledUpTime": began.time});
        if woken {
            // All parts are set, so that none of an earlier wake remains.
            let breakdown = Breakdown {
                scale: i64::try_from(began.took.as_millis()).unwrap_or(i64::MAX),
                ..Breakdown::default()
            };
            status["lastWake"] =
                json!({"time": began.time, "cause": cause.to_string(), "breakdown": breakdown});
        }
        let metadata = ObjectMeta {
            name: service.metadata.name.clone(),
            namespace: service.metadata.namespace.clone(),
            uid: service.metadata.uid.clone(),
            ..ObjectMeta::default()
        };
        let change = json!({"status": status});
        let kind = ResourceKind::of::<ElastiService>();
        let written = self.writer.merge(&kind, &metadata, Some("status"), change);
        if let Err(error) = written.await {
            let key = Key::of(service);
            tracing::warn!(%key, error = chain(&error), "a wake could not be recorded in the status");
        }
    }
}
