//! The part of a ProwJob that results are read from.

use std::collections::BTreeMap;

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use neap_kit::watch::CachedObject;
use serde::Deserialize;

use super::{ProwJobState, ProwJobStatus};
use crate::api::{annotations, labels, shared_text::SharedText};

/// The part of a ProwJob that results are read from.
///
/// A controller has a hundred thousand of them, so this is small: there is no pod and no metadata of a resource,
/// of the labels and annotations only those that say whose run it is, and what many runs have in common, such as
/// the name of their job, is kept once.
#[derive(Debug, Clone, PartialEq, Default, Deserialize)]
#[serde(from = "WatchedProwJob")]
pub struct ProwJobRun {
    name: Box<str>,
    namespace: SharedText,
    uid: Uid,
    version: u64,
    created: Moment,
    deleted: bool,
    kept: Box<[Kept]>,
    token: Box<str>,
    cluster: SharedText,
    job: SharedText,
    state: ProwJobState,
    started: Moment,
    completed: Moment,
    /// The address of its results up to the last slash, which all runs of a job have in common, and the rest.
    url: (SharedText, Box<str>),
}

/// A label or annotation of [`KEPT_LABELS`] or [`KEPT_ANNOTATIONS`], by its place there.
#[derive(Debug, Clone, PartialEq)]
struct Kept(u8, SharedText);

/// Mostly a number; any other text as it is.
#[derive(Debug, Clone, PartialEq)]
enum Uid {
    /// In bytes, which need no alignment.
    Uuid([u8; 16]),
    Other(Box<str>),
}

/// A time in seconds, which is all that the API server keeps of one; the earliest stands for none.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Moment(i64);

const KEPT_LABELS: [&str; 3] = [labels::VERIFY, labels::PAYLOAD, labels::ANALYSIS];
/// Without the token of the run, which no other run has.
const KEPT_ANNOTATIONS: [&str; 6] = [
    annotations::SOURCE,
    annotations::TO_TAG,
    annotations::FROM_TAG,
    annotations::ARCHITECTURE,
    annotations::PROW_JOB,
    annotations::RUN_JOB,
];

#[derive(Deserialize)]
struct WatchedProwJob {
    metadata: WatchedMetadata,
    #[serde(default)]
    spec: WatchedSpec,
    #[serde(default)]
    status: ProwJobStatus,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct WatchedMetadata {
    #[serde(default)]
    name: Box<str>,
    #[serde(default)]
    namespace: SharedText,
    #[serde(default)]
    uid: Box<str>,
    #[serde(default)]
    resource_version: String,
    creation_timestamp: Option<Time>,
    deletion_timestamp: Option<Time>,
    labels: Option<BTreeMap<String, String>>,
    annotations: Option<BTreeMap<String, String>>,
}

#[derive(Deserialize, Default)]
struct WatchedSpec {
    #[serde(default)]
    cluster: SharedText,
    #[serde(default)]
    job: SharedText,
}

impl From<WatchedProwJob> for ProwJobRun {
    fn from(watched: WatchedProwJob) -> Self {
        let WatchedProwJob {
            metadata,
            spec,
            status,
        } = watched;
        let labels = metadata.labels.unwrap_or_default();
        let mut annotations = metadata.annotations.unwrap_or_default();
        let token = annotations.remove(annotations::RUN_TOKEN);
        let all = KEPT_LABELS.iter().map(|name| labels.get(*name));
        let all = all.chain(KEPT_ANNOTATIONS.iter().map(|name| annotations.get(*name)));
        let kept = (0..).zip(all);
        let kept = kept.filter_map(|(place, value)| Some(Kept(place, value?.as_str().into())));
        let url = status.url.unwrap_or_default();
        let (common, own) = url.split_at(url.rfind('/').map_or(0, |slash| slash + 1));
        Self {
            name: metadata.name,
            namespace: metadata.namespace,
            uid: Uid::of(metadata.uid),
            version: metadata.resource_version.parse().unwrap_or_default(),
            created: Moment::of(metadata.creation_timestamp),
            deleted: metadata.deletion_timestamp.is_some(),
            kept: kept.collect(),
            token: token.unwrap_or_default().into(),
            cluster: spec.cluster,
            job: spec.job,
            state: status.state,
            started: Moment::of(status.start_time),
            completed: Moment::of(status.completion_time),
            url: (common.into(), own.into()),
        }
    }
}

impl ProwJobRun {
    /// Its name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Its namespace.
    pub fn namespace(&self) -> &str {
        &self.namespace
    }

    /// Its uid.
    pub fn uid(&self) -> String {
        self.uid.text()
    }

