//! The image: its Job, its mirror, and what is decided once.

use super::*;

#[test]
fn jobs_of_the_spec_are_copied_into_the_status_once() {
    let nothing = decide(&facts(payload(&json!({}))));
    assert!(nothing.status.blocking_job_results.is_empty());
    let mut aggregator = job("agg");
    aggregator["ciConfigurationJobName"] = json!("agg-aggregator-job");
    aggregator["maxRetries"] = json!(2);
    let mut analysed = job("agg");
    analysed["analysisJobCount"] = json!(10);
    analysed["qualifiers"] = json!({"rosa": {"badgeName": "x"}});
    let verification = json!({
        "blockingJobs": [job("z"), aggregator, job("b")],
        "informingJobs": [analysed],
        "upgradeJobs": [job("gcp")],
    });
    let facts = facts(payload(&verification));
    let decided = decide(&facts);
    let status = &decided.status;
    assert_eq!(names(&status.blocking_job_results), ["agg", "b", "z"]);
    assert_eq!(status.blocking_job_results[0].max_retries, 2);
    assert_eq!(status.informing_job_results[0].analysis_job_count, 10);
    let upgrade = serde_json::to_value(&status.upgrade_job_results[0]).unwrap();
    let wanted = json!({
        "ciConfigurationName": "gcp", "ciConfigurationJobName": "periodic-gcp", "state": "Unknown",
    });
    assert_eq!(upgrade, wanted);

    let mut changed = ReleasePayload::clone(&facts.payload);
    changed.status = Some(status.clone());
    changed
        .spec
        .payload_verification_config
        .blocking_jobs
        .clear();
    let kept = decide(&self::facts(changed));
    assert_eq!(names(&kept.status.blocking_job_results), ["agg", "b", "z"]);
}

#[test]
fn the_creation_job_is_known_from_the_spec_until_the_status_has_one() {
    let decided = decide(&facts(payload(&json!({}))));
    let result = &decided.status.release_creation_job_result;
    assert_eq!(result.coordinates.name, TAG);
    assert_eq!(result.coordinates.namespace, "ci-release");
    let mut known = payload(&json!({}));
    let coordinates = json!({"coordinates": {"name": "other", "namespace": "elsewhere"}});
    with_status(
        &mut known,
        &json!({"releaseCreationJobResult": coordinates}),
    );
    let decided = decide(&facts(known));
    assert_eq!(
        decided.status.release_creation_job_result.coordinates.name,
        "other"
    );
}

#[test]
fn the_creation_job_gives_a_status_and_a_message() {
    use CreationJobStatus::{Failed, Success, Unknown};
    let active = JobFacts {
        active: true,
        ..JobFacts::default()
    };
    let with_pod = failed("BackoffLimitExceeded", "text").map(|job| JobFacts {
        pod_message: Some("the image of etcd is missing".to_owned()),
        ..job
    });
    for (job, status, message) in [
        (completed(), Success, "Release creation Job completed"),
        (
            Some(JobFacts::default()),
            Unknown,
            "Release creation job unknown",
        ),
        (failed("", ""), Failed, "Release creation Job failed"),
        (
            failed("BackoffLimitExceeded", ""),
            Failed,
            "Release creation Job failed",
        ),
        (
            failed("BackoffLimitExceeded", "text"),
            Failed,
            "BackoffLimitExceeded: text",
        ),
        (Some(active), Unknown, "Release creation job pending"),
        (None, Unknown, "Release creation job unknown"),
        (with_pod, Failed, "the image of etcd is missing"),
    ] {
        let mut facts = facts(payload(&json!({})));
        facts.creation_job = job;
        let decided = decide(&facts).status;
        let result = &decided.release_creation_job_result;
        assert_eq!((result.status, result.message.as_str()), (status, message));
    }
    let mut unset = payload(&json!({}));
    unset.spec.payload_creation_config = crate::api::PayloadCreationConfig::default();
    let decided = decide(&facts(unset));
    assert_eq!(
        decided.warnings[0],
        "unable to lookup release creation job: coordinates not set"
    );
}

