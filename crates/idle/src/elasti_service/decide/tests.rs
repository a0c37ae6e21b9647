//! Cases are values, and decisions are applied to them at once.

mod conditions;
mod cycle;
mod deletion;
mod failing;
mod never;

use std::{sync::Arc, time::Duration};

use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::{core::v1::Service, discovery::v1::EndpointSlice};
use kube::{
    ResourceExt,
    api::{ApiResource, ObjectMeta},
};
use neap_kit::apply::{PlannedChange, ResourceKind};
use serde_json::{Value, json};

use super::{Decision, Inquiry, ServiceChange, decide};
use crate::{
    api::{Breakdown, ElastiService, FINALIZER, ResolverPort},
    elasti_service::{
        facts::{
            DependentWake, Facts, FormerTarget, GrantedPorts, PodStates, PortRange, PortsExhausted,
            Refusal, ResolverEndpoint, Timeouts,
        },
        reachability::Proof,
    },
    namespaces::Switches,
    reason::Reason,
    target::{Keda, Target},
    trigger::Verdict,
};

#[derive(Debug, Clone)]
struct Case {
    service: ElastiService,
    public: Option<Service>,
    private: Option<Service>,
    slices: Vec<EndpointSlice>,
    resolvers: Vec<ResolverEndpoint>,
    replicas: Option<i32>,
    ready_pods: usize,
    pods: Option<PodStates>,
    refusal: Option<Refusal>,
    namespace_terminates: bool,
    timeouts: Timeouts,
    keda: Keda,
    former: Option<FormerTarget>,
    verdict: Verdict,
    proof: Option<Proof>,
    ports: Result<GrantedPorts, PortsExhausted>,
    dependent_wake: Option<DependentWake>,
    missing_dependencies: Vec<String>,
    switches: Switches,
    /// How long no resolver has been ready, where there is none.
    no_resolver_for: Duration,
    conflict: Option<Reason>,
    breakdown: Option<Breakdown>,
    now: Timestamp,
    /// Whether claims hold.
    proves: bool,
    /// Whether the finalizer was removed.
    gone: bool,
}

fn idle() -> Verdict {
    Verdict::Idle(Reason::new("Idle", "no requests"))
}

fn busy() -> Verdict {
    Verdict::Busy(Reason::new("Busy", "requests"))
}

fn unknown() -> Verdict {
    Verdict::Unknown(Reason::new("Unreachable", "no response"))
}

fn resolver() -> ResolverEndpoint {
    ResolverEndpoint {
        address: "10.0.0.9".parse().unwrap(),
        pod: "resolver".to_owned(),
        node: None,
        zone: None,
    }
}

impl Case {
    /// A service that runs and was never reconciled, an hour after it was created.
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
            pods: None,
            refusal: None,
            namespace_terminates: false,
            timeouts: Timeouts::default(),
            keda: Keda::Unused,
            former: None,
            verdict: busy(),
            proof: None,
            ports: Ok(GrantedPorts {
                ports: vec![port],
                freed: Vec::new(),
            }),
            dependent_wake: None,
            missing_dependencies: Vec::new(),
            switches: Switches::default(),
            no_resolver_for: Duration::from_mins(1),
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
            service: Arc::new(self.service.clone()),
            rival: None,
            public: self.public.clone().map(Arc::new),
            private: self.private.clone().map(Arc::new),
            slices: self.slices.iter().cloned().map(Arc::new).collect(),
            leftovers: Vec::new(),
            resolvers: self.resolvers.clone(),
            has_other_resolvers: false,
            target: self
                .replicas
                .map_or(Target::Missing, |replicas| scaled(replicas, "web")),
            target_kind: Some(deployments()),
            ready_pods: self.ready_pods,
            pods: self.pods.clone(),
            refusal: self.refusal.clone(),
            namespace_terminates: self.namespace_terminates,
            keda: self.keda.clone(),
            former: self.former.clone(),
            verdict: self.verdict.clone(),
            proof: self.proof.clone(),
            ports: self.ports.clone(),
            no_resolver_for: self.resolvers.is_empty().then_some(self.no_resolver_for),
            dependent_wake: self.dependent_wake.clone(),
            missing_dependencies: self.missing_dependencies.clone(),
            switches: self.switches,
            conflict: self.conflict.clone(),
            breakdown: self.breakdown,
            timeouts: self.timeouts,
            now: self.now,
        })
    }

    /// Applies a decision. Returns whether that changed anything.
    fn apply(&mut self, decision: &Decision) -> bool {
        let before = format!("{self:?}");
        for change in decision.writes() {
            self.apply_change(change);
        }
        if decision.adds_finalizer() {
            return true;
        }
        if decision.status.resting.is_none() {
            // The status no longer has it.
            self.former = None;
        }
        self.service.status = Some(decision.status.clone());
        if let Some(claim) = decision.claim() {
            let claim = claim.clone();
            let holds = self.proves;
            self.proof = Some(Proof { claim, holds });
        }
        before != format!("{self:?}")
    }

    fn apply_change(&mut self, change: &PlannedChange) {
        let kind = change.kind().resource.kind.as_str();
        match (kind, change) {
            (
                "Service",
                PlannedChange::Post { object, .. } | PlannedChange::Replace { object, .. },
            ) => self.private = serde_json::from_value(object.object.clone()).unwrap(),
            (
                "EndpointSlice",
                PlannedChange::Post { object, .. } | PlannedChange::Replace { object, .. },
            ) => {
                let slice: EndpointSlice = serde_json::from_value(object.object.clone()).unwrap();
                self.slices.retain(|it| it.name_any() != slice.name_any());
                self.slices.push(slice);
            }
            ("EndpointSlice", PlannedChange::Delete { object, .. }) => {
                self.slices.retain(|it| it.name_any() != object.key.name());
            }
            ("ScaledObject", PlannedChange::Merge { patch, .. }) => {
                let value = &patch["metadata"]["annotations"]["autoscaling.keda.sh/paused"];
                if let Keda::Found { paused, by_us, .. } = &mut self.keda {
                    (*paused, *by_us) = (value == "true", value == "true");
                }
            }
            ("Deployment", PlannedChange::Merge { patch, .. }) if change.key().name() == "web" => {
                self.replicas = serde_json::from_value(patch["spec"]["replicas"].clone()).unwrap();
            }
            ("ElastiService", PlannedChange::Merge { patch, .. }) => {
                let finalizers = &patch["metadata"]["finalizers"];
                self.gone = finalizers == &json!([]);
                if !self.gone {
                    self.service.metadata.finalizers =
                        serde_json::from_value(finalizers.clone()).unwrap();
                }
            }
            _ => {}
        }
    }

    /// Decides and applies until nothing changes. Returns the decisions.
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

    /// Status and reason of the condition `Ready`.
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

