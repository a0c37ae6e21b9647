mod laws;

use serde_json::{Value, json};

use super::*;
use crate::schema::{ListType, Node, Schema, Schemas, Type, builtin};

pub(crate) fn schema(name: &str) -> Schema<'static> {
    builtin().named(name).unwrap()
}

pub(crate) fn deployment_schema() -> Schema<'static> {
    schema("io.k8s.api.apps.v1.Deployment")
}

fn config_map_schema() -> Schema<'static> {
    schema("io.k8s.api.core.v1.ConfigMap")
}

fn stamp(manager: &'static str, time: &'static str) -> Stamp<'static> {
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

fn owned(object: &Value, manager: &str) -> Value {
    let entries = object["metadata"]["managedFields"].as_array();
    let mut entries = entries.into_iter().flatten();
    let entry = entries.find(|entry| entry["manager"] == manager);
    entry.map_or(Value::Null, |entry| entry["fieldsV1"].clone())
}

/// What the defaults leave of a small deployment.
fn deployment() -> Value {
    json!({
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "web", "namespace": "d", "uid": "u", "generation": 1,
            "creationTimestamp": "2026-01-01T00:00:00Z", "labels": {"app": "web"}},
        "spec": {
            "progressDeadlineSeconds": 600, "replicas": 1, "revisionHistoryLimit": 10,
            "selector": {"matchLabels": {"app": "web"}},
            "strategy": {"type": "RollingUpdate",
                "rollingUpdate": {"maxSurge": "25%", "maxUnavailable": "25%"}},
            "template": {
                "metadata": {"labels": {"app": "web"}},
                "spec": {
                    "containers": [{
                        "name": "nginx", "image": "nginx", "imagePullPolicy": "Always",
                        "args": ["-v", "-v"],
                        "env": [{"name": "A", "value": "1"}],
                        "ports": [{"containerPort": 80, "protocol": "TCP"}],
                        "resources": {},
                    }],
                    "dnsPolicy": "ClusterFirst",
                    "securityContext": {},
                },
            },
        },
        "status": {"replicas": 0},
    })
}

#[test]
fn create_owns_a_deployment_as_a_real_server_records_it() {
    let mut new = deployment();
    let stamp = Stamp {
        api_version: "apps/v1",
        ..stamp("kubectl-create", "2026-01-01T00:00:00Z")
    };
    track_update(deployment_schema(), None, &mut new, &stamp);
    assert_eq!(
        new["metadata"]["managedFields"],
        json!([{
            "manager": "kubectl-create", "operation": "Update", "apiVersion": "apps/v1",
            "time": "2026-01-01T00:00:00Z", "fieldsType": "FieldsV1",
            "fieldsV1": {
                "f:metadata": {"f:labels": {".": {}, "f:app": {}}},
                "f:spec": {
                    "f:progressDeadlineSeconds": {}, "f:replicas": {},
                    "f:revisionHistoryLimit": {}, "f:selector": {},
                    "f:strategy": {
                        "f:rollingUpdate": {".": {}, "f:maxSurge": {}, "f:maxUnavailable": {}},
                        "f:type": {},
                    },
                    "f:template": {
                        "f:metadata": {"f:labels": {".": {}, "f:app": {}}},
                        "f:spec": {
                            "f:containers": {"k:{\"name\":\"nginx\"}": {
                                ".": {}, "f:name": {}, "f:image": {}, "f:imagePullPolicy": {},
                                "f:args": {}, "f:resources": {},
                                "f:env": {".": {}, "k:{\"name\":\"A\"}":
                                    {".": {}, "f:name": {}, "f:value": {}}},
                                "f:ports": {".": {}, "k:{\"containerPort\":80,\"protocol\":\"TCP\"}":
                                    {".": {}, "f:containerPort": {}, "f:protocol": {}}},
                            }},
                            "f:dnsPolicy": {}, "f:securityContext": {},
                        },
                    },
                },
            },
        }])
    );
}

