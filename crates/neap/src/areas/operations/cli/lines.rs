//! Lines about operations and their steps.

use std::collections::BTreeMap;

use jiff::Timestamp;
use serde_json::Value;

use super::text;
use crate::symbols::Symbols;

/// The usual time of each step, in milliseconds. A step may occur several times in an operation: the key is its name
/// and the number of its earlier occurrences.
pub(super) type UsualTimes = BTreeMap<(String, usize), i64>;

/// The steps of an operation that were started, each with the number of earlier ones of its name.
pub(super) fn numbered(steps: &[Value]) -> impl Iterator<Item = (&Value, usize)> {
    steps.iter().enumerate().map(|(at, step)| {
        let earlier = steps[..at].iter();
        let same = earlier.filter(|it| text(it, "/name") == text(step, "/name"));
        (step, same.count())
    })
}

/// The steps that were started.
pub(super) fn steps(operation: &Value) -> &[Value] {
    let steps = operation
        .pointer("/timeline/steps")
        .and_then(Value::as_array);
    steps.map_or(&[], Vec::as_slice)
}

/// The steps as they are shown. A step that was under way when its operation ended does not run any more: an
/// operation that is cancelled leaves the record of its step as it was.
pub(super) fn shown_steps(operation: &Value) -> Vec<Value> {
    let mut steps = steps(operation).to_vec();
    let end = &operation["endTime"];
    if end.is_null() {
        return steps;
    }
    let interrupted = match text(operation, "/status") {
        "Canceled" | "Cancelled" => "cancelled",
        _ => "interrupted",
    };
    for step in steps.iter_mut().filter(|step| !has_ended(step)) {
        step["state"] = "Failed".into();
        step["cause"] = serde_json::json!({ "message": interrupted });
        if step["ended"].is_null() {
            step["ended"] = end.clone();
        }
    }
    steps
}

/// A time without fractions of a second, as it is shown.
pub(super) fn seconds_only(time: &str) -> String {
    let parsed = time.parse::<Timestamp>();
    parsed.map_or_else(|_| time.to_owned(), |it| format!("{it:.0}"))
}

pub(super) fn is_done(step: &Value) -> bool {
    matches!(text(step, "/state"), "Succeeded" | "Skipped" | "TimedOut")
}

/// Whether a step will not change any more.
pub(super) fn has_ended(step: &Value) -> bool {
    is_done(step) || text(step, "/state") == "Failed"
}

fn milliseconds(from: &str, to: &str) -> Option<i64> {
    let (from, to): (Timestamp, Timestamp) = (from.parse().ok()?, to.parse().ok()?);
    i64::try_from(to.duration_since(from).as_millis()).ok()
}

/// A time in seconds, or in milliseconds if it is shorter than one.
fn time(milliseconds: i64) -> String {
    match milliseconds {
        0..1000 => format!("{milliseconds} ms"),
        _ => format!("{} s", milliseconds / 1000),
    }
}

/// The median time of each step that succeeded.
pub(super) fn usual_times(operations: &[Value]) -> UsualTimes {
    let mut times: BTreeMap<_, Vec<i64>> = BTreeMap::new();
    for (step, occurrence) in operations.iter().flat_map(|it| numbered(steps(it))) {
        let took = milliseconds(text(step, "/began"), text(step, "/ended"));
        if let Some(took) = took.filter(|_| text(step, "/state") == "Succeeded") {
            let key = (text(step, "/name").to_owned(), occurrence);
            times.entry(key).or_default().push(took);
        }
    }
    let medians = times.into_iter().map(|(key, mut times)| {
        times.sort_unstable();
        (key, times[times.len() / 2])
    });
    medians.collect()
}

fn mark(step: &Value, symbols: Symbols) -> &'static str {
    match text(step, "/state") {
        "Succeeded" => symbols.done,
        "Failed" => symbols.failed,
        "TimedOut" => symbols.note,
        _ => symbols.dot,
    }
}

