//! The check of farms: every farm has what its programs need, and every component is ready.

use std::collections::{BTreeMap, BTreeSet};

use neap_kit::area::{CheckFacts, Finding};
use serde_json::Value;

use super::{AREA, state_word, status_of};
use crate::api::{FARM_LABEL, State};

pub(super) fn findings(facts: &CheckFacts) -> Vec<Finding> {
    if !facts.serves("BuildbarnWorker") {
        let hint = "install it with kubectl apply -k deploy/farm/kustomize";
        let message = "the server does not serve the kinds of build farms";
        return vec![Finding::failed("kind", message, hint)];
    }
    let mut findings = vec![Finding::ok(
        "kind",
        "the server serves the kinds of build farms",
    )];
    let mut farms: BTreeMap<(String, String), BTreeSet<String>> = BTreeMap::new();
    let kinds: Vec<_> = AREA.kinds.iter().map(|kind| kind.resource.name).collect();
    let components = facts.objects.iter().filter(|object| {
        object["kind"]
            .as_str()
            .is_some_and(|kind| kinds.contains(&kind))
    });
    for object in components {
        let text = |pointer: &str| {
            object
                .pointer(pointer)
                .and_then(Value::as_str)
                .unwrap_or_default()
        };
        let farm = object["metadata"]["labels"][FARM_LABEL]
            .as_str()
            .unwrap_or_default();
        let farm = (text("/metadata/namespace").to_owned(), farm.to_owned());
        farms
            .entry(farm)
            .or_default()
            .insert(text("/kind").to_owned());
        findings.extend(component(object));
    }
    for ((namespace, farm), kinds) in &farms {
        let needed = [
            "BuildbarnStorage",
            "BuildbarnScheduler",
            "BuildbarnWorker",
            "BuildbarnFrontend",
        ];
        let missing: Vec<_> = needed
            .iter()
            .filter(|kind| !kinds.contains(**kind))
            .copied()
            .collect();
        let name = if farm.is_empty() {
            format!("the farm of namespace {namespace}")
        } else {
            format!("the farm {farm} of namespace {namespace}")
        };
        findings.push(if missing.is_empty() {
            Finding::ok("farm", format!("{name} has all programs"))
        } else {
            let message = format!("{name} has no {}", missing.join(", no "));
            Finding::note("farm", message, "nothing builds there until it has")
        });
    }
    findings
}

fn component(object: &Value) -> Option<Finding> {
    let status = status_of(object);
    if matches!(status.state, Some(State::Ready | State::Deleting)) {
        return None;
    }
    let text = |pointer: &str| {
        object
            .pointer(pointer)
            .and_then(Value::as_str)
            .unwrap_or_default()
    };
    let ready = status.conditions.iter().find(|it| it.type_ == "Ready");
    let why = ready.map_or(String::new(), |it| format!(": {}", it.message));
    let message = format!(
        "{} {}/{} is {}{why}",
        text("/kind"),
        text("/metadata/namespace"),
        text("/metadata/name"),
        state_word(status.state)
    );
    let hint = "see neap explain KIND/NAME";
    Some(match status.state {
        Some(State::Creating | State::Reconciling) => Finding::note("component", message, hint),
        _ => Finding::failed("component", message, hint),
    })
}
