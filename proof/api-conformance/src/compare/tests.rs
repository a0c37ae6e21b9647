use serde_json::json;

use super::*;

#[test]
fn fields_are_named_without_their_places() {
    let mut found = Vec::new();
    let theirs = json!({"spec": {"ports": [{"port": 1}, {"port": 2, "name": "x"}]}, "a": 1});
    let ours = json!({"spec": {"ports": [{"port": 1}, {"port": 3}]}, "b": 1});
    values("", &theirs, &ours, &mut found);
    let fields: Vec<_> = found.iter().map(|d| d.field.as_str()).collect();
    assert_eq!(fields, ["a", "spec.ports[].name", "spec.ports[].port", "b"]);
}

#[test]
fn only_entries_of_a_map_may_be_told_in_any_order() {
    let refused = |causes: [(&str, &str); 4]| {
        let causes = causes.map(|(field, message)| json!({"field": field, "message": message}));
        let message = format!("X is invalid: [{}]", told(&causes));
        sorted(json!({"message": message, "details": {"causes": causes}}))
    };
    let (a, b, uid) = (
        ("metadata.labels", "a"),
        ("metadata.labels", "b"),
        ("metadata.uid", "u"),
    );
    assert_eq!(refused([a, b, uid, a]), refused([b, a, uid, a]));
    assert_ne!(refused([a, b, uid, a]), refused([a, uid, b, a]));
    assert_ne!(refused([a, b, uid, a]), refused([a, a, uid, b]));
    let (one, two) = (("data[x/]", "no key"), ("data[y/]", "no key"));
    assert_eq!(refused([one, two, uid, a]), refused([two, one, uid, a]));
    let (port, other) = (("spec.ports[0]", "p"), ("spec.ports[1]", "p"));
    assert_ne!(
        refused([port, other, uid, a]),
        refused([other, port, uid, a])
    );
}

#[test]
fn messages_lose_their_values() {
    assert_eq!(general("Pod \"a\" is 5 long"), "Pod \"…\" is N long");
}

fn refused(reason: &str, places: [&str; 2]) -> Answer {
    let cause = |place: &str| json!({"reason": reason, "field": place, "message": place});
    Answer {
        code: 409,
        content_type: "application/json".into(),
        warnings: Vec::new(),
        body: json!({"kind": "Status", "message": "no", "details": {"causes": places.map(cause)}}),
    }
}

#[test]
fn conflicts_alone_may_come_in_any_order() {
    let conflict = "FieldManagerConflict";
    for (reason, theirs, ours, agree) in [
        (conflict, [".a", ".b"], [".b", ".a"], true),
        (conflict, [".a", ".b"], [".a", ".c"], false),
        (conflict, [".a", ".b"], [".a", ".a"], false),
        ("FieldValueInvalid", [".a", ".b"], [".a", ".b"], true),
        ("FieldValueInvalid", [".a", ".b"], [".b", ".a"], false),
    ] {
        let found = differences(&refused(reason, theirs), &refused(reason, ours));
        assert_eq!(found.is_empty(), agree, "{reason} {theirs:?} {ours:?}");
    }
}

#[test]
fn problems_of_a_configuration_may_come_in_any_order_but_must_be_the_same() {
    let typed = |name: &str, problems: &str| {
        json!(format!(
            "failed to create typed patch object (ns/{name}; v1, Kind=Pod): {problems}"
        ))
    };
    let (one, other) = (
        "errors:\n  .a: expected string\n  .b: expected map",
        "errors:\n  .b: expected map\n  .a: expected string",
    );
    let (undeclared, unknown) = (
        ".x: field not declared in schema",
        "errors:\n  .a: expected string\n  .y: field not declared in schema",
    );
    for (theirs, ours, agree) in [
        (typed("a", one), typed("a", other), true),
        (typed("a", undeclared), typed("a", unknown), true),
        (typed("a", one), typed("b", one), false),
        (typed("a", one), typed("a", ".a: expected string"), false),
        (typed("a", one), typed("a", unknown), false),
        (
            json!("apply failed: errors:\n  .a\n  .b"),
            json!("apply failed: errors:\n  .b\n  .a"),
            true,
        ),
        (
            json!("not found:\n.a\n.b"),
            json!("not found:\n.b\n.a"),
            false,
        ),
    ] {
        let equal = unordered(&theirs) == unordered(&ours);
        assert_eq!(equal, agree, "{theirs} {ours}");
    }
}
