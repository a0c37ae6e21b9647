//! What a decision is made from. Nothing here knows a server or a clock.

use std::{net::IpAddr, time::Duration};

use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::{core::v1::Service, discovery::v1::EndpointSlice};
use kube::ResourceExt;

pub use super::switches::{OBSERVE_ONLY, OFF};
use super::{
    ports::{Exhausted, Granted},
    prove::Proof,
    switches::Switches,
    verdict::{Because, Verdict},
};
use crate::{
    api::{Breakdown, ElastiService, ElastiServiceStatus, ResolverPort, Trigger, TriggerKind},
    target::{Keda, Target},
};

/// On an ElastiService, or on a Namespace for all in it: when somebody asked for it to wake.
pub const WAKE: &str = "idle.neaptide.dev/wake";
/// On an ElastiService: when somebody asked for it to sleep.
pub const SLEEP: &str = "idle.neaptide.dev/sleep";
/// On an ElastiService: until when it is not to sleep.
pub const KEEP_AWAKE_UNTIL: &str = "idle.neaptide.dev/keep-awake-until";

/// Everything that is known about one service.
#[derive(Debug)]
pub struct Facts<'a> {
    /// What users want, and what was decided before.
    pub service: &'a ElastiService,
    /// An elder ElastiService that names the same Service: two would fight over it.
    pub rival: Option<String>,
    /// The Service that users know.
    pub public: Option<&'a Service>,
    /// The one that reaches the pods.
    pub private: Option<&'a Service>,
    /// Those that bring resolvers into the public Service.
    pub slices: Vec<&'a EndpointSlice>,
    /// The resolvers of our kind that are ready, by address.
    pub resolvers: Vec<Resolver>,
    /// How long there has been none.
    pub deserted: Option<Duration>,
    /// What runs behind it.
    pub target: Target,
    /// How many of its pods are ready.
    pub ready_pods: usize,
    /// KEDA, if it scales it.
    pub keda: Keda,
    /// What slept before and is no longer named.
    pub former: Option<Former>,
    /// What the triggers say.
    pub verdict: Verdict,
    /// What was last proved about whom the data plane reaches.
    pub proof: Option<Proof>,
    /// Which ports of the resolvers it may have.
    pub ports: Result<Granted, Exhausted>,
    /// The last wake of somebody that needs it.
    pub needed: Option<Needed>,
    /// Which of its dependencies are not there.
    pub absent: Vec<String>,
    /// What was said for all services where it is.
    pub switches: Switches,
    /// Who else scales it without being named.
    pub conflict: Option<Because>,
    /// Where the time of its last wake went, if that was asked for.
    pub breakdown: Option<Breakdown>,
    /// How patient to be.
    pub patience: Patience,
    /// The time.
    pub now: Timestamp,
}

/// That another ElastiService woke which needs this one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Needed {
    /// When it woke.
    pub since: Timestamp,
    /// Its name.
    pub by: String,
}

/// What slept before the spec named something else.
#[derive(Debug, Clone, PartialEq)]
pub struct Former {
    /// What was scaled to zero.
    pub target: Target,
    /// KEDA, if it stood still for it.
    pub keda: Keda,
}

/// An address at which a resolver answers.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Resolver {
    /// The address.
    pub address: IpAddr,
    /// The name of its pod.
    pub pod: String,
    /// The node of its pod.
    pub node: Option<String>,
    /// Where that node is.
    pub zone: Option<String>,
}

/// How long is waited for what.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Patience {
    /// From the proof that resolvers are reached until pods are ended.
    pub grace: Duration,
    /// In place of a proof, where none can be had.
    pub blind: Duration,
    /// So long a proof holds.
    pub fresh: Duration,
    /// So long the end of an object waits for a proof when pods are ready.
    pub farewell: Duration,
    /// So long it waits for pods to be ready.
    pub giving_up: Duration,
    /// So long no resolver may be ready before everything is woken: one that is replaced is back
    /// sooner.
    pub deserted: Duration,
    /// Whoever scales a service back within this time works against us.
    pub scaled_back: Duration,
}

