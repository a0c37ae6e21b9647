//! The reasons for the state of a service, and advice.

use jiff::Timestamp;
use neap_kit::clock::short_duration;

use super::{State, is_true, kept_awake_until, seconds};
use crate::api::{ElastiService, ElastiServiceStatus, NotReady, NotReadyCause};

/// The reasons for the state, the most specific first.
pub(super) fn why(
    service: &ElastiService,
    status: &ElastiServiceStatus,
    state: State,
    now: Timestamp,
) -> Vec<String> {
    let mut why = Vec::new();
    if state == State::Unseen {
        why.push("no operator has reconciled it yet".to_owned());
        return why;
    }
    let ready = status.conditions.iter().find(|one| one.type_ == "Ready");
    let stalled = is_true(status, "Stalled");
    let reconciling = is_true(status, "Reconciling");
    // Its sleep must not hide that it could not serve before.
    if let (State::Asleep, Some(it)) = (state, &status.not_ready) {
        why.push(format!(
            "NotReady: it could not serve when it fell asleep: {}",
            it.message
        ));
    }
    if let Some(summary) = stalled.or(reconciling).or(ready) {
        why.push(format!("{}: {}", summary.reason, summary.message));
    }
    match state {
        State::Asleep => why.extend(asleep(status, now)),
        // It stays awake whether it is in use or not.
        State::Awake if ready.is_some_and(|ready| ready.reason == "SwitchedOff") => {}
        State::Awake => why.push(awake(service, status, now)),
        _ => {}
    }
    if let Some(wake) = &status.last_wake {
        let ago = short_duration(seconds(wake.time, now));
        let woke = match state {
            State::Failed | State::Waking => "its last wake began",
            _ => "it last woke",
        };
        why.push(format!("{woke} {ago} ago: {}", wake.cause));
    }
    for kind in ["TriggersUnknown", "OutsidePeriod"] {
        if let Some(it) = is_true(status, kind).filter(|_| state != State::Awake) {
            why.push(format!("{kind}: {}", it.message));
        }
    }
    for kind in [
        "UnresolvedReferences",
        "Conflict",
        "Unprovable",
        "WouldSleep",
    ] {
        if let Some(it) = is_true(status, kind) {
            why.push(format!("{kind}: {}", it.message));
        }
    }
    why
}

fn asleep(status: &ElastiServiceStatus, now: Timestamp) -> Option<String> {
    let since = status.asleep_since?;
    if status.not_ready.is_some() {
        let slept = short_duration(seconds(since, now));
        return Some(format!(
            "it has slept for {slept}; that counts as no saving"
        ));
    }
    let replicas = status.replicas_before.unwrap_or(1).max(1);
    let slept = short_duration(seconds(since, now));
    let s = if replicas == 1 { "" } else { "s" };
    Some(format!(
        "it has slept for {slept}; {replicas} replica{s} would have run"
    ))
}

/// Why it does not sleep.
fn awake(service: &ElastiService, status: &ElastiServiceStatus, now: Timestamp) -> String {
    if let Some(until) = kept_awake_until(service).filter(|until| *until > now) {
        return format!("it is kept awake until {until}");
    }
    let unknown = is_true(status, "TriggersUnknown");
    if let Some(it) = unknown.or_else(|| is_true(status, "OutsidePeriod")) {
        return format!("{}: {}", it.reason, it.message);
    }
    if service.spec.triggers.is_empty() {
        return "spec.triggers is empty, so nothing shows when it is idle".to_owned();
    }
    let cooldown = i64::try_from(service.spec.cooldown().as_secs()).unwrap_or(i64::MAX);
    let requested = status.last_scaled_up_time;
    let requested = requested.map(|requested| short_duration(seconds(requested, now)));
    // The operator knows what the cooldown is measured from, and how much longer it takes beside pods.
    let left = status.sleeps_after.map(|after| seconds(now, after));
    match (requested, left) {
        (Some(ago), Some(left)) if left > 0 => {
            let left = short_duration(left);
            format!("the last recorded request was {ago} ago; it sleeps in {left} at the earliest")
        }
        _ if service.spec.counts_requests() => {
            let cooldown = short_duration(cooldown);
            format!(
                "it sleeps once the resolvers have received no request for {cooldown}, or longer the \
                 more pods are ready beside them"
            )
        }
        _ => "its triggers do not report it idle".to_owned(),
    }
}

