mod comparing;
mod entries;
mod laws;
mod real;
mod sets;

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
        scope: EndpointScope::Main { has_status: true },
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

/// A small deployment after defaulting.
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
        scope: EndpointScope::Status,
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
fn a_built_in_object_always_has_its_status_and_a_custom_one_does_not() {
    let status = Stamp {
        api_version: "apps/v1",
        subresource: Some("status"),
        scope: EndpointScope::Status,
        ..stamp("controller", "2026-01-02T00:00:00Z")
    };
    let mut custom = Schemas::default();
    let custom_id = custom.import(deployment_schema());
    for (schema, expected) in [
        (deployment_schema(), json!({"f:status": {"f:replicas": {}}})),
        (
            custom.at(custom_id),
            json!({"f:status": {".": {}, "f:replicas": {}}}),
        ),
    ] {
        let mut live = deployment();
        live.as_object_mut().unwrap().remove("status");
        track_update(
            schema,
            None,
            &mut live,
            &stamp("alice", "2026-01-01T00:00:00Z"),
        );
        let mut new = live.clone();
        new["status"] = json!({"replicas": 1});
        track_update(schema, Some(&live), &mut new, &status);
        assert_eq!(owned(&new, "controller"), expected);
    }
}

#[test]
fn times_alone_are_no_change() {
    let mut live = config_map(&json!({"a": "1"}));
    let entry = |manager: &str, time: &str| {
        json!({"manager": manager, "operation": "Apply", "apiVersion": "v1", "time": time,
            "fieldsType": "FieldsV1", "fieldsV1": {"f:data": {"f:a": {}}}})
    };
    live["metadata"]["managedFields"] = json!([entry("a", "1"), entry("b", "2")]);
    let mut new = live.clone();
    new["metadata"]["managedFields"] = json!([entry("a", "2"), entry("b", "2")]);
    let mut kept = new.clone();
    keep_times(&live, &mut kept);
    assert_eq!(kept, live);
    for (path, value) in [
        ("/data/a", json!("2")),
        ("/metadata/name", json!("d")),
        ("/metadata/managedFields/0/manager", json!("c")),
        // A time that moves its entry.
        (
            "/metadata/managedFields",
            json!([entry("b", "2"), entry("a", "3")]),
        ),
    ] {
        let mut changed = new.clone();
        *changed.pointer_mut(path).unwrap() = value;
        let mut kept = changed.clone();
        keep_times(&live, &mut kept);
        assert_eq!(kept, changed, "{path}");
    }
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
