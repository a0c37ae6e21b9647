//! The Job that runs a ProwJob: pure.

use std::collections::BTreeMap;

use k8s_openapi::{api::batch::v1::Job, apimachinery::pkg::apis::meta::v1::OwnerReference};
use kube::{Resource, ResourceExt};
use serde_json::{Map, Value, json};

use super::api::ProwJob;
use crate::registry::Digest;

/// Marks the objects that Prow has created.
pub(super) const CREATED_BY_PROW: &str = "created-by-prow";
/// The name of the ProwJob: as a label where it fits, and as an annotation.
pub(super) const ID: &str = "prow.k8s.io/id";
const JOB: &str = "prow.k8s.io/job";
const TYPE: &str = "prow.k8s.io/type";
/// The longest name of a Job: its pods have it as a label.
const MAX_NAME: usize = 63;
/// The time that a run has unless it says otherwise, as in Prow.
const DEFAULT_TIMEOUT: i64 = 24 * 3600;

/// A name that a Job can have.
fn job_name(prow_job: &str) -> String {
    if prow_job.len() <= MAX_NAME {
        return prow_job.to_owned();
    }
    let digest = Digest::of(prow_job.as_bytes());
    let hash = digest.hex().get(..12).unwrap_or_default();
    let beginning = prow_job.get(..MAX_NAME - 13).unwrap_or_default();
    let beginning = beginning.trim_end_matches(['-', '.']);
    format!("{beginning}-{hash}")
}

/// How many names the Jobs of a ProwJob may have: for the first one, and for others after it.
pub(super) const JOB_NAMES: usize = 6;

/// The names that a Job of the ProwJob may have. The first is that of the ProwJob, which users know. The others
/// follow from its uid, too: they are used if another Job has the first, and for Jobs that run it again.
pub(super) fn job_names(prow_job: &ProwJob) -> impl Iterator<Item = String> {
    let name = prow_job.name_any();
    let digest = Digest::of(prow_job.uid().unwrap_or_default().as_bytes());
    let hash = digest.hex().get(..8).unwrap_or_default().to_owned();
    (0..JOB_NAMES).map(move |attempt| match attempt {
        0 => job_name(&name),
        attempt => job_name(&format!("{name}-{hash}-{attempt}")),
    })
}

/// The number of the run: the one that its creator has chosen, or one of the time and the uid. It is the
/// same whenever it is asked for.
pub(super) fn build_id(prow_job: &ProwJob) -> String {
    let chosen = prow_job.status.as_ref().and_then(|it| it.build_id.clone());
    if let Some(chosen) = chosen.filter(|chosen| !chosen.is_empty()) {
        return chosen;
    }
    let created = prow_job.creation_timestamp();
    let second = created.map_or(0, |time| time.0.as_second().unsigned_abs());
    let digest = Digest::of(prow_job.uid().unwrap_or_default().as_bytes());
    let hash = digest.hex().get(..8).unwrap_or_default();
    let hash = u64::from_str_radix(hash, 16).unwrap_or_default();
    format!("{second}{:09}", hash % 1_000_000_000)
}

/// The Job of a ProwJob under this name, or why there can be none.
pub(super) fn job(prow_job: &ProwJob, name: &str) -> Result<Job, String> {
    let spec = &prow_job.spec;
    let Some(pod_spec) = &spec.pod_spec else {
        return Err("the ProwJob has no pod_spec".to_owned());
    };
    let mut pod_spec = pod_spec.clone();
    let Some(fields) = pod_spec.as_object_mut() else {
        return Err("the pod_spec is not an object".to_owned());
    };
    // A run that failed has failed: Prow starts nothing again.
    fields.insert("restartPolicy".to_owned(), "Never".into());
    for list in ["containers", "initContainers"] {
        add_environment(fields, list, &environment(prow_job));
    }
    let owner = OwnerReference {
        controller: Some(true),
        block_owner_deletion: Some(true),
        ..prow_job.owner_ref(&()).ok_or("the ProwJob has no uid")?
    };
    let (labels, annotations) = marks(prow_job);
    serde_json::from_value(json!({
        "metadata": {
            "name": name,
            "namespace": prow_job.namespace(),
            "labels": labels,
            "annotations": annotations,
            "ownerReferences": [owner],
        },
        "spec": {
            "backoffLimit": 0,
            "activeDeadlineSeconds": timeout(prow_job),
            "template": {
                "metadata": {"labels": labels, "annotations": annotations},
                "spec": pod_spec,
            },
        },
    }))
    .map_err(|error| format!("the pod_spec is not valid: {error}"))
}

