mod kinds;

use serde_json::json;

use super::*;

const NOW: &str = "2026-01-01T12:00:00Z";

fn facts(object: Option<Value>) -> Facts {
    Facts {
        kind: "Boat".into(),
        key: Key::new("shop", "web"),
        object,
        assessment: None,
        related: Arc::default(),
        unreadable: Vec::new(),
        events: Vec::new(),
        related_events: Arc::default(),
        operations: Vec::new(),
        catalogue: Catalogue::default(),
        now: NOW.parse().unwrap(),
    }
}

fn condition(kind: &str, status: &str, message: &str) -> Value {
    json!({"type": kind, "status": status, "reason": "Because", "message": message, "lastTransitionTime": "2026-01-01T11:56:00Z"})
}

fn object(conditions: &[Value]) -> Value {
    json!({
        "metadata": {"generation": 2},
        "status": {"observedGeneration": 2, "conditions": conditions},
    })
}

fn event(reason: &str, time: &str, count: i32) -> Event {
    serde_json::from_value(json!({
        "metadata": {}, "involvedObject": {}, "type": "Warning", "reason": reason,
        "message": "no room", "lastTimestamp": time, "count": count,
    }))
    .unwrap()
}

fn operation(name: &str, created: &str, status: &Value) -> Operation {
    let target = json!({"kind": "Boat", "namespace": "shop", "name": "web"});
    serde_json::from_value(json!({
        "apiVersion": "neaptide.dev/v1alpha1", "kind": "Operation",
        "metadata": {"name": name, "creationTimestamp": created},
        "spec": {"work": "roll out", "target": target},
        "status": status,
    }))
    .unwrap()
}

#[test]
fn the_verdict_follows_from_the_conditions() {
    use Verdict::{Degraded, Healthy, Progressing};
    for (conditions, verdict, why) in [
        (vec![], Healthy, vec![]),
        (
            vec![condition("Ready", "True", "all pods are ready")],
            Healthy,
            vec![],
        ),
        (
            vec![condition("Available", "False", "1 of 3")],
            Degraded,
            vec!["Available is False (Because) for 4m: 1 of 3"],
        ),
        (
            vec![
                condition("Ready", "False", "not yet"),
                condition("Reconciling", "True", "pulling"),
            ],
            Progressing,
            vec![
                "Ready is False (Because) for 4m: not yet",
                "Reconciling is True (Because) for 4m: pulling",
            ],
        ),
        (
            vec![
                condition("Ready", "False", ""),
                condition("Stalled", "True", "no such image"),
            ],
            Degraded,
            vec![
                "Stalled is True (Because) for 4m: no such image",
                "Ready is False (Because) for 4m",
            ],
        ),
        (
            vec![condition("MemoryPressure", "False", "")],
            Healthy,
            vec![],
        ),
        (
            vec![condition("DiskPressure", "True", "full")],
            Degraded,
            vec!["DiskPressure is True (Because) for 4m: full"],
        ),
        (
            vec![condition("Progressing", "False", "deadline")],
            Degraded,
            vec!["Progressing is False (Because) for 4m: deadline"],
        ),
    ] {
        let explanation = explain(&facts(Some(object(&conditions))));
        assert_eq!(
            (explanation.verdict, explanation.why),
            (verdict, why.iter().map(ToString::to_string).collect()),
            "{conditions:?}"
        );
    }
}

#[test]
fn a_generation_that_was_not_observed_comes_before_old_conditions() {
    let mut object = object(&[condition("Ready", "True", "")]);
    object["metadata"]["generation"] = 3.into();
    let explanation = explain(&facts(Some(object)));
    assert_eq!(
        explanation.to_string(),
        "Boat shop/web is progressing\n\
         Why      its spec has generation 3, and its controller has observed only generation 2"
    );
}

