use std::time::Duration;

use serde_json::{Value, json};

use super::*;

fn stream(name: &str, configured: bool, tags: &[(&str, &str, &str)]) -> ImageStream {
    let spec: Vec<Value> = tags
        .iter()
        .map(|(tag, image, _)| json!({"name": tag, "from": {"kind": "DockerImage", "name": image}}))
        .collect();
    let status: Vec<Value> = tags
        .iter()
        .map(|(tag, _, status)| json!({"tag": tag, "items": [], "conditions": [{"type": "ImportSuccess", "status": status, "generation": 1}]}))
        .collect();
    let mut object = json!({
        "metadata": {"name": name, "namespace": "ocp", "resourceVersion": "7", "uid": "u"},
        "spec": {"tags": spec}, "status": {"tags": status},
    });
    if configured {
        object["metadata"]["annotations"] = json!({CONFIG: "{}"});
    }
    serde_json::from_value(object).unwrap()
}

fn failing(count: usize, registry: &str) -> Vec<FailedTag> {
    let tags = (0..count).map(|number| FailedTag {
        stream: Key::new("ocp", "4.99"),
        tag: format!("{registry}-{number}"),
        image: format!("{registry}/x:{number}"),
        registry: registry.to_owned(),
    });
    tags.collect()
}

#[test]
fn only_failed_tags_of_configured_streams_are_asked_for() {
    let tags = [
        ("bad", "r.example/a:1", "False"),
        ("good", "r.example/b:1", "True"),
    ];
    let found = failed_tags(&stream("4.99", true, &tags));
    assert_eq!(
        found.iter().map(ToString::to_string).collect::<Vec<_>>(),
        ["ocp/4.99:bad from r.example/a:1"]
    );
    assert_eq!(failed_tags(&stream("other", false, &tags)), []);
}

#[test]
fn a_pass_is_bounded_by_number_and_by_registry() {
    let options = ReimportOptions {
        per_pass: 30,
        per_registry: 20,
        ..ReimportOptions::default()
    };
    let failed: Vec<_> = failing(50, "a.example")
        .into_iter()
        .chain(failing(50, "b.example"))
        .collect();
    let chosen = decide(&failed, &Asked::new(), &options, Duration::ZERO);
    let of = |registry: &str| chosen.iter().filter(|it| it.registry == registry).count();
    assert_eq!(
        (chosen.len(), of("a.example"), of("b.example")),
        (30, 20, 10)
    );
}

#[test]
fn what_keeps_failing_is_asked_for_less_often_and_others_come_first() {
    let options = ReimportOptions::default();
    let failed = failing(1, "a.example");
    let (mut asked, mut now, mut passes) = (Asked::new(), Duration::ZERO, Vec::new());
    for pass in 0..60 {
        let chosen = decide(&failed, &asked, &options, now);
        note(&mut asked, &failed, &chosen, &options, now);
        if !chosen.is_empty() {
            passes.push(pass);
        }
        now += options.interval;
    }
    assert_eq!(passes, [0, 1, 3, 7, 15, 31]);
    note(&mut asked, &[], &[], &options, now);
    assert!(asked.is_empty(), "what no longer fails is forgotten");
}

#[test]
fn the_annotation_keeps_other_requests_and_has_a_precondition() {
    let mut found = stream(
        "4.99",
        true,
        &[
            ("bad", "r.example/a:1", "False"),
            ("worse", "r.example/b:1", "False"),
        ],
    );
    let now: Timestamp = "2026-01-01T12:00:00Z".parse().unwrap();
    let before = r#"{"worse": "2026-01-01T11:59:00Z", "gone": "2026-01-01T11:59:00Z"}"#;
    found
        .metadata
        .annotations
        .as_mut()
        .unwrap()
        .insert(IMPORT_REQUESTED.to_owned(), before.to_owned());
    let failed = failed_tags(&found).remove(0);
    let PlannedChange::Merge {
        metadata, patch, ..
    } = annotation(&found, &failed, now)
    else {
        unreachable!()
    };
    assert_eq!(metadata.resource_version.as_deref(), Some("7"));
    let text = patch["metadata"]["annotations"][IMPORT_REQUESTED]
        .as_str()
        .unwrap();
    assert_eq!(
        text,
        r#"{"bad":"2026-01-01T12:00:00Z","worse":"2026-01-01T11:59:00Z"}"#
    );
}
