//! The stored form of minimal objects, recorded from kube-apiserver.

use std::collections::HashSet;

use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;
use crate::{
    kinds::{
        check::validate_object,
        pod,
        testing::{OtherObjects, created, defaulted, moment, texts},
    },
    schema::builtin,
    status::Problems,
};

struct Case {
    kind: Option<&'static BuiltinKind>,
    path: String,
    sent: Value,
    stored: Value,
}

/// The committed cases; those of other groups have no kind here.
fn cases() -> Vec<Case> {
    let text = include_str!("../../../tests/data/defaults.json");
    let rows: Vec<Value> = serde_json::from_str(text).unwrap();
    let case = |row: Value| {
        let path = row["path"].as_str().unwrap().to_owned();
        let plural = path.rsplit('/').next().unwrap();
        let group = path
            .strip_prefix("/apis/")
            .map_or("", |rest| rest.split('/').next().unwrap());
        let kind = core_kinds()
            .iter()
            .find(|k| k.plural == plural && k.group == group);
        Case {
            kind,
            sent: row["sent"].clone(),
            stored: row["stored"].clone(),
            path,
        }
    };
    rows.into_iter().map(case).collect()
}

/// Masks what the generic machine adds around the rules, and what is random or allocated.
fn masked(mut object: Value) -> Value {
    let Some(map) = object.as_object_mut() else {
        return object;
    };
    map.remove("apiVersion");
    if let Some(metadata) = map.get_mut("metadata").and_then(Value::as_object_mut) {
        metadata.remove("namespace");
        metadata.remove("generation");
    }
    // The time of the write.
    if let Some(status) = map.get_mut("status").and_then(Value::as_object_mut) {
        status.remove("lastPhaseTransitionTime");
    }
    // The allocated address.
    if let Some(spec) = map.get_mut("spec").and_then(Value::as_object_mut) {
        spec.remove("clusterIP");
        spec.remove("clusterIPs");
    }
    // The random suffix of the token volume's name.
    let text = object.to_string();
    let marker = "kube-api-access-";
    match text.find(marker) {
        Some(at) => {
            let name = &text[at..at + marker.len() + 5];
            serde_json::from_str(&text.replace(name, marker)).unwrap()
        }
        None => object,
    }
}

fn others() -> OtherObjects {
    let account = json!({"metadata": {"name": "default", "namespace": "default"}});
    OtherObjects {
        objects: vec![("serviceaccounts", account)],
        ..OtherObjects::default()
    }
}

fn stored_here(kind: &BuiltinKind, sent: &Value) -> Value {
    let mut object = sent.clone();
    if kind.plural == "pods" {
        object["metadata"]["namespace"] = json!("default");
    }
    let mut object = created(&kind.rules, &object);
    if kind.plural == "pods" {
        pod::use_account(&mut object, &others(), 7).unwrap();
        pod::use_priority(&mut object, &others()).unwrap();
        pod::tolerate(&mut object);
    }
    if let Some(admit) = kind.rules.admit {
        admit(&mut object, None, &others()).unwrap();
    }
    object
}

#[test]
fn minimal_objects_are_stored_as_the_real_server_stores_them() {
    let mut seen = 0;
    for case in cases() {
        let Some(kind) = case.kind else { continue };
        let ours = masked(stored_here(kind, &case.sent));
        assert_eq!(ours, masked(case.stored), "{}", case.path);
        seen += 1;
    }
    assert_eq!(seen, 12);
}

/// Whether everything that was sent is still there; lists may have grown at their end.
fn survives(said: &Value, stored: &Value) -> bool {
    match (said, stored) {
        (Value::Object(said), Value::Object(stored)) => said
            .iter()
            .all(|(key, value)| stored.get(key).is_some_and(|now| survives(value, now))),
        (Value::Array(said), Value::Array(stored)) => {
            said.len() <= stored.len() && said.iter().zip(stored).all(|(a, b)| survives(a, b))
        }
        _ => said == stored,
    }
}

