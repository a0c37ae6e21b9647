//! The check of farms: every farm has what its programs need, and every component is ready.

use std::collections::{BTreeMap, BTreeSet};

use neap_kit::area::{CheckFacts, Finding};
use serde_json::Value;

use super::{AREA, state_word, status_of};
use crate::api::{FARM_LABEL, State};

/// What a farm has.
#[derive(Default)]
struct Farm {
    kinds: BTreeSet<String>,
    components: usize,
    ready: usize,
}

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
    let mut farms: BTreeMap<(String, String), Farm> = BTreeMap::new();
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
        let farm = farms.entry(farm).or_default();
        farm.kinds.insert(text("/kind").to_owned());
        farm.components += 1;
        farm.ready += usize::from(status_of(object).state == Some(State::Ready));
        findings.extend(component(object));
    }
    findings.extend(farms.iter().map(|(name, farm)| state(name, farm)));
    findings
}

/// Whether a farm has all programs, and whether they are ready.
fn state((namespace, label): &(String, String), farm: &Farm) -> Finding {
    let needed = [
        "BuildbarnStorage",
        "BuildbarnScheduler",
        "BuildbarnWorker",
        "BuildbarnFrontend",
    ];
    let missing: Vec<_> = needed
        .iter()
        .filter(|kind| !farm.kinds.contains(**kind))
        .copied()
        .collect();
    let name = if label.is_empty() {
        format!("the farm of namespace {namespace}")
    } else {
        format!("the farm {label} of namespace {namespace}")
    };
    let Farm {
        components, ready, ..
    } = farm;
    if !missing.is_empty() {
        let message = format!("{name} has no {}", missing.join(", no "));
        Finding::note("farm", message, "nothing builds there until it has")
    } else if ready < components {
        let message = format!("{name}: {ready} of {components} components are ready");
        Finding::note("farm", message, "the findings about its components say why")
    } else {
        Finding::ok(
            "farm",
            format!("{name} has all programs, and they are ready"),
        )
    }
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
    let hint = format!(
        "see neap explain {}/{} -n {}",
        text("/kind").to_lowercase(),
        text("/metadata/name"),
        text("/metadata/namespace")
    );
    Some(match status.state {
        Some(State::Creating | State::Reconciling) => Finding::note("component", message, &hint),
        _ => Finding::failed("component", message, &hint),
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn found(state: &str) -> Vec<Finding> {
        let kinds = [
            "BuildbarnStorage",
            "BuildbarnScheduler",
            "BuildbarnWorker",
            "BuildbarnFrontend",
        ];
        let objects = kinds.map(|kind| {
            json!({
                "kind": kind, "metadata": {"name": "one", "namespace": "builds"},
                "status": {"state": state},
            })
        });
        findings(&CheckFacts {
            objects: objects.to_vec(),
            unserved: Vec::new(),
            now: "2026-01-01T00:00:00Z".parse().unwrap(),
        })
    }

    #[test]
    fn a_farm_of_which_nothing_runs_is_not_as_it_should_be() {
        let findings = found("NotReady");
        let farm = findings.iter().find(|it| it.name == "farm").unwrap();
        assert!(farm.message.ends_with("0 of 4 components are ready"));
        assert_ne!(*farm, Finding::ok("farm", &*farm.message));
        let component = findings.iter().find(|it| it.name == "component").unwrap();
        let hint = "see neap explain buildbarnstorage/one -n builds";
        assert_eq!(component.hint, hint);
        let ready = found("Ready");
        let farm = ready.iter().find(|it| it.name == "farm").unwrap();
        assert_eq!(*farm, Finding::ok("farm", &*farm.message));
    }
}
