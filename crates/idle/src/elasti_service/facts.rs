//! The facts of a decision. This file has the facts and what follows from them without a server or a clock;
//! the modules below gather them.

mod breakdown;
mod conflict;
mod dependencies;
mod former;
mod gather;
mod other_scalers;
mod pods;
mod port_allotment;
mod ports;
mod resting;
mod targets;
mod wake_breakdown;
mod watched;

use std::{net::IpAddr, sync::Arc, time::Duration};

use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::{core::v1::Service, discovery::v1::EndpointSlice};
use kube::ResourceExt;
use neap_kit::apply::{ObjectRef, ResourceKind};

pub(super) use self::{
    gather::FactSources, pods::FIRST_LOOK, port_allotment::freed, ports::freed_data,
    resting::resting,
};
pub use self::{
    pods::{PodProblem, PodStates},
    ports::{GrantedPorts, PortRange, PortsExhausted},
};
use super::reachability::Proof;
use crate::{
    api::{
        Breakdown, ElastiService, ElastiServiceStatus, ResolverPort, Trigger, TriggerKind,
        annotations::{KEEP_AWAKE_UNTIL, SLEEP, WAKE},
    },
    namespaces::Switches,
    reason::Reason,
    target::{Keda, Target},
    trigger::Verdict,
};

/// Everything that is known about one service.
#[derive(Debug, Clone)]
pub struct Facts {
    /// The ElastiService: the intent of users, and the status of former decisions.
    pub service: Arc<ElastiService>,
    /// The name of an older ElastiService for the same Service: two would write against each other.
    pub rival: Option<String>,
    /// The public Service.
    pub public: Option<Arc<Service>>,
    /// The private Service, which selects the same pods.
    pub private: Option<Arc<Service>>,
    /// The EndpointSlices that add resolvers to the public Service.
    pub slices: Vec<Arc<EndpointSlice>>,
    /// Objects that were made for a Service that the spec no longer names.
    pub leftovers: Vec<ObjectRef>,
    /// The ready resolvers of our kind, ordered by address.
    pub resolvers: Vec<ResolverEndpoint>,
    /// Whether resolvers of another kind are ready beside them.
    pub has_other_resolvers: bool,
    /// How long no resolver has been ready.
    pub no_resolver_for: Option<Duration>,
    /// The workload.
    pub target: Target,
    /// The kind of the workload; none if the API server has no such kind.
    pub target_kind: Option<ResourceKind>,
    /// The number of its ready pods.
    pub ready_pods: usize,
    /// The states of its pods; none where no decision needs them, or if they could not be read.
    pub pods: Option<PodStates>,
    /// The ScaledObject that the spec names.
    pub keda: Keda,
    /// The workload that sleeps and that the spec no longer names.
    pub former: Option<FormerTarget>,
    /// The verdict of the triggers.
    pub verdict: Verdict,
    /// The last proof of where the data plane routes.
    pub proof: Option<Proof>,
    /// The resolver ports that it may have.
    pub ports: Result<GrantedPorts, PortsExhausted>,
    /// The last wake of a service that depends on it.
    pub dependent_wake: Option<DependentWake>,
    /// Names in `spec.dependencies` that do not exist.
    pub missing_dependencies: Vec<String>,
    /// The settings of its namespace.
    pub switches: Switches,
    /// Another controller that scales the workload and that the spec does not name.
    pub conflict: Option<Reason>,
    /// The time that each part of its last wake took, once that was measured.
    pub breakdown: Option<Breakdown>,
    /// The first of the writes that the API server has refused since one succeeded.
    pub refusal: Option<Refusal>,
    /// Whether its namespace is being deleted.
    pub namespace_terminates: bool,
    /// The timeouts.
    pub timeouts: Timeouts,
    /// The time.
    pub now: Timestamp,
}

/// A wake of an ElastiService that depends on this one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DependentWake {
    /// When it woke.
    pub time: Timestamp,
    /// Its name.
    pub name: String,
}

/// A write for a service that the API server refused.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refusal {
    /// When it did so first.
    pub since: Timestamp,
    /// Its response.
    pub message: String,
}

/// The workload that sleeps although the spec names another one by now.
#[derive(Debug, Clone, PartialEq)]
pub struct FormerTarget {
    /// The workload.
    pub target: Target,
    /// Its kind; none if the API server has no such kind.
    pub kind: Option<ResourceKind>,
    /// The ScaledObject that was paused for it.
    pub keda: Keda,
}

/// An address at which a ready resolver listens.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct ResolverEndpoint {
    /// The address.
    pub address: IpAddr,
    /// The name of its pod.
    pub pod: String,
    /// The node of its pod.
    pub node: Option<String>,
    /// The zone of that node.
    pub zone: Option<String>,
}

