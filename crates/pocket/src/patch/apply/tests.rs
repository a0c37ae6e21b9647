mod laws;
mod lists;
mod refusals;
mod takeover;

use serde_json::{Value, json};

use super::*;
use crate::{
    patch::managed::{EndpointScope, track_update},
    schema::{ListType, Node, Schemas, Type, builtin},
};

const T1: &str = "2026-01-01T00:00:00Z";
const T2: &str = "2026-01-02T00:00:00Z";

fn config_map_schema() -> Schema<'static> {
    builtin().named("io.k8s.api.core.v1.ConfigMap").unwrap()
}

fn deployment_schema() -> Schema<'static> {
    builtin().named("io.k8s.api.apps.v1.Deployment").unwrap()
}

fn stamp<'a>(manager: &'a str, time: &'a str) -> Stamp<'a> {
    Stamp {
        manager,
        api_version: "v1",
        subresource: None,
        time,
        scope: EndpointScope::Main { has_status: true },
    }
}

fn config_map(data: &Value) -> Value {
    json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c"}, "data": data})
}

/// A deployment of `v1`, so that one stamp fits all tests.
fn deployment(spec: &Value) -> Value {
    json!({"apiVersion": "v1", "kind": "Deployment", "metadata": {"name": "d"}, "spec": spec})
}

fn pod(spec: &Value) -> Value {
    deployment(&json!({"template": {"spec": spec}}))
}

fn pod_spec(object: &Value) -> &Value {
    &object["spec"]["template"]["spec"]
}

fn owned(object: &Value, manager: &str) -> Value {
    let entries = object["metadata"]["managedFields"].as_array();
    let mut entries = entries.into_iter().flatten();
    let entry = entries.find(|entry| entry["manager"] == manager);
    entry.map_or(Value::Null, |entry| entry["fieldsV1"].clone())
}

/// One object and a sequence of operations on it.
struct Story {
    schema: Schema<'static>,
    live: Option<Value>,
}

impl Story {
    fn of(schema: Schema<'static>) -> Self {
        Self { schema, live: None }
    }

    fn try_apply(&mut self, manager: &str, config: &Value, force: bool) -> Result<&Value, Error> {
        let stamp = stamp(manager, T1);
        let applied = apply(self.schema, self.live.as_ref(), config, &stamp, force)?;
        Ok(self.live.insert(applied.object))
    }

    fn apply(&mut self, manager: &str, config: &Value) -> &Value {
        self.try_apply(manager, config, false).unwrap()
    }

    fn update(&mut self, manager: &str, change: impl FnOnce(&mut Value)) -> &Value {
        let mut new = self.live.clone().unwrap_or_else(|| config_map(&json!({})));
        change(&mut new);
        let stamp = stamp(manager, T1);
        track_update(self.schema, self.live.as_ref(), &mut new, &stamp);
        self.live.insert(new)
    }

    fn refusal(&mut self, manager: &str, config: &Value) -> String {
        let refused = self.try_apply(manager, config, false);
        refused.unwrap_err().to_string()
    }
}

#[test]
fn an_apply_owns_what_it_names_and_nothing_else() {
    let mut story = Story::of(config_map_schema());
    let object = story.apply("alice", &config_map(&json!({"a": "1"})));
    assert_eq!(
        object["metadata"]["managedFields"],
        json!([{"manager": "alice", "operation": "Apply", "apiVersion": "v1", "time": T1,
            "fieldsType": "FieldsV1", "fieldsV1": {"f:data": {"f:a": {}}}}])
    );
    assert_eq!(object["data"], json!({"a": "1"}));
}

#[test]
fn a_repeated_apply_leaves_every_byte_in_place() {
    let mut story = Story::of(config_map_schema());
    story.apply("bob", &config_map(&json!({"b": "1"})));
    let before = story
        .apply("alice", &config_map(&json!({"a": "1"})))
        .clone();
    let config = config_map(&json!({"a": "1"}));
    let again = apply(
        story.schema,
        Some(&before),
        &config,
        &stamp("alice", T2),
        false,
    );
    let again = again.unwrap();
    assert_eq!(again.object, before);
    assert!(again.changes.is_empty());
}

