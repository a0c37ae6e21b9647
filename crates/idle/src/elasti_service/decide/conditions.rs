//! The conditions and Events of a decision.

use neap_kit::{
    event::EventDraft,
    status::{ConditionStatus, ConditionUpdate, Readiness, updated_conditions},
};

use super::{Goal, draft::Draft};
use crate::{
    api::WouldSleep,
    elasti_service::objects,
    trigger::{Verdict, Window},
};

/// Updates the conditions of the status, and adds Events for what is new.
pub(super) fn update(draft: &mut Draft<'_>) {
    let Some(readiness) = draft.readiness.take() else {
        return;
    };
    let mut condition_updates = readiness.condition_updates().to_vec();
    condition_updates.extend(optional_conditions(draft));
    let facts = draft.facts;
    let generation = facts.service.metadata.generation;
    if let Readiness::Stalled(reason, message) = &readiness
        && !was(draft, "Stalled", reason)
    {
        draft
            .events
            .push(EventDraft::warning(reason, message.clone()));
    }
    if let Some((reason, message)) = trigger_problem(&facts.verdict)
        && !was(draft, TRIGGERS_UNKNOWN, reason)
    {
        draft.events.push(EventDraft::warning(reason, message));
    }
    if let Some(scale) = draft.scale {
        let target = &facts.service.spec.scale_target_ref.name;
        let message = format!("{target} is scaled to {}", scale.replicas);
        draft
            .events
            .push(EventDraft::normal("SuccessToScale", message));
    }
    let mut old = std::mem::take(&mut draft.status.conditions);
    old.retain(|condition| !RETIRED.contains(&condition.type_.as_str()));
    draft.status.conditions = updated_conditions(&old, &condition_updates, generation, facts.now);
    draft.status.observed_generation = generation;
}

/// Conditions that not every service has: set where they are true, and set to false where they were.
fn optional_conditions(draft: &Draft<'_>) -> Vec<ConditionUpdate> {
    // A headless Service is stalled for that reason, and never waits for a proof.
    let unprovable = draft.facts.unprovable();
    let unprovable = unprovable.filter(|_| !draft.facts.is_headless());
    let wait = draft.facts.timeouts.unprovable.as_secs();
    let unprovable = unprovable.map(|why| {
        let message = format!(
            "cannot verify whether the data plane routes to resolvers or pods ({why}); waiting {wait} s \
             instead"
        );
        ("RoutingNotVerifiable", message)
    });
    let would_sleep = draft.would_sleep.clone().map(|message| ("Idle", message));
    let mut all = Vec::new();
    all.extend(condition(
        draft,
        "WouldSleep",
        would_sleep,
        ["NotIdle", "the service is in use, or observe-only is off"],
    ));
    all.extend(trigger_conditions(draft));
    all.extend(unresolved_references(draft));
    all.extend(conflict(draft));
    all.extend(wake_failed(draft));
    all.extend(condition(
        draft,
        "Unprovable",
        unprovable,
        [
            "RoutingVerifiable",
            "it can be verified whether the data plane routes to resolvers or pods",
        ],
    ));
    all
}

