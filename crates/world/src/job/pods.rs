//! Which pods a Job creates and deletes.

use std::{collections::BTreeSet, time::Duration};

use jiff::Timestamp;
use k8s_openapi::api::{
    batch::v1::{Job, JobSpec},
    core::v1::{Container, EnvVar, EnvVarSource, ObjectFieldSelector, Pod},
};
use kube::ResourceExt;

use super::count::{
    COMPLETION_INDEX, INDEX_FAILURE_COUNT, PodCounts, TRACKING_FINALIZER, failures, index_of,
    is_indexed,
};
use crate::workload::{from_template, is_ready, owned_by, phase, suffix, to_i32};

const INITIAL_BACKOFF_SECONDS: u64 = 10;
const MAX_BACKOFF_SECONDS: u64 = 360;
/// The maximum number of pods created in one reconcile.
const BURST_PODS: usize = 500;

/// Pods to create and delete, and the time until the backoff ends.
#[derive(Debug, Default)]
pub(super) struct PodChanges<'a> {
    pub(super) create: Vec<Pod>,
    pub(super) delete: Vec<&'a Pod>,
    pub(super) requeue_after: Option<Duration>,
}

pub(super) fn pod_changes<'a>(
    job: &Job,
    spec: &JobSpec,
    count: &PodCounts<'a>,
    succeeded: i32,
    now: Timestamp,
) -> PodChanges<'a> {
    let parallel = spec.parallelism.unwrap_or(1);
    let active = to_i32(count.active.len());
    let wanted = match spec.completions {
        None if succeeded > 0 => active,
        None => parallel,
        Some(completions) => parallel.min(completions - succeeded).max(0),
    };
    let surplus = surplus(spec, count, usize::try_from(active - wanted).unwrap_or(0));
    let waits = spec.pod_replacement_policy.as_deref() == Some("Failed");
    let coming = if waits {
        to_i32(count.terminating.len())
    } else {
        0
    };
    let stay = active - to_i32(surplus.len());
    let missing = usize::try_from(wanted - stay - coming)
        .unwrap_or(0)
        .min(BURST_PODS);
    let mut pod_changes = PodChanges {
        delete: surplus,
        ..PodChanges::default()
    };
    if missing == 0 {
        return pod_changes;
    }
    if is_indexed(spec) {
        indexed_pods(job, spec, count, missing, now, &mut pod_changes);
    } else if let Some(left) = remaining_backoff(&count.failures, &count.successes, now) {
        pod_changes.requeue_after = Some(left);
    } else {
        let taken = taken_names(count);
        pod_changes.create = free_pods(job, spec, &taken, None, 0)
            .take(missing)
            .collect();
    }
    pod_changes
}

/// Pods without an open index, and as many more as exceed `wanted`: the least advanced first.
fn surplus<'a>(spec: &JobSpec, count: &PodCounts<'a>, too_many: usize) -> Vec<&'a Pod> {
    let mut pods = count.active.clone();
    pods.sort_by_cached_key(|pod| {
        let born = pod.creation_timestamp().map(|time| time.0);
        (
            phase(pod) != "Pending",
            is_ready(pod),
            std::cmp::Reverse(born),
            pod.name_any(),
        )
    });
    let mut useless = 0;
    if is_indexed(spec) {
        let mut done: BTreeSet<_> = count.completed.union(&count.failed).copied().collect();
        let mut of_use = |pod: &&Pod| {
            let index = index_of(pod).filter(|index| Some(*index) < spec.completions);
            index.is_some_and(|index| done.insert(index))
        };
        // The most advanced pod of an index keeps it.
        pods.reverse();
        let (keep, mut go): (Vec<_>, Vec<_>) = pods.into_iter().partition(&mut of_use);
        useless = go.len();
        go.extend(keep.into_iter().rev());
        pods = go;
    }
    pods.truncate(useless.max(too_many));
    pods
}

/// Plans pods for the first indexes that are neither done nor active nor in backoff after a
/// failure.
fn indexed_pods(
    job: &Job,
    spec: &JobSpec,
    count: &PodCounts<'_>,
    missing: usize,
    now: Timestamp,
    pod_changes: &mut PodChanges<'_>,
) {
    let waits = spec.pod_replacement_policy.as_deref() == Some("Failed");
    let going = count.terminating.iter().filter(|_| waits);
    let busy: BTreeSet<_> = count
        .active
        .iter()
        .chain(going)
        .filter_map(|pod| index_of(pod))
        .collect();
    let over = |index: &i32| {
        count.completed.contains(index) || count.failed.contains(index) || busy.contains(index)
    };
    let limited = spec.backoff_limit_per_index.is_some();
    if !limited && let Some(left) = remaining_backoff(&count.failures, &count.successes, now) {
        pod_changes.requeue_after = Some(left);
        return;
    }
    let taken = taken_names(count);
    for index in (0..spec.completions.unwrap_or(0)).filter(|index| !over(index)) {
        if pod_changes.create.len() == missing {
            return;
        }
        let of_part = |pod: &&&Pod| index_of(pod) == Some(index);
        let failed: Vec<&Pod> = count.failures.iter().filter(of_part).copied().collect();
        if limited && let Some(left) = remaining_backoff(&failed, &[], now) {
            pod_changes.requeue_after = Some(
                pod_changes
                    .requeue_after
                    .map_or(left, |soonest| soonest.min(left)),
            );
            continue;
        }
        let before = failed
            .iter()
            .map(|pod| failures(pod) + 1)
            .max()
            .unwrap_or(0);
        let made = free_pods(job, spec, &taken, Some(index), before).next();
        pod_changes.create.extend(made);
    }
}

