use std::{
    net::{IpAddr, Ipv4Addr, SocketAddr},
    time::Duration,
};

use k8s_openapi::api::{
    core::v1::{Event, Service},
    discovery::v1::EndpointSlice,
};
use serde_json::{Value, json};
use tokio::net::{TcpSocket, TcpStream};

use super::{
    ProxyOptions,
    decide::{Routes, routes},
};
use crate::stage::TestCluster;

fn table(service: &Value, slices: &[Value]) -> Routes {
    let service: Service = serde_json::from_value(service.clone()).unwrap();
    let slices: Vec<EndpointSlice> = slices
        .iter()
        .map(|slice| serde_json::from_value(slice.clone()).unwrap())
        .collect();
    let node = IpAddr::V4(Ipv4Addr::new(127, 1, 0, 1));
    routes([&service].into_iter(), |_| slices.iter().collect(), &[node])
}

fn service(spec: &Value) -> Value {
    json!({"metadata": {"name": "web", "namespace": "shop"}, "spec": spec})
}

fn slice(endpoints: &Value) -> Value {
    json!({
        "metadata": {"name": "web-1", "namespace": "shop"},
        "addressType": "IPv4",
        "ports": [{"name": "http", "port": 8080, "protocol": "TCP"}],
        "endpoints": endpoints,
    })
}

fn backends(routes: &Routes, address: &str) -> Vec<String> {
    let address: SocketAddr = address.parse().unwrap();
    routes[&address]
        .backends
        .iter()
        .map(ToString::to_string)
        .collect()
}

#[test]
fn an_address_routes_to_ready_pods() {
    let spec = json!({"clusterIP": "127.1.128.5", "type": "NodePort", "ports": [
        {"name": "http", "port": 80, "nodePort": 30080},
        {"name": "dns", "port": 53, "protocol": "UDP"},
    ]});
    let endpoints = json!([
        {"addresses": ["127.1.1.2"], "conditions": {"ready": true}},
        {"addresses": ["127.1.1.1"]},
        {"addresses": ["127.1.1.3"], "conditions": {"ready": false}},
        {"addresses": ["127.1.1.4"], "conditions": {"ready": false, "serving": true, "terminating": true}},
    ]);
    let routes = table(&service(&spec), &[slice(&endpoints)]);
    let listened: Vec<_> = routes.keys().map(ToString::to_string).collect();
    assert_eq!(listened, ["127.1.0.1:30080", "127.1.128.5:80"]);
    assert_eq!(
        backends(&routes, "127.1.128.5:80"),
        ["127.1.1.1:8080", "127.1.1.2:8080"]
    );
}

#[test]
fn terminating_pods_serve_if_no_pod_is_ready() {
    let spec = json!({"clusterIP": "127.1.128.5", "ports": [{"name": "http", "port": 80}]});
    let ending = json!([{"addresses": ["127.1.1.4"], "conditions": {"ready": false, "serving": true, "terminating": true}}]);
    let routes = table(&service(&spec), &[slice(&ending)]);
    assert_eq!(backends(&routes, "127.1.128.5:80"), ["127.1.1.4:8080"]);
    let empty = table(&service(&spec), &[]);
    assert_eq!(backends(&empty, "127.1.128.5:80"), [""; 0]);
}

#[test]
fn a_service_without_a_cluster_ip_has_no_listener() {
    for spec in [
        json!({"clusterIP": "None", "ports": [{"port": 80}]}),
        json!({"type": "ExternalName", "externalName": "elsewhere"}),
    ] {
        assert!(table(&service(&spec), &[]).is_empty());
    }
}

#[tokio::test(start_paused = true)]
async fn an_address_taken_by_another_program_is_reported_and_retried() {
    let node = IpAddr::V4(Ipv4Addr::new(127, 77, 3, 1));
    let address = SocketAddr::from((node, 31877));
    let options = ProxyOptions {
        nodes: vec![node],
        ..ProxyOptions::default()
    };
    let cluster = TestCluster::start(|context| Ok(vec![super::component(context, options)?])).await;
    let ports = json!([{"name": "http", "port": 8080, "nodePort": address.port()}]);
    let spec = json!({"type": "NodePort", "ports": ports});
    let made = json!({"metadata": {"name": "web"}, "spec": spec});
    cluster.create::<Service>(made).await;
    cluster.advance(Duration::from_secs(1)).await;
    let other = TcpSocket::new_v4().unwrap();
    other.set_reuseaddr(true).unwrap();
    other.bind(address).unwrap();
    let other = other.listen(1).unwrap();
    let mut ready = slice(&json!([{"addresses": ["192.0.2.9"]}]));
    let labels = json!({"kubernetes.io/service-name": "web"});
    ready["metadata"] = json!({"name": "web-1", "labels": labels});
    cluster.create::<EndpointSlice>(ready).await;
    cluster.advance(Duration::from_secs(10)).await;
    let expected = format!("{address} is not served: another program has the port;");
    let events = cluster.list::<Event>().await;
    let mut messages = events.into_iter().filter_map(|event| event.message);
    assert!(messages.any(|message| message.starts_with(&expected)));
    drop(other);
    assert!(TcpStream::connect(address).await.is_err());
    cluster.advance(Duration::from_mins(1)).await;
    TcpStream::connect(address).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn each_change_is_applied_after_its_own_lag() {
    let node = IpAddr::V4(Ipv4Addr::new(127, 77, 4, 1));
    let options = ProxyOptions {
        nodes: vec![node],
        lag: Duration::from_secs(10),
        ..ProxyOptions::default()
    };
    let cluster = TestCluster::start(|context| Ok(vec![super::component(context, options)?])).await;
    let ready = async |name: &str, port: u16| {
        let ports = json!([{"name": "http", "port": 8080, "nodePort": port}]);
        let spec = json!({"type": "NodePort", "ports": ports});
        let made = json!({"metadata": {"name": name}, "spec": spec});
        cluster.create::<Service>(made).await;
        let mut slice = slice(&json!([{"addresses": ["192.0.2.9"]}]));
        let labels = json!({"kubernetes.io/service-name": name});
        slice["metadata"] = json!({"name": name, "labels": labels});
        cluster.create::<EndpointSlice>(slice).await;
    };
    let is_open = async |port: u16| TcpStream::connect((node, port)).await.is_ok();
    ready("web", 31878).await;
    cluster.advance(Duration::from_secs(6)).await;
    ready("shop", 31879).await;
    cluster.advance(Duration::from_secs(6)).await;
    assert!(is_open(31878).await);
    assert!(!is_open(31879).await, "it came six seconds ago");
    cluster.advance(Duration::from_secs(5)).await;
    assert!(is_open(31879).await);
}
