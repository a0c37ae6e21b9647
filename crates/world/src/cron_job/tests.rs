use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::api::{
    batch::v1::{CronJob, CronJobStatus, Job},
    core::v1::Event,
};
use kube::ResourceExt;
use serde_json::{Value, json};

use super::schedule::{MissedTimes, Schedule, ScheduleError};
use crate::stage::{Kubelet, PodBehavior, TestCluster, fields};

const SECOND: Duration = Duration::from_secs(1);
const MINUTE: Duration = Duration::from_mins(1);
/// The minute in which the test starts, as in names of Jobs.
const FIRST: i64 = 29_453_760;

fn cron(name: &str, behavior: &str, spec: Value) -> Value {
    let containers = json!([{"name": "main", "image": "app"}]);
    let template = json!({
        "metadata": {"labels": {"behavior": behavior}},
        "spec": {"restartPolicy": "Never", "containers": containers},
    });
    let mut cron = json!({
        "metadata": {"name": name},
        "spec": {
            "schedule": "*/10 * * * *",
            "jobTemplate": {
                "metadata": {"labels": {"team": "blue"}},
                "spec": {"backoffLimit": 0, "template": template},
            },
        },
    });
    cron["spec"].as_object_mut().unwrap().extend(fields(spec));
    cron
}

async fn cluster() -> TestCluster {
    let components = |context: &_| {
        Ok(vec![
            super::component(context)?,
            crate::job::component(context)?,
        ])
    };
    let kubelet = Kubelet::default()
        .behavior("good", PodBehavior::Ends(0, 5 * SECOND))
        .behavior("bad", PodBehavior::Ends(3, 5 * SECOND))
        .behavior("long", PodBehavior::Unready);
    TestCluster::start(components).await.with_kubelet(kubelet)
}

/// The minutes of all Jobs, counted from the first.
async fn minutes(cluster: &TestCluster) -> Vec<i64> {
    let jobs: Vec<Job> = cluster.list().await;
    let minute = |job: &Job| {
        let name = job.name_any();
        name.rsplit('-').next().unwrap().parse::<i64>().unwrap() - FIRST
    };
    let mut minutes: Vec<_> = jobs.iter().map(minute).collect();
    minutes.sort_unstable();
    minutes
}

async fn status(cluster: &TestCluster) -> CronJobStatus {
    let cron = cluster.get::<CronJob>("tick").await;
    cron.status.unwrap_or_default()
}

async fn events(cluster: &TestCluster, reason: &str) -> Vec<String> {
    let events: Vec<Event> = cluster.list().await;
    let about = events.into_iter().filter(|event| {
        event.reason.as_deref() == Some(reason)
            && event.involved_object.kind.as_deref() == Some("CronJob")
    });
    about.filter_map(|event| event.message).collect()
}

#[tokio::test(start_paused = true)]
async fn a_job_starts_at_each_time_and_the_last_ones_remain() {
    let cluster = cluster().await;
    let spec = json!({"successfulJobsHistoryLimit": 2, "timeZone": "Asia/Kolkata"});
    cluster.create::<CronJob>(cron("tick", "good", spec)).await;
    cluster.advance(9 * MINUTE).await;
    assert!(minutes(&cluster).await.is_empty());
    cluster.advance(MINUTE + SECOND).await;
    assert_eq!(minutes(&cluster).await, [10]);
    let started = status(&cluster).await;
    let active = started.active.unwrap();
    let job = cluster.get::<Job>(&format!("tick-{}", FIRST + 10)).await;
    assert_eq!((active.len(), &active[0].uid), (1, &job.uid()));
    let owner = cluster.get::<CronJob>("tick").await;
    assert_eq!(
        job.owner_references(),
        [crate::workload::owned_by(&owner).unwrap()]
    );
    assert_eq!(job.labels()["team"], "blue");
    let scheduled = &job.annotations()["batch.kubernetes.io/cronjob-scheduled-timestamp"];
    assert_eq!(scheduled, "2026-01-01T05:40:00+05:30");

    cluster.advance(MINUTE).await;
    let ended = status(&cluster).await;
    assert_eq!(ended.active, None);
    let time = |time: Option<k8s_openapi::apimachinery::pkg::apis::meta::v1::Time>| {
        time.unwrap().0.to_string()
    };
    assert_eq!(time(ended.last_schedule_time), "2026-01-01T00:10:00Z");
    assert!(time(ended.last_successful_time).starts_with("2026-01-01T00:10:0"));
    let name = job.name_any();
    let seen = format!("Saw completed job: {name}, condition: Complete");
    assert_eq!(events(&cluster, "SawCompletedJob").await, [seen]);
    assert_eq!(
        events(&cluster, "SuccessfulCreate").await,
        [format!("Created job {name}")]
    );

    cluster.advance(50 * MINUTE).await;
    assert_eq!(minutes(&cluster).await, [50, 60]);
    assert_eq!(events(&cluster, "SuccessfulDelete").await.len(), 4);
}

