//! Reads the facts, and has the decision carried out.

mod act;
mod allot;
mod former;
mod known;
mod measure;
mod needs;
mod scalers;
mod targets;
#[cfg(test)]
mod tests;

use std::{collections::HashMap, sync::Arc, time::Duration};

use k8s_openapi::api::core::v1::Service as KubeService;
use kube::{Resource, ResourceExt};
use neap_kit::{
    apply::Error,
    controller::Outcome,
    key::Key,
    manager::Service,
    site::Site,
    telemetry::Meter,
    watch::Ended,
    wiring::{Tools, Wiring},
};
use parking_lot::Mutex;

use self::{
    act::Kinds,
    allot::Allotment,
    known::{Known, tell_all},
    needs::Needs,
    scalers::Scalers,
    targets::Targets,
};
use super::{
    compatible::{self, Gone, Looked, Watched},
    decide::{Decision, decide},
    facts::{Facts, Patience},
    namespaces::Namespaces,
    numbers, objects,
    ports::Range,
    prove::{Proof, Prover, Question, Search},
    verdict::Verdicts,
};
use crate::{api::ElastiService, target::Target};

/// The controller, and who writes.
pub const NAME: &str = "idle-operator";
/// So long after a proof failed it is tried again.
const UNPROVED: Duration = Duration::from_secs(1);
/// So long after something could not be read it is tried again.
const UNREAD: Duration = Duration::from_secs(5);
/// So long after a resolver was found to be of another kind it is asked again.
const STRANGERS: Duration = Duration::from_secs(5);
/// What is watched from the beginning; targets are once somebody names one.
const WATCHED: [&str; 5] = [
    "elastiservices",
    "services",
    "endpointslices",
    "horizontalpodautoscalers",
    "namespaces",
];

/// Where things are, and how patient to be.
#[derive(Debug, Clone)]
pub struct Settings {
    /// The namespace of the operator, where freed ports are written down.
    pub namespace: String,
    /// The namespace of the resolvers.
    pub resolver_namespace: String,
    /// The Service of the resolvers.
    pub resolver_service: String,
    /// The ports that resolvers may listen on.
    pub range: Range,
    /// How long is waited for what.
    pub patience: Patience,
}

/// Keeps every ElastiService as it should be.
pub fn service(
    site: &Site,
    settings: Settings,
    verdicts: Arc<dyn Verdicts>,
    prover: Arc<dyn Prover>,
) -> Result<Service, Ended> {
    let mut wiring = Wiring::new(site, NAME);
    let known = Known::new(&mut wiring, site, &settings)?;
    verdicts.tell(wiring.trigger());
    numbers::show_of(site, known.all.clone());
    let meter = compatible::meter(site, known.all.clone());
    for kind in WATCHED {
        meter.emit(&Watched(kind));
    }
    let all = known.all.clone();
    let tell = move |namespace: &str, trigger: &_| tell_all(&all, namespace, trigger);
    let namespaces = Namespaces::new(&mut wiring, site, &settings.namespace, Arc::new(tell))?;
    let targets = Targets::new(site, &known.all, wiring.trigger(), meter.clone());
    let work = Work {
        allotment: Allotment::new(&known.all, &settings),
        needs: Needs::new(&wiring, &known.all),
        scalers: Scalers::new(&mut wiring, site, targets.by_target())?,
        targets,
        namespaces: namespaces.clone(),
        tools: wiring.tools(),
        site: site.clone(),
        proofs: Mutex::default(),
        meter,
        settings,
        verdicts,
        prover,
        known,
    };
    let controller = wiring.service(work, Work::reconcile);
    Ok(Service::new(NAME, |stop| async move {
        tokio::join!(controller.run(stop.clone()), namespaces.run(stop));
    }))
}

struct Work {
    site: Site,
    settings: Settings,
    known: Known,
    allotment: Allotment,
    needs: Needs,
    targets: Targets,
    scalers: Scalers,
    namespaces: Namespaces,
    tools: Tools,
    verdicts: Arc<dyn Verdicts>,
    prover: Arc<dyn Prover>,
    /// What was last proved for each. Whoever comes next proves it again.
    proofs: Mutex<HashMap<Key, Proof>>,
    meter: Meter<compatible::Metrics>,
}

impl Work {
    async fn reconcile(self: Arc<Self>, key: Key) -> Result<Outcome, Error> {
        let found = self.known.all.get(&key);
        let freed = self
            .allotment
            .free_after(&self.tools, &key, found.as_deref());
        freed.await?;
        let Some(service) = found else {
            self.forget(&key);
            return Ok(Outcome::Gone);
        };
        let begun = self.site.clock.uptime();
        let looked = self.look_after(&key, &service).await;
        self.meter.emit(&Looked {
            service: &service,
            failed: looked.is_err(),
            took: self.site.clock.uptime().saturating_sub(begun),
        });
        looked
    }

