//! Lists: keyed, sets and atomic ones, and lists without a schema.

use super::*;

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
    // Live, applied, result.
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

#[test]
fn a_dropped_entry_goes_whole_even_if_others_changed_parts_of_it() {
    let mut set = Schemas::default();
    let root = set.add(Node::default());
    let object = |spec: Value| json!({"apiVersion": "v1", "kind": "X", "spec": spec});
    let first = object(json!({"a": {"b": 1, "c": 1}, "d": 1}));
    let mut live = apply(set.at(root), None, &first, &stamp("alice", T1), false)
        .unwrap()
        .object;
    let before = live.clone();
    live["spec"]["a"]["c"] = json!(2);
    track_update(set.at(root), Some(&before), &mut live, &stamp("bob", T1));
    assert_eq!(owned(&live, "bob")["f:spec"]["f:a"], json!({"f:c": {}}));
    let second = object(json!({"d": 1}));
    let applied = apply(
        set.at(root),
        Some(&live),
        &second,
        &stamp("alice", T1),
        false,
    );
    assert_eq!(applied.unwrap().object["spec"], json!({"d": 1}));
}
