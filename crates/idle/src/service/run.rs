//! Reads the facts, and has the decision carried out.

mod act;
mod allot;
mod known;
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
    watch::Ended,
    wiring::{Tools, Wiring},
};
use parking_lot::Mutex;

use self::{allot::Allotment, known::Known, targets::Targets};
use super::{
    decide::{Decision, decide},
    facts::{Facts, Patience},
    objects,
    ports::Range,
    prove::{Proof, Prover, Question, Search},
    verdict::Verdicts,
};
use crate::{
    api::ElastiService,
    target::{self, Target},
};

/// The controller, and who writes.
pub const NAME: &str = "idle-operator";
/// So long after a proof failed it is tried again.
const UNPROVED: Duration = Duration::from_secs(1);
/// So long after something could not be read it is tried again.
const UNREAD: Duration = Duration::from_secs(5);

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
    let work = Work {
        allotment: Allotment::new(&known.all, &settings),
        targets: Targets::new(site, &known.all, wiring.trigger()),
        tools: wiring.tools(),
        site: site.clone(),
        proofs: Mutex::default(),
        settings,
        verdicts,
        prover,
        known,
    };
    Ok(wiring.service(work, Work::reconcile))
}

struct Work {
    site: Site,
    settings: Settings,
    known: Known,
    allotment: Allotment,
    targets: Targets,
    tools: Tools,
    verdicts: Arc<dyn Verdicts>,
    prover: Arc<dyn Prover>,
    /// What was last proved for each. Whoever comes next proves it again.
    proofs: Mutex<HashMap<Key, Proof>>,
}

impl Work {
    async fn reconcile(self: Arc<Self>, key: Key) -> Result<Outcome, Error> {
        let Some(service) = self.known.all.get(&key) else {
            self.proofs.lock().remove(&key);
            self.allotment.forget(&key);
            return Ok(Outcome::Gone);
        };
        let found = self.targets.look(&service).await;
        let namespace = key.namespace();
        let autoscaler = service.spec.autoscaler.as_ref();
        let keda = target::keda(&self.site.client, namespace, autoscaler).await;
        let (Some(keda), Some(found)) = (keda, found) else {
            // Nothing is decided on what nobody knows.
            return Ok(Outcome::Again(UNREAD));
        };
        let public = self.known.public(&service);
        let ports = self
            .allotment
            .grant(&self.tools, &service, public.as_deref());
        let ports = ports.await?;
        let (private, slices) = (self.known.private(&service), self.known.slices(&service));
        let mut facts = Facts {
            service: &service,
            rival: self.known.rival(&service),
            public: public.as_deref(),
            private: private.as_deref(),
            slices: slices.iter().map(|slice| &**slice).collect(),
            resolvers: self.known.resolvers(),
            target: found.target,
            ready_pods: self.known.ready_pods(&service),
            keda,
            verdict: self.verdicts.of(&service),
            proof: self.proofs.lock().get(&key).cloned(),
            ports,
            off: self.known.is_off(namespace),
            patience: self.settings.patience,
            now: self.site.clock.now(),
        };
        let mut decision = decide(&facts);
        if decision.scale.is_some_and(|scale| scale.replicas == 0) {
            // The last moment at which somebody who has come is noticed before pods end.
            facts.verdict = self.verdicts.anew(&service).await;
            facts.now = self.site.clock.now();
            decision = decide(&facts);
        }
        tracing::debug!(%key, reason = decision.because.reason, "{}", decision.because);
        let search = search(&facts, &decision);
        let again = decision.again;
        self.carry_out(&facts, decision, found.kind.as_ref())
            .await?;
        let proved = match search {
            Some(search) => Some(self.prove(&key, &search).await),
            None => None,
        };
        let missing = matches!(facts.target, Target::Missing) && found.kind.is_none();
        let again = match proved {
            Some(again) => Some(again),
            None if missing => Some(Duration::from_mins(1)),
            None => again,
        };
        Ok(again.map_or(Outcome::Settled, Outcome::Again))
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

fn search(facts: &Facts<'_>, decision: &Decision) -> Option<Search> {
    let question: Question = decision.proof.clone()?;
    let public = facts.public?;
    let spec = public.spec.as_ref()?;
    let addresses = spec.cluster_ips.iter().flatten();
    let ports = objects::ports(public).into_iter();
    Some(Search {
        question,
        addresses: addresses.filter_map(|it| it.parse().ok()).collect(),
        ports: ports.map(|(_, port)| port).collect(),
        resolvers: facts.resolvers.clone(),
    })
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