#[test]
fn a_job_that_was_decided_may_be_collected() {
    for job in [completed(), failed("DeadlineExceeded", "late")] {
        let mut facts = facts(payload(&json!({})));
        facts.creation_job = job;
        let decided = decide(&facts);
        facts.creation_job = None;
        assert_eq!(again(&facts, &decided).status, decided.status);
    }
}

#[test]
fn creation_is_decided_once() {
    let row = |created: &str, failed: &str, job: Option<JobFacts>| {
        let mut payload = payload(&json!({}));
        let condition = |type_: &str, status: &str, reason: &str| {
            json!({
                "type": type_, "status": status, "reason": reason, "message": "before",
                "lastTransitionTime": "2026-01-02T03:04:05Z",
            })
        };
        let conditions = json!([
            condition("PayloadCreated", created, "ReleasePayloadCreated"),
            condition("PayloadFailed", failed, "ReleasePayloadFailed"),
        ]);
        with_status(&mut payload, &json!({"conditions": conditions}));
        let mut facts = facts(payload);
        facts.creation_job = job;
        let status = decide(&facts).status;
        let (created, _, message) = condition_owned(&status, "PayloadCreated");
        let (failed, _, _) = condition_owned(&status, "PayloadFailed");
        (created, failed, message)
    };
    let owned = |a: &str, b: &str, c: &str| (a.to_owned(), b.to_owned(), c.to_owned());
    assert_eq!(
        row("True", "False", failed("R", "m")),
        owned("True", "False", "before")
    );
    assert_eq!(
        row("False", "True", completed()),
        owned("False", "True", "before")
    );
    assert_eq!(
        row("True", "Unknown", None),
        owned("Unknown", "Unknown", "")
    );
    let done = "Release creation Job completed";
    assert_eq!(
        row("Unknown", "Unknown", completed()),
        owned("True", "False", done)
    );
    let done = "Release creation Job failed";
    assert_eq!(
        row("Unknown", "Unknown", failed("", "")),
        owned("False", "True", done)
    );
}

#[test]
fn a_mirror_is_waited_for_only_where_there_is_one() {
    let without = decide(&facts(payload(&json!({})))).status;
    assert_eq!(condition(&without, "PayloadMirrored").0, "Unknown");
    assert_eq!(without.release_mirror_job_result.message, "");
    for (job, mirrored, failed_, message) in [
        (completed(), "True", "False", "Release mirror Job completed"),
        (failed("R", "m"), "False", "True", "R: m"),
        (None, "Unknown", "Unknown", "Release mirror job unknown"),
    ] {
        let mut facts = facts(with_mirror());
        (facts.creation_job, facts.mirror_job) = (completed(), job);
        let decided = decide(&facts);
        assert_eq!(condition(&decided.status, "PayloadMirrored").0, mirrored);
        assert_eq!(condition(&decided.status, "PayloadMirrorFailed").0, failed_);
        assert_eq!(decided.status.release_mirror_job_result.message, message);
        facts.mirror_job = None;
        let later = again(&facts, &decided).status;
        assert_eq!(
            later.release_mirror_job_result,
            decided.status.release_mirror_job_result
        );
    }
}

#[test]
fn a_job_that_is_made_again_does_not_take_a_failure_back() {
    let mut facts = facts(payload(&json!({"blockingJobs": [job("aws")]})));
    facts.creation_job = failed("DeadlineExceeded", "late");
    let first = decide(&facts);
    assert_eq!(first.phase, Phase::Failed);
    facts.creation_job = completed();
    facts.runs = vec![run(
        &format!("{TAG}-aws"),
        "periodic-aws",
        ProwJobState::Success,
    )];
    let later = again(&facts, &first);
    assert_eq!(later.phase, Phase::Failed);
    assert_eq!(condition(&later.status, "PayloadAccepted").0, "False");
    assert_eq!(condition(&later.status, "PayloadRejected").0, "True");
}
