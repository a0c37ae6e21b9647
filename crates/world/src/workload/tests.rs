use std::collections::HashSet;

use k8s_openapi::api::core::v1::ConfigMap;
use neap_kit::{apply::Error, wiring::Tools};
use serde_json::json;

use super::*;
use crate::stage::Stage;

#[test]
fn names_follow_from_what_they_are_for() {
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
    let stage = Stage::open(|_| Ok(Vec::new())).await;
    let tools = Tools::new(&stage.site, "test");
    let owner: ConfigMap = stage.create(json!({"metadata": {"name": "a"}})).await;
    tools.confirm(&owner, true).await.unwrap();
    tools.confirm_unchanged(&owner, true).await.unwrap();
    let patch = json!({"data": {"x": "1"}});
    stage.patch::<ConfigMap>("a", patch).await;
    tools.confirm(&owner, true).await.unwrap();
    let no = |asked: Result<(), Error>| matches!(asked, Err(Error::Replaced(_)));
    assert!(no(tools.confirm_unchanged(&owner, true).await));
    stage.delete::<ConfigMap>("a").await;
    assert!(no(tools.confirm(&owner, true).await));
    // Whoever makes nothing asks nothing.
    tools.confirm(&owner, false).await.unwrap();
    tools.confirm_unchanged(&owner, false).await.unwrap();
}
