//! Shadow mode: the verdicts of another controller, compared with those that this one would give.
//!
//! It runs beside the original and only reads. A verdict differs if the phase that the status has is not the
//! one that the same facts mean here. The other controller needs a while after each fact, so a difference
//! counts once it has lasted for a grace period.

#[cfg(test)]
mod tests;

use std::{collections::BTreeMap, fmt, sync::Arc, time::Duration};

use jiff::{SignedDuration, Timestamp};
use kube::Client;
use neap_kit::{
    apply::Error,
    builder::{ControllerBuilder, Tools},
    clock::Clock,
    context::Context,
    controller::Outcome,
    key::Key,
    lease::Leadership,
    manager::Component,
    watch::{Watches, WatchesStopped},
};
use parking_lot::Mutex;
use prometheus_client::{
    collector::Collector,
    encoding::{DescriptorEncoder, EncodeMetric},
    metrics::{MetricType, gauge::ConstGauge},
};
use serde::Serialize;
use tokio_util::sync::CancellationToken;

use crate::payload::{
    Phase,
    controller::{PayloadOptions, PayloadSources},
    decide::decide,
    facts::Facts,
    run_keys::REREAD,
};

/// The name of the component.
const NAME: &str = "release-shadow";

/// A verdict that would differ.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Difference {
    /// The namespace of the payload.
    pub namespace: String,
    /// The name of the payload.
    pub name: String,
    /// The phase that its status has.
    pub recorded: &'static str,
    /// The phase that the facts mean.
    pub computed: &'static str,
    /// Why, in words.
    pub explanation: String,
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            namespace, name, ..
        } = self;
        write!(
            f,
            "{namespace}/{name} is {}, and the facts mean {}: {}",
            self.recorded, self.computed, self.explanation
        )
    }
}

/// Compares the status of a payload with what its facts mean.
pub fn difference(facts: &Facts) -> Option<Difference> {
    let recorded = Phase::of_payload(&facts.payload);
    let decision = decide(facts);
    let computed = decision.phase;
    if recorded == computed {
        return None;
    }
    let accepted = decision.status.conditions.iter();
    let mut accepted = accepted.filter(|it| it.type_ == crate::api::conditions::ACCEPTED);
    let key = Key::of(&*facts.payload);
    Some(Difference {
        namespace: key.namespace().to_owned(),
        name: key.name().to_owned(),
        recorded: recorded.as_str(),
        computed: computed.as_str(),
        explanation: accepted
            .next()
            .map(|it| it.message.clone())
            .unwrap_or_default(),
    })
}

/// A difference and since when it has been seen.
#[derive(Debug, Clone)]
struct Seen {
    difference: Difference,
    since: Timestamp,
    reported: bool,
}

/// The differences that are known.
#[derive(Debug, Default)]
struct Ledger(BTreeMap<Key, Seen>);

/// What follows from a look at one payload.
#[derive(Debug, PartialEq, Eq)]
enum Report {
    /// Nothing is new.
    Nothing,
    /// The difference is too young to be reported.
    Wait(Duration),
    /// It has lasted for the grace period.
    Differs(Difference),
    /// A reported difference is over.
    Agrees(Difference),
}

impl Ledger {
    fn note(
        &mut self,
        key: &Key,
        found: Option<Difference>,
        grace: SignedDuration,
        now: Timestamp,
    ) -> Report {
        let Some(difference) = found else {
            return match self.0.remove(key) {
                Some(seen) if seen.reported => Report::Agrees(seen.difference),
                _ => Report::Nothing,
            };
        };
        let seen = self.0.entry(key.clone()).or_insert_with(|| Seen {
            difference: difference.clone(),
            since: now,
            reported: false,
        });
        if (seen.difference.recorded, seen.difference.computed)
            != (difference.recorded, difference.computed)
        {
            *seen = Seen {
                difference: difference.clone(),
                since: now,
                reported: false,
            };
        }
        seen.difference = difference;
        let age = now.duration_since(seen.since);
        if seen.reported {
            Report::Nothing
        } else if age < grace {
            let rest = grace.saturating_sub(age).max(SignedDuration::from_secs(1));
            Report::Wait(rest.unsigned_abs())
        } else {
            seen.reported = true;
            Report::Differs(seen.difference.clone())
        }
    }

    fn reported(&self) -> usize {
        self.0.values().filter(|seen| seen.reported).count()
    }
}