#[test]
fn a_claim_names_parts_and_not_the_structs_around_them() {
    let claim = FieldSet::of_value(
        deployment_schema(),
        &json!({
            "metadata": {"labels": {"a": "1"}, "finalizers": ["x/y", "a/b"], "generateName": "g-"},
            "spec": {
                "replicas": 2,
                "selector": {"matchLabels": {"a": "1"}},
                "strategy": {},
                "paused": null,
                "template": {"spec": {"containers": [{"name": "c", "args": [],
                    "ports": [{"containerPort": 80}], "volumeMounts": []}]}},
            },
        }),
    );
    assert_eq!(
        claim.into_fields_v1(),
        json!({
            "f:metadata": {"f:labels": {"f:a": {}}, "f:generateName": {},
                "f:finalizers": {"v:\"a/b\"": {}, "v:\"x/y\"": {}}},
            "f:spec": {
                "f:replicas": {}, "f:selector": {}, "f:strategy": {}, "f:paused": {},
                "f:template": {"f:spec": {"f:containers": {"k:{\"name\":\"c\"}": {
                    ".": {}, "f:name": {}, "f:args": {},
                    "f:ports": {"k:{\"containerPort\":80,\"protocol\":\"TCP\"}":
                        {".": {}, "f:containerPort": {}}},
                }}}},
            },
        })
    );
}

#[test]
fn where_no_schema_speaks_maps_have_parts_and_lists_are_one() {
    let mut set = Schemas::default();
    let anything = set.add(Node {
        ty: Type::Object,
        preserve_unknown: true,
        ..Node::default()
    });
    let claim = FieldSet::of_value(set.at(anything), &json!({"a": {"b": {"c": 1}, "l": [1]}}));
    assert_eq!(
        claim.into_fields_v1(),
        json!({"f:a": {".": {}, "f:b": {".": {}, "f:c": {}}, "f:l": {}}})
    );
}

#[test]
fn a_missing_key_takes_the_schemas_default_or_stays_out() {
    let mut set = Schemas::default();
    let text = |default| Node {
        ty: Type::String,
        default,
        ..Node::default()
    };
    let plain = set.add(text(None));
    let defaulted = set.add(text(Some(json!("x"))));
    let item = set.add(Node {
        ty: Type::Object,
        properties: [("a", plain), ("b", plain), ("d", defaulted)]
            .map(|(name, id)| (name.into(), id))
            .into(),
        ..Node::default()
    });
    let list = |keys: &[&str]| Node {
        ty: Type::Array,
        items: Some(item),
        list_type: ListType::Map(keys.iter().map(|&k| k.into()).collect()),
        ..Node::default()
    };
    let cases = [
        (
            list(&["d", "a"]),
            json!({"a": "1"}),
            "k:{\"a\":\"1\",\"d\":\"x\"}",
        ),
        (list(&["a", "b"]), json!({"a": "1"}), "k:{\"a\":\"1\"}"),
        (list(&["b"]), json!({"a": "1"}), "i:0"),
        (
            list(&["a"]),
            json!({"a": "q\"\\\n"}),
            r#"k:{"a":"q\"\\\n"}"#,
        ),
    ];
    for (node, item, expected) in cases {
        let id = set.add(node);
        let claim = FieldSet::of_value(set.at(id), &json!([item]));
        let elements: Vec<_> = claim
            .children()
            .map(|(e, _)| e.as_str().to_owned())
            .collect();
        assert_eq!(elements, [expected]);
    }
}

#[test]
fn malformed_fields_are_refused() {
    for bad in [
        json!([]),
        json!({"f:a": 1}),
        json!({"nonsense": {}}),
        json!({"x:a": {}}),
        json!({"k:{": {}}),
        json!({"k:[1]": {}}),
        json!({"v:": {}}),
        json!({"i:x": {}}),
        json!({"f:a": {"f:b": null}}),
        json!({".": 3}),
    ] {
        assert!(FieldSet::from_fields_v1(&bad).is_err(), "{bad}");
    }
}

#[test]
fn elements_become_canonical_when_read() {
    let read = FieldSet::from_fields_v1(&json!({
        "k:{ \"b\": 1, \"a\": \"x\" }": {".": {}}, "v: \"y\"": {}, "i:007": {}, ".": {},
    }));
    let canonical = json!({"k:{\"a\":\"x\",\"b\":1}": {}, "v:\"y\"": {}, "i:7": {}});
    assert_eq!(read.unwrap().into_fields_v1(), canonical);
}

#[test]
fn paths_read_as_people_write_them() {
    let set = FieldSet::from_fields_v1(&json!({
        "f:spec": {"f:containers": {"k:{\"name\":\"x\"}": {".": {}, "f:image": {}},
            "k:{\"port\":80,\"protocol\":\"TCP\"}": {}}},
        "f:finalizers": {"v:\"a\"": {}, "v:3": {}},
        "f:list": {"i:0": {}},
        "f:zz": {},
    }));
    let set = set.unwrap();
    let mut paths = Vec::new();
    set.for_each(&mut |path| paths.push(path.iter().map(ToString::to_string).collect::<String>()));
    assert_eq!(
        paths,
        [
            ".zz",
            ".finalizers[=\"a\"]",
            ".finalizers[=3]",
            ".list[0]",
            ".spec.containers[name=\"x\"]",
            ".spec.containers[port=80,protocol=\"TCP\"]",
            ".spec.containers[name=\"x\"].image",
        ]
    );
}

