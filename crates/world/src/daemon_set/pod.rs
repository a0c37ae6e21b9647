//! The pod of a DaemonSet on one node.

use k8s_openapi::api::{
    apps::v1::{DaemonSet, DaemonSetSpec},
    core::v1::{NodeSelector, NodeSelectorRequirement, NodeSelectorTerm, Pod, Toleration},
};
use kube::ResourceExt;

use crate::workload::{REVISION_HASH, from_template, owned_by, suffix};

/// The annotation that counts the templates, for clients older than revisions.
const TEMPLATE_GENERATION: &str = "deprecated.daemonset.template.generation";
const POD_GENERATION: &str = "pod-template-generation";
const NODE_NAME: &str = "metadata.name";

/// Taints that the pods of every DaemonSet tolerate, as (key, effect).
const TOLERATED: [(&str, &str); 6] = [
    ("node.kubernetes.io/not-ready", "NoExecute"),
    ("node.kubernetes.io/unreachable", "NoExecute"),
    ("node.kubernetes.io/disk-pressure", "NoSchedule"),
    ("node.kubernetes.io/memory-pressure", "NoSchedule"),
    ("node.kubernetes.io/pid-pressure", "NoSchedule"),
    ("node.kubernetes.io/unschedulable", "NoSchedule"),
];
const NO_NETWORK: (&str, &str) = ("node.kubernetes.io/network-unavailable", "NoSchedule");

/// The pod of the template with all its tolerations, not yet assigned to a node.
pub(super) fn candidate(set: &DaemonSet, spec: &DaemonSetSpec) -> Option<Pod> {
    let (owner, namespace) = (owned_by(set)?, set.namespace()?);
    let mut pod = from_template(&spec.template, &namespace, String::new(), owner);
    pod.metadata.generate_name = Some(format!("{}-", set.name_any()));
    if let Some(generation) = set.annotations().get(TEMPLATE_GENERATION).cloned() {
        pod.labels_mut()
            .insert(POD_GENERATION.to_owned(), generation);
    }
    let spec = pod.spec.get_or_insert_default();
    let no_network = Some(NO_NETWORK).filter(|_| spec.host_network == Some(true));
    let tolerations = spec.tolerations.get_or_insert_default();
    for (key, effect) in TOLERATED.into_iter().chain(no_network) {
        let toleration = Toleration {
            key: Some(key.to_owned()),
            operator: Some("Exists".to_owned()),
            effect: Some(effect.to_owned()),
            ..Toleration::default()
        };
        if !tolerations.contains(&toleration) {
            tolerations.push(toleration);
        }
    }
    Some(pod)
}

/// The candidate for one node, of the revision with this hash, under the first free name.
pub(super) fn on_node(candidate: &Pod, node: &str, hash: &str, taken: &[&Pod]) -> Pod {
    let mut pod = candidate.clone();
    let base = pod.metadata.generate_name.clone().unwrap_or_default();
    let owner = pod
        .owner_references()
        .first()
        .map(|owner| owner.uid.clone());
    let owner = owner.unwrap_or_default();
    // The prefix is shortened to leave space for the suffix.
    let short: String = base.chars().take(58).collect();
    let mut names = (0..).map(|number: u64| {
        let letters = suffix(&[&owner, node, hash, &number.to_string()]);
        format!("{short}{letters}")
    });
    pod.metadata.name = names.find(|name| {
        let name = Some(name);
        !taken.iter().any(|pod| pod.metadata.name.as_ref() == name)
    });
    pod.labels_mut()
        .insert(REVISION_HASH.to_owned(), hash.to_owned());
    let spec = pod.spec.get_or_insert_default();
    let affinity = spec.affinity.get_or_insert_default();
    let affinity = affinity.node_affinity.get_or_insert_default();
    // The template's own terms have selected the node; this term pins the pod to it.
    affinity.required_during_scheduling_ignored_during_execution = Some(NodeSelector {
        node_selector_terms: vec![NodeSelectorTerm {
            match_fields: Some(vec![NodeSelectorRequirement {
                key: NODE_NAME.to_owned(),
                operator: "In".to_owned(),
                values: Some(vec![node.to_owned()]),
            }]),
            match_expressions: None,
        }],
    });
    pod
}

/// The node that a pod is bound or pinned to.
pub(super) fn node_of(pod: &Pod) -> Option<&str> {
    let spec = pod.spec.as_ref()?;
    if let Some(node) = spec.node_name.as_deref().filter(|name| !name.is_empty()) {
        return Some(node);
    }
    let affinity = spec.affinity.as_ref()?.node_affinity.as_ref()?;
    let required = affinity
        .required_during_scheduling_ignored_during_execution
        .as_ref()?;
    let terms = required.node_selector_terms.iter();
    let mut fields = terms.flat_map(|term| term.match_fields.iter().flatten());
    let field = fields.find(|field| field.key == NODE_NAME)?;
    field.values.as_ref()?.first().map(String::as_str)
}

/// Whether the pod is of the revision with this hash.
pub(super) fn is_of(pod: &Pod, hash: &str) -> bool {
    pod.labels().get(REVISION_HASH).is_some_and(|it| it == hash)
}
