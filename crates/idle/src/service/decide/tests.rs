//! Cases are made of values, and what is decided is done to them at once.

mod cycle;
mod never;
mod told;

use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::{core::v1::Service, discovery::v1::EndpointSlice};
use kube::api::ObjectMeta;
use serde_json::json;

use super::{Decision, Finalizer, Slices, decide};
use crate::{
    api::{Breakdown, ElastiService, FINALIZER, ResolverPort},
    service::{
        facts::{Facts, Former, Needed, Patience, Resolver},
        ports::{Exhausted, Granted},
        prove::Proof,
        switches::Switches,
        verdict::{Because, Verdict},
    },
    target::{Keda, Target},
};

#[derive(Debug, Clone)]
struct Case {
    service: ElastiService,
    public: Option<Service>,
    private: Option<Service>,
    slices: Vec<EndpointSlice>,
    resolvers: Vec<Resolver>,
    replicas: Option<i32>,
    ready_pods: usize,
    keda: Keda,
    former: Option<Former>,
    verdict: Verdict,
    proof: Option<Proof>,
    ports: Result<Granted, Exhausted>,
    needed: Option<Needed>,
    absent: Vec<String>,
    switches: Switches,
    /// How long no resolver was there, where there is none.
    deserted: Duration,
    conflict: Option<Because>,
    breakdown: Option<Breakdown>,
    now: Timestamp,
    /// Whether whatever is to be proved is so.
    proves: bool,
    /// Whether the object is gone.
    gone: bool,
}

fn idle() -> Verdict {
    Verdict::Idle(Because::new("Idle", "nobody asks"))
}

fn busy() -> Verdict {
    Verdict::Busy(Because::new("Busy", "somebody asks"))
}

fn unknown() -> Verdict {
    Verdict::Unknown(Because::new("Unreachable", "nobody can say"))
}

fn resolver() -> Resolver {
    Resolver {
        address: "10.0.0.9".parse().unwrap(),
        pod: "resolver".to_owned(),
        node: None,
        zone: None,
    }
}

impl Case {
    /// A service that runs and was never looked at, an hour after it was made.
    fn new() -> Self {
        let service = json!({
            "metadata": {
                "name": "web", "namespace": "shop", "uid": "1", "generation": 1,
                "creationTimestamp": "2026-01-01T00:00:00Z",
            },
            "spec": {
                "service": "web", "minTargetReplicas": 2, "cooldownPeriod": 600,
                "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"},
                "triggers": [{"type": "prometheus"}],
            },
        });
        let public = json!({
            "metadata": {"name": "web", "namespace": "shop"},
            "spec": {
                "clusterIP": "10.1.0.1", "ipFamilies": ["IPv4"], "selector": {"app": "web"},
                "ports": [{"name": "http", "port": 80}],
            },
        });
        let port = ResolverPort {
            name: "http".to_owned(),
            port: 80,
            resolver_port: 20_000,
            service: Some("web".to_owned()),
        };
        Self {
            service: serde_json::from_value(service).unwrap(),
            public: serde_json::from_value(public).unwrap(),
            private: None,
            slices: Vec::new(),
            resolvers: vec![resolver()],
            replicas: Some(3),
            ready_pods: 3,
            keda: Keda::Unused,
            former: None,
            verdict: busy(),
            proof: None,
            ports: Ok(Granted {
                ports: vec![port],
                freed: Vec::new(),
            }),
            needed: None,
            absent: Vec::new(),
            switches: Switches::default(),
            deserted: Duration::from_mins(1),
            conflict: None,
            breakdown: None,
            now: "2026-01-01T01:00:00Z".parse().unwrap(),
            proves: true,
            gone: false,
        }
    }

    /// The same, asleep for an hour.
    fn asleep() -> Self {
        let mut case = Self::new();
        case.verdict = idle();
        case.pass(3600);
        case.settle();
        case.pass(5);
        case.settle();
        assert_eq!(case.replicas, Some(0));
        case.ready_pods = 0;
        case.pass(3600);
        case
    }

    fn decide(&self) -> Decision {
        decide(&Facts {
            service: &self.service,
            rival: None,
            public: self.public.as_ref(),
            private: self.private.as_ref(),
            slices: self.slices.iter().collect(),
            resolvers: self.resolvers.clone(),
            target: self
                .replicas
                .map_or(Target::Missing, |replicas| Target::Scaled {
                    replicas,
                    seen: Box::new(ObjectMeta::default()),
                }),
            ready_pods: self.ready_pods,
            keda: self.keda.clone(),
            former: self.former.clone(),
            verdict: self.verdict.clone(),
            proof: self.proof.clone(),
            ports: self.ports.clone(),
            deserted: self.resolvers.is_empty().then_some(self.deserted),
            needed: self.needed.clone(),
            absent: self.absent.clone(),
            switches: self.switches,
            conflict: self.conflict.clone(),
            breakdown: self.breakdown,
            patience: Patience::default(),
            now: self.now,
        })
    }

    /// Does what was decided. Whether that changed anything.
    fn apply(&mut self, decision: &Decision) -> bool {
        let before = format!("{self:?}");
        match decision.finalizer {
            Finalizer::Add => {
                let finalizers = self.service.metadata.finalizers.get_or_insert_default();
                finalizers.push(FINALIZER.to_owned());
                return true;
            }
            Finalizer::Remove => self.gone = true,
            Finalizer::Leave => {}
        }
        if let Some(private) = &decision.private {
            self.private = Some((**private).clone());
        }
        match &decision.slices {
            Slices::Leave => {}
            Slices::Want(slices) => self.slices.clone_from(slices),
            Slices::Remove => self.slices.clear(),
        }
        if let (Some(pause), Keda::Found { paused, by_us, .. }) = (decision.pause, &mut self.keda) {
            (*paused, *by_us) = (pause, pause);
        }
        if decision.restore.is_some() {
            // The status no longer has it.
            self.former = None;
        }
        if let Some(scale) = decision.scale {
            self.replicas = Some(scale.replicas);
        }
        self.service.status = Some(decision.status.clone());
        if let Some(question) = &decision.proof {
            let question = question.clone();
            let holds = self.proves;
            self.proof = Some(Proof { question, holds });
        }
        before != format!("{self:?}")
    }

    /// Decides and does it until nothing changes, and says how that was reached.
    fn settle(&mut self) -> Vec<Decision> {
        let mut decisions = Vec::new();
        loop {
            let decision = self.decide();
            let changed = !self.gone && self.apply(&decision);
            decisions.push(decision);
            if !changed {
                return decisions;
            }
            assert!(decisions.len() < 12, "it never settles: {decisions:#?}");
        }
    }

    fn pass(&mut self, seconds: i64) {
        self.now += SignedDuration::from_secs(seconds);
    }

    fn annotate(&mut self, name: &str, value: &str) {
        let annotations = self.service.metadata.annotations.get_or_insert_default();
        annotations.insert(name.to_owned(), value.to_owned());
    }

    fn status(&self) -> crate::api::ElastiServiceStatus {
        self.service.status.clone().unwrap_or_default()
    }

    /// What `Ready` says, and why.
    fn ready(&self) -> (String, String) {
        self.condition("Ready")
    }

    fn condition(&self, kind: &str) -> (String, String) {
        let conditions = self.status().conditions;
        let found = conditions.iter().find(|condition| condition.type_ == kind);
        found.map_or_else(Default::default, |it| {
            (it.status.clone(), it.reason.clone())
        })
    }
}