/// What a user can do, if something is wrong.
pub(super) fn advice(
    service: &ElastiService,
    status: &ElastiServiceStatus,
    state: State,
) -> Vec<String> {
    let mut advice = Vec::new();
    let reason = is_true(status, "Stalled").map_or("", |it| &it.reason);
    let named = &service.spec.service;
    match (state, reason) {
        (State::Unseen, _) => {
            advice.push("See whether an operator runs: neap check idle".to_owned());
        }
        (_, "ServiceMissing") => advice.push(format!(
            "Create the Service {named}, or correct spec.service."
        )),
        (_, "TargetMissing") => {
            advice.push(
                "Create the object that spec.scaleTargetRef names, or correct it.".to_owned(),
            );
        }
        (_, "ServiceTaken") => advice.push("Delete one of the two ElastiServices.".to_owned()),
        (State::Failed, _) => advice.push(of_failed_pods(service, status)),
        (_, "ResolverUnavailable") => {
            advice.push("See why no resolver is ready: neap check idle".to_owned());
        }
        (State::Awake, _) if service.spec.triggers.is_empty() => {
            advice.push("Add a trigger: type requests needs nothing else.".to_owned());
        }
        _ => {}
    }
    if let Some(it) = is_true(status, "TriggersUnknown") {
        advice.push(format!("Repair its triggers: {}.", it.message));
    }
    if let Some(it) = is_true(status, "UnresolvedReferences") {
        let message = &it.message;
        advice.push(format!(
            "Create what is referred to, or correct it: {message}."
        ));
    }
    let conflict = is_true(status, "Conflict").map_or("", |it| &it.reason);
    advice.extend(of_conflict(conflict).map(str::to_owned));
    advice
}

/// A kind as `neap explain` reads it. Older spellings are plurals.
pub(super) fn kind_word(kind: &str) -> String {
    let word = kind.to_lowercase();
    word.strip_suffix('s').unwrap_or(&word).to_owned()
}

/// What to do about pods that do not become ready.
fn of_failed_pods(service: &ElastiService, status: &ElastiServiceStatus) -> String {
    let target = &service.spec.scale_target_ref;
    let kind = kind_word(&target.kind);
    let namespace = service.metadata.namespace.as_deref().unwrap_or("default");
    let more = format!("neap explain {kind}/{} -n {namespace}", target.name);
    let cause = status.not_ready.as_ref().map(NotReady::cause);
    let repair = match cause {
        Some(NotReadyCause::CrashLoop) => {
            "Read the log of its container, and correct what makes it end"
        }
        Some(NotReadyCause::ImagePull) => {
            "Correct the name of its image, or make the image available"
        }
        Some(NotReadyCause::ContainerConfig) => {
            "Create what its pods refer to, or correct the reference"
        }
        Some(NotReadyCause::Unschedulable) => "Make room on a node, or request less",
        Some(NotReadyCause::Probe) => "See why the probe does not succeed, or correct the probe",
        _ => "See why its pods do not become ready",
    };
    format!("{repair}; more: {more}")
}

/// What to do about another tool that scales the workload.
fn of_conflict(reason: &str) -> Option<&'static str> {
    match reason {
        "GitOps" => Some(
            "Leave spec.replicas of the workload to the operator: take it out of what GitOps applies.",
        ),
        "UnnamedScaledObject" => Some("Name the ScaledObject in spec.autoscaler with type keda."),
        "UnnamedAutoscaler" => {
            Some("Name the autoscaler in spec.autoscaler with type hpa, or delete it.")
        }
        "AutoscalerToZero" => Some("Set minReplicas of the autoscaler to 1."),
        _ => None,
    }
}
