use std::sync::Arc;

use k8s_openapi::api::{core::v1::Service, discovery::v1::EndpointSlice};
use neap_kit::key::Key;
use serde_json::{Value, json};

use super::*;
use crate::api::{ElastiService, names};

fn elasti(name: &str, created: &str, spec: &Value, ports: &Value) -> Arc<ElastiService> {
    let mut object = json!({
        "apiVersion": "elasti.truefoundry.com/v1alpha1", "kind": "ElastiService",
        "metadata": {"namespace": "shop", "name": name, "uid": name, "creationTimestamp": created},
        "spec": {
            "service": name,
            "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": name},
        },
        "status": {"ports": ports},
    });
    for (field, value) in spec.as_object().unwrap() {
        object["spec"][field] = value.clone();
    }
    Arc::new(serde_json::from_value(object).unwrap())
}

fn slice(service: &str, endpoints: &Value, ports: &Value) -> Arc<EndpointSlice> {
    let slice = json!({
        "metadata": {
            "namespace": "shop", "name": format!("{service}-1"),
            "labels": {"kubernetes.io/service-name": names::private_service(service)},
        },
        "addressType": "IPv4", "endpoints": endpoints, "ports": ports,
    });
    Arc::new(serde_json::from_value(slice).unwrap())
}

fn table(objects: &RouteObjects) -> RouteTable {
    RouteTable::build(objects, RouteDefaults::default(), &RouteTable::default())
}

const OLD: &str = "2026-01-01T00:00:00Z";
const NEW: &str = "2026-01-02T00:00:00Z";

#[test]
fn only_ready_pods_are_routed_to_on_the_port_of_the_same_name() {
    let ports = json!([
        {"name": "http", "port": 80, "resolverPort": 20000},
        {"name": "admin", "port": 81, "resolverPort": 20001},
    ]);
    let endpoints = json!([
        {"addresses": ["10.0.0.3"], "conditions": {"ready": true}},
        {"addresses": ["10.0.0.1"]},
        {"addresses": ["10.0.0.2"], "conditions": {"ready": false}},
        {"addresses": ["10.0.0.4"], "conditions": {"ready": true, "terminating": true}},
    ]);
    let targets = json!([
        {"name": "http", "port": 8080, "protocol": "TCP"},
        {"name": "admin", "port": 9090, "protocol": "UDP"},
    ]);
    let table = table(&RouteObjects {
        elasti_services: vec![elasti("cart", OLD, &json!({}), &ports)],
        slices: vec![slice("cart", &endpoints, &targets)],
        ..RouteObjects::default()
    });
    let pods = table.pods(&Key::new("shop", "cart"));
    let expected = ["10.0.0.1:8080", "10.0.0.3:8080"].map(|text| text.parse().unwrap());
    assert_eq!(*pods, PodAddresses::from([(80, expected.to_vec())]));
    let route = table.route(20001).unwrap();
    assert_eq!(route.port.number, 81);
    assert_eq!(table.route(20002).map(|route| &route.port), None);
}

#[test]
fn a_port_of_a_former_service_has_no_route() {
    let ports = json!([
        {"name": "http", "port": 80, "resolverPort": 20000, "service": "shop"},
        {"name": "http", "port": 80, "resolverPort": 20001, "service": "cart"},
        {"name": "", "port": 81, "resolverPort": 20002},
    ]);
    let table = table(&RouteObjects {
        elasti_services: vec![elasti("cart", OLD, &json!({}), &ports)],
        ..RouteObjects::default()
    });
    let routes: Vec<_> = table.routes().keys().copied().collect();
    assert_eq!(routes, [20001, 20002]);
}

#[test]
fn the_older_keeps_a_port_that_two_claim() {
    let port = json!([{"name": "", "port": 80, "resolverPort": 20000}]);
    let both = vec![
        elasti("young", NEW, &json!({}), &port),
        elasti("old", OLD, &json!({}), &port),
    ];
    let table = table(&RouteObjects {
        elasti_services: both,
        ..RouteObjects::default()
    });
    let route = table.route(20000).unwrap();
    assert_eq!(route.service.key, Key::new("shop", "old"));
    let young = table.service(&Key::new("shop", "young")).unwrap();
    assert_eq!(young.ports, []);
}

#[test]
fn the_protocol_follows_from_the_field_the_app_protocol_or_the_port_name() {
    let ports = json!([
        {"name": "http", "port": 80, "resolverPort": 20000},
        {"name": "grpc-web", "port": 81, "resolverPort": 20001},
        {"name": "https", "port": 82, "resolverPort": 20002},
        {"name": "db", "port": 83, "resolverPort": 20003},
        {"name": "http-old", "port": 84, "resolverPort": 20004},
        {"name": "httpd", "port": 85, "resolverPort": 20005},
        {"name": "other", "port": 86, "resolverPort": 20006},
    ]);
    let spec = json!({"ports": [{"port": 84, "protocol": "TCP", "ignoreEmpty": true}]});
    let private: Service = serde_json::from_value(json!({
        "metadata": {"namespace": "shop", "name": names::private_service("cart")},
        "spec": {"ports": [{"name": "other", "port": 86, "appProtocol": "kubernetes.io/h2c"}]},
    }))
    .unwrap();
    let objects = RouteObjects {
        elasti_services: vec![elasti("cart", OLD, &spec, &ports)],
        services: vec![Arc::new(private)],
        ..RouteObjects::default()
    };
    let table = table(&objects);
    let spoken = |number| {
        let route = table.route(number).unwrap();
        (route.port.protocol, route.port.ignore_empty)
    };
    let (http, tls, tcp) = (Protocol::Http, Protocol::Tls, Protocol::Tcp);
    let expected = [http, http, tls, tcp, tcp, tcp, http];
    let found: Vec<_> = (20000..20007).map(|port| spoken(port).0).collect();
    assert_eq!(found, expected);
    assert!(spoken(20004).1);
    assert!(!spoken(20003).1);
}

#[test]
fn probe_responses_make_a_port_http_where_nothing_else_is_declared() {
    let ports = json!([
        {"name": "", "port": 80, "resolverPort": 20000},
        {"name": "redis", "port": 81, "resolverPort": 20001},
    ]);
    let spec = json!({"probeResponse": [{"response": {"status": 200, "body": "ok"}}]});
    let objects = RouteObjects {
        elasti_services: vec![elasti("cart", OLD, &spec, &ports)],
        ..RouteObjects::default()
    };
    let first = table(&objects);
    assert_eq!(first.route(20000).unwrap().port.protocol, Protocol::Http);
    assert_eq!(first.route(20001).unwrap().port.protocol, Protocol::Tcp);
    // Compiled once.
    let second = RouteTable::build(&objects, RouteDefaults::default(), &first);
    let probes = |table: &RouteTable| table.route(20000).unwrap().service.probes.clone();
    assert!(Arc::ptr_eq(&probes(&first), &probes(&second)));
}

#[test]
fn limits_are_those_of_the_object_or_the_defaults() {
    let spec = json!({"queue": {"requests": 3, "perPod": 2}, "deadlineSeconds": 7});
    let table = table(&RouteObjects {
        elasti_services: vec![elasti("cart", OLD, &spec, &json!([]))],
        ..RouteObjects::default()
    });
    let service = table.service(&Key::new("shop", "cart")).unwrap();
    assert_eq!(service.deadline, Duration::from_secs(7));
    let limits = HoldLimits {
        requests: 3,
        per_pod: 2,
        ..RouteDefaults::default().limits
    };
    assert_eq!(service.limits, limits);
}
