use k8s_openapi::api::core::v1::{Binding, Pod};
use kube::api::PostParams;

use super::*;

fn map(bench: &WriterBench, data: &Value) -> ConfigMap {
    serde_json::from_value(bench.map("a", data)).unwrap()
}

#[tokio::test(start_paused = true)]
async fn creating_an_object_twice_creates_it_once() {
    let bench = WriterBench::new().await;
    let made = bench
        .writer
        .create(&map(&bench, &json!({"x": "1"})))
        .await
        .unwrap();
    assert!(made.unwrap().metadata.uid.is_some());
    let again = bench
        .writer
        .create(&map(&bench, &json!({"x": "2"})))
        .await
        .unwrap();
    assert!(again.is_none());
    let stored = bench.api.get("a").await.unwrap();
    assert_eq!(stored.data["data"], json!({"x": "1"}));
    let writers = stored.metadata.managed_fields.unwrap();
    assert_eq!(writers[0].manager.as_deref(), Some("test"));
}

#[tokio::test(start_paused = true)]
async fn an_object_that_changed_since_it_was_read_is_not_replaced() {
    let bench = WriterBench::new().await;
    let first = bench
        .writer
        .create(&map(&bench, &json!({})))
        .await
        .unwrap()
        .unwrap();
    let newer = ConfigMap {
        data: Some([("x".to_owned(), "1".to_owned())].into()),
        ..first.clone()
    };
    bench.writer.replace(&newer).await.unwrap();
    let refused = bench.writer.replace(&first).await.unwrap_err();
    assert!(matches!(refused, Error::Conflict(_)), "{refused:?}");
    let stored = bench.api.get("a").await.unwrap();
    assert_eq!(stored.data["data"], json!({"x": "1"}));
}

#[tokio::test(start_paused = true)]
async fn an_object_in_a_missing_namespace_is_refused_with_the_message_of_the_server() {
    let bench = WriterBench::new().await;
    let nowhere = bench.server.unique_name("nowhere");
    let mut object = bench.map("a", &json!({}));
    object["metadata"]["namespace"] = nowhere.clone().into();
    let map: ConfigMap = serde_json::from_value(object.clone()).unwrap();
    let desired = DesiredObject {
        kind: maps(),
        object,
    };
    let created = bench.writer.create(&map).await.map(drop);
    let applied = bench.writer.execute(plan(&[desired], &[])).await.map(drop);
    for refused in [created, applied] {
        let Err(Error::Refused { source, .. }) = refused else {
            panic!("{refused:?}");
        };
        let missing = format!("namespaces \"{nowhere}\" not found");
        assert!(source.to_string().contains(&missing), "{source}");
    }
}

#[tokio::test(start_paused = true)]
async fn replacing_a_status_leaves_the_rest_of_the_object_unchanged() {
    let bench = WriterBench::new().await;
    let name = bench.server.unique_name("n");
    let node = json!({"metadata": {"name": name}, "spec": {"podCIDR": "10.0.0.0/24"}});
    let node: Node = serde_json::from_value(node).unwrap();
    let mut node = bench.writer.create(&node).await.unwrap().unwrap();
    node.spec = None;
    node.status = serde_json::from_value(json!({"capacity": {"pods": "7"}})).unwrap();
    let written = bench.writer.replace_status(&node).await.unwrap();
    assert_eq!(written.status.unwrap().capacity.unwrap()["pods"].0, "7");
    let spec = written.spec.unwrap();
    assert_eq!(spec.pod_cidr.as_deref(), Some("10.0.0.0/24"));
}

#[tokio::test(start_paused = true)]
async fn only_the_object_that_was_read_is_deleted() {
    let bench = WriterBench::new().await;
    let first = bench
        .writer
        .create(&map(&bench, &json!({})))
        .await
        .unwrap()
        .unwrap();
    bench.writer.remove(&first, None).await.unwrap();
    bench.writer.remove(&first, None).await.unwrap();
    assert!(
        bench.live().await.is_empty(),
        "deleting it again is no error"
    );
    bench
        .writer
        .create(&map(&bench, &json!({})))
        .await
        .unwrap()
        .unwrap();
    let refused = bench.writer.remove(&first, None).await.unwrap_err();
    assert!(matches!(refused, Error::Conflict(_)), "{refused:?}");
    assert_eq!(
        bench.live().await.len(),
        1,
        "another object of that name stays"
    );
}

#[tokio::test(start_paused = true)]
async fn an_object_is_confirmed_while_it_has_its_uid_and_is_not_being_deleted() {
    let bench = WriterBench::new().await;
    let mut first = map(&bench, &json!({}));
    first.metadata.finalizers = Some(vec!["test.example/held".to_owned()]);
    let first = bench.writer.create(&first).await.unwrap().unwrap();
    bench.writer.confirm(&first).await.unwrap();
    let refused = |confirmed: Result<_, Error>| matches!(confirmed, Err(Error::Conflict(_)));
    bench.writer.remove(&first, None).await.unwrap();
    assert!(
        refused(bench.writer.confirm(&first).await),
        "it is being deleted"
    );
    let maps: Api<ConfigMap> = Api::default_namespaced(bench.api.clone().into_client());
    let mut last = maps.get("a").await.unwrap();
    last.metadata.finalizers = None;
    bench.writer.replace(&last).await.unwrap();
    assert!(refused(bench.writer.confirm(&first).await), "it is gone");
    let second = bench
        .writer
        .create(&map(&bench, &json!({})))
        .await
        .unwrap()
        .unwrap();
    assert!(refused(bench.writer.confirm(&first).await), "it is another");
    bench.writer.confirm(&second).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_subresource_is_posted_to() {
    let bench = WriterBench::new().await;
    let client = bench.api.clone().into_client();
    let name = bench.server.unique_name("n");
    let node: Node = serde_json::from_value(json!({"metadata": {"name": name}})).unwrap();
    let nodes: Api<Node> = Api::all(client.clone());
    nodes.create(&PostParams::default(), &node).await.unwrap();
    let account = json!({"metadata": {"name": "default"}});
    let account = serde_json::from_value(account).unwrap();
    let accounts: Api<k8s_openapi::api::core::v1::ServiceAccount> =
        Api::default_namespaced(client.clone());
    // A real server creates it by itself.
    let _ = accounts.create(&PostParams::default(), &account).await;
    let spec = json!({"containers": [{"name": "c", "image": "i"}]});
    let pod =
        json!({"metadata": {"namespace": bench.server.namespace(), "name": "p"}, "spec": spec});
    let pod: Pod = serde_json::from_value(pod).unwrap();
    bench.writer.create(&pod).await.unwrap().unwrap();
    let target = json!({"kind": "Node", "name": name});
    let binding = json!({"metadata": {"name": "p"}, "target": target});
    let binding: Binding = serde_json::from_value(binding).unwrap();
    let key = Key::of(&pod);
    let answer: Value = bench
        .writer
        .post::<Pod, _, _>(&key, "binding", &binding)
        .await
        .unwrap();
    assert_eq!(answer["kind"], "Status");
    let pods: Api<Pod> = Api::default_namespaced(client);
    let bound = pods.get("p").await.unwrap().spec.unwrap();
    assert_eq!(bound.node_name, Some(name));
}
