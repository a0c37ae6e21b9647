//! An index of pods by label.

use std::{collections::BTreeMap, sync::Arc};

use k8s_openapi::{api::core::v1::Pod, apimachinery::pkg::apis::meta::v1::LabelSelector};
use kube::{
    ResourceExt,
    core::{Selector, SelectorExt},
};
use neap_kit::watch::{Cache, Index};

/// Finds the pods that have certain labels, checking only those that have the first of them.
#[derive(Debug, Clone)]
pub(crate) struct LabelIndex {
    by_label: Index<Pod>,
    all: Cache<Pod>,
}

impl LabelIndex {
    pub(crate) fn new(pods: &Cache<Pod>) -> Self {
        let labels = |pod: &Pod| {
            let namespace = pod.namespace().unwrap_or_default();
            let labels = pod.labels().iter();
            labels
                .map(|(key, value)| label(&namespace, key, value))
                .collect()
        };
        Self {
            by_label: Index::new(pods, labels),
            all: pods.clone(),
        }
    }

    /// The pods of a namespace that have all of `labels`.
    pub(crate) fn with(&self, namespace: &str, labels: &BTreeMap<String, String>) -> Vec<Arc<Pod>> {
        let mut found = match labels.first_key_value() {
            Some((key, value)) => self.by_label.get(&label(namespace, key, value)),
            None => self.all.list(namespace),
        };
        found.retain(|pod| has_all(&**pod, labels));
        found
    }

    /// The pods of a namespace that `selector` selects.
    pub(crate) fn selected(&self, namespace: &str, selector: &LabelSelector) -> Vec<Arc<Pod>> {
        let Ok(fits) = Selector::try_from(selector.clone()) else {
            return Vec::new();
        };
        let labels = selector.match_labels.clone().unwrap_or_default();
        let mut found = self.with(namespace, &labels);
        found.retain(|pod| fits.matches(pod.labels()));
        found
    }
}

/// Whether an object has all of `labels`.
pub(crate) fn has_all<K: ResourceExt>(object: &K, labels: &BTreeMap<String, String>) -> bool {
    let mut labels = labels.iter();
    labels.all(|(key, value)| object.labels().get(key) == Some(value))
}

/// The index key of a label in a namespace.
pub(crate) fn label(namespace: &str, key: &str, value: &str) -> String {
    format!("{namespace}/{key}={value}")
}
