use std::time::Duration;

use k8s_openapi::api::core::v1::{Endpoints, Pod, Service};
use kube::ResourceExt;
use serde_json::{Value, json};

use super::decide::decide;
use crate::stage::TestCluster;

const SETTLE_TIME: Duration = Duration::from_secs(2);

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

async fn cluster() -> TestCluster {
    TestCluster::start(|context| Ok(vec![super::component(context)?])).await
}

/// Ports, ready and other addresses of each subset.
fn summary(endpoints: &Endpoints) -> Vec<String> {
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
async fn ports_with_the_same_addresses_share_a_subset() {
    let cluster = cluster().await;
    cluster.create::<Service>(service()).await;
    let pods = [
        ("a", 8080, "10.1.0.1", true),
        ("b", 9090, "10.1.0.2", false),
        ("c", 8080, "10.1.0.3", true),
        ("gone", 8080, "10.1.0.4", true),
    ];
    for (name, port, ip, ready) in pods {
        cluster.create::<Pod>(pod(name, port)).await;
        cluster.patch_status::<Pod>(name, at(ip, ready)).await;
    }
    cluster.delete::<Pod>("gone").await;
    cluster.advance(SETTLE_TIME).await;
    let endpoints = cluster.get::<Endpoints>("web").await;
    let expected = [
        "[8080] ready 1,3 others ",
        "[8081] ready 1,3 others 2",
        "[9090] ready  others 2",
    ];
    let mut summary = summary(&endpoints);
    summary.sort();
    assert_eq!(summary, expected);
    let labels = json!({
        "team": "blue",
        "endpoints.kubernetes.io/managed-by": "endpoint-controller",
    });
    assert_eq!(json!(endpoints.labels()), labels);
    assert!(endpoints.owner_references().is_empty());
}

#[tokio::test(start_paused = true)]
async fn endpoints_are_annotated_with_their_trigger_time() {
    let cluster = cluster().await;
    cluster.create::<Service>(service()).await;
    cluster.advance(SETTLE_TIME).await;
    let trigger_time = async || {
        let endpoints = cluster.get::<Endpoints>("web").await;
        let annotations = endpoints.annotations();
        annotations
            .get("endpoints.kubernetes.io/last-change-trigger-time")
            .cloned()
    };
    let made = cluster.get::<Service>("web").await.creation_timestamp();
    assert_eq!(trigger_time().await, made.map(|made| made.0.to_string()));
    cluster.create::<Pod>(pod("a", 8080)).await;
    let mut ready = at("10.1.0.1", true);
    ready["conditions"][0]["lastTransitionTime"] = "2026-01-01T00:00:07Z".into();
    cluster.patch_status::<Pod>("a", ready).await;
    cluster.advance(SETTLE_TIME).await;
    assert_eq!(
        trigger_time().await.as_deref(),
        Some("2026-01-01T00:00:07Z")
    );
    cluster.delete::<Pod>("a").await;
    cluster.advance(SETTLE_TIME).await;
    assert_eq!(trigger_time().await, None, "no pod became ready or unready");
}

#[tokio::test(start_paused = true)]
async fn endpoints_are_created_and_deleted_with_their_service() {
    let cluster = cluster().await;
    cluster.create::<Service>(service()).await;
    let own = json!({"metadata": {"name": "own"}});
    cluster.create::<Endpoints>(own).await;
    cluster.advance(SETTLE_TIME).await;
    assert_eq!(cluster.get::<Endpoints>("web").await.subsets, None);
    cluster.delete::<Endpoints>("web").await;
    cluster.advance(SETTLE_TIME).await;
    cluster.get::<Endpoints>("web").await;
    cluster.delete::<Service>("web").await;
    cluster.advance(SETTLE_TIME).await;
    let left: Vec<Endpoints> = cluster.list().await;
    let left: Vec<_> = left.iter().map(ResourceExt::name_any).collect();
    assert!(!left.contains(&"web".to_owned()));
    assert!(left.contains(&"own".to_owned()), "created by a user");
}

#[test]
fn endpoints_are_truncated_to_a_thousand_addresses() {
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