#[test]
fn a_deletion_names_its_finalizers() {
    let metadata =
        json!({"deletionTimestamp": "2026-01-01T09:00:00Z", "finalizers": ["a/b", "c/d"]});
    let explanation = explain(&facts(Some(json!({"metadata": metadata}))));
    assert_eq!(explanation.verdict, Verdict::Terminating);
    assert_eq!(
        explanation.why,
        ["its deletion is in progress for 3h and waits for its finalizers: a/b, c/d"]
    );
    let metadata = json!({"deletionTimestamp": "2026-01-01T12:00:30Z"});
    let explanation = explain(&facts(Some(json!({"metadata": metadata}))));
    assert_eq!(
        explanation.why,
        ["it is terminating, and has 30s of its grace period left"]
    );
}

#[test]
fn an_object_that_does_not_exist_is_reported_so() {
    let explanation = explain(&facts(None));
    assert_eq!(
        explanation.to_string(),
        "Boat shop/web does not exist\n\
         Do       Check the spelling of name, namespace and kind."
    );
}

#[test]
fn an_operation_that_failed_is_the_reason_and_its_code_leads_to_a_remedy() {
    let cause = json!({"code": "NT-KIT-003", "message": "it took longer than 5s"});
    let status = json!({
        "phase": "Failed", "step": "pour", "progress": "2/3", "cause": cause,
        "message": "the step pour failed: it took longer than 5s",
    });
    let older = json!({"phase": "Failed", "message": "long ago"});
    let mut facts = facts(Some(object(&[condition("Available", "False", "1 of 3")])));
    let mut elsewhere = operation("other", NOW, &json!({"phase": "Failed"}));
    elsewhere.spec.target.name = "db".into();
    facts.operations = vec![
        operation("first", "2026-01-01T08:00:00Z", &older),
        operation("second", "2026-01-01T11:00:00Z", &status),
        elsewhere,
    ];
    facts.events = vec![
        event("FailedMount", "2026-01-01T10:00:00Z", 1),
        event("FailedCreate", "2026-01-01T11:59:30Z", 7),
    ];
    let explanation = explain(&facts);
    assert_eq!(explanation.verdict, Verdict::Degraded);
    let text = explanation.to_string();
    let lines: Vec<_> = text.lines().collect();
    assert_eq!(
        lines[..5],
        [
            "Boat shop/web is unhealthy",
            "Why      Available is False (Because) for 4m: 1 of 3",
            "         the operation second (roll out) failed, 2/3 steps done: the step pour failed: it took longer than 5s",
            "Events   FailedCreate, 7 times, 30s ago: no room",
            "         FailedMount, 120m ago: no room",
        ]
    );
    assert!(
        lines[5].starts_with("Do       Find out what the step waits for"),
        "{text}"
    );
    assert!(lines[5].ends_with("(NT-KIT-003)"), "{text}");
}

#[test]
fn a_running_operation_shows_its_next_attempt() {
    let step = json!({
        "name": "boil", "state": "Waiting", "attempts": 2,
        "started": "2026-01-01T11:59:00Z", "due": "2026-01-01T12:00:20Z",
    });
    let status =
        json!({"phase": "Running", "progress": "1/3", "message": "not hot", "steps": [step]});
    let mut facts = facts(Some(object(&[])));
    facts.operations = vec![operation("tea", NOW, &status)];
    let explanation = explain(&facts);
    assert_eq!(explanation.verdict, Verdict::Progressing);
    assert_eq!(
        explanation.why,
        ["the operation tea (roll out) is running, 1/3 steps done: not hot; next attempt in 20s"]
    );
}

#[test]
fn a_message_of_several_lines_stays_below_its_title() {
    let conditions = [condition("Ready", "False", "no room\nDo       run this")];
    let text = explain(&facts(Some(object(&conditions)))).to_string();
    let first = "Why      Ready is False (Because) for 4m: no room\n";
    assert!(
        text.contains(&format!("{first}         Do       run this")),
        "{text}"
    );
}