/// How long decisions wait for something.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Timeouts {
    /// From the proof that resolvers are reached until pods are ended.
    pub grace: Duration,
    /// In place of a proof, where none is possible.
    pub unprovable: Duration,
    /// The age up to which a proof is valid.
    pub proof_age: Duration,
    /// How long a deletion waits for a proof while pods are ready.
    pub deletion_proof: Duration,
    /// How long a deletion waits for pods to be ready, and how long after a wake its parts are measured.
    pub deletion: Duration,
    /// How long no resolver may be ready before all services are woken: one that is replaced is back
    /// sooner.
    pub no_resolver: Duration,
    /// A service that is scaled up within this time after it fell asleep is in conflict with another
    /// controller.
    pub scaled_back: Duration,
    /// How long a start may take before it counts as failed, where the spec has no `deadlineSeconds`.
    pub start: Duration,
    /// After this time a service whose pods have failed sleeps as if it were idle; never if absent.
    pub failed_sleep: Option<Duration>,
}

impl Default for Timeouts {
    fn default() -> Self {
        Self {
            grace: Duration::from_secs(5),
            unprovable: Duration::from_secs(30),
            proof_age: Duration::from_mins(2),
            deletion_proof: Duration::from_mins(1),
            deletion: Duration::from_mins(10),
            no_resolver: Duration::from_secs(10),
            scaled_back: Duration::from_mins(1),
            start: Duration::from_mins(10),
            failed_sleep: None,
        }
    }
}

impl Facts {
    pub(super) fn status(&self) -> ElastiServiceStatus {
        self.service.status.clone().unwrap_or_default()
    }

    /// Whether a pod is ready: by the slices of the private Service, or by the pods where no object was made
    /// for the service yet.
    pub(super) fn has_ready_pod(&self) -> bool {
        self.ready_pods > 0 || self.pods.as_ref().is_some_and(|pods| pods.ready > 0)
    }

    /// The ports in `status` that stand in for the Service that the spec names.
    pub(super) fn own_ports(&self, status: &ElastiServiceStatus) -> Vec<ResolverPort> {
        let ports = status.ports.iter();
        let own = ports.filter(|port| port.is_of(&self.service.spec.service));
        own.cloned().collect()
    }

    pub(super) fn is_deleted(&self) -> bool {
        self.service.metadata.deletion_timestamp.is_some()
    }

    /// The time without a request before it sleeps. Where only resolvers count requests, they receive no
    /// more than their share of the connections; the rest goes to the pods beside them. So the cooldown is
    /// extended until the resolvers' share is as large as all connections of one cooldown.
    pub(super) fn idle_time(&self) -> Duration {
        let cooldown = self.service.spec.cooldown();
        if !self.only_counts_requests() || self.resolvers.is_empty() {
            return cooldown;
        }
        let all = self.resolvers.len() + self.ready_pods;
        let factor = |count: usize| u32::try_from(count).unwrap_or(u32::MAX);
        cooldown.saturating_mul(factor(all)) / factor(self.resolvers.len())
    }

