//! How a service that may sleep is doing.

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use neap_kit::schema;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::ScaleTarget;

/// How it is doing. All but the first three fields are ours.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ElastiServiceStatus {
    /// When the mode was last decided anew.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::time")]
    pub last_reconciled_time: Option<Timestamp>,
    /// When somebody last asked for it, as far as that was noted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::time")]
    pub last_scaled_up_time: Option<Timestamp>,
    /// Who answers for it; absent before that was decided.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mode: Option<Mode>,
    /// Which generation all of this is about.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,
    /// What is the matter with it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(schema_with = "schema::conditions")]
    pub conditions: Vec<Condition>,
    /// On which ports resolvers stand in for its ports.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub ports: Vec<ResolverPort>,
    /// What is under way between sleep and wake.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hand_off: Option<HandOff>,
    /// Since when it sleeps.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::time")]
    pub asleep_since: Option<Timestamp>,
    /// How many replicas it had when it fell asleep.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub replicas_before: Option<i32>,
    /// What is at zero for it, or is about to be.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resting: Option<Resting>,
    /// Why and how it last woke.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_wake: Option<LastWake>,
    /// Seconds of a replica that did not run, up to the last wake.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub saved_replica_seconds: Option<i64>,
    /// It would sleep now, if it were more than observed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub would_sleep: Option<WouldSleep>,
    /// Seconds of a replica that would not have run while it was only observed, up to the last time
    /// that somebody asked for it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub would_save_replica_seconds: Option<i64>,
}

impl ElastiServiceStatus {
    /// Seconds of a replica that did not run: before, and by the sleep that goes on.
    pub fn saved(&self, now: Timestamp) -> i64 {
        let replicas = self.replicas_before.unwrap_or(1).max(1);
        let lasting = self.asleep_since.map(|since| spared(since, now, replicas));
        let before = self.saved_replica_seconds.unwrap_or(0);
        before.saturating_add(lasting.unwrap_or(0))
    }

    /// The same of what was only observed, had it slept; nothing if it never was.
    pub fn would_save(&self, now: Timestamp) -> Option<i64> {
        let lasting = self.would_sleep.as_ref();
        let lasting = lasting.map(|it| spared(it.since, now, it.replicas));
        let before = self.would_save_replica_seconds;
        let known = lasting.is_some() || before.is_some();
        known.then(|| before.unwrap_or(0).saturating_add(lasting.unwrap_or(0)))
    }
}

/// Clocks differ, but nobody sleeps for less than no time.
fn spared(since: Timestamp, now: Timestamp, replicas: i32) -> i64 {
    let seconds = now.duration_since(since).as_secs().max(0);
    seconds.saturating_mul(replicas.into())
}

/// A sleep that was not slept.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct WouldSleep {
    /// When it would have begun.
    #[schemars(schema_with = "schema::time")]
    pub since: Timestamp,
    /// So many replicas run for nobody.
    pub replicas: i32,
}

/// Who answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Mode {
    /// Resolvers are in the path.
    Proxy,
    /// The pods, with nobody between.
    Serve,
}

/// Where resolvers stand in for a port of the Service.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ResolverPort {
    /// The name of the Service's port; empty if it has none.
    #[serde(default)]
    pub name: String,
    /// The number of the Service's port.
    pub port: i32,
    /// Where resolvers listen for it.
    pub resolver_port: i32,
    /// The Service whose port it is; the one that the spec names if absent. A data plane that lags
    /// leads there for a while after the spec names another.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub service: Option<String>,
}

impl ResolverPort {
    /// Whether it stands in for a port of the Service of this name.
    pub fn is_of(&self, service: &str) -> bool {
        self.service.as_deref().is_none_or(|owner| owner == service)
    }
}

/// What sleeps, so that it is woken also if the spec names something else meanwhile.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Resting {
    /// What is scaled to zero.
    pub target: ScaleTarget,
    /// The ScaledObject that is paused meanwhile, by name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scaled_object: Option<String>,
}

/// A change of who answers, which is over when the data plane is proved to have followed.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct HandOff {
    /// Who is to answer.
    pub towards: Towards,
    /// When it began.
    #[schemars(schema_with = "schema::time")]
    pub since: Timestamp,
    /// When the data plane was proved to have followed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::time")]
    pub proved: Option<Timestamp>,
    /// Between which resolvers that was proved, by address. Whoever comes later is not in it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub resolvers: Vec<String>,
}

/// Who is to answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum Towards {
    /// Resolvers: it is about to sleep.
    Resolvers,
    /// Pods: it is about to be awake.
    Pods,
}

/// A wake that came to its end.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct LastWake {
    /// When it began.
    #[schemars(schema_with = "schema::time")]
    pub time: Timestamp,
    /// Who or what asked for it.
    pub cause: String,
    /// Where the time went.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub breakdown: Option<Breakdown>,
}

/// Where the time of a wake went, in milliseconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Breakdown {
    /// From the first byte until the operator was asked.
    #[serde(default)]
    pub queue: i64,
    /// Until the replicas were written.
    #[serde(default)]
    pub scale: i64,
    /// Until a pod had a node.
    #[serde(default)]
    pub schedule: i64,
    /// Until a pod was ready.
    #[serde(default)]
    pub ready: i64,
    /// Until a pod took the connection.
    #[serde(default)]
    pub connect: i64,
    /// Until it answered.
    #[serde(default)]
    pub first_byte: i64,
}

impl Breakdown {
    /// All of it.
    pub fn total(self) -> i64 {
        let parts = [self.queue, self.scale, self.schedule, self.ready];
        let parts = parts.into_iter().chain([self.connect, self.first_byte]);
        parts.fold(0, i64::saturating_add)
    }

    /// Whether it says more than how long the write took, which is known first.
    pub fn is_whole(self) -> bool {
        let known = Self { scale: 0, ..self };
        known != Self::default()
    }
}