/// A line about a step: its time so far, its usual time, its attempts, and why it failed or what it waits for.
pub(super) fn line(
    (step, occurrence): (&Value, usize),
    usual: &UsualTimes,
    symbols: Symbols,
    now: &str,
) -> String {
    let name = text(step, "/name");
    let cause = text(step, "/cause/message");
    let notes = if text(step, "/state") == "Skipped" {
        format!("skipped: {cause}")
    } else {
        let (end, tail) = if has_ended(step) {
            (text(step, "/ended"), "")
        } else {
            (now, " so far")
        };
        let took = milliseconds(text(step, "/began"), end);
        let took = took.map(|took| format!("{}{tail}", time(took)));
        let usually = usual.get(&(name.to_owned(), occurrence));
        let usually = usually.map(|it| format!("usually {}", time(*it)));
        let attempts = step["attempts"].as_u64().filter(|count| *count > 1);
        let attempts = attempts.map(|count| format!("{count} attempts"));
        let cause = (!cause.is_empty()).then(|| cause.to_owned());
        let notes: Vec<_> = [took, usually, attempts, cause]
            .into_iter()
            .flatten()
            .collect();
        notes.join(", ")
    };
    let line = format!("  {} {name:<34} {notes}", mark(step, symbols));
    line.trim_end().to_owned()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn ended(name: &str, took: i64) -> Value {
        let ended = format!("2026-01-01T00:00:{:02}Z", 10 + took);
        json!({"name": name, "state": "Succeeded", "attempts": 1, "began": "2026-01-01T00:00:10Z", "ended": ended})
    }

    #[test]
    fn a_step_of_an_operation_that_ended_does_not_run() {
        let waiting = json!({
            "name": "pull", "state": "Waiting", "attempts": 1, "began": "2026-01-01T00:00:10Z",
            "cause": {"message": "the registry is busy"},
        });
        let operation = |end: Value| json!({"status": "Canceled", "endTime": end, "timeline": {"steps": [ended("plan", 2), waiting]}});
        let lines = |operation: &Value| -> Vec<_> {
            let now = "2026-01-01T00:00:17Z";
            let steps = shown_steps(operation);
            let line = |step| line(step, &UsualTimes::new(), Symbols::ASCII, now);
            numbered(&steps).map(line).collect()
        };
        let running = lines(&operation(Value::Null));
        assert!(
            running[1].contains("7 s so far, the registry is busy"),
            "{running:?}"
        );
        let cancelled = lines(&operation(json!("2026-01-01T00:00:14Z")));
        assert!(cancelled[1].starts_with("  x pull"), "{cancelled:?}");
        assert!(cancelled[1].ends_with("4 s, cancelled"), "{cancelled:?}");
        assert_eq!(cancelled[0], running[0]);
    }

    #[test]
    fn a_step_that_occurs_again_has_a_usual_time_of_its_own() {
        let mut short = ended("wait", 0);
        short["ended"] = "2026-01-01T00:00:10.250Z".into();
        let operation = json!({"timeline": {"steps": [short, ended("pull", 2), ended("wait", 9)]}});
        let usual = usual_times(std::slice::from_ref(&operation));
        let lines: Vec<_> = numbered(steps(&operation))
            .map(|step| line(step, &usual, Symbols::ASCII, ""))
            .collect();
        for (line, expected) in lines.iter().zip([
            "250 ms, usually 250 ms",
            "2 s, usually 2 s",
            "9 s, usually 9 s",
        ]) {
            assert!(line.ends_with(expected), "{line}");
        }
    }

    #[test]
    fn times_are_shown_in_seconds() {
        assert_eq!(
            seconds_only("2026-01-01T00:00:10.123456789Z"),
            "2026-01-01T00:00:10Z"
        );
        assert_eq!(seconds_only("2026-01-01T00:00:10Z"), "2026-01-01T00:00:10Z");
        assert_eq!(seconds_only(""), "");
    }

    #[test]
    fn a_step_that_runs_shows_its_time_and_its_usual_time() {
        let past: Vec<_> = [3, 9, 4]
            .map(|took| json!({"timeline": {"steps": [ended("pull", took)]}}))
            .into();
        let usual = usual_times(&past);
        assert_eq!(usual[&("pull".to_owned(), 0)], 4000);
        let running = json!({
            "name": "pull", "state": "Waiting", "attempts": 2,
            "began": "2026-01-01T00:00:10Z", "cause": {"message": "the registry is busy"},
        });
        let symbols = Symbols::ASCII;
        let line = line((&running, 0), &usual, symbols, "2026-01-01T00:00:17Z");
        assert!(
            line.ends_with("7 s so far, usually 4 s, 2 attempts, the registry is busy"),
            "{line}"
        );
    }
}
