//! The next decision about a service, without carrying it out.
//!
//! The facts come from the same sources as the operator's. What only the leading operator has in memory is
//! taken from the status, or is unknown: [`ServiceDryRun::assumptions`] names it.

use std::sync::Arc;

use futures::future::BoxFuture;
use neap_kit::{
    apply,
    builder::ControllerBuilder,
    clock::Clock,
    context::Context,
    controller::Enqueuer,
    key::Key,
    watch::{Selection, WatchesStopped},
};

use super::{
    compatible_metrics,
    controller::{NAME, Settings},
    decide::{Decision, decide},
    facts::{FactSources, Facts},
    reachability::{ProofRequest, Prover},
};
use crate::{
    api::{ElastiService, Towards},
    reason::Reason,
    trigger::{Verdict, Verdicts, monitor::closed_window},
};

/// Why there is no decision.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The watches have stopped.
    #[error(transparent)]
    Watches(#[from] WatchesStopped),
    /// A fact could not be read.
    #[error(transparent)]
    Read(#[from] apply::Error),
    /// The API server did not return the target or its autoscaler.
    #[error("the API server did not return the target or its autoscaler")]
    NoResponse,
}

/// A decision that is not carried out.
#[derive(Debug, Clone)]
pub struct ServiceDryRun {
    /// The ElastiService.
    pub service: Arc<ElastiService>,
    /// The decision.
    pub decision: Decision,
    /// Facts that only the leading operator has, and what was assumed in their place.
    pub assumptions: Vec<String>,
}

/// The decision that an operator would make about the ElastiService of this key; none if it does not exist.
/// The watches of `context` have to run. Nothing is written.
pub async fn dry_run(
    context: &Context,
    settings: Settings,
    key: &Key,
) -> Result<Option<ServiceDryRun>, Error> {
    let mut builder = ControllerBuilder::new(context, NAME);
    let verdicts = Arc::new(RecordedVerdicts(context.clock));
    let services = context.scoped_cache(&Selection::default())?;
    let meter = compatible_metrics::meter(context, services);
    let sources = FactSources::new(
        &mut builder,
        context,
        settings,
        verdicts,
        Arc::new(NoProver),
        meter,
    )?;
    sources.synced().await;
    let Some(service) = sources.watched.services.all.get(key) else {
        return Ok(None);
    };
    let facts = sources.gather(&builder.tools(), service).await?;
    let facts = facts.ok_or(Error::NoResponse)?;
    let decision = decide(&facts);
    let assumptions = assumptions(&facts, &decision);
    Ok(Some(ServiceDryRun {
        service: facts.service,
        decision,
        assumptions,
    }))
}

fn assumptions(facts: &Facts, decision: &Decision) -> Vec<String> {
    let verdict = match &facts.verdict {
        Verdict::Idle(_) => "idle",
        Verdict::Busy(_) => "busy",
        Verdict::Unknown(_) => "unknown",
    };
    let mut all = vec![format!("triggers: {verdict}; {}", facts.verdict.reason())];
    if decision.claim().is_some() {
        all.push("proofs: none; only the leading operator has them".to_owned());
    }
    if facts.resolvers.is_empty() {
        all.push("resolvers: none is ready, and it is not known for how long".to_owned());
    } else {
        all.push("resolvers: all that are ready are taken for compatible ones".to_owned());
    }
    all
}

/// The verdict that the status implies.
#[derive(Debug)]
struct RecordedVerdicts(Clock);

impl Verdicts for RecordedVerdicts {
    fn latest(&self, service: &ElastiService) -> Verdict {
        let now = self.0.now();
        closed_window(service, now).unwrap_or_else(|| recorded_verdict(service))
    }

    fn poll_now<'a>(&'a self, service: &'a ElastiService) -> BoxFuture<'a, Verdict> {
        Box::pin(async { self.latest(service) })
    }

    fn enqueue_changes(&self, _: Enqueuer<Key>) {}
}

fn recorded_verdict(service: &ElastiService) -> Verdict {
    let unknown = |message: String| Verdict::Unknown(Reason::new("NotPolled", message));
    let Some(status) = &service.status else {
        return unknown("only the leading operator polls them".to_owned());
    };
    let mut conditions = status.conditions.iter();
    let problem = conditions.find(|it| it.type_ == "TriggersUnknown" && it.status == "True");
    if let Some(problem) = problem {
        return unknown(format!("{}, by the status", problem.message));
    }
    let hand_off = status.hand_off.as_ref();
    let falls_asleep = hand_off.is_some_and(|it| it.towards == Towards::Resolvers);
    if status.asleep_since.is_some() || falls_asleep || status.would_sleep.is_some() {
        let message = "by the status, the last verdict of the operator was idle";
        return Verdict::Idle(Reason::new("Idle", message));
    }
    unknown("only the leading operator polls them".to_owned())
}

/// Takes all resolvers for compatible ones, and proves nothing.
#[derive(Debug)]
struct NoProver;

impl Prover for NoProver {
    fn prove<'a>(&'a self, _: &'a ProofRequest) -> BoxFuture<'a, bool> {
        Box::pin(async { false })
    }
}
