//! O13: no secret is disclosed.

use std::sync::Arc;

use neap_pocket::store::Event;
use serde::Deserialize;
use serde_json::value::RawValue;

use super::{Oracle, Violation};
use crate::canary;

#[derive(Deserialize)]
struct StatusField<'a> {
    #[serde(borrow)]
    status: Option<&'a RawValue>,
}

/// Objects that disclose a secret. The value of a Secret may appear in Secrets only; a value given
/// to a pod may appear in no status and no Event.
pub(crate) fn written(history: &[Arc<Event>]) -> Vec<Violation> {
    let mut violations: Vec<Violation> = Vec::new();
    for event in history.iter().filter(|event| shows(event)) {
        let text = format!("{}/{} shows something secret", event.resource, event.path);
        let violation = Violation::new(Oracle::Secret, &event.resource, text);
        if !violations.contains(&violation) {
            violations.push(violation);
        }
    }
    violations
}

fn shows(event: &Event) -> bool {
    let body = event.object.json();
    if &*event.resource == "/secrets" {
        return false;
    }
    if canary::of_secret().is_in(body) {
        return true;
    }
    if !canary::in_spec().is_in(body) {
        return false;
    }
    if &*event.resource == "/events" {
        return true;
    }
    // An object that cannot be decoded may show anything.
    serde_json::from_slice::<StatusField<'_>>(body).map_or(true, |reported| {
        let status = reported.status;
        status.is_some_and(|status| canary::shows(status.get()))
    })
}

/// Texts of this kind, such as log lines, that contain a canary.
pub(crate) fn leaks(what: &str, words: &[String]) -> Vec<Violation> {
    let leaks = words.iter().filter(|words| canary::shows(words));
    let leaks = leaks.map(|words| {
        let words: String = words.chars().take(300).collect();
        Violation::new(
            Oracle::Secret,
            what,
            format!("{what} shows something secret: {words}"),
        )
    });
    leaks.collect()
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::super::history::tests::{event, object};
    use super::*;

    #[test]
    fn what_a_spec_keeps_to_itself_may_not_be_in_a_status() {
        let pod = canary::planted(&json!({"containers": [{"name": "main"}]}));
        let secret = pod.pointer("/containers/0/env/1/value");
        let secret = secret.and_then(Value::as_str).unwrap().to_owned();
        let given = || json!({"annotations": {"as declared": secret}});
        let quiet = || object(given(), &json!({"message": "done"}));
        assert!(written(&[event("/pods", quiet())]).is_empty());
        assert!(written(&[event("/secrets", quiet())]).is_empty());
        assert_eq!(written(&[event("/events", quiet())]).len(), 1);
        let loud = object(
            json!({}),
            &json!({"message": format!("failed with {secret}")}),
        );
        assert_eq!(written(&[event("/pods", loud)]).len(), 1);
    }
}