    /// When the object was created.
    pub fn created(&self) -> Option<Time> {
        self.created.time()
    }

    /// A label, if there is one.
    pub fn label(&self, name: &str) -> Option<&str> {
        self.kept(place(&KEPT_LABELS, name)?)
    }

    /// An annotation, if there is one.
    pub fn annotation(&self, name: &str) -> Option<&str> {
        if name == annotations::RUN_TOKEN {
            return Some(&*self.token).filter(|token| !token.is_empty());
        }
        self.kept(KEPT_LABELS.len() + place(&KEPT_ANNOTATIONS, name)?)
    }

    fn kept(&self, place: usize) -> Option<&str> {
        let mut kept = self.kept.iter();
        let found = kept.find(|kept| usize::from(kept.0) == place);
        found.map(|kept| &*kept.1)
    }

    /// The build cluster.
    pub fn cluster(&self) -> &str {
        &self.cluster
    }

    /// The name of the job.
    pub fn job(&self) -> &str {
        &self.job
    }

    /// Its state.
    pub fn state(&self) -> ProwJobState {
        self.state
    }

    /// When Prow created it.
    pub fn start_time(&self) -> Option<Time> {
        self.started.time()
    }

    /// When it ended.
    pub fn completion_time(&self) -> Option<Time> {
        self.completed.time()
    }

    /// Where its results are shown; empty until Prow says it.
    pub fn url(&self) -> String {
        let (common, own) = &self.url;
        format!("{}{own}", &**common)
    }
}

fn place(names: &[&str], name: &str) -> Option<usize> {
    names.iter().position(|kept| *kept == name)
}

impl Uid {
    fn of(text: Box<str>) -> Self {
        let digits = text.replace('-', "");
        let number = u128::from_str_radix(&digits, 16).unwrap_or_default();
        let uuid = Self::Uuid(number.to_be_bytes());
        if uuid.text() == *text {
            uuid
        } else {
            Self::Other(text)
        }
    }

    fn text(&self) -> String {
        let bytes = match self {
            Self::Uuid(bytes) => bytes,
            Self::Other(text) => return text.to_string(),
        };
        let mut text = format!("{:032x}", u128::from_be_bytes(*bytes));
        for place in [20, 16, 12, 8] {
            text.insert(place, '-');
        }
        text
    }
}

impl Default for Uid {
    fn default() -> Self {
        Self::Other(Box::default())
    }
}

impl Moment {
    const NONE: Self = Self(i64::MIN);

    fn of(time: Option<Time>) -> Self {
        time.map_or(Self::NONE, |time| Self(time.0.as_second()))
    }

    fn time(self) -> Option<Time> {
        Timestamp::from_second(self.0).ok().map(Time)
    }
}

impl Default for Moment {
    fn default() -> Self {
        Self::NONE
    }
}

impl CachedObject for ProwJobRun {
    fn cached_key(&self) -> (&str, &str) {
        (&self.namespace, &self.name)
    }

    fn has_uid(&self, uid: &str) -> bool {
        self.uid.text() == uid
    }

    fn has_uid_of(&self, other: &Self) -> bool {
        self.uid == other.uid
    }

    fn version_number(&self) -> u64 {
        self.version
    }

    fn is_terminating(&self) -> bool {
        self.deleted
    }

    /// Nothing that is not read is there.
    fn strip(&mut self) {}
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    const UID: &str = "0b5e2a1c-3d4f-11f0-8f3a-00000000000a";

    fn prow_job() -> Value {
        json!({
            "apiVersion": "prow.k8s.io/v1", "kind": "ProwJob",
            "metadata": {
                "name": "4.21.0-0.ci-aws", "namespace": "ci", "uid": UID, "resourceVersion": "1234",
                "creationTimestamp": "2026-01-02T03:04:05Z",
                "labels": {labels::VERIFY: "true", labels::PAYLOAD: "4.21.0-0.ci", "created-by-prow": "true"},
                "annotations": {
                    annotations::SOURCE: "ocp/4.21", annotations::PROW_JOB: "aws", annotations::RUN_TOKEN: "t0ken",
                    "other": "thing",
                },
            },
            "spec": {"cluster": "build05", "job": "periodic-aws", "pod_spec": {"containers": []}},
            "status": {
                "state": "success", "startTime": "2026-01-02T03:04:06Z", "completionTime": "2026-01-02T04:04:06Z",
                "url": "https://prow.example.com/view/gs/results/logs/periodic-aws/1900000000000000001",
                "description": "Job succeeded.",
            },
        })
    }

