//! One wake of one service.

use std::{sync::Arc, time::Duration};

use jiff::Timestamp;
use kube::{
    Client,
    api::{ApiResource, ObjectMeta},
};
use neap_kit::{
    apply::{self, Hand, Kind},
    clock::Clock,
    event::{Note, Recorder},
    key::Key,
    telemetry::Meter,
    why::chain,
};
use serde_json::json;

use super::{
    Cause, Outcome,
    metrics::{Metrics, Woke},
    service::Waiters,
};
use crate::{
    api::{Breakdown, ElastiService},
    target::{self, Keda, Kinds, Target},
};

/// So often one wake tries before it says that it failed. Whoever needs it asks again.
const TRIES: u32 = 5;
/// One try that takes longer has failed.
const LIMIT: Duration = Duration::from_secs(10);
/// The pause after the first failure; each further one is twice as long.
const PAUSE: Duration = Duration::from_millis(100);
/// That somebody asked is noted no more often than this.
const NOTED: Duration = Duration::from_mins(1);

/// With what wakes are done.
#[derive(Debug, Clone)]
pub(super) struct Tools {
    /// Leads always: see the module's text.
    pub(super) hand: Hand,
    pub(super) recorder: Recorder,
    pub(super) kinds: Arc<Kinds>,
    pub(super) clock: Clock,
    pub(super) meter: Meter<Metrics>,
}

/// When a wake began, and how long it took until replicas were written.
#[derive(Debug, Clone, Copy)]
struct Began {
    time: Timestamp,
    took: Duration,
}

