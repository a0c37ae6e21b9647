use serde_json::json;

use super::*;
use crate::{
    api::ProwJobState,
    payload::samples::{TAG, again, completed, facts, job, payload, run},
};

/// A payload whose only blocking job has ended, with the status that another controller wrote.
fn judged(state: ProwJobState) -> Facts {
    let mut facts = facts(payload(&json!({"blockingJobs": [job("aws")]})));
    facts.creation_job = completed();
    facts.runs = vec![run(&format!("{TAG}-aws"), "periodic-aws", state)];
    facts
}

fn with_recorded(facts: &Facts, conditions: &serde_json::Value) -> Facts {
    let mut facts = facts.clone();
    let mut recorded = crate::api::ReleasePayload::clone(&facts.payload);
    recorded.status = serde_json::from_value(json!({"conditions": conditions})).unwrap();
    facts.payload = Arc::new(recorded);
    facts
}

fn condition(type_: &str, status: &str) -> serde_json::Value {
    json!({
        "type": type_, "status": status, "reason": "R", "message": "",
        "lastTransitionTime": "2026-01-02T03:05:00Z",
    })
}

#[test]
fn only_another_phase_is_a_difference() {
    let passed = judged(ProwJobState::Success);
    let accepted = with_recorded(&passed, &json!([condition("PayloadAccepted", "True")]));
    assert_eq!(difference(&accepted), None);
    let rejected = with_recorded(
        &passed,
        &json!([
            condition("PayloadCreated", "True"),
            condition("PayloadRejected", "True")
        ]),
    );
    let found = difference(&rejected).unwrap();
    assert_eq!((found.recorded, found.computed), ("Rejected", "Accepted"));
    assert_eq!(
        found.to_string(),
        format!("ocp/{TAG} is Rejected, and the facts mean Accepted: the blocking job passed")
    );
    let own = decide(&passed);
    let settled = again(&passed, &own);
    assert_eq!(settled.phase, own.phase);
}

#[test]
fn a_difference_is_reported_once_after_its_grace_and_again_if_it_changes() {
    let grace = SignedDuration::from_mins(10);
    let start: Timestamp = "2026-01-02T04:00:00Z".parse().unwrap();
    let after = |minutes: i64| {
        start
            .checked_add(SignedDuration::from_mins(minutes))
            .unwrap()
    };
    let key = Key::new("ocp", TAG);
    let passed = judged(ProwJobState::Success);
    let rejected = with_recorded(&passed, &json!([condition("PayloadRejected", "True")]));
    let failed = with_recorded(&passed, &json!([condition("PayloadFailed", "True")]));
    let (first, second) = (difference(&rejected), difference(&failed));
    let mut ledger = Ledger::default();
    let ten = Duration::from_mins(10);
    assert_eq!(
        ledger.note(&key, first.clone(), grace, start),
        Report::Wait(ten)
    );
    assert_eq!(
        ledger.note(&key, first.clone(), grace, after(4)),
        Report::Wait(Duration::from_mins(6))
    );
    assert_eq!(ledger.reported(), 0);
    let report = ledger.note(&key, first.clone(), grace, after(10));
    assert_eq!(report, Report::Differs(first.clone().unwrap()));
    assert_eq!(ledger.note(&key, first, grace, after(11)), Report::Nothing);
    assert_eq!(ledger.reported(), 1);
    assert_eq!(
        ledger.note(&key, second.clone(), grace, after(12)),
        Report::Wait(ten)
    );
    let report = ledger.note(&key, second.clone(), grace, after(22));
    assert_eq!(report, Report::Differs(second.clone().unwrap()));
    let report = ledger.note(&key, None, grace, after(23));
    assert_eq!(report, Report::Agrees(second.unwrap()));
    assert_eq!(ledger.note(&key, None, grace, after(24)), Report::Nothing);
}
