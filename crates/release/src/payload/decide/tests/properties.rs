//! What holds for all facts.

use std::sync::Arc;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use proptest::prelude::*;
use serde_json::json;

use super::*;
use crate::{payload::facts::Facts, replay::replay};

fn states() -> impl Strategy<Value = ProwJobState> {
    prop::sample::select(vec![
        ProwJobState::Triggered,
        ProwJobState::Pending,
        ProwJobState::Success,
        ProwJobState::Failure,
        ProwJobState::Aborted,
        ProwJobState::Error,
        ProwJobState::Unknown,
        ProwJobState::Scheduling,
    ])
}

fn jobs_of_kubernetes() -> impl Strategy<Value = Option<JobFacts>> {
    prop::sample::select(vec![
        None,
        Some(JobFacts::default()),
        completed(),
        failed("BackoffLimitExceeded", "text"),
        Some(JobFacts {
            active: true,
            ..JobFacts::default()
        }),
    ])
}

prop_compose! {
    fn any_facts()(
        creation_job in jobs_of_kubernetes(),
        mirror_job in jobs_of_kubernetes(),
        has_mirror in any::<bool>(),
        blocking in 0_usize..4,
        informing in 0_usize..3,
        upgrade in 0_usize..3,
        analysed in 0_i32..3,
        upgrades in prop::collection::btree_map((0_usize..3, 0_usize..3), states(), 0..4),
        extra in 0_i32..2,
        retries in 0_i32..3,
        runs in prop::collection::btree_map((0_usize..7, 0_u32..4), states(), 0..10),
        decision in prop::sample::select(vec!["", "Accepted", "Rejected", "Other"]),
        has_failed in any::<bool>(),
    ) -> Facts {
        let list = |count: usize, kind: &str| -> Vec<Value> {
            (0..count).map(|at| {
                let mut job = job(&format!("{kind}{}", char::from(b'a' + at as u8)));
                job["maxRetries"] = json!(retries);
                job
            }).collect()
        };
        let mut informing = list(informing, "i");
        if let Some(first) = informing.first_mut() {
            first["analysisJobCount"] = json!(analysed);
        }
        let verification = json!({
            "blockingJobs": list(blocking, "b"), "informingJobs": informing,
            "upgradeJobs": list(upgrade, "u"),
        });
        let mut payload = payload(&verification);
        if extra > 0 {
            let attempts = json!({"ba": extra}).to_string();
            let annotations = [("release.neaptide.dev/extra-attempts".to_owned(), attempts)];
            payload.metadata.annotations = Some(annotations.into());
        }
        if has_mirror {
            payload.spec.payload_creation_config.release_mirror_coordinates =
                with_mirror().spec.payload_creation_config.release_mirror_coordinates;
        }
        payload.spec.payload_override.decision = decision.to_owned();
        if has_failed {
            // Decided before, whatever became of the Job since.
            with_status(&mut payload, &decided_failure());
        }
        let mut facts = facts(payload);
        (facts.creation_job, facts.mirror_job) = (creation_job, mirror_job);
        facts.runs = runs.into_iter().map(|((at, attempt), state)| {
            let (kind, letter) = if at < 4 { ("b", at) } else { ("i", at - 4) };
            let key = format!("{kind}{}", char::from(b'a' + letter as u8));
            let name = crate::names::verification_run(TAG, &key, attempt);
            RunFacts {
                completion_time: Some(Time(now())),
                ..run(&name, &format!("periodic-{key}"), state)
            }
        }).collect();
        facts.runs.extend(upgrades.into_iter().map(|((at, from), state)| {
            let platform = format!("u{}", char::from(b'a' + at as u8));
            let from = format!("4.20.{from}");
            let name = crate::names::upgrade_run(TAG, &from, &platform);
            RunFacts {
                key: Some(platform.clone()),
                from_tag: Some(from),
                completion_time: Some(Time(now())),
                ..run(&name, &format!("periodic-{platform}"), state)
            }
        }));
        facts
    }
}

/// A status in which the failure of the creation is decided.
fn decided_failure() -> Value {
    let condition = |type_: &str, status: &str| {
        json!({
            "type": type_, "status": status, "reason": type_, "message": "Release creation Job failed",
            "lastTransitionTime": "2026-01-02T03:04:05Z",
        })
    };
    json!({"conditions": [condition("PayloadCreated", "False"), condition("PayloadFailed", "True")]})
}

fn holds(decision: &Decision, type_: &str) -> bool {
    condition(&decision.status, type_).0 == "True"
}