/// The condition `kind`: true with a reason, or no longer true; none if it never was.
fn condition(
    draft: &Draft<'_>,
    kind: &'static str,
    is_true: Option<(&'static str, String)>,
    [reason, message]: [&'static str; 2],
) -> Option<ConditionUpdate> {
    let mut conditions = draft.status.conditions.iter();
    match is_true {
        Some((reason, message)) => Some(ConditionUpdate::new(
            kind,
            ConditionStatus::True,
            reason,
            message,
        )),
        None => conditions
            .any(|condition| condition.type_ == kind)
            .then(|| ConditionUpdate::new(kind, ConditionStatus::False, reason, message)),
    }
}

/// The triggers do not say whether the service is in use, so it neither sleeps nor wakes by them.
const TRIGGERS_UNKNOWN: &str = "TriggersUnknown";
/// The service may not sleep at this time, whatever its triggers say.
const OUTSIDE_PERIOD: &str = "OutsidePeriod";
/// The spec or an annotation refers to something that does not exist or cannot be parsed.
const UNRESOLVED_REFERENCES: &str = "UnresolvedReferences";
/// Condition types of earlier builds: [`TRIGGERS_UNKNOWN`] and [`UNRESOLVED_REFERENCES`] replace them.
/// They are removed from every status that is written, since no operator updates them any more.
const RETIRED: [&str; 2] = ["Undecided", "Unmatched"];

/// References of the spec to something that does not exist, and annotations that cannot be parsed. The
/// former may be created yet, since users apply several objects at once: so there is no Event.
fn unresolved_references(draft: &Draft<'_>) -> Option<ConditionUpdate> {
    let facts = draft.facts;
    let spec = &facts.service.spec;
    if facts.public.is_none() && !spec.ports.is_empty() {
        // The ports of the Service are not known.
        return None;
    }
    let missing = facts.missing_dependencies.iter();
    let mut all: Vec<_> = missing
        .map(|name| format!("spec.dependencies: there is no ElastiService {name} in its namespace"))
        .collect();
    let ports = facts.public.as_deref().map(objects::ports);
    let ports = ports.unwrap_or_default();
    let named = spec.ports.iter().enumerate();
    let unknown = named.filter(|(_, one)| ports.iter().all(|(_, port)| *port != one.port));
    all.extend(unknown.map(|(at, one)| {
        let (port, service) = (one.port, &spec.service);
        format!("spec.ports[{at}].port: the Service {service} has no TCP port {port}")
    }));
    let invalid: Vec<_> = facts.invalid_times().collect();
    let reason = match (&facts.missing_dependencies[..], &invalid[..]) {
        ([], []) => "NoSuchPort",
        ([], _) => "InvalidTimestamp",
        _ => "NoSuchDependency",
    };
    all.extend(invalid.into_iter().map(|(name, text)| {
        format!("annotation {name}: {text:?} is not a time such as 2026-12-24T18:00:00Z")
    }));
    let is_true = (!all.is_empty()).then(|| (reason, all.join("; ")));
    let resolved = [
        "Resolved",
        "everything that the spec and the annotations refer to exists",
    ];
    condition(draft, UNRESOLVED_REFERENCES, is_true, resolved)
}

/// Why its triggers or its period give no verdict, if a user has to act.
fn trigger_problem(verdict: &Verdict) -> Option<(&'static str, String)> {
    let reason = verdict.reason();
    let wrong = match verdict {
        // An empty list of triggers is visible in the object itself.
        Verdict::Unknown(reason) => !["NotPolled", "NoTriggers"].contains(&reason.name),
        Verdict::Busy(reason) => reason.name == Window::INVALID,
        Verdict::Idle(_) => false,
    };
    wrong.then(|| (reason.name, reason.message.clone()))
}

fn trigger_conditions(draft: &Draft<'_>) -> Vec<ConditionUpdate> {
    let verdict = &draft.facts.verdict;
    let reason = verdict.reason();
    // Before the first poll of this process the conditions of the last one stay.
    if reason.name == "NotPolled" {
        return Vec::new();
    }
    let outside = matches!(verdict, Verdict::Busy(_)) && reason.name == Window::CLOSED;
    let outside = outside.then(|| (reason.name, reason.message.clone()));
    let known = [
        "TriggersEvaluated",
        "the triggers report whether the service is in use",
    ];
    let within = ["InsidePeriod", "the service may sleep at this time"];
    let both = [
        condition(draft, TRIGGERS_UNKNOWN, trigger_problem(verdict), known),
        condition(draft, OUTSIDE_PERIOD, outside, within),
    ];
    both.into_iter().flatten().collect()
}

/// No pod became ready after the last wake.
const WAKE_FAILED: &str = "WakeFailed";

fn wake_failed(draft: &Draft<'_>) -> Option<ConditionUpdate> {
    let not_ready = draft.status.not_ready.as_ref();
    let failed = not_ready.filter(|it| it.failed && it.wake.is_some());
    let is_true = failed.map(|it| (it.cause().as_str(), it.message.clone()));
    let over = ["Woken", "a pod became ready after the last wake"];
    // Without a ready pod a wake that is in progress has not succeeded yet.
    let is_known = is_true.is_some() || draft.facts.has_ready_pod();
    is_known.then(|| condition(draft, WAKE_FAILED, is_true, over))?
}

/// Another controller that scales the target: one that is known by name, or one that scaled it back.
fn conflict(draft: &Draft<'_>) -> Option<ConditionUpdate> {
    let gone = [
        "NoOtherScaler",
        "no autoscaler or tool that the spec does not name scales the target",
    ];
    if let Some(reason) = &draft.facts.conflict {
        let is_true = (reason.name, reason.message.clone());
        return condition(draft, "Conflict", Some(is_true), gone);
    }
    let message = "the target was scaled up right after the service fell asleep; leave spec.replicas to the \
                   operator, or name the autoscaler";
    let is_true = || ("ScaledBack", message.to_owned());
    match draft.scaled_back {
        Some(scaled_back) => condition(draft, "Conflict", scaled_back.then(is_true), gone),
        // The conflict is over only after a sleep without one.
        None if was(draft, "Conflict", "ScaledBack") => None,
        None => condition(draft, "Conflict", None, gone),
    }
}

fn was(draft: &Draft<'_>, kind: &str, reason: &str) -> bool {
    let mut conditions = draft.status.conditions.iter();
    conditions.any(|it| it.type_ == kind && it.status == "True" && it.reason == reason)
}

/// Records what a service that is only observed would do, and what that would save.
pub(super) fn record_observation(draft: &mut Draft<'_>, goal: &Goal) {
    let facts = draft.facts;
    let replicas = facts.target.replicas().unwrap_or(0);
    let now = facts.now;
    let sleeps = facts.is_observed() && matches!(goal, Goal::Sleep(_)) && replicas > 0;
    let since = draft.status.would_sleep.clone();
    if let Some(over) = since
        .as_ref()
        .filter(|it| !sleeps || it.replicas != replicas)
    {
        let seconds = i64::try_from(facts.since(over.since).as_secs()).unwrap_or(i64::MAX);
        let saved = seconds.saturating_mul(over.replicas.into());
        let sum = draft.status.would_save_replica_seconds.unwrap_or(0);
        draft.status.would_save_replica_seconds = Some(sum.saturating_add(saved));
        draft.status.would_sleep = None;
    }
    if !sleeps {
        return;
    }
    if since.is_none() {
        let message = format!(
            "the service would sleep now, and {} would not run",
            display(replicas)
        );
        draft.events.push(EventDraft::normal("WouldSleep", message));
    }
    draft.status.would_sleep.get_or_insert(WouldSleep {
        since: now,
        replicas,
    });
    draft.would_sleep = Some(format!(
        "{}; asleep it would save {}",
        goal.reason(),
        display(replicas)
    ));
}

fn display(replicas: i32) -> String {
    let s = if replicas == 1 { "" } else { "s" };
    format!("{replicas} replica{s}")
}
