//! A key of run tokens that is missing, or cannot be used.

use k8s_openapi::api::core::v1::Secret;
use serde_json::Value;

use super::*;
use crate::payload::run_keys::SECRET as RUN_KEYS;

async fn events(cluster: &TestCluster, reason: &str) -> usize {
    let events = cluster.all::<Event>("ocp").await;
    let told = events
        .iter()
        .filter(|it| it.reason.as_deref() == Some(reason));
    told.map(|it| it.count.unwrap_or(1).unsigned_abs() as usize)
        .sum()
}

fn secret(data: &Value) -> Secret {
    serde_json::from_value(json!({"metadata": {"name": RUN_KEYS}, "data": data})).unwrap()
}

#[tokio::test(start_paused = true)]
async fn a_secret_without_a_usable_key_is_explained_once_and_a_good_one_is_found() {
    let cluster = TestCluster::open(&periodics(&[])).await;
    cluster
        .create_in("ocp", &secret(&json!({"key-1": "c2hvcnQ="})))
        .await;
    cluster.declare(&integration(json!({}))).await;
    cluster.pass(SECOND * 5).await;
    let state = cluster.state().await;
    assert_eq!(state.reason, "RunKeyMissing");
    assert!(
        state.message.contains("ocp/neap-release-run-keys"),
        "{state:?}"
    );
    let before = cluster.writes();
    cluster.pass(MINUTE * 30).await;
    assert_eq!(cluster.writes(), before, "it is written and told once");
    assert_eq!(events(&cluster, "RunKeyMissing").await, 1);
    // The controller makes another.
    cluster.delete_in::<Secret>("ocp", RUN_KEYS).await;
    cluster.pass(MINUTE).await;
    assert_eq!(cluster.releases().await.len(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_payload_whose_key_is_lost_is_explained_once_and_may_be_decided() {
    let cluster = TestCluster::open(&periodics(&["e2e-aws"])).await;
    let verify = json!({"verify": {"aws": {"prowJob": {"name": "e2e-aws"}}}});
    cluster.declare(&integration(verify)).await;
    cluster.pass(SECOND * 5).await;
    cluster.end_job(TAG, true).await;
    cluster.pass(SECOND * 5).await;
    // As after a start of a process that never saw the key of then.
    let lost = json!({"metadata": {"annotations": {annotations::RUN_KEY: "0011223344556677"}}});
    cluster.patch_payload(TAG, lost).await;
    cluster.pass(SECOND * 5).await;
    let payload: ReleasePayload = cluster.get(TAG).await.unwrap();
    let waits = cluster::condition(&payload, "PayloadAccepted").message;
    assert!(waits.contains("lacks the key 0011223344556677"), "{waits}");
    let gauge = "neaptide_release_payloads_unproved 1";
    assert!(cluster.metrics().contains(gauge));
    cluster.pass(SECOND * 30).await;
    let before = cluster.writes();
    cluster.pass(MINUTE * 30).await;
    assert_eq!(cluster.writes(), before);
    assert_eq!(events(&cluster, "RunKeyMissing").await, 1);
    cluster.pass(MINUTE * 60 * 12).await;
    let payload: ReleasePayload = cluster.get(TAG).await.unwrap();
    assert_eq!(cluster::condition(&payload, "PayloadStuck").status, "True");
    cluster
        .override_payload(TAG, "Accepted", "it is known")
        .await;
    cluster.pass(SECOND * 5).await;
    assert_eq!(cluster.phase(TAG).await, Phase::Accepted);
    let audited = cluster.audited();
    let by = "override Accepted by a user who did not give a name: it is known";
    assert!(audited.iter().any(|it| it == by), "{audited:?}");
}