    fn run(object: &Value) -> ProwJobRun {
        serde_json::from_str(&object.to_string()).unwrap()
    }

    fn time(text: &str) -> Time {
        Time(text.parse().unwrap())
    }

    #[test]
    fn everything_that_is_read_of_a_run_is_kept_as_it_is() {
        let run = run(&prow_job());
        assert_eq!(run.cached_key(), ("ci", "4.21.0-0.ci-aws"));
        assert_eq!((run.name(), run.namespace()), ("4.21.0-0.ci-aws", "ci"));
        assert_eq!((run.uid(), run.version_number()), (UID.to_owned(), 1234));
        assert_eq!((run.cluster(), run.job()), ("build05", "periodic-aws"));
        assert_eq!(run.label(labels::PAYLOAD), Some("4.21.0-0.ci"));
        assert_eq!(run.label(labels::ANALYSIS), None);
        assert_eq!(run.annotation(annotations::SOURCE), Some("ocp/4.21"));
        assert_eq!(run.annotation(annotations::PROW_JOB), Some("aws"));
        assert_eq!(run.annotation(annotations::RUN_TOKEN), Some("t0ken"));
        assert_eq!(run.annotation(annotations::FROM_TAG), None);
        assert_eq!(run.label(annotations::SOURCE), None, "it is an annotation");
        assert_eq!(run.annotation(labels::PAYLOAD), None, "it is a label");
        assert_eq!(run.annotation("other"), None);
        assert_eq!(run.state(), ProwJobState::Success);
        assert_eq!(run.created(), Some(time("2026-01-02T03:04:05Z")));
        assert_eq!(run.start_time(), Some(time("2026-01-02T03:04:06Z")));
        assert_eq!(run.completion_time(), Some(time("2026-01-02T04:04:06Z")));
        let url = "https://prow.example.com/view/gs/results/logs/periodic-aws/1900000000000000001";
        assert_eq!(run.url(), url);
        assert!(!run.is_terminating());
    }

    #[test]
    fn a_run_of_which_nothing_is_known_yet_has_nothing() {
        let run = run(&json!({"metadata": {"name": "a", "labels": null}}));
        assert_eq!((run.name(), run.namespace()), ("a", ""));
        assert_eq!((run.uid(), run.version_number()), (String::new(), 0));
        assert_eq!(run.state(), ProwJobState::Unset);
        assert_eq!((run.created(), run.start_time()), (None, None));
        assert_eq!(run.completion_time(), None);
        assert_eq!(run.url(), "");
        assert_eq!(run.annotation(annotations::RUN_TOKEN), None);
    }

    #[test]
    fn a_uid_of_any_form_stays_the_text_that_it_is() {
        for text in [
            UID,
            "",
            "not-a-uuid",
            "0B5E2A1C-3D4F-11F0-8F3A-00000000000A",
            "0b5e2a1c3d4f11f08f3a00000000000a",
            "00000000-0000-0000-0000-000000000000",
            "+b5e2a1c-3d4f-11f0-8f3a-00000000000a",
        ] {
            assert_eq!(Uid::of(text.into()).text(), text);
        }
        assert!(matches!(Uid::of(UID.into()), Uid::Uuid(_)));
    }

    #[test]
    fn versions_of_an_object_are_told_from_another_of_its_name() {
        let first = run(&prow_job());
        let mut object = prow_job();
        object["metadata"]["resourceVersion"] = "1235".into();
        object["metadata"]["deletionTimestamp"] = "2026-01-02T05:00:00Z".into();
        let second = run(&object);
        assert!(second.has_uid_of(&first) && second.has_uid(UID));
        assert!(second.version_number() > first.version_number());
        assert!(second.is_terminating());
        object["metadata"]["uid"] = "0b5e2a1c-3d4f-11f0-8f3a-00000000000b".into();
        assert!(!run(&object).has_uid_of(&first));
    }

    #[test]
    fn what_runs_have_in_common_is_kept_once() {
        let mut other = prow_job();
        other["metadata"]["name"] = "4.21.0-0.ci-aws-1".into();
        let (one, other) = (run(&prow_job()), run(&other));
        for (one, other) in [
            (&one.job, &other.job),
            (&one.namespace, &other.namespace),
            (&one.url.0, &other.url.0),
            (&one.kept[1].1, &other.kept[1].1),
        ] {
            assert_eq!(one.as_ptr(), other.as_ptr(), "{one:?}");
        }
        assert!(
            size_of::<ProwJobRun>() <= 208,
            "{}",
            size_of::<ProwJobRun>()
        );
    }
}
