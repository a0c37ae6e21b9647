use serde_json::{Value, json};

use super::*;
use crate::stage::TestCluster;

/// A pod of the account `short-lived` with a token.
async fn pod(cluster: &TestCluster) -> Pod {
    let account = json!({"metadata": {"name": "short-lived"}});
    cluster.create::<ServiceAccount>(account).await;
    let token = json!({"serviceAccountToken": {"path": "token", "expirationSeconds": 3600}});
    let spec = json!({
        "serviceAccountName": "short-lived", "automountServiceAccountToken": false,
        "containers": [{"name": "main", "image": "i"}],
        "volumes": [{"name": "v", "projected": {"sources": [token]}}],
    });
    let pod: Value = json!({"metadata": {"name": "p"}, "spec": spec});
    cluster.create(pod).await
}

#[tokio::test(start_paused = true)]
async fn a_token_is_renewed_in_time_and_reused_while_that_fails() {
    let cluster = TestCluster::start(|_| Ok(Vec::new())).await;
    let source_reader = SourceReader::new(&cluster.context, "kubelet").unwrap();
    let pod = pod(&cluster).await;
    let token = async || {
        let (sources, renew) = source_reader.sources(&pod).await;
        (sources.tokens[""].clone(), renew.unwrap())
    };
    let (first, renew) = token().await;
    assert!(first.is_ok(), "{first:?}");
    assert_eq!(renew, Duration::from_mins(48));
    cluster.advance(renew / 2).await;
    assert_eq!(token().await, (first.clone(), renew / 2));
    cluster.advance(renew / 2).await;
    let (second, renew) = token().await;
    assert!(second.is_ok() && second != first);
    assert_eq!(renew, Duration::from_mins(48));
    cluster.delete::<ServiceAccount>("short-lived").await;
    cluster.advance(renew).await;
    assert_eq!(token().await, (second, TOKEN_RETRY_DELAY));
    source_reader.forget(&pod.uid().unwrap());
    let (sources, renew) = source_reader.sources(&pod).await;
    let error = sources.tokens[""].clone().unwrap_err();
    assert!(error.contains("\"short-lived\" not found"), "{error}");
    assert_eq!(renew, None);
}

#[tokio::test(start_paused = true)]
async fn a_claim_has_a_folder_once_it_is_bound_and_an_error_before() {
    let cluster = TestCluster::start(|_| Ok(Vec::new())).await;
    let source_reader = SourceReader::new(&cluster.context, "kubelet").unwrap();
    let spec = json!({"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}, "volumeName": "v"});
    let claim = json!({"metadata": {"name": "data"}, "spec": spec});
    let claim: PersistentVolumeClaim = cluster.create(claim).await;
    let pod = json!({"metadata": {"name": "p", "namespace": "default"}, "spec": {"containers": [], "volumes": [
        {"name": "a", "persistentVolumeClaim": {"claimName": "data"}},
        {"name": "b", "persistentVolumeClaim": {"claimName": "other"}},
    ]}});
    let pod: Pod = serde_json::from_value(pod).unwrap();
    let folders = async || {
        cluster.advance(Duration::from_secs(1)).await;
        source_reader.sources(&pod).await.0.claims
    };
    let before = folders().await;
    assert!(
        before["data"]
            .as_ref()
            .unwrap_err()
            .contains("is not bound")
    );
    assert!(before["other"].as_ref().unwrap_err().contains("not found"));
    let bound = json!({"phase": "Bound"});
    cluster
        .patch_status::<PersistentVolumeClaim>("data", bound)
        .await;
    let missing = folders().await["data"].clone();
    assert!(
        missing
            .unwrap_err()
            .contains("persistentvolume \"v\" not found")
    );
    let volume = |uid: Option<String>| {
        let reference = json!({"namespace": "default", "name": "data", "uid": uid});
        json!({"metadata": {"name": "v"}, "spec": {
            "accessModes": ["ReadWriteOnce"], "capacity": {"storage": "1Gi"}, "hostPath": {"path": "/srv/v"}, "claimRef": reference,
        }})
    };
    cluster
        .create_cluster_scoped::<PersistentVolume>(volume(claim.uid()))
        .await;
    assert_eq!(folders().await["data"], Ok(PathBuf::from("/srv/v")));
}
