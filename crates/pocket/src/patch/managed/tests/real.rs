//! What kube-apiserver records on create, kind by kind: which structs have a dot and which do not.

use super::*;

fn created(kind: &str, object: &Value) -> Value {
    let mut object = object.clone();
    object["metadata"] = json!({"name": "x", "uid": "u"});
    track_update(
        schema(kind),
        None,
        &mut object,
        &stamp("m", "2026-01-01T00:00:00Z"),
    );
    owned(&object, "m")
}

#[test]
fn a_config_map_owns_its_data() {
    let fields = created(
        "io.k8s.api.core.v1.ConfigMap",
        &json!({"data": {"a": "1"}, "immutable": true}),
    );
    let expected = json!({"f:data": {".": {}, "f:a": {}}, "f:immutable": {}});
    assert_eq!(fields, expected);
}

#[test]
fn a_service_owns_its_ports_by_port_and_protocol() {
    let fields = created(
        "io.k8s.api.core.v1.Service",
        &json!({"spec": {"selector": {"a": "b"}, "type": "ClusterIP",
            "ports": [{"port": 80, "protocol": "TCP", "targetPort": 8080}]}}),
    );
    let ports = json!({".": {}, "k:{\"port\":80,\"protocol\":\"TCP\"}":
        {".": {}, "f:port": {}, "f:protocol": {}, "f:targetPort": {}}});
    let expected = json!({"f:spec": {"f:selector": {}, "f:type": {}, "f:ports": ports}});
    assert_eq!(fields, expected);
}

#[test]
fn a_claims_resources_are_always_there_and_a_pods_are_not() {
    let requests = json!({"requests": {"storage": "1Gi"}});
    let fields = created(
        "io.k8s.api.core.v1.PersistentVolumeClaim",
        &json!({"spec": {"accessModes": ["ReadWriteOnce"], "resources": requests}}),
    );
    let resources = json!({"f:requests": {".": {}, "f:storage": {}}});
    assert_eq!(
        fields,
        json!({"f:spec": {"f:accessModes": {}, "f:resources": resources}})
    );
    let fields = created(
        "io.k8s.api.core.v1.Pod",
        &json!({"spec": {"resources": requests}}),
    );
    let resources = json!({".": {}, "f:requests": {".": {}, "f:storage": {}}});
    assert_eq!(fields, json!({"f:spec": {"f:resources": resources}}));
}

#[test]
fn an_event_owns_what_its_source_says() {
    let fields = created(
        "io.k8s.api.core.v1.Event",
        &json!({"involvedObject": {"kind": "Pod"}, "reason": "r", "source": {"component": "c"}}),
    );
    let expected = json!({"f:involvedObject": {}, "f:reason": {}, "f:source": {"f:component": {}}});
    assert_eq!(fields, expected);
}

#[test]
fn a_cron_job_has_no_dots_down_to_its_containers() {
    let fields = created(
        "io.k8s.api.batch.v1.CronJob",
        &json!({"spec": {"schedule": "* * * * *", "jobTemplate": {"spec": {"template": {"spec":
            {"containers": [{"name": "c"}]}}}}}}),
    );
    let containers = json!({"k:{\"name\":\"c\"}": {".": {}, "f:name": {}}});
    assert_eq!(
        fields,
        json!({"f:spec": {"f:schedule": {}, "f:jobTemplate": {"f:spec": {"f:template":
            {"f:spec": {"f:containers": containers}}}}}})
    );
}