#[test]
fn what_the_client_said_survives() {
    for case in cases() {
        // Its stringData becomes data.
        let Some(kind) = case.kind.filter(|kind| kind.plural != "secrets") else {
            continue;
        };
        let stored = stored_here(kind, &case.sent);
        assert!(survives(&case.sent, &stored), "{}: {stored}", case.path);
    }
}

proptest! {
    /// Defaults only fill gaps, and are idempotent.
    #[test]
    fn defaults_of_a_pod_fill_gaps_only(sent in any_pod()) {
        let pods = core_kinds().iter().find(|kind| kind.plural == "pods").unwrap();
        let once = defaulted(&pods.rules, &sent);
        prop_assert!(survives(&sent, &once), "{once}");
        prop_assert_eq!(defaulted(&pods.rules, &once), once);
    }
}

/// Pods made of parts that have defaults, each present or absent.
fn any_pod() -> impl Strategy<Value = Value> {
    let part = |key: &'static str, value: Value| {
        any::<bool>().prop_map(move |there| there.then(|| (key.to_owned(), value.clone())))
    };
    let resources = json!({"limits": {"cpu": "1"}, "requests": {"memory": "1Gi"}});
    let container = (
        part("image", json!("i:1")),
        part(
            "ports",
            json!([{"containerPort": 80}, {"containerPort": 81, "protocol": "UDP"}]),
        ),
        part(
            "livenessProbe",
            json!({"httpGet": {"port": 80, "path": "/live"}, "periodSeconds": 3}),
        ),
        part("resources", resources),
        part(
            "env",
            json!([{"name": "N", "valueFrom": {"fieldRef": {"fieldPath": "metadata.uid"}}}]),
        ),
        part("imagePullPolicy", json!("Never")),
        part("lifecycle", json!({"preStop": {"httpGet": {"port": 1}}})),
    )
        .prop_map(|(a, b, c, d, e, f, g)| object([a, b, c, d, e, f, g]));
    let spec = (
        proptest::collection::vec(container, 0..3),
        part("restartPolicy", json!("Never")),
        part("hostNetwork", json!(true)),
        part("serviceAccountName", json!("robot")),
        part(
            "volumes",
            json!([{"name": "v"}, {"name": "w", "secret": {"secretName": "s", "defaultMode": 256}}]),
        ),
        part("terminationGracePeriodSeconds", json!(0)),
        part("enableServiceLinks", json!(false)),
    );
    spec.prop_map(|(containers, a, b, c, d, e, f)| {
        let mut spec = object([a, b, c, d, e, f]);
        spec["containers"] = json!(containers);
        json!({"metadata": {"name": "p"}, "spec": spec})
    })
}

fn object<const N: usize>(parts: [Option<(String, Value)>; N]) -> Value {
    Value::Object(parts.into_iter().flatten().collect())
}

#[test]
fn defaulting_twice_changes_nothing() {
    for case in cases() {
        let Some(kind) = case.kind else { continue };
        let once = stored_here(kind, &case.sent);
        assert_eq!(defaulted(&kind.rules, &once), once, "{}", case.path);
    }
}

fn schema_name(kind: &BuiltinKind, object: &Value) -> String {
    let group = match kind.group {
        "" => "core",
        group => group.split('.').next().unwrap(),
    };
    format!("io.k8s.api.{group}.v1.{}", object["kind"].as_str().unwrap())
}

#[test]
fn what_the_real_server_stores_is_valid_here() {
    for case in cases() {
        let Some(kind) = case.kind else { continue };
        let schema = builtin().named(&schema_name(kind, &case.stored)).unwrap();
        let namespaced = case.path.contains("/namespaces/");
        let mut problems = Problems::new();
        let stored = case.stored;
        validate_object(&kind.rules, schema, namespaced, &stored, &mut problems);
        assert_eq!(texts(&problems), [""; 0], "{}", case.path);
        let mut unchanged = Problems::new();
        (kind.rules.validate_update)(&stored, &stored, &mut unchanged);
        assert_eq!(texts(&unchanged), [""; 0], "{}", case.path);
    }
}

