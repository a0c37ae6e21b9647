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
const JOBS: &str = "batch/jobs";
const PAYLOADS: &str = "release.openshift.io/releasepayloads";

/// What must hold for releases of a namespace.
#[derive(Debug, Clone, Copy, Default)]
pub struct Releases {
    namespace: &'static str,
    deleted_by_users: &'static [&'static str],
    published: Option<(&'static str, &'static str)>,
    collects: bool,
}

/// The state of the cluster while its writes are read.
#[derive(Default)]
struct Cluster {
    /// The tags of each ImageStream, and what they stand for.
    streams: BTreeMap<String, BTreeMap<String, Value>>,
    /// What belongs to a release, by resource and path: target and tag.
    of_releases: BTreeMap<(String, String), (String, String)>,
    /// ImageStreams that were deleted.
    gone: BTreeSet<String>,
}

impl Releases {
    /// The rules for releases of `namespace`.
    pub fn new(namespace: &'static str) -> Self {
        Self {
            namespace,
            ..Self::default()
        }
    }

    /// Users delete the objects at these paths, whether a release needs them or not.
    pub fn deleted_by_users(self, deleted_by_users: &'static [&'static str]) -> Self {
        Self {
            deleted_by_users,
            ..self
        }
    }

    /// At the end, this tag of an ImageStream stands for its newest accepted release.
    pub fn published(self, stream: &'static str, tag: &'static str) -> Self {
        Self {
            published: Some((stream, tag)),
            ..self
        }
    }

    /// At the end, nothing is left of releases that have expired.
    pub fn collected(self) -> Self {
        Self {
            collects: true,
            ..self
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
                PAYLOADS => {
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
        if self.collects {
            cluster.garbage(&mut problems);
        }
        if let Some((stream, tag)) = self.published {
            problems.extend(cluster.unpublished(stream, tag));
        }
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
    if &*event.resource == PAYLOADS {
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
            _ => {}
        }
        let place = (event.resource.to_string(), event.path.to_string());
        if is_gone {
            self.of_releases.remove(&place);
        } else if let Some(release) = release_of(event, object) {
            self.of_releases.insert(place, release);
        }
    }

    /// A Job of a release has its payload, which records what became of it.
    fn orphans(&self, problems: &mut Vec<String>) {
        for ((resource, path), (target, tag)) in &self.of_releases {
            let namespace = target.split('/').next().unwrap_or_default();
            let payload = (PAYLOADS.to_owned(), format!("{namespace}/{tag}"));
            let is_alone = !self.of_releases.contains_key(&payload) && !self.gone.contains(target);
            if resource == JOBS && is_alone {
                problems.push(format!(
                    "the Job {path} is of {target}:{tag}, which has no payload"
                ));
            }
        }
    }

    /// What belongs to releases that are gone is gone as well.
    fn garbage(&self, problems: &mut Vec<String>) {
        for ((resource, path), (target, tag)) in &self.of_releases {
            let tags = self.streams.get(target);
            if tags.is_some_and(|tags| !tags.contains_key(tag)) {
                problems.push(format!(
                    "{resource} {path} is left of {target}:{tag}, which is gone"
                ));
            }
        }
    }

    /// Why a tag does not stand for the newest accepted release.
    fn unpublished(&self, stream: &str, name: &str) -> Option<String> {
        let tags = self.streams.get(stream)?;
        let accepted = tags
            .iter()
            .filter(|(_, tag)| phase(tag) == Some("Accepted"))
            .map(|(tag, _)| tag.as_str());
        let newest = accepted.min_by(|a, b| version::newest_first(a, b));
        let published = tags.get(name).and_then(published_release);
        (published != newest || newest.is_none())
            .then(|| format!("{stream}:{name} is {published:?} at the end, and not {newest:?}"))
    }
}

#[cfg(test)]
mod tests {
    use jiff::Timestamp;
    use neap_pocket::store::Object;
    use serde_json::json;

    use super::*;

    const STREAMS: &str = "image.openshift.io/imagestreams";

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(second).unwrap()
    }

    fn event(
        second: i64,
        change: Change,
        resource: &str,
        name: &str,
        object: &Value,
    ) -> Arc<Event> {
        let mut object = object.clone();
        object["metadata"]["name"] = name.into();
        Arc::new(Event {
            change,
            resource: resource.into(),
            path: format!("default/{name}").into(),
            object: Arc::new(Object::pretended(&object, second.unsigned_abs())),
            previous: None,
            at: at(second),
        })
    }

    fn stream(tags: &[(&str, &str, &str)]) -> Value {
        let tags = tags.iter().map(|(name, phase, from)| {
            json!({
                "name": name, "annotations": {PHASE: phase},
                "from": {"kind": SOURCE_OF_TAG, "name": from},
            })
        });
        json!({"metadata": {}, "spec": {"tags": tags.collect::<Vec<_>>()}})
    }

    fn release(conditions: &[&str], created: &str, decided: &str) -> Value {
        let conditions = conditions
            .iter()
            .map(|it| json!({"type": it, "status": "True"}));
        json!({
            "metadata": {"generation": 1},
            "spec": {
                "payloadCoordinates": {
                    "namespace": "default", "imagestreamName": "release",
                    "imagestreamTagName": "4.1.0",
                },
                "payloadOverride": {"override": decided},
            },
            "status": {
                "observedGeneration": 1, "conditions": conditions.collect::<Vec<_>>(),
                "releaseCreationJobResult": {"status": created},
            },
        })
    }

    fn found(events: &[Arc<Event>]) -> String {
        let pushes = Pushes::from([("default/release:4.1.0", at(5))]);
        let problems = Releases::new("default").collected();
        problems.problems(events, &pushes).join("\n")
    }

    #[test]
    fn a_verdict_that_contradicts_itself_or_its_facts_is_told() {
        let judged = |second, conditions: &[&str], created, decided| {
            let payload = release(conditions, created, decided);
            found(&[event(second, Change::Added, PAYLOADS, "4.1.0", &payload)])
        };
        let accepted = ["PayloadAccepted"];
        assert_eq!(judged(6, &accepted, "Success", ""), "");
        for (found, wanted) in [
            (judged(4, &accepted, "Success", ""), "never pushed"),
            (
                judged(6, &["PayloadAccepted", "PayloadRejected"], "Success", ""),
                "and rejected",
            ),
            (judged(6, &accepted, "Failed", "Accepted"), "has not failed"),
            (judged(6, &[], "Success", "Accepted"), "is not accepted, as"),
            (
                judged(6, &accepted, "Success", "Rejected"),
                "is not rejected, as",
            ),
        ] {
            assert!(found.contains(wanted), "{found:?}: {wanted}");
        }
    }

    #[test]
    fn a_published_tag_that_moves_back_or_to_what_is_not_accepted_is_told() {
        let published = |first: &str, then: &str| {
            let of = |published: &str| {
                stream(&[
                    ("4.1.0", "Accepted", ""),
                    ("4.2.0", "Accepted", ""),
                    ("4.3.0", "Ready", ""),
                    ("latest", "", published),
                ])
            };
            found(&[
                event(1, Change::Added, STREAMS, "release", &of(first)),
                event(2, Change::Modified, STREAMS, "release", &of(then)),
            ])
        };
        let odd = published("4.1.0", "4.2.0");
        // The tags of the sample have a source of this kind without a name.
        assert!(!odd.contains("latest"), "{odd}");
        assert!(published("4.2.0", "4.1.0").contains("moved from 4.2.0 to 4.1.0"));
        assert!(published("4.2.0", "4.3.0").contains("4.3.0, which is not accepted"));
    }

    #[test]
    fn what_is_collected_too_early_or_never_is_told() {
        let job = json!({"metadata": {"annotations": {
            TARGET: "default/release", RELEASE_TAG: "4.1.0",
        }}});
        let kept = json!({"metadata": {}, "spec": {"tags": [{"name": "4.1.0"}]}});
        let none = json!({"metadata": {}, "spec": {"tags": []}});
        let payload = release(&[], "Success", "");
        let begin = [
            event(1, Change::Added, STREAMS, "release", &kept),
            event(2, Change::Added, PAYLOADS, "4.1.0", &payload),
            event(3, Change::Added, JOBS, "4.1.0", &job),
        ];
        assert_eq!(found(&begin), "");
        let deleted = event(4, Change::Deleted, JOBS, "4.1.0", &job);
        let early = found(&[&begin[..], &[deleted]].concat());
        assert!(early.contains("needs it"), "{early}");
        let forgotten = event(4, Change::Deleted, PAYLOADS, "4.1.0", &payload);
        let expired = event(4, Change::Modified, STREAMS, "release", &none);
        let left = found(&[&begin[..], &[expired, forgotten]].concat());
        assert!(left.contains("which is gone"), "{left}");
        assert!(left.contains("has no payload"), "{left}");
    }
}
