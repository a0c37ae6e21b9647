//! The controller of ElastiServices: facts → decide → act.

#[cfg(test)]
mod tests;

use std::{sync::Arc, time::Duration};

use neap_kit::{
    apply::Error,
    builder::{ControllerBuilder, Tools},
    context::Context,
    controller::Outcome,
    key::Key,
    manager::Component,
    telemetry::Meter,
    watch::{Cache, Selection, WatchesStopped},
};

use super::{
    compatible_metrics::{self, Reconciled, ServiceDeleted, WatchStarted},
    decide::{Decision, Inquiry, decide},
    facts::{FactSources, Facts, PortRange, Timeouts},
    metrics,
    reachability::Prover,
};
use crate::{api::ElastiService, options::Installation, trigger::Verdicts};

/// The name of the controller and of its field manager.
pub const NAME: &str = "idle-operator";
/// The delay before facts that could not be read are read again.
const READ_RETRY_DELAY: Duration = Duration::from_secs(5);
/// The kinds that are watched from the start; those of targets are watched once a service names one.
const WATCHED_KINDS: [&str; 5] = [
    "elastiservices",
    "services",
    "endpointslices",
    "horizontalpodautoscalers",
    "namespaces",
];

/// The part of the operator's options that the controller needs.
#[derive(Debug, Clone)]
pub struct Settings {
    /// The names of the installation.
    pub installation: Installation,
    /// The ports that resolvers may listen on.
    pub resolver_ports: PortRange,
    /// The timeouts of decisions.
    pub timeouts: Timeouts,
}

/// The controller of all ElastiServices.
pub fn component(
    context: &Context,
    settings: Settings,
    verdicts: Arc<dyn Verdicts>,
    prover: Arc<dyn Prover>,
) -> Result<Component, WatchesStopped> {
    let mut builder = ControllerBuilder::new(context, NAME);
    let services: Cache<ElastiService> = context.scoped_cache(&Selection::default())?;
    metrics::register_for(context, services.clone());
    let meter = compatible_metrics::meter(context, services);
    for kind in WATCHED_KINDS {
        meter.emit(&WatchStarted(kind));
    }
    let sources = FactSources::new(
        &mut builder,
        context,
        settings,
        verdicts,
        prover,
        meter.clone(),
    )?;
    let namespaces = sources.namespaces.clone();
    let reconciler = ServiceReconciler {
        tools: builder.tools(),
        context: context.clone(),
        meter,
        sources,
    };
    let controller = builder.build(reconciler, ServiceReconciler::reconcile);
    Ok(Component::new(NAME, |stop| async move {
        tokio::join!(controller.run(stop.clone()), namespaces.run(stop));
    }))
}

pub(super) struct ServiceReconciler {
    context: Context,
    pub(super) sources: FactSources,
    pub(super) tools: Tools,
    pub(super) meter: Meter<compatible_metrics::Metrics>,
}

impl ServiceReconciler {
    async fn reconcile(self: Arc<Self>, key: Key) -> Result<Outcome, Error> {
        let found = self.sources.watched.services.all.get(&key);
        let left = self.sources.ports.left_behind(&key, found.as_deref());
        self.free_ports(&left).await?;
        let Some(service) = found else {
            self.sources.remove(&key);
            self.meter.emit(&ServiceDeleted(&key));
            return Ok(Outcome::Gone);
        };
        let begun = self.context.clock.uptime();
        let outcome = self.reconcile_service(service.clone()).await;
        self.meter.emit(&Reconciled {
            service: &service,
            failed: outcome.is_err(),
            took: self.context.clock.uptime().saturating_sub(begun),
        });
        outcome
    }

    async fn reconcile_service(&self, service: Arc<ElastiService>) -> Result<Outcome, Error> {
        let key = Key::of(&*service);
        let Some(mut facts) = self.sources.gather(&self.tools, service).await? else {
            return Ok(Outcome::RequeueAfter(READ_RETRY_DELAY));
        };
        let decision = self.decide(&mut facts).await;
        tracing::debug!(%key, reason = decision.reason.name, "{}", decision.reason);
        let proof_request = self.sources.proof_request(&facts, &decision);
        let mut requeue_after = decision.requeue_after;
        self.act(&facts, decision).await?;
        if let Some(request) = proof_request {
            requeue_after = Some(self.sources.prove(&key, &request).await);
        }
        Ok(requeue_after.map_or(Outcome::Done, Outcome::RequeueAfter))
    }

    /// Decides, after the facts on which the decision turns are up to date.
    async fn decide(&self, facts: &mut Facts) -> Decision {
        let mut decision = decide(facts);
        if decision.scales_to_zero() {
            self.sources.refresh_verdict(facts).await;
            decision = decide(facts);
        }
        if decision.inquiry == Some(Inquiry::WakeBreakdown) {
            facts.breakdown = self.sources.measure_wake(facts).await;
            decision = decide(facts);
        }
        decision
    }
}