    async fn look_after(&self, key: &Key, service: &ElastiService) -> Result<Outcome, Error> {
        let spec = &service.spec;
        let found = self.looked(service, &spec.scale_target_ref, spec.autoscaler.as_ref());
        let former = self.former(service).await;
        let (Some((found, keda)), Some(former)) = (found.await, former) else {
            // Nothing is decided on what nobody knows.
            return Ok(Outcome::Again(UNREAD));
        };
        let (former, former_kind) = former.unzip();
        let namespace = key.namespace();
        let public = self.known.public(service);
        let ports = self
            .allotment
            .grant(&self.tools, service, public.as_deref());
        let ports = ports.await?;
        let (private, slices) = (self.known.private(service), self.known.slices(service));
        let listed = self.known.resolvers();
        let resolvers = self.prover.ours(&listed).await;
        let strangers = resolvers.len() < listed.len();
        let mut facts = Facts {
            service,
            rival: self.known.rival(service),
            public: public.as_deref(),
            private: private.as_deref(),
            slices: slices.iter().map(|slice| &**slice).collect(),
            deserted: self.known.deserted(&resolvers),
            resolvers,
            conflict: self.scalers.conflict(service, &found).await,
            target: found.target,
            ready_pods: self.known.ready_pods(service),
            keda,
            former,
            verdict: self.verdicts.of(service),
            proof: self.proofs.lock().get(key).cloned(),
            ports,
            needed: self.needs.of(service),
            absent: self.needs.absent(service),
            switches: self.namespaces.switches(namespace),
            breakdown: None,
            patience: self.settings.patience,
            now: self.site.clock.now(),
        };
        let decision = self.decided(&mut facts).await;
        tracing::debug!(%key, reason = decision.because.reason, "{}", decision.because);
        let kinds = Kinds {
            target: found.kind.as_ref(),
            former: former_kind.as_ref().and_then(Option::as_ref),
        };
        let again = self.see_through(&facts, decision, kinds).await?;
        let strangers = strangers.then_some(STRANGERS);
        let again = again.into_iter().chain(strangers).min();
        Ok(again.map_or(Outcome::Settled, Outcome::Again))
    }

    /// Has a decision carried out and proved what it asks for, and says when to look again.
    async fn see_through(
        &self,
        facts: &Facts<'_>,
        decision: Decision,
        kinds: Kinds<'_>,
    ) -> Result<Option<Duration>, Error> {
        let search = self.search(facts, &decision);
        let again = decision.again;
        self.carry_out(facts, decision, kinds).await?;
        if let Some(search) = search {
            let proved = self.prove(&Key::of(facts.service), &search).await;
            return Ok(Some(proved));
        }
        let missing = matches!(facts.target, Target::Missing) && kinds.target.is_none();
        Ok(if missing {
            Some(Duration::from_mins(1))
        } else {
            again
        })
    }

    /// Decides, and finds out first what a decision may turn on.
    async fn decided(&self, facts: &mut Facts<'_>) -> Decision {
        let mut decision = decide(facts);
        if decision.scale.is_some_and(|scale| scale.replicas == 0) {
            // The last moment at which somebody who has come is noticed before pods end.
            facts.verdict = self.verdicts.anew(facts.service).await;
            facts.now = self.site.clock.now();
            decision = decide(facts);
        }
        if decision.measure {
            facts.breakdown = self.measure(facts).await;
            decision = decide(facts);
        }
        decision
    }

    fn forget(&self, key: &Key) {
        self.proofs.lock().remove(key);
        self.allotment.forget(key);
        self.scalers.forget(key);
        self.meter.emit(&Gone(key));
    }

    fn search(&self, facts: &Facts<'_>, decision: &Decision) -> Option<Search> {
        let question: Question = decision.proof.clone()?;
        let public = facts.public?;
        let spec = public.spec.as_ref()?;
        let addresses = spec.cluster_ips.iter().flatten();
        let ports = facts.own_ports(&decision.status);
        let ports = ports.iter();
        Some(Search {
            question,
            addresses: addresses.filter_map(|it| it.parse().ok()).collect(),
            ports: ports.clone().map(|port| port.port).collect(),
            resolver_ports: ports.map(|port| port.resolver_port).collect(),
            mirrors: self.known.mirrors(),
            resolvers: facts.resolvers.clone(),
        })
    }

    /// Finds out what is asked, and says when to look again.
    async fn prove(&self, key: &Key, search: &Search) -> Duration {
        let holds = self.prover.prove(search).await;
        let question = search.question.clone();
        let proof = Proof { question, holds };
        self.proofs.lock().insert(key.clone(), proof);
        if holds { Duration::ZERO } else { UNPROVED }
    }
}

/// The key of a Service that an ElastiService has to do with.
fn beside(service: &ElastiService, name: &str) -> Key {
    Key::new(&service.namespace().unwrap_or_default(), name)
}

fn uid<K: Resource>(object: &K) -> Option<&str> {
    object.meta().uid.as_deref()
}

fn is_private(service: &KubeService) -> bool {
    service.labels().contains_key(objects::PRIVATE)
}
