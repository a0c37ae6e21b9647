//! How a service that may sleep is doing, and why, in words. Pure: made of the object alone, for
//! whoever lists, shows or explains it.

mod words;

use jiff::{SignedDuration, Timestamp};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use kube::ResourceExt;
use serde::Serialize;

pub use self::words::span;
use crate::{
    api::{
        Breakdown, ElastiService, ElastiServiceStatus, Mode, ResolverPort, Towards, TriggerKind,
    },
    service::facts::KEEP_AWAKE_UNTIL,
};

/// What it does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum State {
    /// No operator has looked at it.
    Unseen,
    /// It cannot be looked after as it is.
    Stalled,
    /// It goes, and is woken before.
    Leaving,
    /// Nothing of it runs.
    Asleep,
    /// Resolvers take the place of its pods.
    FallingAsleep,
    /// Somebody asked for it.
    Waking,
    /// It runs.
    Awake,
}

impl State {
    /// All there are.
    pub const ALL: [Self; 7] = [
        Self::Unseen,
        Self::Stalled,
        Self::Leaving,
        Self::Asleep,
        Self::FallingAsleep,
        Self::Waking,
        Self::Awake,
    ];

    /// What `service` does.
    pub fn of(service: &ElastiService) -> Self {
        let nothing = ElastiServiceStatus::default();
        state(service, service.status.as_ref().unwrap_or(&nothing))
    }

    /// In a word.
    pub fn word(self) -> &'static str {
        match self {
            Self::Unseen => "unseen",
            Self::Stalled => "stalled",
            Self::Leaving => "leaving",
            Self::Asleep => "asleep",
            Self::FallingAsleep => "falling-asleep",
            Self::Waking => "waking",
            Self::Awake => "awake",
        }
    }
}

/// A service that may sleep, accounted for.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Account {
    /// Where it is.
    pub namespace: String,
    /// What the ElastiService is called.
    pub name: String,
    /// The Service that users know.
    pub service: String,
    /// What is scaled.
    pub target: String,
    /// What it does.
    pub state: State,
    /// Whether resolvers are in the path.
    pub proxied: bool,
    /// Why it does what it does, the most telling first.
    pub why: Vec<String>,
    /// What to do about it, if something is wrong.
    pub advice: Vec<String>,
    /// Since when it sleeps.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub asleep_since: Option<Timestamp>,
    /// Until when it is kept awake.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kept_awake_until: Option<Timestamp>,
    /// When it last woke.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_wake: Option<Timestamp>,
    /// Who or what asked for that.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_cause: Option<String>,
    /// Where its time went.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub breakdown: Option<Breakdown>,
    /// Seconds of a replica that did not run, up to now.
    pub saved_replica_seconds: i64,
    /// It is only observed, and so many would have been saved since it was last wanted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub would_save_replica_seconds: Option<i64>,
    /// On which ports resolvers stand in for its ports.
    pub ports: Vec<ResolverPort>,
}

/// How `service` is doing at `now`.
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
        why: words::why(service, status, state, now),
        advice: words::advice(service, status, state),
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

fn state(service: &ElastiService, status: &ElastiServiceStatus) -> State {
    let towards = status.hand_off.as_ref().map(|hand_off| hand_off.towards);
    let starts = is(status, "Reconciling").is_some_and(|said| said.reason == "Waking");
    let between = status.mode == Some(Mode::Proxy) && !counts(service) || starts;
    if service.metadata.deletion_timestamp.is_some() {
        State::Leaving
    } else if status.observed_generation.is_none() {
        State::Unseen
    } else if is(status, "Stalled").is_some() {
        State::Stalled
    } else if status.asleep_since.is_some() {
        State::Asleep
    } else if towards == Some(Towards::Resolvers) {
        State::FallingAsleep
    } else if towards == Some(Towards::Pods) || between {
        State::Waking
    } else {
        State::Awake
    }
}

/// The condition of this kind, if it is so.
fn is<'a>(status: &'a ElastiServiceStatus, kind: &str) -> Option<&'a Condition> {
    let mut conditions = status.conditions.iter();
    conditions.find(|one| one.type_ == kind && one.status == "True")
}

/// Whether resolvers stay in the path to count.
fn counts(service: &ElastiService) -> bool {
    let mut triggers = service.spec.triggers.iter();
    triggers.any(|trigger| trigger.kind == TriggerKind::Requests)
}

fn kept_awake_until(service: &ElastiService) -> Option<Timestamp> {
    let said = service.annotations().get(KEEP_AWAKE_UNTIL);
    let said = said.and_then(|text| text.parse().ok());
    said.max(service.spec.keep_awake_until)
}

/// Whether it is only observed is said in it or for its whole namespace; the status has what came of
/// either.
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
