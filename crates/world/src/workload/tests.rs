use std::collections::HashSet;

use k8s_openapi::api::core::v1::ConfigMap;
use neap_kit::{apply::Error, builder::Tools};
use serde_json::json;

use super::*;
use crate::stage::TestCluster;

#[test]
fn names_are_derived_from_their_parts() {
    assert_eq!(suffix(&["a", "1"]), suffix(&["a", "1"]));
    assert_ne!(suffix(&["a", "1"]), suffix(&["a1"]));
    let names: HashSet<_> = (0..1000)
        .map(|n: u32| suffix(&["uid", &n.to_string()]))
        .collect();
    assert_eq!(names.len(), 1000);
    assert!(names.iter().all(|name| name.len() == 5));
}

#[tokio::test(start_paused = true)]
async fn nothing_is_made_for_an_owner_that_is_gone() {
    let cluster = TestCluster::start(|_| Ok(Vec::new())).await;
    let tools = Tools::new(&cluster.context, "test");
    let owner: ConfigMap = cluster.create(json!({"metadata": {"name": "a"}})).await;
    tools.confirm(&owner, true).await.unwrap();
    tools.confirm_unchanged(&owner, true).await.unwrap();
    let patch = json!({"data": {"x": "1"}});
    cluster.patch::<ConfigMap>("a", patch).await;
    tools.confirm(&owner, true).await.unwrap();
    let conflicts = |result: Result<(), Error>| matches!(result, Err(Error::Conflict(_)));
    assert!(conflicts(tools.confirm_unchanged(&owner, true).await));
    cluster.delete::<ConfigMap>("a").await;
    assert!(conflicts(tools.confirm(&owner, true).await));
    // Without anything to create, nothing is requested.
    tools.confirm(&owner, false).await.unwrap();
    tools.confirm_unchanged(&owner, false).await.unwrap();
}
