//! `matchLabelKeys` and `mismatchLabelKeys`: a new pod's own label values are written into the
//! selectors of its placement rules, so that the scheduler need not look at its labels.

use serde_json::{Value, json};

use crate::kinds::{
    fields::{append, each_mut, list, part},
    pod_spec::{PREFERRED, REQUIRED},
};

/// Writes the values of a new pod's labels into its placement rules.
pub(super) fn settle(pod: &mut Value) {
    let labels = pod["metadata"]["labels"].clone();
    let Some(spec) = part(pod, "spec") else {
        return;
    };
    if let Some(affinity) = part(spec, "affinity") {
        for side in ["podAffinity", "podAntiAffinity"] {
            let Some(terms) = part(affinity, side) else {
                continue;
            };
            for term in each_mut(terms, PREFERRED) {
                if let Some(term) = part(term, "podAffinityTerm") {
                    select(term, &labels);
                }
            }
            for term in each_mut(terms, REQUIRED) {
                select(term, &labels);
            }
        }
    }
    for rule in each_mut(spec, "topologySpreadConstraints") {
        select(rule, &labels);
    }
}

/// A rule without a selector selects nothing, whatever its keys are.
fn select(rule: &mut Value, labels: &Value) {
    for (field, operator) in [("matchLabelKeys", "In"), ("mismatchLabelKeys", "NotIn")] {
        let keys = list(rule, field).iter().filter_map(Value::as_str);
        let asked: Vec<Value> = keys
            .filter_map(|key| {
                let value = labels.get(key)?;
                Some(json!({"key": key, "operator": operator, "values": [value]}))
            })
            .collect();
        if let Some(selector) = part(rule, "labelSelector")
            && !asked.is_empty()
        {
            append(selector, "matchExpressions", asked);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn selectors_get_the_pods_own_values() {
        for (field, rule, expected) in [
            ("matchLabelKeys", json!({"labelSelector": {}}), Some("In")),
            (
                "mismatchLabelKeys",
                json!({"labelSelector": {}}),
                Some("NotIn"),
            ),
            ("matchLabelKeys", json!({}), None),
        ] {
            let mut rule = rule;
            rule[field] = json!(["a", "none"]);
            let mut pod = json!({
                "metadata": {"labels": {"a": "b"}},
                "spec": {
                    "affinity": {
                        "podAffinity": {REQUIRED: [rule]},
                        "podAntiAffinity": {PREFERRED: [{"podAffinityTerm": rule}]},
                    },
                    "topologySpreadConstraints": [rule],
                },
            });
            settle(&mut pod);
            let selected = expected
                .map(|operator| json!([{"key": "a", "operator": operator, "values": ["b"]}]));
            for place in [
                format!("/spec/affinity/podAffinity/{REQUIRED}/0"),
                format!("/spec/affinity/podAntiAffinity/{PREFERRED}/0/podAffinityTerm"),
                "/spec/topologySpreadConstraints/0".to_owned(),
            ] {
                let found = pod.pointer(&format!("{place}/labelSelector/matchExpressions"));
                assert_eq!(found, selected.as_ref(), "{field} {place}");
            }
        }
    }
}
