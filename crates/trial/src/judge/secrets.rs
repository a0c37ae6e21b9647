//! O13: nothing secret is told.

use std::sync::Arc;

use neap_pocket::store::Event;
use serde::Deserialize;
use serde_json::value::RawValue;

use super::{Oracle, Violation};
use crate::canary;

#[derive(Deserialize)]
struct Reported<'a> {
    #[serde(borrow)]
    status: Option<&'a RawValue>,
}

/// Objects that show what they must not: a Secret is shown by Secrets alone, and what a pod was
/// given by nobody's status and no Event.
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
    let reported = serde_json::from_slice::<Reported<'_>>(body).ok();
    let status = reported.and_then(|reported| reported.status);
    status.is_some_and(|status| canary::shows(status.get()))
}

/// Words of this kind, such as log lines, that show a canary.
pub(crate) fn told(what: &str, words: &[String]) -> Vec<Violation> {
    let told = words.iter().filter(|words| canary::shows(words));
    let told = told.map(|words| {
        let words: String = words.chars().take(300).collect();
        Violation::new(
            Oracle::Secret,
            what,
            format!("{what} shows something secret: {words}"),
        )
    });
    told.collect()
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
        let quiet = object(
            json!({"annotations": {"note": "x"}}),
            &json!({"message": "done"}),
        );
        assert!(written(&[event("/pods", quiet)]).is_empty());
        let loud = object(
            json!({}),
            &json!({"message": format!("failed with {secret}")}),
        );
        assert_eq!(written(&[event("/pods", loud)]).len(), 1);
    }
}
