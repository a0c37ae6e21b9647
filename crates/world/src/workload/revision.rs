//! The templates that a set has had, kept as ControllerRevisions.

use k8s_openapi::{
    api::{apps::v1::ControllerRevision, core::v1::PodTemplateSpec},
    apimachinery::pkg::{
        apis::meta::v1::{LabelSelector, ObjectMeta},
        runtime::RawExtension,
    },
};
use kube::{Resource, ResourceExt};
use neap_kit::{
    apply::{Error, Hand},
    key::Key,
    planted,
    watch::Cache,
    wiring::ECHO,
};
use serde_json::json;

use super::{adopt_and_release, claim, digest, owned_by};

/// On a pod: the revision it was made of.
pub(crate) const REVISION_HASH: &str = "controller-revision-hash";

/// What becomes of the revisions of an owner.
#[derive(Debug)]
pub(crate) struct Revisions<'a> {
    /// Its own, and those that are to be, by number.
    known: Vec<&'a ControllerRevision>,
    adopt: Vec<&'a ControllerRevision>,
    /// Of the present template, with the highest number.
    pub(crate) latest: ControllerRevision,
    step: Step,
    surplus: Vec<&'a ControllerRevision>,
}

/// What makes the latest one that.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Step {
    None,
    Make,
    /// An earlier one comes back.
    Raise,
}

impl<'a> Revisions<'a> {
    /// Sorts what is known for `owner`, whose present template is `latest`, as [`describe`] has it.
    pub(crate) fn sort<K: Resource<DynamicType = ()>>(
        found: &[&'a ControllerRevision],
        owner: &K,
        selector: &LabelSelector,
        mut latest: ControllerRevision,
    ) -> Self {
        let leaving = owner.meta().deletion_timestamp.is_some();
        let claims = claim(found, &owner.uid().unwrap_or_default(), selector, leaving);
        // Nobody lets go of his own past, whatever its labels are.
        let mut known = [claims.owned, claims.adopt.clone(), claims.release].concat();
        known.sort_by_key(|it| (it.revision, it.creation_timestamp(), it.name_any()));
        let highest = known.last().map_or(0, |it| it.revision);
        let equal = known.iter().rev().find(|it| it.data == latest.data);
        let step = match equal {
            Some(equal) => {
                latest = (*equal).clone();
                if equal.revision == highest {
                    Step::None
                } else {
                    Step::Raise
                }
            }
            // Whoever leaves has no use for it, and loses it to the garbage collection.
            None if leaving => Step::None,
            None => Step::Make,
        };
        if step != Step::None {
            latest.revision = highest + 1;
        }
        Self {
            known,
            adopt: claims.adopt,
            latest,
            step,
            surplus: Vec::new(),
        }
    }

    /// The revision of this name, if it is one of the owner's.
    pub(crate) fn named(&self, name: &str) -> Option<&'a ControllerRevision> {
        self.known.iter().copied().find(|it| it.name_any() == name)
    }

    /// Gives up the oldest ones beyond `limit`, not counting those that `is_used` says are needed.
    pub(crate) fn forget(
        &mut self,
        limit: Option<i32>,
        is_used: impl Fn(&ControllerRevision) -> bool,
    ) {
        let latest = self.latest.name_any();
        let mut past = self.known.clone();
        past.retain(|it| it.name_any() != latest && !is_used(it));
        let limit = usize::try_from(limit.unwrap_or(10)).unwrap_or(0);
        past.truncate(past.len().saturating_sub(limit));
        self.surplus = past;
    }

    /// Whether one is made or taken in.
    pub(crate) fn makes(&self) -> bool {
        self.step == Step::Make || !self.adopt.is_empty()
    }

    /// Makes it so. False if the name of the latest one is another's.
    pub(crate) async fn carry_out<K: Resource<DynamicType = ()>>(
        &self,
        hand: &Hand,
        owner: &K,
        cache: &Cache<ControllerRevision>,
    ) -> Result<bool, Error> {
        adopt_and_release(hand, owner, &self.adopt, &[]).await?;
        match self.step {
            Step::None => {}
            Step::Raise => drop(hand.replace(&self.latest).await?),
            Step::Make => match hand.create(&self.latest).await? {
                Some(made) => {
                    let version = made.resource_version().unwrap_or_default();
                    let _ = cache.shows(&version, ECHO).await;
                }
                None => return self.is_ours(cache),
            },
        }
        for revision in &self.surplus {
            hand.remove(*revision, None).await?;
        }
        Ok(true)
    }

    fn is_ours(&self, cache: &Cache<ControllerRevision>) -> Result<bool, Error> {
        let key = Key::of(&self.latest);
        match cache.get(&key) {
            Some(other) => Ok(other.data == self.latest.data),
            None if planted!(RevisionDisowned) => Ok(false),
            // Made a moment ago; the watch will show it.
            None => Err(Error::Late { key, waited: ECHO }),
        }
    }
}

/// The revision that `template` is of `owner`, under the name that follows from it and from how
/// often such a name was another's. `hash_label` is where its kind notes the hash.
pub(crate) fn describe<K: Resource<DynamicType = ()>>(
    owner: &K,
    template: &PodTemplateSpec,
    collisions: i32,
    hash_label: &str,
) -> ControllerRevision {
    let mut content = serde_json::to_value(template).unwrap_or_default();
    content["$patch"] = "replace".into();
    let data = json!({"spec": {"template": content}});
    let hash = digest(&format!("{data}{collisions}"));
    let meta = template.metadata.clone().unwrap_or_default();
    let mut labels = meta.labels.unwrap_or_default();
    labels.insert(hash_label.to_owned(), hash.clone());
    ControllerRevision {
        metadata: ObjectMeta {
            name: Some(format!("{}-{hash}", owner.name_any())),
            namespace: owner.namespace(),
            labels: Some(labels),
            annotations: Some(owner.annotations().clone()).filter(|notes| !notes.is_empty()),
            owner_references: Some(owned_by(owner).into_iter().collect()),
            ..ObjectMeta::default()
        },
        data: Some(RawExtension(data)),
        revision: 0,
    }
}

/// The template that was kept.
pub(crate) fn template_of(revision: &ControllerRevision) -> Option<PodTemplateSpec> {
    let mut template = revision.data.as_ref()?.0["spec"]["template"].clone();
    template.as_object_mut()?.remove("$patch");
    serde_json::from_value(template).ok()
}
