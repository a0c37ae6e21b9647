mod decisions;

use std::time::Duration;

use k8s_openapi::api::{
    batch::v1::{Job, JobStatus},
    core::v1::{Event, Pod},
};
use kube::{Api, ResourceExt, api::DeleteParams};
use serde_json::{Value, json};

use super::decide::{Facts, decide};
use neap_kit::builder::OWN_WRITE_TIMEOUT;

use crate::stage::{Kubelet, PodBehavior, TestCluster, fields};

const SECOND: Duration = Duration::from_secs(1);
const MINUTE: Duration = Duration::from_mins(1);

/// A Job whose pods behave as the label says.
fn job(name: &str, behavior: &str, spec: Value) -> Value {
    let containers = json!([{"name": "main", "image": "app"}]);
    let mut job = json!({
        "metadata": {"name": name},
        "spec": {"template": {
            "metadata": {"labels": {"behavior": behavior}},
            "spec": {"restartPolicy": "Never", "containers": containers},
        }},
    });
    job["spec"].as_object_mut().unwrap().extend(fields(spec));
    job
}

async fn cluster() -> TestCluster {
    let cluster = TestCluster::start(|context| Ok(vec![super::component(context)?])).await;
    let kubelet = Kubelet::default()
        .behavior("good", PodBehavior::Ends(0, 5 * SECOND))
        .behavior("bad", PodBehavior::Ends(3, 5 * SECOND))
        .behavior("long", PodBehavior::Unready);
    cluster.with_kubelet(kubelet)
}

async fn status(cluster: &TestCluster, name: &str) -> JobStatus {
    cluster.get::<Job>(name).await.status.unwrap()
}

/// Conditions as `type=status reason`.
fn conditions(status: &JobStatus) -> Vec<String> {
    let all = status.conditions.iter().flatten();
    all.map(|known| {
        let reason = known.reason.as_deref().unwrap_or_default();
        format!("{}={} {reason}", known.type_, known.status)
    })
    .collect()
}

async fn events(cluster: &TestCluster, reason: &str) -> Vec<String> {
    let events: Vec<Event> = cluster.list().await;
    let about = events
        .into_iter()
        .filter(|event| event.reason.as_deref() == Some(reason));
    about.filter_map(|event| event.message).collect()
}

#[tokio::test(start_paused = true)]
async fn a_job_is_complete_when_enough_pods_succeeded() {
    let cluster = cluster().await;
    let spec = json!({"completions": 5, "parallelism": 2});
    cluster.create::<Job>(job("sum", "good", spec)).await;
    cluster.advance(2 * SECOND).await;
    let running = status(&cluster, "sum").await;
    assert_eq!((running.active, running.ready), (Some(2), Some(2)));
    for pod in cluster.list::<Pod>().await {
        assert_eq!(pod.metadata.generate_name.as_deref(), Some("sum-"));
        assert_eq!(pod.finalizers(), ["batch.kubernetes.io/job-tracking"]);
    }
    cluster.advance(MINUTE).await;
    let done = status(&cluster, "sum").await;
    let expected = [
        "SuccessCriteriaMet=True CompletionsReached",
        "Complete=True CompletionsReached",
    ];
    assert_eq!(conditions(&done), expected);
    let numbers = json!({
        "succeeded": 5, "ready": 0, "terminating": 0, "uncountedTerminatedPods": {},
        "startTime": "2026-01-01T00:00:00Z", "completionTime": done.completion_time,
        "conditions": done.conditions,
    });
    assert_eq!(json!(done), numbers);
    let pods: Vec<Pod> = cluster.list().await;
    assert_eq!(pods.len(), 5);
    assert!(pods.iter().all(|pod| pod.finalizers().is_empty()));
    assert_eq!(events(&cluster, "Completed").await, ["Job completed"]);
    assert_eq!(events(&cluster, "SuccessfulCreate").await.len(), 5);
}

#[tokio::test(start_paused = true)]
async fn failed_pods_are_replaced_with_backoff_up_to_the_limit() {
    let cluster = cluster().await;
    let spec = json!({"backoffLimit": 2});
    cluster.create::<Job>(job("sum", "bad", spec)).await;
    let made = async |after: Duration| {
        cluster.advance(after).await;
        cluster.list::<Pod>().await.len()
    };
    // Each runs for 5 s; then 10 s and 20 s pass.
    assert_eq!(made(14 * SECOND).await, 1);
    assert_eq!(made(3 * SECOND).await, 2);
    assert_eq!(made(20 * SECOND).await, 2);
    assert_eq!(made(5 * SECOND).await, 3);
    assert_eq!(made(60 * MINUTE).await, 3);
    let failed = status(&cluster, "sum").await;
    let expected = [
        "FailureTarget=True BackoffLimitExceeded",
        "Failed=True BackoffLimitExceeded",
    ];
    assert_eq!(conditions(&failed), expected);
    assert_eq!((failed.failed, failed.completion_time), (Some(3), None));
    let message = "Job has reached the specified backoff limit";
    assert_eq!(events(&cluster, "BackoffLimitExceeded").await, [message]);
}

