//! ServiceMonitors, whose kind a cluster may serve later or not at all.

use k8s_openapi::api::core::v1::Service;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::{Api, ResourceExt, api::DeleteParams};
use serde_json::json;

use super::{MINUTE, SECOND, cluster::TestCluster};
use crate::{
    api::{BuildbarnFrontend, BuildbarnScheduler},
    farm::objects::ServiceMonitor,
};

#[tokio::test(start_paused = true)]
async fn every_component_is_monitored_once_the_kind_is_served() {
    let cluster = TestCluster::ready().await;
    assert!(cluster.get::<Service>("ubuntu22-04-worker").await.is_none());
    cluster.serve_monitors().await;
    let names = cluster.names::<ServiceMonitor>().await;
    let expected = [
        "browser-browser",
        "frontend-frontend",
        "scheduler-scheduler",
        "storage-storage",
        "ubuntu22-04-worker",
    ];
    assert_eq!(names, expected);
    let pool: ServiceMonitor = cluster.get("ubuntu22-04-worker").await.unwrap();
    let ports = json!([{"port": "diagnostics"}, {"port": "runner-diag"}]);
    assert_eq!(pool.spec["endpoints"], ports);
    // What it selects has these ports.
    let service: Service = cluster.get("ubuntu22-04-worker").await.unwrap();
    let labels = pool.spec["selector"]["matchLabels"].as_object().unwrap();
    for (name, value) in labels {
        assert_eq!(service.labels()[name], *value);
    }
    let ports = service.spec.unwrap().ports.unwrap();
    let names: Vec<_> = ports.iter().filter_map(|it| it.name.as_deref()).collect();
    assert_eq!(names, ["diagnostics", "runner-diag"]);
    let writes = cluster.writes();
    cluster.pass(MINUTE * 60).await;
    assert_eq!(cluster.writes(), writes, "{:#?}", cluster.calls());
}

#[tokio::test(start_paused = true)]
async fn a_farm_goes_on_when_the_kind_of_monitors_is_removed() {
    let cluster = TestCluster::ready().await;
    cluster.serve_monitors().await;
    let definitions = Api::<CustomResourceDefinition>::all(cluster.client.clone());
    definitions
        .delete(
            "servicemonitors.monitoring.coreos.com",
            &DeleteParams::default(),
        )
        .await
        .unwrap();
    cluster.pass(SECOND * 10).await;
    let change = json!({"spec": {"serviceType": "NodePort"}});
    cluster
        .merge::<BuildbarnScheduler>("scheduler", change)
        .await;
    cluster.settle().await;
    let exposed = cluster.condition::<BuildbarnScheduler>("scheduler", "Exposed");
    assert_eq!(exposed.await.0, "NoAuthentication");
    assert_eq!(
        cluster.reason::<BuildbarnFrontend>("frontend").await,
        "Ready"
    );
}
