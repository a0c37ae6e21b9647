//! Everything that the decision about a stream depends on.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use jiff::Timestamp;
use k8s_openapi::api::batch::v1::Job;
use neap_kit::key::Key;

use super::{options::StreamOptions, prow_config::ProwConfig};
use crate::{
    api::{ReleasePayload, annotations},
    config::{ConfigError, ReleaseConfig},
    image_stream::api::{ImageStream, TagReference},
    payload::{Phase, run_token::RunKey},
};

/// What has the name of a Job or ProwJob of a release.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NameHolder {
    /// The Job of a release of another target, with its namespace.
    JobOf(String),
    /// The ProwJob of a release of another source, with its namespace.
    RunOf(String),
    /// A Job that names no release.
    NoRelease,
    /// A Job that says it is of the release, without proof.
    Unproved,
}

/// The facts about a stream.
#[derive(Debug, Clone)]
pub struct Facts {
    /// The options of the controller.
    pub options: Arc<StreamOptions>,
    /// The source, with the configuration.
    pub source: Arc<ImageStream>,
    /// The configuration, or why there is none.
    pub config: Result<Arc<ReleaseConfig>, ConfigError>,
    /// The target; for a Stable stream the same as the source.
    pub target: Option<Arc<ImageStream>>,
    /// The payloads of the target's namespace, by tag.
    pub payloads: BTreeMap<String, Arc<ReleasePayload>>,
    /// The tags whose payload proves that the controller created it.
    pub proved: BTreeSet<String>,
    /// The mirrors in the source's namespace, by name.
    pub mirrors: BTreeMap<String, Arc<ImageStream>>,
    /// The Jobs of the job namespace that belong to releases, by name.
    pub jobs: BTreeMap<String, Arc<Job>>,
    /// The names of the ProwJobs of each release.
    pub runs: BTreeMap<String, BTreeSet<String>>,
    /// The last run of each periodic of the stream, by the name of its Prow job.
    pub periodic_runs: BTreeMap<String, PeriodicRun>,
    /// The periodics of Prow.
    pub prow: Arc<ProwConfig>,
    /// The accepted releases of all streams, if an upgrade may start from one.
    pub accepted: Arc<Vec<AcceptedRelease>>,
    /// The releases from which each Stable release may be upgraded to; none if they are not known yet.
    pub previous: BTreeMap<String, Vec<String>>,
    /// The ImageStreams that releases are published to.
    pub destinations: BTreeMap<Key, Arc<ImageStream>>,
    /// The verification jobs of the ImageStream that also inform about a Stable release, by major and
    /// minor version.
    pub informing: BTreeMap<String, Result<Arc<ReleaseConfig>, String>>,
    /// What the images of Stable tags say they are called.
    pub release_names: BTreeMap<String, String>,
    /// Where the image of the configuration for Jobs is, if it is one of the cluster's own registry.
    pub cli_override: Option<String>,
    /// The images with the program `oc` of Stable releases, by tag, where a Job needs one.
    pub cli_images: BTreeMap<String, String>,
    /// The Stable tags whose image cannot be read, and why.
    pub unread: BTreeMap<String, String>,
    /// The Stable tags whose image is being read; the stream is looked at again once it was.
    pub reading: BTreeSet<String>,
    /// Names of Jobs and ProwJobs of the releases that other objects have.
    pub taken: BTreeMap<String, NameHolder>,
    /// The key of run tokens; it may be missing.
    pub run_key: RunKey,
    /// The time.
    pub now: Timestamp,
}

/// The last run of a periodic.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PeriodicRun {
    /// When it was created.
    pub created: Timestamp,
    /// Whether it is over.
    pub ended: bool,
}

/// A release that an upgrade may start from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AcceptedRelease {
    /// The name of its stream.
    pub stream: String,
    /// Whether its stream is a Stable one.
    pub is_stable: bool,
    /// Its tag.
    pub tag: String,
    /// When it was created.
    pub created: Option<Timestamp>,
    /// Where its image is.
    pub pull_spec: String,
}

/// A release tag and what is known about it.
#[derive(Debug, Clone)]
pub struct Release<'a> {
    /// The tag.
    pub tag: &'a TagReference,
    /// Its payload, if it exists.
    pub payload: Option<&'a Arc<ReleasePayload>>,
    /// Why its payload must not decide about it, if that is so.
    pub conflict: Option<String>,
    /// Its phase: of its payload, or else of its annotation.
    pub phase: Option<Phase>,
    /// When it was created.
    pub created: Option<Timestamp>,
}

