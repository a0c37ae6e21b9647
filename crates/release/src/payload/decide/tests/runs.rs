//! Runs, their results, and the states of jobs.

use super::*;

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

    // The clock jumps back a day: the grace begins anew.
    facts.runs.clear();
    facts.now = now().checked_sub(jiff::Span::new().hours(24)).unwrap();
    let jumped = again(&facts, &missing);
    assert_eq!(state_of(&jumped), JobRunState::Pending);
    assert_eq!(
        jumped.requeue_after,
        Some(facts.timeouts.vanished_run_grace)
    );
    // It jumps forward a day: a run that is there stays what it is, and one that is gone is given up.
    facts.now = now().checked_add(jiff::Span::new().hours(24)).unwrap();
    assert_eq!(state_of(&again(&facts, &missing)), JobRunState::Unknown);
    facts.runs = vec![run(&name, "periodic-aws", ProwJobState::Pending)];
    assert_eq!(state_of(&again(&facts, &running)), JobRunState::Pending);

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

#[test]
fn without_the_key_of_its_runs_nothing_new_is_known_of_them_and_all_else_is_decided() {
    let mut facts = facts(payload(&json!({"blockingJobs": [job("aws"), job("gcp")]})));
    facts.creation_job = completed();
    let (aws, gcp) = (format!("{TAG}-aws"), format!("{TAG}-gcp"));
    facts.runs = vec![
        run(&aws, "periodic-aws", ProwJobState::Success),
        run(&gcp, "periodic-gcp", ProwJobState::Pending),
    ];
    let known = decide(&facts);
    facts.runs.clear();
    facts.unproved = Some("the Secret lacks the key".to_owned());
    facts.now = now().checked_add(SignedDuration::from_hours(1)).unwrap();
    let without = again(&facts, &known);
    assert_eq!(
        without.status.blocking_job_results,
        known.status.blocking_job_results
    );
    let (_, _, message) = condition(&without.status, "PayloadAccepted");
    assert_eq!(
        message,
        "waiting for blocking jobs: gcp; the Secret lacks the key"
    );
    let reasons: Vec<_> = without.events.iter().map(|event| event.reason).collect();
    assert_eq!(reasons, ["RunKeyMissing"]);
    assert_eq!(again(&facts, &without).events, vec![], "it is told once");
    // It has a deadline, and a user may decide.
    facts.now = now().checked_add(SignedDuration::from_hours(24)).unwrap();
    let stuck = again(&facts, &without);
    assert_eq!(condition(&stuck.status, "PayloadStuck").0, "True");
    let mut decided = ReleasePayload::clone(&facts.payload);
    decided.spec.payload_override.decision = "Accepted".to_owned();
    facts.payload = Arc::new(decided);
    assert_eq!(again(&facts, &stuck).phase, Phase::Accepted);
    // The key is back: the run that still runs is no ended one.
    facts.unproved = None;
    facts.runs = vec![
        run(&aws, "periodic-aws", ProwJobState::Success),
        run(&gcp, "periodic-gcp", ProwJobState::Success),
    ];
    let back = again(&facts, &stuck);
    let verdict = back.status.verdict.unwrap();
    assert_eq!(verdict.unproved, "");
}
