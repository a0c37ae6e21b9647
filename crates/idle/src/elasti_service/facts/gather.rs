//! Gathers the facts of one service from caches, the API server and the resolvers.

use std::{collections::HashMap, sync::Arc, time::Duration};

use kube::{Resource, ResourceExt};
use neap_kit::{
    apply::Error,
    builder::{ControllerBuilder, Tools},
    context::Context,
    key::Key,
    telemetry::Meter,
    watch::WatchesStopped,
    why::chain,
};
use parking_lot::Mutex;

use super::{
    Facts, Refusal, dependencies::Dependencies, other_scalers::OtherScalers, pods,
    port_allotment::PortAllotment, targets::Targets, watched::Watched,
};
use crate::{
    api::ElastiService,
    elasti_service::{
        compatible_metrics::Metrics,
        controller::Settings,
        decide::Decision,
        reachability::{Claim, Proof, ProofRequest, Prover},
    },
    namespaces::Namespaces,
    trigger::Verdicts,
};

/// The delay before a proof that failed is tried again.
const PROOF_RETRY_DELAY: Duration = Duration::from_secs(1);

/// The sources of facts about all services.
pub(in crate::elasti_service) struct FactSources {
    pub(super) context: Context,
    settings: Settings,
    pub(in crate::elasti_service) watched: Watched,
    pub(in crate::elasti_service) ports: PortAllotment,
    dependencies: Dependencies,
    pub(super) targets: Targets,
    scalers: OtherScalers,
    pub(in crate::elasti_service) namespaces: Namespaces,
    verdicts: Arc<dyn Verdicts>,
    pub(super) prover: Arc<dyn Prover>,
    /// The last proof for each service. Another operator proves it again.
    proofs: Mutex<HashMap<Key, Proof>>,
    /// The writes that the API server refuses.
    refusals: Mutex<HashMap<Key, Refusal>>,
}

impl FactSources {
    pub(in crate::elasti_service) fn new(
        builder: &mut ControllerBuilder,
        context: &Context,
        settings: Settings,
        verdicts: Arc<dyn Verdicts>,
        prover: Arc<dyn Prover>,
        meter: Meter<Metrics>,
    ) -> Result<Self, WatchesStopped> {
        let watched = Watched::new(builder, context, &settings.installation)?;
        verdicts.enqueue_changes(builder.enqueuer());
        let services = watched.services.clone();
        let on_change =
            move |namespace: &str, enqueuer: &_| services.enqueue_all(namespace, enqueuer);
        let operator_namespace = &settings.installation.operator_namespace;
        let namespaces =
            Namespaces::new(builder, context, operator_namespace, Arc::new(on_change))?;
        let targets = Targets::new(context, &watched.services.all, builder.enqueuer(), meter);
        Ok(Self {
            ports: PortAllotment::new(&watched.services.all, &settings),
            dependencies: Dependencies::new(builder, &watched.services.all),
            scalers: OtherScalers::new(builder, context, targets.by_target())?,
            targets,
            namespaces,
            context: context.clone(),
            proofs: Mutex::default(),
            refusals: Mutex::default(),
            settings,
            verdicts,
            prover,
            watched,
        })
    }

    /// Waits until all caches are complete, for callers that do not run the controller.
    pub(in crate::elasti_service) async fn synced(&self) {
        self.watched.synced().await;
        self.scalers.synced().await;
        self.namespaces.synced().await;
    }

