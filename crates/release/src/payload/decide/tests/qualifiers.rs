//! Results of older releases, qualifiers and approvals.

use super::*;

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

#[test]
fn a_badge_is_shown_as_configured_and_only_if_it_is_enabled() {
    use ProwJobState::{Failure, Pending, Success};
    for (badge, state, enabled, earned, shown) in [
        ("Yes", Success, true, true, true),
        ("Yes", Failure, true, false, true),
        ("Yes", Pending, true, false, true),
        ("No", Success, true, true, false),
        ("OnSuccess", Success, true, true, true),
        ("OnSuccess", Failure, true, false, false),
        ("OnFailure", Failure, true, false, true),
        ("OnFailure", Success, true, true, false),
        ("Yes", Success, false, false, false),
    ] {
        let settings =
            format!("{{enabled: {enabled}, badgeName: R, payloadBadgeStatus: \"{badge}\"}}");
        let global = format!("qualifiers:\n  rosa: {settings}\n");
        let found = qualified(&global, &[], &[("aws", json!({"rosa": {}}), state)]);
        let rosa = &found["qualifiers"]["rosa"];
        let is = |field: &str| rosa[field] == true;
        let found = (is("badgeEarned"), is("badgePropagated"));
        assert_eq!(found, (earned, shown), "{settings} {state:?}");
    }
}

#[test]
fn upgrade_jobs_qualify_nothing_informing_ones_do_and_known_issues_stay() {
    let with = |mut job: Value| {
        job["qualifiers"] = json!({"rosa": {}});
        job
    };
    let verification = json!({
        "informingJobs": [with(job("aws"))], "upgradeJobs": [with(job("gcp"))],
    });
    let mut payload = payload(&verification);
    let issue = json!({"thread": {"issueKey": "ART-1", "activePriority": "Normal"}});
    let summary = json!({"qualifiers": {
        "rosa": {"jobs": [], "aggregateState": "Failure", "jiraNotifications": issue},
        "gone": {"jobs": [], "aggregateState": "Failure", "jiraNotifications": issue},
    }});
    with_status(&mut payload, &json!({"qualifiersSummary": summary}));
    let mut facts = facts(payload);
    let global = "qualifiers:\n  rosa: {enabled: true, badgeName: R}\n";
    facts.qualifiers = Arc::new(ReleaseQualifiers::parse(global).unwrap());
    let passed = ProwJobState::Success;
    facts.runs = vec![run(&format!("{TAG}-aws"), "periodic-aws", passed)];
    let status = decide(&facts).status;
    let summary = serde_json::to_value(status.qualifiers_summary).unwrap();
    let all = summary["qualifiers"].as_object().unwrap();
    assert_eq!(all.keys().collect::<Vec<_>>(), ["rosa"]);
    let rosa = &all["rosa"];
    assert_eq!(rosa["jobs"].as_array().unwrap().len(), 1);
    assert_eq!(rosa["aggregateState"], "Success");
    assert_eq!(rosa["jiraNotifications"]["thread"]["issueKey"], "ART-1");
}