#[test]
fn a_change_takes_a_new_time() {
    let mut story = Story::of(config_map_schema());
    let before = story
        .apply("alice", &config_map(&json!({"a": "1"})))
        .clone();
    let config = config_map(&json!({"a": "2"}));
    let stamp = stamp("alice", T2);
    let object = apply(story.schema, Some(&before), &config, &stamp, false)
        .unwrap()
        .object;
    assert_eq!(object["metadata"]["managedFields"][0]["time"], T2);
}

#[test]
fn the_time_is_that_of_the_last_change_to_the_object() {
    let mut story = Story::of(config_map_schema());
    story.apply("alice", &config_map(&json!({"a": "1", "b": "1"})));
    let object = story.apply("bob", &config_map(&json!({"a": "1"}))).clone();
    // Ordered by time: bob never changed anything.
    assert_eq!(object["metadata"]["managedFields"][0]["manager"], "bob");
    assert!(object["metadata"]["managedFields"][0].get("time").is_none());
    let config = config_map(&json!({"b": "1"}));
    let stamp = stamp("alice", T2);
    let applied = apply(story.schema, Some(&object), &config, &stamp, false);
    let object = applied.unwrap().object;
    assert_eq!(object["data"], json!({"a": "1", "b": "1"}));
    assert_eq!(object["metadata"]["managedFields"][1]["time"], T1);
}

#[test]
fn an_equal_value_is_shared_and_then_no_owner_may_change_it_alone() {
    let mut story = Story::of(config_map_schema());
    story.apply("alice", &config_map(&json!({"a": "1"})));
    story.apply("bob", &config_map(&json!({"a": "1"})));
    let live = story.live.as_ref().unwrap();
    assert_eq!(owned(live, "alice"), owned(live, "bob"));
    assert_eq!(
        story.refusal("bob", &config_map(&json!({"a": "2"}))),
        "Apply failed with 1 conflict: conflict with \"alice\": .data.a"
    );
}

#[test]
fn a_shared_field_stays_until_its_last_owner_drops_it() {
    let mut story = Story::of(config_map_schema());
    story.apply("alice", &config_map(&json!({"a": "1", "b": "1"})));
    story.apply("bob", &config_map(&json!({"a": "1"})));
    let object = story.apply("alice", &config_map(&json!({"b": "1"})));
    assert_eq!(object["data"], json!({"a": "1", "b": "1"}));
    let object = story.apply("bob", &config_map(&json!({"b": "1"})));
    assert_eq!(object["data"], json!({"b": "1"}));
}

#[test]
fn a_field_an_updater_took_is_not_removed_by_its_former_applier() {
    let mut story = Story::of(config_map_schema());
    story.apply("alice", &config_map(&json!({"a": "1", "b": "1"})));
    story.update("bob", |object| object["data"]["a"] = json!("2"));
    let object = story.apply("alice", &config_map(&json!({"b": "1"})));
    assert_eq!(object["data"], json!({"a": "2", "b": "1"}));
}

#[test]
fn force_takes_the_field_from_every_other_owner() {
    let mut story = Story::of(config_map_schema());
    story.apply("alice", &config_map(&json!({"a": "1", "b": "1"})));
    story.update("bob", |object| object["data"]["c"] = json!("1"));
    let config = config_map(&json!({"a": "2", "c": "2"}));
    let object = story.try_apply("carol", &config, true).unwrap();
    assert_eq!(object["data"], json!({"a": "2", "b": "1", "c": "2"}));
    assert_eq!(owned(object, "alice"), json!({"f:data": {"f:b": {}}}));
    assert_eq!(owned(object, "bob"), Value::Null);
    assert_eq!(
        owned(object, "carol"),
        json!({"f:data": {"f:a": {}, "f:c": {}}})
    );
}

