//! Which ports are reached from where.

use k8s_openapi::api::{
    core::v1::{Event, Service},
    networking::v1::NetworkPolicy,
};
use serde_json::{Value, json};

use super::{SECOND, cluster::TestCluster};
use crate::api::{BuildbarnBrowser, BuildbarnFrontend, BuildbarnScheduler, BuildbarnWorker};

async fn ports(cluster: &TestCluster, service: &str) -> Vec<i32> {
    let service: Service = cluster.get(service).await.unwrap();
    let ports = service.spec.unwrap().ports.unwrap();
    ports.iter().map(|it| it.port).collect()
}

#[tokio::test(start_paused = true)]
async fn an_exposed_scheduler_keeps_its_queue_inside_and_is_warned_about() {
    let cluster = TestCluster::ready().await;
    let all = [8982, 8983, 8984, 7982, 9980];
    assert_eq!(ports(&cluster, "scheduler").await, all);
    for service_type in ["NodePort", "LoadBalancer"] {
        let change = json!({"spec": {"serviceType": service_type}});
        cluster
            .merge::<BuildbarnScheduler>("scheduler", change)
            .await;
        cluster.pass(SECOND).await;
        assert_eq!(ports(&cluster, "scheduler").await, [8982, 8983, 7982]);
        assert_eq!(ports(&cluster, "scheduler-scheduler").await, [8984, 9980]);
        let exposed = cluster.condition::<BuildbarnScheduler>("scheduler", "Exposed");
        let (reason, message) = exposed.await;
        assert_eq!(reason, "NoAuthentication");
        assert!(message.contains("kill actions"), "{message}");
    }
    let events = cluster.list::<Event>().await;
    let mut reasons = events.iter().filter_map(|it| it.reason.as_deref());
    assert!(reasons.any(|it| it == "NoAuthentication"));
    // The operator still reaches the queue.
    cluster.worker_pod("w-0").await;
    cluster.queue.register("w-0", true);
    let change = json!({"spec": {"cordoned": true}});
    cluster
        .merge::<BuildbarnWorker>("ubuntu22-04", change)
        .await;
    cluster.pass(SECOND * 5).await;
    assert_eq!(cluster.queue.drains().len(), 1);
    let inner: Service = cluster.get("scheduler-scheduler").await.unwrap();
    let address = inner.spec.unwrap().cluster_ip.unwrap();
    let asked = cluster.queue.take_addresses();
    assert_eq!(asked, [format!("{address}:8984")]);
    let change = json!({"spec": {"serviceType": null}});
    cluster
        .merge::<BuildbarnScheduler>("scheduler", change)
        .await;
    cluster.pass(SECOND).await;
    assert_eq!(ports(&cluster, "scheduler").await, all);
    let inner = cluster.get::<Service>("scheduler-scheduler").await;
    assert!(inner.is_none());
}

#[tokio::test(start_paused = true)]
async fn an_exposed_browser_is_warned_about_and_so_is_a_node_port_of_a_frontend() {
    let cluster = TestCluster::ready().await;
    let change = json!({"spec": {"serviceType": "LoadBalancer"}});
    cluster.merge::<BuildbarnBrowser>("browser", change).await;
    let change = json!({"spec": {"serviceType": "NodePort"}});
    cluster.merge::<BuildbarnFrontend>("frontend", change).await;
    cluster.pass(SECOND).await;
    assert_eq!(ports(&cluster, "browser").await, [7984]);
    assert_eq!(ports(&cluster, "browser-browser").await, [9980]);
    let browser = cluster.condition::<BuildbarnBrowser>("browser", "Exposed");
    assert!(browser.await.1.contains("read all files"));
    let frontend = cluster.condition::<BuildbarnFrontend>("frontend", "Exposed");
    assert!(frontend.await.1.contains("run programs on the workers"));
}

async fn policy(cluster: &TestCluster, name: &str) -> Value {
    let policy: NetworkPolicy = cluster.get(name).await.unwrap();
    serde_json::to_value(policy.spec.unwrap()).unwrap()
}

#[tokio::test(start_paused = true)]
async fn actions_find_names_wherever_dns_is() {
    let cluster = TestCluster::ready().await;
    let policy = policy(&cluster, "ubuntu22-04-worker").await;
    let rules = policy["egress"].as_array().unwrap().iter();
    let open: Vec<_> = rules.filter(|it| it["to"].is_null()).collect();
    let port = |port: u16, protocol: &str| json!({"port": port, "protocol": protocol});
    let names = [
        port(53, "UDP"),
        port(53, "TCP"),
        port(5353, "UDP"),
        port(5353, "TCP"),
    ];
    assert_eq!(open, [&json!({"ports": names})]);
}

#[tokio::test(start_paused = true)]
async fn a_farm_without_a_name_lets_in_no_pods_of_another() {
    let cluster = TestCluster::ready().await;
    let policy = policy(&cluster, "storage-storage").await;
    let clients = &policy["ingress"][0]["from"][0]["podSelector"];
    let unnamed = json!({"key": "buildbarn.io/farm", "operator": "DoesNotExist"});
    let expressions = clients["matchExpressions"].as_array().unwrap();
    assert!(expressions.contains(&unnamed), "{clients}");
}
