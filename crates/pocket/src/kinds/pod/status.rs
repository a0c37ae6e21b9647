//! The status of a pod: addresses under two names, and what its writers may not say.

use serde_json::{Value, json};

use crate::{
    kinds::{
        fields::{list, number, set, text},
        names,
        path::Path,
    },
    status::Problems,
};

/// `podIP` and the first of `podIPs` are one thing under two names; the single one wins.
pub(super) fn default(pod: &mut Value) {
    let Some(status) = pod.get_mut("status") else {
        return;
    };
    let single = text(status, "podIP").to_owned();
    let first = list(status, "podIPs")
        .first()
        .map(|first| text(first, "ip").to_owned());
    match (single.as_str(), first) {
        ("", Some(first)) => set(status, "podIP", first),
        ("", None) => {}
        (single, None) => set(status, "podIPs", json!([{"ip": single}])),
        (single, Some(_)) => status["podIPs"][0]["ip"] = single.into(),
    }
}

pub(super) fn validate(new: &Value, old: &Value, problems: &mut Problems) {
    let (status, before) = (&new["status"], &old["status"]);
    let conditions = Path::At("status.conditions");
    for (index, condition) in list(status, "conditions").iter().enumerate() {
        for complaint in names::qualified(text(condition, "type")) {
            let path = conditions.index(index);
            problems.invalid(path.field("Type"), text(condition, "type"), complaint);
        }
    }
    let nominated = text(status, "nominatedNodeName");
    if !nominated.is_empty() {
        for complaint in names::subdomain(nominated) {
            problems.invalid("status.nominatedNodeName", nominated, complaint);
        }
    }
    if number(status, "observedGeneration") < 0 {
        let seen = number(status, "observedGeneration");
        problems.invalid(
            "status.observedGeneration",
            seen,
            "must be a non-negative integer",
        );
    }
    let (class, was) = (text(status, "qosClass"), text(before, "qosClass"));
    if !was.is_empty() && class != was {
        problems.invalid("status.qosClass", class, "field is immutable");
    }
    check_addresses(status, problems);
}

fn check_addresses(status: &Value, problems: &mut Problems) {
    let path = Path::At("status.podIPs");
    for (index, entry) in list(status, "podIPs").iter().enumerate() {
        crate::kinds::address::check_form(text(entry, "ip"), &path.index(index), problems);
    }
    let path = Path::At("status.hostIPs");
    let host = text(status, "hostIP");
    for (index, entry) in list(status, "hostIPs").iter().enumerate() {
        let place = path.index(index);
        if index == 0 && text(entry, "ip") != host {
            problems.invalid(
                place.field("ip"),
                text(entry, "ip"),
                "must be equal to `hostIP`",
            );
        }
        crate::kinds::address::check_form(text(entry, "ip"), &place, problems);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kinds::testing::texts;

    #[test]
    fn the_first_address_has_two_names() {
        for (sent, shown) in [
            (
                json!({"podIP": "1.1.1.1"}),
                json!({"podIP": "1.1.1.1", "podIPs": [{"ip": "1.1.1.1"}]}),
            ),
            (
                json!({"podIPs": [{"ip": "1.1.1.1"}]}),
                json!({"podIP": "1.1.1.1", "podIPs": [{"ip": "1.1.1.1"}]}),
            ),
        ] {
            let mut pod = json!({"status": sent});
            default(&mut pod);
            assert_eq!(pod["status"], shown);
        }
    }

    #[test]
    fn conditions_have_names_and_the_class_stays() {
        let new = json!({"status": {"qosClass": "Guaranteed", "conditions": [{"type": "a b"}]}});
        let old = json!({"status": {"qosClass": "BestEffort"}});
        let mut problems = Problems::new();
        validate(&new, &old, &mut problems);
        let told = texts(&problems);
        assert!(
            told[0].starts_with("status.conditions[0].Type: Invalid value: \"a b\""),
            "{told:?}"
        );
        assert_eq!(
            told[1],
            "status.qosClass: Invalid value: \"Guaranteed\": field is immutable"
        );
    }
}