#[test]
fn comparison_names_what_was_added_modified_and_removed() {
    let old = json!({"metadata": {"labels": {"a": "1"}, "finalizers": ["f/a", "f/b"]},
        "spec": {"replicas": 1, "paused": true, "template": {"spec": {"containers": [
            {"name": "keep", "image": "1"}, {"name": "gone", "image": "1"}]}}}});
    let new = json!({"metadata": {"labels": {"a": "2", "b": "1"}, "annotations": {"x": "y"},
            "finalizers": ["f/c", "f/a"]},
        "spec": {"replicas": 1, "template": {"spec": {"containers": [
            {"name": "new"}, {"name": "keep", "image": "2", "args": ["a"]}]}}}});
    let Comparison {
        added,
        modified,
        removed,
    } = compare(deployment_schema(), Some(&old), &new);
    let containers = |below: Value| json!({"f:template": {"f:spec": {"f:containers": below}}});
    assert_eq!(
        added.into_fields_v1(),
        json!({"f:metadata": {"f:labels": {"f:b": {}}, "f:annotations": {".": {}, "f:x": {}},
                "f:finalizers": {"v:\"f/c\"": {}}},
            "f:spec": containers(json!({"k:{\"name\":\"new\"}": {".": {}, "f:name": {}},
                "k:{\"name\":\"keep\"}": {"f:args": {}}}))})
    );
    assert_eq!(
        modified.into_fields_v1(),
        json!({"f:metadata": {"f:labels": {"f:a": {}}},
            "f:spec": containers(json!({"k:{\"name\":\"keep\"}": {"f:image": {}}}))})
    );
    let mut spec = containers(json!({"k:{\"name\":\"gone\"}":
        {".": {}, "f:image": {}, "f:name": {}}}));
    spec["f:paused"] = json!({});
    assert_eq!(
        removed.into_fields_v1(),
        json!({"f:metadata": {"f:finalizers": {"v:\"f/b\"": {}}}, "f:spec": spec})
    );
}

#[test]
fn items_that_share_a_key_compare_as_one() {
    let env = |values: &[&str]| {
        let env: Vec<_> = values
            .iter()
            .map(|v| json!({"name": "A", "value": v}))
            .collect();
        json!({"spec": {"template": {"spec": {"containers": [{"name": "c", "env": env}]}}}})
    };
    let schema = deployment_schema();
    let same = compare(schema, Some(&env(&["1", "2"])), &env(&["1", "2"]));
    assert!(same.is_empty());
    let changed = compare(schema, Some(&env(&["1", "2"])), &env(&["1", "3"]));
    let below = json!({"k:{\"name\":\"A\"}": {}});
    assert_eq!(
        changed.modified.into_fields_v1(),
        json!({"f:spec": {"f:template": {"f:spec": {"f:containers":
            {"k:{\"name\":\"c\"}": {"f:env": below}}}}}})
    );
    assert!(changed.added.is_empty() && changed.removed.is_empty());
}

#[test]
fn a_deduced_value_that_changes_kind_is_modified_with_its_parts() {
    let mut set = Schemas::default();
    let id = set.add(Node::default());
    let (one, many) = (json!({"a": 1}), json!({"a": {"b": 1}}));
    let grown = compare(set.at(id), Some(&one), &many);
    assert_eq!(grown.modified.into_fields_v1(), json!({"f:a": {}}));
    assert_eq!(grown.added.into_fields_v1(), json!({"f:a": {"f:b": {}}}));
    let shrunk = compare(set.at(id), Some(&many), &one);
    assert_eq!(shrunk.modified.into_fields_v1(), json!({"f:a": {}}));
    assert_eq!(shrunk.removed.into_fields_v1(), json!({"f:a": {"f:b": {}}}));
}

#[test]
fn a_changed_field_moves_to_who_changed_it_and_the_rest_stays() {
    let schema = config_map_schema();
    let mut live = config_map(&json!({"a": "1", "b": "1", "c": "1"}));
    track_update(
        schema,
        None,
        &mut live,
        &stamp("alice", "2026-01-01T00:00:00Z"),
    );
    let mut new = live.clone();
    new["data"] = json!({"a": "1", "b": "2", "d": "1"});
    track_update(
        schema,
        Some(&live),
        &mut new,
        &stamp("bob", "2026-01-02T00:00:00Z"),
    );
    assert_eq!(
        owned(&new, "alice"),
        json!({"f:data": {".": {}, "f:a": {}}})
    );
    assert_eq!(
        owned(&new, "bob"),
        json!({"f:data": {"f:b": {}, "f:d": {}}})
    );
    let entries = new["metadata"]["managedFields"].as_array().unwrap();
    let times: Vec<_> = entries
        .iter()
        .map(|e| e["time"].as_str().unwrap())
        .collect();
    assert_eq!(times, ["2026-01-01T00:00:00Z", "2026-01-02T00:00:00Z"]);
}

