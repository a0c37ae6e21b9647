//! Changes of plans that are not server-side applies: posts, replacements, patches and deletions.

use super::*;

fn post(object: DesiredObject, if_exists: IfExists) -> PlannedChange {
    PlannedChange::Post {
        object,
        owner: None,
        if_exists,
        reason: "it is needed".to_owned(),
    }
}

async fn live(bench: &WriterBench, name: &str) -> ConfigMap {
    let api: Api<ConfigMap> = Api::default_namespaced(bench.server.client.clone());
    api.get(name).await.unwrap()
}

#[tokio::test(start_paused = true)]
async fn a_plan_of_all_kinds_of_changes_is_displayed_and_executed_in_order() {
    let bench = WriterBench::new().await;
    let namespace = bench.server.namespace();
    let created = post(bench.desired("a", &json!({"x": "1"})), IfExists::Conflict);
    bench.writer.execute_change(created).await.unwrap();
    let first = live(&bench, "a").await;
    let mut changed = first.clone();
    changed.data.get_or_insert_default().clear();
    let plan = Plan {
        changes: vec![
            PlannedChange::Replace {
                object: DesiredObject::of(&changed),
                owner: Some(ObjectRef::of(&first)),
                reason: "its data differ".to_owned(),
            },
            PlannedChange::Merge {
                kind: maps(),
                metadata: Box::new(kube::api::ObjectMeta {
                    resource_version: None,
                    ..first.metadata.clone()
                }),
                subresource: None,
                patch: json!({"data": {"y": "2"}}),
                reason: "another field is needed".to_owned(),
            },
            PlannedChange::DeleteByName {
                kind: maps(),
                key: Key::new(namespace, "missing"),
                reason: "it may exist".to_owned(),
            },
        ],
        cleanup: vec![PlannedChange::Delete {
            object: ObjectRef::of(&first),
            reason: "it is no longer needed".to_owned(),
        }],
    };
    assert_eq!(
        plan.to_string(),
        format!(
            "replace ConfigMap {namespace}/a: its data differ\n\
             patch ConfigMap {namespace}/a: another field is needed\n\
             delete ConfigMap {namespace}/missing: it may exist\n\
             delete ConfigMap {namespace}/a: it is no longer needed"
        )
    );
    let written = bench.writer.execute(plan).await.unwrap();
    assert_eq!(written[0].data.get("data"), None);
    assert_eq!(written[1].data["data"], json!({"y": "2"}));
    assert!(bench.live().await.is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_post_over_an_existing_object_conflicts_or_takes_it_over() {
    let bench = WriterBench::new().await;
    let map = |value: &str| bench.desired("a", &json!({ "x": value }));
    let first = post(map("1"), IfExists::Conflict);
    bench.writer.execute_change(first.clone()).await.unwrap();
    let refused = bench.writer.execute_change(first).await.unwrap_err();
    assert!(matches!(refused, Error::Conflict(_)), "{refused:?}");
    let before = live(&bench, "a").await;
    let taken_over = post(map("2"), IfExists::TakeOver);
    bench.writer.execute_change(taken_over).await.unwrap();
    let after = live(&bench, "a").await;
    assert_eq!(after.metadata.uid, before.metadata.uid);
    assert_eq!(after.data.unwrap()["x"], "2");
}

#[tokio::test(start_paused = true)]
async fn nothing_is_written_for_an_owner_that_is_gone() {
    let bench = WriterBench::new().await;
    let created = post(bench.desired("owner", &json!({})), IfExists::Conflict);
    bench.writer.execute_change(created).await.unwrap();
    let owner = ObjectRef::of(&live(&bench, "owner").await);
    let deleted = PlannedChange::Delete {
        object: owner.clone(),
        reason: "it is no longer needed".to_owned(),
    };
    bench.writer.execute_change(deleted).await.unwrap();
    let owned = PlannedChange::Post {
        object: bench.desired("a", &json!({})),
        owner: Some(owner),
        if_exists: IfExists::Conflict,
        reason: "its owner needs it".to_owned(),
    };
    let refused = bench.writer.execute_change(owned).await.unwrap_err();
    assert!(matches!(refused, Error::Conflict(_)), "{refused:?}");
    assert!(bench.live().await.is_empty());
}