#[test]
fn a_dropped_struct_takes_its_defaults_with_it() {
    let mut story = Story::of(deployment_schema());
    let probe = json!({"httpGet": {"port": 80}});
    let container = |probe: Option<&Value>| {
        let mut container = json!({"name": "c"});
        if let Some(probe) = probe {
            container["livenessProbe"] = probe.clone();
        }
        pod(&json!({"containers": [container]}))
    };
    story.apply("alice", &container(Some(&probe)));
    // As defaulting does it: the period has no owner.
    let live = story.live.as_mut().unwrap();
    let path = "/spec/template/spec/containers/0/livenessProbe";
    live.pointer_mut(path).unwrap()["periodSeconds"] = json!(10);
    let object = story.apply("alice", &container(None));
    assert_eq!(pod_spec(object)["containers"], json!([{"name": "c"}]));
}

#[test]
fn unowned_fields_outlive_the_applier_of_their_neighbours() {
    let mut story = Story::of(config_map_schema());
    story.apply("alice", &config_map(&json!({"a": "1"})));
    story.live.as_mut().unwrap()["metadata"]["labels"] = json!({"server": "set"});
    let mut config = config_map(&json!({}));
    config.as_object_mut().unwrap().remove("data");
    let object = story.apply("alice", &config);
    assert_eq!(object["metadata"]["labels"], json!({"server": "set"}));
    assert!(object.get("data").is_none());
    assert_eq!(object["metadata"]["name"], "c");
}

#[test]
fn the_first_apply_to_an_untracked_object_meets_those_who_came_before() {
    let mut story = Story::of(config_map_schema());
    story.live = Some(config_map(&json!({"a": "1", "b": "1"})));
    assert_eq!(
        story.refusal("alice", &config_map(&json!({"a": "2"}))),
        "Apply failed with 1 conflict: conflict with \"before-first-apply\" using v1: .data.a"
    );
    let object = story.apply("alice", &config_map(&json!({"a": "1"})));
    let before = json!({"f:data": {".": {}, "f:a": {}, "f:b": {}}});
    assert_eq!(owned(object, "before-first-apply"), before);
}

#[test]
fn status_and_spec_are_applied_by_separate_entries() {
    let mut story = Story::of(deployment_schema());
    let mut config = deployment(&json!({"replicas": 1}));
    config["status"] = json!({"replicas": 7});
    let object = story.apply("alice", &config).clone();
    assert_eq!(
        owned(&object, "alice"),
        json!({"f:spec": {"f:replicas": {}}})
    );
    config["status"] = json!({"replicas": 8});
    let through_status = Stamp {
        subresource: Some("status"),
        scope: EndpointScope::Status,
        ..stamp("alice", T2)
    };
    let applied = apply(story.schema, Some(&object), &config, &through_status, false).unwrap();
    let entries = &applied.object["metadata"]["managedFields"];
    assert_eq!(
        entries[0]["fieldsV1"],
        json!({"f:spec": {"f:replicas": {}}})
    );
    assert_eq!(
        entries[1]["fieldsV1"],
        json!({"f:status": {"f:replicas": {}}})
    );
    assert_eq!(entries[1]["subresource"], "status");
}

#[test]
fn an_applier_keeps_one_entry_whatever_the_version() {
    let mut story = Story::of(config_map_schema());
    let live = story
        .apply("alice", &config_map(&json!({"a": "1"})))
        .clone();
    let mut config = config_map(&json!({"b": "1"}));
    config["apiVersion"] = json!("v2");
    let stamp = Stamp {
        api_version: "v2",
        ..stamp("alice", T2)
    };
    let object = apply(story.schema, Some(&live), &config, &stamp, false)
        .unwrap()
        .object;
    assert_eq!(
        object["metadata"]["managedFields"]
            .as_array()
            .unwrap()
            .len(),
        1
    );
    assert_eq!(object["metadata"]["managedFields"][0]["apiVersion"], "v2");
    assert_eq!(object["data"], json!({"b": "1"}));
}

