//! The ReplicaSets of a Deployment, live and desired.

use std::collections::BTreeMap;

use jiff::Timestamp;
use k8s_openapi::{
    api::{
        apps::v1::{Deployment, ReplicaSet, ReplicaSetSpec, ReplicaSetStatus},
        core::v1::PodTemplateSpec,
    },
    apimachinery::pkg::apis::meta::v1::ObjectMeta,
};
use kube::ResourceExt;

use super::{annotation, size::RolloutSize};
use crate::workload::{digest, owned_by};

/// The label that distinguishes the pods of one template from those of another.
pub(super) const TEMPLATE_HASH_LABEL: &str = "pod-template-hash";

/// A ReplicaSet with its desired state.
#[derive(Debug, Clone)]
pub(super) struct ReplicaSetPlan<'a> {
    /// The existing object; none if it is to be created.
    pub(super) live: Option<&'a ReplicaSet>,
    pub(super) desired: ReplicaSet,
}

impl ReplicaSetPlan<'_> {
    /// The desired number of pods.
    pub(super) fn replicas(&self) -> i32 {
        let spec = self.desired.spec.as_ref();
        spec.and_then(|spec| spec.replicas).unwrap_or(1)
    }

    pub(super) fn status(&self) -> ReplicaSetStatus {
        let status = self.live.and_then(|set| set.status.clone());
        status.unwrap_or_default()
    }

    /// The number of available pods that will remain: the status of a ReplicaSet that was just
    /// scaled down still counts the pods being deleted.
    pub(super) fn available(&self) -> i32 {
        let reported = self.status().available_replicas.unwrap_or(0);
        reported.min(self.replicas())
    }

    pub(super) fn created_at(&self) -> Option<Timestamp> {
        self.desired.creation_timestamp().map(|time| time.0)
    }

    pub(super) fn resize(&mut self, replicas: i32, size: RolloutSize) {
        if let Some(spec) = &mut self.desired.spec {
            spec.replicas = Some(replicas);
        }
        annotation::set_size_annotations(&mut self.desired, size);
    }
}

/// The ReplicaSet of the current template, and those of former ones, oldest first.
#[derive(Debug)]
pub(super) struct ReplicaSetPlans<'a> {
    pub(super) new: Option<ReplicaSetPlan<'a>>,
    pub(super) old: Vec<ReplicaSetPlan<'a>>,
}

impl<'a> ReplicaSetPlans<'a> {
    pub(super) fn classify(mut all: Vec<&'a ReplicaSet>, template: &PodTemplateSpec) -> Self {
        all.sort_by_key(|set| (set.creation_timestamp(), set.name_any()));
        let wanted = without_hash(template);
        let is_new = |set: &&ReplicaSet| {
            let template = set.spec.as_ref().and_then(|spec| spec.template.as_ref());
            template.is_some_and(|template| without_hash(template) == wanted)
        };
        let new = all.iter().position(is_new).map(|place| all.remove(place));
        let set = |live: &'a ReplicaSet| ReplicaSetPlan {
            live: Some(live),
            desired: live.clone(),
        };
        Self {
            new: new.map(set),
            old: all.into_iter().map(set).collect(),
        }
    }

    pub(super) fn all(&self) -> impl Iterator<Item = &ReplicaSetPlan<'a>> {
        self.new.iter().chain(&self.old)
    }

    pub(super) fn all_mut(&mut self) -> impl Iterator<Item = &mut ReplicaSetPlan<'a>> {
        self.new.iter_mut().chain(&mut self.old)
    }

    /// The desired number of pods of all ReplicaSets.
    pub(super) fn replicas(&self) -> i32 {
        self.all().map(ReplicaSetPlan::replicas).sum()
    }

    pub(super) fn available(&self) -> i32 {
        self.all().map(ReplicaSetPlan::available).sum()
    }

    /// The revision of the current template: one more than all former ones.
    pub(super) fn revision(&self) -> i64 {
        let former = self
            .old
            .iter()
            .map(|set| annotation::revision(&set.desired));
        former.max().unwrap_or(0) + 1
    }

    /// Sets on the new ReplicaSet what follows from the Deployment.
    pub(super) fn set_revision(&mut self, deployment: &Deployment) {
        let revision = self.revision();
        let Some(new) = &mut self.new else {
            return;
        };
        annotation::set_revision(&mut new.desired, deployment.annotations(), revision);
        let wanted = deployment.spec.as_ref();
        let seconds = wanted.and_then(|spec| spec.min_ready_seconds).unwrap_or(0);
        if let Some(spec) = &mut new.desired.spec
            && spec.min_ready_seconds.unwrap_or(0) != seconds
        {
            spec.min_ready_seconds = Some(seconds);
        }
    }

    /// Plans the ReplicaSet of the current template, with no pods yet.
    pub(super) fn plan_new(&mut self, deployment: &Deployment, size: RolloutSize) {
        let Some(desired) = new_set(deployment) else {
            return;
        };
        let mut new = ReplicaSetPlan {
            live: None,
            desired,
        };
        new.resize(0, size);
        self.new = Some(new);
        self.set_revision(deployment);
    }
}

fn new_set(deployment: &Deployment) -> Option<ReplicaSet> {
    let spec = deployment.spec.as_ref()?;
    let status = deployment.status.as_ref();
    let collisions = status.and_then(|status| status.collision_count);
    let hash = hash(&spec.template, collisions);
    let mut template = spec.template.clone();
    let labels = &mut template.metadata.get_or_insert_default().labels;
    let labels = labels.get_or_insert_default();
    labels.insert(TEMPLATE_HASH_LABEL.to_owned(), hash.clone());
    let labels = labels.clone();
    let mut selector = spec.selector.clone();
    let chosen = selector.match_labels.get_or_insert_default();
    chosen.insert(TEMPLATE_HASH_LABEL.to_owned(), hash.clone());
    Some(ReplicaSet {
        metadata: ObjectMeta {
            name: Some(format!("{}-{hash}", deployment.name_any())),
            namespace: deployment.namespace(),
            labels: Some(labels),
            annotations: Some(BTreeMap::new()),
            owner_references: Some(vec![owned_by(deployment)?]),
            ..ObjectMeta::default()
        },
        spec: Some(ReplicaSetSpec {
            min_ready_seconds: spec.min_ready_seconds,
            replicas: Some(0),
            selector,
            template: Some(template),
        }),
        status: None,
    })
}

/// The hash of the template and of the collision count.
fn hash(template: &PodTemplateSpec, collisions: Option<i32>) -> String {
    let template = serde_json::to_value(template).unwrap_or_default();
    let collisions = collisions.map(|count| count.to_string());
    digest(&format!("{template}{}", collisions.unwrap_or_default()))
}

/// The template without the label that distinguishes its pods.
pub(super) fn without_hash(template: &PodTemplateSpec) -> PodTemplateSpec {
    let mut template = template.clone();
    let mut meta = template.metadata.take().unwrap_or_default();
    if let Some(labels) = &mut meta.labels {
        labels.remove(TEMPLATE_HASH_LABEL);
    }
    meta.labels = meta.labels.filter(|labels| !labels.is_empty());
    meta.creation_timestamp = None;
    template.metadata = Some(meta);
    template
}
