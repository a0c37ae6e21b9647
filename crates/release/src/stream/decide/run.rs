//! A ProwJob of a release.

use std::collections::BTreeMap;

use aws_lc_rs::digest::{SHA256, digest};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kube::api::ObjectMeta;

use super::environment::{EnvironmentProblem, Images, inject};
use crate::{
    api::{ProwJob, ProwJobSpec, ProwJobState, ProwJobStatus, annotations, labels},
    stream::{facts::Facts, prow_config::Periodic},
};

/// The most characters of a label's value.
const MAX_LABEL: usize = 63;

/// What a ProwJob is to the release.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum RunKind {
    /// It verifies the release, or an upgrade to it.
    Verification,
    /// It is analysed with others.
    Analysis,
    /// It analyses others.
    Aggregator,
    /// It runs at certain times.
    Periodic,
}

/// A ProwJob to launch.
#[derive(Debug, Clone)]
pub(super) struct Request<'a> {
    pub(super) name: String,
    pub(super) kind: RunKind,
    /// The key of the verification job.
    pub(super) key: &'a str,
    /// The name of the periodic.
    pub(super) periodic: &'a str,
    /// The name of the Prow job in the payload, if it is not that of the periodic.
    pub(super) job: Option<String>,
    pub(super) tag: &'a str,
    pub(super) payload_uid: Option<&'a str>,
    /// The tag of the release that an upgrade starts from.
    pub(super) from_tag: Option<String>,
    pub(super) images: Images,
}

/// A ProwJob cannot be launched.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(super) enum LaunchProblem {
    /// Prow has no such job.
    #[error("Prow has no periodic {0}")]
    UnknownJob(String),
    /// The job does not say where it runs.
    #[error("the periodic {0} names no build cluster other than default")]
    NoCluster(String),
    /// Its variables cannot be set.
    #[error(transparent)]
    Environment(#[from] EnvironmentProblem),
}

/// The ProwJob of a request.
pub(super) fn prow_job(facts: &Facts, request: &Request<'_>) -> Result<ProwJob, LaunchProblem> {
    let name = request.periodic;
    let periodic = facts.prow.periodics.get(name);
    let periodic = periodic.ok_or_else(|| LaunchProblem::UnknownJob(name.to_owned()))?;
    if periodic.cluster.is_empty() || periodic.cluster == "default" {
        return Err(LaunchProblem::NoCluster(name.to_owned()));
    }
    let mut pod = periodic.spec.clone();
    if let Some(pod) = &mut pod {
        inject(pod, &request.images)?;
    }
    let job = request.job.clone().unwrap_or_else(|| name.to_owned());
    let state = if facts.prow.scheduler_enabled {
        ProwJobState::Scheduling
    } else {
        ProwJobState::Triggered
    };
    Ok(ProwJob {
        metadata: ObjectMeta {
            name: Some(request.name.clone()),
            namespace: Some(facts.options.prow_namespace.clone()),
            labels: Some(labels_of(periodic, request, &job)),
            annotations: Some(annotations_of(facts, periodic, request, &job)),
            ..ObjectMeta::default()
        },
        spec: ProwJobSpec {
            type_: "periodic".to_owned(),
            agent: if periodic.agent.is_empty() {
                "kubernetes"
            } else {
                &periodic.agent
            }
            .to_owned(),
            cluster: cluster(facts, &periodic.cluster, &request.name),
            namespace: periodic.namespace.clone(),
            job,
            pod_spec: pod,
            other: periodic.copied(),
        },
        status: Some(ProwJobStatus {
            start_time: Some(Time(whole_seconds(facts.now))),
            state,
            ..ProwJobStatus::default()
        }),
    })
}

fn whole_seconds(now: jiff::Timestamp) -> jiff::Timestamp {
    jiff::Timestamp::from_second(now.as_second()).unwrap_or(now)
}

/// The build cluster: a member of its group that follows from the name of the run, so that a launch that is
/// tried again goes to the same one.
fn cluster(facts: &Facts, configured: &str, run: &str) -> String {
    let groups = facts.options.cluster_groups.iter();
    let group = groups
        .into_iter()
        .find(|group| group.iter().any(|one| one == configured));
    let Some(group) = group.filter(|group| !group.is_empty()) else {
        return configured.to_owned();
    };
    let hash = digest(&SHA256, run.as_bytes());
    group[usize::from(hash.as_ref()[0]) % group.len()].clone()
}

fn labels_of(periodic: &Periodic, request: &Request<'_>, job: &str) -> BTreeMap<String, String> {
    let mut all = periodic.labels.clone();
    let mut add = |name: &str, value: &str| all.insert(name.to_owned(), label_value(value));
    add("created-by-prow", labels::TRUE);
    add("prow.k8s.io/type", "periodic");
    add("prow.k8s.io/job", job);
    add("prow.k8s.io/context", job);
    add(labels::CAPABILITY, labels::RCE);
    if request.kind != RunKind::Analysis {
        add(labels::VERIFY, labels::TRUE);
    }
    if request.kind != RunKind::Periodic {
        add(labels::PAYLOAD, request.tag);
    }
    match request.kind {
        RunKind::Analysis => add(labels::ANALYSIS, request.tag),
        RunKind::Aggregator => add(labels::AGGREGATOR, request.tag),
        RunKind::Verification | RunKind::Periodic => None,
    };
    all
}

fn annotations_of(
    facts: &Facts,
    periodic: &Periodic,
    request: &Request<'_>,
    job: &str,
) -> BTreeMap<String, String> {
    let mut all = periodic.annotations.clone();
    let mut add = |name: &str, value: String| all.insert(name.to_owned(), value);
    add(annotations::SOURCE, facts.source_name());
    add(annotations::TO_TAG, request.tag.to_owned());
    add(
        annotations::ARCHITECTURE,
        facts.options.architecture.to_string(),
    );
    add(annotations::PROW_JOB, job.to_owned());
    if let Some(from) = &request.from_tag {
        add(annotations::FROM_TAG, from.clone());
    }
    if let Some(uid) = request.payload_uid {
        add(annotations::RUN_JOB, request.key.to_owned());
        add(
            annotations::RUN_TOKEN,
            facts.run_key.token(uid, request.key, &request.name),
        );
    }
    all
}

/// As much of a text as a label may have.
fn label_value(text: &str) -> String {
    let cut: String = text.chars().take(MAX_LABEL).collect();
    cut.trim_matches(|c: char| !c.is_ascii_alphanumeric())
        .to_owned()
}
