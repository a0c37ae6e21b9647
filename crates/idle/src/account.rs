//! An account of a service: its state and the reasons for it, in words. Pure: it is made of the
//! ElastiService alone, for commands that list, show or explain it.

mod explanation;

use jiff::{SignedDuration, Timestamp};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use kube::ResourceExt;
use serde::Serialize;

use crate::api::{
    Breakdown, ElastiService, ElastiServiceStatus, Mode, NotReady, ResolverPort, Towards,
    annotations::KEEP_AWAKE_UNTIL,
};

/// The state of a service.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum State {
    /// No operator has reconciled it.
    Unseen,
    /// A user has to change something before it can be reconciled.
    Stalled,
    /// It is being deleted, and is woken before.
    Leaving,
    /// It has no replicas.
    Asleep,
    /// Resolvers take the place of its pods.
    FallingAsleep,
    /// It has replicas, and its pods do not become ready.
    Failed,
    /// Its pods start.
    Waking,
    /// Its pods serve requests.
    Awake,
}

impl State {
    /// All states.
    pub const ALL: [Self; 8] = [
        Self::Unseen,
        Self::Stalled,
        Self::Leaving,
        Self::Failed,
        Self::Asleep,
        Self::FallingAsleep,
        Self::Waking,
        Self::Awake,
    ];

    /// The state of `service`.
    pub fn of(service: &ElastiService) -> Self {
        let nothing = ElastiServiceStatus::default();
        state(service, service.status.as_ref().unwrap_or(&nothing))
    }

    /// The state in a word.
    pub fn word(self) -> &'static str {
        match self {
            Self::Unseen => "unseen",
            Self::Stalled => "stalled",
            Self::Leaving => "leaving",
            Self::Asleep => "asleep",
            Self::FallingAsleep => "falling-asleep",
            Self::Failed => "failed",
            Self::Waking => "waking",
            Self::Awake => "awake",
        }
    }
}

/// The state of a service, and the reasons for it.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Account {
    /// The namespace.
    pub namespace: String,
    /// The name of the ElastiService.
    pub name: String,
    /// The public Service.
    pub service: String,
    /// The workload.
    pub target: String,
    /// The state.
    pub state: State,
    /// Whether resolvers are in the path.
    pub proxied: bool,
    /// The reasons for the state, the most specific first.
    pub why: Vec<String>,
    /// What a user can do, if something is wrong.
    pub advice: Vec<String>,
    /// Why none of its pods is ready, or was when it fell asleep.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub not_ready: Option<NotReady>,
    /// When it fell asleep.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub asleep_since: Option<Timestamp>,
    /// The time until which it is kept awake.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kept_awake_until: Option<Timestamp>,
    /// When it last woke.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_wake: Option<Timestamp>,
    /// The cause of the last wake.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_cause: Option<String>,
    /// The time that each part of the last wake took.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub breakdown: Option<Breakdown>,
    /// Replica-seconds that did not run, up to now.
    pub saved_replica_seconds: i64,
    /// Replica-seconds that would have been saved, if it is only observed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub would_save_replica_seconds: Option<i64>,
    /// The resolver ports that stand in for its ports.
    pub ports: Vec<ResolverPort>,
}

/// The account of `service` at `now`.
pub fn account(service: &ElastiService, now: Timestamp) -> Account {
    let nothing = ElastiServiceStatus::default();
    let status = service.status.as_ref().unwrap_or(&nothing);
    let state = State::of(service);
    let target = &service.spec.scale_target_ref;
    let wake = status.last_wake.as_ref();
    Account {
        namespace: service.namespace().unwrap_or_default(),
        name: service.name_any(),
        service: service.spec.service.clone(),
        target: format!("{}/{}", target.kind, target.name),
        state,
        proxied: status.mode == Some(Mode::Proxy),
        why: explanation::why(service, status, state, now),
        advice: explanation::advice(service, status, state),
        not_ready: status.not_ready.clone(),
        asleep_since: status.asleep_since,
        kept_awake_until: kept_awake_until(service).filter(|until| *until > now),
        last_wake: wake.map(|wake| wake.time),
        last_cause: wake.map(|wake| wake.cause.clone()),
        breakdown: wake.and_then(|wake| wake.breakdown),
        saved_replica_seconds: status.saved(now),
        would_save_replica_seconds: would_save(service, status, now),
        ports: status.ports.clone(),
    }
}

/// What an ElastiService means for the workload or the Service of this kind and name in its namespace: a
/// headline and a reason. None if it is not about that object.
pub fn notice(
    service: &ElastiService,
    kind: &str,
    name: &str,
    now: Timestamp,
) -> Option<(String, String)> {
    let target = &service.spec.scale_target_ref;
    let is_target =
        explanation::kind_word(&target.kind) == kind.to_lowercase() && target.name == name;
    let is_public = kind == "Service" && service.spec.service == name;
    if !is_target && !is_public {
        return None;
    }
    let found = account(service, now);
    let (word, own) = (found.state.word(), &found.name);
    let headline = match found.state {
        State::Asleep => format!("it sleeps, by ElastiService {own}"),
        State::Awake => format!("it may sleep, by ElastiService {own}"),
        _ => format!("its ElastiService {own} is {word}"),
    };
    let why = found.why.join("; ");
    Some((headline, format!("ElastiService {own} is {word}: {why}")))
}

fn state(service: &ElastiService, status: &ElastiServiceStatus) -> State {
    let towards = status.hand_off.as_ref().map(|hand_off| hand_off.towards);
    let starts = is_true(status, "Reconciling").is_some_and(|it| it.reason == "Waking");
    let between = status.mode == Some(Mode::Proxy) && !service.spec.counts_requests() || starts;
    if service.metadata.deletion_timestamp.is_some() {
        State::Leaving
    } else if status.observed_generation.is_none() {
        State::Unseen
    } else if is_true(status, "Stalled").is_some_and(|it| !FAILED.contains(&&*it.reason)) {
        State::Stalled
    } else if status.asleep_since.is_some() {
        State::Asleep
    } else if is_true(status, "Stalled").is_some() {
        State::Failed
    } else if towards == Some(Towards::Resolvers) {
        State::FallingAsleep
    } else if towards == Some(Towards::Pods) || between {
        State::Waking
    } else {
        State::Awake
    }
}

/// The reasons with which a service is stalled because its pods do not become ready.
const FAILED: [&str; 2] = ["WakeFailed", "PodsFailing"];

/// The condition of this type, if it is true.
fn is_true<'a>(status: &'a ElastiServiceStatus, kind: &str) -> Option<&'a Condition> {
    let mut conditions = status.conditions.iter();
    conditions.find(|one| one.type_ == kind && one.status == "True")
}

fn kept_awake_until(service: &ElastiService) -> Option<Timestamp> {
    let annotation = service.annotations().get(KEEP_AWAKE_UNTIL);
    let annotation = annotation.and_then(|text| text.parse().ok());
    annotation.max(service.spec.keep_awake_until)
}

/// A service is only observed by its spec or by its namespace; the status has the result of either.
fn would_save(
    service: &ElastiService,
    status: &ElastiServiceStatus,
    now: Timestamp,
) -> Option<i64> {
    let nothing_yet = service.spec.observe_only.then_some(0);
    status.would_save(now).or(nothing_yet)
}

fn seconds(from: Timestamp, to: Timestamp) -> i64 {
    let passed: SignedDuration = to.duration_since(from);
    passed.as_secs().max(0)
}

#[cfg(test)]
mod tests;
