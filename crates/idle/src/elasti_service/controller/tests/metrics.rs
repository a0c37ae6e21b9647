//! Metrics of KubeElasti, for its dashboards.

use serde_json::json;

use super::{SECOND, cluster::TestCluster};
use crate::api::ElastiService;

/// The label sets of a metric.
fn labels_of(cluster: &TestCluster, name: &str) -> Vec<String> {
    let begins = format!("elasti_operator_{name}{{");
    let metrics = cluster.metrics();
    let lines = metrics.lines().filter(|line| line.starts_with(&begins));
    let mut labels: Vec<_> = lines
        .filter_map(|line| line.rsplit_once(' '))
        .map(|(labels, _)| labels[begins.len() - 1..].to_owned())
        .collect();
    labels.sort();
    labels
}

fn value(cluster: &TestCluster, line: &str) -> Option<f64> {
    let metrics = cluster.metrics();
    let found = metrics.lines().find_map(|it| it.strip_prefix(line));
    found.and_then(|value| value.trim().parse().ok())
}

#[tokio::test(start_paused = true)]
async fn metrics_of_kube_elasti_keep_their_names_and_labels() {
    let cluster = TestCluster::asleep().await;
    let mode = r#"elasti_operator_mode{crd_name="default/web"}"#;
    assert_eq!(value(&cluster, mode), Some(1.0));
    assert_eq!(
        labels_of(&cluster, "informer_handler_counter"),
        [r#"{crd_name="default/web",key="web/default/deployments/web",error="success"}"#]
    );
    assert_eq!(
        labels_of(&cluster, "CRD_update_counter"),
        [
            r#"{crd_name="default/web",mode="",error="success"}"#,
            r#"{crd_name="default/web",mode="proxy",error="success"}"#,
            r#"{crd_name="default/web",mode="serve",error="success"}"#,
        ]
    );
    assert_eq!(
        labels_of(&cluster, "reconcile_count"),
        [r#"{crd_name="default/web",error="success"}"#]
    );
    let watched = labels_of(&cluster, "informer_count");
    assert!(watched.contains(&r#"{informer_name="deployments"}"#.to_owned()));
    let started = r#"{crd_name="deployments",action="add",error="success"}"#.to_owned();
    assert!(labels_of(&cluster, "informer_counter").contains(&started));
    cluster.verdicts.busy();
    cluster.pods_are_ready(true).await;
    cluster.pass(SECOND * 5).await;
    assert_eq!(value(&cluster, mode), Some(0.0));
}

#[tokio::test(start_paused = true)]
async fn metrics_are_removed_with_their_service() {
    let cluster = TestCluster::open().await;
    cluster.declare().await;
    cluster.pass(SECOND).await;
    let other = json!({"spec": {"scaleTargetRef": {"name": "other"}}});
    cluster.patch::<ElastiService>("web", other).await;
    cluster.pass(SECOND * 5).await;
    assert_eq!(
        labels_of(&cluster, "informer_handler_counter"),
        [r#"{crd_name="default/web",key="web/default/deployments/other",error="success"}"#]
    );
    cluster.delete::<ElastiService>("web").await;
    cluster.pass(SECOND * 5).await;
    let metrics = cluster.metrics();
    assert!(!metrics.contains("default/web"), "{metrics}");
    assert_eq!(
        labels_of(&cluster, "CRD_finalizer_counter"),
        [r#"{crd_name="",error="success"}"#]
    );
}
