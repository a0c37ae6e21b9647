//! The status of an ElastiService.

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use neap_kit::schema;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{NotReady, ScaleTarget};

/// The state that the operator records. KubeElasti 0.1.30 has only the first three fields.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ElastiServiceStatus {
    /// When the mode last changed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::time")]
    pub last_reconciled_time: Option<Timestamp>,
    /// The time of the last recorded request; the cooldown is measured from it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::time")]
    pub last_scaled_up_time: Option<Timestamp>,
    /// Whether resolvers or pods receive its traffic; absent before the first decision.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mode: Option<Mode>,
    /// The generation that this status is about.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,
    /// The conditions, as in other Kubernetes objects.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(schema_with = "schema::conditions")]
    pub conditions: Vec<Condition>,
    /// The resolver ports that stand in for its ports.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub ports: Vec<ResolverPort>,
    /// The change between resolvers and pods that is in progress.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hand_off: Option<HandOff>,
    /// When it fell asleep.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::time")]
    pub asleep_since: Option<Timestamp>,
    /// The number of replicas it had when it fell asleep.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub replicas_before: Option<i32>,
    /// The workload that is at zero replicas for it, or is about to be.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resting: Option<Resting>,
    /// The last wake.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_wake: Option<LastWake>,
    /// Replica-seconds that did not run, up to the last wake.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub saved_replica_seconds: Option<i64>,
    /// Present while the workload has replicas and no ready pod, and during a sleep that began then.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub not_ready: Option<NotReady>,
    /// The earliest time at which it may fall asleep, as far as the last recorded request shows.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::time")]
    pub sleeps_after: Option<Timestamp>,
    /// Present while the service is only observed and would sleep.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub would_sleep: Option<WouldSleep>,
    /// Replica-seconds that would not have run while it was only observed, up to the last request.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub would_save_replica_seconds: Option<i64>,
}

impl ElastiServiceStatus {
    /// Replica-seconds that did not run, including the sleep in progress. A sleep that began while no pod was
    /// ready saves nothing that was of use.
    pub fn saved(&self, now: Timestamp) -> i64 {
        let replicas = self.replicas_before.unwrap_or(1).max(1);
        let asleep = self.asleep_since.filter(|_| self.not_ready.is_none());
        let lasting = asleep.map(|since| spared(since, now, replicas));
        let before = self.saved_replica_seconds.unwrap_or(0);
        before.saturating_add(lasting.unwrap_or(0))
    }

    /// Replica-seconds that would not have run while it was only observed; none if it never was.
    pub fn would_save(&self, now: Timestamp) -> Option<i64> {
        let lasting = self.would_sleep.as_ref();
        let lasting = lasting.map(|it| spared(it.since, now, it.replicas));
        let before = self.would_save_replica_seconds;
        let known = lasting.is_some() || before.is_some();
        known.then(|| before.unwrap_or(0).saturating_add(lasting.unwrap_or(0)))
    }
}

/// Clocks of two operators differ, so a difference may be negative; it counts as zero.
fn spared(since: Timestamp, now: Timestamp, replicas: i32) -> i64 {
    let seconds = now.duration_since(since).as_secs().max(0);
    seconds.saturating_mul(replicas.into())
}

/// A sleep that was only observed.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct WouldSleep {
    /// When it would have begun.
    #[schemars(schema_with = "schema::time")]
    pub since: Timestamp,
    /// The replicas that run without being used.
    pub replicas: i32,
}

/// Who receives the traffic of a Service.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Mode {
    /// Resolvers, which pass it on to pods once those are ready.
    Proxy,
    /// The pods directly.
    Serve,
}

/// The resolver port that stands in for a port of the Service.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ResolverPort {
    /// The name of the Service's port; empty if it has none.
    #[serde(default)]
    pub name: String,
    /// The number of the Service's port.
    pub port: i32,
    /// The port on which resolvers listen for it.
    pub resolver_port: i32,
    /// The Service whose port it is; the one that the spec names if absent. A data plane that lags
    /// still sends its connections here for a while after the spec names another.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub service: Option<String>,
}

impl ResolverPort {
    /// Whether it stands in for a port of the Service of this name.
    pub fn is_of(&self, service: &str) -> bool {
        self.service.as_deref().is_none_or(|owner| owner == service)
    }
}

/// The workload that sleeps. It is recorded so that the operator wakes it even if the spec names another
/// one meanwhile.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Resting {
    /// The workload that is scaled to zero.
    pub target: ScaleTarget,
    /// The name of the ScaledObject that is paused meanwhile.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scaled_object: Option<String>,
}

/// A change of who receives the traffic. It ends when the data plane is proved to have followed.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct HandOff {
    /// Who is to receive the traffic.
    pub towards: Towards,
    /// When it began.
    #[schemars(schema_with = "schema::time")]
    pub since: Timestamp,
    /// When the data plane was proved to have followed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::time")]
    pub proved: Option<Timestamp>,
    /// The addresses of the resolvers among which that was proved. A resolver that starts later is not
    /// covered by the proof.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub resolvers: Vec<String>,
}

/// Who is to receive the traffic after a hand-off.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum Towards {
    /// Resolvers: the service is about to sleep.
    Resolvers,
    /// Pods: the service is awake, and resolvers leave the path.
    Pods,
}

/// A completed wake.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct LastWake {
    /// When it began.
    #[schemars(schema_with = "schema::time")]
    pub time: Timestamp,
    /// What caused it.
    pub cause: String,
    /// The time that each part of it took.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub breakdown: Option<Breakdown>,
}

/// The time that each part of a wake took, in milliseconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Breakdown {
    /// From the first byte until the resolver called the operator.
    #[serde(default)]
    pub queue: i64,
    /// Until the replicas were written.
    #[serde(default)]
    pub scale: i64,
    /// Until a pod was scheduled.
    #[serde(default)]
    pub schedule: i64,
    /// Until a pod was ready.
    #[serde(default)]
    pub ready: i64,
    /// Until a pod accepted the connection.
    #[serde(default)]
    pub connect: i64,
    /// Until the first byte of the response.
    #[serde(default)]
    pub first_byte: i64,
}

impl Breakdown {
    /// The sum of all parts.
    pub fn total(self) -> i64 {
        let parts = [self.queue, self.scale, self.schedule, self.ready];
        let parts = parts.into_iter().chain([self.connect, self.first_byte]);
        parts.fold(0, i64::saturating_add)
    }

    /// Whether more is known than the duration of the write, which is known first.
    pub fn is_whole(self) -> bool {
        let known = Self { scale: 0, ..self };
        known != Self::default()
    }
}