#[test]
fn a_manager_that_owns_nothing_is_forgotten() {
    let schema = config_map_schema();
    let mut live = config_map(&json!({"a": "1"}));
    track_update(
        schema,
        None,
        &mut live,
        &stamp("alice", "2026-01-01T00:00:00Z"),
    );
    let mut new = config_map(&json!({"b": "1"}));
    new["metadata"]["labels"] = json!({"x": "y"});
    new["data"] = Value::Null;
    new.as_object_mut().unwrap().remove("data");
    track_update(
        schema,
        Some(&live),
        &mut new,
        &stamp("bob", "2026-01-02T00:00:00Z"),
    );
    assert_eq!(owned(&new, "alice"), Value::Null);
    assert_eq!(
        owned(&new, "bob"),
        json!({"f:metadata": {"f:labels": {".": {}, "f:x": {}}}})
    );
}

#[test]
fn a_write_that_changes_nothing_keeps_every_byte() {
    let schema = config_map_schema();
    let mut live = config_map(&json!({"a": "1"}));
    track_update(
        schema,
        None,
        &mut live,
        &stamp("alice", "2026-01-01T00:00:00Z"),
    );
    for with_entries in [true, false] {
        let mut new = live.clone();
        if !with_entries {
            new["metadata"]
                .as_object_mut()
                .unwrap()
                .remove("managedFields");
        }
        track_update(
            schema,
            Some(&live),
            &mut new,
            &stamp("bob", "2026-01-02T00:00:00Z"),
        );
        assert_eq!(new, live);
    }
}

#[test]
fn the_main_resource_never_owns_status_and_the_status_nothing_else() {
    let schema = deployment_schema();
    let mut live = deployment();
    let main = Stamp {
        api_version: "apps/v1",
        ..stamp("alice", "2026-01-01T00:00:00Z")
    };
    track_update(schema, None, &mut live, &main);
    assert!(owned(&live, "alice").get("f:status").is_none());
    let mut new = live.clone();
    new["status"] = json!({"replicas": 3, "conditions": [{"type": "Available", "status": "True"}]});
    new["spec"]["replicas"] = json!(9);
    let status = Stamp {
        subresource: Some("status"),
        scope: Scope::Status,
        manager: "controller",
        ..main
    };
    track_update(schema, Some(&live), &mut new, &status);
    assert_eq!(
        owned(&new, "controller"),
        json!({"f:status": {"f:replicas": {}, "f:conditions": {".": {},
            "k:{\"type\":\"Available\"}": {".": {}, "f:type": {}, "f:status": {}}}}})
    );
    let entry = &new["metadata"]["managedFields"][1];
    assert_eq!(entry["subresource"], "status");
    assert_eq!(owned(&new, "alice"), owned(&live, "alice"));
}

#[test]
fn a_custom_object_starts_from_nothing() {
    let mut set = Schemas::default();
    let int = set.add(Node {
        ty: Type::Integer,
        ..Node::default()
    });
    let spec = set.add(Node {
        ty: Type::Object,
        properties: [("size".into(), int)].into(),
        required: vec!["size".into()],
        ..Node::default()
    });
    let root = set.add(Node {
        ty: Type::Object,
        properties: [("spec".into(), spec)].into(),
        required: vec!["spec".into()],
        ..Node::default()
    });
    let mut new = json!({"apiVersion": "v1", "kind": "X", "metadata": {"name": "x"},
        "spec": {"size": 1}});
    track_update(
        set.at(root),
        None,
        &mut new,
        &stamp("alice", "2026-01-01T00:00:00Z"),
    );
    assert_eq!(
        owned(&new, "alice"),
        json!({"f:spec": {".": {}, "f:size": {}}})
    );
}

