mod laws;
mod takeover;

use serde_json::{Value, json};

use super::*;
use crate::{
    patch::managed::{Scope, track_update},
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
        scope: Scope::Main { has_status: true },
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

/// One object and what is done to it.
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
fn an_equal_value_is_shared_and_then_nobody_may_change_it_alone() {
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
fn conflicts_read_as_a_real_server_tells_them() {
    let mut story = Story::of(config_map_schema());
    story.update("m", |object| object["data"] = json!({"n": "1", "a": "1"}));
    let config = config_map(&json!({"n": "2"}));
    assert_eq!(
        story.refusal("alice", &config),
        "Apply failed with 1 conflict: conflict with \"m\" using v1: .data.n"
    );
    let config = config_map(&json!({"n": "2", "a": "2"}));
    assert_eq!(
        story.refusal("alice", &config),
        "Apply failed with 2 conflicts: conflicts with \"m\" using v1:\n- .data.a\n- .data.n"
    );
    story.apply("b", &config_map(&json!({"x": "1"})));
    let config = config_map(&json!({"n": "2", "a": "2", "x": "2"}));
    assert_eq!(
        story.refusal("alice", &config),
        "Apply failed with 3 conflicts: conflicts with \"b\":\n- .data.x\n\
         conflicts with \"m\" using v1:\n- .data.a\n- .data.n"
    );
}

#[test]
fn a_conflict_is_answered_with_409_and_a_cause_for_each_field() {
    let mut story = Story::of(deployment_schema());
    story.live = Some(deployment(&json!({"replicas": 1, "paused": true})));
    let through_scale = Stamp {
        subresource: Some("scale"),
        scope: Scope::Other,
        ..stamp("hpa", T1)
    };
    let mut live = deployment(&json!({"replicas": 1, "paused": true}));
    track_update(story.schema, None, &mut live, &through_scale);
    story.live = Some(live);
    let config = deployment(&json!({"replicas": 2}));
    let refused: ApiError = story.try_apply("alice", &config, false).unwrap_err().into();
    assert_eq!(
        refused.to_value(),
        json!({"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure",
            "code": 409, "reason": "Conflict",
            "message": "Apply failed with 1 conflict: conflict with \"hpa\" with subresource \
                \"scale\" using v1: .spec.replicas",
            "details": {"causes": [{"reason": "FieldManagerConflict", "field": ".spec.replicas",
                "message": "conflict with \"hpa\" with subresource \"scale\" using v1"}]}})
    );
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
fn nested_fields_conflict_by_their_own_path() {
    let mut story = Story::of(deployment_schema());
    let container = |image: &str| pod(&json!({"containers": [{"name": "x", "image": image}]}));
    story.apply("alice", &container("1"));
    assert_eq!(
        story.refusal("bob", &container("2")),
        "Apply failed with 1 conflict: conflict with \"alice\": \
         .spec.template.spec.containers[name=\"x\"].image"
    );
}

#[test]
fn items_of_keyed_lists_merge_by_key() {
    let mut story = Story::of(deployment_schema());
    let side = json!({"name": "side", "image": "s"});
    story.apply(
        "alice",
        &pod(&json!({"containers": [{"name": "main", "image": "m"}, side]})),
    );
    let config = json!({"containers": [{"name": "main", "args": ["-v"]}]});
    let object = story.apply("bob", &pod(&config));
    let main = json!({"name": "main", "image": "m", "args": ["-v"]});
    assert_eq!(pod_spec(object)["containers"], json!([main, side]));
    let object = story.apply("alice", &pod(&json!({"containers": [side]})));
    let main = json!({"name": "main", "args": ["-v"]});
    assert_eq!(pod_spec(object)["containers"], json!([main, side]));
    let object = story.apply("bob", &pod(&json!({})));
    assert_eq!(pod_spec(object)["containers"], json!([side]));
}

#[test]
fn a_dropped_item_goes_whole_even_if_others_changed_parts_of_it() {
    let mut story = Story::of(deployment_schema());
    let containers = json!([{"name": "a", "image": "1"}, {"name": "b", "image": "1"}]);
    story.apply("alice", &pod(&json!({"containers": containers})));
    story.update("bob", |object| {
        object["spec"]["template"]["spec"]["containers"][1]["image"] = json!("2");
    });
    let config = json!({"containers": [{"name": "a", "image": "1"}]});
    let object = story.apply("alice", &pod(&config));
    assert_eq!(*pod_spec(object), config);
    assert_eq!(owned(object, "bob"), Value::Null);
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
    // As defaulting does it: nobody owns the period.
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
fn sets_merge_member_by_member() {
    let mut story = Story::of(config_map_schema());
    let with = |finalizers: &[&str]| {
        let mut config = config_map(&json!({}));
        config["metadata"]["finalizers"] = json!(finalizers);
        config
    };
    story.apply("alice", &with(&["a/a", "b/b"]));
    let object = story.apply("bob", &with(&["b/b", "c/c"]));
    assert_eq!(
        object["metadata"]["finalizers"],
        json!(["a/a", "b/b", "c/c"])
    );
    let object = story.apply("alice", &with(&["c/c"]));
    assert_eq!(object["metadata"]["finalizers"], json!(["b/b", "c/c"]));
}

#[test]
fn atomic_values_are_replaced_and_owned_as_a_whole() {
    let mut story = Story::of(deployment_schema());
    let selector = |labels: &Value| deployment(&json!({"selector": {"matchLabels": labels}}));
    story.apply("alice", &selector(&json!({"a": "1"})));
    assert_eq!(
        story.refusal("bob", &selector(&json!({"b": "1"}))),
        "Apply failed with 1 conflict: conflict with \"alice\": .spec.selector"
    );
    let object = story.apply("alice", &selector(&json!({"b": "1"})));
    assert_eq!(
        object["spec"]["selector"],
        json!({"matchLabels": {"b": "1"}})
    );
}

#[test]
fn items_come_in_applied_order_between_those_that_stay() {
    let names = |names: &str| {
        let names = names.chars().map(|c| json!({"name": c.to_string()}));
        json!({"containers": names.collect::<Vec<_>>()})
    };
    // Live, applied, outcome.
    for (live, applied, expected) in [
        ("ab", "x", "abx"),
        ("ab", "xa", "xab"),
        ("ab", "ax", "abx"),
        ("abc", "ca", "bca"),
        ("abcd", "ba", "bcda"),
        ("abc", "axc", "abxc"),
        ("", "ba", "ba"),
        ("ab", "", "ab"),
    ] {
        let mut story = Story::of(deployment_schema());
        story.apply("alice", &pod(&names(live)));
        let object = story.apply("bob", &pod(&names(applied)));
        assert_eq!(pod_spec(object), &names(expected), "{live} + {applied}");
    }
}

#[test]
fn live_items_that_share_a_key_give_way_to_the_applied_one() {
    let mut story = Story::of(deployment_schema());
    let env = |env: Value| pod(&json!({"containers": [{"name": "c", "env": env}]}));
    let twice = json!([{"name": "A", "value": "1"}, {"name": "B"}, {"name": "A", "value": "2"}]);
    story.live = Some(env(twice));
    let config = env(json!([{"name": "A", "value": "3"}]));
    let object = story.try_apply("alice", &config, true).unwrap();
    let expected = json!([{"name": "A", "value": "3"}, {"name": "B"}]);
    assert_eq!(pod_spec(object)["containers"][0]["env"], expected);
}

#[test]
fn a_missing_protocol_is_tcp_when_ports_are_matched() {
    let mut story = Story::of(deployment_schema());
    let ports = |ports: Value| pod(&json!({"containers": [{"name": "c", "ports": ports}]}));
    story.apply(
        "alice",
        &ports(json!([{"containerPort": 80, "protocol": "TCP"}])),
    );
    let config = ports(json!([{"containerPort": 80, "name": "web"},
        {"containerPort": 80, "protocol": "UDP"}]));
    let object = story.apply("alice", &config);
    let expected = json!([{"containerPort": 80, "name": "web"},
        {"containerPort": 80, "protocol": "UDP"}]);
    assert_eq!(pod_spec(object)["containers"][0]["ports"], expected);
}

#[test]
fn a_configuration_that_does_not_fit_is_refused_with_its_paths() {
    let containers = |list: Value| pod(&json!({"containers": list}));
    let twice = json!([{"name": "a"}, {"name": "a"}]);
    let mut finalizers = deployment(&json!({}));
    finalizers["metadata"]["finalizers"] = json!(["x", "x"]);
    for (config, why) in [
        (
            containers(twice),
            ".spec.template.spec.containers: duplicate entries for key [name=\"a\"]",
        ),
        (
            finalizers,
            ".metadata.finalizers: duplicate entries for key [=\"x\"]",
        ),
        (
            deployment(&json!({"bogus": 1})),
            ".spec.bogus: field not declared in schema",
        ),
        (
            pod(&json!({"tolerations": [{"bogus": 1}]})),
            ".spec.template.spec.tolerations[0].bogus: field not declared in schema",
        ),
        (
            deployment(&json!({"replicas": "3"})),
            ".spec.replicas: expected numeric (int or float), got \"3\"",
        ),
        (deployment(&json!([])), ".spec: expected map, got []"),
        (
            containers(json!([{"image": "x"}])),
            ".spec.template.spec.containers: element 0: an item of a list with keys omits all \
             key fields and they have no default",
        ),
        (
            deployment(&json!({"a": 1, "b": 1})),
            "errors:\n  .spec.a: field not declared in schema\n  .spec.b: field not declared in schema",
        ),
    ] {
        let mut story = Story::of(deployment_schema());
        let refused = story.try_apply("alice", &config, false).unwrap_err();
        let expected =
            format!("failed to create typed patch object (/d; /v1, Kind=Deployment): {why}");
        assert_eq!(refused.to_string(), expected);
        assert_eq!(ApiError::from(refused).code, 500);
    }
}

#[test]
fn managed_fields_and_foreign_versions_are_refused() {
    for entries in [json!([]), json!([{}])] {
        let mut config = config_map(&json!({}));
        config["metadata"]["managedFields"] = entries;
        let refused = Story::of(config_map_schema())
            .try_apply("alice", &config, false)
            .unwrap_err();
        assert_eq!(ApiError::from(refused.clone()).code, 400);
        assert_eq!(refused, Error::ManagedFields);
    }
    let mut config = config_map(&json!({}));
    config["apiVersion"] = json!("v2");
    let refused = Story::of(config_map_schema())
        .try_apply("alice", &config, false)
        .unwrap_err();
    assert_eq!(
        ApiError::from(refused).message,
        "Incorrect version specified in apply patch. Specified patch version: v2, expected: v1"
    );
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
        scope: Scope::Status,
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
fn broken_stored_entries_are_reported_and_not_overwritten() {
    let mut live = config_map(&json!({"a": "1"}));
    live["metadata"]["managedFields"] = json!([{"manager": "x", "operation": "Odd"}]);
    let config = config_map(&json!({"a": "1"}));
    let refused = apply(
        config_map_schema(),
        Some(&live),
        &config,
        &stamp("a", T1),
        true,
    );
    assert_eq!(refused.unwrap_err(), Error::Stored(BadEntry::Operation));
}

#[test]
fn what_a_custom_resource_leaves_open_merges_as_deduced() {
    let mut set = Schemas::default();
    let open = set.add(Node {
        ty: Type::Object,
        preserve_unknown: true,
        ..Node::default()
    });
    let text = set.add(Node {
        ty: Type::String,
        ..Node::default()
    });
    let tags = set.add(Node {
        ty: Type::Array,
        items: Some(text),
        list_type: ListType::Set,
        ..Node::default()
    });
    let root = set.add(Node {
        ty: Type::Object,
        properties: [("spec".into(), open), ("tags".into(), tags)].into(),
        ..Node::default()
    });
    let object = |spec: Value, tags: Value| json!({"apiVersion": "v1", "kind": "X", "metadata": {"name": "x"}, "spec": spec, "tags": tags});
    let first = object(json!({"a": {"b": 1}, "l": [1, 2]}), json!(["x"]));
    let live = apply(set.at(root), None, &first, &stamp("alice", T1), false).unwrap();
    let second = object(json!({"a": {"c": 1}}), json!(["y"]));
    let live = apply(
        set.at(root),
        Some(&live.object),
        &second,
        &stamp("bob", T1),
        false,
    )
    .unwrap();
    assert_eq!(
        live.object["spec"],
        json!({"a": {"b": 1, "c": 1}, "l": [1, 2]})
    );
    assert_eq!(live.object["tags"], json!(["x", "y"]));
    let list = object(json!({"l": [3]}), json!([]));
    let refused = apply(
        set.at(root),
        Some(&live.object),
        &list,
        &stamp("bob", T1),
        false,
    );
    assert_eq!(
        refused.unwrap_err().to_string(),
        "Apply failed with 1 conflict: conflict with \"alice\": .spec.l"
    );
}
