//! What no run may show, whatever struck it: judged by every write to the API server.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use neap_pocket::store::{Change, Event};
use neap_release::version;
use serde_json::Value;

use crate::registry::Pushes;

const SOURCE_OF_TAG: &str = "ImageStreamTag";
const TARGET: &str = "release.openshift.io/target";
const RELEASE_TAG: &str = "release.openshift.io/releaseTag";
const PHASE: &str = "release.openshift.io/phase";

/// What must hold for releases of a namespace.
#[derive(Debug, Clone, Copy)]
pub struct Releases {
    namespace: &'static str,
    /// The paths of objects that users of the workload delete.
    deleted_by_users: &'static [&'static str],
}

/// The state of the cluster while its writes are read.
#[derive(Default)]
struct Cluster {
    /// The tags of each ImageStream, and what they stand for.
    streams: BTreeMap<String, BTreeMap<String, Value>>,
    /// The Jobs that belong to a release: target and tag.
    jobs: BTreeMap<String, (String, String)>,
    payloads: BTreeSet<String>,
    /// What users do to be reminded of: streams that are gone.
    gone: BTreeSet<String>,
}

impl Releases {
    /// The rules for releases of `namespace`, whose users delete these objects.
    pub fn new(namespace: &'static str, deleted_by_users: &'static [&'static str]) -> Self {
        Self {
            namespace,
            deleted_by_users,
        }
    }

    /// What is wrong in these writes.
    pub fn problems(&self, history: &[Arc<Event>], pushes: &Pushes) -> Vec<String> {
        let mut problems = Vec::new();
        let mut cluster = Cluster::default();
        for event in history {
            if !event.path.starts_with(&format!("{}/", self.namespace)) {
                continue;
            }
            let object: Value = event.object.value();
            match &*event.resource {
                "release.openshift.io/releasepayloads" => {
                    payload(event, &object, pushes, &mut problems);
                }
                "image.openshift.io/imagestreams" if event.change != Change::Deleted => {
                    published(&cluster, event, &object, &mut problems);
                }
                _ => {}
            }
            if event.change == Change::Deleted {
                self.deleted(&cluster, event, &object, &mut problems);
            }
            cluster.apply(event, &object);
        }
        cluster.orphans(&mut problems);
        problems.sort();
        problems.dedup();
        problems
    }

    /// Garbage collection deletes nothing that a release needs.
    fn deleted(
        &self,
        cluster: &Cluster,
        event: &Event,
        object: &Value,
        problems: &mut Vec<String>,
    ) {
        let Some((target, tag)) = release_of(event, object) else {
            return;
        };
        let is_referenced = cluster
            .streams
            .get(&target)
            .is_some_and(|tags| tags.contains_key(&tag));
        if is_referenced && !self.deleted_by_users.contains(&&*event.path) {
            let (resource, path) = (&event.resource, &event.path);
            problems.push(format!(
                "{resource} {path} was deleted, and {target}:{tag} needs it"
            ));
        }
    }
}

/// The target and the tag that an object belongs to.
fn release_of(event: &Event, object: &Value) -> Option<(String, String)> {
    if &*event.resource == "release.openshift.io/releasepayloads" {
        let at = &object["spec"]["payloadCoordinates"];
        let text = |field: &str| at[field].as_str().map(str::to_owned);
        let target = format!("{}/{}", text("namespace")?, text("imagestreamName")?);
        return Some((target, text("imagestreamTagName")?));
    }
    let all = &object["metadata"]["annotations"];
    let text = |name: &str| all[name].as_str().map(str::to_owned);
    Some((text(TARGET)?, text(RELEASE_TAG)?))
}

fn holds(object: &Value, type_: &str) -> bool {
    let conditions = object["status"]["conditions"].as_array();
    let mut conditions = conditions.into_iter().flatten();
    conditions.any(|one| one["type"] == type_ && one["status"] == "True")
}

/// A verdict is one, follows an override, and is about an image that exists.
fn payload(event: &Event, object: &Value, pushes: &Pushes, problems: &mut Vec<String>) {
    let path = &event.path;
    let (accepted, rejected, failed) = (
        holds(object, "PayloadAccepted"),
        holds(object, "PayloadRejected"),
        holds(object, "PayloadFailed"),
    );
    if accepted && (rejected || failed) {
        problems.push(format!("{path} is accepted, and rejected or failed"));
    }
    let at = &object["spec"]["payloadCoordinates"];
    let text = |field: &str| at[field].as_str().unwrap_or_default();
    let repository = format!("{}/{}", text("namespace"), text("imagestreamName"));
    if accepted && !pushes.had(&repository, text("imagestreamTagName"), event.at) {
        problems.push(format!(
            "{path} is accepted, and its image was never pushed"
        ));
    }
    let is_current = object["status"]["observedGeneration"] == object["metadata"]["generation"];
    let created = object["status"]["releaseCreationJobResult"]["status"].as_str();
    let decided = object["spec"]["payloadOverride"]["override"].as_str();
    match (created, decided) {
        (Some("Failed"), _) if is_current && (accepted || !failed) => {
            problems.push(format!("{path} has no image and has not failed"));
        }
        (Some("Success"), Some("Accepted")) if is_current && !accepted => {
            problems.push(format!("{path} is not accepted, as its override says"));
        }
        (Some("Success"), Some("Rejected")) if is_current && !rejected => {
            problems.push(format!("{path} is not rejected, as its override says"));
        }
        _ => {}
    }
}

/// A tag that is published stands for an accepted release, and never moves to an older one.
fn published(cluster: &Cluster, event: &Event, object: &Value, problems: &mut Vec<String>) {
    let tags = tags_of(object);
    let before = cluster.streams.get(&*event.path);
    for (name, tag) in &tags {
        let Some(release) = published_release(tag) else {
            continue;
        };
        let place = format!("{}:{name}", event.path);
        let old = before
            .and_then(|before| before.get(name))
            .and_then(published_release);
        if old == Some(release) {
            continue;
        }
        if tags
            .get(release)
            .is_none_or(|tag| phase(tag) != Some("Accepted"))
        {
            problems.push(format!(
                "{place} was published as {release}, which is not accepted"
            ));
        }
        if let Some(old) = old
            && tags.contains_key(old)
            && version::newest_first(old, release).is_lt()
        {
            problems.push(format!(
                "{place} moved from {old} to {release}, which is older"
            ));
        }
    }
}

fn phase(tag: &Value) -> Option<&str> {
    tag["annotations"][PHASE].as_str()
}

fn published_release(tag: &Value) -> Option<&str> {
    let from = &tag["from"];
    from["name"]
        .as_str()
        .filter(|_| from["kind"] == SOURCE_OF_TAG)
}

fn tags_of(object: &Value) -> BTreeMap<String, Value> {
    let tags = object["spec"]["tags"].as_array();
    let tags = tags.into_iter().flatten();
    tags.filter_map(|tag| Some((tag["name"].as_str()?.to_owned(), tag.clone())))
        .collect()
}

impl Cluster {
    fn apply(&mut self, event: &Event, object: &Value) {
        let path = event.path.to_string();
        let is_gone = event.change == Change::Deleted;
        match &*event.resource {
            "image.openshift.io/imagestreams" if is_gone => {
                self.streams.remove(&path);
                self.gone.insert(path);
            }
            "image.openshift.io/imagestreams" => {
                self.streams.insert(path, tags_of(object));
            }
            "batch/jobs" if is_gone => {
                self.jobs.remove(&path);
            }
            "batch/jobs" => {
                if let Some(release) = release_of(event, object) {
                    self.jobs.insert(path, release);
                }
            }
            "release.openshift.io/releasepayloads" if is_gone => {
                self.payloads.remove(&path);
            }
            "release.openshift.io/releasepayloads" => {
                self.payloads.insert(path);
            }
            _ => {}
        }
    }

    /// A Job of a release has its payload, which records what became of it.
    fn orphans(&self, problems: &mut Vec<String>) {
        for (job, (target, tag)) in &self.jobs {
            let namespace = target.split('/').next().unwrap_or_default();
            if !self.payloads.contains(&format!("{namespace}/{tag}")) && !self.gone.contains(target)
            {
                problems.push(format!(
                    "the Job {job} is of {target}:{tag}, which has no payload"
                ));
            }
        }
    }
}
