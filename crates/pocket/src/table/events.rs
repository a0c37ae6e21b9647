//! Rows of events of both APIs: the newer one has other names for the same fields.

use jiff::Timestamp;
use serde_json::Value;

use super::{
    age::since,
    read::{self, number, text, text_or},
};

/// The common fields of both APIs.
struct EventFields<'a> {
    object: &'a Value,
    message: &'a str,
    source: String,
    first: &'a str,
    last: &'a str,
    count: i64,
}

impl<'a> EventFields<'a> {
    fn of(event: &'a Value, newer: bool) -> Self {
        let pick = |new: &'static str, old: &'static str| if newer { new } else { old };
        let source = pick("/deprecatedSource", "/source");
        let at = text(event, "/eventTime");
        let first = text_or(
            event,
            pick("/deprecatedFirstTimestamp", "/firstTimestamp"),
            at,
        );
        let last = text_or(
            event,
            pick("/deprecatedLastTimestamp", "/lastTimestamp"),
            first,
        );
        let count = match number(event, pick("/deprecatedCount", "/count")) {
            0 => 1,
            count => count,
        };
        Self {
            object: &event[pick("regarding", "involvedObject")],
            message: text(event, pick("/note", "/message")).trim(),
            source: source_text(
                event,
                source,
                pick("/reportingController", "/reportingComponent"),
            ),
            first,
            last: text_or(event, "/series/lastObservedTime", last),
            count: read::number_or(event, "/series/count", count),
        }
    }
}

fn source_text(event: &Value, source: &str, reporter: &str) -> String {
    let component = text(event, &format!("{source}/component"));
    let (component, host) = if component.is_empty() {
        (text(event, reporter), text(event, "/reportingInstance"))
    } else {
        (component, text(event, &format!("{source}/host")))
    };
    if host.is_empty() {
        component.into()
    } else {
        format!("{component}, {host}")
    }
}

/// An event of the core API.
pub(super) fn event(object: &Value, now: Timestamp) -> Vec<Value> {
    cells(object, &EventFields::of(object, false), now)
}

/// An event of `events.k8s.io`.
pub(super) fn regarding_event(object: &Value, now: Timestamp) -> Vec<Value> {
    cells(object, &EventFields::of(object, true), now)
}

fn cells(object: &Value, event: &EventFields<'_>, now: Timestamp) -> Vec<Value> {
    let kind = text(event.object, "/kind").to_lowercase();
    let about = match text(event.object, "/name") {
        "" => kind,
        name => format!("{kind}/{name}"),
    };
    vec![
        since(event.last, now).into(),
        text(object, "/type").into(),
        text(object, "/reason").into(),
        about.into(),
        text(event.object, "/fieldPath").into(),
        event.source.as_str().into(),
        event.message.into(),
        since(event.first, now).into(),
        event.count.into(),
        read::name(object),
    ]
}
