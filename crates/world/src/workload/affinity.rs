//! Node selectors, node affinity, taints and tolerations.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::{
    Node, NodeAffinity, NodeSelectorRequirement, NodeSelectorTerm, Pod, Taint, Toleration,
};
use kube::ResourceExt;

/// Whether the node matches the pod's node selector and its required affinity.
pub(crate) fn matches_node_affinity(pod: &Pod, node: &Node) -> bool {
    let spec = pod.spec.as_ref();
    let mut selector = spec
        .iter()
        .flat_map(|spec| spec.node_selector.iter().flatten());
    let selected = selector.all(|(key, value)| node.labels().get(key) == Some(value));
    let required = affinity(pod).and_then(|affinity| {
        affinity
            .required_during_scheduling_ignored_during_execution
            .as_ref()
    });
    selected
        && required.is_none_or(|required| {
            let mut terms = required.node_selector_terms.iter();
            terms.any(|term| term_fits(term, node))
        })
}

/// The weight of the pod's preferred affinity terms that the node matches.
pub(crate) fn preferred_affinity_weight(pod: &Pod, node: &Node) -> i32 {
    let preferred = affinity(pod).and_then(|affinity| {
        affinity
            .preferred_during_scheduling_ignored_during_execution
            .as_ref()
    });
    let fit = preferred
        .into_iter()
        .flatten()
        .filter(|term| term_fits(&term.preference, node));
    fit.map(|term| term.weight).sum()
}

fn affinity(pod: &Pod) -> Option<&NodeAffinity> {
    let affinity = pod.spec.as_ref()?.affinity.as_ref()?;
    affinity.node_affinity.as_ref()
}

/// An empty term matches no node.
fn term_fits(term: &NodeSelectorTerm, node: &Node) -> bool {
    let labels = term.match_expressions.iter().flatten();
    let fields = term.match_fields.iter().flatten();
    if labels.clone().next().is_none() && fields.clone().next().is_none() {
        return false;
    }
    let name = BTreeMap::from([("metadata.name".to_owned(), node.name_any())]);
    let mut labels = labels;
    let mut fields = fields;
    labels.all(|requirement| requirement_fits(requirement, node.labels()))
        && fields.all(|requirement| requirement_fits(requirement, &name))
}

fn requirement_fits(requirement: &NodeSelectorRequirement, of: &BTreeMap<String, String>) -> bool {
    let value = of.get(&requirement.key);
    let values = requirement.values.as_deref().unwrap_or_default();
    let compares = |with: fn(&i64, &i64) -> bool| {
        let bound = values.first().and_then(|bound| bound.parse().ok());
        let value = value.and_then(|value| value.parse().ok());
        bound
            .zip(value)
            .is_some_and(|(bound, value)| with(&value, &bound))
    };
    match requirement.operator.as_str() {
        "In" => value.is_some_and(|value| values.contains(value)),
        "NotIn" => value.is_none_or(|value| !values.contains(value)),
        "Exists" => value.is_some(),
        "DoesNotExist" => value.is_none(),
        "Gt" => compares(i64::gt),
        "Lt" => compares(i64::lt),
        _ => false,
    }
}

/// The first of the node's taints with one of these effects that the pod does not tolerate.
pub(crate) fn untolerated<'a>(pod: &Pod, node: &'a Node, effects: &[&str]) -> Option<&'a Taint> {
    let mut taints = taints(node).filter(|taint| effects.contains(&taint.effect.as_str()));
    taints.find(|taint| !tolerates(pod, taint))
}

/// The number of `PreferNoSchedule` taints that the pod does not tolerate.
pub(crate) fn soft_taint_count(pod: &Pod, node: &Node) -> usize {
    let soft = taints(node).filter(|taint| taint.effect == "PreferNoSchedule");
    soft.filter(|taint| !tolerates(pod, taint)).count()
}

fn taints(node: &Node) -> impl Iterator<Item = &Taint> {
    let spec = node.spec.iter();
    spec.flat_map(|spec| spec.taints.iter().flatten())
}

/// Whether the pod tolerates `taint`.
pub(crate) fn tolerates(pod: &Pod, taint: &Taint) -> bool {
    let spec = pod.spec.iter();
    let mut tolerations = spec.flat_map(|spec| spec.tolerations.iter().flatten());
    tolerations.any(|toleration| matches_taint(toleration, taint))
}

fn matches_taint(toleration: &Toleration, taint: &Taint) -> bool {
    let given = |text: &Option<String>| text.clone().filter(|text| !text.is_empty());
    let effect = given(&toleration.effect).is_none_or(|effect| effect == taint.effect);
    let key = given(&toleration.key).is_none_or(|key| key == taint.key);
    let value = match toleration.operator.as_deref() {
        Some("Exists") => true,
        None | Some("" | "Equal") => given(&toleration.value) == given(&taint.value),
        Some(_) => false,
    };
    effect && key && value
}
