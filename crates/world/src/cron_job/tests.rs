use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::api::{
    batch::v1::{CronJob, CronJobStatus, Job},
    core::v1::Event,
};
use kube::ResourceExt;
use serde_json::{Value, json};

use super::times::{Missed, Problem, Times};
use crate::stage::{Fate, Kubelet, Stage, fields};

const SECOND: Duration = Duration::from_secs(1);
const MINUTE: Duration = Duration::from_mins(1);
/// The minute in which the play begins, as names of Jobs count them.
const FIRST: i64 = 29_453_760;

fn cron(name: &str, fate: &str, spec: Value) -> Value {
    let containers = json!([{"name": "main", "image": "app"}]);
    let template = json!({
        "metadata": {"labels": {"fate": fate}},
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

async fn stage() -> Stage {
    let services = |site: &_| Ok(vec![super::service(site)?, crate::job::service(site)?]);
    let kubelet = Kubelet::default()
        .fate("good", Fate::Ends(0, 5 * SECOND))
        .fate("bad", Fate::Ends(3, 5 * SECOND))
        .fate("long", Fate::Unready);
    Stage::open(services).await.with(kubelet)
}

/// The minutes of all Jobs, counted from the first.
async fn minutes(stage: &Stage) -> Vec<i64> {
    let jobs: Vec<Job> = stage.list().await;
    let minute = |job: &Job| {
        let name = job.name_any();
        name.rsplit('-').next().unwrap().parse::<i64>().unwrap() - FIRST
    };
    let mut minutes: Vec<_> = jobs.iter().map(minute).collect();
    minutes.sort_unstable();
    minutes
}

async fn status(stage: &Stage) -> CronJobStatus {
    let cron = stage.get::<CronJob>("tick").await;
    cron.status.unwrap_or_default()
}

async fn events(stage: &Stage, reason: &str) -> Vec<String> {
    let events: Vec<Event> = stage.list().await;
    let about = events.into_iter().filter(|event| {
        event.reason.as_deref() == Some(reason)
            && event.involved_object.kind.as_deref() == Some("CronJob")
    });
    about.filter_map(|event| event.message).collect()
}

#[tokio::test(start_paused = true)]
async fn a_job_starts_each_time_and_the_last_ones_are_kept() {
    let stage = stage().await;
    let spec = json!({"successfulJobsHistoryLimit": 2, "timeZone": "Asia/Kolkata"});
    stage.create::<CronJob>(cron("tick", "good", spec)).await;
    stage.pass(9 * MINUTE).await;
    assert!(minutes(&stage).await.is_empty());
    stage.pass(MINUTE + SECOND).await;
    assert_eq!(minutes(&stage).await, [10]);
    let started = status(&stage).await;
    let active = started.active.unwrap();
    let job = stage.get::<Job>(&format!("tick-{}", FIRST + 10)).await;
    assert_eq!((active.len(), &active[0].uid), (1, &job.uid()));
    let owner = stage.get::<CronJob>("tick").await;
    assert_eq!(
        job.owner_references(),
        [crate::workload::owned_by(&owner).unwrap()]
    );
    assert_eq!(job.labels()["team"], "blue");
    let scheduled = &job.annotations()["batch.kubernetes.io/cronjob-scheduled-timestamp"];
    assert_eq!(scheduled, "2026-01-01T05:40:00+05:30");

    stage.pass(MINUTE).await;
    let ended = status(&stage).await;
    assert_eq!(ended.active, None);
    let time = |time: Option<k8s_openapi::apimachinery::pkg::apis::meta::v1::Time>| {
        time.unwrap().0.to_string()
    };
    assert_eq!(time(ended.last_schedule_time), "2026-01-01T00:10:00Z");
    assert!(time(ended.last_successful_time).starts_with("2026-01-01T00:10:0"));
    let name = job.name_any();
    let seen = format!("Saw completed job: {name}, condition: Complete");
    assert_eq!(events(&stage, "SawCompletedJob").await, [seen]);
    assert_eq!(
        events(&stage, "SuccessfulCreate").await,
        [format!("Created job {name}")]
    );

    stage.pass(50 * MINUTE).await;
    assert_eq!(minutes(&stage).await, [50, 60]);
    assert_eq!(events(&stage, "SuccessfulDelete").await.len(), 4);
}

#[tokio::test(start_paused = true)]
async fn jobs_run_side_by_side_or_wait_or_replace_as_is_asked() {
    for (policy, expected) in [
        ("Allow", &[10, 20, 30][..]),
        ("Forbid", &[10]),
        ("Replace", &[30]),
    ] {
        let stage = stage().await;
        let spec = json!({"concurrencyPolicy": policy});
        stage.create::<CronJob>(cron("tick", "long", spec)).await;
        stage.pass(31 * MINUTE).await;
        assert_eq!(minutes(&stage).await, expected, "{policy}");
        let active = status(&stage).await.active.unwrap();
        assert_eq!(active.len(), expected.len(), "{policy}");
        let refused = events(&stage, "JobAlreadyActive").await.len();
        assert_eq!(refused, usize::from(policy == "Forbid"));
    }
}

#[tokio::test(start_paused = true)]
async fn what_is_not_kept_is_not_told_of() {
    let stage = stage().await;
    let spec = json!({"successfulJobsHistoryLimit": 0});
    stage.create::<CronJob>(cron("tick", "good", spec)).await;
    stage.pass(11 * MINUTE).await;
    assert!(minutes(&stage).await.is_empty());
    let status = status(&stage).await;
    assert_eq!(status.active, None);
    assert!(status.last_successful_time.is_some());
    assert_eq!(events(&stage, "SawCompletedJob").await, [""; 0]);
    assert_eq!(events(&stage, "SuccessfulDelete").await.len(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_job_started_by_hand_stands_in_nobodys_way() {
    let stage = stage().await;
    let spec = json!({"concurrencyPolicy": "Forbid"});
    let tick: CronJob = stage.create(cron("tick", "long", spec)).await;
    let mut by_hand = json!({
        "metadata": {
            "name": format!("by-hand-{}", FIRST + 5),
            "annotations": {"cronjob.kubernetes.io/instantiate": "manual"},
        },
        "spec": tick.spec.job_template.spec,
    });
    by_hand["metadata"]["ownerReferences"] = json!([crate::workload::owned_by(&tick)]);
    stage.create::<Job>(by_hand).await;
    stage.pass(11 * MINUTE).await;
    assert_eq!(minutes(&stage).await, [5, 10]);
    assert_eq!(status(&stage).await.active.unwrap().len(), 1);
    let unexpected = events(&stage, "UnexpectedJob").await;
    assert!(unexpected[0].ends_with(&format!("by-hand-{}", FIRST + 5)));
}

#[tokio::test(start_paused = true)]
async fn one_failure_is_kept() {
    let stage = stage().await;
    stage
        .create::<CronJob>(cron("tick", "bad", json!({})))
        .await;
    stage.pass(35 * MINUTE).await;
    assert_eq!(minutes(&stage).await, [30]);
    assert_eq!(status(&stage).await.last_successful_time, None);
}

#[tokio::test(start_paused = true)]
async fn of_what_was_missed_the_last_is_made_up_for() {
    let stage = stage().await;
    let spec = json!({"suspend": true, "schedule": "*/10 * * * *"});
    stage.create::<CronJob>(cron("tick", "good", spec)).await;
    stage.pass(45 * MINUTE).await;
    assert!(minutes(&stage).await.is_empty());
    stage
        .patch::<CronJob>("tick", json!({"spec": {"suspend": false}}))
        .await;
    stage.pass(SECOND).await;
    assert_eq!(minutes(&stage).await, [40]);
}

#[tokio::test(start_paused = true)]
async fn what_is_too_late_is_not_started() {
    let stage = stage().await;
    let spec = json!({"suspend": true, "startingDeadlineSeconds": 60});
    stage.create::<CronJob>(cron("tick", "good", spec)).await;
    stage.pass(45 * MINUTE).await;
    stage
        .patch::<CronJob>("tick", json!({"spec": {"suspend": false}}))
        .await;
    stage.pass(MINUTE).await;
    assert!(minutes(&stage).await.is_empty());
    stage.pass(5 * MINUTE).await;
    assert_eq!(minutes(&stage).await, [50]);
}

#[tokio::test(start_paused = true)]
async fn a_time_is_not_seen_to_by_a_job_of_somebody_else() {
    let stage = stage().await;
    let cron = cron("tick", "good", json!({}));
    let name = format!("tick-{}", FIRST + 10);
    let foreign = json!({"metadata": {"name": name}, "spec": cron["spec"]["jobTemplate"]["spec"]});
    stage.create::<Job>(foreign).await;
    stage.create::<CronJob>(cron).await;
    stage.pass(11 * MINUTE).await;
    assert_eq!(status(&stage).await.last_schedule_time, None);
    stage.delete::<Job>(&name).await;
    stage.pass(MINUTE).await;
    assert!(status(&stage).await.last_schedule_time.is_some());
    assert_eq!(minutes(&stage).await, [10]);
}

#[tokio::test(start_paused = true)]
async fn two_controllers_at_once_start_each_job_once() {
    let services = |site: &_| Ok(vec![super::service(site)?, super::service(site)?]);
    let stage = Stage::open(services).await;
    stage.create::<CronJob>(cron("tick", "", json!({}))).await;
    stage.pass(65 * MINUTE).await;
    assert_eq!(minutes(&stage).await, [10, 20, 30, 40, 50, 60]);
    assert_eq!(status(&stage).await.active.unwrap().len(), 6);
}

fn at(time: &str) -> Timestamp {
    format!("2026-{time}:00Z").parse().unwrap()
}

#[test]
fn times_are_those_of_the_zone() {
    let next = |schedule: &str, zone: Option<&str>, now: &str| {
        let times = Times::parse(schedule, zone).unwrap();
        times.next(at(now)).unwrap()
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
fn no_more_than_a_hundred_missed_times_are_looked_at() {
    let times = Times::parse("* * * * *", None).unwrap();
    let missed = |since: &str, now: &str| times.missed(at(since), at(now));
    assert_eq!(missed("01-01T00:00", "01-01T00:00"), None);
    let (last, too_many) = (at("01-01T01:40"), false);
    assert_eq!(
        missed("01-01T00:00", "01-01T01:40"),
        Some(Missed { last, too_many })
    );
    let (last, too_many) = (at("12-01T00:00"), true);
    assert_eq!(
        missed("01-01T00:00", "12-01T00:00"),
        Some(Missed { last, too_many })
    );
}

#[test]
fn a_schedule_that_says_nothing_is_told_of() {
    let problem = Times::parse("every day", None).unwrap_err();
    assert!(
        problem
            .to_string()
            .starts_with("unparseable schedule: \"every day\"")
    );
    let problem = Times::parse("@daily", Some("Mars/Olympus")).unwrap_err();
    assert_eq!(problem, Problem::Zone("Mars/Olympus".to_owned()));
}
