//! Which payloads decide about a release of the stream.

use super::{conflict::conflict, *};
use crate::payload::samples::{TAG, payload, with_status};

fn blocking(jobs: &[&str]) -> Value {
    let jobs = jobs.iter().map(|job| {
        json!({"ciConfigurationName": job, "ciConfigurationJobName": format!("periodic-{job}"), "maxRetries": 1})
    });
    json!({"blockingJobs": jobs.collect::<Vec<_>>()})
}

fn case(payload: &ReleasePayload, annotations: &Value, is_proved: bool) -> Option<String> {
    let mut tag = release(10, "Pending");
    tag["name"] = json!(TAG);
    for (name, value) in annotations.as_object().unwrap() {
        tag["annotations"][name] = value.clone();
    }
    let verify = json!({"verify": {"aws": {"prowJob": {"name": "periodic-aws"}, "maxRetries": 1}}});
    let mut facts = facts(&verify, &[tag]);
    if is_proved {
        facts.proved.insert(TAG.to_owned());
    }
    let target = facts.target.clone().unwrap();
    conflict(
        &facts,
        &facts.config.clone().unwrap(),
        &target.spec.tags[0],
        payload,
    )
}

#[test]
fn a_payload_that_the_stream_did_not_make_decides_nothing() {
    let like = payload(&blocking(&["aws"]));
    let more = payload(&blocking(&["aws", "gcp"]));
    let without_jobs = payload(&json!({}));
    let ours = json!({annotations::RUN_KEY: "key"});
    let theirs = json!({});
    // A payload that proves itself is believed, whatever the configuration is now.
    assert_eq!(case(&without_jobs, &ours, true), None);
    assert_eq!(case(&like, &theirs, false), None);
    assert_eq!(case(&more, &theirs, false), None);
    let refused = |payload: &ReleasePayload, tag: &Value, why: &str| {
        let said = case(payload, tag, false).unwrap();
        assert!(said.contains(why), "{said}");
    };
    refused(&like, &ours, "did not create it");
    refused(&without_jobs, &theirs, "lack aws");
    let mut elsewhere = like.clone();
    let creation = &mut elsewhere.spec.payload_creation_config;
    creation.release_creation_coordinates.namespace = "tenant".to_owned();
    refused(&elsewhere, &theirs, "payloadCreationConfig");
    let mut other = like.clone();
    other.spec.payload_coordinates.imagestream_tag_name = "other".to_owned();
    refused(&other, &theirs, "payloadCoordinates");
}

#[test]
fn only_a_decision_that_was_made_after_the_creation_counts() {
    let mut decided = payload(&json!({}));
    decided.spec.payload_override.decision = "Accepted".to_owned();
    let theirs = json!({});
    for is_proved in [true, false] {
        let said = case(&decided, &theirs, is_proved).unwrap();
        assert!(said.contains("a decision in it"), "{said}");
    }
    decided.metadata.generation = Some(2);
    assert_eq!(case(&decided, &theirs, true), None);
    assert_eq!(case(&decided, &theirs, false), None);
    let ours = json!({annotations::RUN_KEY: "key"});
    assert!(case(&decided, &ours, false).is_some());
}

#[test]
fn what_the_tag_says_already_stays() {
    let mut accepted = payload(&json!({}));
    accepted.spec.payload_override.decision = "Accepted".to_owned();
    with_status(
        &mut accepted,
        &json!({"conditions": [{
            "type": "PayloadAccepted", "status": "True", "reason": "", "message": "",
            "lastTransitionTime": "2026-01-02T00:00:00Z",
        }]}),
    );
    let settled = json!({annotations::PHASE: "Accepted", annotations::RUN_KEY: "key"});
    assert_eq!(case(&accepted, &settled, false), None);
    let rejected = json!({annotations::PHASE: "Rejected"});
    assert!(case(&accepted, &rejected, false).is_some());
}

/// A payload that says that its release is accepted.
fn accepted(name: &str) -> ReleasePayload {
    let mut payload = payload(&json!({}));
    payload.metadata.name = Some(name.to_owned());
    payload.spec.payload_override.decision = "Accepted".to_owned();
    let status = json!({"conditions": [{
        "type": "PayloadAccepted", "status": "True", "reason": "", "message": "",
        "lastTransitionTime": "2026-01-02T00:00:00Z",
    }]});
    with_status(&mut payload, &status);
    payload
}

#[test]
fn a_release_whose_payload_is_not_its_own_fails_and_is_not_published() {
    let pending = with_annotation(release(10, "Pending"), annotations::RUN_KEY, "key");
    let name = pending["name"].as_str().unwrap().to_owned();
    let config = json!({"publish": {"latest": {"tagRef": {"name": "4.21"}}}});
    let mut facts = facts(&config, &[pending]);
    annotate(&mut facts, annotations::PAUSED, "quiet");
    facts
        .payloads
        .insert(name.clone(), Arc::new(accepted(&name)));
    let decision = decide(&facts);
    let tags = tags_after(&facts, &decision);
    assert_eq!(names(&tags), [name.as_str()], "nothing is published");
    assert_eq!(tags[0].annotations[annotations::PHASE], "Failed");
    assert_eq!(tags[0].annotations[annotations::REASON], "PayloadConflict");
    let written: Vec<_> = decision.changes.iter().map(StreamChange::kind).collect();
    assert!(
        written.iter().all(|kind| *kind == "ImageStream"),
        "{written:?}"
    );
    assert!(
        decision
            .events
            .iter()
            .any(|it| it.reason == "PayloadConflict")
    );
    assert_eq!(decision.state.newest_accepted, None);
    // The same payload is believed once it proves itself.
    let mut own = accepted(&name);
    own.metadata.generation = Some(2);
    facts.payloads.insert(name.clone(), Arc::new(own));
    facts.proved.insert(name.clone());
    let decision = decide(&facts);
    assert_eq!(decision.state.newest_accepted, Some(name));
}

#[test]
fn no_release_is_cut_under_the_name_of_a_payload_that_is_there() {
    let mut facts = facts(&json!({}), &[]);
    let next = crate::names::release_tag(STREAM, facts.now);
    facts
        .payloads
        .insert(next.clone(), Arc::new(accepted(&next)));
    let decision = decide(&facts);
    assert_eq!(names(&tags_after(&facts, &decision)), [""; 0]);
    assert_eq!(decision.requeue_after, Some(Duration::from_secs(1)));
    facts.now = facts.now.checked_add(SignedDuration::from_secs(1)).unwrap();
    assert_eq!(tags_after(&facts, &decide(&facts)).len(), 1);
}