#[tokio::test(start_paused = true)]
async fn jobs_run_concurrently_wait_or_replace_by_policy() {
    for (policy, expected) in [
        ("Allow", &[10, 20, 30][..]),
        ("Forbid", &[10]),
        ("Replace", &[30]),
    ] {
        let cluster = cluster().await;
        let spec = json!({"concurrencyPolicy": policy});
        cluster.create::<CronJob>(cron("tick", "long", spec)).await;
        cluster.advance(31 * MINUTE).await;
        assert_eq!(minutes(&cluster).await, expected, "{policy}");
        let active = status(&cluster).await.active.unwrap();
        assert_eq!(active.len(), expected.len(), "{policy}");
        let refused = events(&cluster, "JobAlreadyActive").await.len();
        assert_eq!(refused, usize::from(policy == "Forbid"));
    }
}

#[tokio::test(start_paused = true)]
async fn a_job_without_history_gets_no_completion_event() {
    let cluster = cluster().await;
    let spec = json!({"successfulJobsHistoryLimit": 0});
    cluster.create::<CronJob>(cron("tick", "good", spec)).await;
    cluster.advance(11 * MINUTE).await;
    assert!(minutes(&cluster).await.is_empty());
    let status = status(&cluster).await;
    assert_eq!(status.active, None);
    assert!(status.last_successful_time.is_some());
    assert_eq!(events(&cluster, "SawCompletedJob").await, [""; 0]);
    assert_eq!(events(&cluster, "SuccessfulDelete").await.len(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_manually_started_job_does_not_block_others() {
    let cluster = cluster().await;
    let spec = json!({"concurrencyPolicy": "Forbid"});
    let tick: CronJob = cluster.create(cron("tick", "long", spec)).await;
    let mut by_hand = json!({
        "metadata": {
            "name": format!("by-hand-{}", FIRST + 5),
            "annotations": {"cronjob.kubernetes.io/instantiate": "manual"},
        },
        "spec": tick.spec.job_template.spec,
    });
    by_hand["metadata"]["ownerReferences"] = json!([crate::workload::owned_by(&tick)]);
    cluster.create::<Job>(by_hand).await;
    cluster.advance(11 * MINUTE).await;
    assert_eq!(minutes(&cluster).await, [5, 10]);
    assert_eq!(status(&cluster).await.active.unwrap().len(), 1);
    let unexpected = events(&cluster, "UnexpectedJob").await;
    assert!(unexpected[0].ends_with(&format!("by-hand-{}", FIRST + 5)));
}

#[tokio::test(start_paused = true)]
async fn one_failed_job_remains() {
    let cluster = cluster().await;
    cluster
        .create::<CronJob>(cron("tick", "bad", json!({})))
        .await;
    cluster.advance(35 * MINUTE).await;
    assert_eq!(minutes(&cluster).await, [30]);
    assert_eq!(status(&cluster).await.last_successful_time, None);
}

#[tokio::test(start_paused = true)]
async fn only_the_last_missed_time_is_started() {
    let cluster = cluster().await;
    let spec = json!({"suspend": true, "schedule": "*/10 * * * *"});
    cluster.create::<CronJob>(cron("tick", "good", spec)).await;
    cluster.advance(45 * MINUTE).await;
    assert!(minutes(&cluster).await.is_empty());
    cluster
        .patch::<CronJob>("tick", json!({"spec": {"suspend": false}}))
        .await;
    cluster.advance(SECOND).await;
    assert_eq!(minutes(&cluster).await, [40]);
}

#[tokio::test(start_paused = true)]
async fn a_time_past_its_starting_deadline_is_not_started() {
    let cluster = cluster().await;
    let spec = json!({"suspend": true, "startingDeadlineSeconds": 60});
    cluster.create::<CronJob>(cron("tick", "good", spec)).await;
    cluster.advance(45 * MINUTE).await;
    cluster
        .patch::<CronJob>("tick", json!({"spec": {"suspend": false}}))
        .await;
    cluster.advance(MINUTE).await;
    assert!(minutes(&cluster).await.is_empty());
    cluster.advance(5 * MINUTE).await;
    assert_eq!(minutes(&cluster).await, [50]);
}

#[tokio::test(start_paused = true)]
async fn a_job_of_another_owner_does_not_count_as_started() {
    let cluster = cluster().await;
    let cron = cron("tick", "good", json!({}));
    let name = format!("tick-{}", FIRST + 10);
    let foreign = json!({"metadata": {"name": name}, "spec": cron["spec"]["jobTemplate"]["spec"]});
    cluster.create::<Job>(foreign).await;
    cluster.create::<CronJob>(cron).await;
    cluster.advance(11 * MINUTE).await;
    assert_eq!(status(&cluster).await.last_schedule_time, None);
    cluster.delete::<Job>(&name).await;
    cluster.advance(MINUTE).await;
    assert!(status(&cluster).await.last_schedule_time.is_some());
    assert_eq!(minutes(&cluster).await, [10]);
}

#[tokio::test(start_paused = true)]
async fn two_controllers_at_once_start_each_job_once() {
    let components = |context: &_| Ok(vec![super::component(context)?, super::component(context)?]);
    let cluster = TestCluster::start(components).await;
    cluster.create::<CronJob>(cron("tick", "", json!({}))).await;
    cluster.advance(65 * MINUTE).await;
    assert_eq!(minutes(&cluster).await, [10, 20, 30, 40, 50, 60]);
    assert_eq!(status(&cluster).await.active.unwrap().len(), 6);
}

fn at(time: &str) -> Timestamp {
    format!("2026-{time}:00Z").parse().unwrap()
}

#[test]
fn times_are_those_of_the_zone() {
    let next = |schedule: &str, zone: Option<&str>, now: &str| {
        let schedule = Schedule::parse(schedule, zone).unwrap();
        schedule.next(at(now)).unwrap()
    };
    assert_eq!(next("0 9 * * *", None, "01-01T09:00"), at("01-02T09:00"));
    let berlin = Some("Europe/Berlin");
    assert_eq!(next("0 9 * * *", berlin, "01-01T00:00"), at("01-01T08:00"));
    assert_eq!(next("0 9 * * *", berlin, "07-01T00:00"), at("07-01T07:00"));
    assert_eq!(next("@hourly", None, "01-01T00:30"), at("01-01T01:00"));
    assert_eq!(next("@midnight", None, "01-01T00:30"), at("01-02T00:00"));
    assert_eq!(
        next("0 0 13 * 5", None, "01-01T00:30"),
        at("01-02T00:00"),
        "a Friday or a 13th"
    );
}

#[test]
fn at_most_a_hundred_missed_times_are_counted() {
    let schedule = Schedule::parse("* * * * *", None).unwrap();
    let missed = |since: &str, now: &str| schedule.missed(at(since), at(now));
    assert_eq!(missed("01-01T00:00", "01-01T00:00"), None);
    let (last, too_many) = (at("01-01T01:40"), false);
    assert_eq!(
        missed("01-01T00:00", "01-01T01:40"),
        Some(MissedTimes { last, too_many })
    );
    let (last, too_many) = (at("12-01T00:00"), true);
    assert_eq!(
        missed("01-01T00:00", "12-01T00:00"),
        Some(MissedTimes { last, too_many })
    );
}

#[test]
fn an_invalid_schedule_is_reported() {
    let problem = Schedule::parse("every day", None).unwrap_err();
    assert!(
        problem
            .to_string()
            .starts_with("unparseable schedule: \"every day\"")
    );
    let problem = Schedule::parse("@daily", Some("Mars/Olympus")).unwrap_err();
    assert_eq!(problem, ScheduleError::Zone("Mars/Olympus".to_owned()));
}
