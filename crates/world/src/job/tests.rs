mod rules;

use std::time::Duration;

use k8s_openapi::api::{
    batch::v1::{Job, JobStatus},
    core::v1::{Event, Pod},
};
use kube::{Api, ResourceExt, api::DeleteParams};
use serde_json::{Value, json};

use super::decide::{Facts, decide};
use neap_kit::wiring::ECHO;

use crate::stage::{Fate, Kubelet, Stage, fields};

const SECOND: Duration = Duration::from_secs(1);
const MINUTE: Duration = Duration::from_mins(1);

/// A Job whose pods have this fate.
fn job(name: &str, fate: &str, spec: Value) -> Value {
    let containers = json!([{"name": "main", "image": "app"}]);
    let mut job = json!({
        "metadata": {"name": name},
        "spec": {"template": {
            "metadata": {"labels": {"fate": fate}},
            "spec": {"restartPolicy": "Never", "containers": containers},
        }},
    });
    job["spec"].as_object_mut().unwrap().extend(fields(spec));
    job
}

async fn stage() -> Stage {
    let stage = Stage::open(|site| Ok(vec![super::service(site)?])).await;
    let kubelet = Kubelet::default()
        .fate("good", Fate::Ends(0, 5 * SECOND))
        .fate("bad", Fate::Ends(3, 5 * SECOND))
        .fate("long", Fate::Unready);
    stage.with(kubelet)
}