proptest! {
    #[test]
    fn a_payload_is_never_accepted_and_rejected(facts in any_facts()) {
        let decision = decide(&facts);
        prop_assert!(!(holds(&decision, "PayloadAccepted") && holds(&decision, "PayloadRejected")));
    }

    #[test]
    fn a_payload_that_failed_is_never_accepted(facts in any_facts()) {
        let decision = decide(&facts);
        prop_assert!(!(holds(&decision, "PayloadAccepted") && holds(&decision, "PayloadFailed")));
    }

    #[test]
    fn a_payload_is_accepted_only_if_its_image_exists(facts in any_facts()) {
        let decision = decide(&facts);
        if holds(&decision, "PayloadAccepted") {
            prop_assert!(facts.creation_job.as_ref().is_some_and(|job| job.completed));
        }
    }

    #[test]
    fn an_override_beats_jobs_and_not_a_failed_creation(facts in any_facts()) {
        let decision = decide(&facts);
        let created = decision.status.release_creation_job_result.status;
        let mirrored = !decision.status.release_mirror_job_result.coordinates.name.is_empty()
            && !decision.status.release_mirror_job_result.status.has_ended();
        let decided = facts.payload.spec.payload_override.decided();
        let has_failed = holds(&decision, "PayloadFailed");
        match (created, decided) {
            _ if has_failed => prop_assert_eq!(decision.phase, Phase::Failed),
            (CreationJobStatus::Failed, _) => prop_assert_eq!(decision.phase, Phase::Failed),
            (CreationJobStatus::Success, Some(decided)) if !mirrored => {
                let wanted = match decided {
                    crate::api::Override::Accepted => Phase::Accepted,
                    crate::api::Override::Rejected => Phase::Rejected,
                };
                prop_assert_eq!(decision.phase, wanted);
            }
            _ => {}
        }
    }

    #[test]
    fn a_second_pass_changes_nothing(facts in any_facts()) {
        let decision = decide(&facts);
        let second = again(&facts, &decision);
        prop_assert_eq!(&second.status, &decision.status);
        prop_assert_eq!(second.events, vec![]);
    }

    #[test]
    fn the_status_survives_the_api(facts in any_facts()) {
        let status = decide(&facts).status;
        let text = serde_json::to_string(&status).unwrap();
        prop_assert_eq!(serde_json::from_str::<ReleasePayloadStatus>(&text).unwrap(), status);
    }

    #[test]
    fn the_verdict_does_not_depend_on_the_order_in_which_facts_arrive(
        facts in any_facts(),
        order in prop::collection::vec((any::<prop::sample::Index>(), any::<bool>()), 16),
    ) {
        let at_once = decide(&facts);
        let mut partial = facts.clone();
        (partial.creation_job, partial.mirror_job) = (None, None);
        let mut left = std::mem::take(&mut partial.runs);
        left.clone_from(&facts.runs);
        let mut decision = decide(&partial);
        for (choice, is_seen_twice) in order {
            match choice.index(left.len() + 2) {
                0 => partial.creation_job.clone_from(&facts.creation_job),
                1 => partial.mirror_job.clone_from(&facts.mirror_job),
                run => {
                    let run = left.remove(run - 2);
                    // Some runs are seen while they still run.
                    let running = RunFacts {
                        state: ProwJobState::Pending,
                        completion_time: None,
                        ..run.clone()
                    };
                    if is_seen_twice && run.state != ProwJobState::Scheduling {
                        partial.runs.push(running);
                        decision = again(&partial, &decision);
                        partial.runs.pop();
                    }
                    partial.runs.push(run);
                }
            }
            decision = again(&partial, &decision);
            prop_assert!(!(holds(&decision, "PayloadAccepted") && holds(&decision, "PayloadRejected")));
            let created = decision.status.release_creation_job_result.status;
            prop_assert!(!holds(&decision, "PayloadAccepted") || created == CreationJobStatus::Success);
        }
        partial = facts;
        let decision = again(&partial, &decision);
        prop_assert_eq!(decision.phase, at_once.phase);
        for type_ in ["PayloadAccepted", "PayloadRejected", "PayloadCreated", "PayloadMirrored"] {
            prop_assert_eq!(condition(&decision.status, type_), condition(&at_once.status, type_));
        }
        prop_assert_eq!(&decision.status.verdict, &at_once.status.verdict);
    }

    #[test]
    fn a_verdict_can_be_computed_again_and_an_edited_one_is_found(facts in any_facts(), flip in any::<bool>()) {
        let decision = decide(&facts);
        let mut payload = ReleasePayload::clone(&facts.payload);
        payload.status = Some(decision.status.clone());
        let replayed = replay(&payload);
        prop_assert_eq!(&replayed.differences, &Vec::<String>::new());
        prop_assert_eq!(replayed.computed, decision.phase);
        let status = payload.status.as_mut().unwrap();
        if flip {
            let condition = status.conditions.iter_mut().find(|it| it.type_ == "PayloadAccepted").unwrap();
            condition.status = if condition.status == "True" { "False" } else { "True" }.to_owned();
        } else {
            let jobs = status.blocking_job_results.iter_mut();
            let Some(result) = jobs.flat_map(|job| &mut job.results).next() else {
                return Ok(());
            };
            result.uid.push('x');
        }
        prop_assert!(!replay(&payload).holds());
        let _ = Arc::new(payload);
    }
}