impl<'a> Release<'a> {
    /// What is known about `tag`.
    pub fn of(tag: &'a TagReference, payloads: &'a BTreeMap<String, Arc<ReleasePayload>>) -> Self {
        let payload = payloads.get(&tag.name);
        let annotation = tag.annotations.get(annotations::PHASE);
        let phase = match payload {
            Some(payload) => Some(Phase::of_payload(payload)),
            None => annotation.and_then(|text| Phase::parse(text)),
        };
        Self {
            tag,
            payload,
            conflict: None,
            phase,
            created: created(tag),
        }
    }

    /// The same release where its payload must not decide about it: its phase is that of its annotation.
    pub fn in_conflict(self, conflict: String) -> Self {
        let phase = self.annotation(annotations::PHASE).and_then(Phase::parse);
        Self {
            conflict: Some(conflict),
            phase,
            ..self
        }
    }

    /// Its name.
    pub fn name(&self) -> &'a str {
        &self.tag.name
    }

    /// An annotation of its tag.
    pub fn annotation(&self, name: &str) -> Option<&'a str> {
        self.tag.annotations.get(name).map(String::as_str)
    }
}

/// When a release was created, as its tag says.
pub fn created(tag: &TagReference) -> Option<Timestamp> {
    let text = tag.annotations.get(annotations::CREATION_TIMESTAMP)?;
    text.parse().ok()
}

/// An annotation of an ImageStream.
pub fn annotation<'a>(stream: &'a ImageStream, name: &str) -> Option<&'a str> {
    let all = stream.metadata.annotations.as_ref()?;
    all.get(name).map(String::as_str)
}

/// The public repository of an ImageStream, if there is one.
pub fn public_repository(stream: &ImageStream, options: &StreamOptions) -> Option<String> {
    let status = stream.status.as_ref();
    let public = status
        .map(|it| it.public_docker_image_repository.as_str())
        .unwrap_or_default();
    if !public.is_empty() {
        return Some(public.to_owned());
    }
    let registry = options.registry.as_ref()?;
    let namespace = stream.metadata.namespace.as_deref().unwrap_or_default();
    let name = stream.metadata.name.as_deref().unwrap_or_default();
    Some(format!("{registry}/{namespace}/{name}"))
}

impl Facts {
    /// The namespace of the stream.
    pub fn namespace(&self) -> &str {
        self.source
            .metadata
            .namespace
            .as_deref()
            .unwrap_or_default()
    }

    /// The source as annotations name it.
    pub fn source_name(&self) -> String {
        let name = self.source.metadata.name.as_deref().unwrap_or_default();
        format!("{}/{name}", self.namespace())
    }

    /// Whether there is a Job of this name, of this namespace or of another.
    pub fn has_job(&self, name: &str) -> bool {
        self.jobs.contains_key(name) || self.taken.contains_key(name)
    }

    /// The name of the target.
    pub fn target_name(&self) -> &str {
        let target = self
            .target
            .as_ref()
            .and_then(|target| target.metadata.name.as_deref());
        target.unwrap_or_default()
    }

    /// The generation of the target.
    pub fn target_generation(&self) -> i64 {
        let target = self.target.as_ref();
        target
            .and_then(|target| target.metadata.generation)
            .unwrap_or(0)
    }

    /// Where the image of a release is; none if its repository is not known.
    pub fn pull_spec(&self, config: &ReleaseConfig, tag: &TagReference) -> Option<String> {
        if tag.reference {
            let pull = &config.reference_release.as_ref()?.pull_repository;
            let name = crate::names::reference_tag(&tag.name);
            return (!pull.is_empty()).then(|| format!("{pull}:{name}"));
        }
        let repository = public_repository(self.target.as_ref()?, &self.options)?;
        Some(format!("{repository}:{}", tag.name))
    }

    /// The name of the mirror of a release.
    pub fn mirror_name(&self, config: &ReleaseConfig, tag: &str) -> String {
        if config.is_stable() {
            return tag.to_owned();
        }
        let source = self.source.metadata.name.as_deref().unwrap_or_default();
        let prefix = if config.mirror_prefix.is_empty() {
            source
        } else {
            &config.mirror_prefix
        };
        crate::names::mirror(prefix, &config.name, tag)
    }
}