#[tokio::test(start_paused = true)]
async fn every_index_is_completed_once_and_is_in_the_environment() {
    let cluster = cluster().await;
    let spec = json!({"completions": 4, "parallelism": 2, "completionMode": "Indexed"});
    cluster.create::<Job>(job("map", "good", spec)).await;
    cluster.advance(MINUTE).await;
    let done = status(&cluster, "map").await;
    assert_eq!(done.completed_indexes.as_deref(), Some("0-3"));
    assert_eq!((done.succeeded, done.failed_indexes), (Some(4), None));
    let pods: Vec<Pod> = cluster.list().await;
    assert_eq!(pods.len(), 4);
    for pod in &pods {
        let index = &pod.annotations()["batch.kubernetes.io/job-completion-index"];
        assert_eq!(
            &pod.labels()["batch.kubernetes.io/job-completion-index"],
            index
        );
        assert_eq!(pod.metadata.generate_name, Some(format!("map-{index}-")));
        let spec = pod.spec.as_ref().unwrap();
        assert_eq!(spec.hostname, Some(format!("map-{index}")));
        let env = &spec.containers[0].env.as_ref().unwrap()[0];
        assert_eq!(env.name, "JOB_COMPLETION_INDEX");
    }
}

#[tokio::test(start_paused = true)]
async fn indexes_fail_by_their_own_backoff_limit() {
    let cluster = cluster().await;
    let spec = json!({"completions": 2, "parallelism": 2, "completionMode": "Indexed", "backoffLimitPerIndex": 1});
    cluster.create::<Job>(job("map", "bad", spec)).await;
    cluster.advance(10 * MINUTE).await;
    let failed = status(&cluster, "map").await;
    let expected = [
        "FailureTarget=True FailedIndexes",
        "Failed=True FailedIndexes",
    ];
    assert_eq!(conditions(&failed), expected);
    assert_eq!(failed.failed_indexes.as_deref(), Some("0,1"));
    assert_eq!(failed.failed, Some(4));
    let count = "batch.kubernetes.io/job-index-failure-count";
    let pods: Vec<Pod> = cluster.list().await;
    let mut counts: Vec<_> = pods
        .iter()
        .map(|pod| pod.annotations()[count].clone())
        .collect();
    counts.sort();
    assert_eq!(counts, ["0", "0", "1", "1"]);
}

#[tokio::test(start_paused = true)]
async fn a_success_policy_ends_a_job_and_other_pods_have_not_failed() {
    let cluster = cluster().await;
    let policy = json!({"rules": [{"succeededIndexes": "1-2", "succeededCount": 1}]});
    let spec = json!({"completions": 4, "parallelism": 4, "completionMode": "Indexed", "successPolicy": policy});
    cluster.create::<Job>(job("map", "long", spec)).await;
    cluster.advance(SECOND).await;
    let pods: Vec<Pod> = cluster.list().await;
    let of = |index: &str| {
        let has = |pod: &&Pod| pod.labels()["batch.kubernetes.io/job-completion-index"] == index;
        pods.iter().find(has).unwrap().name_any()
    };
    let succeeded = json!({"phase": "Succeeded"});
    cluster
        .patch_status::<Pod>(&of("0"), succeeded.clone())
        .await;
    cluster.advance(MINUTE).await;
    assert_eq!(
        status(&cluster, "map").await.active,
        Some(3),
        "not yet enough"
    );
    cluster.patch_status::<Pod>(&of("2"), succeeded).await;
    cluster.advance(MINUTE).await;
    let done = status(&cluster, "map").await;
    let expected = [
        "SuccessCriteriaMet=True SuccessPolicy",
        "Complete=True SuccessPolicy",
    ];
    assert_eq!(conditions(&done), expected);
    assert_eq!(done.completed_indexes.as_deref(), Some("0,2"));
    assert_eq!((done.succeeded, done.failed), (Some(2), None));
    assert_eq!(cluster.list::<Pod>().await.len(), 2);
}

#[tokio::test(start_paused = true)]
async fn a_deadline_ends_a_job_and_its_pods() {
    let cluster = cluster().await;
    let spec = json!({"activeDeadlineSeconds": 300});
    cluster.create::<Job>(job("slow", "long", spec)).await;
    cluster.advance(4 * MINUTE).await;
    assert_eq!(status(&cluster, "slow").await.active, Some(1));
    cluster.advance(2 * MINUTE).await;
    let failed = status(&cluster, "slow").await;
    let expected = [
        "FailureTarget=True DeadlineExceeded",
        "Failed=True DeadlineExceeded",
    ];
    assert_eq!(conditions(&failed), expected);
    assert_eq!((failed.active, failed.failed), (None, Some(1)));
    assert_eq!(cluster.list::<Pod>().await.len(), 0);
}

