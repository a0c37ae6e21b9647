//! What dashboards made for KubeElasti look at.

use serde_json::json;

use super::{SECOND, stage::Stage};
use crate::api::ElastiService;

/// The lines of one number, without their values.
fn shown(stage: &Stage, name: &str) -> Vec<String> {
    let begins = format!("elasti_operator_{name}{{");
    let metrics = stage.metrics();
    let lines = metrics.lines().filter(|line| line.starts_with(&begins));
    let mut labels: Vec<_> = lines
        .filter_map(|line| line.rsplit_once(' '))
        .map(|(labels, _)| labels[begins.len() - 1..].to_owned())
        .collect();
    labels.sort();
    labels
}

fn value(stage: &Stage, line: &str) -> Option<f64> {
    let metrics = stage.metrics();
    let found = metrics.lines().find_map(|it| it.strip_prefix(line));
    found.and_then(|value| value.trim().parse().ok())
}

#[tokio::test(start_paused = true)]
async fn the_numbers_of_the_original_keep_their_names_and_labels() {
    let stage = Stage::asleep().await;
    let mode = r#"elasti_operator_mode{crd_name="default/web"}"#;
    assert_eq!(value(&stage, mode), Some(1.0));
    assert_eq!(
        shown(&stage, "informer_handler_counter"),
        [r#"{crd_name="default/web",key="web/default/deployments/web",error="success"}"#]
    );
    assert_eq!(
        shown(&stage, "CRD_update_counter"),
        [
            r#"{crd_name="default/web",mode="",error="success"}"#,
            r#"{crd_name="default/web",mode="proxy",error="success"}"#,
            r#"{crd_name="default/web",mode="serve",error="success"}"#,
        ]
    );
    assert_eq!(
        shown(&stage, "reconcile_count"),
        [r#"{crd_name="default/web",error="success"}"#]
    );
    let watched = shown(&stage, "informer_count");
    assert!(watched.contains(&r#"{informer_name="deployments"}"#.to_owned()));
    let begun = r#"{crd_name="deployments",action="add",error="success"}"#.to_owned();
    assert!(shown(&stage, "informer_counter").contains(&begun));
    stage.verdicts.busy();
    stage.pods_are_ready(true).await;
    stage.pass(SECOND * 5).await;
    assert_eq!(value(&stage, mode), Some(0.0));
}

#[tokio::test(start_paused = true)]
async fn what_is_gone_is_no_longer_shown() {
    let stage = Stage::open().await;
    stage.declare().await;
    stage.pass(SECOND).await;
    let other = json!({"spec": {"scaleTargetRef": {"name": "other"}}});
    stage.patch::<ElastiService>("web", other).await;
    stage.pass(SECOND * 5).await;
    assert_eq!(
        shown(&stage, "informer_handler_counter"),
        [r#"{crd_name="default/web",key="web/default/deployments/other",error="success"}"#]
    );
    stage.delete::<ElastiService>("web").await;
    stage.pass(SECOND * 5).await;
    let metrics = stage.metrics();
    assert!(!metrics.contains("default/web"), "{metrics}");
    assert_eq!(
        shown(&stage, "CRD_finalizer_counter"),
        [r#"{crd_name="",error="success"}"#]
    );
}
