//! What is accepted and rejected, why, and what is stuck.

use super::*;

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
fn jobs_that_were_left_out_are_part_of_the_verdict() {
    let mut payload = payload(&json!({}));
    let skipped = json!({"upgrade": "no accepted release matches"}).to_string();
    let all = payload.metadata.annotations.get_or_insert_default();
    all.insert(crate::api::annotations::SKIPPED_JOBS.to_owned(), skipped);
    let status = verdict_status(&mut payload, "SS", "", "");
    let (accepted, _, message) = condition(&status, "PayloadAccepted");
    assert_eq!(accepted, "True");
    assert_eq!(
        message,
        "all 2 blocking jobs passed; left out at the cut: upgrade (no accepted release matches)"
    );
    let status = verdict_status(&mut payload, "FS", "", "");
    let (_, _, message) = condition(&status, "PayloadRejected");
    assert!(message.ends_with("left out at the cut: upgrade (no accepted release matches)"));
}

#[test]
fn an_override_with_another_word_does_not_count_and_is_told_once() {
    let mut payload = payload(&json!({"blockingJobs": [job("aws")]}));
    payload.spec.payload_override.decision = "accepted".to_owned();
    let mut facts = facts(payload);
    facts.creation_job = completed();
    let decision = decide(&facts);
    let text = r#"the override "accepted" does not count: it is neither Accepted nor Rejected"#;
    let told: Vec<_> = decision
        .events
        .iter()
        .filter(|event| event.reason == "InvalidOverride")
        .collect();
    assert_eq!(told.len(), 1);
    assert_eq!(told[0].message, text);
    let (_, _, message) = condition(&decision.status, "PayloadAccepted");
    assert_eq!(message, format!("waiting for blocking jobs: aws; {text}"));
    assert_eq!(again(&facts, &decision).events, vec![]);
}

#[test]
fn an_override_is_told_with_its_user_when_it_is_carried_out_and_when_it_is_taken_back() {
    let mut facts = facts(payload(&json!({"blockingJobs": [job("aws")]})));
    facts.creation_job = completed();
    let before = decide(&facts);
    assert_eq!(before.override_taken, None);
    let decided = |decision: &str, reason: &str, before: &Decision| {
        let mut payload = ReleasePayload::clone(&facts.payload);
        payload.spec.payload_override.decision = decision.to_owned();
        payload.spec.payload_override.reason = reason.to_owned();
        let by = crate::api::annotations::OVERRIDE_BY.to_owned();
        let all = payload.metadata.annotations.get_or_insert_default();
        all.insert(by, "alice".to_owned());
        let facts = Facts {
            payload: Arc::new(payload),
            ..facts.clone()
        };
        let decision = again(&facts, before);
        assert_eq!(
            again(&facts, &decision).override_taken,
            None,
            "it is told once"
        );
        decision
    };
    let taken = decided("Accepted", "it is known", &before);
    let text = "override Accepted by alice: it is known";
    assert_eq!(taken.override_taken.as_deref(), Some(text));
    let told = |decision: &Decision| {
        let events = decision.events.iter();
        let mut events = events.filter(|event| event.reason == "PayloadOverridden");
        events.next().map(|event| event.message.clone())
    };
    assert_eq!(told(&taken).as_deref(), Some(text));
    let back = decided("", "", &taken);
    assert_eq!(
        told(&back).as_deref(),
        Some("the override is taken back: Ready")
    );
}