#[test]
fn what_a_request_says_about_managed_fields() {
    let schema = config_map_schema();
    let mut live = config_map(&json!({"a": "1"}));
    track_update(
        schema,
        None,
        &mut live,
        &stamp("alice", "2026-01-01T00:00:00Z"),
    );
    let stored = live["metadata"]["managedFields"].clone();
    let by_carol = json!([{"manager": "carol", "operation": "Apply", "apiVersion": "v1",
        "fieldsType": "FieldsV1", "fieldsV1": {"f:data": {"f:a": {}}}}]);
    let malformed = json!([{"manager": "x", "operation": "Steal", "apiVersion": "v1"}]);
    let cases = [
        ("empty list resets", json!([]), Value::Null, None),
        ("empty entry resets", json!([{}]), Value::Null, None),
        ("null keeps", Value::Null, stored.clone(), None),
        ("malformed keeps", malformed, stored.clone(), None),
        ("valid replaces", by_carol.clone(), by_carol, None),
        ("a subresource has no say", json!([]), stored, Some("scale")),
    ];
    for (what, requested, expected, subresource) in cases {
        let mut new = live.clone();
        new["metadata"]["managedFields"] = requested;
        let stamp = Stamp {
            subresource,
            ..stamp("bob", "2026-01-02T00:00:00Z")
        };
        track_update(schema, Some(&live), &mut new, &stamp);
        assert_eq!(new["metadata"]["managedFields"], expected, "{what}");
    }
}

#[test]
fn after_a_reset_nothing_is_tracked() {
    let schema = config_map_schema();
    let live = config_map(&json!({"a": "1"}));
    let mut new = config_map(&json!({"a": "2"}));
    track_update(
        schema,
        Some(&live),
        &mut new,
        &stamp("bob", "2026-01-02T00:00:00Z"),
    );
    assert_eq!(new, config_map(&json!({"a": "2"})));
}

#[test]
fn apply_entries_come_first_then_by_time_and_name() {
    let entry = |manager: &str, operation: &str, time: &str| {
        json!({"manager": manager, "operation": operation, "apiVersion": "v1", "time": time,
            "fieldsType": "FieldsV1", "fieldsV1": {"f:x": {}}})
    };
    let sorted = json!([
        entry("z", "Apply", "2026-01-01T00:00:00Z"),
        entry("a", "Apply", "2026-01-02T00:00:00Z"),
        entry("a", "Update", "2026-01-01T00:00:00Z"),
        entry("b", "Update", "2026-01-01T00:00:00Z"),
    ]);
    let mut shuffled = sorted.as_array().unwrap().clone();
    shuffled.reverse();
    shuffled.swap(0, 2);
    let managers = Managers::decode(&Value::Array(shuffled)).unwrap();
    assert_eq!(managers.encode(), sorted);
}

#[test]
fn broken_entries_are_refused() {
    let good = json!({"manager": "m", "operation": "Update", "apiVersion": "v1",
        "fieldsType": "FieldsV1", "fieldsV1": {"f:a": {}}});
    assert!(Managers::decode(&json!([good])).is_ok());
    for (field, value) in [
        ("operation", json!("Delete")),
        ("apiVersion", json!("")),
        ("fieldsType", json!("FieldsV2")),
        ("fieldsV1", json!({"f:a": []})),
    ] {
        let mut bad = good.clone();
        bad[field] = value;
        assert!(Managers::decode(&json!([bad])).is_err(), "{field}");
    }
    assert!(Managers::decode(&json!({})).is_err());
    assert!(Managers::decode(&json!(["x"])).is_err());
}

#[test]
fn the_oldest_updaters_are_joined_when_there_are_too_many() {
    let schema = config_map_schema();
    let mut live = config_map(&json!({}));
    let mut data = serde_json::Map::new();
    for n in 0..14 {
        data.insert(format!("k{n:02}"), json!("v"));
        let mut new = live.clone();
        new["data"] = Value::Object(data.clone());
        let (manager, time) = (
            format!("m{n:02}"),
            format!("2026-01-{:02}T00:00:00Z", n + 1),
        );
        let stamp = Stamp {
            manager: &manager,
            time: &time,
            ..stamp("", "")
        };
        let before = (n > 0).then_some(&live);
        track_update(schema, before, &mut new, &stamp);
        live = new;
    }
    let entries = live["metadata"]["managedFields"].as_array().unwrap();
    assert_eq!(entries.len(), 10);
    assert_eq!(entries[0]["manager"], "ancient-changes");
    assert_eq!(entries[0]["time"], "2026-01-05T00:00:00Z");
    assert_eq!(
        owned(&live, "ancient-changes"),
        json!({"f:data": {".": {}, "f:k00": {}, "f:k01": {}, "f:k02": {}, "f:k03": {}, "f:k04": {}}})
    );
    assert_eq!(owned(&live, "m05"), json!({"f:data": {"f:k05": {}}}));
}
