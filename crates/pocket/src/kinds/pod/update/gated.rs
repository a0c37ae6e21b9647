//! The node affinity of a gated pod: it may become narrower, and not otherwise.

use serde_json::{Value, json};

use crate::{
    kinds::{
        fields::{entries, is_set, list, part, set, take, text},
        path::Path,
        pod_spec::REQUIRED,
    },
    status::{FieldErrorKind, Problems},
};

const NODES: &str = "nodeAffinity";

/// Validates a change of the node selection.
pub(super) fn check(new: &Value, old: &Value, problems: &mut Problems) {
    let now = &new["nodeSelector"];
    if entries(old, "nodeSelector").any(|(key, value)| now.get(key) != Some(value)) {
        let detail = "only additions to spec.nodeSelector are allowed (no mutations or deletions)";
        problems.invalid("spec.nodeSelector", now.clone(), detail);
    }
    let [now, before] = [new, old].map(|spec| {
        let required = &spec["affinity"][NODES][REQUIRED];
        list(required, "nodeSelectorTerms")
    });
    if before.is_empty() {
        return;
    }
    let path = format!("spec.affinity.{NODES}.{REQUIRED}.nodeSelectorTerms");
    if now.len() != before.len() {
        let shown: Vec<String> = now.iter().map(written).collect();
        let shown = match shown.as_slice() {
            [] => "null".to_owned(),
            terms => format!("[{}]", terms.join(",")),
        };
        let detail = "no additions/deletions to non-empty NodeSelectorTerms list are allowed";
        problems.written(FieldErrorKind::Invalid, path, &shown, detail);
        return;
    }
    for (index, (now, before)) in now.iter().zip(before).enumerate() {
        if !only_adds(now, before) {
            let detail = "only additions are allowed (no mutations or deletions)";
            let path = Path::At(&path);
            problems.written(
                FieldErrorKind::Invalid,
                path.index(index),
                &written(now),
                detail,
            );
        }
    }
}

/// A term without requirements selects nothing, and must stay so.
fn only_adds(now: &Value, before: &Value) -> bool {
    let fields = ["matchExpressions", "matchFields"];
    if fields.iter().all(|field| list(before, field).is_empty()) {
        return fields.iter().all(|field| list(now, field).is_empty());
    }
    fields
        .iter()
        .all(|field| list(now, field).starts_with(list(before, field)))
}

/// A term as errors show it, with kube-apiserver's internal field names.
fn written(term: &Value) -> String {
    let expressions = |field: &str| {
        let all = list(term, field).iter().map(|expression| {
            let [key, operator] = ["key", "operator"].map(|field| json!(text(expression, field)));
            let values = &expression["values"];
            format!(r#"{{"Key":{key},"Operator":{operator},"Values":{values}}}"#)
        });
        match all.collect::<Vec<_>>().as_slice() {
            [] => "null".to_owned(),
            all => format!("[{}]", all.join(",")),
        }
    };
    let (labels, fields) = (expressions("matchExpressions"), expressions("matchFields"));
    format!(r#"{{"MatchExpressions":{labels},"MatchFields":{fields}}}"#)
}

/// Restores the old node affinity in the spec, as far as nothing else of its affinity has changed.
pub(super) fn restore_affinity(spec: &mut Value, old: &Value) {
    let before = &old["affinity"][NODES];
    if spec["affinity"][NODES] == *before {
        return;
    }
    let affinity = &spec["affinity"];
    let others = is_set(affinity, "podAffinity") || is_set(affinity, "podAntiAffinity");
    if !is_set(spec, "affinity") {
        set(spec, "affinity", json!({NODES: before}));
    } else if !is_set(old, "affinity") && !others {
        take(spec, "affinity");
    } else if let Some(affinity) = part(spec, "affinity") {
        take(affinity, NODES);
        if !before.is_null() {
            set(affinity, NODES, before.clone());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn errors(new: &Value, old: &Value) -> Vec<String> {
        let mut problems = Problems::new();
        check(new, old, &mut problems);
        problems.iter().map(ToString::to_string).collect()
    }

    fn nodes(terms: &Value) -> Value {
        json!({"affinity": {NODES: {REQUIRED: {"nodeSelectorTerms": terms}}}})
    }

    #[test]
    fn a_waiting_pod_may_be_told_more_precisely_where_to_go() {
        let only = "only additions to spec.nodeSelector are allowed (no mutations or deletions)";
        let refused =
            |shown: &str| vec![format!("spec.nodeSelector: Invalid value: {shown}: {only}")];
        let old = json!({"nodeSelector": {"a": "b"}});
        for (new, expected) in [
            (json!({"nodeSelector": {"a": "b", "c": "d"}}), vec![]),
            (json!({}), refused("null")),
            (json!({"nodeSelector": {"a": "c"}}), refused(r#"{"a":"c"}"#)),
        ] {
            assert_eq!(errors(&new, &old), expected);
        }
        assert_eq!(errors(&old, &json!({})), [""; 0]);
    }

    #[test]
    fn terms_that_nodes_are_chosen_by_only_grow() {
        let at = format!("spec.affinity.{NODES}.{REQUIRED}.nodeSelectorTerms");
        let zone = json!({"key": "zone", "operator": "Exists"});
        let disk = json!({"key": "disk", "operator": "In", "values": ["ssd"]});
        let term = |expressions: &[&Value]| json!({ "matchExpressions": expressions });
        let old = nodes(&json!([term(&[&zone])]));
        for (terms, expected) in [
            (json!([term(&[&zone, &disk])]), vec![]),
            (
                json!([term(&[&disk, &zone])]),
                vec![format!(
                    r#"{at}[0]: Invalid value: {{"MatchExpressions":[{{"Key":"disk","Operator":"In","Values":["ssd"]}},{{"Key":"zone","Operator":"Exists","Values":null}}],"MatchFields":null}}: only additions are allowed (no mutations or deletions)"#
                )],
            ),
            (
                json!([]),
                vec![format!(
                    "{at}: Invalid value: null: no additions/deletions to non-empty NodeSelectorTerms list are allowed"
                )],
            ),
        ] {
            assert_eq!(errors(&nodes(&terms), &old), expected);
        }
    }

    #[test]
    fn of_an_affinity_the_nodes_alone_are_given_back() {
        let chosen = nodes(&json!([{}]));
        let others = json!({"affinity": {"podAffinity": {}}});
        let mut both = chosen.clone();
        both["affinity"]["podAffinity"] = json!({});
        for (new, old, expected) in [
            (&chosen, json!({}), json!({})),
            (&both, json!({}), others.clone()),
            (&both, others.clone(), others.clone()),
            (&json!({}), chosen.clone(), chosen.clone()),
            (&others, both.clone(), both.clone()),
        ] {
            let mut spec = new.clone();
            restore_affinity(&mut spec, &old);
            assert_eq!(spec, expected, "{new} {old}");
        }
    }
}
