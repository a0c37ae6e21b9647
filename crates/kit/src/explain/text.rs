//! The texts of an explanation.

use std::fmt;

use jiff::Timestamp;
use k8s_openapi::api::core::v1::Event;
use serde_json::Value;

use super::{Explanation, Facts, Verdict, conditions::ConditionSummary};
use crate::{
    clock::short_duration,
    operation::{Operation, OperationStatus, Phase},
};

pub(super) fn headline(facts: &Facts, verdict: Verdict, unreadable: &[String]) -> String {
    let Facts { kind, key, .. } = facts;
    let health = match verdict {
        Verdict::Healthy if !unreadable.is_empty() => "is healthy, as far as you may read",
        Verdict::Healthy => "is healthy",
        Verdict::Progressing => "is progressing",
        Verdict::Degraded => "is unhealthy",
        Verdict::Terminating => "is being deleted",
        Verdict::NotFound => "does not exist",
    };
    format!("{kind} {key} {health}")
}

pub(super) fn terminating(object: &Value, now: Timestamp) -> String {
    let since = object["metadata"]["deletionTimestamp"].as_str();
    let since = since.and_then(|time| time.parse::<Timestamp>().ok());
    if let Some(due) = since.filter(|due| *due > now) {
        return format!(
            "it is terminating, and has {} of its grace period left",
            duration_text(now, due)
        );
    }
    let ago = since.map_or(String::new(), |since| {
        format!(" for {}", duration_text(since, now))
    });
    let finalizers = object["metadata"]["finalizers"].as_array();
    let names: Vec<_> = finalizers
        .into_iter()
        .flatten()
        .filter_map(Value::as_str)
        .collect();
    if names.is_empty() {
        format!("its deletion is in progress{ago}, and no finalizer blocks it")
    } else {
        let names = names.join(", ");
        format!("its deletion is in progress{ago} and waits for its finalizers: {names}")
    }
}

pub(super) fn unobserved_generation(current: i64, observed: i64) -> String {
    format!(
        "its spec has generation {current}, and its controller has observed only generation {observed}"
    )
}

pub(super) fn condition(condition: &ConditionSummary, now: Timestamp) -> String {
    let ConditionSummary {
        type_,
        status,
        reason,
        message,
        since,
    } = condition;
    let reason = if reason.is_empty() {
        String::new()
    } else {
        format!(" ({reason})")
    };
    let since = since.map_or(String::new(), |since| {
        format!(" for {}", duration_text(since, now))
    });
    let message = if message.is_empty() {
        String::new()
    } else {
        format!(": {message}")
    };
    format!("{type_} is {status}{reason}{since}{message}")
}

pub(super) fn operation(operation: &Operation, now: Timestamp) -> String {
    let name = operation.metadata.name.as_deref().unwrap_or_default();
    let work = &operation.spec.work;
    let nothing = OperationStatus::default();
    let status = operation.status.as_ref().unwrap_or(&nothing);
    let message = status
        .message
        .as_deref()
        .unwrap_or("no step has started yet");
    let state = match status.phase {
        Phase::Pending | Phase::Running => "is running",
        Phase::Succeeded => "succeeded",
        Phase::Failed => "failed",
        Phase::Cancelled => "was cancelled",
    };
    let progress = status.progress.as_ref();
    let progress = progress.map_or(String::new(), |done| format!(", {done} steps done"));
    let due = status.steps.last().and_then(|step| step.due);
    let due = due.filter(|due| *due > now);
    let due = due.map_or(String::new(), |due| {
        format!("; next attempt in {}", duration_text(now, due))
    });
    format!("the operation {name} ({work}) {state}{progress}: {message}{due}")
}

pub(super) fn event(event: &Event, now: Timestamp) -> String {
    let reason = event.reason.as_deref().unwrap_or("Unknown");
    let message = event.message.as_deref().unwrap_or_default();
    let times = match event.count {
        Some(count) if count > 1 => format!(", {count} times"),
        _ => String::new(),
    };
    let last = last_seen(event);
    let last = last.map_or(String::new(), |last| {
        format!(", {} ago", duration_text(last, now))
    });
    format!("{reason}{times}{last}: {message}")
}

/// When the event was last observed.
pub(super) fn last_seen(event: &Event) -> Option<Timestamp> {
    let series = event.series.as_ref();
    let in_series = series.and_then(|series| series.last_observed_time.as_ref());
    let last = event.last_timestamp.as_ref().map(|time| time.0);
    let first = event.event_time.as_ref().map(|time| time.0);
    in_series.map(|time| time.0).or(last).or(first)
}

/// The time between two moments, such as `3m12s`.
pub(super) fn duration_text(from: Timestamp, to: Timestamp) -> String {
    short_duration(to.duration_since(from).as_secs())
}

impl fmt::Display for Explanation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.headline.replace('\n', "\n         "))?;
        let unreadable = match &self.unreadable[..] {
            [] => Vec::new(),
            kinds => vec![format!("{}: you may not read them", kinds.join(", "))],
        };
        let parts = [
            ("Why", &self.why),
            ("Events", &self.seen),
            ("Hidden", &unreadable),
            ("Do", &self.advice),
        ];
        for (title, lines) in parts {
            for (at, line) in lines.iter().enumerate() {
                let title = if at == 0 { title } else { "" };
                // A line of a message must not look like a line of the explanation.
                let line = line.replace('\n', "\n         ");
                write!(f, "\n{title:<8} {line}")?;
            }
        }
        Ok(())
    }
}
