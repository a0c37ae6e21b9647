//! Why no pod of a service is ready, as the status has it and as clients may see it.

use std::fmt;

use jiff::Timestamp;
use neap_kit::schema;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The workload has replicas and no pod that is ready to serve.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct NotReady {
    /// When that was first observed.
    #[schemars(schema_with = "schema::time")]
    pub since: Timestamp,
    /// Why, in one word such as `ImagePullBackOff`.
    pub reason: String,
    /// Why, in a sentence for people who may read pods.
    pub message: String,
    /// Whether it counts as failed: the cause does not pass by itself, or the time for a start is over.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub failed: bool,
    /// The wake after which no pod became ready; absent if the workload was not woken.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::time")]
    pub wake: Option<Timestamp>,
}

impl NotReady {
    /// The cause.
    pub fn cause(&self) -> NotReadyCause {
        NotReadyCause::parse(&self.reason)
    }
}

/// Why no pod is ready.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum NotReadyCause {
    /// A container ends again and again.
    CrashLoop,
    /// An image cannot be pulled.
    ImagePull,
    /// A container cannot be created.
    ContainerConfig,
    /// No node takes the pod.
    Unschedulable,
    /// The pod has failed, and is not replaced.
    PodFailed,
    /// The API server refuses to create pods.
    PodsRefused,
    /// Its containers run, and a probe does not succeed.
    Probe,
    /// Its containers are being created.
    Starting,
    /// There is no pod.
    NoPods,
}

impl NotReadyCause {
    /// All causes.
    pub const ALL: [Self; 9] = [
        Self::CrashLoop,
        Self::ImagePull,
        Self::ContainerConfig,
        Self::Unschedulable,
        Self::PodFailed,
        Self::PodsRefused,
        Self::Probe,
        Self::Starting,
        Self::NoPods,
    ];

    /// The cause in one word, the one that Kubernetes has for it where there is one.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::CrashLoop => "CrashLoopBackOff",
            Self::ImagePull => "ImagePullBackOff",
            Self::ContainerConfig => "CreateContainerError",
            Self::Unschedulable => "Unschedulable",
            Self::PodFailed => "PodFailed",
            Self::PodsRefused => "FailedCreate",
            Self::Probe => "ProbeFailing",
            Self::Starting => "Starting",
            Self::NoPods => "NoPods",
        }
    }

    /// The cause of this word. A word of a newer operator counts as a start in progress.
    pub fn parse(word: &str) -> Self {
        let mut all = Self::ALL.into_iter();
        all.find(|cause| cause.as_str() == word)
            .unwrap_or(Self::Starting)
    }

    /// The cause in a sentence without names of images, nodes or objects: clients of a service may not be
    /// allowed to read those.
    pub fn for_clients(self) -> &'static str {
        match self {
            Self::CrashLoop => "a container of its pods crashes again and again",
            Self::ImagePull => "an image of its pods cannot be pulled",
            Self::ContainerConfig => "a container of its pods cannot be created",
            Self::Unschedulable => "no node takes its pods",
            Self::PodFailed => "its pods have failed",
            Self::PodsRefused => "its pods cannot be created",
            Self::Probe => "a probe of its pods does not succeed",
            Self::Starting => "its pods are still being started",
            Self::NoPods => "it has no pod yet",
        }
    }
}

impl fmt::Display for NotReadyCause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_cause_has_its_own_word_and_an_unknown_word_is_a_start() {
        for cause in NotReadyCause::ALL {
            assert_eq!(NotReadyCause::parse(cause.as_str()), cause);
        }
        assert_eq!(NotReadyCause::parse("Else"), NotReadyCause::Starting);
    }
}