struct Shadow {
    sources: PayloadSources,
    ledger: Arc<Mutex<Ledger>>,
    grace: Duration,
    clock: Clock,
}

/// The component that compares all verdicts. It writes nothing: its writer never leads.
pub fn component(
    context: &Context,
    options: PayloadOptions,
    grace: Duration,
) -> Result<Component, WatchesStopped> {
    let mut builder = ControllerBuilder::new(context, NAME);
    let sources = PayloadSources::watch(&mut builder, context, read_only(context), options)?;
    let ledger = Arc::<Mutex<Ledger>>::default();
    let gauge = Differences(ledger.clone());
    let telemetry = context.watches.process().telemetry();
    telemetry.meter(|registry| registry.register_collector(Box::new(gauge)));
    let shadow = Shadow {
        sources,
        ledger,
        grace,
        clock: context.clock,
    };
    Ok(builder.build(shadow, Shadow::reconcile))
}

/// Tools whose writer refuses every write.
fn read_only(context: &Context) -> Tools {
    let context = Context {
        leadership: Leadership::never(context.clock),
        ..context.clone()
    };
    Tools::new(&context, NAME)
}

impl Shadow {
    async fn reconcile(self: Arc<Self>, key: Key) -> Result<Outcome, Error> {
        let payload = self.sources.payloads.get(&key);
        let found = match payload.filter(|it| it.metadata.deletion_timestamp.is_none()) {
            None => None,
            Some(payload) => {
                let facts = self.sources.facts(payload).await?;
                if facts.unproved.is_some() {
                    return Ok(Outcome::RequeueAfter(REREAD));
                }
                difference(&facts)
            }
        };
        let grace = SignedDuration::try_from(self.grace).unwrap_or(SignedDuration::MAX);
        let now = self.clock.now();
        let report = self.ledger.lock().note(&key, found, grace, now);
        match report {
            Report::Nothing => Ok(Outcome::Done),
            Report::Wait(rest) => Ok(Outcome::RequeueAfter(rest)),
            Report::Differs(difference) => {
                tracing::warn!(%key, recorded = difference.recorded, computed = difference.computed, "a verdict would differ: {difference}");
                Ok(Outcome::Done)
            }
            Report::Agrees(difference) => {
                tracing::info!(%key, "a verdict differs no longer: it was {}, and the facts meant {}", difference.recorded, difference.computed);
                Ok(Outcome::Done)
            }
        }
    }
}

/// Compares all verdicts once. Returns how many payloads there are, and the differences.
pub async fn survey(
    client: Client,
    clock: Clock,
    options: impl FnOnce(&Context) -> PayloadOptions,
) -> Result<(usize, Vec<Difference>), SurveyError> {
    let (watches, runner) = Watches::new(clock);
    let context = Context {
        client,
        watches,
        leadership: Leadership::never(clock),
        clock,
    };
    let mut builder = ControllerBuilder::new(&context, NAME);
    let tools = builder.tools();
    let sources = PayloadSources::watch(&mut builder, &context, tools, options(&context))?;
    let reading = async {
        sources.synced().await;
        let payloads = sources.payloads.list("");
        let mut found = Vec::new();
        for payload in &payloads {
            let facts = sources.facts(payload.clone()).await?;
            if facts.unproved.is_none() {
                found.extend(difference(&facts));
            }
        }
        Ok((payloads.len(), found))
    };
    tokio::select! {
        found = reading => found,
        () = runner.run(CancellationToken::new()) => Err(WatchesStopped.into()),
    }
}

/// The verdicts cannot be compared.
#[derive(Debug, thiserror::Error)]
pub enum SurveyError {
    /// The watches ended.
    #[error(transparent)]
    Stopped(#[from] WatchesStopped),
    /// An object cannot be read.
    #[error("the facts about a payload cannot be read")]
    Read(#[from] Error),
}

/// How many verdicts would differ.
#[derive(Debug)]
struct Differences(Arc<Mutex<Ledger>>);

impl Collector for Differences {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> Result<(), fmt::Error> {
        let help = "Verdicts that this controller would give differently";
        let name = "release_shadow_differences";
        let metric = encoder.encode_descriptor(name, help, None, MetricType::Gauge)?;
        let count = i64::try_from(self.0.lock().reported()).unwrap_or(i64::MAX);
        ConstGauge::new(count).encode(metric)
    }
}
