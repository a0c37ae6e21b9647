//! The words for it.

use std::fmt;

use jiff::Timestamp;
use k8s_openapi::api::core::v1::Event;
use serde_json::Value;

use super::{Explanation, Facts, Verdict, said::Said};
use crate::operation::{Operation, OperationStatus, Phase};

pub(super) fn headline(facts: &Facts, verdict: Verdict, hidden: &[String]) -> String {
    let Facts { kind, key, .. } = facts;
    let stands = match verdict {
        Verdict::Well if !hidden.is_empty() => "is as it should be, as far as may be seen",
        Verdict::Well => "is as it should be",
        Verdict::OnItsWay => "is being brought to its state",
        Verdict::Troubled => "is not as it should be",
        Verdict::Leaving => "is being deleted",
        Verdict::Missing => "does not exist",
    };
    format!("{kind} {key} {stands}")
}

pub(super) fn leaving(object: &Value, now: Timestamp) -> String {
    let since = object["metadata"]["deletionTimestamp"].as_str();
    let since = since.and_then(|time| time.parse::<Timestamp>().ok());
    if let Some(due) = since.filter(|due| *due > now) {
        return format!("it was told to end, and has {} left", span(now, due));
    }
    let ago = since.map_or(String::new(), |since| format!(" for {}", span(since, now)));
    let finalizers = object["metadata"]["finalizers"].as_array();
    let names: Vec<_> = finalizers
        .into_iter()
        .flatten()
        .filter_map(Value::as_str)
        .collect();
    if names.is_empty() {
        format!("its deletion is under way{ago}, and nobody holds it up")
    } else {
        let names = names.join(", ");
        format!("its deletion is under way{ago} and waits for whoever removes {names}")
    }
}

pub(super) fn unseen(wanted: i64, seen: i64) -> String {
    format!(
        "its spec was changed (generation {wanted}), and its controller has looked at generation {seen} only"
    )
}

pub(super) fn condition(said: &Said, now: Timestamp) -> String {
    let Said {
        kind,
        status,
        reason,
        message,
        since,
    } = said;
    let reason = if reason.is_empty() {
        String::new()
    } else {
        format!(" ({reason})")
    };
    let since = since.map_or(String::new(), |since| format!(" for {}", span(since, now)));
    let message = if message.is_empty() {
        String::new()
    } else {
        format!(": {message}")
    };
    format!("{kind} is {status}{reason}{since}{message}")
}

pub(super) fn operation(operation: &Operation, now: Timestamp) -> String {
    let name = operation.metadata.name.as_deref().unwrap_or_default();
    let work = &operation.spec.work;
    let nothing = OperationStatus::default();
    let status = operation.status.as_ref().unwrap_or(&nothing);
    let message = status.message.as_deref().unwrap_or("no step was begun yet");
    let stands = match status.phase {
        Phase::Pending | Phase::Running => "goes on",
        Phase::Succeeded => "succeeded",
        Phase::Failed => "failed",
        Phase::Cancelled => "was cancelled",
    };
    let progress = status.progress.as_ref();
    let progress = progress.map_or(String::new(), |done| format!(", {done} steps done"));
    let due = status.steps.last().and_then(|step| step.due);
    let due = due.filter(|due| *due > now);
    let due = due.map_or(String::new(), |due| {
        format!("; tried again in {}", span(now, due))
    });
    format!("the operation {name} ({work}) {stands}{progress}: {message}{due}")
}

pub(super) fn event(event: &Event, now: Timestamp) -> String {
    let reason = event.reason.as_deref().unwrap_or("Unknown");
    let message = event.message.as_deref().unwrap_or_default();
    let times = match event.count {
        Some(count) if count > 1 => format!(", {count} times"),
        _ => String::new(),
    };
    let last = last_seen(event);
    let last = last.map_or(String::new(), |last| format!(", {} ago", span(last, now)));
    format!("{reason}{times}{last}: {message}")
}

/// When it was last said.
pub(super) fn last_seen(event: &Event) -> Option<Timestamp> {
    let series = event.series.as_ref();
    let in_series = series.and_then(|series| series.last_observed_time.as_ref());
    let last = event.last_timestamp.as_ref().map(|time| time.0);
    let first = event.event_time.as_ref().map(|time| time.0);
    in_series.map(|time| time.0).or(last).or(first)
}

/// A length of time as people say it, in one unit.
pub(super) fn span(from: Timestamp, to: Timestamp) -> String {
    let seconds = to.duration_since(from).as_secs().max(0);
    match seconds {
        0..120 => format!("{seconds}s"),
        120..7_200 => format!("{}m", seconds / 60),
        7_200..172_800 => format!("{}h", seconds / 3_600),
        _ => format!("{}d", seconds / 86_400),
    }
}

impl fmt::Display for Explanation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.headline)?;
        let hidden = match &self.hidden[..] {
            [] => Vec::new(),
            kinds => vec![format!("{}: you may not read them", kinds.join(", "))],
        };
        let parts = [
            ("Why", &self.why),
            ("Seen", &self.seen),
            ("Unseen", &hidden),
            ("Do", &self.advice),
        ];
        for (title, lines) in parts {
            for (at, line) in lines.iter().enumerate() {
                let title = if at == 0 { title } else { "" };
                write!(f, "\n{title:<8} {line}")?;
            }
        }
        Ok(())
    }
}
