//! What an operator of the release controller chooses.

use std::{fmt, str::FromStr, time::Duration};

/// The options of the release controller.
#[derive(Debug, Clone, PartialEq)]
pub struct StreamOptions {
    /// The namespaces of sources, targets and mirrors. The first one has the Secrets of the controller.
    pub release_namespaces: Vec<String>,
    /// Further namespaces that releases may be published to.
    pub publish_namespaces: Vec<String>,
    /// The namespace of Jobs.
    pub job_namespace: String,
    /// The namespace of ProwJobs.
    pub prow_namespace: String,
    /// The architecture of the releases.
    pub architecture: Architecture,
    /// The suffix of the ImageStreams whose jobs also inform about Stable releases; none if empty.
    pub art_suffix: String,
    /// Interchangeable build clusters.
    pub cluster_groups: Vec<Vec<String>>,
    /// Manifest lists are kept.
    pub manifest_list_mode: bool,
    /// Expired tags are marked and not removed.
    pub soft_delete: bool,
    /// The registry of ImageStreams whose status names no public repository: `<registry>/<namespace>/<name>`.
    pub registry: Option<String>,
    /// Only these sources; all if empty.
    pub only_sources: Vec<String>,
    /// Only streams whose configuration is in a ConfigMap: the original owns all others. It also collects the
    /// garbage.
    pub handed_over_only: bool,
    /// Nothing is written.
    pub dry_run: bool,
    /// What assembles releases.
    pub tools: Tools,
    /// The most ProwJobs that one look at a stream launches.
    pub max_launches: usize,
    /// The time between two looks at a stream whose objects have not changed.
    pub look_again: Duration,
    /// Limits of garbage collection.
    pub garbage: GarbageLimits,
}

/// What assembles releases.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tools {
    /// The image of Jobs. For the original's tools, none means the `cli` image of the release itself.
    pub image: Option<String>,
    /// Which program is in it.
    pub program: Program,
    /// The service account of Jobs.
    pub service_account: String,
}

/// The program that assembles releases.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Program {
    /// `neap release`.
    Neap,
    /// `oc adm release`.
    Oc,
}

/// Limits of garbage collection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct GarbageLimits {
    /// How long an object must have been without a reference before it is deleted.
    pub grace: Duration,
    /// How long a completed Job stays.
    pub completed_jobs: Duration,
    /// The most objects that are deleted at a time.
    pub max_deletions: usize,
}

impl StreamOptions {
    /// The options for one release namespace, whose Jobs and ProwJobs are in other namespaces.
    pub fn new(release_namespace: &str, job_namespace: &str, prow_namespace: &str) -> Self {
        Self {
            release_namespaces: vec![release_namespace.to_owned()],
            publish_namespaces: Vec::new(),
            job_namespace: job_namespace.to_owned(),
            prow_namespace: prow_namespace.to_owned(),
            architecture: Architecture::Amd64,
            art_suffix: String::new(),
            cluster_groups: Vec::new(),
            manifest_list_mode: false,
            soft_delete: false,
            registry: None,
            only_sources: Vec::new(),
            handed_over_only: false,
            dry_run: false,
            tools: Tools {
                image: Some("neaptide/neap".to_owned()),
                program: Program::Neap,
                service_account: "builder".to_owned(),
            },
            max_launches: 50,
            look_again: Duration::from_mins(10),
            garbage: GarbageLimits {
                grace: Duration::from_mins(10),
                completed_jobs: Duration::from_hours(2),
                max_deletions: 100,
            },
        }
    }

    /// Whether releases may be published to `namespace`.
    pub fn publishes_to(&self, namespace: &str) -> bool {
        let mut all = self
            .release_namespaces
            .iter()
            .chain(&self.publish_namespaces);
        all.any(|one| one == namespace)
    }
}

/// An architecture of releases.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Architecture {
    /// x86, 64 bits.
    Amd64,
    /// Arm, 64 bits.
    Arm64,
    /// POWER, little-endian.
    Ppc64le,
    /// IBM Z.
    S390x,
    /// Several in one.
    Multi,
}

impl Architecture {
    /// The name of the architecture.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Amd64 => "amd64",
            Self::Arm64 => "arm64",
            Self::Ppc64le => "ppc64le",
            Self::S390x => "s390x",
            Self::Multi => "multi",
        }
    }

    /// The name in the tags of official releases.
    pub fn in_official_tags(self) -> &'static str {
        match self {
            Self::Amd64 => "x86_64",
            Self::Arm64 => "aarch64",
            other => other.as_str(),
        }
    }

    /// The part of the names of variables, between `RELEASE_IMAGE_` and what they are.
    pub fn in_variables(self) -> &'static [&'static str] {
        match self {
            Self::Amd64 => &[""],
            Self::Arm64 => &["ARM64_"],
            Self::Ppc64le => &["PPC64LE_"],
            Self::S390x => &["S390X_"],
            Self::Multi => &["", "MULTI_"],
        }
    }
}

/// There is no such architecture.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is not one of amd64, arm64, ppc64le, s390x and multi")]
pub struct UnknownArchitecture(String);

impl FromStr for Architecture {
    type Err = UnknownArchitecture;

    fn from_str(text: &str) -> Result<Self, UnknownArchitecture> {
        let all = [
            Self::Amd64,
            Self::Arm64,
            Self::Ppc64le,
            Self::S390x,
            Self::Multi,
        ];
        let found = all.into_iter().find(|one| one.as_str() == text);
        found.ok_or_else(|| UnknownArchitecture(text.to_owned()))
    }
}

impl fmt::Display for Architecture {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}
