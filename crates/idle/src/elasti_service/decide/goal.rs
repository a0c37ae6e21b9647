//! What a service should be doing, whatever it does at the moment.

use std::time::Duration;

use jiff::{SignedDuration, Timestamp};

use super::{draft::Draft, failing};
use crate::{
    api::{ElastiServiceStatus, Mode},
    elasti_service::facts::Facts,
    reason::Reason,
    target::Keda,
    trigger::Verdict,
};

/// The reason of a service that another one depends on, which woke.
pub(super) const NEEDED: &str = "Needed";

/// What a service should be doing, and why.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Goal {
    /// It has to be awake, and is woken if it is not.
    Awake(Reason),
    /// It has to sleep.
    Sleep(Reason),
    /// It stays as it is, at most for this time.
    Stay(Reason, Option<Duration>),
}

impl Goal {
    pub(super) fn reason(&self) -> &Reason {
        let (Self::Awake(reason) | Self::Sleep(reason) | Self::Stay(reason, _)) = self;
        reason
    }

    pub(super) fn requeue_after(&self) -> Option<Duration> {
        match self {
            Self::Stay(_, requeue_after) => *requeue_after,
            _ => None,
        }
    }
}

pub(super) fn goal(facts: &Facts, status: &ElastiServiceStatus) -> Goal {
    if let Some((reason, message)) = obstacle(facts) {
        return Goal::Awake(Reason::new(reason, message));
    }
    if let Some(left) = waiting_for_resolvers(facts) {
        let message = "no resolver is ready, which may be temporary";
        return Goal::Stay(Reason::new("ResolversNotReady", message), Some(left));
    }
    let awake = |reason, message: &str| Goal::Awake(Reason::new(reason, message));
    if facts.is_observed() && has_slept(status) {
        return awake("ObserveOnly", "the service is only observed");
    }
    if facts.switches.off {
        return awake("SwitchedOff", "no service of the namespace sleeps");
    }
    let kept = facts.kept_awake_until();
    if let Some(left) = kept.and_then(|until| facts.until(until, Duration::ZERO)) {
        let reason = Reason::new("KeptAwake", "a user keeps the service awake for a time");
        return if status.asleep_since.is_some() {
            Goal::Awake(reason)
        } else {
            Goal::Stay(reason, Some(left))
        };
    }
    let wake_requested = facts.wake_requested_at();
    let sleep_requested = facts.sleep_requested_at();
    let hand_off = status.hand_off.as_ref().map(|hand_off| hand_off.since);
    let asleep = status.asleep_since.or(hand_off);
    // For a service that is awake a request for a wake counts like any other request.
    if asleep.is_some() && wake_requested >= asleep && wake_requested > sleep_requested {
        return awake("WakeRequested", "a user requested that the service wake");
    }
    if let Some(wake) = &facts.dependent_wake
        && asleep.is_some_and(|asleep| wake.time >= asleep)
        && Some(wake.time) > sleep_requested
    {
        return awake(
            NEEDED,
            &format!("{} woke and depends on the service", wake.name),
        );
    }
    by_verdict(facts, status)
}

/// Whether there is something of a sleep that has to be undone.
pub(super) fn has_slept(status: &ElastiServiceStatus) -> bool {
    status.asleep_since.is_some() || status.mode == Some(Mode::Proxy)
}

