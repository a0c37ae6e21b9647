//! The ReplicaSets of a Deployment, as they are and as they shall be.

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

use super::{annotation, size::Size};
use crate::workload::{digest, owned_by};

/// Tells the pods of one template from those of another.
pub(super) const HASH: &str = "pod-template-hash";

/// A set with what is to become of it.
#[derive(Debug, Clone)]
pub(super) struct Set<'a> {
    /// As it is; none if it is to be made.
    pub(super) live: Option<&'a ReplicaSet>,
    pub(super) goal: ReplicaSet,
}

impl Set<'_> {
    /// How many pods it shall have.
    pub(super) fn replicas(&self) -> i32 {
        let spec = self.goal.spec.as_ref();
        spec.and_then(|spec| spec.replicas).unwrap_or(1)
    }

    pub(super) fn status(&self) -> ReplicaSetStatus {
        let status = self.live.and_then(|set| set.status.clone());
        status.unwrap_or_default()
    }

    /// How many of its pods work, and stay so: what is told of a set that was just made smaller
    /// still counts those that go.
    pub(super) fn available(&self) -> i32 {
        let told = self.status().available_replicas.unwrap_or(0);
        told.min(self.replicas())
    }

    pub(super) fn made_at(&self) -> Option<Timestamp> {
        self.goal.creation_timestamp().map(|time| time.0)
    }

    pub(super) fn resize(&mut self, replicas: i32, size: Size) {
        if let Some(spec) = &mut self.goal.spec {
            spec.replicas = Some(replicas);
        }
        annotation::note_size(&mut self.goal, size);
    }
}

/// The set of the present template, and those of former ones, the oldest first.
#[derive(Debug)]
pub(super) struct Sets<'a> {
    pub(super) new: Option<Set<'a>>,
    pub(super) old: Vec<Set<'a>>,
}

impl<'a> Sets<'a> {
    pub(super) fn sort(mut all: Vec<&'a ReplicaSet>, template: &PodTemplateSpec) -> Self {
        all.sort_by_key(|set| (set.creation_timestamp(), set.name_any()));
        let wanted = plain(template);
        let is_new = |set: &&ReplicaSet| {
            let template = set.spec.as_ref().and_then(|spec| spec.template.as_ref());
            template.is_some_and(|template| plain(template) == wanted)
        };
        let new = all.iter().position(is_new).map(|place| all.remove(place));
        let set = |live: &'a ReplicaSet| Set {
            live: Some(live),
            goal: live.clone(),
        };
        Self {
            new: new.map(set),
            old: all.into_iter().map(set).collect(),
        }
    }

    pub(super) fn all(&self) -> impl Iterator<Item = &Set<'a>> {
        self.new.iter().chain(&self.old)
    }

    pub(super) fn all_mut(&mut self) -> impl Iterator<Item = &mut Set<'a>> {
        self.new.iter_mut().chain(&mut self.old)
    }

    /// How many pods all sets shall have.
    pub(super) fn replicas(&self) -> i32 {
        self.all().map(Set::replicas).sum()
    }

    pub(super) fn available(&self) -> i32 {
        self.all().map(Set::available).sum()
    }

    /// The revision that the present template has or gets: one more than all former ones.
    pub(super) fn revision(&self) -> i64 {
        let former = self.old.iter().map(|set| annotation::revision(&set.goal));
        former.max().unwrap_or(0) + 1
    }

    /// Gives the new set what follows from the Deployment.
    pub(super) fn number(&mut self, deployment: &Deployment) {
        let revision = self.revision();
        let Some(new) = &mut self.new else {
            return;
        };
        annotation::note_revision(&mut new.goal, deployment.annotations(), revision);
        let wanted = deployment.spec.as_ref();
        let seconds = wanted.and_then(|spec| spec.min_ready_seconds).unwrap_or(0);
        if let Some(spec) = &mut new.goal.spec
            && spec.min_ready_seconds.unwrap_or(0) != seconds
        {
            spec.min_ready_seconds = Some(seconds);
        }
    }

    /// Plans the set of the present template, with no pods yet.
    pub(super) fn make(&mut self, deployment: &Deployment, size: Size) {
        let Some(goal) = new_set(deployment) else {
            return;
        };
        let mut new = Set { live: None, goal };
        new.resize(0, size);
        self.new = Some(new);
        self.number(deployment);
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
    labels.insert(HASH.to_owned(), hash.clone());
    let labels = labels.clone();
    let mut selector = spec.selector.clone();
    let chosen = selector.match_labels.get_or_insert_default();
    chosen.insert(HASH.to_owned(), hash.clone());
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

/// Follows from the template, and from how often that name was already another's.
fn hash(template: &PodTemplateSpec, collisions: Option<i32>) -> String {
    let template = serde_json::to_value(template).unwrap_or_default();
    let collisions = collisions.map(|count| count.to_string());
    digest(&format!("{template}{}", collisions.unwrap_or_default()))
}

/// The template without what tells its pods from those of others.
pub(super) fn plain(template: &PodTemplateSpec) -> PodTemplateSpec {
    let mut template = template.clone();
    let mut meta = template.metadata.take().unwrap_or_default();
    if let Some(labels) = &mut meta.labels {
        labels.remove(HASH);
    }
    meta.labels = meta.labels.filter(|labels| !labels.is_empty());
    meta.creation_timestamp = None;
    template.metadata = Some(meta);
    template
}
