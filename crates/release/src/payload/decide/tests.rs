//! The tables of the original's controllers, one test for each.

mod properties;

use std::{sync::Arc, time::Duration};

use serde_json::{Value, json};

use super::*;
use crate::{
    api::{CreationJobStatus, JobRunState, JobState, ProwJobState, UpgradeType},
    config::ReleaseQualifiers,
    payload::{
        facts::{JobFacts, LegacyFacts, RunFacts},
        samples::{
            TAG, again, completed, facts, failed, job, job_status, now, payload, run, state,
            with_status,
        },
    },
};

fn condition<'a>(status: &'a ReleasePayloadStatus, type_: &str) -> (&'a str, &'a str, &'a str) {
    let found = status
        .conditions
        .iter()
        .find(|it| it.type_ == type_)
        .unwrap();
    (&found.status, &found.reason, &found.message)
}

fn names(jobs: &[crate::api::JobStatus]) -> Vec<&str> {
    jobs.iter().map(|job| job.name.as_str()).collect()
}

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

fn condition_owned(status: &ReleasePayloadStatus, type_: &str) -> (String, String, String) {
    let (status, reason, message) = condition(status, type_);
    (status.to_owned(), reason.to_owned(), message.to_owned())
}

fn with_mirror() -> ReleasePayload {
    let mut payload = payload(&json!({"blockingJobs": [job("aws")]}));
    let mirror = &mut payload
        .spec
        .payload_creation_config
        .release_mirror_coordinates;
    mirror.namespace = "ci-release".to_owned();
    mirror.release_mirror_job_name = format!("{TAG}-alternate-mirror");
    payload
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
#[expect(clippy::too_many_lines, reason = "all kinds of runs of one payload")]
fn runs_are_recorded_in_their_jobs() {
    let mut retried = job("aws");
    retried["maxRetries"] = json!(3);
    let aggregator = json!({
        "ciConfigurationName": "aggregated-hypershift-ovn-conformance-4.21",
        "ciConfigurationJobName": "aggregated-hypershift-ovn-conformance-4.21-release-openshift-release-analysis-aggregator",
    });
    let analysed = json!({
        "ciConfigurationName": "aggregated-hypershift-ovn-conformance-4.21",
        "ciConfigurationJobName": "periodic-hypershift", "analysisJobCount": 3,
    });
    let verification = json!({
        "blockingJobs": [retried, aggregator], "informingJobs": [analysed, job("gcp")],
    });
    let mut facts = facts(payload(&verification));
    let key = "aggregated-hypershift-ovn-conformance-4.21";
    facts.runs = vec![
        run(&format!("{TAG}-aws"), "periodic-aws", ProwJobState::Failure),
        run(
            &format!("{TAG}-aws-1"),
            "periodic-aws",
            ProwJobState::Aborted,
        ),
        run(
            &format!("{TAG}-aws-2"),
            "periodic-aws",
            ProwJobState::Pending,
        ),
        run(
            &format!("{TAG}-gcp"),
            "periodic-gcp",
            ProwJobState::Scheduling,
        ),
        run(
            &crate::names::aggregator_run(TAG, key, 0),
            "aggregated-hypershift-ovn-conformance-4.21-release-openshift-release-analysis-aggregator",
            ProwJobState::Triggered,
        ),
        run(
            &format!("{TAG}-other"),
            "periodic-other",
            ProwJobState::Success,
        ),
        run(
            "0b5f9a5e-8c3a-4f0e-a5d6-2f9f4d1c7b11",
            "periodic-aws",
            ProwJobState::Success,
        ),
    ];
    for at in 0..3 {
        let name = crate::names::analysis_run(TAG, key, at);
        facts
            .runs
            .push(run(&name, "periodic-hypershift", ProwJobState::Success));
    }
    let decided = decide(&facts);
    let states = |job: &crate::api::JobStatus| -> Vec<JobRunState> {
        job.results.iter().map(|it| it.state).collect()
    };
    let [aggregated, aws] = &decided.status.blocking_job_results[..] else {
        panic!("{:?}", decided.status.blocking_job_results);
    };
    assert_eq!(
        states(aws),
        [
            JobRunState::Failure,
            JobRunState::Aborted,
            JobRunState::Pending
        ]
    );
    assert_eq!(
        (aws.state, states(aggregated)),
        (JobState::Pending, vec![JobRunState::Triggered])
    );
    let [analysed, gcp] = &decided.status.informing_job_results[..] else {
        panic!("{:?}", decided.status.informing_job_results);
    };
    assert_eq!(
        (analysed.state, analysed.results.len()),
        (JobState::Success, 3)
    );
    assert_eq!(
        states(gcp),
        [],
        "a run that Prow has not placed yet is not recorded"
    );
    let unplaced = format!("unable to locate job results for {TAG}-other (periodic-other)");
    assert!(
        decided.warnings.contains(&unplaced),
        "{:?}",
        decided.warnings
    );
    assert_eq!(decided.warnings.len(), 2);
}

#[test]
fn upgrades_are_of_a_kind() {
    let mut stable = payload(&json!({"upgradeJobs": [job("aws"), job("gcp")]}));
    stable.metadata.name = Some("4.11.22".to_owned());
    let mut facts = facts(stable);
    facts.runs = vec![
        run(
            "4.11.22-upgrade-from-4.10.18-aws",
            "periodic-aws",
            ProwJobState::Success,
        ),
        run(
            "4.11.22-upgrade-from-4.11.10-gcp",
            "periodic-gcp",
            ProwJobState::Success,
        ),
    ];
    let decided = decide(&facts).status;
    let kinds: Vec<_> = decided
        .upgrade_job_results
        .iter()
        .map(|it| it.results[0].upgrade_type)
        .collect();
    assert_eq!(kinds, [UpgradeType::UpgradeMinor, UpgradeType::Upgrade]);
    let wire = serde_json::to_value(&decided.upgrade_job_results[0].results[0]).unwrap();
    assert_eq!(wire["upgradeType"], "upgrade-minor");
    assert_eq!(wire["startTime"], Value::Null);
}

#[test]
fn results_come_from_prow_only_where_the_payload_says_so() {
    for source in [json!("ImageStreamTagAnnotation"), Value::Null] {
        let mut payload = payload(
            &json!({"blockingJobs": [job("aws")], "payloadVerificationDataSource": source}),
        );
        if source.is_null() {
            payload
                .spec
                .payload_verification_config
                .payload_verification_data_source = None;
        }
        let mut facts = facts(payload);
        facts.runs = vec![run(
            &format!("{TAG}-aws"),
            "periodic-aws",
            ProwJobState::Success,
        )];
        assert!(
            decide(&facts).status.blocking_job_results[0]
                .results
                .is_empty()
        );
    }
}

#[test]
fn names_of_okd_streams_are_understood() {
    for tag in [
        "4.20.0-okd-scos.ec.5",
        "4.19.0-okd-scos.5",
        "4.15.0-0.okd-2023-10-28-065448",
        "4.20.0-0.okd-scos-2025-04-01-010101",
    ] {
        let mut payload = payload(&json!({"blockingJobs": [job("e2e-aws")]}));
        payload.metadata.name = Some(tag.to_owned());
        let mut facts = facts(payload);
        facts.runs = vec![run(
            &format!("{tag}-e2e-aws"),
            "periodic-e2e-aws",
            ProwJobState::Success,
        )];
        assert_eq!(
            decide(&facts).status.blocking_job_results[0].results.len(),
            1,
            "{tag}"
        );
    }
}

#[test]
fn the_result_of_a_run_that_ended_stays() {
    let mut facts = facts(payload(&json!({"blockingJobs": [job("aws")]})));
    facts.creation_job = completed();
    let name = format!("{TAG}-aws");
    facts.runs = vec![run(&name, "periodic-aws", ProwJobState::Success)];
    let accepted = decide(&facts);
    assert_eq!(accepted.phase, Phase::Accepted);
    for runs in [
        vec![run(&name, "periodic-aws", ProwJobState::Failure)],
        vec![],
    ] {
        facts.runs = runs;
        facts.now = now().checked_add(jiff::Span::new().hours(1)).unwrap();
        let later = again(&facts, &accepted);
        assert_eq!(later.status, accepted.status);
    }
}

#[test]
fn a_run_that_vanished_is_unknown_after_a_grace_period() {
    let mut facts = facts(payload(&json!({"blockingJobs": [job("aws")]})));
    facts.creation_job = completed();
    let name = format!("{TAG}-aws");
    facts.runs = vec![run(&name, "periodic-aws", ProwJobState::Pending)];
    let running = decide(&facts);
    facts.runs.clear();
    let missing = again(&facts, &running);
    let state_of = |decision: &Decision| decision.status.blocking_job_results[0].results[0].state;
    assert_eq!(state_of(&missing), JobRunState::Pending);
    assert_eq!(
        missing.requeue_after,
        Some(facts.timeouts.vanished_run_grace)
    );
    facts.now = now().checked_add(jiff::Span::new().minutes(2)).unwrap();
    let gone = again(&facts, &missing);
    assert_eq!(state_of(&gone), JobRunState::Unknown);
    assert_eq!(condition(&gone.status, "PayloadAccepted").0, "Unknown");

    // The watch was late.
    facts.runs = vec![run(&name, "periodic-aws", ProwJobState::Success)];
    let back = again(&facts, &gone);
    assert_eq!(
        (state_of(&back), back.phase),
        (JobRunState::Success, Phase::Accepted)
    );

    // Another ProwJob has the name.
    facts.runs[0].uid = "another".to_owned();
    let replaced = again(&facts, &running);
    assert_eq!(state_of(&replaced), JobRunState::Pending);
    assert!(
        replaced.status.blocking_job_results[0].results[0]
            .missing_since
            .is_some()
    );
}

#[test]
fn our_own_runs_say_which_job_they_are_of_and_when_they_ended() {
    let mut payload = payload(&json!({"blockingJobs": [job("aws-4")]}));
    payload.metadata.annotations =
        Some([("release.neaptide.dev/run-key".into(), "k".into())].into());
    let mut facts = facts(payload);
    facts.creation_job = completed();
    let ours = RunFacts {
        key: Some("aws-4".to_owned()),
        ..run("any-name", "periodic-aws-4", ProwJobState::Success)
    };
    facts.runs = vec![ours.clone()];
    let unproved = decide(&facts);
    assert_eq!(
        unproved.phase,
        Phase::Ready,
        "a success without an end is none"
    );
    facts.runs[0].completion_time =
        Some(k8s_openapi::apimachinery::pkg::apis::meta::v1::Time(now()));
    assert_eq!(again(&facts, &unproved).phase, Phase::Accepted);
}

#[test]
#[expect(clippy::too_many_lines, reason = "a table of cases")]
fn states_of_a_job_follow_from_its_runs() {
    use JobRunState::{Aborted, Error, Failure, Pending, Success, Triggered, Unknown};
    let table: &[(i32, i32, &[JobRunState], JobState)] = &[
        (0, 0, &[], JobState::Unknown),
        (0, 0, &[Success], JobState::Success),
        (0, 0, &[Failure], JobState::Failure),
        (3, 0, &[Success, Failure], JobState::Success),
        (3, 0, &[Failure], JobState::Pending),
        (3, 0, &[Failure, Failure], JobState::Pending),
        (
            3,
            0,
            &[Failure, Failure, Failure, Failure],
            JobState::Failure,
        ),
        (3, 0, &[Success, Pending], JobState::Success),
        (3, 0, &[Pending], JobState::Pending),
        (3, 0, &[Unknown], JobState::Unknown),
        (0, 5, &[Success; 5], JobState::Success),
        (0, 5, &[Failure; 5], JobState::Failure),
        (
            0,
            5,
            &[Success, Pending, Pending, Pending, Pending],
            JobState::Pending,
        ),
        (0, 5, &[Success; 3], JobState::Unknown),
        (0, 3, &[Success, Pending], JobState::Unknown),
        (0, 3, &[Success, Pending, Pending], JobState::Pending),
        (0, 3, &[Success, Success, Pending], JobState::Success),
        (0, 3, &[Success, Failure, Failure], JobState::Failure),
        (0, 3, &[Success; 3], JobState::Success),
        (
            0,
            10,
            &[
                Success, Success, Success, Success, Success, Success, Failure, Failure, Failure,
                Failure,
            ],
            JobState::Success,
        ),
        (
            0,
            10,
            &[
                Success, Success, Success, Success, Success, Failure, Failure, Failure, Failure,
                Failure,
            ],
            JobState::Failure,
        ),
        (
            0,
            0,
            &[Success, Failure, Aborted, Error, Unknown, Triggered],
            JobState::Success,
        ),
        (0, 0, &[Failure, Triggered], JobState::Pending),
        (0, 0, &[Failure, Aborted, Error, Unknown], JobState::Failure),
        (0, 0, &[Unknown, Unknown], JobState::Unknown),
    ];
    for (retries, count, results, wanted) in table {
        let mut job = job_status(results);
        (job.max_retries, job.analysis_job_count) = (*retries, *count);
        assert_eq!(job_state(&job, 0), *wanted, "{retries} {count} {results:?}");
    }
    let failed = job_status(&[Failure]);
    assert_eq!(
        job_state(&failed, 1),
        JobState::Pending,
        "a user asked for one more"
    );
}

/// A payload whose image exists and whose jobs have these states, and what is decided about it.
fn verdict(blocking: &str, informing: &str, upgrade: &str) -> (String, String) {
    let status = verdict_status(&mut payload(&json!({})), blocking, informing, upgrade);
    (
        condition(&status, "PayloadAccepted").0.into(),
        condition(&status, "PayloadRejected").0.into(),
    )
}

fn verdict_status(
    payload: &mut ReleasePayload,
    blocking: &str,
    informing: &str,
    upgrade: &str,
) -> ReleasePayloadStatus {
    let list = |letters: &str, kind: &str| -> Vec<crate::api::JobStatus> {
        let named = letters.chars().enumerate();
        let jobs = named.map(|(at, letter)| crate::api::JobStatus {
            name: format!("{kind}-{}", char::from(b'a' + at as u8)),
            state: state(letter),
            ..crate::api::JobStatus::default()
        });
        jobs.collect()
    };
    let mut status = payload.status.clone().unwrap_or_default();
    status.blocking_job_results = list(blocking, "blocking");
    status.informing_job_results = list(informing, "informing");
    status.upgrade_job_results = list(upgrade, "upgrade");
    if status.release_creation_job_result.status == CreationJobStatus::Unset {
        status.release_creation_job_result.status = CreationJobStatus::Success;
    }
    let facts = verdict::VerdictFacts::gather(payload, &status);
    let updates = [accepted(&facts), rejected(&facts)];
    status.conditions = updated_conditions(&status.conditions, &updates, Some(1), now());
    status
}

#[test]
fn blocking_jobs_decide() {
    for (blocking, accepted, rejected) in [
        ("SSS", "True", "False"),
        ("S", "True", "False"),
        ("F", "False", "True"),
        ("FF", "False", "True"),
        ("SSF", "False", "True"),
        ("P", "False", "False"),
        ("PP", "False", "False"),
        ("SPS", "False", "False"),
        ("SFP", "False", "False"),
        ("SUS", "Unknown", "Unknown"),
        ("S-S", "Unknown", "Unknown"),
        ("SF-", "Unknown", "Unknown"),
        ("", "True", "Unknown"),
    ] {
        let wanted = (accepted.to_owned(), rejected.to_owned());
        assert_eq!(verdict(blocking, "", ""), wanted, "{blocking}");
    }
}

#[test]
fn other_jobs_decide_nothing_and_are_waited_for_where_none_blocks() {
    for (blocking, informing, upgrade, accepted) in [
        ("S", "F", "", "True"),
        ("S", "", "F", "True"),
        ("", "SS", "", "True"),
        ("", "SF", "", "True"),
        ("", "PS", "", "Unknown"),
        ("", "--", "", "Unknown"),
        ("", "", "S", "True"),
        ("", "", "P", "Unknown"),
        ("", "S", "P", "Unknown"),
        ("", "F", "P", "Unknown"),
        ("", "SF", "S", "True"),
    ] {
        let found = verdict(blocking, informing, upgrade).0;
        assert_eq!(found, accepted, "{blocking} {informing} {upgrade}");
    }
    // Jobs that are configured as asynchronous are not waited for.
    let mut payload = payload(&json!({}));
    let annotations = [(
        "release.neaptide.dev/async-jobs".to_owned(),
        "informing-a".to_owned(),
    )];
    payload.metadata.annotations = Some(annotations.into());
    let status = verdict_status(&mut payload, "", "PS", "");
    assert_eq!(condition(&status, "PayloadAccepted").0, "True");
}

#[test]
fn a_failed_creation_stands_above_everything() {
    for decision in ["", "Accepted", "Rejected"] {
        for message in ["", "BackoffLimitExceeded: text"] {
            let mut payload = payload(&json!({}));
            payload.spec.payload_override.decision = decision.to_owned();
            let result = json!({"status": "Failed", "message": message});
            with_status(&mut payload, &json!({"releaseCreationJobResult": result}));
            let status = verdict_status(&mut payload, "S", "", "");
            let reason = "ReleasePayloadCreationJobFailed";
            assert_eq!(
                condition(&status, "PayloadAccepted"),
                ("False", reason, message)
            );
            assert_eq!(
                condition(&status, "PayloadRejected"),
                ("True", reason, message)
            );
        }
    }
}

#[test]
fn nothing_is_decided_before_the_image_exists() {
    for decision in ["", "Accepted", "Rejected"] {
        let mut payload = payload(&json!({"blockingJobs": [job("aws")]}));
        payload.spec.payload_override.decision = decision.to_owned();
        let mut facts = facts(payload);
        facts.runs = vec![run(
            &format!("{TAG}-aws"),
            "periodic-aws",
            ProwJobState::Success,
        )];
        let status = decide(&facts).status;
        let (accepted, reason, message) = condition(&status, "PayloadAccepted");
        assert_eq!((accepted, reason), ("Unknown", "ReleasePayloadAccepted"));
        assert_eq!(
            message,
            "waiting for the release image: Release creation job unknown"
        );
        assert_eq!(condition(&status, "PayloadRejected").0, "Unknown");
    }
}

#[test]
fn an_override_stands_above_jobs() {
    for (decision, jobs, accepted, rejected, reason) in [
        (
            "Accepted",
            "F",
            "True",
            "False",
            "ReleasePayloadManuallyAccepted",
        ),
        (
            "Rejected",
            "S",
            "False",
            "True",
            "ReleasePayloadManuallyRejected",
        ),
    ] {
        for why in ["", "flaky registry"] {
            let mut payload = payload(&json!({}));
            payload.spec.payload_override.decision = decision.to_owned();
            payload.spec.payload_override.reason = why.to_owned();
            let status = verdict_status(&mut payload, jobs, "", "");
            assert_eq!(
                condition(&status, "PayloadAccepted"),
                (accepted, reason, why)
            );
            assert_eq!(
                condition(&status, "PayloadRejected"),
                (rejected, reason, why)
            );
        }
    }
    let mut garbage = payload(&json!({}));
    garbage.spec.payload_override.decision = "Maybe".to_owned();
    let status = verdict_status(&mut garbage, "S", "", "");
    assert_eq!(
        condition(&status, "PayloadAccepted").1,
        "ReleasePayloadAccepted"
    );
}

#[test]
fn the_verdict_waits_for_the_mirror_unless_it_was_given_before() {
    let row = |mirror: &str, before: (&str, &str), decision: &str, jobs: &str| {
        let mut payload = with_mirror();
        payload.spec.payload_override.decision = decision.to_owned();
        let condition_of = |type_: &str, status: &str| {
            json!({
                "type": type_, "status": status, "reason": "R", "message": "",
                "lastTransitionTime": "2026-01-02T03:04:05Z",
            })
        };
        let conditions = json!([
            condition_of("PayloadAccepted", before.0),
            condition_of("PayloadRejected", before.1)
        ]);
        let result = json!({"status": mirror, "message": "m"});
        with_status(
            &mut payload,
            &json!({"conditions": conditions, "releaseMirrorJobResult": result}),
        );
        let status = verdict_status(&mut payload, jobs, "", "");
        let found = (
            condition_owned(&status, "PayloadAccepted"),
            condition_owned(&status, "PayloadRejected"),
        );
        format!("{}/{}", found.0.0, found.1.0)
    };
    let fresh = ("Unknown", "Unknown");
    for mirror in ["", "Unknown"] {
        assert_eq!(row(mirror, fresh, "", "S"), "Unknown/Unknown");
        assert_eq!(row(mirror, fresh, "", "F"), "Unknown/Unknown");
        assert_eq!(
            row(mirror, fresh, "Accepted", "S"),
            "Unknown/Unknown",
            "even with an override"
        );
        assert_eq!(row(mirror, ("False", "False"), "", "S"), "Unknown/Unknown");
    }
    assert_eq!(row("Failed", fresh, "", "S"), "True/False");
    assert_eq!(row("Success", fresh, "", "S"), "True/False");
    assert_eq!(row("Unknown", ("True", "False"), "", "S"), "True/False");
    assert_eq!(row("Unknown", ("False", "True"), "", "F"), "False/True");
    assert_eq!(row("Failed", fresh, "Accepted", "F"), "True/False");
}

#[test]
fn the_gate_of_the_mirror_stays_open() {
    let mut facts = facts(with_mirror());
    facts.creation_job = completed();
    facts.mirror_job = completed();
    let name = format!("{TAG}-aws");
    facts.runs = vec![run(&name, "periodic-aws", ProwJobState::Pending)];
    let open = decide(&facts);
    assert!(open.status.verdict.as_ref().unwrap().mirror_gate_passed);
    // The result of the mirror is lost; the gate has been open.
    let mut lost = open.clone();
    lost.status.release_mirror_job_result.status = CreationJobStatus::Unknown;
    facts.mirror_job = None;
    facts.runs = vec![run(&name, "periodic-aws", ProwJobState::Success)];
    assert_eq!(again(&facts, &lost).phase, Phase::Accepted);
}

#[test]
fn conditions_name_the_jobs_that_failed_or_have_to_pass() {
    let message = |blocking: &str, informing: &str| {
        let status = verdict_status(&mut payload(&json!({})), blocking, informing, "");
        condition(&status, "PayloadAccepted").2.to_owned()
    };
    assert_eq!(
        message("SFF", ""),
        "blocking jobs failed: blocking-b, blocking-c"
    );
    assert_eq!(
        message("SPU", ""),
        "waiting for blocking jobs: blocking-b, blocking-c"
    );
    assert_eq!(
        message("PF", ""),
        "waiting for blocking jobs: blocking-a; failed: blocking-b"
    );
    assert_eq!(message("SSS", ""), "all 3 blocking jobs passed");
    let none = "no blocking jobs are configured; waiting for informing-a to end";
    assert_eq!(message("", "PS"), none);
    assert!(message(&"F".repeat(12), "").ends_with("blocking-j and 2 more"));
}

#[test]
fn a_payload_without_a_verdict_is_stuck_after_its_deadline() {
    let mut facts = facts(payload(&json!({"blockingJobs": [job("aws")]})));
    facts.creation_job = completed();
    let fresh = decide(&facts);
    assert!(
        fresh
            .status
            .conditions
            .iter()
            .all(|it| it.type_ != "PayloadStuck")
    );
    let left = Duration::from_hours(12) - Duration::from_secs(3355);
    assert_eq!(fresh.requeue_after, Some(left));
    facts.now = now().checked_add(jiff::Span::new().hours(12)).unwrap();
    let stuck = again(&facts, &fresh);
    let (status, reason, message) = condition(&stuck.status, "PayloadStuck");
    assert_eq!((status, reason), ("True", "DeadlineExceeded"));
    assert_eq!(
        message,
        "no verdict 12 hours after it was created: waiting for blocking jobs: aws"
    );
    assert!(stuck.events.iter().any(|it| it.reason == "PayloadStuck"));
    assert_eq!(again(&facts, &stuck).events, []);
    facts.runs = vec![run(
        &format!("{TAG}-aws"),
        "periodic-aws",
        ProwJobState::Success,
    )];
    let accepted = again(&facts, &stuck);
    assert_eq!(condition(&accepted.status, "PayloadStuck").0, "False");
    assert_eq!(
        (accepted.phase, accepted.requeue_after),
        (Phase::Accepted, None)
    );
}

#[test]
fn results_of_older_releases_are_in_an_annotation() {
    let verification = json!({
        "blockingJobs": [job("aws")], "informingJobs": [job("gcp")], "upgradeJobs": [job("azure")],
        "payloadVerificationDataSource": "ImageStreamTagAnnotation",
    });
    let with = |legacy: LegacyFacts| {
        let mut facts = facts(payload(&verification));
        facts.creation_job = completed();
        facts.legacy = legacy;
        facts
    };
    let annotation = |value: &Value| LegacyFacts::Annotation(value.to_string());
    let first = with(annotation(&json!({
        "aws": {"state": "Failed", "url": "/periodic-aws/1"},
        "gcp": {"state": "Pending", "url": "https://example.com/2"},
        "azure": {"state": "Succeeded"},
    })));
    let decided = decide(&first);
    let aws = &decided.status.blocking_job_results[0].results;
    assert_eq!(
        aws[0].url,
        "https://prow.ci.openshift.org/view/gs/test-platform-results/logs/periodic-aws/1"
    );
    assert_eq!(aws[0].state, JobRunState::Failure);
    assert!(decided.status.upgrade_job_results[0].results.is_empty());
    assert_eq!(decided.warnings, ["unable to locate job results for azure"]);
    assert_eq!(
        again(&first, &decided).status,
        decided.status,
        "a result is recorded once"
    );
    let second = with(annotation(
        &json!({"aws": {"state": "Succeeded", "url": "/periodic-aws/2"}}),
    ));
    let decided = again(&second, &decided);
    assert_eq!(decided.status.blocking_job_results[0].results.len(), 2);
    assert_eq!(decided.phase, Phase::Accepted);
    for (legacy, warning) in [
        (
            LegacyFacts::Annotation(String::new()),
            "unable to determine job status results",
        ),
        (
            LegacyFacts::Annotation("{".into()),
            "unable to unmarshal VerificationStatusMap",
        ),
        (LegacyFacts::NoTarget, "does not exist"),
        (LegacyFacts::NoTag, "does not exist"),
    ] {
        let decided = decide(&with(legacy));
        assert!(
            decided.warnings[0].contains(warning),
            "{:?}",
            decided.warnings
        );
    }
    assert_eq!(
        decide(&with(LegacyFacts::Annotation("null".into()))).warnings,
        [""; 0]
    );
}

fn qualified(
    global: &str,
    labels: &[(&str, &str)],
    blocking: &[(&str, Value, ProwJobState)],
) -> Value {
    let jobs: Vec<_> = blocking
        .iter()
        .map(|(name, own, _)| {
            let mut job = job(name);
            job["qualifiers"] = own.clone();
            job
        })
        .collect();
    let mut payload = payload(&json!({"blockingJobs": jobs}));
    let labels = labels
        .iter()
        .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
    payload.metadata.labels = Some(labels.collect());
    let mut facts = facts(payload);
    facts.qualifiers = Arc::new(ReleaseQualifiers::parse(global).unwrap());
    facts.runs = blocking
        .iter()
        .map(|(name, _, state)| {
            run(
                &format!("{TAG}-{name}"),
                &format!("periodic-{name}"),
                *state,
            )
        })
        .collect();
    let decided = decide(&facts);
    assert_eq!(again(&facts, &decided).status, decided.status);
    serde_json::to_value(decided.status.qualifiers_summary).unwrap()
}

#[test]
fn qualifiers_are_decided_by_their_jobs() {
    use ProwJobState::{Failure, Pending, Success};
    let global = "qualifiers:\n  rosa: {enabled: true, badgeName: ROSA, payloadBadgeStatus: OnSuccess, failureLabels: [b, a]}\n";
    let rosa = json!({"rosa": {}, "unknown": {}});
    let found = qualified(
        global,
        &[],
        &[
            ("aws", rosa.clone(), Success),
            ("gcp", rosa.clone(), Success),
        ],
    );
    assert_eq!(found["qualifiers"]["rosa"]["aggregateState"], "Success");
    assert_eq!(found["qualifiers"]["rosa"]["badgeEarned"], true);
    assert_eq!(found["qualifiers"]["rosa"]["badgePropagated"], true);
    assert_eq!(
        found["qualifiers"].as_object().unwrap().len(),
        1,
        "unknown ids are dropped"
    );
    assert_eq!(found["failureLabels"], Value::Null);
    let found = qualified(
        global,
        &[],
        &[
            ("aws", rosa.clone(), Success),
            ("gcp", rosa.clone(), Failure),
        ],
    );
    assert_eq!(found["failureLabels"], json!(["a", "b"]));
    assert_eq!(found["qualifiers"]["rosa"]["badgeEarned"], Value::Null);
    let found = qualified(global, &[], &[("aws", rosa, Pending)]);
    assert_eq!(found["qualifiers"]["rosa"]["aggregateState"], "Pending");
    let own = json!({"rosa": {"failureLabels": ["own"], "enabled": false}});
    let found = qualified(global, &[], &[("aws", own, Failure)]);
    assert_eq!(found["failureLabels"], json!(["own"]));
    assert_eq!(
        qualified(global, &[], &[("aws", json!({}), Success)]),
        json!({})
    );
}

#[test]
fn approvals_are_labels_of_the_payload() {
    let global = "qualifiers:\n  QE: {approval: true, enabled: true, badgeName: QE, payloadBadgeStatus: OnFailure}\n  \
        trt: {approval: true, badgeName: TRT}\n  off: {approval: false, enabled: true}\n";
    let labels = [
        ("release.openshift.io/qe_state", "Rejected"),
        ("release.openshift.io/trt_state", "Accepted"),
        ("release.openshift.io/off_state", "Accepted"),
    ];
    let found = qualified(global, &labels, &[]);
    let ids: Vec<_> = found["qualifiers"].as_object().unwrap().keys().collect();
    assert_eq!(ids, ["QE", "trt"]);
    assert_eq!(found["qualifiers"]["QE"]["aggregateState"], "Failure");
    assert_eq!(found["qualifiers"]["QE"]["badgePropagated"], true);
    assert_eq!(found["qualifiers"]["trt"]["approval"], true);
    assert_eq!(
        found["qualifiers"]["trt"]["badgeEarned"],
        Value::Null,
        "it is not enabled"
    );
    assert_eq!(
        qualified(global, &[("release.openshift.io/qe_state", "Maybe")], &[]),
        json!({})
    );
}
