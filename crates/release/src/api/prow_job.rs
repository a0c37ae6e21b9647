//! ProwJobs: whole ones, which are created, and the part of them that results are read from.

use std::borrow::Cow;

use k8s_openapi::{
    NamespaceResourceScope,
    apimachinery::pkg::apis::meta::v1::{ObjectMeta, Time},
};
use kube::{CustomResource, Resource};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::{annotations, labels};

/// What Prow runs.
#[derive(CustomResource, Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[kube(
    group = "prow.k8s.io",
    version = "v1",
    kind = "ProwJob",
    plural = "prowjobs",
    namespaced,
    status = "ProwJobStatus",
    derive = "PartialEq",
    derive = "Default",
    schema = "disabled"
)]
pub struct ProwJobSpec {
    /// The kind of job; ours are `periodic`.
    #[serde(rename = "type", default, skip_serializing_if = "String::is_empty")]
    pub type_: String,
    /// What runs it, such as `kubernetes`.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub agent: String,
    /// The build cluster.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub cluster: String,
    /// The namespace of the pod.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub namespace: String,
    /// The name of the job.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub job: String,
    /// The pod.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pod_spec: Option<Value>,
    /// Everything else that the periodic has.
    #[serde(flatten)]
    pub other: Map<String, Value>,
}

/// How a ProwJob is doing.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ProwJobStatus {
    /// When it was created.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub start_time: Option<Time>,
    /// When it began to run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pending_time: Option<Time>,
    /// When it ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub completion_time: Option<Time>,
    /// Its state.
    #[serde(default)]
    pub state: ProwJobState,
    /// For people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// Where its results are shown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub url: Option<String>,
}

/// The state of a ProwJob.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ProwJobState {
    /// None yet.
    #[default]
    #[serde(rename = "")]
    Unset,
    /// Prow looks for a build cluster.
    Scheduling,
    /// Prow knows it.
    Triggered,
    /// It runs.
    Pending,
    /// It passed.
    Success,
    /// It failed.
    Failure,
    /// It was ended.
    Aborted,
    /// Prow could not run it.
    Error,
    /// A state of no known name.
    #[serde(other)]
    Unknown,
}

/// The part of a ProwJob that results are read from. There are many, so it keeps nothing else: no pod, and
/// of the labels and annotations only those that say whose run it is.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(from = "WatchedProwJob")]
pub struct ProwJobRun {
    /// Name, namespace and uid. Labels and annotations are not there: a map for each would be larger than
    /// everything else that is kept.
    pub metadata: ObjectMeta,
    /// What is left of labels and annotations.
    kept: Box<[(&'static str, Box<str>)]>,
    /// The build cluster.
    pub cluster: Box<str>,
    /// The name of the job.
    pub job: Box<str>,
    /// How it is doing.
    pub status: ProwJobStatus,
}

#[derive(Deserialize)]
struct WatchedProwJob {
    metadata: ObjectMeta,
    #[serde(default)]
    spec: WatchedSpec,
    #[serde(default)]
    status: ProwJobStatus,
}

#[derive(Deserialize, Default)]
struct WatchedSpec {
    #[serde(default)]
    cluster: Box<str>,
    #[serde(default)]
    job: Box<str>,
}

const KEPT_LABELS: [&str; 3] = [labels::VERIFY, labels::PAYLOAD, labels::ANALYSIS];
const KEPT_ANNOTATIONS: [&str; 7] = [
    annotations::SOURCE,
    annotations::TO_TAG,
    annotations::FROM_TAG,
    annotations::ARCHITECTURE,
    annotations::PROW_JOB,
    annotations::RUN_JOB,
    annotations::RUN_TOKEN,
];

impl From<WatchedProwJob> for ProwJobRun {
    fn from(watched: WatchedProwJob) -> Self {
        let WatchedProwJob {
            metadata,
            spec,
            status,
        } = watched;
        let all = [
            (metadata.labels.unwrap_or_default(), &KEPT_LABELS[..]),
            (
                metadata.annotations.unwrap_or_default(),
                &KEPT_ANNOTATIONS[..],
            ),
        ];
        let kept = all.into_iter().flat_map(|(mut all, names)| {
            let kept = names.iter().filter_map(move |&name| {
                let value = all.remove(name)?;
                Some((name, value.into_boxed_str()))
            });
            kept.collect::<Vec<_>>()
        });
        Self {
            kept: kept.collect(),
            metadata: ObjectMeta {
                name: metadata.name,
                namespace: metadata.namespace,
                uid: metadata.uid,
                resource_version: metadata.resource_version,
                creation_timestamp: metadata.creation_timestamp,
                deletion_timestamp: metadata.deletion_timestamp,
                ..ObjectMeta::default()
            },
            cluster: spec.cluster,
            job: spec.job,
            status: ProwJobStatus {
                description: None,
                ..status
            },
        }
    }
}

impl ProwJobRun {
    /// A label, if there is one.
    pub fn label(&self, name: &str) -> Option<&str> {
        self.kept(name).filter(|_| KEPT_LABELS.contains(&name))
    }

    /// An annotation, if there is one.
    pub fn annotation(&self, name: &str) -> Option<&str> {
        self.kept(name).filter(|_| KEPT_ANNOTATIONS.contains(&name))
    }

    /// No label has the name of an annotation.
    fn kept(&self, name: &str) -> Option<&str> {
        let mut kept = self.kept.iter();
        kept.find(|(kept, _)| *kept == name)
            .map(|(_, value)| &**value)
    }

    /// Its name.
    pub fn name(&self) -> &str {
        self.metadata.name.as_deref().unwrap_or_default()
    }
}

impl Resource for ProwJobRun {
    type DynamicType = ();
    type Scope = NamespaceResourceScope;

    fn kind(kind: &()) -> Cow<'_, str> {
        ProwJob::kind(kind)
    }

    fn group(kind: &()) -> Cow<'_, str> {
        ProwJob::group(kind)
    }

    fn version(kind: &()) -> Cow<'_, str> {
        ProwJob::version(kind)
    }

    fn plural(kind: &()) -> Cow<'_, str> {
        ProwJob::plural(kind)
    }

    fn meta(&self) -> &ObjectMeta {
        &self.metadata
    }

    fn meta_mut(&mut self) -> &mut ObjectMeta {
        &mut self.metadata
    }
}