impl Default for Patience {
    fn default() -> Self {
        Self {
            grace: Duration::from_secs(5),
            blind: Duration::from_secs(30),
            fresh: Duration::from_mins(2),
            farewell: Duration::from_mins(1),
            giving_up: Duration::from_mins(10),
            deserted: Duration::from_secs(10),
            scaled_back: Duration::from_mins(1),
        }
    }
}

impl Facts<'_> {
    pub(super) fn status(&self) -> ElastiServiceStatus {
        self.service.status.clone().unwrap_or_default()
    }

    /// The ports in the status that stand in for the Service that the spec names.
    pub(super) fn own_ports(&self, status: &ElastiServiceStatus) -> Vec<ResolverPort> {
        let ports = status.ports.iter();
        let own = ports.filter(|port| port.is_of(&self.service.spec.service));
        own.cloned().collect()
    }

    pub(super) fn minimum(&self) -> i32 {
        self.service.spec.min_target_replicas.unwrap_or(1).max(1)
    }

    pub(super) fn cooldown(&self) -> Duration {
        let seconds = self.service.spec.cooldown_period.unwrap_or(0);
        let seconds = if seconds <= 0 { 900 } else { seconds };
        Duration::from_secs(seconds.unsigned_abs().into())
    }

    /// How long nobody may have asked before it sleeps. Where only resolvers count, they see no more
    /// than the share of connections that comes to them and not to the pods beside them. In so much
    /// more time as many of them come there as would have come in all.
    pub(super) fn quiet(&self) -> Duration {
        let cooldown = self.cooldown();
        if !self.only_counts() || self.resolvers.is_empty() {
            return cooldown;
        }
        let all = self.resolvers.len() + self.ready_pods;
        let factor = |count: usize| u32::try_from(count).unwrap_or(u32::MAX);
        cooldown.saturating_mul(factor(all)) / factor(self.resolvers.len())
    }

    /// Why what resolvers count says nothing, if so.
    pub(super) fn uncounted(&self) -> Option<&'static str> {
        let spec = self.public.and_then(|public| public.spec.as_ref())?;
        let sticks = spec.session_affinity.as_deref() == Some("ClientIP");
        (sticks && self.only_counts()).then_some(
            "the Service sends a client to where it was before, so that resolvers never see those \
             who were sent to a pod; a prometheus trigger does, or sessionAffinity: None",
        )
    }

    /// Whether nobody but resolvers says who asks for it.
    fn only_counts(&self) -> bool {
        let triggers = &self.service.spec.triggers;
        let counts = |trigger: &Trigger| trigger.kind == TriggerKind::Requests;
        !triggers.is_empty() && triggers.iter().all(counts)
    }

    /// Whether clients learn the addresses of pods instead of one that is the Service's. They dial
    /// the port of a pod there, where no resolver listens.
    pub(super) fn headless(&self) -> bool {
        let spec = self.public.and_then(|public| public.spec.as_ref());
        let address = spec.and_then(|spec| spec.cluster_ip.as_deref());
        address == Some("None")
    }

    /// Why some would reach only what is on one node, which not every resolver is, if so.
    pub(super) fn node_local(&self) -> Option<&'static str> {
        let spec = self.public.and_then(|public| public.spec.as_ref())?;
        let local = |policy: &Option<String>| policy.as_deref() == Some("Local");
        if local(&spec.internal_traffic_policy) {
            Some(
                "internalTrafficPolicy of the Service is Local, so that clients on nodes without \
                 a resolver would find nobody; set it to Cluster",
            )
        } else if local(&spec.external_traffic_policy) {
            Some(
                "externalTrafficPolicy of the Service is Local, so that nodes without a resolver \
                 would drop what comes from outside; set it to Cluster",
            )
        } else {
            None
        }
    }

    /// How long ago that was.
    pub(super) fn since(&self, moment: Timestamp) -> Duration {
        let passed = self.now.duration_since(moment);
        Duration::try_from(passed).unwrap_or_default()
    }

    /// How long until it is `after` the moment; nothing if it is.
    pub(super) fn until(&self, moment: Timestamp, after: Duration) -> Option<Duration> {
        let after = SignedDuration::try_from(after).unwrap_or(SignedDuration::MAX);
        let end = moment.checked_add(after).unwrap_or(Timestamp::MAX);
        let left = Duration::try_from(end.duration_since(self.now)).ok()?;
        Some(left).filter(|left| !left.is_zero())
    }

    /// A moment that somebody wrote on the object; what cannot be read was not said.
    pub(super) fn said(&self, annotation: &str) -> Option<Timestamp> {
        self.service.annotations().get(annotation)?.parse().ok()
    }

    /// What somebody wrote where a moment belongs, and is none.
    pub(super) fn unread(&self) -> impl Iterator<Item = (&'static str, &String)> {
        let annotations = self.service.annotations();
        let written = [WAKE, SLEEP, KEEP_AWAKE_UNTIL]
            .into_iter()
            .filter_map(|name| Some((name, annotations.get(name)?)));
        written.filter(|(_, text)| text.parse::<Timestamp>().is_err())
    }

    /// The same for something that is to be done then. What lies ahead has not been said yet.
    pub(super) fn heard(&self, annotation: &str) -> Option<Timestamp> {
        self.said(annotation).filter(|moment| *moment <= self.now)
    }

    /// When somebody last asked for it to wake, by its own name or with all others.
    pub(super) fn asked(&self) -> Option<Timestamp> {
        let all = self.switches.wake.filter(|moment| *moment <= self.now);
        self.heard(WAKE).max(all)
    }

    /// Whether it is only told what would become of it.
    pub(super) fn observed(&self) -> bool {
        self.service.spec.observe_only || self.switches.observe_only
    }

    /// How long until something is to be done that was said ahead of its time.
    pub(super) fn unheard(&self) -> Option<Duration> {
        let said = [self.said(WAKE), self.said(SLEEP), self.switches.wake];
        let moments = said.into_iter().flatten();
        let left = moments.filter_map(|moment| self.until(moment, Duration::ZERO));
        left.min()
    }

    /// Until when it is kept awake.
    pub(super) fn kept_awake_until(&self) -> Option<Timestamp> {
        let said = self.said(KEEP_AWAKE_UNTIL);
        said.max(self.service.spec.keep_awake_until)
    }

    /// Whether resolvers count the requests that come to them, and so never leave the path.
    pub(super) fn counts(&self) -> bool {
        let mut triggers = self.service.spec.triggers.iter();
        triggers.any(|trigger| trigger.kind == TriggerKind::Requests)
    }

    /// A family of addresses that the Service has and no resolver: whoever comes over it would find
    /// nobody.
    pub(super) fn unanswered_family(&self) -> Option<&str> {
        let spec = self.public.and_then(|public| public.spec.as_ref())?;
        let mut families = spec.ip_families.iter().flatten().map(String::as_str);
        families.find(|family| {
            let six = *family == "IPv6";
            !self.resolvers.iter().any(|it| it.address.is_ipv6() == six)
        })
    }

    /// Why no connection through the Service can prove anything, if so.
    pub(super) fn blind(&self) -> Option<&'static str> {
        let spec = self.public.and_then(|public| public.spec.as_ref())?;
        let address = spec.cluster_ip.as_deref().unwrap_or_default();
        if address.is_empty() || address == "None" {
            Some("the Service has no address of its own")
        } else if spec.session_affinity.as_deref() == Some("ClientIP") {
            Some("the Service sends a client to where it was before")
        } else {
            None
        }
    }

    /// The last moment at which somebody is known to have asked for it.
    pub(super) fn last_asked(&self, status: &ElastiServiceStatus) -> Option<Timestamp> {
        let created = self.service.creation_timestamp().map(|time| time.0);
        let woken = status.last_wake.as_ref().map(|wake| wake.time);
        let needed = self.needed.as_ref().map(|needed| needed.since);
        let asked = self.asked().max(needed);
        [created, status.last_scaled_up_time, woken, asked]
            .into_iter()
            .flatten()
            .max()
    }
}
