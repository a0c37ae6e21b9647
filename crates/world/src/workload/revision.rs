//! The templates that a set has had, stored as ControllerRevisions.

use k8s_openapi::{
    api::{apps::v1::ControllerRevision, core::v1::PodTemplateSpec},
    apimachinery::pkg::{
        apis::meta::v1::{LabelSelector, ObjectMeta},
        runtime::RawExtension,
    },
};
use kube::{Resource, ResourceExt};
use neap_kit::{
    apply::{Error, Writer},
    builder::OWN_WRITE_TIMEOUT,
    key::Key,
    planted,
    watch::Cache,
};
use serde_json::json;

use super::{adopt_and_release, claim, digest, owned_by};

/// The label of a pod with the revision it was created from.
pub(crate) const REVISION_HASH: &str = "controller-revision-hash";

/// The revisions of an owner, and the planned changes to them.
#[derive(Debug)]
pub(crate) struct RevisionHistory<'a> {
    /// Owned and adopted ones, by number.
    known: Vec<&'a ControllerRevision>,
    adopt: Vec<&'a ControllerRevision>,
    /// The one of the current template, with the highest number.
    pub(crate) latest: ControllerRevision,
    step: RevisionStep,
    surplus: Vec<&'a ControllerRevision>,
}

/// The write that gives the revision of the current template the highest number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum RevisionStep {
    Nothing,
    Create,
    /// An earlier revision is current again and gets the highest number.
    Renumber,
}

impl<'a> RevisionHistory<'a> {
    /// Sorts the revisions found for `owner`, whose current template is `latest`, as
    /// [`new_revision`] returns it.
    pub(crate) fn plan<K: Resource<DynamicType = ()>>(
        found: &[&'a ControllerRevision],
        owner: &K,
        selector: &LabelSelector,
        mut latest: ControllerRevision,
    ) -> Self {
        let leaving = owner.meta().deletion_timestamp.is_some();
        let claims = claim(found, &owner.uid().unwrap_or_default(), selector, leaving);
        // An owner never releases its revisions, whatever their labels are.
        let mut known = [claims.owned, claims.adopt.clone(), claims.release].concat();
        known.sort_by_key(|it| (it.revision, it.creation_timestamp(), it.name_any()));
        let highest = known.last().map_or(0, |it| it.revision);
        let equal = known.iter().rev().find(|it| it.data == latest.data);
        let step = match equal {
            Some(equal) => {
                latest = (*equal).clone();
                if equal.revision == highest {
                    RevisionStep::Nothing
                } else {
                    RevisionStep::Renumber
                }
            }
            // An owner that is being deleted has no use for it, and would lose it to garbage
            // collection.
            None if leaving => RevisionStep::Nothing,
            None => RevisionStep::Create,
        };
        if step != RevisionStep::Nothing {
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

    pub(crate) fn get(&self, name: &str) -> Option<&'a ControllerRevision> {
        self.known.iter().copied().find(|it| it.name_any() == name)
    }

    /// Plans the deletion of the oldest ones beyond `limit`, not counting those for which `is_used`
    /// is true.
    pub(crate) fn truncate(
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

    /// Whether a revision is created or adopted.
    pub(crate) fn creates_or_adopts(&self) -> bool {
        self.step == RevisionStep::Create || !self.adopt.is_empty()
    }

    /// Executes the planned changes. False if the name of the latest revision is taken by another
    /// owner.
    pub(crate) async fn execute<K: Resource<DynamicType = ()>>(
        &self,
        writer: &Writer,
        owner: &K,
        cache: &Cache<ControllerRevision>,
    ) -> Result<bool, Error> {
        adopt_and_release(writer, owner, &self.adopt, &[]).await?;
        match self.step {
            RevisionStep::Nothing => {}
            RevisionStep::Renumber => drop(writer.replace(&self.latest).await?),
            RevisionStep::Create => match writer.create(&self.latest).await? {
                Some(made) => {
                    let version = made.resource_version().unwrap_or_default();
                    let _ = cache.wait_for_version(&version, OWN_WRITE_TIMEOUT).await;
                }
                None => return self.is_ours(cache),
            },
        }
        for revision in &self.surplus {
            writer.remove(*revision, None).await?;
        }
        Ok(true)
    }

    fn is_ours(&self, cache: &Cache<ControllerRevision>) -> Result<bool, Error> {
        let key = Key::of(&self.latest);
        match cache.get(&key) {
            Some(other) => Ok(other.data == self.latest.data),
            None if planted!(RevisionDisowned) => Ok(false),
            // Created a moment ago; the watch will deliver it.
            None => Err(Error::Timeout {
                key,
                waited: OWN_WRITE_TIMEOUT,
            }),
        }
    }
}

/// The revision of `owner` for `template`, under a name derived from the template and the collision
/// count. `hash_label` is the label with which the owner's kind marks the hash.
pub(crate) fn new_revision<K: Resource<DynamicType = ()>>(
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

/// The pod template stored in a revision.
pub(crate) fn template_of(revision: &ControllerRevision) -> Option<PodTemplateSpec> {
    let mut template = revision.data.as_ref()?.0["spec"]["template"].clone();
    template.as_object_mut()?.remove("$patch");
    serde_json::from_value(template).ok()
}