fn by_verdict(facts: &Facts, status: &ElastiServiceStatus) -> Goal {
    let last_needed = facts.last_needed_at(status);
    let sleep_requested = facts.sleep_requested_at();
    if sleep_requested.is_some() && sleep_requested > last_needed {
        let reason = Reason::new("SleepRequested", "a user requested that the service sleep");
        return Goal::Sleep(reason);
    }
    match &facts.verdict {
        Verdict::Busy(reason) => Goal::Awake(reason.clone()),
        Verdict::Unknown(reason) => Goal::Stay(reason.clone(), None),
        Verdict::Idle(reason) => {
            if let Some(why) = facts.uncounted_requests() {
                return Goal::Stay(Reason::new("NotCounted", why), None);
            }
            let last_needed = last_needed.max(reason.last_request_at);
            match last_needed.and_then(|last| facts.until(last, facts.idle_time())) {
                Some(left) => {
                    let reason = Reason::new("CoolingDown", "the cooldown is not over");
                    Goal::Stay(reason, Some(left))
                }
                // A service that cannot serve is not idle, and its sleep would hide why.
                None => {
                    failing::sleepless(facts, status).unwrap_or_else(|| Goal::Sleep(reason.clone()))
                }
            }
        }
    }
}

/// Records the earliest time at which it may sleep, as far as the last recorded request shows. It is only
/// written with the request, or once its triggers report no use.
pub(super) fn record_estimate(draft: &mut Draft<'_>) {
    let facts = draft.facts;
    let runs = facts.target.replicas().is_some_and(|replicas| replicas > 0);
    let may_sleep = runs && !facts.is_observed() && obstacle(facts).is_none();
    let idle_since = match &facts.verdict {
        Verdict::Idle(reason) => Some(reason.last_request_at),
        Verdict::Busy(reason) if reason.last_request_at.is_some() => Some(None),
        Verdict::Busy(_) | Verdict::Unknown(_) => None,
    };
    let Some(last_request_at) = idle_since.filter(|_| may_sleep) else {
        draft.status.sleeps_after = None;
        return;
    };
    let last = facts.last_needed_at(&draft.status).max(last_request_at);
    let idle_time = SignedDuration::try_from(facts.idle_time()).unwrap_or(SignedDuration::MAX);
    let after = last.and_then(|last| last.checked_add(idle_time).ok());
    let after = after.max(facts.kept_awake_until());
    // The API keeps whole seconds where a person reads them; a later second is still true.
    let second = after.map(|after| after.as_second().saturating_add(1));
    draft.status.sleeps_after = second.and_then(|second| Timestamp::from_second(second).ok());
}

/// Why it cannot sleep, whether it is in use or not.
pub(super) fn obstacle(facts: &Facts) -> Option<(&'static str, String)> {
    let no_resolver = facts.resolvers.is_empty() && !facts.is_observed();
    if no_resolver && waiting_for_resolvers(facts).is_none() {
        let message = "no resolver is ready to answer for the service";
        return Some(("ResolverUnavailable", message.to_owned()));
    }
    if let Some(family) = facts
        .unserved_family()
        .filter(|_| !facts.resolvers.is_empty())
    {
        let message = format!(
            "the Service has {family} addresses and no resolver has; set ipFamilyPolicy of the \
             resolvers' Service to PreferDualStack"
        );
        return Some(("ResolverFamilyMissing", message));
    }
    if facts.is_headless() {
        let message = "the Service is headless (clusterIP: None), so that clients connect to the \
                       port of a pod, on which no resolver listens; name a Service with an address \
                       of its own";
        return Some(("ServiceHeadless", message.to_owned()));
    }
    if let Some(message) = facts.node_local() {
        return Some(("ServiceNodeLocal", message.to_owned()));
    }
    if let Err(exhausted) = &facts.ports {
        return Some(("PortsExhausted", exhausted.to_string()));
    }
    if facts.keda == Keda::Missing {
        let message = "the ScaledObject that spec.autoscaler names does not exist";
        return Some(("AutoscalerMissing", message.to_owned()));
    }
    None
}

/// The time left until the absence of resolvers counts. Meanwhile no service falls asleep, and those that
/// sleep are not woken: replacing the resolvers must not wake everything.
fn waiting_for_resolvers(facts: &Facts) -> Option<Duration> {
    let absent = facts
        .no_resolver_for
        .filter(|_| facts.resolvers.is_empty())?;
    let left = facts.timeouts.no_resolver.checked_sub(absent)?;
    Some(left).filter(|left| !left.is_zero() && !facts.is_observed())
}