async fn status(stage: &Stage, name: &str) -> JobStatus {
    stage.get::<Job>(name).await.status.unwrap()
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

async fn events(stage: &Stage, reason: &str) -> Vec<String> {
    let events: Vec<Event> = stage.list().await;
    let about = events
        .into_iter()
        .filter(|event| event.reason.as_deref() == Some(reason));
    about.filter_map(|event| event.message).collect()
}

#[tokio::test(start_paused = true)]
async fn a_job_is_complete_when_enough_pods_succeeded() {
    let stage = stage().await;
    let spec = json!({"completions": 5, "parallelism": 2});
    stage.create::<Job>(job("sum", "good", spec)).await;
    stage.pass(2 * SECOND).await;
    let running = status(&stage, "sum").await;
    assert_eq!((running.active, running.ready), (Some(2), Some(2)));
    for pod in stage.list::<Pod>().await {
        assert_eq!(pod.metadata.generate_name.as_deref(), Some("sum-"));
        assert_eq!(pod.finalizers(), ["batch.kubernetes.io/job-tracking"]);
    }
    stage.pass(MINUTE).await;
    let done = status(&stage, "sum").await;
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
    let pods: Vec<Pod> = stage.list().await;
    assert_eq!(pods.len(), 5);
    assert!(pods.iter().all(|pod| pod.finalizers().is_empty()));
    assert_eq!(events(&stage, "Completed").await, ["Job completed"]);
    assert_eq!(events(&stage, "SuccessfulCreate").await.len(), 5);
}

#[tokio::test(start_paused = true)]
async fn pods_that_fail_are_replaced_ever_more_slowly_until_it_is_enough() {
    let stage = stage().await;
    let spec = json!({"backoffLimit": 2});
    stage.create::<Job>(job("sum", "bad", spec)).await;
    let made = async |after: Duration| {
        stage.pass(after).await;
        stage.list::<Pod>().await.len()
    };
    // Each runs for 5 s; then 10 s and 20 s pass.
    assert_eq!(made(14 * SECOND).await, 1);
    assert_eq!(made(3 * SECOND).await, 2);
    assert_eq!(made(20 * SECOND).await, 2);
    assert_eq!(made(5 * SECOND).await, 3);
    assert_eq!(made(60 * MINUTE).await, 3);
    let failed = status(&stage, "sum").await;
    let expected = [
        "FailureTarget=True BackoffLimitExceeded",
        "Failed=True BackoffLimitExceeded",
    ];
    assert_eq!(conditions(&failed), expected);
    assert_eq!((failed.failed, failed.completion_time), (Some(3), None));
    let message = "Job has reached the specified backoff limit";
    assert_eq!(events(&stage, "BackoffLimitExceeded").await, [message]);
}

#[tokio::test(start_paused = true)]
async fn every_index_is_done_once_and_knows_itself() {
    let stage = stage().await;
    let spec = json!({"completions": 4, "parallelism": 2, "completionMode": "Indexed"});
    stage.create::<Job>(job("map", "good", spec)).await;
    stage.pass(MINUTE).await;
    let done = status(&stage, "map").await;
    assert_eq!(done.completed_indexes.as_deref(), Some("0-3"));
    assert_eq!((done.succeeded, done.failed_indexes), (Some(4), None));
    let pods: Vec<Pod> = stage.list().await;
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
async fn an_index_may_fail_for_itself() {
    let stage = stage().await;
    let spec = json!({"completions": 2, "parallelism": 2, "completionMode": "Indexed", "backoffLimitPerIndex": 1});
    stage.create::<Job>(job("map", "bad", spec)).await;
    stage.pass(10 * MINUTE).await;
    let failed = status(&stage, "map").await;
    let expected = [
        "FailureTarget=True FailedIndexes",
        "Failed=True FailedIndexes",
    ];
    assert_eq!(conditions(&failed), expected);
    assert_eq!(failed.failed_indexes.as_deref(), Some("0,1"));
    assert_eq!(failed.failed, Some(4));
    let count = "batch.kubernetes.io/job-index-failure-count";
    let pods: Vec<Pod> = stage.list().await;
    let mut counts: Vec<_> = pods
        .iter()
        .map(|pod| pod.annotations()[count].clone())
        .collect();
    counts.sort();
    assert_eq!(counts, ["0", "0", "1", "1"]);
}

#[tokio::test(start_paused = true)]
async fn what_is_enough_is_said_by_the_job_and_the_rest_has_not_failed() {
    let stage = stage().await;
    let policy = json!({"rules": [{"succeededIndexes": "1-2", "succeededCount": 1}]});
    let spec = json!({"completions": 4, "parallelism": 4, "completionMode": "Indexed", "successPolicy": policy});
    stage.create::<Job>(job("map", "long", spec)).await;
    stage.pass(SECOND).await;
    let pods: Vec<Pod> = stage.list().await;
    let of = |index: &str| {
        let has = |pod: &&Pod| pod.labels()["batch.kubernetes.io/job-completion-index"] == index;
        pods.iter().find(has).unwrap().name_any()
    };
    let succeeded = json!({"phase": "Succeeded"});
    stage.patch_status::<Pod>(&of("0"), succeeded.clone()).await;
    stage.pass(MINUTE).await;
    assert_eq!(
        status(&stage, "map").await.active,
        Some(3),
        "not yet enough"
    );
    stage.patch_status::<Pod>(&of("2"), succeeded).await;
    stage.pass(MINUTE).await;
    let done = status(&stage, "map").await;
    let expected = [
        "SuccessCriteriaMet=True SuccessPolicy",
        "Complete=True SuccessPolicy",
    ];
    assert_eq!(conditions(&done), expected);
    assert_eq!(done.completed_indexes.as_deref(), Some("0,2"));
    assert_eq!((done.succeeded, done.failed), (Some(2), None));
    assert_eq!(stage.list::<Pod>().await.len(), 2);
}

#[tokio::test(start_paused = true)]
async fn a_deadline_ends_a_job_and_its_pods() {
    let stage = stage().await;
    let spec = json!({"activeDeadlineSeconds": 300});
    stage.create::<Job>(job("slow", "long", spec)).await;
    stage.pass(4 * MINUTE).await;
    assert_eq!(status(&stage, "slow").await.active, Some(1));
    stage.pass(2 * MINUTE).await;
    let failed = status(&stage, "slow").await;
    let expected = [
        "FailureTarget=True DeadlineExceeded",
        "Failed=True DeadlineExceeded",
    ];
    assert_eq!(conditions(&failed), expected);
    assert_eq!((failed.active, failed.failed), (None, Some(1)));
    assert_eq!(stage.list::<Pod>().await.len(), 0);
}

#[tokio::test(start_paused = true)]
async fn a_job_rests_while_it_is_suspended() {
    let stage = stage().await;
    stage.create::<Job>(job("nap", "long", json!({}))).await;
    stage.pass(SECOND).await;
    let suspend = |so: bool| json!({"spec": {"suspend": so}});
    stage.patch::<Job>("nap", suspend(true)).await;
    stage.pass(MINUTE).await;
    let resting = status(&stage, "nap").await;
    assert_eq!(conditions(&resting), ["Suspended=True JobSuspended"]);
    assert_eq!(
        (resting.active, resting.failed, &resting.start_time),
        (None, None, &None)
    );
    assert_eq!(stage.list::<Pod>().await.len(), 0);

    stage.patch::<Job>("nap", suspend(false)).await;
    stage.pass(MINUTE).await;
    let working = status(&stage, "nap").await;
    assert_eq!(conditions(&working), ["Suspended=False JobResumed"]);
    assert_eq!((working.active, working.failed), (Some(1), None));
    assert!(working.start_time.is_some());
    assert_eq!(events(&stage, "Suspended").await, ["Job suspended"]);
    assert_eq!(events(&stage, "Resumed").await, ["Job resumed"]);
}

#[tokio::test(start_paused = true)]
async fn a_job_that_is_over_goes_when_its_time_is_up() {
    let stage = stage().await;
    let spec = json!({"ttlSecondsAfterFinished": 600});
    stage.create::<Job>(job("sum", "good", spec)).await;
    stage.pass(9 * MINUTE).await;
    assert_eq!(stage.list::<Job>().await.len(), 1);
    stage.pass(2 * MINUTE).await;
    assert_eq!(stage.list::<Job>().await.len(), 0);
}

#[test]
fn a_job_whose_time_is_up_is_not_asked_to_go_over_and_over() {
    let mut over = job(
        "sum",
        "good",
        json!({"selector": {}, "ttlSecondsAfterFinished": 60}),
    );
    let moment = "2026-01-01T00:00:00Z";
    let condition = json!({"type": "Complete", "status": "True", "lastTransitionTime": moment});
    over["status"] = json!({"conditions": [condition]});
    let over: Job = serde_json::from_value(over).unwrap();
    for (now, remove, again) in [
        ("2026-01-01T00:00:58Z", false, 2 * SECOND),
        // The watch has not said yet that it is gone.
        ("2026-01-01T00:01:00Z", true, ECHO),
        ("2026-01-01T00:01:05Z", true, ECHO),
    ] {
        let facts = Facts {
            job: &over,
            pods: Vec::new(),
            now: now.parse().unwrap(),
        };
        let decision = decide(&facts);
        assert_eq!((decision.remove, decision.again), (remove, Some(again)));
    }
}

#[tokio::test(start_paused = true)]
async fn fewer_at_once_sends_pods_away_without_counting_them() {
    let stage = stage().await;
    let spec = json!({"completions": 4, "parallelism": 4});
    stage.create::<Job>(job("sum", "long", spec)).await;
    stage.pass(SECOND).await;
    stage
        .patch::<Job>("sum", json!({"spec": {"parallelism": 1}}))
        .await;
    stage.pass(MINUTE).await;
    let fewer = status(&stage, "sum").await;
    assert_eq!((fewer.active, fewer.failed), (Some(1), None));
    assert_eq!(stage.list::<Pod>().await.len(), 1);
}

#[tokio::test(start_paused = true)]
async fn pods_of_a_job_that_is_gone_are_not_kept() {
    let stage = stage().await;
    stage.create::<Job>(job("sum", "long", json!({}))).await;
    stage.pass(SECOND).await;
    stage.delete::<Job>("sum").await;
    stage.pass(MINUTE).await;
    // A Job that is deleted without a word leaves its pods behind.
    let pods: Vec<Pod> = stage.list().await;
    assert!(pods.iter().all(|pod| pod.finalizers().is_empty()));

    stage.create::<Job>(job("next", "long", json!({}))).await;
    stage.pass(SECOND).await;
    let jobs: Api<Job> = stage.api();
    jobs.delete("next", &DeleteParams::background())
        .await
        .unwrap();
    stage.pass(MINUTE).await;
    assert_eq!(stage.list::<Pod>().await.len(), pods.len());
}

#[tokio::test(start_paused = true)]
async fn two_controllers_at_once_do_the_work_of_one() {
    let services = |site: &_| Ok(vec![super::service(site)?, super::service(site)?]);
    let kubelet = Kubelet::default().fate("good", Fate::Ends(0, 5 * SECOND));
    let stage = Stage::open(services).await.with(kubelet);
    let spec = json!({"completions": 20, "parallelism": 7});
    stage.create::<Job>(job("sum", "good", spec)).await;
    stage.pass(10 * MINUTE).await;
    let done = status(&stage, "sum").await;
    assert_eq!((done.succeeded, done.failed), (Some(20), None));
    assert_eq!(stage.list::<Pod>().await.len(), 20);
}