    /// Gathers the facts of `service`; none if the API server did not respond: nothing is decided without
    /// its response.
    pub(in crate::elasti_service) async fn gather(
        &self,
        tools: &Tools,
        service: Arc<ElastiService>,
    ) -> Result<Option<Facts>, Error> {
        let former = self.former(&service).await;
        let spec = &service.spec;
        let autoscaler = spec.autoscaler.as_ref();
        let found = self.read_target(&service, &spec.scale_target_ref, autoscaler);
        let (Some((found, keda)), Some(former)) = (found.await, former) else {
            return Ok(None);
        };
        let key = Key::of(&*service);
        let public = self.watched.public(&service);
        let ports = self.ports.grant(tools, &service, public.as_deref()).await?;
        let (private, slices) = (
            self.watched.private(&service),
            self.watched.slices(&service),
        );
        let listed = self.watched.resolvers();
        let resolvers = self.prover.select_compatible(&listed).await;
        let conflict = self.scalers.conflict(&service, &found).await;
        let verdict = self.verdicts.latest(&service);
        let (ready_pods, now) = (self.watched.ready_pods(&service), self.context.clock.now());
        let needed = pods::are_needed(&service, &found.target, ready_pods, &verdict, now);
        let pods = match public.as_deref().filter(|_| needed) {
            Some(public) => self.pod_states(&service, public, now).await,
            None => None,
        };
        let deleted = service.metadata.deletion_timestamp.is_some();
        let namespace_terminates = deleted && self.namespaces.is_terminating(key.namespace()).await;
        Ok(Some(Facts {
            rival: self.watched.rival(&service),
            public,
            private,
            slices,
            leftovers: self.watched.leftovers(&service),
            has_other_resolvers: resolvers.len() < listed.len(),
            no_resolver_for: self.watched.no_resolver_for(&resolvers),
            resolvers,
            conflict,
            pods,
            target: found.target,
            target_kind: found.kind,
            ready_pods,
            keda,
            former,
            verdict,
            proof: self.proofs.lock().get(&key).cloned(),
            ports,
            dependent_wake: self.dependencies.last_dependent_wake(&service),
            missing_dependencies: self.dependencies.missing(&service),
            switches: self.namespaces.switches(key.namespace()),
            breakdown: None,
            refusal: self.refusals.lock().get(&key).cloned(),
            namespace_terminates,
            timeouts: self.settings.timeouts,
            now,
            service,
        }))
    }

    /// Polls the triggers now: the last moment at which a new request is noticed before pods end.
    pub(in crate::elasti_service) async fn refresh_verdict(&self, facts: &mut Facts) {
        facts.verdict = self.verdicts.poll_now(&facts.service).await;
        facts.now = self.context.clock.now();
    }

    /// What a prover needs to check the claim of a decision.
    pub(in crate::elasti_service) fn proof_request(
        &self,
        facts: &Facts,
        decision: &Decision,
    ) -> Option<ProofRequest> {
        let claim: Claim = decision.claim()?.clone();
        let spec = facts.public.as_ref()?.spec.as_ref()?;
        let addresses = spec.cluster_ips.iter().flatten();
        let ports = facts.own_ports(&decision.status);
        let ports = ports.iter();
        Some(ProofRequest {
            claim,
            addresses: addresses.filter_map(|it| it.parse().ok()).collect(),
            ports: ports.clone().map(|port| port.port).collect(),
            resolver_ports: ports.map(|port| port.resolver_port).collect(),
            resolver_service_addresses: self.watched.resolver_service_addresses(),
            resolvers: facts.resolvers.clone(),
        })
    }

    /// Checks a claim and keeps the result for the next decision. Returns when that is due.
    pub(in crate::elasti_service) async fn prove(
        &self,
        key: &Key,
        request: &ProofRequest,
    ) -> Duration {
        let holds = self.prover.prove(request).await;
        let claim = request.claim.clone();
        let proof = Proof { claim, holds };
        self.proofs.lock().insert(key.clone(), proof);
        if holds {
            Duration::ZERO
        } else {
            PROOF_RETRY_DELAY
        }
    }

    /// Records whether the API server accepted the writes of a plan.
    pub(in crate::elasti_service) fn record_result(&self, key: &Key, result: &Result<(), Error>) {
        match result {
            Err(error @ Error::Refused { .. }) => {
                let mut refusals = self.refusals.lock();
                refusals.entry(key.clone()).or_insert_with(|| Refusal {
                    since: self.context.clock.now(),
                    message: chain(error),
                });
            }
            Ok(()) => {
                self.refusals.lock().remove(key);
            }
            Err(_) => {}
        }
    }

    /// Removes everything about a service that was deleted.
    pub(in crate::elasti_service) fn remove(&self, key: &Key) {
        self.proofs.lock().remove(key);
        self.refusals.lock().remove(key);
        self.ports.remove(key);
        self.scalers.remove(key);
    }
}

/// The key of an object in the namespace of an ElastiService.
pub(super) fn key_beside(service: &ElastiService, name: &str) -> Key {
    Key::new(&service.namespace().unwrap_or_default(), name)
}

pub(super) fn uid<K: Resource>(object: &K) -> Option<&str> {
    object.meta().uid.as_deref()
}
