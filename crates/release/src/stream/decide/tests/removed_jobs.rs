//! Jobs that the payload has and the configuration does not, and upgrades without a release to start from.

use super::*;

/// A release that is verified by the jobs of this payload, in a stream with this configuration.
fn verified(config: &Value, blocking: &Value, informing: &Value) -> Facts {
    let ready = release(1, "Ready");
    let name = ready["name"].as_str().unwrap().to_owned();
    let mut facts = facts(config, &[ready]);
    let created = json!({
        "type": "PayloadCreated", "status": "True", "reason": "ReleasePayloadCreated", "message": "",
        "lastTransitionTime": NOW,
    });
    let status = json!({
        "conditions": [created], "blockingJobResults": blocking, "informingJobResults": informing,
    });
    let mut payload = crate::payload::samples::payload(&json!({}));
    payload.metadata.name = Some(name.clone());
    payload.status = serde_json::from_value(status).unwrap();
    facts.payloads.insert(name.clone(), Arc::new(payload));
    facts.proved.insert(name);
    let periodics =
        ["e2e-aws", "e2e-gcp", "analyse"].map(|name| crate::stream::prow_config::Periodic {
            name: name.to_owned(),
            cluster: "build01".to_owned(),
            ..Default::default()
        });
    facts.prow = Arc::new(crate::stream::prow_config::ProwConfig {
        periodics: periodics.map(|one| (one.name.clone(), one)).into(),
        scheduler_enabled: false,
    });
    facts
}

fn job(key: &str, prow_job: &str) -> Value {
    json!({"ciConfigurationName": key, "ciConfigurationJobName": prow_job})
}

#[test]
fn a_job_that_the_configuration_lost_before_its_launch_is_a_problem_of_the_stream() {
    let aws = json!({"prowJob": {"name": "e2e-aws"}});
    for (verify, is_told) in [
        (json!({"aws": aws}), false),
        (json!({}), true),
        (
            json!({"aws": {"prowJob": {"name": "e2e-aws"}, "disabled": true}}),
            true,
        ),
        (json!({"aws": {"prowJob": {"name": "e2e-gcp"}}}), true),
        (json!({"amazon": aws}), true),
    ] {
        let config = json!({"verify": verify});
        let facts = verified(&config, &json!([job("aws", "e2e-aws")]), &json!([]));
        let decision = decide(&facts);
        let told = decision.state.problems.iter().any(|problem| {
            problem.contains("blocking job aws (e2e-aws) is not launched")
                && problem.contains("put verify.aws back")
        });
        assert_eq!(told, is_told, "{verify}: {:?}", decision.state.problems);
        let reasons: Vec<_> = decision.events.iter().map(|event| event.reason).collect();
        assert_eq!(reasons.contains(&"VerificationJobRemoved"), is_told);
    }
}

#[test]
fn a_lost_job_that_needs_no_more_runs_is_no_problem() {
    let mut passed = job("aws", "e2e-aws");
    let at = |name: &str| json!({"name": name, "namespace": "ci", "cluster": "build01"});
    passed["results"] = json!([{"coordinates": at("r-aws"), "state": "Success"}]);
    let facts = verified(&json!({}), &json!([passed]), &json!([]));
    assert_eq!(decide(&facts).state.problems, [""; 0]);
}

#[test]
fn runs_that_are_analysed_together_belong_to_the_entry_of_their_aggregator() {
    let mut analysed = job("metal", "e2e-aws");
    analysed["analysisJobCount"] = json!(2);
    let aggregator = job("metal", "metal-analyse");
    let entry = json!({
        "prowJob": {"name": "e2e-aws"},
        "aggregatedProwJob": {"prowJob": {"name": "analyse"}, "analysisJobCount": 2},
    });
    let config = json!({"verify": {"metal": entry}});
    let lists = (json!([aggregator]), json!([analysed]));
    let facts = verified(&config, &lists.0, &lists.1);
    let problems = decide(&facts).state.problems;
    assert!(
        !problems.iter().any(|it| it.contains("not launched")),
        "{problems:?}"
    );
    let facts = verified(&json!({}), &lists.0, &lists.1);
    let problems = decide(&facts).state.problems;
    let told = problems.iter().filter(|it| it.contains("not launched"));
    assert_eq!(told.count(), 2, "{problems:?}");
}

/// The payload that is created for a release whose jobs are these.
fn created(verify: &Value) -> ReleasePayload {
    let facts = facts(&json!({"verify": verify}), &[]);
    let config = facts.config.clone().unwrap();
    let tag = serde_json::from_value(release(1, "Pending")).unwrap();
    payload::release_payload(&facts, &config, &tag).unwrap()
}

#[test]
fn a_blocking_upgrade_is_left_out_only_if_it_may_have_a_source_later() {
    let upgrade = |from: Value, optional: bool| {
        json!({
            "prowJob": {"name": "e2e"}, "upgrade": true, "upgradeFromRelease": from, "optional": optional,
        })
    };
    let official = json!({"release": {"version": "4.20", "channel": "stable"}});
    let candidate = json!({"candidate": {"stream": "nightly", "version": "4.20"}});
    let payload = created(&json!({
        "official": upgrade(official.clone(), false), "told": upgrade(official, true),
        "candidate": upgrade(candidate, false),
    }));
    let blocking = &payload.spec.payload_verification_config.blocking_jobs;
    let names: Vec<_> = blocking.iter().map(|job| job.name.as_str()).collect();
    assert_eq!(names, ["official"], "releases are not accepted without it");
    assert_eq!(
        payload.spec.payload_verification_config.informing_jobs,
        vec![]
    );
    let skipped = crate::payload::facts::skipped_jobs(&payload);
    let skipped: Vec<_> = skipped.keys().collect();
    assert_eq!(skipped, ["candidate", "told"]);
}

#[test]
fn without_a_usable_key_a_stream_does_nothing_and_says_why() {
    let mut facts = facts(&json!({}), &[release(1, "Accepted")]);
    facts.run_key = RunKey::missing();
    let decision = decide(&facts);
    assert_eq!(decision.state.reason, "RunKeyMissing");
    let message = &decision.state.message;
    assert!(
        message.starts_with("the Secret ocp/neap-release-run-keys has no key"),
        "{message}"
    );
    assert_eq!(decision.changes.len(), 1, "its state");
    assert_eq!(decision.events.len(), 1);
    assert_eq!(decision.requeue_after, Some(Duration::from_secs(15)));
    let text = serde_json::to_string(&decision.state).unwrap();
    annotate(&mut facts, annotations::STREAM_STATE, &text);
    let again = decide(&facts);
    assert_eq!((again.changes, again.events), (vec![], vec![]));
}
