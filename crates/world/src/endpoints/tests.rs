use std::time::Duration;

use k8s_openapi::api::core::v1::{Endpoints, Pod, Service};
use kube::ResourceExt;
use serde_json::{Value, json};

use super::decide::decide;
use crate::stage::Stage;

const SOON: Duration = Duration::from_secs(2);

fn service() -> Value {
    json!({
        "metadata": {"name": "web", "labels": {"team": "blue"}},
        "spec": {"selector": {"app": "web"}, "ports": [
            {"name": "http", "port": 80, "targetPort": "http"},
            {"name": "raw", "port": 81, "targetPort": 8081, "protocol": "UDP"},
        ]},
    })
}

fn pod(name: &str, port: u16) -> Value {
    let ports = json!([{"name": "http", "containerPort": port}]);
    json!({
        "metadata": {"name": name, "labels": {"app": "web"}, "finalizers": ["test.neaptide.dev/stays"]},
        "spec": {"containers": [{"name": "main", "image": "app", "ports": ports}]},
    })
}

fn at(ip: &str, ready: bool) -> Value {
    json!({
        "phase": "Running", "podIP": ip, "podIPs": [{"ip": ip}],
        "conditions": [{"type": "Ready", "status": if ready { "True" } else { "False" }}],
    })
}

async fn stage() -> Stage {
    Stage::open(|site| Ok(vec![super::service(site)?])).await
}

/// Ports, ready and other addresses of each subset.
fn told(endpoints: &Endpoints) -> Vec<String> {
    let subsets = endpoints.subsets.iter().flatten().map(|subset| {
        let ports = subset.ports.iter().flatten();
        let ports: Vec<_> = ports.map(|port| port.port).collect();
        let [ready, others] = [&subset.addresses, &subset.not_ready_addresses].map(|addresses| {
            let addresses = addresses.iter().flatten();
            let last = addresses.map(|address| address.ip.rsplit('.').next().unwrap());
            last.collect::<Vec<_>>().join(",")
        });
        format!("{ports:?} ready {ready} others {others}")
    });
    subsets.collect()
}

#[tokio::test(start_paused = true)]
async fn ports_at_the_same_addresses_are_told_together() {
    let stage = stage().await;
    stage.create::<Service>(service()).await;
    let pods = [
        ("a", 8080, "10.1.0.1", true),
        ("b", 9090, "10.1.0.2", false),
        ("c", 8080, "10.1.0.3", true),
        ("gone", 8080, "10.1.0.4", true),
    ];
    for (name, port, ip, ready) in pods {
        stage.create::<Pod>(pod(name, port)).await;
        stage.patch_status::<Pod>(name, at(ip, ready)).await;
    }
    stage.delete::<Pod>("gone").await;
    stage.pass(SOON).await;
    let endpoints = stage.get::<Endpoints>("web").await;
    let expected = [
        "[8080] ready 1,3 others ",
        "[8081] ready 1,3 others 2",
        "[9090] ready  others 2",
    ];
    let mut told = told(&endpoints);
    told.sort();
    assert_eq!(told, expected);
    let labels = json!({
        "team": "blue",
        "endpoints.kubernetes.io/managed-by": "endpoint-controller",
    });
    assert_eq!(json!(endpoints.labels()), labels);
    assert!(endpoints.owner_references().is_empty());
}

#[tokio::test(start_paused = true)]
async fn they_say_what_they_were_last_written_for() {
    let stage = stage().await;
    stage.create::<Service>(service()).await;
    stage.pass(SOON).await;
    let trigger = async || {
        let endpoints = stage.get::<Endpoints>("web").await;
        let notes = endpoints.annotations();
        notes
            .get("endpoints.kubernetes.io/last-change-trigger-time")
            .cloned()
    };
    let made = stage.get::<Service>("web").await.creation_timestamp();
    assert_eq!(trigger().await, made.map(|made| made.0.to_string()));
    stage.create::<Pod>(pod("a", 8080)).await;
    let mut ready = at("10.1.0.1", true);
    ready["conditions"][0]["lastTransitionTime"] = "2026-01-01T00:00:07Z".into();
    stage.patch_status::<Pod>("a", ready).await;
    stage.pass(SOON).await;
    assert_eq!(trigger().await.as_deref(), Some("2026-01-01T00:00:07Z"));
    stage.delete::<Pod>("a").await;
    stage.pass(SOON).await;
    assert_eq!(trigger().await, None, "no pod became ready or unready");
}

#[tokio::test(start_paused = true)]
async fn endpoints_come_and_go_with_their_service() {
    let stage = stage().await;
    stage.create::<Service>(service()).await;
    let own = json!({"metadata": {"name": "own"}});
    stage.create::<Endpoints>(own).await;
    stage.pass(SOON).await;
    assert_eq!(stage.get::<Endpoints>("web").await.subsets, None);
    stage.delete::<Endpoints>("web").await;
    stage.pass(SOON).await;
    stage.get::<Endpoints>("web").await;
    stage.delete::<Service>("web").await;
    stage.pass(SOON).await;
    let left: Vec<Endpoints> = stage.list().await;
    let left: Vec<_> = left.iter().map(ResourceExt::name_any).collect();
    assert!(!left.contains(&"web".to_owned()));
    assert!(left.contains(&"own".to_owned()), "written by somebody");
}

#[test]
fn a_thousand_addresses_and_no_more() {
    let pods: Vec<Pod> = (0..1200)
        .map(|number| {
            let mut pod = pod(&format!("p{number}"), 8080);
            pod["status"] = at(
                &format!("10.{}.0.{}", number / 250, number % 250),
                number >= 300,
            );
            serde_json::from_value(pod).unwrap()
        })
        .collect();
    let pods: Vec<_> = pods.iter().collect();
    let service = serde_json::from_value(service()).unwrap();
    let full = decide(&service, &pods, None);
    let count = |endpoints: &Endpoints, ready: bool| {
        let subset = &endpoints.subsets.as_ref().unwrap()[0];
        let of = [&subset.not_ready_addresses, &subset.addresses][usize::from(ready)];
        of.as_ref().map_or(0, Vec::len)
    };
    assert_eq!((count(&full, true), count(&full, false)), (900, 100));
    let annotation = "endpoints.kubernetes.io/over-capacity";
    assert_eq!(full.annotations()[annotation], "truncated");
    let fewer = decide(&service, &pods[..300], Some(&full));
    assert!(!fewer.annotations().contains_key(annotation));
}