#[test]
fn metadata_goes_with_the_last_label_of_an_applier_that_omits_it() {
    let silent = json!({"apiVersion": "v1", "kind": "ConfigMap"});
    let spoken = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {}});
    let label = json!({"x": "y"});
    for (labels, applied, left) in [
        (Some(&label), &silent, json!({})),
        (Some(&label), &spoken, json!({"name": "c"})),
        (None, &silent, json!({"name": "c"})),
    ] {
        let mut config = config_map(&json!({"a": "1"}));
        if let Some(labels) = labels {
            config["metadata"]["labels"] = labels.clone();
        }
        let mut story = Story::of(config_map_schema());
        story.apply("alice", &config);
        let mut metadata = story.apply("alice", applied)["metadata"].clone();
        if let Some(metadata) = metadata.as_object_mut() {
            metadata.remove("managedFields");
        }
        assert_eq!(metadata, left, "{labels:?} {applied}");
    }
}

#[test]
fn a_map_goes_with_its_last_entry() {
    let mut story = Story::of(config_map_schema());
    story.update("bob", |object| {
        object["metadata"]["labels"] = json!({"b": "1"});
    });
    let mut config = config_map(&json!({"k": "v"}));
    config["metadata"]["labels"] = json!({"a": "1"});
    story.apply("alice", &config);
    // Bob still owns the map, and nothing in it, even when it is removed.
    story.update("bob", |object| {
        object["metadata"]["labels"] = json!({"a": "1"});
    });
    let object = story.apply("alice", &config_map(&json!({"k": "v"})));
    assert_eq!(object["metadata"].get("labels"), Some(&Value::Null));
    assert_eq!(owned(object, "bob")["f:metadata"], json!({"f:labels": {}}));
}

#[test]
fn a_null_claims_a_container_without_emptying_it() {
    let mut story = Story::of(config_map_schema());
    story.apply("bob", &config_map(&json!({"b": "1"})));
    let object = story.apply("alice", &config_map(&Value::Null));
    assert_eq!(object["data"], json!({"b": "1"}));
    assert_eq!(owned(object, "alice"), json!({"f:data": {}}));
}

#[test]
fn managers_of_other_versions_lose_what_a_write_did_not_even_change() {
    let schema = deployment_schema();
    let entries = |version: &str| {
        json!([{"apiVersion": version, "fieldsType": "FieldsV1", "manager": "m", "operation": "Update",
            "fieldsV1": {"f:status": {"f:replicas": {}}, "f:spec": {"f:paused": {}}}}])
    };
    let object = |version: &str| json!({"metadata": {"managedFields": entries(version)}, "spec": {"paused": true}, "status": {"replicas": 1}});
    let twice = json!({"metadata": {"finalizers": ["a", "a"]}, "spec": {"paused": true}, "status": {"replicas": 1}});
    let silent = json!({"metadata": {}, "spec": {"paused": true}});
    let left = json!({"f:spec": {"f:paused": {}}});
    for (version, subresource, sent, expected) in [
        ("v1", None, &silent, entries("v1")[0]["fieldsV1"].clone()),
        ("v2", None, &silent, left),
        (
            "v2",
            Some("status"),
            &silent,
            entries("v2")[0]["fieldsV1"].clone(),
        ),
        ("v2", None, &twice, Value::Null),
        ("v2", Some("status"), &twice, Value::Null),
        ("v1", None, &twice, entries("v1")[0]["fieldsV1"].clone()),
    ] {
        let mut new = object(version);
        track_versions(
            schema,
            &object(version),
            sent,
            &mut new,
            ("v1", subresource),
        );
        let found = &new["metadata"]["managedFields"][0]["fieldsV1"];
        assert_eq!(*found, expected, "{version} {subresource:?} {sent}");
    }
}
