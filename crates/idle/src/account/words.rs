//! Why a service does what it does.

use jiff::Timestamp;

use super::{State, counts, is, kept_awake_until, seconds};
use crate::api::{ElastiService, ElastiServiceStatus};

/// The most telling first.
pub(super) fn why(
    service: &ElastiService,
    status: &ElastiServiceStatus,
    state: State,
    now: Timestamp,
) -> Vec<String> {
    let mut why = Vec::new();
    if state == State::Unseen {
        why.push("no operator has looked at it yet".to_owned());
        return why;
    }
    let said = status.conditions.iter().find(|one| one.type_ == "Ready");
    let stalled = is(status, "Stalled");
    let reconciling = is(status, "Reconciling");
    if let Some(said) = stalled.or(reconciling).or(said) {
        why.push(format!("{}: {}", said.reason, said.message));
    }
    match state {
        State::Asleep => why.extend(asleep(status, now)),
        // Whoever asks for it or does not.
        State::Awake if said.is_some_and(|said| said.reason == "SwitchedOff") => {}
        State::Awake => why.push(awake(service, status, now)),
        _ => {}
    }
    if let Some(wake) = &status.last_wake {
        let ago = span(seconds(wake.time, now));
        why.push(format!("it last woke {ago} ago: {}", wake.cause));
    }
    for kind in ["Undecided", "OutsidePeriod"] {
        if let Some(said) = is(status, kind).filter(|_| state != State::Awake) {
            why.push(format!("{kind}: {}", said.message));
        }
    }
    for kind in ["Unmatched", "Conflict", "Unprovable", "WouldSleep"] {
        if let Some(said) = is(status, kind) {
            why.push(format!("{kind}: {}", said.message));
        }
    }
    why
}

fn asleep(status: &ElastiServiceStatus, now: Timestamp) -> Option<String> {
    let since = status.asleep_since?;
    let replicas = status.replicas_before.unwrap_or(1).max(1);
    let slept = span(seconds(since, now));
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
    if let Some(said) = is(status, "Undecided").or_else(|| is(status, "OutsidePeriod")) {
        return format!("{}: {}", said.reason, said.message);
    }
    if service.spec.triggers.is_empty() {
        return "nothing says when nobody asks for it: spec.triggers is empty".to_owned();
    }
    let cooldown = service.spec.cooldown_period.filter(|it| *it > 0);
    let cooldown = i64::from(cooldown.unwrap_or(900));
    let asked = status.last_scaled_up_time.map(|asked| seconds(asked, now));
    match asked {
        Some(ago) if ago < cooldown => {
            let (ago, left) = (span(ago), span(cooldown - ago));
            format!("somebody asked for it {ago} ago; it sleeps in {left} at the earliest")
        }
        _ if counts(service) => {
            let cooldown = span(cooldown);
            format!(
                "it sleeps once no request came to the resolvers for {cooldown}, and for longer the \
                 more pods are ready beside them"
            )
        }
        _ => "its triggers do not say that nobody asks for it".to_owned(),
    }
}

/// What to do, if something is wrong.
pub(super) fn advice(
    service: &ElastiService,
    status: &ElastiServiceStatus,
    state: State,
) -> Vec<String> {
    let mut advice = Vec::new();
    let reason = is(status, "Stalled").map_or("", |said| &said.reason);
    let named = &service.spec.service;
    match (state, reason) {
        (State::Unseen, _) => {
            advice.push("See whether an operator runs: neap check idle".to_owned());
        }
        (_, "ServiceMissing") => advice.push(format!(
            "Make the Service {named}, or correct spec.service."
        )),
        (_, "TargetMissing") => {
            advice.push("Make what spec.scaleTargetRef names, or correct it.".to_owned());
        }
        (_, "ServiceTaken") => advice.push("Delete one of the two ElastiServices.".to_owned()),
        (_, "ResolverUnavailable") => {
            advice.push("See why no resolver is ready: neap check idle".to_owned());
        }
        (State::Awake, _) if service.spec.triggers.is_empty() => {
            advice.push("Add a trigger: type requests needs nothing else.".to_owned());
        }
        _ => {}
    }
    if let Some(said) = is(status, "Undecided") {
        advice.push(format!(
            "See to what says when it may sleep: {}.",
            said.message
        ));
    }
    if let Some(said) = is(status, "Unmatched") {
        let message = &said.message;
        advice.push(format!("Make what is named, or correct it: {message}."));
    }
    let conflict = is(status, "Conflict").map_or("", |said| &said.reason);
    advice.extend(of_conflict(conflict).map(str::to_owned));
    advice
}

/// Who else scales it, and what to do about that one.
fn of_conflict(reason: &str) -> Option<&'static str> {
    match reason {
        "GitOps" => {
            Some("Leave spec.replicas of what runs to us: take it out of what GitOps applies.")
        }
        "UnnamedScaledObject" => Some("Name the ScaledObject in spec.autoscaler with type keda."),
        "UnnamedAutoscaler" => {
            Some("Name the autoscaler in spec.autoscaler with type hpa, or delete it.")
        }
        "AutoscalerToZero" => Some("Set minReplicas of the autoscaler to 1."),
        _ => None,
    }
}

/// A length of time as people say it.
pub fn span(seconds: i64) -> String {
    let (minutes, hours, days) = (seconds / 60, seconds / 3_600, seconds / 86_400);
    match seconds {
        ..120 => format!("{seconds}s"),
        120..7_200 => format!("{minutes}m"),
        7_200..172_800 => format!("{hours}h"),
        _ => format!("{days}d"),
    }
}