/// The remaining backoff: ten seconds after a failure, doubled for each further failure without a
/// success.
pub(super) fn remaining_backoff(
    failures: &[&Pod],
    successes: &[&Pod],
    now: Timestamp,
) -> Option<Duration> {
    let well = successes.iter().filter_map(|pod| ended_at(pod)).max();
    let failed = failures.iter().filter_map(|pod| ended_at(pod));
    let since: Vec<_> = failed.filter(|&at| Some(at) > well).collect();
    let last = since.iter().max()?.as_second();
    let doublings = u32::try_from(since.len() - 1).unwrap_or(u32::MAX).min(16);
    let pause = (INITIAL_BACKOFF_SECONDS << doublings).min(MAX_BACKOFF_SECONDS);
    let end = Timestamp::from_second(last.saturating_add_unsigned(pause)).ok()?;
    let left = Duration::try_from(end.duration_since(now)).ok()?;
    Some(left).filter(|left| !left.is_zero())
}

/// The time at which the last of its containers ended, or the pod was deleted.
fn ended_at(pod: &Pod) -> Option<Timestamp> {
    let status = pod.status.as_ref();
    let statuses = status
        .iter()
        .flat_map(|status| status.container_statuses.iter().flatten());
    let ends = statuses.filter_map(|container| {
        let ended = container.state.as_ref()?.terminated.as_ref()?;
        ended.finished_at.as_ref().map(|time| time.0)
    });
    let deleted_at = pod.metadata.deletion_timestamp.as_ref().map(|time| time.0);
    let born = pod.creation_timestamp().map(|time| time.0);
    ends.max().or(deleted_at).or(born)
}

/// The names of the pods that exist.
fn taken_names(count: &PodCounts<'_>) -> BTreeSet<String> {
    let lists = [
        &count.active,
        &count.terminating,
        &count.failures,
        &count.successes,
    ];
    let known = lists.into_iter().flatten();
    known.map(|pod| pod.name_any()).collect()
}

/// Pods for an index, under free names: as many as could be needed.
fn free_pods(
    job: &Job,
    spec: &JobSpec,
    taken: &BTreeSet<String>,
    index: Option<i32>,
    failures: i32,
) -> impl Iterator<Item = Pod> {
    let tries = taken.len() + 2 * BURST_PODS;
    let parts = (0..tries).map(move |number| NewPod {
        index,
        failures,
        number,
    });
    // A pod is made only for a free name: the copy of the template is what costs.
    parts
        .filter(move |part| pod_name(job, part).is_some_and(|name| !taken.contains(&name)))
        .filter_map(|part| pod(job, spec, &part))
}

/// The index and name number of a new pod.
struct NewPod {
    index: Option<i32>,
    failures: i32,
    number: usize,
}

/// The name of the Job, with the index if there is one.
fn base_name(job: &Job, part: &NewPod) -> String {
    match part.index {
        Some(index) => format!("{}-{index}", job.name_any()),
        None => job.name_any(),
    }
}

fn pod_name(job: &Job, part: &NewPod) -> Option<String> {
    let (uid, base) = (job.uid()?, base_name(job, part));
    let short: String = base.chars().take(57).collect();
    let suffix = suffix(&[&uid, &base, &part.number.to_string()]);
    Some(format!("{short}-{suffix}"))
}

fn pod(job: &Job, spec: &JobSpec, part: &NewPod) -> Option<Pod> {
    let (base, name) = (base_name(job, part), pod_name(job, part)?);
    let namespace = job.namespace().unwrap_or_default();
    let mut pod = from_template(&spec.template, &namespace, name, owned_by(job)?);
    pod.metadata.generate_name = Some(format!("{base}-"));
    pod.finalizers_mut().push(TRACKING_FINALIZER.to_owned());
    let Some(index) = part.index else {
        return Some(pod);
    };
    pod.labels_mut()
        .insert(COMPLETION_INDEX.to_owned(), index.to_string());
    pod.annotations_mut()
        .insert(COMPLETION_INDEX.to_owned(), index.to_string());
    if spec.backoff_limit_per_index.is_some() {
        let failures = part.failures.to_string();
        pod.annotations_mut()
            .insert(INDEX_FAILURE_COUNT.to_owned(), failures);
    }
    if let Some(spec) = &mut pod.spec {
        spec.hostname = Some(base.chars().take(63).collect());
        let first = spec.init_containers.iter_mut().flatten();
        first
            .chain(&mut spec.containers)
            .for_each(set_index_variable);
    }
    Some(pod)
}

/// Sets the environment variable with the index, unless the container defines it.
fn set_index_variable(container: &mut Container) {
    const NAME: &str = "JOB_COMPLETION_INDEX";
    let env = container.env.get_or_insert_default();
    if env.iter().any(|known| known.name == NAME) {
        return;
    }
    let field = ObjectFieldSelector {
        api_version: Some("v1".to_owned()),
        field_path: format!("metadata.labels['{COMPLETION_INDEX}']"),
    };
    env.push(EnvVar {
        name: NAME.to_owned(),
        value: None,
        value_from: Some(EnvVarSource {
            field_ref: Some(field),
            ..EnvVarSource::default()
        }),
    });
}
