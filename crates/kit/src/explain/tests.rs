mod kinds;

use serde_json::json;

use super::*;

const NOW: &str = "2026-01-01T12:00:00Z";

fn facts(object: Option<Value>) -> Facts {
    Facts {
        kind: "Boat".into(),
        key: Key::new("shop", "web"),
        object,
        known: None,
        around: Arc::default(),
        hidden: Vec::new(),
        events: Vec::new(),
        nearby: Arc::default(),
        operations: Vec::new(),
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
fn an_object_stands_as_its_conditions_say() {
    use Verdict::{OnItsWay, Troubled, Well};
    for (conditions, verdict, why) in [
        (vec![], Well, vec![]),
        (
            vec![condition("Ready", "True", "all is well")],
            Well,
            vec![],
        ),
        (
            vec![condition("Available", "False", "1 of 3")],
            Troubled,
            vec!["Available is False (Because) for 4m: 1 of 3"],
        ),
        (
            vec![
                condition("Ready", "False", "not yet"),
                condition("Reconciling", "True", "pulling"),
            ],
            OnItsWay,
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
            Troubled,
            vec![
                "Stalled is True (Because) for 4m: no such image",
                "Ready is False (Because) for 4m",
            ],
        ),
        (vec![condition("MemoryPressure", "False", "")], Well, vec![]),
        (
            vec![condition("DiskPressure", "True", "full")],
            Troubled,
            vec!["DiskPressure is True (Because) for 4m: full"],
        ),
        (
            vec![condition("Progressing", "False", "deadline")],
            Troubled,
            vec!["Progressing is False (Because) for 4m: deadline"],
        ),
    ] {
        let said = explain(&facts(Some(object(&conditions))));
        assert_eq!(
            (said.verdict, said.why),
            (verdict, why.iter().map(ToString::to_string).collect()),
            "{conditions:?}"
        );
    }
}

#[test]
fn a_change_that_nobody_has_looked_at_comes_before_old_news() {
    let mut object = object(&[condition("Ready", "True", "")]);
    object["metadata"]["generation"] = 3.into();
    let said = explain(&facts(Some(object)));
    assert_eq!(
        said.to_string(),
        "Boat shop/web is being brought to its state\n\
         Why      its spec was changed (generation 3), and its controller has looked at generation 2 only"
    );
}

#[test]
fn a_deletion_names_who_holds_it_up() {
    let metadata =
        json!({"deletionTimestamp": "2026-01-01T09:00:00Z", "finalizers": ["a/b", "c/d"]});
    let said = explain(&facts(Some(json!({"metadata": metadata}))));
    assert_eq!(said.verdict, Verdict::Leaving);
    assert_eq!(
        said.why,
        ["its deletion is under way for 3h and waits for whoever removes a/b, c/d"]
    );
    let metadata = json!({"deletionTimestamp": "2026-01-01T12:00:30Z"});
    let said = explain(&facts(Some(json!({"metadata": metadata}))));
    assert_eq!(said.why, ["it was told to end, and has 30s left"]);
}

#[test]
fn what_is_not_there_is_said_to_be_missing() {
    let said = explain(&facts(None));
    assert_eq!(
        said.to_string(),
        "Boat shop/web does not exist\n\
         Do       See whether name, namespace and kind are spelled as they should be."
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
    let said = explain(&facts);
    assert_eq!(said.verdict, Verdict::Troubled);
    let text = said.to_string();
    let lines: Vec<_> = text.lines().collect();
    assert_eq!(
        lines[..5],
        [
            "Boat shop/web is not as it should be",
            "Why      Available is False (Because) for 4m: 1 of 3",
            "         the operation second (roll out) failed, 2/3 steps done: the step pour failed: it took longer than 5s",
            "Seen     FailedCreate, 7 times, 30s ago: no room",
            "         FailedMount, 2h ago: no room",
        ]
    );
    assert!(
        lines[5].starts_with("Do       Look at what the step waits for"),
        "{text}"
    );
    assert!(lines[5].ends_with("(NT-KIT-003)"), "{text}");
}

#[test]
fn an_operation_under_way_says_when_it_goes_on() {
    let step = json!({
        "name": "boil", "state": "Waiting", "attempts": 2,
        "started": "2026-01-01T11:59:00Z", "due": "2026-01-01T12:00:20Z",
    });
    let status =
        json!({"phase": "Running", "progress": "1/3", "message": "not hot", "steps": [step]});
    let mut facts = facts(Some(object(&[])));
    facts.operations = vec![operation("tea", NOW, &status)];
    let said = explain(&facts);
    assert_eq!(said.verdict, Verdict::OnItsWay);
    assert_eq!(
        said.why,
        ["the operation tea (roll out) goes on, 1/3 steps done: not hot; tried again in 20s"]
    );
}