#[test]
fn what_the_real_server_stores_passes_the_walkers_for_every_kind() {
    for case in cases() {
        let version = case.stored["apiVersion"].as_str().unwrap();
        let (group, version) = version.split_once('/').unwrap_or(("core", version));
        let group = match group {
            "rbac.authorization.k8s.io" => "rbac",
            "apiextensions.k8s.io" => continue,
            group => group.split('.').next().unwrap(),
        };
        let kind = case.stored["kind"].as_str().unwrap();
        let schema = builtin()
            .named(&format!("io.k8s.api.{group}.{version}.{kind}"))
            .unwrap();
        let mut problems = Problems::new();
        crate::kinds::enums::check_enums(&case.stored, schema, &mut problems);
        crate::kinds::required::check_required(&case.stored, schema, &mut problems);
        assert_eq!(texts(&problems), [""; 0], "{}", case.path);
    }
}

#[test]
fn a_clients_status_is_dropped_on_create() {
    let sent =
        json!({"metadata": {"name": "x"}, "status": {"phase": "Mine", "replicas": 7, "x": 1}});
    for kind in core_kinds().iter().filter(|kind| kind.rules.traits.status) {
        // Kubelets register their node together with its status.
        if kind.plural == "nodes" {
            continue;
        }
        let mut object = defaulted(&kind.rules, &sent);
        (kind.rules.prepare_create)(&mut object, &moment());
        let status = &object["status"];
        assert!(
            status.get("x").is_none() && status["phase"] != "Mine",
            "{}: {status}",
            kind.plural
        );
    }
}

#[test]
fn rules_survive_objects_of_no_shape() {
    for kind in core_kinds() {
        for odd in [
            json!({}),
            json!(null),
            json!([]),
            json!({"spec": [], "metadata": 1}),
            json!({"spec": {"ports": 1, "containers": {}}}),
        ] {
            let mut object = odd.clone();
            (kind.rules.default)(&mut object);
            (kind.rules.prepare_create)(&mut object, &moment());
            (kind.rules.prepare_update)(&mut object, &odd);
            let mut problems = Problems::new();
            (kind.rules.validate)(&object, &mut problems);
            (kind.rules.validate_update)(&object, &odd, &mut problems);
            (kind.rules.warnings)(&object);
        }
    }
}

#[test]
fn rows_are_unique_and_keep_the_rest_semantics_of_their_kind() {
    let rows: HashSet<_> = core_kinds().iter().map(|k| (k.group, k.plural)).collect();
    assert_eq!(rows.len(), core_kinds().len());
    let with = |has: fn(&Traits) -> bool| -> Vec<&str> {
        core_kinds()
            .iter()
            .filter(|k| has(&k.rules.traits))
            .map(|k| k.plural)
            .collect()
    };
    assert_eq!(
        with(|t| t.generation),
        [
            "pods",
            "podtemplates",
            "replicationcontrollers",
            "endpointslices"
        ]
    );
    assert_eq!(
        with(|t| t.create_on_update),
        [
            "endpoints",
            "events",
            "limitranges",
            "services",
            "leases",
            "events"
        ]
    );
    assert_eq!(with(|t| !t.unconditional_update), ["leases"]);
    assert_eq!(
        with(|t| t.delete_returns_object),
        [
            "namespaces",
            "persistentvolumeclaims",
            "persistentvolumes",
            "pods",
            "podtemplates",
            "resourcequotas",
            "serviceaccounts",
            "services",
        ]
    );
    assert_eq!(with(|t| t.ttl.is_some()), ["events", "events"]);
    assert_eq!(with(|t| t.orphan_by_default), ["replicationcontrollers"]);
}