fn marks(prow_job: &ProwJob) -> (BTreeMap<String, String>, BTreeMap<String, String>) {
    let spec = &prow_job.spec;
    let mut labels = prow_job.labels().clone();
    labels.insert(CREATED_BY_PROW.to_owned(), "true".to_owned());
    let mut annotations = BTreeMap::new();
    let name = prow_job.name_any();
    for (key, value) in [(ID, name.as_str()), (JOB, &spec.job), (TYPE, &spec.kind)] {
        annotations.insert(key.to_owned(), value.to_owned());
        if is_label(value) {
            labels.insert(key.to_owned(), value.to_owned());
        } else {
            labels.remove(key);
        }
    }
    (labels, annotations)
}

fn is_label(text: &str) -> bool {
    let is_word = |c: char| c.is_ascii_alphanumeric();
    text.len() <= 63
        && text.starts_with(is_word)
        && text.ends_with(is_word)
        && text
            .chars()
            .all(|c| is_word(c) || matches!(c, '-' | '_' | '.'))
}

/// The variables that Prow gives to every container.
fn environment(prow_job: &ProwJob) -> Vec<(&'static str, String)> {
    let spec = &prow_job.spec;
    let build_id = build_id(prow_job);
    let mut job_spec = json!({
        "type": spec.kind,
        "job": spec.job,
        "buildid": build_id,
        "prowjobid": prow_job.name_any(),
    });
    if let Some(refs) = &spec.refs {
        job_spec["refs"] = refs.clone();
    }
    if !spec.extra_refs.is_empty() {
        job_spec["extra_refs"] = spec.extra_refs.clone().into();
    }
    let mut environment = vec![
        ("CI", "true".to_owned()),
        ("JOB_NAME", spec.job.clone()),
        ("JOB_TYPE", spec.kind.clone()),
        ("JOB_SPEC", job_spec.to_string()),
        ("PROW_JOB_ID", prow_job.name_any()),
        ("BUILD_NUMBER", build_id.clone()),
        ("BUILD_ID", build_id),
    ];
    let refs = spec.refs.as_ref();
    for (variable, field) in [
        ("REPO_OWNER", "org"),
        ("REPO_NAME", "repo"),
        ("PULL_BASE_REF", "base_ref"),
        ("PULL_BASE_SHA", "base_sha"),
    ] {
        if let Some(value) = refs.and_then(|refs| refs[field].as_str()) {
            environment.push((variable, value.to_owned()));
        }
    }
    environment
}

/// Adds variables to the containers of a list. What a container sets itself stays.
fn add_environment(
    pod_spec: &mut Map<String, Value>,
    list: &str,
    environment: &[(&'static str, String)],
) {
    let containers = pod_spec.get_mut(list).and_then(Value::as_array_mut);
    for container in containers.into_iter().flatten() {
        let Some(container) = container.as_object_mut() else {
            continue;
        };
        let variables = container.entry("env").or_insert_with(|| json!([]));
        let Some(variables) = variables.as_array_mut() else {
            continue;
        };
        for (name, value) in environment {
            if !variables.iter().any(|it| it["name"] == *name) {
                variables.push(json!({"name": name, "value": value}));
            }
        }
    }
}

/// The seconds that a run has: `decoration_config.timeout`, as Go writes durations.
fn timeout(prow_job: &ProwJob) -> i64 {
    let config = prow_job.spec.decoration_config.as_ref();
    let timeout = config.and_then(|config| config["timeout"].as_str());
    timeout.and_then(seconds).unwrap_or(DEFAULT_TIMEOUT)
}

/// The seconds of a duration such as `4h0m0s`; none if it is not one, or is shorter than a second.
fn seconds(text: &str) -> Option<i64> {
    let mut rest = text;
    let mut total = 0_i64;
    while !rest.is_empty() {
        let digits = rest.find(|c: char| !c.is_ascii_digit())?;
        let (number, after) = rest.split_at(digits);
        let unit = after.chars().next()?;
        let factor = match unit {
            'h' => 3600,
            'm' => 60,
            's' => 1,
            _ => return None,
        };
        total = total.checked_add(number.parse::<i64>().ok()?.checked_mul(factor)?)?;
        rest = after.get(1..)?;
    }
    (total > 0).then_some(total)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_those_of_go() {
        for (text, expected) in [
            ("4h0m0s", Some(14_400)),
            ("90s", Some(90)),
            ("1h30m", Some(5_400)),
            ("", None),
            ("0s", None),
            ("5", None),
            ("5d", None),
            ("-5s", None),
            ("99999999999999999999h", None),
        ] {
            assert_eq!(seconds(text), expected, "{text}");
        }
    }

    #[test]
    fn a_long_name_becomes_one_that_pods_can_have_as_a_label() {
        assert_eq!(job_name("short"), "short");
        let long = "4.18.0-0.nightly-2026-01-01-000000-aggregated-aws-ovn-upgrade-4.18-minor-7";
        let (name, other) = (job_name(long), job_name(&format!("{long}8")));
        assert!(name.len() <= 63 && name != other, "{name}");
        assert!(
            is_label(&name) && name.starts_with("4.18.0-0.nightly-2026"),
            "{name}"
        );
    }
}
