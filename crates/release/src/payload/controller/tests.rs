//! What counts as an object of a payload.

use serde_json::json;

use super::*;

#[test]
fn only_a_job_of_the_release_in_the_namespace_of_jobs_creates_it() {
    let payload = crate::payload::samples::payload(&json!({}));
    let job = |namespace: &str, target: &str, tag: &str| -> Job {
        let annotations = json!({annotations::TARGET: target, annotations::RELEASE_TAG: tag});
        serde_json::from_value(json!({
            "metadata": {"name": "job", "namespace": namespace, "annotations": annotations},
        }))
        .unwrap()
    };
    let tag = crate::payload::samples::TAG;
    let counts = |job: &Job, known: Option<&str>| is_job_of(&payload, job, known);
    let own = job("ci-release", "ocp/release", tag);
    assert!(counts(&own, Some("ci-release")) && counts(&own, None));
    let known = Some("ci-release");
    assert!(!counts(&job("tenant", "ocp/release", tag), known));
    assert!(!counts(&job("ci-release", "ocp/other", tag), known));
    assert!(!counts(&job("ci-release", "ocp/release", "another"), known));
    assert!(!counts(&Job::default(), None), "it names no release");
}

#[test]
fn the_message_of_the_pod_that_failed_last_is_taken() {
    let pod = |phase: &str, container: &str, finished: &str, message: &str| -> Pod {
        let ended = json!({"exitCode": 1, "finishedAt": finished, "message": message});
        serde_json::from_value(json!({"status": {
            "phase": phase,
            "containerStatuses": [{
                "name": container, "image": "", "imageID": "", "ready": false, "restartCount": 0,
                "state": {"terminated": ended},
            }],
        }}))
        .unwrap()
    };
    let (early, late) = ("2026-01-02T03:00:00Z", "2026-01-02T04:00:00Z");
    let pods = [
        pod("Failed", "build", late, "the last"),
        pod("Failed", "build", early, "the first"),
        pod("Running", "build", late, "still running"),
        pod("Failed", "sidecar", late, "another container"),
        pod("Failed", "build", "2026-01-02T05:00:00Z", ""),
    ];
    assert_eq!(last_message(&pods).as_deref(), Some("the last"));
    assert_eq!(last_message(&pods[2..]), None);
}