fn deployments() -> ResourceKind {
    ResourceKind {
        resource: ApiResource::erase::<k8s_openapi::api::apps::v1::Deployment>(&()),
        namespaced: true,
    }
}

fn scaled(replicas: i32, name: &str) -> Target {
    Target::Scaled {
        replicas,
        metadata: Box::new(ObjectMeta {
            name: Some(name.to_owned()),
            resource_version: Some("1".to_owned()),
            ..ObjectMeta::default()
        }),
    }
}

/// Queries of a plan, for tests.
impl Decision {
    fn writes(&self) -> impl Iterator<Item = &PlannedChange> {
        self.plan.iter().filter_map(|change| match change {
            ServiceChange::Write(change) => Some(change),
            ServiceChange::FreePorts { .. } => None,
        })
    }

    fn freed_ports(&self) -> Vec<i32> {
        let freed = self.plan.iter().flat_map(|change| match change {
            ServiceChange::FreePorts { ports, .. } => ports.clone(),
            ServiceChange::Write(_) => Vec::new(),
        });
        freed.collect()
    }

    /// The replicas that are written to the workload of this name, and whether only if it is unchanged.
    fn scale_of(&self, workload: &str) -> Option<(i64, bool)> {
        self.writes().find_map(|change| match change {
            PlannedChange::Merge {
                subresource: Some("scale"),
                metadata,
                patch,
                ..
            } if metadata.name.as_deref() == Some(workload) => {
                let replicas = patch["spec"]["replicas"].as_i64()?;
                Some((replicas, metadata.resource_version.is_some()))
            }
            _ => None,
        })
    }

    fn resumes_keda(&self) -> bool {
        self.writes()
            .any(|change| change.kind().resource.kind == "ScaledObject")
    }

    fn finalizers(&self) -> Option<&Value> {
        self.writes().find_map(|change| match change {
            PlannedChange::Merge { kind, patch, .. } if kind.resource.kind == "ElastiService" => {
                Some(&patch["metadata"]["finalizers"])
            }
            _ => None,
        })
    }

    fn adds_finalizer(&self) -> bool {
        self.finalizers() == Some(&json!([FINALIZER]))
    }

    fn removes_finalizer(&self) -> bool {
        self.finalizers() == Some(&json!([]))
    }

    fn deletes_slices(&self) -> bool {
        let mut writes = self.writes();
        writes.any(|change| is_slice(change) && matches!(change, PlannedChange::Delete { .. }))
    }

    fn writes_slices(&self) -> bool {
        let mut writes = self.writes();
        writes.any(|change| is_slice(change) && change.verb() != "delete")
    }

    fn measures_wake(&self) -> bool {
        self.inquiry == Some(Inquiry::WakeBreakdown)
    }
}

fn is_slice(change: &PlannedChange) -> bool {
    change.kind().resource.kind == "EndpointSlice"
}