/// Why replicas were not written.
#[derive(Debug, thiserror::Error)]
enum Failure {
    #[error(transparent)]
    Kind(#[from] target::Unknown),
    #[error("{0} does not exist")]
    Missing(String),
    #[error("the server does not say how many replicas {0} has")]
    Silent(String),
    #[error("no answer within {LIMIT:?}")]
    Late,
    #[error(transparent)]
    Write(#[from] apply::Error),
}

impl Tools {
    /// Wakes `service` and says what came of it, to those who wait before all others: they have
    /// somebody in line, and what is told in status and Events may take its time.
    pub(super) async fn wake(
        self,
        client: Client,
        service: Arc<ElastiService>,
        cause: Cause,
        waiters: Waiters,
    ) {
        let (began, start) = (self.clock.now(), self.clock.uptime());
        let outcome = self.raise(&client, &service).await;
        let took = self.clock.uptime().saturating_sub(start);
        self.meter.emit(&Woke {
            service: &service,
            cause: &cause,
            outcome: &outcome,
            took,
        });
        for waiter in waiters {
            let _ = waiter.send(outcome.clone());
        }
        let began = Began { time: began, took };
        self.tell(&service, &outcome, &cause, began).await;
    }

    async fn raise(&self, client: &Client, service: &ElastiService) -> Outcome {
        let mut pause = PAUSE;
        let mut tries = 1;
        loop {
            let tried = self.tried(client, service);
            let failure = match self.clock.within(LIMIT, tried).await {
                Some(Ok(outcome)) => return outcome,
                Some(Err(failure)) => failure,
                None => Failure::Late,
            };
            if tries == TRIES || matches!(failure, Failure::Missing(_)) {
                return Outcome::Failed(chain(&failure));
            }
            // Somebody else wrote in between, as controllers do all the time: look again at once.
            if !matches!(failure, Failure::Write(apply::Error::Replaced(_))) {
                self.clock.sleep(pause).await;
                pause *= 2;
            }
            tries += 1;
        }
    }

    async fn tried(&self, client: &Client, service: &ElastiService) -> Result<Outcome, Failure> {
        let namespace = service.metadata.namespace.as_deref().unwrap_or_default();
        let named = &service.spec.scale_target_ref;
        let shown = format!("{} {namespace}/{}", named.kind, named.name);
        self.resume(client, namespace, service).await?;
        let kind = self.kinds.of(client, named).await?;
        let key = Key::new(namespace, &named.name);
        let wanted = least(service);
        let (seen, _) = target::look(client, &kind, &key).await;
        match seen {
            Target::Missing => Err(Failure::Missing(shown)),
            Target::Unknown => Err(Failure::Silent(shown)),
            Target::Scaled { replicas, .. } if replicas >= wanted => {
                Ok(Outcome::Awake { replicas })
            }
            Target::Scaled { replicas, seen } => {
                target::scale(&self.hand, &kind, &seen, wanted).await?;
                let (from, to) = (replicas, wanted);
                Ok(Outcome::Woken { from, to })
            }
        }
    }

    /// Has KEDA go on, if it stands still for a sleep of ours or of KubeElasti. Who paused it at another
    /// number is left alone.
    async fn resume(
        &self,
        client: &Client,
        namespace: &str,
        service: &ElastiService,
    ) -> Result<(), Failure> {
        let autoscaler = service.spec.autoscaler.as_ref();
        let Some(Keda::Found {
            seen,
            paused,
            by_us,
        }) = target::keda(client, namespace, autoscaler).await
        else {
            return Ok(());
        };
        if paused && by_us {
            target::switch(&self.hand, &seen, false).await?;
        }
        Ok(())
    }

    async fn tell(&self, service: &ElastiService, outcome: &Outcome, cause: &Cause, began: Began) {
        let note = match outcome {
            Outcome::Woken { from, to } => Some(Note::normal(
                "SuccessToScale",
                format!("woken from {from} to {to} replicas: {cause}"),
            )),
            Outcome::Failed(why) => Some(Note::warning("FailedToScale", why.clone())),
            Outcome::Awake { .. } | Outcome::Unknown => None,
        };
        let woken = matches!(outcome, Outcome::Woken { .. });
        let asked = !matches!(outcome, Outcome::Unknown) && *cause == Cause::Request;
        if woken || (asked && is_due(service, began.time)) {
            self.note(service, cause, woken, began).await;
        }
        if let Some(note) = note {
            self.recorder.tell(service, &note).await;
        }
    }

    /// Notes the time in the status, where the cooldown is counted from.
    async fn note(&self, service: &ElastiService, cause: &Cause, woken: bool, began: Began) {
        let mut status = json!({"lastScaledUpTime": began.time});
        if woken {
            // Nothing of where the time of an earlier one went is its.
            let breakdown = Breakdown {
                scale: i64::try_from(began.took.as_millis()).unwrap_or(i64::MAX),
                ..Breakdown::default()
            };
            status["lastWake"] =
                json!({"time": began.time, "cause": cause.to_string(), "breakdown": breakdown});
        }
        let seen = ObjectMeta {
            name: service.metadata.name.clone(),
            namespace: service.metadata.namespace.clone(),
            uid: service.metadata.uid.clone(),
            ..ObjectMeta::default()
        };
        let change = json!({"status": status});
        let kind = elasti_services();
        let written = self.hand.merge(&kind, &seen, Some("status"), change);
        if let Err(error) = written.await {
            let key = Key::of(service);
            tracing::warn!(%key, error = chain(&error), "a wake could not be noted in the status");
        }
    }
}

/// It wakes to so many; one if nothing is said.
fn least(service: &ElastiService) -> i32 {
    service.spec.min_target_replicas.unwrap_or(1).max(1)
}

/// Whether the time that is noted is too old to count from: a quarter of the cooldown, and not every
/// moment.
pub(crate) fn is_due(service: &ElastiService, now: Timestamp) -> bool {
    let noted = service
        .status
        .as_ref()
        .and_then(|it| it.last_scaled_up_time);
    let cooldown = service
        .spec
        .cooldown_period
        .filter(|it| *it > 0)
        .unwrap_or(900);
    let quarter = Duration::from_secs(u64::try_from(cooldown).unwrap_or(900)) / 4;
    let due = noted.and_then(|noted| noted.checked_add(NOTED.min(quarter)).ok());
    due.is_none_or(|due| now >= due)
}

fn elasti_services() -> Kind {
    Kind {
        resource: ApiResource::erase::<ElastiService>(&()),
        namespaced: true,
    }
}