#[tokio::test(start_paused = true)]
async fn a_suspended_job_has_no_pods() {
    let cluster = cluster().await;
    cluster.create::<Job>(job("nap", "long", json!({}))).await;
    cluster.advance(SECOND).await;
    let suspend = |so: bool| json!({"spec": {"suspend": so}});
    cluster.patch::<Job>("nap", suspend(true)).await;
    cluster.advance(MINUTE).await;
    let resting = status(&cluster, "nap").await;
    assert_eq!(conditions(&resting), ["Suspended=True JobSuspended"]);
    assert_eq!(
        (resting.active, resting.failed, &resting.start_time),
        (None, None, &None)
    );
    assert_eq!(cluster.list::<Pod>().await.len(), 0);

    cluster.patch::<Job>("nap", suspend(false)).await;
    cluster.advance(MINUTE).await;
    let working = status(&cluster, "nap").await;
    assert_eq!(conditions(&working), ["Suspended=False JobResumed"]);
    assert_eq!((working.active, working.failed), (Some(1), None));
    assert!(working.start_time.is_some());
    assert_eq!(events(&cluster, "Suspended").await, ["Job suspended"]);
    assert_eq!(events(&cluster, "Resumed").await, ["Job resumed"]);
}

#[tokio::test(start_paused = true)]
async fn a_finished_job_is_deleted_after_its_ttl() {
    let cluster = cluster().await;
    let spec = json!({"ttlSecondsAfterFinished": 600});
    cluster.create::<Job>(job("sum", "good", spec)).await;
    cluster.advance(9 * MINUTE).await;
    assert_eq!(cluster.list::<Job>().await.len(), 1);
    cluster.advance(2 * MINUTE).await;
    assert_eq!(cluster.list::<Job>().await.len(), 0);
}

#[test]
fn a_job_past_its_ttl_is_not_deleted_repeatedly() {
    let mut over = job(
        "sum",
        "good",
        json!({"selector": {}, "ttlSecondsAfterFinished": 60}),
    );
    let moment = "2026-01-01T00:00:00Z";
    let condition = json!({"type": "Complete", "status": "True", "lastTransitionTime": moment});
    over["status"] = json!({"conditions": [condition]});
    let over: Job = serde_json::from_value(over).unwrap();
    for (now, remove, requeue_after) in [
        ("2026-01-01T00:00:58Z", false, 2 * SECOND),
        // The watch has not reported the deletion yet.
        ("2026-01-01T00:01:00Z", true, OWN_WRITE_TIMEOUT),
        ("2026-01-01T00:01:05Z", true, OWN_WRITE_TIMEOUT),
    ] {
        let facts = Facts {
            job: &over,
            pods: Vec::new(),
            now: now.parse().unwrap(),
        };
        let decision = decide(&facts);
        assert_eq!(
            (decision.remove, decision.requeue_after),
            (remove, Some(requeue_after))
        );
    }
}

#[tokio::test(start_paused = true)]
async fn lower_parallelism_deletes_pods_without_counting_them() {
    let cluster = cluster().await;
    let spec = json!({"completions": 4, "parallelism": 4});
    cluster.create::<Job>(job("sum", "long", spec)).await;
    cluster.advance(SECOND).await;
    cluster
        .patch::<Job>("sum", json!({"spec": {"parallelism": 1}}))
        .await;
    cluster.advance(MINUTE).await;
    let fewer = status(&cluster, "sum").await;
    assert_eq!((fewer.active, fewer.failed), (Some(1), None));
    assert_eq!(cluster.list::<Pod>().await.len(), 1);
}

#[tokio::test(start_paused = true)]
async fn pods_of_a_deleted_job_lose_their_finalizers() {
    let cluster = cluster().await;
    cluster.create::<Job>(job("sum", "long", json!({}))).await;
    cluster.advance(SECOND).await;
    cluster.delete::<Job>("sum").await;
    cluster.advance(MINUTE).await;
    // A Job that is deleted without a propagation policy leaves its pods behind.
    let pods: Vec<Pod> = cluster.list().await;
    assert!(pods.iter().all(|pod| pod.finalizers().is_empty()));

    cluster.create::<Job>(job("next", "long", json!({}))).await;
    cluster.advance(SECOND).await;
    let jobs: Api<Job> = cluster.api();
    jobs.delete("next", &DeleteParams::background())
        .await
        .unwrap();
    cluster.advance(MINUTE).await;
    assert_eq!(cluster.list::<Pod>().await.len(), pods.len());
}

#[tokio::test(start_paused = true)]
async fn two_controllers_at_once_do_the_work_of_one() {
    let components = |context: &_| Ok(vec![super::component(context)?, super::component(context)?]);
    let kubelet = Kubelet::default().behavior("good", PodBehavior::Ends(0, 5 * SECOND));
    let cluster = TestCluster::start(components).await.with_kubelet(kubelet);
    let spec = json!({"completions": 20, "parallelism": 7});
    cluster.create::<Job>(job("sum", "good", spec)).await;
    cluster.advance(10 * MINUTE).await;
    let done = status(&cluster, "sum").await;
    assert_eq!((done.succeeded, done.failed), (Some(20), None));
    assert_eq!(cluster.list::<Pod>().await.len(), 20);
}