    /// Why the requests that resolvers count are no evidence, if so.
    pub(super) fn uncounted_requests(&self) -> Option<&'static str> {
        let spec = self
            .public
            .as_ref()
            .and_then(|public| public.spec.as_ref())?;
        let sticky = spec.session_affinity.as_deref() == Some("ClientIP");
        (sticky && self.only_counts_requests()).then_some(
            "sessionAffinity of the Service is ClientIP, so that resolvers never receive requests \
             of clients that were sent to a pod; use a prometheus trigger, or sessionAffinity: None",
        )
    }

    /// Whether all triggers count requests.
    fn only_counts_requests(&self) -> bool {
        let triggers = &self.service.spec.triggers;
        let counts = |trigger: &Trigger| trigger.kind == TriggerKind::Requests;
        !triggers.is_empty() && triggers.iter().all(counts)
    }

    /// Whether the Service has no address of its own. Its clients connect to the port of a pod, on which
    /// no resolver listens.
    pub(super) fn is_headless(&self) -> bool {
        let spec = self.public.as_ref().and_then(|public| public.spec.as_ref());
        let address = spec.and_then(|spec| spec.cluster_ip.as_deref());
        address == Some("None")
    }

    /// Why some clients reach only endpoints on one node, where there may be no resolver, if so.
    pub(super) fn node_local(&self) -> Option<&'static str> {
        let spec = self
            .public
            .as_ref()
            .and_then(|public| public.spec.as_ref())?;
        let local = |policy: &Option<String>| policy.as_deref() == Some("Local");
        if local(&spec.internal_traffic_policy) {
            Some(
                "internalTrafficPolicy of the Service is Local, so that clients on nodes without \
                 a resolver would reach no endpoint; set it to Cluster",
            )
        } else if local(&spec.external_traffic_policy) {
            Some(
                "externalTrafficPolicy of the Service is Local, so that nodes without a resolver \
                 would drop external connections; set it to Cluster",
            )
        } else {
            None
        }
    }

    /// The time since `time`.
    pub(super) fn since(&self, time: Timestamp) -> Duration {
        let passed = self.now.duration_since(time);
        Duration::try_from(passed).unwrap_or_default()
    }

    /// The time left until `after` has passed since `time`; none if it has.
    pub(super) fn until(&self, time: Timestamp, after: Duration) -> Option<Duration> {
        let after = SignedDuration::try_from(after).unwrap_or(SignedDuration::MAX);
        let end = time.checked_add(after).unwrap_or(Timestamp::MAX);
        let left = Duration::try_from(end.duration_since(self.now)).ok()?;
        Some(left).filter(|left| !left.is_zero())
    }

    /// The time in an annotation; one that cannot be parsed counts as absent.
    fn annotated_time(&self, annotation: &str) -> Option<Timestamp> {
        self.service.annotations().get(annotation)?.parse().ok()
    }

    /// The annotations with an invalid time.
    pub(super) fn invalid_times(&self) -> impl Iterator<Item = (&'static str, &String)> {
        let annotations = self.service.annotations();
        let present = [WAKE, SLEEP, KEEP_AWAKE_UNTIL]
            .into_iter()
            .filter_map(|name| Some((name, annotations.get(name)?)));
        present.filter(|(_, text)| text.parse::<Timestamp>().is_err())
    }

    /// When a user last requested that it sleep. A time in the future does not count yet.
    pub(super) fn sleep_requested_at(&self) -> Option<Timestamp> {
        self.annotated_time(SLEEP).filter(|time| *time <= self.now)
    }

    /// When a user last requested that it wake, for itself or for its namespace.
    pub(super) fn wake_requested_at(&self) -> Option<Timestamp> {
        let own = self.annotated_time(WAKE);
        let [own, all] = [own, self.switches.wake].map(|time| time.filter(|it| *it <= self.now));
        own.max(all)
    }

    /// The time left until the next request of a user in the future.
    pub(super) fn until_next_request(&self) -> Option<Duration> {
        let times = [
            self.annotated_time(WAKE),
            self.annotated_time(SLEEP),
            self.switches.wake,
        ];
        let times = times.into_iter().flatten();
        let left = times.filter_map(|time| self.until(time, Duration::ZERO));
        left.min()
    }

    /// Whether the operator only reports what it would do.
    pub(super) fn is_observed(&self) -> bool {
        self.service.spec.observe_only || self.switches.observe_only
    }

    /// The time until which it is kept awake.
    pub(super) fn kept_awake_until(&self) -> Option<Timestamp> {
        let annotation = self.annotated_time(KEEP_AWAKE_UNTIL);
        annotation.max(self.service.spec.keep_awake_until)
    }

    /// An address family of the Service that no resolver has: its clients would reach no endpoint.
    pub(super) fn unserved_family(&self) -> Option<&str> {
        let spec = self
            .public
            .as_ref()
            .and_then(|public| public.spec.as_ref())?;
        let mut families = spec.ip_families.iter().flatten().map(String::as_str);
        families.find(|family| {
            let six = *family == "IPv6";
            !self.resolvers.iter().any(|it| it.address.is_ipv6() == six)
        })
    }

    /// Why no connection to the Service proves anything, if so.
    pub(super) fn unprovable(&self) -> Option<&'static str> {
        let spec = self
            .public
            .as_ref()
            .and_then(|public| public.spec.as_ref())?;
        let address = spec.cluster_ip.as_deref().unwrap_or_default();
        if address.is_empty() || address == "None" {
            Some("the Service has no address of its own")
        } else if spec.session_affinity.as_deref() == Some("ClientIP") {
            Some("sessionAffinity of the Service is ClientIP")
        } else {
            None
        }
    }

    /// The last time at which the service is known to have been needed.
    pub(super) fn last_needed_at(&self, status: &ElastiServiceStatus) -> Option<Timestamp> {
        let created = self.service.creation_timestamp().map(|time| time.0);
        let woken = status.last_wake.as_ref().map(|wake| wake.time);
        let dependent = self.dependent_wake.as_ref().map(|wake| wake.time);
        let requested = self.wake_requested_at().max(dependent);
        [created, status.last_scaled_up_time, woken, requested]
            .into_iter()
            .flatten()
            .max()
    }
}
