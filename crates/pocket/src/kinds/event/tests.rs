use proptest::prelude::*;
use serde_json::json;

use super::{
    convert::{name_owned, to_core, to_events},
    *,
};
use crate::kinds::testing::{defaulted, errors, update_errors};

fn full() -> Value {
    json!({
        "apiVersion": "events.k8s.io/v1",
        "kind": "Event",
        "metadata": {"name": "e", "namespace": "n"},
        "regarding": {"kind": "Pod", "name": "p", "namespace": "n"},
        "eventTime": "2026-01-01T00:00:00.000000Z",
        "reportingController": "example.com/c",
        "reportingInstance": "c-0",
        "action": "Binding",
        "reason": "Scheduled",
        "type": "Normal",
        "note": "done",
        "series": {"count": 2, "lastObservedTime": "2026-01-01T00:00:01.000000Z"},
    })
}

#[test]
fn an_event_is_where_its_object_is() {
    for (place, object, good) in [
        ("n", "n", true),
        ("n", "m", false),
        ("default", "", true),
        ("n", "", false),
    ] {
        let event =
            json!({"metadata": {"namespace": place}, "involvedObject": {"namespace": object}});
        let errors = errors(&CORE_RULES, &event);
        if good {
            assert_eq!(errors, [""; 0]);
        } else {
            let text = format!(
                "involvedObject.namespace: Invalid value: \"{object}\": does not match event.namespace"
            );
            assert_eq!(errors, [text]);
        }
    }
}

#[test]
fn the_newer_api_asks_for_everything() {
    assert_eq!(errors(&RULES, &full()), [""; 0]);
    for (field, value, expected) in [
        (
            "reportingController",
            json!(""),
            "reportingController: Required value",
        ),
        (
            "reportingInstance",
            json!(null),
            "reportingInstance: Required value",
        ),
        ("action", json!(null), "action: Required value"),
        (
            "reason",
            json!("x".repeat(129)),
            "reason: Invalid value: \"\": can have at most 128 characters",
        ),
        (
            "note",
            json!("x".repeat(1025)),
            "note: Invalid value: \"\": can have at most 1024 characters",
        ),
        (
            "type",
            json!("Odd"),
            "type: Invalid value: \"\": has invalid value: Odd",
        ),
        (
            "series",
            json!({"count": 1}),
            "series.count: Invalid value: \"\": should be at least 2",
        ),
        (
            "deprecatedCount",
            json!(3),
            "deprecatedCount: Invalid value: \"\": needs to be unset",
        ),
        (
            "deprecatedSource",
            json!({"component": "c"}),
            "deprecatedSource: Invalid value: \"\": needs to be unset",
        ),
    ] {
        let mut event = full();
        event[field] = value;
        let errors = errors(&RULES, &event);
        assert_eq!(errors[0], expected);
        // An empty name violates the syntax of names as well.
        let more = if field == "reportingController" { 3 } else { 1 };
        assert_eq!(errors.len(), more, "{errors:?}");
    }
}

#[test]
fn only_the_series_of_a_newer_event_goes_on() {
    let old = full();
    let mut new = old.clone();
    new["series"]["count"] = json!(3);
    assert_eq!(update_errors(&RULES, &new, &old), [""; 0]);
    new["note"] = json!("other");
    assert_eq!(
        update_errors(&RULES, &new, &old),
        ["message: Invalid value: \"other\": field is immutable"]
    );
}

#[test]
fn a_core_event_shows_what_it_lacks() {
    let event = defaulted(&CORE_RULES, &json!({"reason": "r"}));
    let expected = json!({
        "reason": "r", "involvedObject": {}, "source": {}, "reportingComponent": "",
        "reportingInstance": "", "eventTime": null, "firstTimestamp": null, "lastTimestamp": null,
    });
    assert_eq!(event, expected);
    assert_eq!(defaulted(&CORE_RULES, &event), event);
}

#[test]
fn names_follow_the_api() {
    let core = to_core(full());
    assert_eq!(core["apiVersion"], "v1");
    assert_eq!(core["involvedObject"]["name"], "p");
    assert_eq!(core["message"], "done");
    assert_eq!(core["reportingComponent"], "example.com/c");
    assert_eq!(core["series"], full()["series"]);
    assert!(core.get("note").is_none());
}

#[test]
fn entries_are_kept_in_the_words_of_their_version() {
    let owned = |version: &str, name: &str| json!({"apiVersion": version, "fieldsV1": {name: {}, "f:reason": {}}});
    let kept = json!({"metadata": {"managedFields": [
        owned("v1", "f:message"), owned("events.k8s.io/v1", "f:note"),
    ]}});
    for (version, name) in [("v1", "f:message"), ("events.k8s.io/v1", "f:note")] {
        let mut event = kept.clone();
        name_owned(&mut event, Some(version));
        for entry in event["metadata"]["managedFields"].as_array().unwrap() {
            assert_eq!(entry["fieldsV1"], json!({name: {}, "f:reason": {}}));
        }
        name_owned(&mut event, None);
        assert_eq!(event, kept);
    }
}

#[test]
fn an_absent_reporter_is_shown_by_the_older_api_alone() {
    let event = to_events(json!({"reportingComponent": "", "reportingInstance": "", "reason": ""}));
    assert_eq!(
        event,
        json!({"apiVersion": "events.k8s.io/v1", "reason": ""})
    );
}

#[test]
fn converted_events_have_only_fields_of_their_schema() {
    let newer = crate::schema::builtin()
        .named("io.k8s.api.events.v1.Event")
        .unwrap();
    let core = crate::schema::builtin()
        .named("io.k8s.api.core.v1.Event")
        .unwrap();
    let all = |schema: crate::schema::Schema<'_>| -> Value {
        schema
            .node()
            .properties
            .keys()
            .map(|key| (key.to_string(), json!(1)))
            .collect::<serde_json::Map<_, _>>()
            .into()
    };
    for (converted, schema) in [(to_events(all(core)), newer), (to_core(all(newer)), core)] {
        for field in converted.as_object().unwrap().keys() {
            assert!(schema.property(field).is_some(), "{field}");
        }
    }
}

proptest! {
    #[test]
    fn conversion_there_and_back_changes_nothing(
        fields in proptest::collection::btree_map(
            prop_oneof![
                Just("involvedObject"), Just("message"), Just("reason"), Just("count"),
                Just("source"), Just("firstTimestamp"), Just("reportingComponent"), Just("related"),
            ],
            any::<u32>(), 0..8,
        )
    ) {
        let mut event = json!({"apiVersion": "v1", "kind": "Event"});
        for (field, value) in fields {
            event[field] = json!(value);
        }
        prop_assert_eq!(to_core(to_events(event.clone())), event);
    }
}
