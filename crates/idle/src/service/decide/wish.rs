//! What a service should be doing, whatever it does.

use std::time::Duration;

use super::super::{
    facts::{Facts, SLEEP},
    verdict::{Because, Verdict},
};
use crate::{
    api::{ElastiServiceStatus, Mode},
    target::Keda,
};

/// What it should be doing, and why.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Wish {
    /// It is to be awake, and woken if it is not.
    Awake(Because),
    /// It is to sleep.
    Sleep(Because),
    /// It is to stay as it is, until this time at the latest.
    Stay(Because, Option<Duration>),
}

impl Wish {
    pub(super) fn because(&self) -> &Because {
        let (Self::Awake(because) | Self::Sleep(because) | Self::Stay(because, _)) = self;
        because
    }

    pub(super) fn again(&self) -> Option<Duration> {
        match self {
            Self::Stay(_, again) => *again,
            _ => None,
        }
    }
}

pub(super) fn wish(facts: &Facts<'_>, status: &ElastiServiceStatus) -> Wish {
    if let Some((reason, message)) = problem(facts) {
        return Wish::Awake(Because::new(reason, message));
    }
    if let Some(left) = deserted(facts) {
        let because = "no resolver is ready, which may be only for a moment";
        return Wish::Stay(Because::new("ResolverAway", because), Some(left));
    }
    let awake = |reason, sentence: &str| Wish::Awake(Because::new(reason, sentence));
    if facts.observed() && slept(status) {
        return awake("ObserveOnly", "it is only observed");
    }
    if facts.switches.off {
        return awake("SwitchedOff", "nothing sleeps in its namespace");
    }
    let kept = facts.kept_awake_until();
    if let Some(left) = kept.and_then(|until| facts.until(until, Duration::ZERO)) {
        let because = Because::new("KeptAwake", "it is kept awake for a time");
        return if status.asleep_since.is_some() {
            Wish::Awake(because)
        } else {
            Wish::Stay(because, Some(left))
        };
    }
    let (asked, told) = (facts.asked(), facts.heard(SLEEP));
    let begun = status.hand_off.as_ref().map(|hand_off| hand_off.since);
    let begun = status.asleep_since.or(begun);
    // What is awake already was asked for like by anybody else.
    if begun.is_some() && asked >= begun && asked > told {
        return awake("Asked", "somebody asked for it to wake");
    }
    if let Some(needed) = &facts.needed
        && begun.is_some_and(|begun| needed.since >= begun)
        && Some(needed.since) > told
    {
        return awake("Needed", &format!("{} woke, and needs it", needed.by));
    }
    by_verdict(facts, status)
}

/// Whether anything was made for it that has to be taken away again.
pub(super) fn slept(status: &ElastiServiceStatus) -> bool {
    status.asleep_since.is_some() || status.mode == Some(Mode::Proxy)
}

fn by_verdict(facts: &Facts<'_>, status: &ElastiServiceStatus) -> Wish {
    let last = facts.last_asked(status);
    let told = facts.heard(SLEEP);
    if told.is_some() && told > last {
        let because = Because::new("Told", "somebody asked for it to sleep");
        return Wish::Sleep(because);
    }
    match &facts.verdict {
        Verdict::Busy(because) => Wish::Awake(because.clone()),
        Verdict::Unknown(because) => Wish::Stay(because.clone(), None),
        Verdict::Idle(because) => {
            if let Some(why) = facts.uncounted() {
                return Wish::Stay(Because::new("NotCounted", why), None);
            }
            let last = last.max(because.asked);
            match last.and_then(|last| facts.until(last, facts.quiet())) {
                Some(left) => {
                    let because = Because::new("CoolingDown", "somebody asked for it not long ago");
                    Wish::Stay(because, Some(left))
                }
                None => Wish::Sleep(because.clone()),
            }
        }
    }
}

/// Why it cannot sleep, whoever asks for it or does not.
pub(super) fn problem(facts: &Facts<'_>) -> Option<(&'static str, String)> {
    let alone = facts.resolvers.is_empty() && !facts.observed();
    if alone && deserted(facts).is_none() {
        let message = "no resolver is ready to answer for it";
        return Some(("ResolverUnavailable", message.to_owned()));
    }
    if let Some(family) = facts
        .unanswered_family()
        .filter(|_| !facts.resolvers.is_empty())
    {
        let message = format!(
            "the Service has {family} addresses and no resolver has; set ipFamilyPolicy of the \
             resolvers' Service to PreferDualStack"
        );
        return Some(("ResolverFamilyMissing", message));
    }
    if facts.headless() {
        let message = "the Service is headless (clusterIP: None), so that clients dial the port of \
                       a pod, where no resolver listens; name a Service with an address of its own";
        return Some(("ServiceHeadless", message.to_owned()));
    }
    if let Some(message) = facts.node_local() {
        return Some(("ServiceNodeLocal", message.to_owned()));
    }
    if let Err(exhausted) = &facts.ports {
        return Some(("PortsExhausted", exhausted.to_string()));
    }
    if facts.keda == Keda::Missing {
        let message = "the ScaledObject that spec.autoscaler names is not there";
        return Some(("AutoscalerMissing", message.to_owned()));
    }
    None
}

/// How long resolvers may still be away before that counts. Nothing falls asleep meanwhile, and what
/// sleeps is left so: who replaces its resolvers does not mean to wake everything.
fn deserted(facts: &Facts<'_>) -> Option<Duration> {
    let away = facts.deserted.filter(|_| facts.resolvers.is_empty())?;
    let left = facts.patience.deserted.checked_sub(away)?;
    Some(left).filter(|left| !left.is_zero() && !facts.observed())
}
